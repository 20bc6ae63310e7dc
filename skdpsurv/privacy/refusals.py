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

#: What is said of whatever has not rows and columns.
NO_TABLE = (
    "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
    "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
)
# What is said in place of scikit-learn's and NumPy's errors, by how these begin: they may print
# values of the data, or end in text that an object of the caller's has made up.
_MESSAGES_WITHOUT_DATA = {
    "Complex data not supported": "Complex data not supported: X must be real.",
    "Expected 2D": NO_TABLE,
    "could not convert": (
        "X must be numeric, got text in {columns}. columns=PublicColumns({{...}}) makes indicators "
        "of categories that are public; those found in the data are not."
    ),
    r"Input (\w+ )?contains NaN": (
        "Input X contains NaN: missing values are not accepted, and found in {columns}. "
        "columns=PublicColumns({{...}}) says what they count as: the middle of public bounds, or a "
        "category of their own. Rows must not be dropped for what they hold, nor cells filled in "
        "by statistics of the data: no guarantee covers that."
    ),
    r"Input (\w+ )?contains infinity": (
        "Input X contains infinity or a value too large for dtype('float64')."
    ),
    "(Sparse data|A sparse)": (
        "Sparse data was passed for X, but dense data is required. Use '.toarray()'."
    ),
    "Feature names are only supported": (
        "Feature names are only supported if all input features have string names."
    ),
}

# Messages that speak of shapes and types alone, from their first character to their last.
_SAFE = (
    r"Found array with \d+ (sample|feature)\(s\) \(shape=\([\d, ]*\)\) while a minimum of \d+ is "
    r"required( by \w+)?\.",
    r"X has \d+ features?, but (\w+ is expecting )?\d+ features?( are expected| as input)\.",
    r"Found input variables with inconsistent numbers of samples: \[[\d, ]+\]",
    r"(\w+\(\) )?argument must be a string or a real number, not '\w+'",
)
# One that lists names of columns, which are public, if they are those of the arguments.
_NAMES = r"(The feature names should match those that were passed during fit\.\n)(.*)"


def _shows_no_value(text: str, arguments: tuple[Any, ...]) -> bool:
    if any(re.fullmatch(pattern, text.strip()) for pattern in _SAFE):
        return True
    listed = re.fullmatch(_NAMES, text, re.DOTALL)
    if listed is None:
        return False
    names = {name for argument in arguments for name in _names_of(argument)}
    lines = [line.removeprefix("- ") for line in listed[2].split("\n") if line.startswith("- ")]
    return all(line in names or line == "..." for line in lines)


def _names_of(argument: Any) -> set[str]:
    """Return the names of columns that an estimator has seen, or a frame has."""
    frame = hasattr(argument, "columns") and hasattr(argument, "__len__")
    names = argument.columns if frame else getattr(argument, "feature_names_in_", None)
    return set() if names is None else set(map(str, names))


class RefusedValueError(ValueError):
    """A value has no place in the public domain: said in words that show none of it."""


def step_of_callers(step: Callable[[], Any], message: str) -> Any:
    """Return what a step of the caller's own gives; what it raises may quote a record.

    Parameters
    ----------
    step : callable
    message : str
        What is said where it fails.

    Raises
    ------
    RefusedValueError
    """
    try:
        return step()
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass
    # Outside the handler, so that no chained error holds the text.
    raise RefusedValueError(message)


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
    except RefusedValueError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an object's own conversion may raise what it likes
        text = str(error)
        reworded = [m for start, m in _MESSAGES_WITHOUT_DATA.items() if re.match(start, text)]
        ours = isinstance(error, ValueError | TypeError)
        if ours and not reworded and _shows_no_value(text, args):
            # The errors behind this one may quote a value.
            error.__cause__ = error.__context__ = None
            raise
        message = reworded[0] if reworded else "X must be a two-dimensional array of real numbers."
        kind = TypeError if isinstance(error, TypeError) else ValueError
    # Outside the handler, so that no chained error holds the text.
    if "{columns}" in message:
        cells = _missing if "NaN" in message else _text
        message = message.format(columns=_columns_with(cells, args))
    raise kind(message)


def _columns_with(cells: Callable[[Any], bool], arguments: tuple[Any, ...]) -> str:
    """Name the columns of a frame that hold such cells, as far as these can be asked."""
    found: list[str] = []
    for X in arguments:
        if not (hasattr(type(X), "columns") and hasattr(type(X), "__getitem__")):
            continue
        for name in X.columns:
            try:
                if isinstance(name, str) and cells(X[name]):
                    found.append(str.__str__(name))
            except Exception:  # whatever an object says of itself may be private
                continue
    if not found:
        return "at least one column"
    return f"column{'s' if len(found) > 1 else ''} {', '.join(map(repr, found))}"


def _missing(column: Any) -> bool:
    import pandas as pd

    return bool(np.any(pd.isna(np.asarray(column))))


def _text(column: Any) -> bool:
    return any(isinstance(cell, str) for cell in np.asarray(column).tolist())


@contextmanager
def silent_arithmetic() -> Iterator[None]:
    """Keep floating-point events from raising or warning, whatever NumPy and SciPy were told.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
        yield


#: Whether this NumPy does so by itself.
_NESTED_REFUSED = np.lib.NumpyVersion(np.__version__) >= "2.4.0"


@contextmanager
def nested_arrays_refused() -> Iterator[None]:
    """Have NumPy refuse a cell that is an array of one number, as NumPy 2.4 and later do.

    Earlier ones use the number and warn, and the warning tells of a record. Filters of warnings
    belong to the process, so this is for its main thread; in others it does nothing.
    """
    if _NESTED_REFUSED or threading.current_thread() is not threading.main_thread():
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
