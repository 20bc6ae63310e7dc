r"""Estimates and intervals from noisy cells, for the people at hand and for their population.

A ratio :math:`\theta = A / B` of two noisy sums has the interval of Fieller,

.. math::
   \{\theta : (A - \theta B)^2 \le z^2 (V_{AA} - 2 \theta V_{AB} + \theta^2 V_{BB} + s(\theta))\},

which is a range of a parabola. V is the noise. For the people at hand :math:`s = 0`. For their
population s is the variance of :math:`A - \theta B` by sampling: :math:`B \theta (1 - \theta)`
for a share (with V = 0 this is Wilson's interval), :math:`B \sigma^2` for a mean. Where the
parabola opens downwards, noise hides B, and the interval is the whole public range.

z is the quantile of the normal distribution or, in proportion to the part
:math:`v^2 \sum_c a_c^4 / V^2`, which is 1 for the noise of one cell, of the Laplace distribution.

Variances. Weights at points t have the mean of the values x, and the mean of :math:`(x - m)^2` plus
that of :math:`(x - t)(t' - x)`, which is between 0 and :math:`(t' - t)^2 / 4`, and a sixth of
:math:`(t' - t)^2` for values that are evenly spread. The estimate takes off a sixth; each end of
the interval supposes the worst. The mean m is that of the same noisy weights, whose noise takes its
own variance off.

Quantiles. The sum :math:`A_k` of the cells up to point :math:`t_k` is, without noise, the mean of
the distribution function F between :math:`t_k` and :math:`t_{k+1}`. F is taken to be straight
between the middles of such ranges, with :math:`A_k` there. The interval of the quantile of p
reaches from the estimate as far as :math:`|F(t) - p B| \le z \sqrt{V + s} + e`, where
:math:`s = B p (1 - p)` for the population. So it supposes values that are spread evenly near each
point. The allowance e for others is what neighbouring cells show: how many more values one of them
would hold if it were as dense as the other, by the largest of three such differences, less 1.5
standard errors of noise. Wherever values lie, all up to :math:`t_k` are in :math:`A_k`, and none
beyond :math:`t_{k+1}`. So no interval reaches below the last :math:`t_k` with
:math:`A_k - p B < -z \sqrt{V + s}`, nor above the first :math:`t_{k+1}` with
:math:`A_k - p B \ge z \sqrt{V + s}`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special
from sklearn.isotonic import isotonic_regression

from skdpsurv.descriptive.solution import Solved
from skdpsurv.dp.types import FloatArray


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


class Estimated(NamedTuple):
    """An estimate, and its intervals for these people and for the population."""

    estimate: float
    people: Ends
    population: Ends


UNKNOWN = Ends(math.nan, math.nan)
NOTHING = np.zeros((2, 2))
#: Neighbouring cells that differ by at most so many standard errors of noise count as equal.
UNEVEN = 1.5


class Level(NamedTuple):
    """A nominal coverage, and whether noise is of the Laplace distribution."""

    level: float
    laplace: bool

    def quantile(self, single: float) -> float:
        """Return z for noise of which this part is of one cell, from 0 to 1."""
        normal = float(special.ndtri(0.5 + 0.5 * self.level))
        laplace = -math.log1p(-self.level) / math.sqrt(2.0)
        part = min(max(single, 0.0), 1.0) if self.laplace else 0.0
        return max(normal + part * (laplace - normal), normal)


def _of_sum(variance: float) -> FloatArray:
    return np.diag([variance, 0.0])


def fieller(
    a: float, b: float, noise: FloatArray, sampling: FloatArray, z: float, ends: Ends
) -> Ends:
    """Return the interval of a / b within a public range.

    ``noise`` and ``sampling`` are covariances of a and b, of shape (2, 2).
    """
    whole = noise + sampling
    aa, ab, bb = (z * z * float(whole[place]) for place in ((0, 0), (0, 1), (1, 1)))
    second, first = b * b - bb, a * b - ab
    # first^2 - second (a^2 - aa), in which the largest terms cancel.
    root = ab * ab - aa * bb + b * b * aa - 2.0 * a * b * ab + a * a * bb
    if not (second > 0.0 and b > 0.0):
        return ends
    half = math.sqrt(max(root, 0.0))
    low, high = ((first + sign * half) / second for sign in (-1.0, 1.0))
    return Ends(min(max(low, ends.low), ends.high), max(min(high, ends.high), ends.low))


def ratio(a: float, b: float, ends: Ends) -> float:
    """Return a ratio within its public range; NaN if noise leaves no denominator."""
    return min(max(a / b, ends.low), ends.high) if b > 0.0 else math.nan


def single_part(solved: Solved, form: FloatArray, variance: float) -> float:
    """Return the part of a variance that resembles the noise of one cell, from 0 to 1."""
    if not variance > 0.0:
        return 0.0
    centred = form - form.mean(axis=1, keepdims=True)
    return float((centred**4).sum()) * (solved.variance / variance) ** 2


def count(solved: Solved, form: FloatArray, level: Level) -> Estimated:
    """Return a count, which has no interval for a population."""
    (n,), noise = solved.sums(form[None])
    variance = max(float(noise[0, 0]), 0.0)
    reach = level.quantile(single_part(solved, form, variance)) * math.sqrt(variance)
    return Estimated(float(n), Ends(float(n - reach), float(n + reach)), UNKNOWN)


def share(solved: Solved, form: FloatArray, whole: FloatArray, level: Level) -> Estimated:
    """Return a share: a count of the count of all who are not missing."""
    (a, b), noise = solved.sums(np.array([form, whole]))
    b, ends = float(b), Ends(0.0, 1.0)
    # From the nearest count that can be, so that an interval of rare labels is no point at 0.
    a, n = min(max(float(a), 0.0), max(b, 0.0)), max(b, 0.0)
    value = ratio(a, b, ends)
    # n theta (1 - theta), as a square in theta.
    sampling = np.array([[0.0, -0.5 * n], [-0.5 * n, -n]])
    away = form - (value if math.isfinite(value) else 0.0) * whole
    found = []
    for more in (NOTHING, sampling):
        variance = _at(noise + more, value)
        z = level.quantile(single_part(solved, away, variance))
        found.append(fieller(a, b, noise, more, z, ends))
    return Estimated(value, *found)


def _at(covariance: FloatArray, theta: float) -> float:
    """Return the variance of a - theta b, given the covariance of a and b."""
    c = covariance
    return float(c[0, 0] - 2.0 * theta * c[0, 1] + theta**2 * c[1, 1])


def _correlation(covariance: FloatArray) -> float:
    scale = math.sqrt(max(float(covariance[0, 0] * covariance[1, 1]), 0.0))
    return min(max(float(covariance[0, 1]) / scale, -1.0), 1.0) if scale > 0.0 else 0.0


class Moments:
    """Mean and standard deviation of the values of some groups, from weights at points.

    The points are in units of the range, from 0 to 1: sums of squares of raw numbers may overflow.
    """

    def __init__(self, solved: Solved, points: FloatArray, chosen: FloatArray, level: Level):
        self.solved, self.points, self.chosen = solved, points, chosen
        self.z = level.quantile(0.0)
        self.whole = self._form(np.ones(points.size))
        (self.first, self.present), self.noise = self._sums(self._form(points))
        self.value = ratio(float(self.first), float(self.present), Ends(0.0, 1.0))
        self.known = math.isfinite(self.value)
        self.own = _at(self.noise, self.value) / self.present**2 if self.known else math.nan

    def _form(self, weights: FloatArray) -> FloatArray:
        cells = np.zeros(self.solved.cells.shape[1])
        cells[: weights.size] = weights
        return np.outer(self.chosen, cells)

    def _sums(self, form: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.solved.sums(np.array([form, self.whole]))

    def _square(self, excess: FloatArray) -> tuple[float, FloatArray]:
        """Return the variance of the values, less an excess at each point, and its noise."""
        (a, b), noise = self._sums(self._form((self.points - self.value) ** 2 - excess))
        return float(a / b) + self.own, noise

    def _excesses(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the least excess, that of values that are evenly spread, and the largest."""
        gap = np.diff(self.points)
        left, right = np.append(0.0, gap), np.append(gap, 0.0)
        even = (left**3 + right**3) / (6.0 * (left + right))
        return np.zeros(self.points.size), even, np.maximum(left, right) ** 2 / 4.0

    @property
    def square(self) -> float:
        """The variance of the values, which may be negative by noise."""
        return self._square(self._excesses()[1])[0] if self.known else math.nan

    def _plausible(self) -> float:
        """Return the variance, or where noise hides it a standard error more."""
        if not self.known:
            return 0.25
        square, noise = self._square(self._excesses()[1])
        error = math.sqrt(max(_at(noise, square), 0.0)) / self.present
        return min(max(square if square > 2.0 * error else square + error, 0.0), 0.25)

    def mean(self) -> Estimated:
        """Return the mean."""
        a, b, ends = float(self.first), float(self.present), Ends(0.0, 1.0)
        sampling = max(b, 0.0) * self._plausible()
        intervals = (
            fieller(a, b, self.noise, _of_sum(spread), self.z, ends) for spread in (0.0, sampling)
        )
        return Estimated(self.value, *intervals)

    def correlations(self) -> tuple[float, float]:
        """Return correlations of mean and deviation, for these people and for the population."""
        if not self.known:
            return 0.0, 0.0
        away = self.points - self.value
        square = self._plausible()
        forms = [self._form(away), self._form(away**2 - square)]
        noise = self.solved.sums(np.array(forms))[1]
        moments = [float((self._form(away**k) * self.solved.cells).sum()) for k in (2, 3, 4)]
        spread = max(moments[2] - self.present * square**2, 0.0)
        sampling = np.array([[max(moments[0], 0.0), moments[1]], [moments[1], spread]])
        return _correlation(noise), _correlation(noise + sampling)

    def deviation(self) -> Estimated:
        """Return the standard deviation."""
        whole = Ends(0.0, 0.5)
        if not self.known:
            return Estimated(math.nan, whole, whole)
        n, (least, _, most) = self.present, self._excesses()
        fourth = float((self._form((self.points - self.value) ** 4) * self.solved.cells).sum())
        spread = max(fourth - n * self._plausible() ** 2, 0.0)
        found = []
        for sampling in (0.0, spread):
            both = []
            for excess in (most, least):
                square, noise = self._square(excess)
                more = _of_sum(2.0 * (n * self.own) ** 2 + sampling)
                both.append(fieller(square * n, n, noise, more, self.z, Ends(0.0, 0.25)))
            found.append(Ends(math.sqrt(both[0].low), math.sqrt(both[1].high)))
        value = math.sqrt(min(max(self.square, 0.0), 0.25))
        return Estimated(value, *found)


def cumulated(
    solved: Solved, points: FloatArray, chosen: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return rising numbers of values of some groups, and the edges up to which they are."""
    counts = chosen @ solved.cells[:, : points.size]
    edges = np.concatenate([points[:1], 0.5 * points[1:] + 0.5 * points[:-1], points[-1:]])
    present = max(float(counts.sum()), 0.0)
    below = isotonic_regression(np.cumsum(counts), y_min=0.0, y_max=present)
    below[-1] = present
    return np.append(0.0, below), edges


def quantile(
    solved: Solved, points: FloatArray, chosen: FloatArray, p: float, level: Level
) -> Estimated:
    """Return a quantile of the values of some groups."""
    m, n_cells = points.size, solved.cells.shape[1]
    z = level.quantile(0.0)
    counts = chosen @ solved.cells[:, :m]
    present = float(counts.sum())
    low, high = float(points[0]), float(points[-1])
    if present <= 0.0:
        return Estimated(math.nan, Ends(low, high), Ends(low, high))
    below, edges = cumulated(solved, points, chosen)
    away = below - p * present
    estimate = float(np.interp(0.0, away, edges))
    k = np.arange(m - 1)
    # The weights of the cells are 1 - p up to k, -p above, and 0 if missing.
    square = (k + 1) * (1.0 - p) ** 2 + (m - k - 1) * p**2
    total = k + 1 - p * m
    by_size = float(chosen @ solved.sizes.covariance @ chosen) / n_cells**2
    own = solved.variance * chosen.sum()
    noise = own * (square - total**2 / n_cells) + by_size * total**2
    allowance = _uneven(counts, np.diff(edges) / (high - low), own)

    def ends(sampling: float) -> Ends:
        reach = z * np.sqrt(np.maximum(noise + sampling, 0.0))
        under, over = away[1:-1] < -reach, away[1:-1] >= reach
        least = points[max(int(np.argmin(np.append(under, False))) - 1, 0)]
        most = points[::-1][max(int(np.argmin(np.append(over[::-1], False))) - 1, 0)]
        reach = np.pad(reach + allowance, 1, mode="edge")
        first = _rise(edges, away + reach, edges < estimate)
        last = _rise(edges[::-1], (reach - away)[::-1], edges[::-1] > estimate)
        return Ends(*map(float, (min(max(first, least), estimate), max(min(last, most), estimate))))

    return Estimated(estimate, ends(0.0), ends(present * p * (1.0 - p)))


def _uneven(counts: FloatArray, widths: FloatArray, variance: float) -> FloatArray:
    """Return the largest difference of neighbouring cells beyond noise, near each gap of points."""
    jump = np.abs(np.diff(counts / widths)) * np.minimum(widths[1:], widths[:-1])
    jump = np.maximum(jump - UNEVEN * math.sqrt(2.0 * variance), 0.0)
    around = np.concatenate([[0.0], jump, [0.0]])
    return np.maximum.reduce([around[:-2], jump, around[2:]])


def _rise(edges: FloatArray, height: FloatArray, before: Any) -> float:
    """Return where the height last rises to 0 before the estimate, on a line between two edges."""
    below = np.flatnonzero(before & (height < 0.0))
    if not below.size:
        return float(edges[0])
    k = below[-1]
    part = height[k] / (height[k] - height[k + 1])
    return float(edges[k] + part * (edges[k + 1] - edges[k]))
