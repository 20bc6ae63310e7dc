"""Errors that tell nothing of a record.

Calls of foreign code are guarded, since its errors may quote a record. Cells are recognised by
their exact type: an object of another type, a subclass included, may raise anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special
from sklearn.base import BaseEstimator

from skdpsurv.dp.containers import is_frame, labels_of, refuse_query, shape_of
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.types import FloatArray

#: Types of numbers, without bools and NumPy's time spans, which count among its integers.
NUMBERS: frozenset[type] = frozenset({int, float}) | {
    kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, np.integer | np.floating) and not issubclass(kind, np.timedelta64)
}
FLOATS = frozenset(kind for kind in NUMBERS if issubclass(kind, float | np.floating))
INTEGERS = frozenset(kind for kind in NUMBERS if issubclass(kind, int | np.integer))
#: Types that double precision has a number for.
REAL = NUMBERS | {bool, np.bool_, Decimal, Fraction}
TEXT: frozenset[type] = frozenset({str, np.str_})
MISSING: frozenset[type] = frozenset({type(None), type(pd.NA), type(pd.NaT)})
#: Types that a row may have in a list of rows.
ROWS = (list, tuple, np.ndarray)
#: Types in a matrix of numbers; NumPy decides which text is a number.
MATRIX = REAL | TEXT | MISSING | {bytes, np.bytes_}


def all_of(types: frozenset[type], cells: Iterable[Any]) -> bool:
    """Return whether each cell is of one of the types itself, without asking any cell."""
    # By identity: a metaclass may redefine ==.
    known = frozenset(map(id, types))
    return all(id(type(cell)) in known for cell in cells)


def refuse_foreign_cells(X: Any) -> None:
    """Raise TypeError for a cell of a type that a matrix of numbers may not hold."""
    if not all(all_of(MATRIX, cells) for cells in _object_cells(X)):
        raise TypeError(
            "X must hold plain numbers alone: as of float, each argument must be a string or a "
            "real number, and of no class of its own."
        )


def _object_cells(X: Any) -> Iterable[Iterable[Any]]:
    """Return the cells that are not of NumPy's own types, in several parts."""
    if isinstance(X, list | tuple):
        # No cell is asked for its class.
        return [_listed(row) if issubclass(type(row), ROWS) else () for row in X]
    if isinstance(X, pd.DataFrame):
        return [_listed(X.iloc[:, j]) for j in range(X.shape[1])]
    return [_listed(X)] if isinstance(X, np.ndarray) else []


def _listed(cells: Any) -> Iterable[Any]:
    if isinstance(cells, list | tuple):
        return cells
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.cat.categories
    return np.asarray(cells).ravel().tolist() if cells.dtype == object else ()


def call_or_none(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call foreign code on private records; return None if it raises anything but an interrupt."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


NO_TABLE = (
    "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
    "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
)
_NO_NUMBERS = "X must be a two-dimensional array of real numbers."


class InputValueError(ValueError):
    """An input has no place in the public domain; the message shows none of it."""


def call_user_step(step: Callable[[], Any], message: str) -> Any:
    """Return the result of a user's step, or raise InputValueError: its own may quote a record."""
    found = call_or_none(lambda: (step(),))
    if found is None:
        raise InputValueError(message)
    return found[0]


def call_without_data(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a validation, such as scikit-learn's, and replace errors, which may quote a record.

    Errors that scikit-learn raises for placeholder records of the same shape and names are kept.
    """
    try:
        with suppressed_float_errors():
            return function(*args, **options)
    except (KeyboardInterrupt, InputValueError):
        raise
    except BaseException as error:  # an object's own conversion may raise what it likes
        kind = TypeError if isinstance(error, TypeError) else ValueError
    # Outside the handler, so that no chained error holds the text.
    if function.__module__.startswith("sklearn."):
        same = [arg if isinstance(arg, BaseEstimator) else _placeholder(arg) for arg in args]
        if not any(arg is None for arg in same):
            function(*same, **options)
    tables = [X for X in args if _placeholder(X) is not None or sparse.issparse(X)]
    raise kind(_table_error(tables[-1]) if tables else NO_TABLE)


def _placeholder(X: Any) -> Any:
    """Return zeros with the shape and column names of a table; None if X is no table."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray):
        return np.zeros((len(X), len(X[0])))
    framed = is_frame(X)
    shape = (shape_of(X) if framed or isinstance(X, np.ndarray) else None) or ()
    zeros = call_or_none(np.zeros, shape) if len(shape) == 2 else None
    return pd.DataFrame(zeros, columns=labels_of(X)) if framed and zeros is not None else zeros


def _table_error(X: Any) -> str:
    """Return the message of a table that cannot be read."""
    if sparse.issparse(X):
        return "Sparse data was passed for X, but dense data is required. Use '.toarray()'."
    cells: NDArray[Any] | None = call_or_none(np.asarray, X)
    if cells is None or cells.ndim != 2:
        return _NO_NUMBERS
    if cells.dtype.kind == "c":
        return "Complex data not supported: X must be real."
    for holds, message in _FAULTS.items():
        found = [j for j, column in enumerate(cells.T) if call_or_none(holds, column)]
        if found:
            return message.format(columns=_named(X, found))
    return _NO_NUMBERS


def _named(X: Any, indices: list[int]) -> str:
    labels = labels_of(X)
    names = [] if labels is None else [labels[j] for j in indices]
    if not names or not all_of(TEXT, names):
        return "at least one column"
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, map(str, names)))}"


def _has_text(column: NDArray[Any]) -> bool:
    texts = (cell for cell in column.tolist() if all_of(TEXT, [cell]))
    return any(call_or_none(float, text) is None for text in texts)


def _has_infinity(column: NDArray[Any]) -> bool:
    return not np.all(np.isfinite(column.astype(np.float64)))


#: Tests of a column, and what is wrong with a table where one holds.
_FAULTS: dict[Callable[[NDArray[Any]], Any], str] = {
    _has_text: WORDS["columns"]["text"],
    lambda column: np.any(pd.isna(column)): WORDS["columns"]["missing"],
    _has_infinity: "Input X contains infinity or a value too large for dtype('float64').",
}


@contextmanager
def suppressed_float_errors() -> Iterator[None]:
    """Keep floating-point errors of NumPy and SciPy from raising or warning.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
        yield


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array, as NumPy would use the values under the mask, and a query."""
    refuse_query(values, name)
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: what is under the mask would be used."
        )


def check_finite(X: ArrayLike, name: str) -> None:
    """Raise ValueError for NaN or infinity; the message names the argument alone."""
    if not np.all(np.isfinite(as_float_array(X, name))):
        raise ValueError(
            f"{name} contains NaN or infinity; replace missing values with public constants "
            "before fitting."
        )


def as_float_array(values: ArrayLike, name: str) -> FloatArray:
    """Return values as float64; the ValueError for what is no number quotes none of them."""
    array: NDArray[Any] | None = call_or_none(np.asarray, values)
    floats: FloatArray | None = None
    if array is not None and (
        array.dtype.kind in "biuf"
        or (array.dtype.kind == "O" and all_of(MATRIX, array.ravel().tolist()))
    ):
        # Long doubles overflow to infinity; text may be no number.
        with np.errstate(all="ignore"):
            floats = call_or_none(np.asarray, array, np.float64)
    if floats is None:
        raise ValueError(f"{name} must be an array of real numbers.")
    return floats


#: Largest number in a fit without clipping: products of larger ones may overflow.
LARGEST_UNCLIPPED = 1e100


def check_unclipped(rows: FloatArray, name: str) -> None:
    """Raise ValueError for numbers beyond 1e100, in a fit without privacy, which clips nothing."""
    if max(rows.max(initial=0.0), -rows.min(initial=0.0)) > LARGEST_UNCLIPPED:
        raise ValueError(
            f"{name} must be within {LARGEST_UNCLIPPED:g} with epsilon=inf, where nothing is "
            "clipped."
        )
