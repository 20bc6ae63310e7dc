r"""Links of the discrete hazard: logit, complementary log-log, probit.

A link g ties the hazard h of one interval to a linear predictor, :math:`g(h) = \eta`. A record's
loss consists of two convex functions of :math:`\eta`:

- :math:`\varphi(\eta) = -\log(1 - g^{-1}(\eta))` for each interval survived, increasing;
- :math:`\psi(\eta) = -\log g^{-1}(\eta)` for the interval of an event, decreasing.

A link also gives what the privacy proof needs: the event's largest slope and curvature, and the
curvature of :math:`\varphi` as a concave function G of its slope, :math:`\varphi'' = G(\varphi')`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from skdpsurv.dp.types import FloatArray

#: exp of a linear predictor is taken inside +-350, where its square is still a number.
ETA_LIMIT = 350.0


class Curve(NamedTuple):
    """A function of the linear predictor with its first two derivatives."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


class Series(NamedTuple):
    r"""Polynomials in :math:`u/\theta`, without a constant, for the survival slope and curvature.

    Parameters
    ----------
    limit : float
        theta; the polynomials hold for :math:`u = e^\eta \le \theta`.
    slope : ndarray
        :math:`c_1, c_2, \dots` of :math:`\varphi'`, to rounding.
    curvature : ndarray
        Coefficients of :math:`\varphi''`, no more than of ``slope``; to some 1e-6, for Newton's
        method.
    """

    limit: float
    slope: FloatArray
    curvature: FloatArray

    @property
    def log_limit(self) -> float:
        """The largest linear predictor that the polynomials hold for."""
        return math.log(self.limit)


def steepness(hazard: Curve) -> float:
    r"""Return the mean derivative of the log hazard by the predictor, :math:`\varphi' / \varphi`.

    ``hazard`` holds the cumulative hazard of each interval of a baseline. A coefficient times this
    is a log hazard ratio, in first order: near 1 for logit and cloglog on fine grids.
    """
    value = np.maximum(hazard.value, 1e-300)
    return float(np.clip(np.mean(hazard.slope / value), 1e-3, 1e3))


@dataclass(frozen=True)
class Link(ABC):
    r"""Base of links.

    Parameters
    ----------
    event_slope : float
        V, the bound on :math:`-\psi'`. Where the natural slope is unbounded (probit), the loss
        is linear with slope -V below ``event_threshold``.
    event_threshold : float
        The linear predictor at which the natural slope reaches -V; ``-inf`` if it never does.
    """

    event_slope: float = 1.0
    event_threshold: float = -np.inf

    name = ""
    #: the hazard as a release's formula writes it, for a predictor in place of {}
    formula = ""
    #: sup of psi'' over the line
    event_curvature = 0.0
    #: True if the survival slope of one interval stays below 1, so that "no cap" means H = q
    bounded_slope = False
    #: half-width of the strip around the real line in which phi, as computed, is analytic
    strip = 0.0
    #: the survival slope as a polynomial in exp(eta), where there is one
    series: ClassVar[Series | None] = None
    #: True if slopes may be computed by tiles of predictors (hazard_kernel)
    tiled = False
    #: roundings of a predictor on the way to a slope, in a survival function and at its threshold
    roundings = 1.0
    #: rough coefficients of the polynomial, for larger hazards, with errors of 1e-8
    rough_series: ClassVar[Series | None] = None

    @abstractmethod
    def predictor(self, hazard: float) -> float:
        """Return the linear predictor g(hazard) with this hazard."""

    @abstractmethod
    def survival(self, eta: FloatArray) -> Curve:
        r"""Return the loss of a survived interval: :math:`\varphi, \varphi', \varphi''`."""

    def survival_outer(
        self, a: FloatArray, b: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        r"""Return :math:`\varphi'` and, at order 2, :math:`\varphi''`, b by row, a by column."""
        _, slope, curvature = self.survival(a + b[:, None])
        return slope, curvature if order >= 2 else None

    @abstractmethod
    def _natural_event(self, eta: FloatArray) -> Curve:
        r"""Return :math:`\psi, \psi', \psi''` without a bound on the slope."""

    @abstractmethod
    def slope_inverse(self, slope: FloatArray) -> FloatArray:
        r"""Return the linear predictor at which :math:`\varphi'` equals ``slope``."""

    @abstractmethod
    def curvature_of_slope(self, slope: float) -> float:
        """Return the largest G(y) over 0 <= y <= slope."""

    def event(self, eta: FloatArray) -> Curve:
        r"""Return :math:`\psi, \psi', \psi''`, linear at slope -V below the threshold."""
        if not np.isfinite(self.event_threshold):
            return self._natural_event(eta)
        curve = self._natural_event(np.maximum(eta, self.event_threshold))
        below = eta < self.event_threshold
        gap = np.where(below, self.event_threshold - eta, 0.0)
        return Curve(
            curve.value + self.event_slope * gap,
            np.where(below, -self.event_slope, curve.slope),
            np.where(below, 0.0, curve.curvature),
        )

    def event_slopes(self, eta: FloatArray, order: int) -> tuple[FloatArray, FloatArray | None]:
        r"""Return :math:`\psi'` and, at order 2, :math:`\psi''`."""
        _, slope, curvature = self.event(eta)
        return slope, curvature if order >= 2 else None

    def bounded_at(self, hazard: float) -> Link:
        """Return the link whose event slope is bounded by its value at a public hazard."""
        return self


class Symmetric(Link):
    r"""A link symmetric about 0: :math:`\psi(\eta) = \varphi(-\eta)`."""

    def _natural_event(self, eta: FloatArray) -> Curve:
        value, slope, curvature = self.survival(-eta)
        return Curve(value, -slope, curvature)


def _logit_series(limit: float, degree: int) -> Series:
    r"""Return :math:`u/(1 + u)` and :math:`u/(1 + u)^2` on [0, limit] as u times interpolants.

    On [0, 1/4] the pole at -1 is 9 half-widths from the middle: with :math:`\rho = 9 + \sqrt{80}` a
    Chebyshev interpolant of degree m is off by about :math:`\rho^{-m-1}` (Trefethen 2013, theorem
    8.2): below 1e-17 at degree 13, and some 1e-6 at degree 5. On [0, 1] it is 3 half-widths, and
    1e-8 takes degree 10; many more terms would lose in rounding what they gain.
    """

    def coefficients(power: int, degree: int) -> FloatArray:
        interpolant = np.polynomial.Chebyshev.interpolate(
            lambda v: (1.0 + limit * v) ** -power, degree, domain=[0.0, 1.0]
        )
        plain = interpolant.convert(kind=np.polynomial.Polynomial, domain=[-1.0, 1.0])
        return limit * np.asarray(plain.coef, dtype=np.float64)

    return Series(limit, coefficients(1, degree), coefficients(2, 5))


@dataclass(frozen=True)
class Logit(Symmetric):
    r"""Proportional odds: :math:`\varphi = \log(1 + e^\eta)`, :math:`\psi(\eta) = \varphi(-\eta)`.

    Slopes lie in (0, 1) and :math:`G(y) = y(1 - y) \le 1/4`.
    """

    name = "logit"
    formula = "expit({})"
    strip = np.pi
    event_curvature = 0.25
    bounded_slope = True
    series = _logit_series(0.25, 13)
    rough_series = _logit_series(1.0, 10)

    def predictor(self, hazard: float) -> float:
        return float(special.logit(hazard))

    def survival(self, eta: FloatArray) -> Curve:
        p = special.expit(eta)
        return Curve(np.logaddexp(0.0, eta), p, p * special.expit(-eta))

    def survival_outer(
        self, a: FloatArray, b: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        # u/(1 + u) with u = exp(a) exp(b) needs no exponential for every record and interval.
        if max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)) > ETA_LIMIT:
            return super().survival_outer(a, b, order)
        slope = np.dot(np.exp(b)[:, None], np.exp(a)[None, :])  # faster than multiply.outer
        odds = slope + 1.0
        slope /= odds
        return slope, np.divide(slope, odds, out=odds) if order >= 2 else None

    def event_slopes(self, eta: FloatArray, order: int) -> tuple[FloatArray, FloatArray | None]:
        slope, curvature = self.survival_outer(np.zeros(1), -eta, order)
        return -slope[:, 0], None if curvature is None else curvature[:, 0]

    def slope_inverse(self, slope: FloatArray) -> FloatArray:
        return np.asarray(special.logit(slope))

    def curvature_of_slope(self, slope: float) -> float:
        y = min(slope, 0.5)
        return y * (1.0 - y)


@dataclass(frozen=True)
class CLogLog(Link):
    r"""Proportional hazards, as in Cox regression: :math:`\varphi = e^\eta`.

    :math:`\psi = -\log(1 - e^{-u})` with :math:`u = e^\eta`, slope :math:`-u/(e^u - 1)` in (-1, 0),
    curvature below 0.4128; :math:`G(y) = y`.
    """

    name = "cloglog"
    formula = "1 - exp(-exp({}))"
    event_curvature = 0.4128
    series = Series(np.exp(ETA_LIMIT), *2 * (np.array([np.exp(ETA_LIMIT)]),))

    def predictor(self, hazard: float) -> float:
        return float(np.log(-np.log1p(-hazard)))

    def survival(self, eta: FloatArray) -> Curve:
        u = np.exp(np.minimum(eta, ETA_LIMIT))
        return Curve(u, u, u.copy())

    def _natural_event(self, eta: FloatArray) -> Curve:
        u = np.exp(np.clip(eta, -ETA_LIMIT, ETA_LIMIT))
        miss = np.exp(-u)
        hazard = -np.expm1(-u)
        return Curve(
            np.where(eta < -ETA_LIMIT, -eta, -np.log(hazard)),
            -u * miss / hazard,
            u * miss * (u - hazard) / hazard**2,
        )

    def slope_inverse(self, slope: FloatArray) -> FloatArray:
        return np.log(slope)

    def curvature_of_slope(self, slope: float) -> float:
        return slope


@dataclass(frozen=True)
class Probit(Symmetric):
    r"""Normal threshold: :math:`\varphi = -\log\Phi(-\eta)`, :math:`\psi(\eta) = \varphi(-\eta)`.

    The slope is the inverse Mills ratio :math:`\lambda(\eta) = \phi(\eta)/\Phi(-\eta)`, unbounded,
    with :math:`\lambda' = \lambda(\lambda - \eta)` in (0, 1). The event loss needs a bound V, taken
    at a public hazard (:meth:`bounded_at`); survival slopes are of the order V times the hazard.
    """

    name = "probit"
    formula = "normal_cdf({})"
    event_curvature = 1.0
    tiled = True
    roundings = 4.0
    strip = 2.8  # the zeros of Phi(-eta) nearest to the real line: -1.92 +- 2.82i

    def predictor(self, hazard: float) -> float:
        return float(special.ndtri(hazard))

    def survival(self, eta: FloatArray) -> Curve:
        slope = inverse_mills(eta)
        curvature = np.clip(slope * (slope - eta), 0.0, 1.0)
        return Curve(-special.log_ndtr(-eta), slope, curvature)

    def survival_outer(
        self, a: FloatArray, b: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        # Without the losses, which take longer than the rest; the same numbers.
        eta = a + b[:, None]
        slope = inverse_mills(eta)
        return slope, np.clip(slope * (slope - eta), 0.0, 1.0) if order >= 2 else None

    def slope_inverse(self, slope: FloatArray) -> FloatArray:
        # Bisection until no double is between: lambda is increasing, lambda(x) > x, and lambda(-38)
        # is below every normal number.
        low, high = np.full(slope.shape, -38.0), np.maximum(slope, 1.0)
        for _ in range(100):
            middle = 0.5 * (low + high)
            if ((middle == low) | (middle == high)).all():
                break
            above = inverse_mills(middle) > slope
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return low

    def curvature_of_slope(self, slope: float) -> float:
        # G is increasing, as the inverse Mills ratio is convex (Sampford 1953). A relative error r
        # of the ratio moves its inverse by r / gap, and G by a part r / gap^2.
        if slope > 1e3:  # 1 - 1/slope^2 and more: the difference below has lost its digits
            return 1.0
        gap = slope - float(self.slope_inverse(np.array([slope]))[0])
        room = 4.0 * self.roundings * np.finfo(float).eps * (1.0 + gap**-2)
        return min(slope * gap * (1.0 + room), 1.0)

    def bounded_at(self, hazard: float) -> Link:
        eta = self.predictor(hazard)
        return Probit(event_slope=float(inverse_mills(np.array(-eta))), event_threshold=eta)


def inverse_mills(eta: FloatArray) -> FloatArray:
    r"""Return :math:`\phi(\eta)/\Phi(-\eta)`, accurate in both tails."""
    return np.asarray(np.sqrt(2.0 / np.pi) / special.erfcx(eta / np.sqrt(2.0)))


LOGIT = Logit()

LINKS: dict[str, Link] = {link.name: link for link in (LOGIT, CLogLog(), Probit())}
