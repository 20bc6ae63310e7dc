r"""The law of what Gaussian noise hides: one vector, or all the noisy gradients of a descent.

Of neighbours D, D' let the noisy vectors be, one after the other, :math:`v_t + \xi_t` with
:math:`\xi_t \sim N(0, \sigma^2 I)`, and :math:`\Delta_t = v_t(D) - v_t(D')`, which may depend on
all that came before. The log ratio of the densities of all of them together is, on D,

.. math:: L = \sum_t \frac{\langle\xi_t, \Delta_t\rangle}{\sigma^2}
        + \frac{\|\Delta_t\|^2}{2\sigma^2},

and the least delta that holds at epsilon for D against D' is :math:`\delta(\epsilon) =
E(1 - e^{\epsilon - L})_+`. Where no :math:`\Delta_t` depends on what came before, L is normal of
mean :math:`\mu^2/2` and variance :math:`\mu^2 = \sum_t\|\Delta_t\|^2/\sigma^2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from skdpsurv.audit.perturbation_law import Law
from skdpsurv.mechanisms.noisy_descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from skdpsurv.types import FloatArray

__all__ = ["Bound", "Gap", "delta_of_normal", "is_gaussian", "simulated"]

#: Points at which gradients of neighbours are compared, at these distances from the start.
N_POINTS, DISTANCES = 16, (0.01, 0.3, 1.0, 3.0, 30.0)
#: Differences that agree so far are the same.
SAME = 1e-9
#: Terms of a simulation are cut where the sum of squares is beyond this many times the usual one.
CUT = 1.1


def is_gaussian(problem: Problem) -> bool:
    """Say whether privacy rests on Gaussian noise."""
    how = problem.calibration
    return isinstance(how, DescentCalibration) or isinstance(how.output, SphericalGaussian)


def delta_of_normal(epsilon: float, mu: float) -> float:
    r"""Return the delta of two normal laws that are mu deviations apart.

    :math:`\Phi(-\epsilon/\mu + \mu/2) - e^\epsilon\Phi(-\epsilon/\mu - \mu/2)` (Balle and Wang
    2018, theorem 5), by logarithms.
    """
    if mu == 0.0:
        return 0.0
    first = float(special.log_ndtr(-epsilon / mu + 0.5 * mu))
    second = epsilon + float(special.log_ndtr(-epsilon / mu - 0.5 * mu))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


class Path(NamedTuple):
    """Sums over a path: of <noise, gap> and of ||gap||^2, in units of sigma^2."""

    product: float
    square: float


@dataclass(frozen=True)
class Gap:
    """What one record changes in what one problem's noise is added to.

    Parameters
    ----------
    one, other : Problem
        Of neighbours.
    """

    one: Problem
    other: Problem

    def at(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient at a point, and how far it is from the neighbour's."""
        gradient = _gradient(self.one, point)
        return gradient, gradient - _gradient(self.other, point)

    @property
    def mu(self) -> float | None:
        """How many deviations apart all is, wherever a descent goes; None if that depends."""
        how = self.one.calibration
        if not isinstance(how, DescentCalibration):
            minima = [Law.of_minimum(problem).minimum for problem in (self.one, self.other)]
            assert isinstance(how.output, SphericalGaussian)
            return how.output.cost(float(np.linalg.norm(minima[0] - minima[1])))
        start = self.one.center
        rng = np.random.default_rng(0)  # of points to look at, not of noise
        ways = rng.standard_normal((N_POINTS, start.size))
        gap = self.at(start)[1]
        size = float(np.linalg.norm(gap))
        for distance in DISTANCES:
            for way in ways:
                if np.linalg.norm(self.at(start + distance * way)[1] - gap) > SAME * size:
                    return None
        return how.each.cost(size) * math.sqrt(how.n_steps)

    def path(self, drift: float, rng: np.random.Generator | None) -> Path:
        """Follow a descent on the first data set whose noise has a drift along the gap.

        Without random numbers the noise is 0.
        """
        how = self.one.calibration
        assert isinstance(how, DescentCalibration)
        step, sigma = 1.0 / (how.kappa * how.n_steps), how.each.scale
        point, product, square = self.one.center, 0.0, 0.0
        for _ in range(how.n_steps):
            gradient, gap = self.at(point)
            noise = np.zeros_like(point)
            if rng is not None:
                noise = sigma * rng.standard_normal(point.size) + drift * gap
            product += float(noise @ gap) / sigma**2
            square += float(gap @ gap) / sigma**2
            point = point - step * (gradient + noise)
        return Path(product, square)


def _gradient(problem: Problem, point: FloatArray) -> FloatArray:
    def of_block(block: Any) -> FloatArray:
        return problem.likelihood.derivatives(point, block, order=1).gradient

    return problem.blocks.map_sum(of_block)


class Bound(NamedTuple):
    """A delta that was simulated: its lower bound, its estimate, and the usual mu."""

    lower: float
    estimate: float
    mu: float


def simulated(
    gaps: Sequence[Gap], epsilon: float, n_paths: int, error: float, rng: np.random.Generator
) -> Bound:
    r"""Bound delta from below by descents whose noise drifts to where it is decided.

    With noise :math:`\xi_t \sim N(\theta\Delta_t, \sigma^2 I)` in place of :math:`N(0, \sigma^2
    I)`, and :math:`A = \sum_t\|\Delta_t\|^2/\sigma^2`, the weight :math:`W = e^{-\theta(L - A/2) +
    \theta^2A/2}` makes up for the drift: :math:`\delta(\epsilon) = E[W (1 - e^{\epsilon - L})_+]`.
    Theta is such that L is about epsilon. Terms are cut at a number that is known before, which
    only makes the mean smaller; the bound of Maurer and Pontil (2009, theorem 4) is on the mean of
    cut terms, and holds with probability 1 - ``error``.
    """
    usual = sum(gap.path(0.0, None).square for gap in gaps)
    if usual == 0.0:
        return Bound(0.0, 0.0, 0.0)
    drift = max(epsilon / usual - 0.5, 0.0)
    most = math.exp(min(0.0, -drift * epsilon + 0.5 * drift * (1.0 + drift) * CUT * usual))
    if drift:  # the largest (1 - e^-x) e^(-drift x)
        most *= (drift / (1.0 + drift)) ** drift / (1.0 + drift)
    terms = np.zeros(n_paths)
    for i in range(n_paths):
        paths = [gap.path(drift, rng) for gap in gaps]
        product, square = (sum(values) for values in zip(*paths, strict=True))
        excess = product + 0.5 * square - epsilon
        if excess > 0.0:
            weight = -drift * product + 0.5 * drift**2 * square
            terms[i] = min(-math.expm1(-excess) * math.exp(min(weight, 0.0)), most)
    mean, log = float(terms.mean()), math.log(2.0 / error)
    slack = math.sqrt(2.0 * float(terms.var(ddof=1)) * log / n_paths)
    slack += 7.0 * most * log / (3.0 * (n_paths - 1))
    return Bound(max(mean - slack, 0.0), mean, math.sqrt(usual))
