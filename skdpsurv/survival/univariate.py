"""A released distribution of survival times: all that follows from its cumulative hazard."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import Check, fraction, number_in, positive_int
from skdpsurv.privacy import clip_times
from skdpsurv.release import Release
from skdpsurv.release.explanation import headline
from skdpsurv.survival.curve_frames import times_argument
from skdpsurv.survival.lifetime_summaries import LifetimeSummaries
from skdpsurv.survival.univariate_records import UnivariateRecords
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["UnivariateFitter"]

#: Hook of a subclass: of times, shape (n_times,), and parameters, shape (..., n_parameters).
CurveHook = Callable[[FloatArray, FloatArray], FloatArray]
#: Times of tables, where nothing else says which.
N_TIMES = 101
#: What takes time to be looked at.
SLOW = re.compile(r"summary$|confidence_interval_|conditional_time_to_event_$")


def _has(hook: str) -> Callable[[Any], bool]:
    return lambda fitter: hasattr(fitter, hook)


class UnivariateFitter(LifetimeSummaries, UnivariateRecords):
    """Base of private distributions of survival times, which read like lifelines' fitters.

    A subclass has a parameter ``max_time``, which its release states, and ``alpha``, beside those
    of :class:`~skdpsurv.base.PrivateEstimator`; its guarantee states ``n_records`` among the public
    inputs. It says how it spends epsilon (``_plan``), what of its parameters a release states
    (``_stated``), and

    * ``_set_parameters(release)``: sets the fitted parameters from a release, and checks them;
    * ``_estimates()``: these, by name;
    * ``_cumulative_hazard(times, parameters)``: of shape (..., n_times), for times of shape
      (n_times,), and parameters as above in an array of shape (..., n_parameters).

    It may override ``_time_of(cumulative_hazard)``, the inverse, where that has a closed form. Two
    more it may say; what needs them does not exist without:

    * ``_hazard(times, parameters)``, for ``hazard_at_times`` and ``score``;
    * ``_plausible(n_resamples)``: parameters that the release is compatible with, of shape
      (n_resamples, n_parameters), for ``confidence_interval`` and ``survival_band``. They must
      allow for sampling and for privacy noise, and be computed from the release alone.

    A curve that falls in steps sets ``unique_times_``, their times, by which it is drawn.
    """

    _hazard: CurveHook
    _plausible: Callable[[int], FloatArray]

    _rules: ClassVar[dict[str, Check]] = {
        "alpha": number_in(0.0, 1.0, closed="neither", why="Intervals cover 1 - alpha.")
    }

    @abstractmethod
    def _set_parameters(self, release: Release) -> None:
        """Set the fitted parameters from a release, refusing one that makes no sense."""

    @abstractmethod
    def _estimates(self) -> pd.Series:
        """Return the fitted parameters by name."""

    @abstractmethod
    def _cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return cumulative hazards, which rise with time."""

    def _set_fitted(self, release: Release) -> None:
        self._set_parameters(release)
        self.median_survival_time_ = self.percentile(0.5)

    # --------------------------------------------------------------------------------------------
    # The curve
    # --------------------------------------------------------------------------------------------

    def predict(self, times: ArrayLike) -> Any:
        """Return the curve that the estimator is named after: here, the probability to survive.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``. After a fit on a two-dimensional X, rows of
            as many columns are taken, too, as scikit-learn's tools pass them: they all get the
            same risk score, 0, as this model has no covariates.

        Returns
        -------
        ndarray of shape (n_times,), or float
        """
        check_is_fitted(self, "release_")
        if np.ndim(times) == 2 or hasattr(times, "tocsr"):
            if self.n_features_in_ == 0:
                raise ValueError("times must be one-dimensional, got 2-D.")
            return np.zeros(self._see_rows(times))
        found = getattr(self, f"{self._predicts}_at_times")(times).to_numpy()
        return found if np.ndim(times) else float(found[0])

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

    def cumulative_density_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the probability of the event up to each time.

        Parameters
        ----------
        times, label
            As for ``survival_function_at_times``.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        return -np.expm1(-self.cumulative_hazard_at_times(times, label))

    def cumulative_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        r"""Return :math:`-\log S(t)`.

        Parameters
        ----------
        times, label
            As for ``survival_function_at_times``.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        return self._series(self._cumulative_hazard, times, label)

    @available_if(_has("_hazard"))
    def hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the hazard, the derivative of the cumulative hazard; it may be infinite at 0.

        Parameters
        ----------
        times, label
            As for ``survival_function_at_times``.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        return self._series(self._hazard, times, label)

    def percentile(self, p: float) -> float:
        """Return the first time by which survival has fallen to ``p``, as lifelines does.

        Parameters
        ----------
        p : float
            Probability of survival, between 0 and 1.

        Returns
        -------
        float
            In the unit of ``max_time``; infinite if survival does not fall so far.
        """
        check_is_fitted(self, "release_")
        with np.errstate(over="ignore", under="ignore"):
            return self._time_of(-math.log(fraction("p", p)))

    def _time_of(self, cumulative_hazard: float) -> float:
        """Return the first time by which the cumulative hazard is as large."""
        parameters = self._estimates().to_numpy()

        def has_come(bits: int) -> bool:
            time = np.array([bits]).view(np.float64)
            return bool(self._cumulative_hazard(time, parameters)[0] >= cumulative_hazard)

        # Positive doubles are ordered as the integers that their bits spell: 63 steps for all.
        end = int(np.float64(np.inf).view(np.int64))
        first = bisect_left(range(end), True, key=has_come)
        return float(np.int64(first).view(np.float64))

    def _fitted_curve(self, curve: CurveHook, times: FloatArray) -> FloatArray:
        check_is_fitted(self, "release_")
        return quietly(curve, times, self._estimates().to_numpy())

    def _series(self, curve: CurveHook, times: ArrayLike, label: str | None) -> pd.Series:
        t = times_argument(times)
        return pd.Series(self._fitted_curve(curve, t), index=t, name=label or self.label)

    def _default_timeline(self) -> FloatArray:
        """Return times that tables are of where ``fit`` was given none."""
        horizon = float(self.release_.parameters["max_time"])
        return np.linspace(0.0, horizon, N_TIMES)

    def _mean_log_likelihood(self, time: FloatArray, event: BoolArray) -> float:
        time, event = clip_times(time, event, self.release_.parameters["max_time"])
        with np.errstate(divide="ignore"):
            log_hazard = np.log(self._fitted_curve(self._hazard, time))
        survived = self._fitted_curve(self._cumulative_hazard, time)
        return float(np.mean(np.where(event, log_hazard, 0.0) - survived))

    # --------------------------------------------------------------------------------------------
    # Intervals
    # --------------------------------------------------------------------------------------------

    @available_if(_has("_plausible"))
    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals for the parameters that allow for sampling and for privacy noise.

        They are computed from the release and public parameters alone, by simulating records and
        running the same mechanism on them: no record is looked at and no budget is spent.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Simulated fits.

        Returns
        -------
        pandas.DataFrame
            A row for each parameter, columns ``lower`` and ``upper``: the central part of
            what is plausible, made to hold the estimate where it would not.
        """
        level, draws = fraction("level", level), self._draws(n_resamples)
        estimates = self._estimates()
        return interval(draws, level, estimates.to_numpy(), estimates.index)

    @available_if(_has("_plausible"))
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
        hazards = quietly(self._cumulative_hazard, t, self._draws(n_resamples))
        curve = np.exp(-self._fitted_curve(self._cumulative_hazard, t))
        return interval(np.exp(-hazards), level, curve, t)

    def _draws(self, n_resamples: int) -> FloatArray:
        check_is_fitted(self, "release_")
        return self._plausible(positive_int("n_resamples", n_resamples))

    # --------------------------------------------------------------------------------------------
    # To be looked at
    # --------------------------------------------------------------------------------------------

    def __dir__(self) -> list[str]:
        # scikit-learn's own, and its HTML, look at the value of all that is listed: seconds here.
        return [name for name in object.__dir__(self) if not SLOW.match(name)]

    @property
    def summary(self) -> pd.DataFrame:
        """Estimates, with 95 % intervals if there are any, as lifelines has them."""
        check_is_fitted(self, "release_")
        summary = pd.DataFrame({"coef": self._estimates()})
        if hasattr(self, "confidence_interval"):
            bounds = self.confidence_interval()
            summary[["coef lower 95%", "coef upper 95%"]] = bounds
        return summary

    def print_summary(self, decimals: int = 2) -> None:
        """Print the estimates, their intervals and what was promised.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        print(headline(self.release_))
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the survival function with a 95 % band; see ``plot_univariate`` for the options.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Of :func:`skdpsurv.plotting.plot_univariate`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_univariate  # needs the extra "plot"

        return plot_univariate(self, ax=ax, **options)


def stated_records(release: Release, most: int) -> int:
    """Return the number of records of the fit; intervals are made of it.

    Raises
    ------
    ValueError
        If the release states none that can be one.
    """
    numbers: list[Any] = [
        guarantee.public_inputs.get("n_records")
        for guarantee in (release.guarantee, release.made_by)
    ]
    for number in numbers:
        if type(number) is not int or not 1 <= number <= most:
            raise ValueError(
                "public_inputs of the release must hold n_records, a positive integer."
            )
    return int(numbers[-1])


def quietly(curve: CurveHook, times: FloatArray, parameters: FloatArray) -> FloatArray:
    """Return a curve where numbers may be as large, or as small, as doubles are."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.asarray(curve(times, parameters))


def interval(draws: FloatArray, level: float, estimates: FloatArray, index: Any) -> pd.DataFrame:
    """Return the central part of the draws in each column, and the estimate, if that is outside."""
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    lower, upper = np.quantile(draws, tails, axis=0)
    ends = np.column_stack([np.minimum(lower, estimates), np.maximum(upper, estimates)])
    return pd.DataFrame(ends, index=index, columns=["lower", "upper"])
