"""Refusals that say what rule was broken and nothing of the record that broke it."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import special

# What is said in place of scikit-learn's and NumPy's errors that print values of the data.
_MESSAGES_WITHOUT_DATA = {
    "Complex data not supported": "Complex data not supported: X must be real.",
    "Expected 2D": (
        "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
        "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
    ),
    "could not convert": (
        "X must be numeric, got text in at least one column. Encode categories with "
        "categories that are public, not with those found in the data."
    ),
}

# Messages that speak of shapes, names of columns, missing values and types, and of no value.
_SAFE = re.compile(
    r"(contains NaN|must not contain NaN|does not accept missing values|contains infinity|"
    r"Found array with|features?, but|feature names|Feature names|"
    r"[Ss]parse (data|input|matrix)|numbers of samples|"
    r"argument must be a string or a real number, not '\w+'$)"
)


def call_without_data(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a validation; let through its errors that are known to show no value, reword others.

    Parameters
    ----------
    function : callable
        Such as scikit-learn's ``validate_data``.
    *args, **options
        Passed on.

    Raises
    ------
    ValueError, TypeError
        As the function does, with a text of ours where its own might quote a record.
    """
    try:
        with silent_arithmetic(), nested_arrays_refused():
            return function(*args, **options)
    except Exception as error:  # an object's own conversion may raise what it likes
        text = str(error)
        reworded = [m for fragment, m in _MESSAGES_WITHOUT_DATA.items() if fragment in text]
        ours = isinstance(error, ValueError | TypeError)
        if ours and not reworded and _SAFE.search(text):
            # The errors behind this one may quote a value.
            error.__cause__ = error.__context__ = None
            raise
        message = reworded[0] if reworded else "X must be a two-dimensional array of real numbers."
        kind = TypeError if isinstance(error, TypeError) else ValueError
    # Outside the handler, so that no chained error holds the text.
    raise kind(message)


@contextmanager
def silent_arithmetic() -> Iterator[None]:
    """Keep floating-point events from raising or warning, whatever NumPy and SciPy were told.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
        yield


@contextmanager
def nested_arrays_refused() -> Iterator[None]:
    """Have NumPy refuse a cell that is an array of one number, as NumPy 2.4 and later do.

    Earlier ones use the number and warn, and the warning tells of a record. Filters of warnings
    belong to the process, so this is for its main thread; in others it does nothing.
    """
    of_itself = np.lib.NumpyVersion(np.__version__) >= "2.4.0"
    if of_itself or threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Conversion of an array with ndim > 0", DeprecationWarning)
        yield


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array: NumPy would use what is under the mask.

    Raises
    ------
    ValueError
        If ``values`` is a masked array.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: what is under the mask would be used."
        )
