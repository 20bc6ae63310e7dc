"""Base of fitters of one distribution of survival times, with the interface of lifelines."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.data import target as targets
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.shape import Shape, in_memory, public_shape, require_in_memory, size
from skdpsurv.data.sources import one_target
from skdpsurv.dp.checks import Check, fraction, number_in, positive_int, refuse_unknown
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.input_errors import call_without_data
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release
from skdpsurv.release.raw_rows import headline
from skdpsurv.survival import released_curve

#: Number of simulated curves behind an interval.
N_DRAWS = 1000
#: Attributes that are slow to compute.
SLOW = re.compile(r"summary$|confidence_interval_|conditional_time_to_event_$|_band$")


class Interval(NamedTuple):
    """An estimate, and the ends of its interval."""

    estimate: float
    lower: float
    upper: float


class UnivariateFitter(released_curve.CurveFrames, takes=("times",), such_as={"max_time": 1.0}):
    """Base of private distributions of survival times, with the interface of lifelines' fitters.

    A subclass has the parameters ``max_time``, which its release states, and ``alpha``, and those
    of :class:`~skdpsurv.base.PrivateEstimator`; its guarantee states ``n_records``. It makes a plan
    (``_plan``), states parameters (``_release_parameters``), and reads a release by its
    ``_curve_type``, a :class:`~skdpsurv.survival.released_curve.ReleasedCurve`. A step function has
    ``unique_times_`` among the ``fitted`` attributes, for plots.
    """

    _rules: ClassVar[dict[str, Check]] = {
        "alpha": number_in(0.0, 1.0, closed="neither", why="Intervals cover 1 - alpha.")
    }

    n_features_in_: int

    _one_of_each: ClassVar[tuple[str, ...]] = ("durations", "event_observed")

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        person: ArrayLike | None = None,
        timeline: ArrayLike | None = None,
        label: str | None = None,
        alpha: float | None = None,
    ) -> Self:
        """Fit the distribution, spending ``epsilon``.

        Call it as in lifelines, ``fit(durations, event_observed)``, by position or by name. Or call
        it as in scikit-learn, ``fit(X, y)``, with a row of X for each record, which is not used.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_features), or None
            One-dimensional, or alone and of one column: durations. Otherwise not used.
        y : array-like of shape (n_samples,) or None
            Structured array of event indicator and time, as in scikit-survival. Otherwise events
            if X is one-dimensional, and times, all observed, if X is two-dimensional or None. If
            X is a frame of one column, name y after times, such as "time", or leave X out.
        durations : array-like of shape (n_samples,) or None
            Times of event or censoring, in the unit of ``max_time``. Private.
        event_observed : array-like of shape (n_samples,) or None
            True or 1 for an event, False or 0 if censored. Private. None: all events.
        person : array-like of shape (n_samples,), or None
            Identifier of each record's person, whole numbers or text: the first record of each is
            used, and the guarantee is about people. Private. None: each person has one record.
        timeline : array-like of shape (n_times,), or None
            Public times of tables such as ``survival_function_``. None: up to ``max_time``.
        label : str or None
            Name of the estimate in these tables.
        alpha : float or None
            Their intervals cover 1 - alpha. None: the parameter ``alpha``.

        Returns
        -------
        self
        """
        shown = self._display_options(timeline, label, alpha)
        self._fit(X, y, durations=durations, event_observed=event_observed, person=person)
        self._show(shown)
        return self

    def _given(self, X: Any, y: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
        alone = y is None and options.get("durations") is None
        return super()._given(targets.single_column(X) if alone else X, y, options)

    @available_if(released_curve.has_likelihood)
    def score(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-likelihood of records. This score is not private.

        Times are clipped as in ``fit``. A curve from an event-count table is scored by its smoothed
        hazard, which is positive, and that of everybody unless it is one of :meth:`of_group`.

        Parameters
        ----------
        X, y, durations, event_observed
            As for ``fit``.
        entry : array-like of shape (n_samples,), or None
            Times from which records were seen, if ``fit`` takes them.

        Returns
        -------
        float
            It depends on the unit of time; higher is better.
        """
        curve = self._curve
        if entry is not None and not self._card.late_entry:
            raise TypeError(f"entry must be None: {type(self).__name__} knows of no late entries.")
        require_in_memory(X, y, durations, event_observed, entry)
        if self.n_features_in_ > 0 and targets.is_two_dimensional(X):
            self._see_rows(X)
        given = X, y, durations, event_observed, entry
        X, y, durations, event, entry = map(unlabelled, given)
        found = targets.fit_target(X, y, durations, event, curve.read_causes, entry)
        return curve.mean_log_likelihood(found)

    def _sources(self, X: Any, y: Any, *, person: Any = None, **options: Any) -> Any:
        """Return the arguments; out-of-core arguments as one source, with one target."""
        if in_memory(X, y, *options.values()):
            return super()._sources(X, y, person=person, **options)
        others, names = dict(options), dict.fromkeys(options)
        durations, event_observed = (others.pop(n, None) for n in ("durations", "event_observed"))
        for name, values in others.items():
            if values is not None and in_memory(values):
                raise TypeError(f"{name} must be where X and y are, and not in memory.")
        X, y, event_observed = one_target(X, y, durations, event_observed)
        # In the order in which a block is read, whatever was given.
        others = {"event_observed": event_observed, "group": None, "entry": None} | others
        X, y, known = super()._sources(X, y, person=person, **others)
        return X, y, {name: known.get(name) for name in names}

    def _shape(
        self, X: Any, y: Any, durations: Any = None, event_observed: Any = None, **others: Any
    ) -> Shape:
        """Return the number of records, and columns of a two-dimensional X, which are not used."""
        has_entry = others.get("entry") is not None
        if isinstance(X, Blocks):
            n_records, n_columns = size(X)
        else:
            n_records = targets.n_targets(X, y, durations, event_observed)
            n_columns = int(targets.is_two_dimensional(X))
        if n_columns > 0:
            shape = public_shape(self, X, used=False)
            return replace(shape, n_records=n_records, has_entry=has_entry)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = 0
        return Shape(n_records, 0, has_entry=has_entry)

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        # Durations alone are all observed, as in lifelines; beside X, events may be forgotten.
        return targets.no_events(y) if targets.is_two_dimensional(X) else []

    def _read(
        self, shape: Any, X: Any, y: Any, *, causes: Any = None, groups: Any = None, **options: Any
    ) -> Any:
        """Return histories in blocks, kept in memory, after checking their number.

        ``causes`` reads causes from a column and its name; None: there are indicators of events.
        ``groups`` are the labels of strata; None: there is one.
        """
        if isinstance(X, Blocks):  # whose records may hold y alone
            blocks = in_blocks(X, y)
        else:
            group, entry = (options.pop(name, None) for name in ("group", "entry"))
            y, times, event = targets.target_arguments(X, y, **options)
            blocks = in_blocks(times, y, event, group, entry)
        records = blocks.map(partial(targets.read_block, causes, groups)).persist()
        shape.require(records.map_reduce(lambda block: block.size))
        return records

    def _see_rows(self, X: Any) -> int:
        """Return the number of rows of X, which must have as many columns as in ``fit``."""
        options = {"dtype": None, "ensure_all_finite": False, "accept_sparse": True, "reset": False}
        return int(call_without_data(validate_data, self, X, **options).shape[0])

    def _set_fitted(self, release: Release) -> None:
        self._released = self._curve_type(release)
        self.__dict__.update(self._released.fitted)
        self.median_survival_time_ = self._percentile(0.5)

    def predict(self, times: ArrayLike) -> Any:
        """Return the estimator's main curve at some times: the probability of survival, mostly.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            From 0 to ``max_time``, in its unit. Later times are refused; a parametric distribution
            is extrapolated, with a PublicInputWarning. After a fit on an X of two or more columns,
            rows of as many are allowed, for scikit-learn's tools: each gets the risk score 0.

        Returns
        -------
        ndarray of shape (n_times,), or float
        """
        check_is_fitted(self, "release_")
        if targets.is_two_dimensional(times):
            if self.n_features_in_ < 2:  # a column may hold times
                raise ValueError("times must be one-dimensional, got 2-D: np.ravel(times) is.")
            return np.zeros(self._see_rows(times))
        values = getattr(self, f"{self._curve_type.predicts}_at_times")(times).to_numpy()
        return values if np.ndim(times) else float(values[0])

    @available_if(released_curve.has("plausible"))
    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals for the parameters that allow for sampling and for privacy noise.

        They follow from the release and public parameters alone, by simulated records and the same
        mechanism. No budget is spent.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage.
        n_resamples : int, default=500
            Simulated fits.

        Returns
        -------
        pandas.DataFrame
            A row for each parameter, columns ``lower`` and ``upper``; they hold the estimate.
        """
        level, draws = fraction("level", level), self._draws(n_resamples)
        return released_curve.interval(draws, level, self._curve.estimates, list(self._curve.names))

    @available_if(released_curve.has("plausible"))
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
        level, t = fraction("level", level), self._times(times)
        curve = self._curve
        draws = self._draws(n_resamples)
        hazards = released_curve.without_warnings(curve.cumulative_hazard, t, draws)
        return released_curve.interval(np.exp(-hazards), level, np.exp(-curve.at(t)), t)

    def restricted_mean_survival_time(
        self, t: float | None = None, level: float = 0.95, n_resamples: int = N_DRAWS
    ) -> Interval:
        """Return the mean survival time up to t, with an interval for sampling and privacy noise.

        Parameters
        ----------
        t : float or None
            Public, at most ``max_time``, and in its unit. None: ``max_time``.
        level : float, default=0.95
            Nominal coverage.
        n_resamples : int, default=1000
            Number of simulated curves.

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
        curve = self._curve
        estimate = float(curve.mean(end, curve.estimates))
        return self._interval(estimate, partial(curve.mean, end), level, n_resamples)

    def percentile_interval(
        self, p: float = 0.5, level: float = 0.95, n_resamples: int = N_DRAWS
    ) -> Interval:
        """Return the time by which survival falls to p, with an interval: the median by default.

        Parameters
        ----------
        p : float, default=0.5
            Probability of survival, between 0 and 1.
        level : float, default=0.95
            Nominal coverage.
        n_resamples : int, default=1000
            Number of simulated curves.

        Returns
        -------
        Interval
            A tuple of ``estimate``, ``lower`` and ``upper``, each infinite if survival does not
            fall so far by ``max_time``. A parametric distribution is extrapolated, with a
            PublicInputWarning.
        """
        estimate, level = self.percentile(p), fraction("level", level)
        return self._interval(estimate, partial(self._curve.percentiles, p), level, n_resamples)

    def _draws(self, n_resamples: int) -> FloatArray:
        return self._curve.plausible(positive_int("n_resamples", n_resamples))

    def _interval(self, estimate: float, functional: Any, level: float, n_draws: int) -> Interval:
        """Return the central part of plausible values, extended to the estimate."""
        if not hasattr(self._curve_type, "plausible"):
            return Interval(estimate, math.nan, math.nan)
        # Without interpolation, as some may be infinite.
        ordered, tail = np.sort(functional(self._draws(n_draws))), (1.0 - level) / 2.0
        first, last = math.floor(tail * ordered.size), math.ceil((1.0 - tail) * ordered.size) - 1
        lower, upper = ordered[np.clip([first, last], 0, ordered.size - 1)].tolist()
        return Interval(estimate, min(lower, estimate), max(upper, estimate))

    def _end(self, t: float | None) -> float:
        horizon = self._curve.max_time
        if t is None:
            return horizon
        why = "Times later than max_time are unknown."
        number_in(0.0, horizon, closed="right", why=why)("t", t)
        return float(t)

    def __dir__(self) -> list[str]:
        # scikit-learn and notebooks evaluate all listed attributes, which takes seconds here.
        return [name for name in object.__dir__(self) if not SLOW.match(name)]

    @property
    def summary(self) -> pd.DataFrame:
        """Estimates, with 95 % intervals if there are any, in the columns of lifelines."""
        curve = self._curve
        summary = pd.DataFrame({"coef": curve.estimates}, index=list(curve.names))
        if hasattr(self, "confidence_interval"):
            bounds = self.confidence_interval()
            summary[["coef lower 95%", "coef upper 95%"]] = bounds
        return summary

    def print_summary(self, decimals: int = 2) -> None:
        """Print the guarantee, the estimates and their intervals.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        print(headline(self.release_))
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the survival function, for each group if there are groups, with a 95 % band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Options of :func:`skdpsurv.plotting.plot_univariate`, such as ``at_risk_counts=True``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_univariate  # needs the extra "plot"

        refuse_unknown(type(self), "plot", plot_univariate, options)
        curves = released_curve.curves_of(self)
        models = curves[0] if len(curves) == 1 else {str(c.group_): c for c in curves}
        return plot_univariate(models, ax=ax, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
