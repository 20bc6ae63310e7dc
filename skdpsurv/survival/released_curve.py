r"""A released distribution of survival times, by its cumulative hazard, and its tables.

The mean survival time up to t is the area :math:`\int_0^t S(u)\,du` under the survival function,
by Gauss-Legendre quadrature between the knots of the curve, where that is smooth.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base import PrivateEstimator
from skdpsurv.data import PublicInputWarning
from skdpsurv.data.histories import Histories, checked_times
from skdpsurv.data.target import survival_target
from skdpsurv.dp.checks import fraction, required_horizon
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.input_errors import InputValueError, refuse_masked
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release

#: A function of times, shape (n_times,), and parameters, shape (..., n_parameters).
CurveHook = Callable[[FloatArray, FloatArray], FloatArray]
#: Default number of times of tables.
N_TIMES = 101
#: Quadrature: nodes and weights of each panel, and panels of a curve without knots.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
N_PANELS = 40


class ReleasedCurve(ABC):
    """A distribution of survival times, read from a release.

    A subclass takes a release, refuses an invalid one, and sets ``estimates``, its parameters:
    attributes of the fitted estimator by their ``names``. It has

    * ``cumulative_hazard(times, parameters)``, of shape (..., n_times);
    * perhaps ``time_of(cumulative_hazard)``, its inverse in closed form;
    * perhaps ``hazard(times, parameters)``, for ``hazard_at_times`` and ``score``;
    * perhaps ``plausible(n_resamples)``, for ``confidence_interval`` and ``survival_band``:
      parameters that are compatible with the release, of shape (n_resamples, n_parameters). They
      allow for sampling and for privacy noise, and follow from the release alone.
    """

    #: Name of the estimate in tables; "" for that of the estimator.
    short_name: ClassVar[str] = ""
    #: Name of the curve whose interval is ``confidence_interval_``.
    main: ClassVar[str] = "survival_function"
    #: Name of the attribute for the time at which survival falls below one half.
    median: ClassVar[str] = "median"
    #: Name of the curve that ``predict`` evaluates.
    predicts: ClassVar[str] = "survival_function"
    #: True to extrapolate beyond ``max_time``, with a warning; False to refuse such times.
    extrapolates: ClassVar[bool] = False
    #: Names of the estimated parameters of the curve.
    names: ClassVar[Sequence[str]] = ()

    #: Function that reads causes from a column and its name; None: there are indicators of events.
    read_causes: Any = None
    estimates: FloatArray
    hazard: CurveHook
    plausible: Callable[[int], FloatArray]

    def __init__(self, release: Release) -> None:
        self.max_time = float(release.parameters["max_time"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fitted})"

    @abstractmethod
    def cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return cumulative hazards, which rise with time."""

    @property
    def fitted(self) -> Mapping[str, Any]:
        """The estimates, by the names of the fitted attributes."""
        return dict(zip(self.names, self.estimates.tolist(), strict=True))

    @property
    def timeline(self) -> FloatArray:
        """Default times of tables."""
        return np.linspace(0.0, self.max_time, N_TIMES)

    def at(self, times: FloatArray) -> FloatArray:
        """Return the estimated cumulative hazard."""
        return without_warnings(self.cumulative_hazard, times, self.estimates)

    def time_of(self, cumulative_hazard: float) -> float:
        """Return the first time with at least this cumulative hazard."""

        def has_come(bits: int) -> bool:
            time = np.array([bits]).view(np.float64)
            return bool(self.cumulative_hazard(time, self.estimates)[0] >= cumulative_hazard)

        # Positive doubles are ordered as the integers of their bits: 63 steps.
        end = int(np.float64(np.inf).view(np.int64))
        first = bisect_left(range(end), True, key=has_come)
        return float(np.int64(first).view(np.float64))

    def reached(self, cumulative_hazard: float) -> float:
        """Return the first time with this cumulative hazard; inf without one up to max_time."""
        with np.errstate(over="ignore", under="ignore"):
            time = self.time_of(cumulative_hazard)
        return time if self.extrapolates or time <= self.max_time else math.inf

    @classmethod
    def up_to_horizon(cls, times: FloatArray, max_time: float, name: str) -> FloatArray:
        """Return times; refuse times beyond the horizon, or warn if the curve extrapolates."""
        if np.max(times[np.isfinite(times)], initial=0.0) > max_time:
            if not cls.extrapolates:
                raise InputValueError(
                    f"{name} must be at most max_time={max_time:g}: later times are unknown."
                )
            message = phrase("extrapolated", name=name, max_time=max_time)
            warnings.warn(message, PublicInputWarning, stacklevel=4)
        return times

    def knots(self, end: float) -> FloatArray:
        """Return edges of panels, closer together at the start, where curves may be steep."""
        return np.asarray(end * np.linspace(0.0, 1.0, N_PANELS + 1) ** 2)

    def mean(self, end: float, parameters: FloatArray) -> FloatArray:
        """Return areas under curves, for parameters of shape (..., n_parameters)."""
        knots = self.knots(end)
        middle, half = (knots[1:] + knots[:-1]) / 2.0, np.diff(knots) / 2.0
        times = (middle[:, None] + half[:, None] * NODES).ravel()
        with np.errstate(over="ignore", under="ignore"):
            survival = np.exp(-self.cumulative_hazard(times, parameters))
        return np.asarray(np.minimum(survival, 1.0) @ (half[:, None] * WEIGHTS).ravel())

    def percentiles(self, p: float, parameters: FloatArray) -> FloatArray:
        """Return times by which each of some curves has fallen to p; infinite beyond max_time."""
        knots = self.knots(self.max_time)
        with np.errstate(over="ignore", under="ignore"):
            hazards = self.cumulative_hazard(knots, parameters)
        hazards = np.maximum.accumulate(np.minimum(hazards, 1e9), axis=-1)
        return np.array([crossing(knots, row, -math.log(p)) for row in hazards])

    def _draw_rows(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw groups and entries of made-up people: here there are none."""
        return pd.DataFrame(index=range(n_rows))

    def _draw_outcomes(
        self, X: pd.DataFrame, censored: FloatArray, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw outcomes of made-up people, by the times at which a unit exponential is reached."""
        time = np.array([self.reached(one) for one in rng.exponential(size=len(X)).tolist()])
        last = np.minimum(censored, self.max_time)
        return survival_target(time <= last, np.minimum(time, last))

    def mean_log_likelihood(self, histories: Histories) -> float:
        """Return the mean log-likelihood of histories that are not clipped yet."""
        seen = histories.clipped(self.max_time)
        with np.errstate(divide="ignore"):
            log_hazard = np.log(without_warnings(self.hazard, seen.exit, self.estimates))
        return float(np.mean(np.where(seen.event, log_hazard, 0.0) - self.at(seen.exit)))


def crossing(knots: FloatArray, hazards: FloatArray, target: float) -> float:
    """Return the time at which a rising curve reaches a target, linear between knots."""
    k = int(np.searchsorted(hazards, target))
    if k == knots.size:
        return math.inf
    if k == 0:
        return float(knots[0])
    share = (target - hazards[k - 1]) / (hazards[k] - hazards[k - 1])
    return float(knots[k - 1] + share * (knots[k] - knots[k - 1]))


def without_warnings(curve: CurveHook, times: FloatArray, parameters: FloatArray) -> FloatArray:
    """Return the values of a curve, which may overflow or underflow."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.asarray(curve(times, parameters))


def curves_of(fitter: Any) -> list[Any]:
    """Return a fitter, or one for each group if it is of everybody and has groups."""
    groups = getattr(fitter, "groups_", None)
    if groups is None or fitter.group_ is not None:
        return [fitter]
    return [fitter.of_group(label) for label in groups.tolist()]


def around(lower: FloatArray, upper: FloatArray, estimates: FloatArray, index: Any) -> pd.DataFrame:
    """Return ends of intervals, extended to the estimates, as a frame."""
    ends = np.column_stack([np.minimum(lower, estimates), np.maximum(upper, estimates)])
    return pd.DataFrame(ends, index=index, columns=["lower", "upper"])


def interval(draws: FloatArray, level: float, estimates: FloatArray, index: Any) -> pd.DataFrame:
    """Return central intervals of the draws in each column, extended to the estimates."""
    lower, upper = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return around(lower, upper, estimates, index)


class DisplayOptions(NamedTuple):
    """Display options of ``fit``: public, and not in a release."""

    timeline: FloatArray | None = None
    label: str | None = None
    alpha: float | None = None


def times_argument(times: ArrayLike, name: str = "times") -> FloatArray:
    """Return one-dimensional times to evaluate a curve at."""
    refuse_masked(times, name)
    found = np.atleast_1d(np.asarray(unlabelled(times, name)))
    if found.dtype.kind == "m":  # the unit of a fit is not stated
        raise TypeError(f"{name} must be numbers in the unit of the fit, got timedelta64.")
    return checked_times(found, name)


def has(hook: str) -> Callable[[Any], bool]:
    """Return a function that says whether a fitter's curve has a hook."""
    return lambda fitter: hasattr(fitter._curve_type, hook)


def has_likelihood(fitter: Any) -> bool:
    """Say whether a fitter's curve has a likelihood: by its hazard, or one of its own."""
    own = fitter._curve_type.mean_log_likelihood is not ReleasedCurve.mean_log_likelihood
    return own or hasattr(fitter._curve_type, "hazard")


class CurveFrames(PrivateEstimator):
    """Base of fitted curves: their values at times, and tables of them."""

    alpha: float
    max_time: float | None
    _shown: DisplayOptions = DisplayOptions()
    _released: ReleasedCurve
    _curve_type: ClassVar[type[ReleasedCurve]]

    survival_band: Callable[..., pd.DataFrame]

    def _display_options(
        self, timeline: ArrayLike | None, label: str | None, alpha: float | None
    ) -> DisplayOptions:
        """Return the options, or raise TypeError or ValueError."""
        times = None if timeline is None else np.sort(times_argument(timeline, "timeline"))
        if times is not None:
            self._curve_type.up_to_horizon(times, required_horizon(self.max_time), "timeline")
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be text, got {type(label).__name__}.")
        return DisplayOptions(times, label, None if alpha is None else fraction("alpha", alpha))

    def _show(self, shown: DisplayOptions) -> None:
        # Without options the attribute is absent, as in a rebuilt estimator.
        self.__dict__.pop("_shown", None)
        if any(option is not None for option in shown):
            self._shown = shown

    @property
    def _curve(self) -> Any:
        check_is_fitted(self, "release_")
        return self._released

    def _times(self, times: ArrayLike) -> FloatArray:
        """Return times as an array; beyond the horizon they are refused, or extrapolated."""
        return self._curve.up_to_horizon(times_argument(times), self._curve.max_time, "times")

    def survival_function_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the probability of survival to each time.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            From 0 to ``max_time``, in its unit. Later times are refused; a parametric distribution
            is extrapolated, with a PublicInputWarning.
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
        t = self._times(times)
        return self._series(self._curve.at(t), t, label)

    @available_if(has("hazard"))
    def hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the hazard, the derivative of the cumulative hazard, in events per unit of time.

        Parameters
        ----------
        times, label
            As for ``survival_function_at_times``.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t, curve = self._times(times), self._curve
        return self._series(without_warnings(curve.hazard, t, curve.estimates), t, label)

    def percentile(self, p: float) -> float:
        """Return the first time by which survival has fallen to ``p``, as lifelines does.

        Parameters
        ----------
        p : float
            Probability of survival, between 0 and 1.

        Returns
        -------
        float
            In the unit of ``max_time``; infinite if survival does not fall so far by then. A
            parametric distribution is extrapolated, with a PublicInputWarning.
        """
        curve, time = self._curve, self._percentile(p)
        curve.up_to_horizon(np.array([time]), curve.max_time, f"percentile({p!r})")
        return time

    def _percentile(self, p: float) -> float:
        return float(self._curve.reached(-math.log(fraction("p", p))))

    def _series(self, found: FloatArray, times: FloatArray, label: str | None) -> pd.Series:
        return pd.Series(found, index=times, name=label or self.label)

    @property
    def timeline(self) -> FloatArray:
        """Times of the tables: public, never those of the records."""
        default, shown = self._curve.timeline, self._shown.timeline
        return default if shown is None else shown

    @property
    def label(self) -> str:
        """Name of the estimate in tables."""
        own = type(self).__name__.removeprefix("DP").removesuffix("Fitter")
        return self._shown.label or f"{self._curve_type.short_name or own}_estimate"

    @property
    def survival_function_(self) -> pd.DataFrame:
        """Probabilities of survival to the times of ``timeline``."""
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
        return self._named_ends(self._band())

    @property
    def confidence_interval_cumulative_density_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_density_``."""
        return self._named_ends(1.0 - self._band()[:, ::-1])

    @property
    def confidence_interval_cumulative_hazard_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_hazard_``."""
        with np.errstate(divide="ignore"):
            return self._named_ends(np.abs(np.log(self._band()[:, ::-1])))

    @property
    def confidence_interval_(self) -> pd.DataFrame:
        """Pointwise confidence intervals of the estimator's main curve, most often of survival."""
        frame: pd.DataFrame = getattr(self, f"confidence_interval_{self._curve_type.main}_")
        return frame

    @property
    def conditional_time_to_event_(self) -> pd.DataFrame:
        """Median remaining time of survivors at the times of ``timeline``."""
        curve, times = self._curve, self.timeline
        ends = np.array([curve.reached(float(now) + math.log(2.0)) for now in curve.at(times)])
        curve.up_to_horizon(ends, curve.max_time, "conditional_time_to_event_")
        name = f"{self.label} - Conditional median duration remaining to event"
        return self._table(ends - times, [name])

    @property
    def _level(self) -> float:
        alpha = self._shown.alpha
        return 1.0 - float(self.alpha if alpha is None else alpha)

    def _frame(self, curve: Callable[[FloatArray], pd.Series]) -> pd.DataFrame:
        return self._table(curve(self.timeline).to_numpy(), [self.label])

    def _band(self) -> FloatArray:
        """Lower and upper ends of the interval of survival."""
        return np.asarray(self.survival_band(self.timeline, self._level))

    def _named_ends(self, found: FloatArray) -> pd.DataFrame:
        level = f"{self._level:.12g}"  # 0.95, as 1 - 0.05 is
        names = [f"{self.label}_lower_{level}", f"{self.label}_upper_{level}"]
        return self._table(found, names)

    def _table(self, values: FloatArray, names: list[str]) -> pd.DataFrame:
        return pd.DataFrame(values, pd.Index(self.timeline, name="timeline"), names)
