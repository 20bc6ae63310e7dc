"""The inner loops of the hazard likelihood: records times intervals, a cacheful at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skdpsurv.likelihoods.base import SUM_ROWS
from skdpsurv.likelihoods.links import Link
from skdpsurv.pieces import CHUNK_ELEMENTS
from skdpsurv.types import FloatArray, IntArray


class Sums:
    """Per record: slope and curvature in b, cross derivative in (a, b). Per interval: sums."""

    def __init__(self, n: int, n_basis: int, q: int) -> None:
        self.slope = np.zeros(n)
        self.curvature = np.zeros(n)
        self.cross = np.zeros((n, n_basis))
        self.interval_slope = np.zeros(q)
        self.interval_curvature = np.zeros(q)


def sums_by_level(values: FloatArray, levels: IntArray) -> tuple[IntArray, FloatArray]:
    """Add up rows by level, in pieces of at most SUM_ROWS rows, so that rounding stays small.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
    levels : ndarray of int, shape (n,)
        Ascending, not empty.

    Returns
    -------
    present : ndarray of int
        The levels that occur.
    sums : ndarray of shape (n_present, ...)
    """
    starts = np.empty(levels.size, dtype=bool)
    np.not_equal(levels[1:], levels[:-1], out=starts[1:])
    starts[::SUM_ROWS] = True  # the first row among them
    breaks = np.flatnonzero(starts)
    pieces = np.add.reduceat(values, breaks, axis=0)
    present, first = np.unique(levels[breaks], return_index=True)
    return present, np.add.reduceat(pieces, first, axis=0)


class Chunk(NamedTuple):
    """Records that are worked on together, out of arrays sorted by intervals survived.

    Parameters
    ----------
    part : slice
        Which records.
    width : int
        The most intervals that one of them survived.
    shortest : int
        The fewest.
    tail : ndarray of shape (n_rows, width - shortest)
        1 where a record survived the interval, 0 where it did not, from ``shortest`` on.
    """

    part: slice
    width: int
    shortest: int
    tail: FloatArray


def chunks(survived: IntArray) -> Iterator[Chunk]:
    """Cut records, ascending in ``survived``, into chunks that fit a cache; k = 0 has no part."""
    start, n = int(np.searchsorted(survived, 1)), survived.size
    while start < n:
        stop = min(n, start + min(SUM_ROWS, max(1, CHUNK_ELEMENTS // int(survived[start]))))
        stop = min(stop, start + max(1, CHUNK_ELEMENTS // int(survived[stop - 1])))
        shortest, width = int(survived[start]), int(survived[stop - 1])
        tail = np.arange(shortest, width) < survived[start:stop, None]
        yield Chunk(slice(start, stop), width, shortest, tail.astype(np.float64))
        start = stop


def slopes(
    link: Link, a: FloatArray, b: FloatArray, chunk: Chunk, order: int
) -> tuple[FloatArray, FloatArray | None]:
    r"""Return :math:`\varphi'(a_s + b_i)` and perhaps :math:`\varphi''`, 0 beyond a record's exit.

    Parameters
    ----------
    link : Link
    a : ndarray of shape (n_intervals,)
    b : ndarray of shape (n_records,)
    chunk : Chunk
    order : int
        1 leaves out the curvatures.
    """
    slope, curvature = link.survival_outer(a[: chunk.width], b[chunk.part], order)
    if chunk.tail.size:
        slope[:, chunk.shortest :] *= chunk.tail
        if curvature is not None:
            curvature[:, chunk.shortest :] *= chunk.tail
    return slope, curvature


def add_survived(
    sums: Sums,
    link: Link,
    basis: FloatArray,
    a: FloatArray,
    b: FloatArray,
    weights: FloatArray,
    rows: IntArray,
    survived: IntArray,
    order: int,
) -> None:
    """Add the intervals survived by the records ``rows``, ascending in ``survived``."""
    columns = np.column_stack([basis, np.ones(a.size)])
    ones = np.ones(a.size)
    b, weight = b[rows], weights[rows]
    slope_sums, moments = np.zeros(rows.size), np.zeros((rows.size, columns.shape[1]))
    for chunk in chunks(survived[rows]):
        part, width = chunk.part, chunk.width
        slope, curvature = slopes(link, a, b, chunk, order)
        np.dot(slope, ones[:width], out=slope_sums[part])
        sums.interval_slope[:width] += weight[part] @ slope
        if curvature is not None:
            np.dot(curvature, columns[:width], out=moments[part])
            sums.interval_curvature[:width] += weight[part] @ curvature
    sums.slope[rows] += weight * slope_sums
    moments *= weight[:, None]
    sums.cross[rows] += moments[:, :-1]
    sums.curvature[rows] += moments[:, -1]
