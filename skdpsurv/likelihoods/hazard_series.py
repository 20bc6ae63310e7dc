r"""Sums over intervals without a loop over intervals, where hazards are small.

With :math:`u = e^{a_s} e^{b_i}`, an outer product, a link whose slope is a polynomial in u,

.. math:: \varphi'(a_s + b_i) = \sum_p c_p u^p \quad (u \le \theta),

has :math:`\sum_{s \le k} \varphi'(a_s + b_i) = \sum_p c_p e^{p b_i} \sum_{s \le k} e^{p a_s}`: a
dozen terms per record, whatever the number of intervals. The polynomials
(:class:`~skdpsurv.likelihoods.links.Series`) give slopes to rounding, so that this is a faster way
to the same gradient, and curvatures to some 1e-6; records with a larger hazard go the long way.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.likelihoods.base import CHUNK_ELEMENTS
from skdpsurv.likelihoods.hazard_kernel import Sums, sums_by_level
from skdpsurv.likelihoods.links import Link
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Blocks with fewer records go the long way.
LEAST_RECORDS = 64


def is_small(link: Link, a: FloatArray, b: FloatArray) -> BoolArray:
    """Return which records have hazards within the series' reach in every interval.

    None in a small block: the tables would cost more than the long way.
    """
    if link.series is None or b.size < LEAST_RECORDS:
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
    q, top = a.size, a.max()
    reach, slope_coef, bend_coef = link.series
    n_terms, n_bends = slope_coef.size, bend_coef.size
    # (u/theta)^p = exp(p (b + top - log theta)) exp(p (a - top)): both factors at most 1.
    raised_a = _powers(np.exp(a - top), n_terms)
    slope_terms = raised_a * slope_coef
    upto = np.zeros((q + 1, n_terms))
    np.cumsum(slope_terms, axis=0, out=upto[1:])
    n_columns = basis.shape[1] + 1
    bends = np.zeros((n_columns, q + 1, n_bends))
    if order >= 2:
        bend_terms = raised_a[:, :n_bends] * bend_coef
        columns = np.vstack([basis.T, np.ones(q)])
        np.cumsum(columns[:, :, None] * bend_terms, axis=1, out=bends[:, 1:])

    mass = np.zeros((q + 1, n_terms))  # sums of weighted powers by k
    exponent = b[rows] + (top - np.log(reach))
    k, weight = survived[rows], weights[rows]
    moments = np.empty((n_columns, rows.size)) if order >= 2 else None
    slope = np.empty(rows.size)
    step = max(1, CHUNK_ELEMENTS // n_terms)
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        here = k[part]
        raised = _powers(np.exp(exponent[part]), n_terms)
        slope[part] = np.einsum("np,np->n", raised, upto.take(here, axis=0))
        if moments is not None:
            few = np.ascontiguousarray(raised[:, :n_bends])
            for moment, bend in zip(moments, bends, strict=True):
                moment[part] = np.einsum("np,np->n", few, bend.take(here, axis=0))
        raised *= weight[part, None]
        levels, by_level = sums_by_level(raised, here)
        mass[levels] += by_level

    sums.slope[rows] += weight * slope
    at_risk = np.cumsum(mass[::-1], axis=0)[::-1][1:]  # those with k >= s, for s = 1..q
    sums.interval_slope += np.einsum("sp,sp->s", slope_terms, at_risk)
    if moments is not None:
        moments *= weight
        sums.cross[rows] += moments[:-1].T
        sums.curvature[rows] += moments[-1]
        sums.interval_curvature += np.einsum("sp,sp->s", bend_terms, at_risk[:, :n_bends])


def _powers(base: FloatArray, n_powers: int) -> FloatArray:
    """Return base, its square and so on, in columns."""
    powers = np.empty((base.size, n_powers))
    powers[:, 0] = base
    for p in range(1, n_powers):
        np.multiply(powers[:, p - 1], base, out=powers[:, p])
    return powers
