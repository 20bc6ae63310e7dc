"""Tables of a fitted curve and its intervals, under lifelines' names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base import PrivateEstimator
from skdpsurv.data.target import checked_times
from skdpsurv.dp import refuse_masked
from skdpsurv.dp.checks import fraction
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.released_curve import CurveHook, ReleasedCurve, quietly


class Shown(NamedTuple):
    """What ``fit`` was asked to show, and how: public, and no part of a release."""

    timeline: FloatArray | None = None
    label: str | None = None
    alpha: float | None = None

    @classmethod
    def checked(cls, timeline: ArrayLike | None, label: str | None, alpha: float | None) -> Shown:
        """Return it, or raise TypeError or ValueError where it makes no sense."""
        times = None if timeline is None else np.sort(times_argument(timeline))
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be text, got {type(label).__name__}.")
        return cls(times, label, None if alpha is None else fraction("alpha", alpha))


def times_argument(times: ArrayLike) -> FloatArray:
    """Return times to evaluate a curve at, one-dimensional."""
    refuse_masked(times, "times")
    return checked_times(np.atleast_1d(np.asarray(times)), "times")


def has(hook: str) -> Callable[[Any], bool]:
    """Return the question whether a fitter's curve says something."""
    return lambda fitter: hasattr(fitter._curve_type, hook)


class CurveFrames(PrivateEstimator):
    """Base of fitted curves: their values at times, and tables of them.

    A subclass has ``survival_band`` and a parameter ``alpha``.
    """

    alpha: float
    _shown: Shown = Shown()
    _released: ReleasedCurve
    #: What its releases say.
    _curve_type: ClassVar[type[ReleasedCurve]]

    survival_band: Callable[..., pd.DataFrame]

    def _show(self, shown: Shown) -> None:
        # A fit that was asked for nothing leaves nothing, as a rebuilt one.
        self.__dict__.pop("_shown", None)
        if any(part is not None for part in shown):
            self._shown = shown

    @property
    def _curve(self) -> Any:
        check_is_fitted(self, "release_")
        return self._released

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
        return self._series(self._curve.cumulative_hazard, times, label)

    @available_if(has("hazard"))
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
        return self._series(self._curve.hazard, times, label)

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
        with np.errstate(over="ignore", under="ignore"):
            return self._curve.time_of(-math.log(fraction("p", p)))

    def _series(self, curve: CurveHook, times: ArrayLike, label: str | None) -> pd.Series:
        t = times_argument(times)
        found = quietly(curve, t, self._curve.estimates)
        return pd.Series(found, index=t, name=label or self.label)

    @property
    def timeline(self) -> FloatArray:
        """Times that the tables are of: public ones, never those of the records."""
        default, shown = self._curve.timeline, self._shown.timeline
        return default if shown is None else shown

    @property
    def label(self) -> str:
        """Name of the estimate in tables."""
        own = type(self).__name__.removeprefix("DP").removesuffix("Fitter")
        return self._shown.label or f"{self._curve_type.short_name or own}_estimate"

    @property
    def survival_function_(self) -> pd.DataFrame:
        """Probabilities to survive the times of ``timeline``."""
        return self._frame(self.survival_function_at_times)

    @property
    def cumulative_density_(self) -> pd.DataFrame:
        """Probabilities of the event up to the times of ``timeline``."""
        return self._frame(self.cumulative_density_at_times)

    @property
    def cumulative_hazard_(self) -> pd.DataFrame:
        """Cumulative hazards at the times of ``timeline``."""
        return self._frame(self.cumulative_hazard_at_times)

    @property
    def confidence_interval_survival_function_(self) -> pd.DataFrame:
        """Pointwise intervals of ``survival_function_``: for sampling and for privacy noise."""
        return self._named_ends(self._band)

    @property
    def confidence_interval_cumulative_density_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_density_``."""
        return self._named_ends(1.0 - self._band[:, ::-1])

    @property
    def confidence_interval_cumulative_hazard_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_hazard_``."""
        with np.errstate(divide="ignore"):
            return self._named_ends(np.abs(np.log(self._band[:, ::-1])))

    @property
    def confidence_interval_(self) -> pd.DataFrame:
        """Pointwise intervals of the curve that the estimator is named after."""
        found: pd.DataFrame = getattr(self, f"confidence_interval_{self._curve_type.main}_")
        return found

    @property
    def conditional_time_to_event_(self) -> pd.DataFrame:
        """Median time that is left to those who have survived the times of ``timeline``."""
        curve, times = self._curve, self.timeline
        with np.errstate(over="ignore", under="ignore"):
            ends = np.array([curve.time_of(float(now) + math.log(2.0)) for now in curve.at(times)])
        name = f"{self.label} - Conditional median duration remaining to event"
        return self._table(ends - times, [name])

    @property
    def _level(self) -> float:
        alpha = self._shown.alpha
        return 1.0 - float(self.alpha if alpha is None else alpha)

    def _frame(self, curve: Callable[[FloatArray], pd.Series]) -> pd.DataFrame:
        return self._table(curve(self.timeline).to_numpy(), [self.label])

    @property
    def _band(self) -> FloatArray:
        """Lower and upper ends of survival."""
        return np.asarray(self.survival_band(self.timeline, self._level))

    def _named_ends(self, found: FloatArray) -> pd.DataFrame:
        level = f"{self._level:.12g}"  # 0.95, as 1 - 0.05 is
        names = [f"{self.label}_lower_{level}", f"{self.label}_upper_{level}"]
        return self._table(found, names)

    def _table(self, values: FloatArray, names: list[str]) -> pd.DataFrame:
        return pd.DataFrame(values, pd.Index(self.timeline, name="timeline"), names)
