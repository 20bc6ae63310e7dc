"""The inner loops of the hazard likelihood: records times intervals, a cacheful at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from skdpsurv.likelihoods.base import CHUNK_ELEMENTS
from skdpsurv.likelihoods.links import Link

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Sums:
    """Per record: slope and curvature in b, cross derivative in (a, b). Per interval: sums."""

    def __init__(self, n: int, n_basis: int, q: int) -> None:
        self.slope = np.zeros(n)
        self.curvature = np.zeros(n)
        self.cross = np.zeros((n, n_basis))
        self.interval_slope = np.zeros(q)
        self.interval_curvature = np.zeros(q)


def chunks(
    rows: IntArray, survived: IntArray
) -> Iterator[tuple[IntArray, int, NDArray[np.bool_] | bool]]:
    """Cut rows sorted by ``survived`` into pieces that fit a cache.

    Yields the rows, the number of intervals that they need, and a mask of intervals survived
    (True when every row survived them all).
    """
    k = survived[rows]
    start = int(np.searchsorted(k, 1))
    while start < rows.size:
        stop = min(rows.size, start + max(1, CHUNK_ELEMENTS // int(k[start])))
        stop = min(rows.size, start + max(1, CHUNK_ELEMENTS // int(k[stop - 1])))
        shortest, width = int(k[start]), int(k[stop - 1])
        mask: NDArray[np.bool_] | bool = True
        if shortest < width:
            mask = np.arange(width) < k[start:stop, None]
        yield rows[start:stop], width, mask
        start = stop


def slopes(
    link: Link,
    a: FloatArray,
    b: FloatArray,
    mask: NDArray[np.bool_] | bool,
    order: int,
) -> tuple[FloatArray, FloatArray | None]:
    r"""Return :math:`\varphi'(a_s + b_i)` and perhaps :math:`\varphi''`; 0 where masked out."""
    slope, curvature = link.survival_outer(a, b, order)
    if mask is not True:
        slope *= mask
        if curvature is not None:
            curvature *= mask
    return slope, curvature
