r"""Losses and weighted gradients without a loop over intervals: a separable expansion.

A record's predictor in interval s is :math:`a_s + b_i`. Wherever the survival loss splits into
functions of s times functions of i,

.. math:: \varphi(a_s + b_i) = \sum_j v_{js} T_j(b_i), \qquad
          \varphi'(a_s + b_i) = \sum_j d_{js} T_j(b_i),

sums over a record's intervals need the cumulative sums of :math:`v_{js}` and :math:`d_{js}` alone,
and sums over the records at risk need those of :math:`w_i T_j(b_i)` by exit: a dozen terms per
record, whatever the number of intervals. Two such expansions are used:

- powers :math:`T_j(b) = e^{jb}` where the slope is a polynomial in :math:`u = e^\eta`, up to some
  largest hazard (:math:`\sum_j c_j u^j` integrates to :math:`\sum_j c_j u^j / j`);
- Chebyshev polynomials on :math:`|b| \le B` elsewhere. With the loss analytic within
  :math:`\pm i\sigma` of the real line, degree m leaves an error of order :math:`\rho^{-m}`,
  :math:`\rho = \sigma/B + \sqrt{1 + \sigma^2/B^2}` (Trefethen 2013, theorem 8.2).

Exact derivatives use the powers too (:mod:`~skdpsurv.likelihoods.hazard_series`).

Exact derivatives without a loop over intervals, where hazards are small.

The powers of :mod:`~skdpsurv.likelihoods.hazard_series`, a cacheful of records at a time. The
polynomials (:class:`~skdpsurv.likelihoods.links.Series`) give slopes to rounding, so that this is a
faster way to the same gradient, and curvatures to some 1e-6; records with a larger hazard go the
long way. Unlike there, records are added up in short pieces, as a certified gradient needs.

Gradients without a loop over intervals where the slope is no series in exp(eta): probit.

Records' predictors b are cut into tiles of length 1/2. The polynomial through Chebyshev's nodes
:math:`x_l` of a tile is the slope to rounding there, and splits into functions of s times functions
of i, as in :mod:`~skdpsurv.likelihoods.hazard_series`:

.. math:: \varphi'(a_s + b_i) = \sum_l \varphi'(a_s + x_l)\,L_l(b_i), \qquad
          L_l(b) = \prod_{j \ne l} \frac{b - x_j}{x_l - x_j}.

That is used where predictors are at most 0 and slopes at the tile's upper end add up, over the
intervals survived, to no more than the cap: errors relative to them are relative to the largest
gradient then (docs/proofs/rounding). Other records go the long way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from skdpsurv.dp.checks import CHUNK_ELEMENTS, row_pieces
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.hazard_kernel import Sums, sums_by_level
from skdpsurv.likelihoods.links import Link, Series

#: Error of sums that are meant to be exact, relative to the largest that |b| <= B allows.
FULL = 1e-15
#: Error from which on a link's rough series will do.
ROUGH = 1e-8
#: Up to here counting into cells is faster than adding up runs of equal exits.
FEW_RECORDS = 1024
#: The most Chebyshev polynomials that are worth their while, and the largest B.
MOST_TERMS, LARGEST_REACH = 256, 1e3


@dataclass(frozen=True)
class Expansion:
    """The separable form at one baseline and one set of records.

    Parameters
    ----------
    records : ndarray of shape (n_terms, n)
        T_j(b_i).
    slope : ndarray of shape (n_terms, n_intervals)
        d_js.
    value : ndarray of shape (n_terms, n_intervals) or None
        v_js; None for d_js / j, as powers have it.
    """

    records: FloatArray
    slope: FloatArray
    value: FloatArray | None = None

    def survived(self, k: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses and slopes of the first k_i intervals, summed for each record."""
        slopes = self.records * up_to(self.slope).take(k, axis=1)
        ones = np.ones(slopes.shape[0])
        if self.value is None:
            return (1.0 / np.cumsum(ones)) @ slopes, ones @ slopes
        return ones @ (self.records * up_to(self.value).take(k, axis=1)), ones @ slopes

    def by_interval(self, weights: FloatArray, k: IntArray) -> FloatArray:
        """Return, for each interval, the weighted slopes of the records that survived it."""
        n_terms, q = self.slope.shape
        weighted = self.records * weights
        mass = np.zeros((n_terms, q + 1))
        if k.size <= FEW_RECORDS:
            cells = (k + (q + 1) * np.arange(n_terms)[:, None]).ravel()
            mass[:] = np.bincount(cells, weighted.ravel(), mass.size).reshape(mass.shape)
        else:
            starts = np.flatnonzero(np.diff(k, prepend=-1))  # k is ascending
            mass[:, k[starts]] = np.add.reduceat(weighted, starts, axis=1)
        return over_at_risk(self.slope, mass)


def up_to(terms: FloatArray) -> FloatArray:
    """Return the sums over s <= k, for k = 0..q, of terms of shape (..., q)."""
    sums = np.zeros((*terms.shape[:-1], terms.shape[-1] + 1))
    np.add.accumulate(terms, axis=-1, out=sums[..., 1:])
    return sums


def over_at_risk(terms: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the sums, by interval, over the records at risk; ``mass`` has their parts by k."""
    at_risk = np.add.accumulate(mass[:, ::-1], axis=1)[:, -2::-1]  # those with k >= s
    return np.asarray(np.einsum("js,js->s", terms, at_risk))


def powers(exponent: FloatArray, n_terms: int) -> FloatArray:
    r"""Return :math:`e^{jx}`, j = 1..n_terms, in rows.

    For a series, with top the largest :math:`a_s`, :math:`(u/\theta)^j = e^{j(a_s - \text{top})}
    e^{j(b_i + \text{top} - \log\theta)}`: both factors are at most 1 within its reach.
    """
    raised = np.empty((n_terms, exponent.size))
    raised[0] = base = np.exp(exponent)
    for j in range(1, n_terms):
        np.multiply(raised[j - 1], base, out=raised[j])
    return raised


def expand(link: Link, a: FloatArray, b: FloatArray, tolerance: float = FULL) -> Expansion | None:
    """Return the cheaper expansion that reaches an error of about ``tolerance``.

    Parameters
    ----------
    link : Link
    a : ndarray of shape (n_intervals,)
    b : ndarray of shape (n,)
    tolerance : float

    Returns
    -------
    Expansion or None
        None where neither is any good: huge coefficients, or a link that is cut off there.
    """
    top = float(a.max())
    largest = top + float(b.max(initial=-np.inf))
    series, rough = link.series, link.rough_series
    if series is not None and largest <= series.log_reach:
        n_terms = series.slope.size
        if n_terms > 1:
            # Nearly Taylor's, c_j ~ reach^j: what is cut off is of order u^n_terms.
            n_terms = min(n_terms, max(1, math.ceil(math.log(tolerance) / largest)))
        return _power_series(series, n_terms, a, b, top)
    if rough is not None and tolerance >= ROUGH and largest <= rough.log_reach:
        return _power_series(rough, rough.slope.size, a, b, top)
    # B is the records' own: nothing but the last digits depends on it.
    return _chebyshev(link, a, b, float(np.abs(b).max(initial=0.0)), tolerance)


def _power_series(
    series: Series, n_terms: int, a: FloatArray, b: FloatArray, top: float
) -> Expansion:
    slope = powers(a - top, n_terms) * series.slope[:n_terms, None]
    return Expansion(powers(b + (top - series.log_reach), n_terms), slope)


def _chebyshev(
    link: Link, a: FloatArray, b: FloatArray, reach: float, tolerance: float
) -> Expansion | None:
    reach = max(reach, 1e-3)
    if link.strip == 0.0 or not reach <= LARGEST_REACH:
        return None
    ratio = link.strip / reach
    rate = ratio + math.hypot(ratio, 1.0)
    n_terms = math.ceil(-math.log(tolerance) / math.log(rate)) + 4
    if n_terms > MOST_TERMS:
        return None
    nodes, transform = _transform(n_terms)
    curve = link.survival(a[:, None] + reach * nodes)
    records = np.empty((n_terms, b.size))
    records[0] = 1.0
    np.divide(b, reach, out=records[1])
    twice = 2.0 * records[1]
    for j in range(2, n_terms):
        np.multiply(twice, records[j - 1], out=records[j])
        records[j] -= records[j - 2]
    return Expansion(records, transform @ curve.slope.T, transform @ curve.value.T)


@cache
def _transform(n_terms: int) -> tuple[FloatArray, FloatArray]:
    """Return Chebyshev's nodes, and the map from values there to coefficients."""
    angle = np.pi * (np.arange(n_terms) + 0.5) / n_terms
    transform = np.cos(np.outer(np.arange(n_terms), angle)) * (2.0 / n_terms)
    transform[0] /= 2.0
    return np.cos(angle), transform


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
    """Return (..., n_terms, n) as (..., n, n_terms), a record's terms side by side in memory."""
    return np.ascontiguousarray(np.swapaxes(terms, -1, -2))


#: Of a tile. The proof has these numbers.
LENGTH, N_NODES = 0.5, 20
#: Nodes of tiles further out would be too near to each other, as doubles.
FARTHEST = 1e6
#: Tiles with fewer records go the long way, and so does what is below so many tiles.
LEAST_RECORDS_OF_TILES, MOST_TILES = 64, 32


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
        if left.size < LEAST_RECORDS_OF_TILES:
            return
        upper = b[left].max()
        slope, _ = link.survival_outer(a, np.array([upper]), 1)
        most = np.searchsorted(np.cumsum(slope[0]), cap, side="right")
        inside = (b[left] >= upper - LENGTH) & (k[left] <= most)
        if np.count_nonzero(inside) >= LEAST_RECORDS_OF_TILES:
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
