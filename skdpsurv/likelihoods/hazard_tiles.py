r"""Gradients without a loop over intervals where the slope is no series in exp(eta): probit.

Records' predictors b are cut into tiles of length 1/2. The polynomial through Chebyshev's nodes
:math:`x_l` of a tile is the slope to rounding there, and splits into functions of s times functions
of i, as in :mod:`~skdpsurv.likelihoods.hazard_expansion`:

.. math:: \varphi'(a_s + b_i) = \sum_l \varphi'(a_s + x_l)\,L_l(b_i), \qquad
          L_l(b) = \prod_{j \ne l} \frac{b - x_j}{x_l - x_j}.

That is used where predictors are at most 0 and slopes at the tile's upper end add up, over the
intervals survived, to no more than the cap: errors relative to them are relative to the largest
gradient then (docs/proofs/rounding). Other records go the long way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skdpsurv.likelihoods.hazard_expansion import over_at_risk, up_to
from skdpsurv.likelihoods.hazard_kernel import Sums, sums_by_level
from skdpsurv.likelihoods.links import Link
from skdpsurv.pieces import row_pieces
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Of a tile. The proof has these numbers.
LENGTH, N_NODES = 0.5, 20
#: Nodes of tiles further out would be too near to each other, as doubles.
FARTHEST = 1e6
#: Tiles with fewer records go the long way, and so does what is below so many tiles.
LEAST_RECORDS, MOST_TILES = 64, 32


def tiles(
    link: Link, a: FloatArray, b: FloatArray, k: IntArray, cap: float, chosen: BoolArray
) -> Iterator[tuple[float, IntArray]]:
    """Yield the upper end of each tile, and the records in it, ascending.

    Parameters
    ----------
    link : Link
    a : ndarray of shape (n_intervals,)
    b : ndarray of shape (n,)
    k : ndarray of int of shape (n,)
        Intervals survived.
    cap : float
        VH.
    chosen : ndarray of bool of shape (n,)
        The records below their knee.
    """
    left = np.flatnonzero(chosen & (b <= min(-a.max(), FARTHEST)) & (b >= -FARTHEST))
    for _ in range(MOST_TILES):
        if left.size < LEAST_RECORDS:
            return
        upper = b[left].max()
        slope, _ = link.survival_outer(a, np.array([upper]), 1)
        most = np.searchsorted(np.cumsum(slope[0]), cap, side="right")
        inside = (b[left] >= upper - LENGTH) & (k[left] <= most)
        if np.count_nonzero(inside) >= LEAST_RECORDS:
            yield float(upper), left[inside]
            left = left[~inside]
        else:
            left = left[b[left] < upper - LENGTH / 8.0]


def add_tile(
    sums: Sums,
    link: Link,
    a: FloatArray,
    b: FloatArray,
    weights: FloatArray,
    rows: IntArray,
    survived: IntArray,
    upper: float,
) -> None:
    """Add the intervals survived by the records ``rows`` of a tile, ascending in ``survived``."""
    angles = np.pi * (np.arange(N_NODES) + 0.5) / N_NODES
    nodes = upper - 0.5 * LENGTH * (1.0 - np.cos(angles))
    terms, _ = link.survival_outer(a, nodes, 1)
    upto = np.ascontiguousarray(up_to(terms).T)
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 1.0)
    scale = 1.0 / gaps.prod(axis=1)

    mass = np.zeros((a.size + 1, N_NODES))  # sums of weighted parts by k
    b, k, weight = b[rows], survived[rows], weights[rows]
    slope = np.empty(rows.size)
    for part in row_pieces(rows.size, N_NODES):
        here = k[part]
        parts = _lagrange(b[part], nodes, scale)
        slope[part] = np.einsum("np,np->n", parts, upto.take(here, axis=0))
        parts *= weight[part, None]
        levels, by_level = sums_by_level(parts, here)
        mass[levels] += by_level
    sums.slope[rows] += weight * slope
    sums.interval_slope += over_at_risk(terms, mass.T)


def _lagrange(b: FloatArray, nodes: FloatArray, scale: FloatArray) -> FloatArray:
    """Return L of shape (n, n_nodes), by products from either side."""
    gaps = b - nodes[:, None]
    parts = np.empty_like(gaps)
    parts[0] = 1.0
    np.multiply.accumulate(gaps[:-1], axis=0, out=parts[1:])
    after = np.multiply.accumulate(gaps[:0:-1], axis=0)[::-1]
    parts[:-1] *= after
    parts *= scale[:, None]
    return np.ascontiguousarray(parts.T)
