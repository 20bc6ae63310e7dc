r"""Estimates and intervals from noisy cells, for the people at hand and for their population.

A ratio :math:`\theta = A / B` of two noisy sums has the interval of Fieller, with z of the normal
distribution,

.. math::
   \{\theta : (A - \theta B)^2 \le z^2 (V_{AA} - 2 \theta V_{AB} + \theta^2 V_{BB} + s(\theta))\},

which is a range of a parabola. V is the noise. For the people at hand :math:`s = 0`. For their
population s is the variance of :math:`A - \theta B` by sampling: :math:`B \theta (1 - \theta)`
for a share (with V = 0 this is Wilson's interval), :math:`B \sigma^2` for a mean. Where the
parabola opens downwards, noise hides B, and the interval is the whole public range.

Quantiles. With :math:`A_k` the sum of the cells up to point :math:`t_k`, all values up to
:math:`t_k` are in it, and none beyond :math:`t_{k+1}`. So the quantile of p is above :math:`t_k` if
:math:`A_k < p B` without noise, and at most :math:`t_{k+1}` if :math:`A_k \ge p B`. The interval
ends at the last :math:`t_k` with :math:`A_k - p B < -z \sqrt{V + s}`, and at the first
:math:`t_{k+1}` with :math:`A_k - p B \ge z \sqrt{V + s}`, where :math:`s = B p (1 - p)` for the
population. It holds wherever values lie between points, so that it covers more than its level
where points are far apart beside the noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from skdpsurv.descriptive.solution import Solved
from skdpsurv.dp.types import FloatArray

#: Variance of (x - t) (t' - x) for x that is spread evenly between points 1 apart.
EVEN = 1.0 / 180.0


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
    root = max(root, 0.0)
    half = math.sqrt(root)
    low, high = ((first + sign * half) / second for sign in (-1.0, 1.0))
    return Ends(min(max(low, ends.low), ends.high), max(min(high, ends.high), ends.low))


def share(sums: FloatArray, noise: FloatArray, z: float) -> Estimated:
    """Return a share from a count and the count of all who are not missing."""
    a, b = map(float, sums)
    whole, n = Ends(0.0, 1.0), max(b, 0.0)
    # n theta (1 - theta), as a square in theta.
    sampling = np.array([[0.0, -0.5 * n], [-0.5 * n, -n]])
    people, population = (fieller(a, b, noise, s, z, whole) for s in (NOTHING, sampling))
    return Estimated(_ratio(a, b, whole), people, population)


def _ratio(a: float, b: float, ends: Ends) -> float:
    return min(max(a / b, ends.low), ends.high) if b > 0.0 else math.nan


class Moments:
    """Mean and standard deviation of the values of some groups, from weights at points."""

    def __init__(self, solved: Solved, points: FloatArray, chosen: FloatArray, z: float) -> None:
        self.solved, self.points, self.chosen, self.z = solved, points, chosen, z
        self.width = float(points[-1] - points[0])
        self.centre = points[0] + 0.5 * self.width
        present = self._form(np.ones(points.size))
        (self.first, self.present), self.noise = self._sums(self._form(points), present)
        self.mean_value = _ratio(self.first, self.present, Ends(points[0], points[-1]))
        self.square, self._square_noise = self._second()

    def _form(self, weights: FloatArray) -> FloatArray:
        cells = np.zeros(self.solved.cells.shape[1])
        cells[: weights.size] = weights
        return np.outer(self.chosen, cells)

    def _sums(self, *forms: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.solved.sums(np.array(forms))

    def _second(self) -> tuple[float, FloatArray]:
        """Return the variance of the values, and the noise of its parts."""
        if not math.isfinite(self.mean_value):
            return math.nan, np.full((2, 2), math.nan)
        gap = np.diff(self.points)
        # Values between two points have (x - t) (t' - x) less than what the points have.
        left, right = np.append(0.0, gap), np.append(gap, 0.0)
        excess = (left**3 + right**3) / (6.0 * (left + right))
        squares = (self.points - self.mean_value) ** 2 - excess
        both = self._form(squares), self._form(np.ones(self.points.size))
        (a, b), noise = self._sums(*both)
        # Noise on the mean adds its own square.
        own = self._variance_of_mean()
        return a / b - own, noise

    def _variance_of_mean(self) -> float:
        n, mean = self.present, self.mean_value
        v = self.noise
        return float(v[0, 0] - 2.0 * mean * v[0, 1] + mean**2 * v[1, 1]) / n**2

    @property
    def deviation_value(self) -> float:
        return math.sqrt(min(max(self.square, 0.0), 0.25 * self.width**2))

    def centred(self) -> FloatArray:
        """Return the weights of the cells in the sum of differences from the mean."""
        return self._form(self.points - self.mean_value)

    def variance_of_square(self) -> float:
        """Return the variance of the noise on the variance of the values."""
        v, square = self._square_noise, self.square
        noise = float(v[0, 0] - 2.0 * square * v[0, 1] + square**2 * v[1, 1]) / self.present**2
        return noise + 2.0 * self._variance_of_mean() ** 2

    def mean(self) -> Estimated:
        """Return the mean."""
        ends = Ends(float(self.points[0]), float(self.points[-1]))
        a, b = float(self.first), float(self.present)
        sampling = max(b, 0.0) * self.deviation_value**2 if b > 0.0 else 0.0
        intervals = (
            fieller(a, b, self.noise, _of_sum(spread), self.z, ends) for spread in (0.0, sampling)
        )
        return Estimated(self.mean_value, *intervals)

    def deviation(self) -> Estimated:
        """Return the standard deviation."""
        most = 0.25 * self.width**2
        if not math.isfinite(self.mean_value):
            return Estimated(math.nan, Ends(0.0, math.sqrt(most)), Ends(0.0, math.sqrt(most)))
        n = self.present
        gap = float(np.max(np.diff(self.points)))
        fourth = float((self._form((self.points - self.mean_value) ** 4) * self.solved.cells).sum())
        own = self._variance_of_mean()
        # Places between points are unknown, and all values may have the same.
        extra = n**2 * (EVEN * gap**4 + 2.0 * own**2)
        found = []
        for sampling in (0.0, max(fourth - n * self.square**2, 0.0)):
            spread = _of_sum(extra + sampling)
            ends = fieller(self.square * n, n, self._square_noise, spread, self.z, Ends(0.0, most))
            found.append(Ends(*map(math.sqrt, ends)))
        return Estimated(self.deviation_value, *found)


def quartile(
    solved: Solved, points: FloatArray, chosen: FloatArray, p: float, z: float
) -> Estimated:
    """Return a quantile of the values of some groups."""
    m, n_cells = points.size, solved.cells.shape[1]
    counts = chosen @ solved.cells[:, :m]
    edges = np.concatenate([points[:1], 0.5 * points[1:] + 0.5 * points[:-1], points[-1:]])
    present = float(counts.sum())
    low, high = float(points[0]), float(points[-1])
    if present <= 0.0:
        return Estimated(math.nan, Ends(low, high), Ends(low, high))
    below = isotonic_regression(np.cumsum(counts), y_min=0.0, y_max=present)
    below[-1] = present
    estimate = float(np.interp(p * present, np.append(0.0, below), edges))

    k = np.arange(m)
    away = np.cumsum(counts) - p * present
    # The weights of the cells are 1 - p up to k, -p above, and 0 if missing.
    square = (k + 1) * (1.0 - p) ** 2 + (m - k - 1) * p**2
    total = k + 1 - p * m
    by_size = float(chosen @ solved.sizes.covariance @ chosen) / n_cells**2
    noise = solved.variance * chosen.sum() * (square - total**2 / n_cells) + by_size * total**2

    def ends(sampling: float) -> Ends:
        reach = z * np.sqrt(np.maximum(noise + sampling, 0.0))
        first = int(np.argmin(np.append(away < -reach, False)))  # all before it are below
        last = m - int(np.argmin(np.append(away[::-1] >= reach[::-1], False)))
        ends = points[max(first - 1, 0)], points[min(last + 1, m - 1)]
        return Ends(min(float(ends[0]), estimate), max(float(ends[1]), estimate))

    return Estimated(estimate, ends(0.0), ends(present * p * (1.0 - p)))
