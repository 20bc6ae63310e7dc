r"""Losses and weighted gradients of hazards without a loop over intervals.

A record's predictor in interval s is :math:`a_s + b_i`. Where the survival loss splits,

.. math:: \varphi(a_s + b_i) = \sum_j v_{js} T_j(b_i), \qquad
          \varphi'(a_s + b_i) = \sum_j d_{js} T_j(b_i),

cumulative sums over intervals give a record's loss and slope by a dozen terms:

- powers :math:`T_j(b) = e^{jb}` where the slope is a polynomial :math:`\sum_j c_j u^j` in
  :math:`u = e^\eta`; it integrates to :math:`\sum_j c_j u^j / j`;
- Chebyshev polynomials on :math:`|b| \le B` elsewhere. With the loss analytic within
  :math:`\pm i\sigma` of the real line, degree m leaves an error of order :math:`\rho^{-m}`,
  :math:`\rho = \sigma/B + \sqrt{1 + \sigma^2/B^2}` (Trefethen 2013, theorem 8.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.hazard_kernel import cumulative, over_at_risk, powers
from skdpsurv.likelihoods.links import Link, Series

#: Error of sums that are meant to be exact, relative to the largest that |b| <= B allows.
FULL = 1e-15
#: Error from which on a link's rough series is accurate enough.
ROUGH = 1e-8
#: Up to this size, counting into cells is faster than adding up runs of equal exits.
FEW_RECORDS = 1024
#: Largest number of Chebyshev polynomials that is faster than sums, and the largest B.
MOST_TERMS, LARGEST_HALF_WIDTH = 256, 1e3


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
        slopes = self.records * cumulative(self.slope).take(k, axis=1)
        ones = np.ones(slopes.shape[0])
        if self.value is None:
            return (1.0 / np.cumsum(ones)) @ slopes, ones @ slopes
        return ones @ (self.records * cumulative(self.value).take(k, axis=1)), ones @ slopes

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


def expand(link: Link, a: FloatArray, b: FloatArray, tolerance: float = FULL) -> Expansion | None:
    """Return the cheaper expansion with an error of about ``tolerance``.

    None where neither works: huge coefficients, or a link that is cut off there.
    """
    top = float(a.max())
    largest = top + float(b.max(initial=-np.inf))
    series, rough = link.series, link.rough_series
    if series is not None and largest <= series.log_limit:
        n_terms = series.slope.size
        if n_terms > 1:
            # Nearly Taylor's, c_j ~ limit^j: what is cut off is of order u^n_terms.
            n_terms = min(n_terms, max(1, math.ceil(math.log(tolerance) / largest)))
        return _power_series(series, n_terms, a, b, top)
    if rough is not None and tolerance >= ROUGH and largest <= rough.log_limit:
        return _power_series(rough, rough.slope.size, a, b, top)
    # B is the records' own: nothing but the last digits depends on it.
    return _chebyshev(link, a, b, float(np.abs(b).max(initial=0.0)), tolerance)


def _power_series(
    series: Series, n_terms: int, a: FloatArray, b: FloatArray, top: float
) -> Expansion:
    slope = powers(a - top, n_terms) * series.slope[:n_terms, None]
    return Expansion(powers(b + (top - series.log_limit), n_terms), slope)


def _chebyshev(
    link: Link, a: FloatArray, b: FloatArray, half_width: float, tolerance: float
) -> Expansion | None:
    half_width = max(half_width, 1e-3)
    if link.strip == 0.0 or not half_width <= LARGEST_HALF_WIDTH:
        return None
    ratio = link.strip / half_width
    rate = ratio + math.hypot(ratio, 1.0)
    n_terms = math.ceil(-math.log(tolerance) / math.log(rate)) + 4
    if n_terms > MOST_TERMS:
        return None
    nodes, transform = _transform(n_terms)
    curve = link.survival(a[:, None] + half_width * nodes)
    records = np.empty((n_terms, b.size))
    records[0] = 1.0
    np.divide(b, half_width, out=records[1])
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
