"""DPKaplanMeierFitter, and the base of all curves from one noisy event-count table."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.labels import stated_labels
from skdpsurv.data.shape import Shape
from skdpsurv.data.target import NO_GROUP
from skdpsurv.dp import PrivacyAccountant, checks
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.release.raw_rows import headline
from skdpsurv.survival.curves import event_counts
from skdpsurv.survival.curves.life_table_curve import LifeTableCurve
from skdpsurv.survival.horizon import horizon_words
from skdpsurv.survival.released_curve import around, curves_of
from skdpsurv.survival.univariate import UnivariateFitter

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Number of rows of a printed summary.
N_ROWS = 10


class LifeTableFitter(UnivariateFitter, released=False, takes=("times", "group"), late_entry=True):
    """Base of curves from one noisy event-count table; a subclass sets ``_curve_type``."""

    groups_: NDArray[Any] | None
    group_: Any
    n_intervals: int | str
    breakpoints: str | ArrayLike
    groups: Sequence[Any] | None
    max_time: float | None

    _rules: ClassVar[dict[str, checks.Check]] = {
        "epsilon": event_counts.IS_EPSILON,
        "max_time": checks.horizon(checks.number_in(1e-150, 1e150)),
        "n_intervals": checks.auto_or(checks.integer(1, event_counts.LARGEST_TABLE // 2)),
        "breakpoints": event_counts.check_breakpoints,
        "groups": event_counts.check_groups,
    }
    _one_of_each = ("durations", "event_observed", "group", "entry")

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        n_intervals: int | str = "auto",
        breakpoints: str | ArrayLike = "early",
        groups: Sequence[Any] | None = None,
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_time = max_time
        self.n_intervals = n_intervals
        self.breakpoints = breakpoints
        self.groups = groups
        self.alpha = alpha
        self.random_state = random_state
        self.accountant = accountant

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        entry: ArrayLike | None = None,
        group: ArrayLike | None = None,
        person: ArrayLike | None = None,
        timeline: ArrayLike | None = None,
        label: str | None = None,
        alpha: float | None = None,
    ) -> Self:
        """Fit the curves, spending ``epsilon`` once, whatever the number of groups.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_features), or None
            One-dimensional, or alone and of one column: durations. Otherwise not used.
        y : array-like of shape (n_samples,) or None
            Structured array of event and time, as in scikit-survival. Otherwise events if X is
            one-dimensional, and times, all observed, if X is two-dimensional or None.
        durations : array-like of shape (n_samples,) or None
            Times of event or censoring, in the unit of ``max_time``. Private.
        event_observed : array-like of shape (n_samples,) or None
            Observed events: indicators, or labels of causes. Private.
        entry : array-like of shape (n_samples,) or None
            Time from which each record was seen: people are at risk after it, and never if it is
            not before their duration. Private, but not whether it is given: a second table then
            takes 0.3 of epsilon. None: all are seen from 0.
        group : array-like of shape (n_samples,) or None
            The group of each record, one of ``groups``. Private.
        person : array-like of shape (n_samples,), or None
            Identifier of each record's person, whole numbers or text: the first record of each is
            used, and the guarantee is about people. Private. None: each person has one record.
        timeline : array-like of shape (n_times,), or None
            Public times of tables such as ``survival_function_``. None: the edges of the bands.
        label, alpha
            Name of the estimate in these tables; their intervals cover 1 - alpha, by default that
            of the constructor.

        Returns
        -------
        self
        """
        shown = self._display_options(timeline, label, alpha)
        times: Any = {"durations": durations, "event_observed": event_observed}
        self._fit(X, y, person=person, **times, group=group, entry=entry)
        self._show(shown)
        return self

    def _check_options(self, options: Mapping[str, Any]) -> None:
        super()._check_options(options)
        if (options.get("group") is None) != (self.groups is None):
            raise ValueError(NO_GROUP)

    def _causes(self) -> event_counts.Causes:
        return event_counts.Causes.of(vars(self))

    def _labels(self) -> NDArray[Any] | None:
        return None if self.groups is None else stated_labels("groups", self.groups)

    def _read(self, shape: Any, X: Any, y: Any, **options: Any) -> Any:
        named = {"causes": self._causes().reader, "groups": self._labels()}
        return super()._read(shape, X, y, **options, **named)

    def _check_together(self) -> None:
        super()._check_together()
        if isinstance(self.breakpoints, str):
            return
        if self.n_intervals != "auto":
            raise ValueError("n_intervals must be 'auto' where breakpoints are times.")
        horizon = checks.required_horizon(self.max_time)
        ends = np.append(np.asarray(self.breakpoints, float), horizon)
        if ends[-2] >= ends[-1]:
            raise ValueError("breakpoints must be before max_time, which ends the last interval.")
        if np.diff(ends, prepend=0.0).min() < event_counts.NARROWEST * ends[-1]:
            raise ValueError(
                f"breakpoints must be at least {event_counts.NARROWEST:g} times max_time apart."
            )

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        breakpoints, n_intervals, causes = self.breakpoints, self.n_intervals, self._causes()
        labels = self._labels()
        if not isinstance(breakpoints, str):
            breakpoints = np.asarray(breakpoints).tolist()
        elif isinstance(n_intervals, str):
            n_groups = 1 if labels is None else labels.size
            sizes = shape.n_records, float(self.epsilon), n_groups, causes.number
            n_intervals = event_counts.n_bands_for(*sizes, shape.has_entry)
        else:
            n_intervals = int(n_intervals)
        return {
            "max_time": checks.required_horizon(self.max_time),
            "n_intervals": n_intervals,
            "breakpoints": breakpoints,
            **({} if labels is None else {"groups": labels.tolist()}),
            **causes.stated(),
        }

    def _plan(self, shape: Shape) -> Plan:
        stated, epsilon = self._release_parameters(shape), float(self.epsilon)
        tree = event_counts.tables(stated, epsilon, shape.has_entry)
        inputs = {"n_records": shape.n_records, **stated}
        return Plan(tree, epsilon, inputs=inputs, assumed=event_counts.ASSUMED)

    def of_group(self, label: Any) -> Self:
        """Return the curve of one group, from the same release, at no cost.

        Parameters
        ----------
        label : one of ``groups``

        Returns
        -------
        estimator
            Fitted, with the same ``release_``.
        """
        curve = self._curve
        labels = [] if self.groups_ is None else self.groups_.tolist()
        if np.ndim(label) > 0 or label not in labels:
            raise ValueError(f"label must be one of the groups {labels}, got {label!r}.")
        view = self._view(curve.of_group(label))
        view.group_ = label
        view._shown = self._shown._replace(label=str(label))
        return view

    def given_alive_at(self, time: float) -> Self:
        """Return the curves of those who are alive at a time, from the same release, at no cost.

        Parameters
        ----------
        time : float
            Public start of a band, such as one of ``breakpoints``.

        Returns
        -------
        estimator
            Fitted, with the same ``release_``, and a survival of 1 up to the time.
        """
        return self._view(self._curve.given_alive_at(time))

    def _view(self, curve: LifeTableCurve) -> Self:
        view = copy.copy(self)
        view._released = curve
        view.median_survival_time_ = view._percentile(0.5)
        return view

    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals of the cumulative hazard, not of survival, at the ends of the bands.

        Those of survival are in ``confidence_interval_``.

        Parameters
        ----------
        level : float, default=0.95
        n_resamples : not used

        Returns
        -------
        pandas.DataFrame
            Indexed by the ends, columns ``lower`` and ``upper``.
        """
        band = self.survival_band(self._curve.ends, level)
        with np.errstate(divide="ignore"):
            return np.abs(np.log(band[["upper", "lower"]])).set_axis(["lower", "upper"], axis=1)

    def survival_band(
        self, times: ArrayLike, level: float = 0.95, n_resamples: int = 500
    ) -> pd.DataFrame:
        """Return pointwise intervals of the survival function, for sampling and privacy noise.

        They follow from the release alone. They do not allow for the bias of smoothing.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level : float, default=0.95
        n_resamples : not used

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = checks.fraction("level", level), self._times(times)
        lower, upper = self._curve.survival_interval(t, level)
        return around(lower, upper, np.exp(-self._curve.at(t)), t)

    def smoothed_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the hazard by the noisy table and a smooth prior; positive.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            At most ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Events per unit of time, indexed by the times.
        """
        t, curve = self._times(times), self._curve
        rate = curve.smoothed.sum(axis=0)
        return self._series(rate[np.searchsorted(curve.ends, t)], t, label)

    @property
    def event_table(self) -> pd.DataFrame:
        """Estimated counts by band, not negative and not whole, in the columns of lifelines."""
        curve = self._curve
        fit = curve.fit
        observed = np.append(0.0, curve.of_events(fit.counts).sum(axis=0))
        censored = np.append(0.0, fit.counts[-1])
        censored[-1] += fit.stayed
        counts = {"removed": observed + censored, "observed": observed, "censored": censored}
        counts["entrance"] = fit.entrants
        counts["at_risk"] = np.append(0.0, fit.at_risk[:-1]) + fit.entrants
        return pd.DataFrame(counts, index=pd.Index(curve.timeline, name="event_at"))

    def number_at_risk(self, times: ArrayLike) -> pd.Series:
        """Return the estimated number of people at risk, linear within bands.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t, curve = self._times(times), self._curve
        return self._series(np.interp(t, curve.timeline, curve.fit.at_risk), t, "at_risk")

    @property
    def summary(self) -> pd.DataFrame:
        """Numbers at risk, the main curve and its intervals at some times."""
        knots = self._curve.timeline
        times = knots[np.unique(np.linspace(0, knots.size - 1, N_ROWS).round().astype(int))]
        what, found, band = self._main(times)
        band = band.add_prefix(f"{what} ").add_suffix(f" {100 * self._level:g}%")
        columns = {"at risk": self.number_at_risk(times), what: found, **band}
        return pd.DataFrame(columns).rename_axis("timeline")

    def _horizon_words(self) -> list[str]:
        """Say what was seen by the horizon, by the released table, unless people enter late."""
        if self._curve.has_entry:
            return []
        end = float(self.release_.parameters["max_time"])
        curves = curves_of(self)
        tables = [curve.event_table for curve in curves]
        n_people = sum(float(one["entrance"].sum()) for one in tables)
        events = sum(float(one["observed"].sum()) for one in tables) / n_people
        later = sum(float(curve.number_at_risk(end / 4.0).iloc[0]) for curve in curves) / n_people
        return horizon_words(end, events, 1.0 - later)

    def _main(self, times: FloatArray) -> tuple[str, pd.Series, pd.DataFrame]:
        """Return the name of the main curve, its values at some times, and its intervals."""
        band = self.survival_band(times, self._level)
        return "survival", self.survival_function_at_times(times), band

    def print_summary(self, decimals: int = 2) -> None:
        """Print the guarantee, medians, and the main curve of each group at some times."""
        print(headline(self.release_), *self._horizon_words(), sep="\n")
        for curve in curves_of(self):
            middle = curve.percentile_interval()
            shown = ", ".join(f"{end:.{decimals}f}" for end in middle[1:])
            who = "" if curve.group_ is None else f"{curve.group_}: "
            level = f"{100 * self._level:g} %"
            print(
                f"{who}{self._curve_type.median} {middle.estimate:.{decimals}f} ({level}: {shown})"
            )
            print(curve.summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))


class DPKaplanMeierFitter(
    LifeTableFitter, word="km", analysis="curves", adds_up="tables", measure="largest_error"
):
    r"""Kaplan-Meier curves of everybody and of groups, which protect every record.

    One table is released, and one more if people enter late: noisy numbers of people of each group
    who had their event, or were censored, in each band of time. It is epsilon-differentially
    private under replacement of one record: one person's time, event, entry and group change the
    probability of any release by a factor of at most :math:`e^\epsilon`. All groups together cost
    epsilon once; all else follows from the table.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the life table of the exact
        counts, for reference, without any privacy.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    n_intervals : int or "auto", default="auto"
        Bands of time. "auto": 4 to 200, by the number of records times epsilon, per group.
    breakpoints : {"early", "equal"} or array-like of shape (n_intervals - 1,), default="early"
        Ends of the bands. "early": ``max_time * (k / n_intervals) ** 2``, as curves are steepest
        at the start. "equal": bands of equal length. Or these times; public.
    groups : list of labels or None, default=None
        Public labels of all possible groups, such as ``["treated", "control"]``. None: no groups.
    alpha : float, default=0.05
        Intervals of tables such as ``confidence_interval_`` cover 1 - alpha.
    random_state : None or int, default=None
        An int makes the fit reproducible and therefore not private: status "seeded", with a
        PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    survival_function_, cumulative_density_, cumulative_hazard_ : pandas.DataFrame
        Curves at the times of ``timeline``. The cumulative hazard is minus the log of survival.
    confidence_interval_ : pandas.DataFrame
        Pointwise intervals of ``survival_function_``, for sampling and privacy noise.
    median_survival_time_ : float
        In the unit of ``max_time``; infinite if survival does not fall to one half.
    event_table : pandas.DataFrame
        Estimated counts by band.
    timeline : ndarray
        Times of the tables: the edges of the bands, from 0 on.
    groups_, group_
        Labels of the groups, and that of a curve from :meth:`of_group`; None is everybody.
    guarantee_ : PrivacyGuarantee
        The privacy guarantee, with its assumptions.
    release_ : Release
        The result to publish; ``DPKaplanMeierFitter.from_release`` rebuilds the model.
    n_features_in_, feature_names_in_
        Number and names of the columns of X, which are not used.

    Raises
    ------
    ValueError
        If a parameter, a time, an event, a group or a length is not valid. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded, before any record is read.

    See Also
    --------
    DPAalenJohansenFitter : Competing risks.
    skdpsurv.survival.comparisons.logrank_test : Test whether two groups differ.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and sensitivity:
    docs/proofs/curves. With ``entry`` there are two tables, of exits and of entries, whose parts of
    epsilon are 0.7 and 0.3. The cumulative hazard is linear within bands, as times of events are
    private. Estimates are smoothed where noise hides the counts. Intervals are of the population's
    curve, pointwise, and not smoothed; docs/benchmarks/curves has their measured coverage. Records
    beyond ``max_time`` are clipped silently by design, as their number is private; predictions
    there are refused.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> data = load_flchain()
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0, groups=[0, 1])
    >>> fitter = fitter.fit(data.y["futime"], data.y["death"], group=data.X["sex_male"])
    >>> print(f"{fitter.predict(5 * 365.25):.1f}")
    0.9
    >>> women, men = fitter.of_group(0), fitter.of_group(1)
    >>> bool(women.predict(4000) > men.predict(4000) - 0.1)
    True
    """

    _curve_type: ClassVar[type[LifeTableCurve]] = LifeTableCurve

    def _formula(self, script: Script) -> str:
        knots = ", ".join(map(script.number, self._curve.timeline))
        hazards = ", ".join(map(script.number, self._curve.at_knots))
        return (
            "survival(time) = exp(-hazard(time)), hazard linear between\n"
            f"times   {knots}\nhazards {hazards}"
        )
