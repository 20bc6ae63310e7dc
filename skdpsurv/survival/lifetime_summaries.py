r"""Restricted means and percentiles of a fitted curve, with their intervals.

The mean time lived up to t is the area under the survival function, :math:`\int_0^t S(u)\,du`. It
is integrated between the knots of the curve, where that is smooth, by Gauss and Legendre's rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import fraction, number_in
from skdpsurv.types import FloatArray

__all__ = ["Interval", "LifetimeSummaries"]

#: Points in each panel, and panels of a curve without knots.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
N_PANELS = 40
N_DRAWS = 1000


class Interval(NamedTuple):
    """An estimate, and the ends of its interval."""

    estimate: float
    lower: float
    upper: float


class LifetimeSummaries:
    """Base of fitted curves: what a clinician asks of them.

    A subclass has the hooks of :class:`~skdpsurv.survival.univariate.UnivariateFitter`, and may
    say where its curve has knots, up to a time (``_knots``).
    """

    release_: Any
    percentile: Callable[[float], float]
    _estimates: Callable[[], pd.Series]
    _cumulative_hazard: Callable[[FloatArray, FloatArray], FloatArray]
    _time_of: Callable[[float], float]
    _draws: Callable[[int], FloatArray]

    def _knots(self, end: float) -> FloatArray:
        """Return where panels end; closer together at the start, where curves may be steep."""
        return np.asarray(end * np.linspace(0.0, 1.0, N_PANELS + 1) ** 2)

    def restricted_mean_survival_time(
        self, t: float | None = None, level: float = 0.95, n_resamples: int = N_DRAWS
    ) -> Interval:
        """Return the mean time lived up to t, with an interval for sampling and privacy noise.

        Parameters
        ----------
        t : float or None
            Public, in the unit of ``max_time``, and not beyond it. None: ``max_time``.
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=1000
            Curves that the interval is made of.

        Returns
        -------
        Interval
            A tuple of ``estimate``, ``lower`` and ``upper``.

        Examples
        --------
        >>> from skdpsurv import DPKaplanMeierFitter
        >>> from skdpsurv.datasets import load_flchain
        >>> y = load_flchain().y
        >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0)
        >>> mean = fitter.fit(y["futime"], y["death"]).restricted_mean_survival_time(3650)
        >>> bool(3100 < mean.lower < mean.estimate < mean.upper < 3300)
        True
        """
        level, end = fraction("level", level), self._end(t)
        estimate = float(self._mean(end, self._estimates().to_numpy()))
        if not self._has_draws:
            return Interval(estimate, math.nan, math.nan)
        return _around(estimate, self._mean(end, self._draws(n_resamples)), level)

    def percentile_interval(
        self, p: float = 0.5, level: float = 0.95, n_resamples: int = N_DRAWS
    ) -> Interval:
        """Return the time by which survival falls to p, with an interval: the median by default.

        Parameters
        ----------
        p : float, default=0.5
            Probability of survival, between 0 and 1.
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=1000
            Curves that the interval is made of.

        Returns
        -------
        Interval
            A tuple of ``estimate``, ``lower`` and ``upper``, each infinite if survival does not
            fall so far by ``max_time``.
        """
        estimate, level = self.percentile(p), fraction("level", level)
        if not self._has_draws:
            return Interval(estimate, math.nan, math.nan)
        return _around(estimate, self._percentiles(p, self._draws(n_resamples)), level)

    def percentile_after(self, p: float, times: FloatArray) -> FloatArray:
        """Return by when a share p is left of those who have survived each of some times."""
        done = self._cumulative_hazard(times, self._estimates().to_numpy())
        with np.errstate(over="ignore", under="ignore"):
            return np.array([self._time_of(float(one) - math.log(p)) for one in done])

    @property
    def _has_draws(self) -> bool:
        return hasattr(self, "_plausible")

    def _end(self, t: float | None) -> float:
        check_is_fitted(self, "release_")
        horizon = float(self.release_.parameters["max_time"])
        if t is None:
            return horizon
        number_in(0.0, horizon, closed="right", why="It is not known what comes later.")("t", t)
        return float(t)

    def _mean(self, end: float, parameters: FloatArray) -> FloatArray:
        """Return areas under curves, for parameters of shape (..., n_parameters)."""
        knots = self._knots(end)
        middle, half = (knots[1:] + knots[:-1]) / 2.0, np.diff(knots) / 2.0
        times = (middle[:, None] + half[:, None] * NODES).ravel()
        with np.errstate(over="ignore", under="ignore"):
            survival = np.exp(-self._cumulative_hazard(times, parameters))
        return np.asarray(np.minimum(survival, 1.0) @ (half[:, None] * WEIGHTS).ravel())

    def _percentiles(self, p: float, parameters: FloatArray) -> FloatArray:
        """Return times by which each of some curves has fallen to p; infinite beyond max_time."""
        knots = self._knots(self._end(None))
        target = -math.log(fraction("p", p))
        with np.errstate(over="ignore", under="ignore"):
            hazards = self._cumulative_hazard(knots, parameters)
        hazards = np.maximum.accumulate(np.minimum(hazards, 1e9), axis=-1)
        return np.array([_first(knots, one, target) for one in hazards])


def _first(knots: FloatArray, hazards: FloatArray, target: float) -> float:
    """Return when a rising curve gets to a target, between knots in proportion."""
    k = int(np.searchsorted(hazards, target))
    if k == knots.size:
        return math.inf
    if k == 0:
        return float(knots[0])
    part = (target - hazards[k - 1]) / (hazards[k] - hazards[k - 1])
    return float(knots[k - 1] + part * (knots[k] - knots[k - 1]))


def _around(estimate: float, draws: FloatArray, level: float) -> Interval:
    """Return the central part of draws, made to hold the estimate."""
    # Of infinities no interpolation.
    ordered = np.sort(draws)
    tail = (1.0 - level) / 2.0
    places = np.array([math.floor(tail * ordered.size), math.ceil((1.0 - tail) * ordered.size) - 1])
    lower, upper = ordered[np.clip(places, 0, ordered.size - 1)]
    return Interval(estimate, min(float(lower), estimate), max(float(upper), estimate))
