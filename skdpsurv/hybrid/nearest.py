r"""Which public point is nearest to each private one: one pass over all pairs, in blocks.

:math:`\|x - e\|^2 = \|x\|^2 + \|e\|^2 - 2x^\top e`, of which the last term is a matrix product and
the first is the same for all e. Ties go to the first of the points, and points that are equally
near up to :math:`2^{-36}` are ties: how a product of matrices is rounded depends on how many rows
it has, and how records are cut must not decide which cell one on a lattice is in.

For a sensitivity it is enough that a record's cell is a function of that record, the public points,
its place and the size of its block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skdpsurv.types import FloatArray, IntArray

__all__ = ["nearest", "nested_counts"]


#: Pairs of a block: what a pass holds is a few arrays of so many doubles.
BLOCK_PAIRS = 2**21
BLOCK_ROWS = 2**10
#: Values that differ by less are equal. Points are in a cube, of side 1 (3 for an outcome).
TIE = 2.0**-36


def nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Return, for each point, the place of the nearest centre.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dimensions)
        Private.
    centers : ndarray of shape (n_centers, n_dimensions)
        Public, at least one.

    Returns
    -------
    ndarray of shape (n_points,)
    """
    (place,) = _nested(points, centers, (centers.shape[0],))
    return place


def nested_counts(
    points: FloatArray, centers: FloatArray, sizes: Sequence[int]
) -> Iterator[IntArray]:
    """Yield, for nested sets of centres, how many points are nearest to each centre.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dimensions)
        Private.
    centers : ndarray of shape (n_centers, n_dimensions)
        Public, in the order in which they join.
    sizes : sequence of int
        Sizes of the sets, rising: each holds the first so many centres.

    Yields
    ------
    ndarray of shape (size,)
        Private counts.
    """
    for size, place in zip(sizes, _nested(points, centers, sizes), strict=True):
        yield np.bincount(place, minlength=size)


def _nested(points: FloatArray, centers: FloatArray, sizes: Sequence[int]) -> list[IntArray]:
    """Return the nearest centres among the first so many, for each size."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centers, centers)
    places = [np.empty(points.shape[0], dtype=np.int64) for _ in sizes]
    width = max(BLOCK_PAIRS // BLOCK_ROWS, 1)
    for start in range(0, points.shape[0], BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = points[rows]
        # The largest x'e - |e|^2 / 2 so far, and where it was.
        best = np.full(block.shape[0], -np.inf)
        place = np.zeros(block.shape[0], dtype=np.int64)
        low = 0
        for size, result in zip(sizes, places, strict=True):
            for first in range(low, size, width):
                last = min(first + width, size)
                near = np.asarray(block @ centers[first:last].T)
                near -= half_norms[first:last]
                value = near.max(axis=1)
                local = (near >= (value - TIE)[:, None]).argmax(axis=1)
                better = value > best + TIE
                best[better], place[better] = value[better], first + local[better]
            low = size
            result[rows] = place
    return places
