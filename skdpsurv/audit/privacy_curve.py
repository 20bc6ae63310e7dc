r"""privacy_curve_audit: the delta that a pair of neighbours needs at the claimed epsilon.

Gaussian noise hides one vector, or all the noisy gradients of a descent. For neighbours D, D' let
the noisy vectors be, in order, :math:`v_t + \xi_t` with :math:`\xi_t \sim N(0, \sigma^2 I)`, and
:math:`\Delta_t = v_t(D) - v_t(D')`, which may depend on all before. The log ratio of their joint
densities is, on D,

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

from skdpsurv.audit.density_ratio import SAMPLERS, Density, is_gaussian, minimisations, minimisers
from skdpsurv.audit.subject import audited, verdict
from skdpsurv.audit.walk import planned
from skdpsurv.dp.checks import fraction, integer
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Problem

#: Points at which gradients of neighbours are compared, at these distances from the start.
N_POINTS, DISTANCES = 16, (0.01, 0.3, 1.0, 3.0, 30.0)
#: Differences that agree so far are the same.
SAME = 1e-9
#: Terms of a simulation are cut where the sum of squares is beyond this many times the usual one.
CUT = 1.1


@dataclass(frozen=True, repr=False)
class PrivacyCurveResult:
    """The delta of a pair of neighbours at the claimed epsilon.

    Parameters
    ----------
    delta : float
        Delta of the pair: exact, or a lower bound if ``confidence`` is below 1.
    claimed, epsilon : float
        Claimed delta, at this epsilon.
    mu : float
        Distance of the neighbours in standard deviations of all noise together; for a simulated
        descent, along the path without noise.
    confidence : float
        Probability, at least, with which ``delta`` does not exceed the pair's; 1 if it is exact.
    estimate : float
        Estimate of the pair's delta, which ``delta`` bounds from below; the same if it is exact.
    audited, not_audited : tuple of str
        Parts of the release that were compared, and those that were not.

    Notes
    -----
    The event behind it is that the log ratio of the densities exceeds epsilon. Another pair may
    need more.
    """

    delta: float
    claimed: float
    epsilon: float
    mu: float
    confidence: float
    estimate: float
    audited: tuple[str, ...]
    not_audited: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        # Sums over thousands of records are rounded.
        return self.delta <= self.claimed * (1.0 + 1e-6)

    def __repr__(self) -> str:
        needs = "=" if self.confidence == 1.0 else ">="
        claim = f"delta={self.claimed:.4g} at epsilon={self.epsilon:g}"
        return verdict(self, claim, f"delta {needs} {self.delta:.4g}")


def privacy_curve_audit(
    estimator: Any,
    data: tuple[Any, ...],
    neighbour: tuple[Any, ...],
    *,
    n_paths: int = 1000,
    confidence: float = 0.99,
) -> PrivacyCurveResult:
    r"""Find the delta that two neighbours need at the claimed epsilon, where noise is Gaussian.

    Parameters
    ----------
    estimator : estimator
        Not fitted, with a positive ``delta``, and ``method="noisy_gd"`` or ``"out_pert"``.
        DPDiscreteTimeSurvival without first look, recalibration and standard errors (shares of 0,
        or n * epsilon below 200); DPLogisticRegression; PrivateStackingClassifier on groups of
        columns that vote.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record.
    n_paths : int, default=1000
        Descents in either direction, where they have to be simulated.
    confidence : float in (0, 1), default=0.99
        Of the bound, where descents are simulated.

    Returns
    -------
    PrivacyCurveResult

    Raises
    ------
    TypeError, ValueError
        If the estimator releases more, or its noise is not Gaussian, or the data sets do not differ
        in exactly one record.

    See Also
    --------
    density_ratio_audit : Without a delta.
    audit_epsilon : For any estimator, by experiment.

    Notes
    -----
    **Exact.** Normal distributions that are mu deviations apart need :math:`\delta(\epsilon) =
    \Phi(-\epsilon/\mu + \mu/2) - e^\epsilon\,\Phi(-\epsilon/\mu - \mu/2)` [1]_. Output perturbation
    has mu = :math:`\|f^* - f'^*\|/\sigma`. T noisy gradients have
    :math:`\sqrt T\,\|\Delta\|/\sigma`, if the gradients of neighbours differ by the same
    :math:`\Delta` at every point, as for a flipped label with ``max_residual`` 1. They are compared
    at some 80 points. The squares of mu of several models add up.

    **Simulated.** In other pairs :math:`\Delta` depends on earlier noise. Descents are simulated
    with a drift along it (importance sampling); ``delta`` is a lower bound, in the worse direction.

    The number of gradients drawn, and their distribution, are not audited.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy:
       analytical calibration and optimal denoising", ICML 2018, arXiv 1805.06530.
    .. [2] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization",
       COLT 2009, arXiv 0907.3740.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.classification import Perturbation
    >>> from skdpsurv.audit import privacy_curve_audit
    >>> model = DPLogisticRegression(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     method=Perturbation("noisy_gd", max_residual=1.0),
    ...     classes=[0, 1],
    ... )
    >>> result = privacy_curve_audit(model, ([[1.0]], [0]), ([[1.0]], [1]))
    >>> result.passed, result.confidence
    (True, 1.0)
    """
    integer(at_least=2)("n_paths", n_paths)
    error = 1.0 - fraction("confidence", confidence)
    subject, arguments = audited(estimator, data, neighbour)
    plans = [planned(subject.seeded(None), each) for each in arguments]
    with suppressed_float_errors():
        problems = [minimisations(*each) for each in plans]
        if subject.delta == 0.0 or not all(map(is_gaussian, problems[0])):
            raise ValueError(
                "delta of the estimator must be positive, and pay for Gaussian noise: here noise "
                "is Laplace. Use density_ratio_audit, or method='noisy_gd'."
            )
        gaps = [Gap(one, other) for one, other in zip(*problems, strict=True)]
        known = [mu for gap in gaps if (mu := gap.mu) is not None]
        if len(known) == len(gaps):
            mu = math.hypot(*known)
            delta = estimate = delta_of_normal(subject.epsilon, mu)
            error = 0.0
        else:
            rng = np.random.default_rng(0)  # of an experiment; nothing is released
            both = gaps, [Gap(gap.other, gap.one) for gap in gaps]
            found = (simulated(way, subject.epsilon, n_paths, error / 2, rng) for way in both)
            delta, estimate, mu = max(found)
    stated = subject.delta, subject.epsilon
    parts = minimisers(len(gaps)), ("number of the gradients drawn", SAMPLERS)
    return PrivacyCurveResult(delta, *stated, mu, 1.0 - error, estimate, *parts)


def delta_of_normal(epsilon: float, mu: float) -> float:
    r"""Return the delta of two normal distributions that are mu deviations apart.

    :math:`\Phi(-\epsilon/\mu + \mu/2) - e^\epsilon\Phi(-\epsilon/\mu - \mu/2)` (Balle and Wang
    2018, theorem 5), by logarithms.
    """
    if mu == 0.0:
        return 0.0
    first = float(special.log_ndtr(-epsilon / mu + 0.5 * mu))
    second = epsilon + float(special.log_ndtr(-epsilon / mu - 0.5 * mu))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


@dataclass(frozen=True)
class Gap:
    """One problem of two neighbours, and the difference of its gradients."""

    one: Problem
    other: Problem

    def at(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient at a point, and its difference from the neighbour's."""
        gradients = [
            problem.blocks.map_reduce(
                lambda block, of=problem.likelihood: of.derivatives(point, block, order=1).gradient
            )
            for problem in (self.one, self.other)
        ]
        return gradients[0], gradients[0] - gradients[1]

    @property
    def mu(self) -> float | None:
        """Distance in deviations of the noise; None if it depends on the path."""
        how = self.one.calibration
        if not isinstance(how, DescentCalibration):
            minima = [Density.of(problem).minimum for problem in (self.one, self.other)]
            assert how.output is not None
            return how.output.cost(float(np.linalg.norm(minima[0] - minima[1])))
        start = self.one.center
        rng = np.random.default_rng(0)  # of points to look at, not of noise
        ways = rng.standard_normal((N_POINTS, start.size))
        gap = self.at(start)[1]
        size = float(np.linalg.norm(gap))
        points = (start + distance * way for distance in DISTANCES for way in ways)
        if any(np.linalg.norm(self.at(point)[1] - gap) > SAME * size for point in points):
            return None
        return how.each.cost(size) * math.sqrt(how.n_steps)

    def path(self, drift: float, rng: np.random.Generator | None) -> tuple[float, float]:
        """Follow a descent whose noise, or none, drifts along the gap.

        Return the sums of <noise, gap> and of ||gap||^2, in units of sigma^2.
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
        return product, square


class Bound(NamedTuple):
    """A delta that was simulated: its lower bound, its estimate, and the usual mu."""

    lower: float
    estimate: float
    mu: float


def simulated(
    gaps: Sequence[Gap], epsilon: float, n_paths: int, error: float, rng: np.random.Generator
) -> Bound:
    r"""Bound delta from below by descents with a drift (importance sampling).

    With noise :math:`\xi_t \sim N(\theta\Delta_t, \sigma^2 I)` in place of :math:`N(0, \sigma^2
    I)`, and :math:`A = \sum_t\|\Delta_t\|^2/\sigma^2`, the weight :math:`W = e^{-\theta(L - A/2) +
    \theta^2A/2}` makes up for the drift: :math:`\delta(\epsilon) = E[W (1 - e^{\epsilon - L})_+]`.
    Theta is such that L is about epsilon. Terms are cut at a number that is known before, which
    only makes the mean smaller; the bound of Maurer and Pontil (2009, theorem 4) is on the mean of
    cut terms, and holds with probability 1 - ``error``.
    """
    usual = sum(gap.path(0.0, None)[1] for gap in gaps)
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
