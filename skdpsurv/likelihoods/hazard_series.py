r"""Sums over intervals without a loop over intervals, where hazards are small.

With :math:`u = e^{a_s} e^{b_i}`, an outer product, a link whose slope is a polynomial in u,

.. math:: \varphi'(a_s + b_i) = \sum_p c_p u^p \quad (u \le \theta),

has :math:`\sum_{s \le k} \varphi'(a_s + b_i) = \sum_p c_p e^{p b_i} \sum_{s \le k} e^{p a_s}`: a
dozen terms per record, whatever the number of intervals. Curvatures follow by :math:`\varphi'' =
u\,d\varphi'/du`. The polynomial (:attr:`~skdpsurv.likelihoods.links.Link.series`) is exact to
rounding, so this is a faster way to the same number; records with a larger hazard go the long way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpsurv.likelihoods.base import CHUNK_ELEMENTS
from skdpsurv.likelihoods.hazard_kernel import Sums
from skdpsurv.likelihoods.links import Link

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def is_small(link: Link, a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Return which records have hazards within the series' reach in every interval."""
    if link.series is None:
        return np.zeros(b.size, dtype=bool)
    return np.asarray(b + a.max() <= np.log(link.series.reach))


def add_small(
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
    assert link.series is not None
    reach, coefficients = link.series
    q, top = a.size, a.max()
    powers = np.arange(1, len(coefficients) + 1)
    # (u/theta)^p = exp(p (b + top - log theta)) exp(p (a - top)): both factors at most 1.
    slope_terms = np.exp(np.outer(a - top, powers)) * coefficients
    bend_terms = slope_terms * powers
    upto = np.zeros((q + 1, powers.size))
    np.cumsum(slope_terms, axis=0, out=upto[1:])
    columns = np.column_stack([basis, np.ones(q)])
    bends = np.zeros((columns.shape[1], q + 1, powers.size))
    if order >= 2:
        np.cumsum(columns.T[:, :, None] * bend_terms, axis=1, out=bends[:, 1:])

    mass = np.zeros((q + 1, powers.size))  # sums of weighted powers by k
    exponent = b[rows] + (top - np.log(reach))
    k, weight = survived[rows], weights[rows]
    moments = np.empty((columns.shape[1], rows.size)) if order >= 2 else None
    slope = np.empty(rows.size)
    step = max(1, CHUNK_ELEMENTS // powers.size)
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        raised = np.exp(np.outer(exponent[part], powers))
        slope[part] = np.einsum("np,np->n", raised, upto.take(k[part], axis=0))
        if moments is not None:
            for moment, bend in zip(moments, bends, strict=True):
                moment[part] = np.einsum("np,np->n", raised, bend.take(k[part], axis=0))
        raised *= weight[part, None]
        levels, first = np.unique(k[part], return_index=True)
        mass[levels] += np.add.reduceat(raised, first, axis=0)

    sums.slope[rows] += weight * slope
    at_risk = np.cumsum(mass[::-1], axis=0)[::-1][1:]  # those with k >= s, for s = 1..q
    sums.interval_slope += np.einsum("sp,sp->s", slope_terms, at_risk)
    if moments is not None:
        moments *= weight
        sums.cross[rows] += moments[:-1].T
        sums.curvature[rows] += moments[-1]
        sums.interval_curvature += np.einsum("sp,sp->s", bend_terms, at_risk)
