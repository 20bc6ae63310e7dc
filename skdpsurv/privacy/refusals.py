"""Refusals that say what rule was broken and nothing of the record that broke it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import BaseEstimator

from skdpsurv.privacy.plain_cells import TEXT, all_of
from skdpsurv.privacy.silence import attempted

#: What is said of whatever has not rows and columns.
NO_TABLE = (
    "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
    "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
)
_NO_NUMBERS = "X must be a two-dimensional array of real numbers."


class RefusedValueError(ValueError):
    """A value has no place in the public domain: said in words that show none of it."""


def step_of_callers(step: Callable[[], Any], message: str) -> Any:
    """Return what a step of the caller's own gives, or raise RefusedValueError with a message.

    What it raises itself may quote a record.
    """
    found = attempted(lambda: (step(),))
    if found is None:
        raise RefusedValueError(message)
    return found[0]


def call_without_data(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a validation, such as scikit-learn's; its errors may quote a record, so ours are raised.

    What scikit-learn says of made-up records with the same shape and names is raised as it is.

    Raises
    ------
    ValueError, TypeError
    """
    try:
        with silent_arithmetic():
            return function(*args, **options)
    except (KeyboardInterrupt, RefusedValueError):
        raise
    except BaseException as error:  # an object's own conversion may raise what it likes
        kind = TypeError if isinstance(error, TypeError) else ValueError
    # Outside the handler, so that no chained error holds the text.
    if function.__module__.startswith("sklearn."):
        same = [one if isinstance(one, BaseEstimator) else _made_up(one) for one in args]
        if not any(one is None for one in same):
            function(*same, **options)
    tables = [X for X in args if _made_up(X) is not None or sparse.issparse(X)]
    raise kind(_fault(tables[-1]) if tables else NO_TABLE)


def _made_up(X: Any) -> Any:
    """Return zeros of a table's shape, with the names of its columns; None if it is none."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray):
        return np.zeros((len(X), len(X[0])))
    framed = _is_frame(X)
    shape = X.shape if framed or isinstance(X, np.ndarray) else ()
    zeros = attempted(np.zeros, shape) if len(shape) == 2 else None
    return pd.DataFrame(zeros, columns=X.columns) if framed and zeros is not None else zeros


def _is_frame(X: Any) -> bool:
    return hasattr(type(X), "columns") and hasattr(type(X), "shape")


def _fault(X: Any) -> str:
    """Say what is wrong with a table."""
    if sparse.issparse(X):
        return "Sparse data was passed for X, but dense data is required. Use '.toarray()'."
    cells: NDArray[Any] | None = attempted(np.asarray, X)
    if cells is None or cells.ndim != 2:
        return _NO_NUMBERS
    if cells.dtype.kind == "c":
        return "Complex data not supported: X must be real."
    for holds, message in _FAULTS.items():
        found = [j for j, column in enumerate(cells.T) if attempted(holds, column)]
        if found:
            return message.format(columns=_named(X, found))
    return _NO_NUMBERS


def _named(X: Any, places: list[int]) -> str:
    names = [X.columns[j] for j in places] if _is_frame(X) else []
    if not names or not all_of(TEXT, names):
        return "at least one column"
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, map(str, names)))}"


def _has_text(column: NDArray[Any]) -> bool:
    return any(all_of(TEXT, [cell]) and attempted(float, cell) is None for cell in column.tolist())


def _has_missing(column: NDArray[Any]) -> bool:
    return bool(np.any(pd.isna(column)))


def _has_infinity(column: NDArray[Any]) -> bool:
    return not np.all(np.isfinite(column.astype(np.float64)))


_FAULTS = {
    _has_text: (
        "X must be numeric, got text in {columns}. columns=PublicColumns({{...}}) makes indicators "
        "of categories that are public; those found in the data are not."
    ),
    _has_missing: (
        "Input X contains NaN: missing values are not accepted, and found in {columns}. "
        "columns=PublicColumns({{...}}) says what they count as: the middle of public bounds, or a "
        "category of their own. Rows must not be dropped for what they hold, nor cells filled in "
        "by statistics of the data: no guarantee covers that."
    ),
    _has_infinity: "Input X contains infinity or a value too large for dtype('float64').",
}


@contextmanager
def silent_arithmetic() -> Iterator[None]:
    """Keep floating-point events from raising or warning, whatever NumPy and SciPy were told.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
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
