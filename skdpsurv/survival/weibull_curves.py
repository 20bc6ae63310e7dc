"""What follows from a released Weibull distribution: curves, percentiles, intervals, a picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base import PrivateEstimator
from skdpsurv.privacy import fraction, positive_int, refuse_masked
from skdpsurv.shape import Shape
from skdpsurv.survival.weibull_intervals import plausible_estimates
from skdpsurv.survival.weibull_plans import Estimate, Plan
from skdpsurv.target import checked_times
from skdpsurv.types import FloatArray


class WeibullCurves(PrivateEstimator):
    """Post-processing of a release, named as in lifelines; no record is needed for any of it."""

    rho_: float
    lambda_: float

    def _plan(self, shape: Shape) -> Plan:
        """Return the plan of a fit, from public parameters."""
        raise NotImplementedError

    def percentile(self, p: float) -> float:
        """Return the time by which survival has fallen to ``p``, as lifelines does.

        Parameters
        ----------
        p : float
            Probability of survival, between 0 and 1.

        Returns
        -------
        float
            In the unit of ``max_time``.
        """
        check_is_fitted(self, "rho_")
        p = fraction("p", p)
        with np.errstate(over="ignore", under="ignore"):
            return float(self.lambda_ * np.power(-math.log(p), 1.0 / self.rho_))

    def cumulative_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        r"""Return :math:`(t/\lambda)^\rho`.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t = times_argument(times)
        return pd.Series(self._cumulative_hazard(t), index=t, name=label or "Weibull_estimate")

    def survival_function_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the probability to survive each time.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        return np.exp(-self.cumulative_hazard_at_times(times, label))

    def hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        r"""Return :math:`\rho/\lambda\,(t/\lambda)^{\rho-1}`, infinite at 0 for rho below 1.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        check_is_fitted(self, "rho_")
        t = times_argument(times)
        with np.errstate(divide="ignore", over="ignore"):
            hazard = self.rho_ / self.lambda_ * (t / self.lambda_) ** (self.rho_ - 1.0)
        return pd.Series(hazard, index=t, name=label or "Weibull_estimate")

    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals for shape and scale that allow for sampling and for privacy noise.

        They are computed from the release and public parameters alone, by simulating records and
        running the same mechanism on them: no record is looked at and no budget is spent.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Simulated fits; each takes a few milliseconds, whatever the number of records. (With
            the published ladder a tenth of a second; the two baselines take as long as a fit.)

        Returns
        -------
        pandas.DataFrame
            Rows ``lambda_`` and ``rho_``, columns ``lower`` and ``upper``.

        Notes
        -----
        True if times are Weibull; docs/benchmarks/weibull has the coverage measured. How records
        were censored is only known as far as the number of events tells.
        """
        level = fraction("level", level)
        scale, shape = self._plausible(n_resamples)
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        return pd.DataFrame(
            np.quantile([scale, shape], tails, axis=1).T,
            index=["lambda_", "rho_"],
            columns=["lower", "upper"],
        )

    def __dir__(self) -> list[str]:
        # scikit-learn's own, and its HTML, look at the value of all that is listed: seconds here.
        return [name for name in object.__dir__(self) if name != "summary"]

    @property
    def summary(self) -> pd.DataFrame:
        """Estimates with 95 % intervals, as lifelines has them; see ``confidence_interval``."""
        interval = self.confidence_interval()
        return pd.DataFrame(
            {
                "coef": [self.lambda_, self.rho_],
                "coef lower 95%": interval["lower"],
                "coef upper 95%": interval["upper"],
            },
            index=interval.index,
        )

    def print_summary(self, decimals: int = 2) -> None:
        """Print the estimates, their intervals and what was promised.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        guarantee = self.guarantee_
        print(
            f"DPWeibullFitter: {guarantee.public_inputs['n_records']:,} records, "
            f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
        )
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the survival function with a 95 % band; see ``plot_weibull`` for the options.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Of :func:`skdpsurv.plotting.plot_weibull`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_weibull  # needs the extra "plot"

        return plot_weibull(self, ax=ax, **options)

    def survival_band(
        self, times: ArrayLike, level: float = 0.95, n_resamples: int = 500
    ) -> pd.DataFrame:
        """Return pointwise intervals of the survival function.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level, n_resamples
            As for ``confidence_interval``.

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = fraction("level", level), times_argument(times)
        scale, shape = self._plausible(n_resamples)
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            curves = np.exp(-np.exp(shape[:, None] * (np.log(t) - np.log(scale)[:, None])))
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        return pd.DataFrame(
            np.quantile(curves, tails, axis=0).T, index=t, columns=["lower", "upper"]
        )

    def _plausible(self, n_resamples: int) -> tuple[FloatArray, FloatArray]:
        """Scales and shapes that the release is compatible with."""
        check_is_fitted(self, "rho_")
        n_resamples = positive_int("n_resamples", n_resamples)
        release = self.release_
        max_time = release.parameters["max_time"]
        n_events = release.values.get("n_events")
        estimate = Estimate(
            self.rho_,
            math.log(self.lambda_ / max_time),
            None if n_events is None else float(np.asarray(n_events)),
        )
        n_records: Any = release.made_by.public_inputs["n_records"]
        # The release's own: parameters may have been set since.
        plan = self.from_release(release)._plan(Shape(n_records, 0))
        with np.errstate(all="ignore"):
            draws = plausible_estimates(plan, estimate, n_resamples)
        return max_time * np.exp(draws[:, 1]), np.exp(draws[:, 0])

    def _cumulative_hazard(self, times: FloatArray) -> FloatArray:
        check_is_fitted(self, "rho_")
        with np.errstate(over="ignore"):
            return np.asarray((times / self.lambda_) ** self.rho_)


def times_argument(times: ArrayLike) -> FloatArray:
    """Return times to evaluate a curve at, one-dimensional."""
    refuse_masked(times, "times")
    return checked_times(np.atleast_1d(np.asarray(times)), "times")
