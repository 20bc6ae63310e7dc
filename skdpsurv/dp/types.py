"""Names for the arrays that the package works with.

Rows in pieces that a cache holds: what is made on the way to a result takes no memory then.

An array as large as a block of records is memory fresh from the system each time, and the system's
part of that can be longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Places of records, as NumPy's own index type.
IndexArray = NDArray[np.intp]


#: Rows that are worked on at once, times columns. Two or three such arrays of doubles fit a
#: second-level cache.
CHUNK_ELEMENTS = 2**15


def row_pieces(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield the pieces of rows, in their order."""
    step = max(1, CHUNK_ELEMENTS // max(1, n_columns))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def by_pieces(function: Callable[[slice], FloatArray], n_rows: int, n_columns: int) -> FloatArray:
    """Return rows that a function makes piece by piece, in one array of doubles.

    Parameters
    ----------
    function : callable
        Of a slice: the rows there, of shape (n_piece, n_columns).
    n_rows, n_columns : int
    """
    made = np.empty((n_rows, n_columns))
    for piece in row_pieces(n_rows, n_columns):
        made[piece] = function(piece)
    return made
