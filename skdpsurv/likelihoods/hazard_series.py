r"""Exact derivatives without a loop over intervals, where hazards are small.

The powers of :mod:`~skdpsurv.likelihoods.hazard_expansion`, a cacheful of records at a time. The
polynomials (:class:`~skdpsurv.likelihoods.links.Series`) give slopes to rounding, so that this is a
faster way to the same gradient, and curvatures to some 1e-6; records with a larger hazard go the
long way. Unlike there, records are added up in short pieces, as a certified gradient needs.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.likelihoods.hazard_expansion import over_at_risk, powers, up_to
from skdpsurv.likelihoods.hazard_kernel import Sums, sums_by_level
from skdpsurv.likelihoods.links import Link
from skdpsurv.pieces import CHUNK_ELEMENTS
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Blocks with fewer records go the long way.
LEAST_RECORDS = 64


def is_small(link: Link, a: FloatArray, b: FloatArray) -> BoolArray:
    """Return which records have hazards within the series' reach in every interval.

    None in a small block: the tables would cost more than the long way.
    """
    if link.series is None or b.size < LEAST_RECORDS:
        return np.zeros(b.size, dtype=bool)
    return np.asarray(b + a.max() <= link.series.log_reach)


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
    series = link.series
    assert series is not None
    n_terms, n_bends = series.slope.size, series.curvature.size
    q, top = a.size, a.max()
    baseline = powers(a - top, n_terms)
    slope_terms = _terms_last(baseline * series.slope[:, None])
    bend_terms = _terms_last(baseline[:n_bends] * series.curvature[:, None])
    columns = np.vstack([basis.T, np.ones(q)]) if order >= 2 else np.empty((0, q))
    upto, bends = (_terms_last(up_to(t)) for t in (slope_terms.T, columns[:, None] * bend_terms.T))

    mass = np.zeros((q + 1, n_terms))  # sums of weighted powers by k
    exponent = b[rows] + (top - series.log_reach)
    k, weight = survived[rows], weights[rows]
    slope, moments = np.empty(rows.size), np.empty((len(columns), rows.size))
    step = max(1, CHUNK_ELEMENTS // n_terms)
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        here = k[part]
        raised = _terms_last(powers(exponent[part], n_terms))
        slope[part] = np.einsum("np,np->n", raised, upto.take(here, axis=0))
        if order >= 2:
            few = np.ascontiguousarray(raised[:, :n_bends])
            for moment, bend in zip(moments, bends, strict=True):
                moment[part] = np.einsum("np,np->n", few, bend.take(here, axis=0))
        raised *= weight[part, None]
        levels, by_level = sums_by_level(raised, here)
        mass[levels] += by_level

    sums.slope[rows] += weight * slope
    sums.interval_slope += over_at_risk(slope_terms.T, mass.T)
    if order >= 2:
        moments *= weight
        sums.cross[rows] += moments[:-1].T
        sums.curvature[rows] += moments[-1]
        sums.interval_curvature += over_at_risk(bend_terms.T, mass.T[:n_bends])


def _terms_last(terms: FloatArray) -> FloatArray:
    """Return (..., n_terms, n) as (..., n, n_terms), a record's terms side by side in memory.

    That decides in which order terms are added up, and with it the last digits.
    """
    return np.ascontiguousarray(np.swapaxes(terms, -1, -2))
