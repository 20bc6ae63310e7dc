"""Types of cells that answer for themselves, by exact terms.

An object of another type, a subclass included, may say of itself what it likes, and warn or raise
what it likes: of NumPy's conversions, ``float(cell)`` is a method of the record's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

#: Truth values are none, and spans of time, which NumPy counts among the integers.
NUMBERS: frozenset[type] = frozenset({int, float}) | {
    kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, np.integer | np.floating) and not issubclass(kind, np.timedelta64)
}
FLOATS = frozenset(kind for kind in NUMBERS if issubclass(kind, float | np.floating))
WHOLE = frozenset(kind for kind in NUMBERS if issubclass(kind, int | np.integer))
#: What double precision has a number for.
REAL = NUMBERS | {bool, np.bool_, Decimal, Fraction}
TEXT: frozenset[type] = frozenset({str, np.str_})
MISSING: frozenset[type] = frozenset({type(None), type(pd.NA), type(pd.NaT)})
#: NumPy's own rules say which text is a number.
MATRIX = REAL | TEXT | MISSING | {bytes, np.bytes_}


def all_of(types: frozenset[type], cells: Iterable[Any]) -> bool:
    """Say whether each cell is of one of the types itself; nothing is asked of any cell."""
    known = _identities(types)
    return all(id(type(cell)) in known for cell in cells)


@cache
def _identities(types: frozenset[type]) -> frozenset[int]:
    # A class of classes may make of == what it likes.
    return frozenset(map(id, types))


def refuse_foreign_cells(X: Any) -> None:
    """Refuse a matrix with a cell of another type than a matrix of numbers may hold.

    Parameters
    ----------
    X : object
        Arrays of objects, frames of pandas with such columns, and lists are looked through.

    Raises
    ------
    TypeError
    """
    if not all(all_of(MATRIX, cells) for cells in _objects(X)):
        raise TypeError(
            "X must hold plain numbers alone: as of float, each argument must be a string or a "
            "real number, and of no class of its own."
        )


def _objects(X: Any) -> Iterable[Iterable[Any]]:
    """Return what is not of a type of NumPy's, in several parts."""
    if isinstance(X, list | tuple):
        return [_listed(row) if isinstance(row, list | tuple | np.ndarray) else () for row in X]
    if isinstance(X, pd.DataFrame):
        return [_listed(X.iloc[:, j]) for j in range(X.shape[1])]
    return [_listed(X)] if isinstance(X, np.ndarray) else []


def _listed(cells: Any) -> Iterable[Any]:
    if isinstance(cells, list | tuple):
        return cells
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.cat.categories
    return np.asarray(cells).ravel().tolist() if cells.dtype == object else ()
