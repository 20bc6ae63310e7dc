"""Curves of everybody and of groups from one noisy table of exits; Kaplan-Meier among them."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.labels import stated_labels
from skdpsurv.dp import random_source
from skdpsurv.dp.checks import fraction
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.release.raw_rows import headline
from skdpsurv.survival.curve_frames import Shown, times_argument
from skdpsurv.survival.curves.exit_fit import HazardLaw, Table, fit_exits
from skdpsurv.survival.curves.fitter import Causes, ExitTableFitter, check_size, stated_ends
from skdpsurv.survival.curves.table import COUNT_VARIANCE, table_variance
from skdpsurv.survival.released_curve import ReleasedCurve, crossing, stated_records

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Larger cumulative hazards are those of a curve that has come to 0.
LARGEST_HAZARD = 700.0
#: Doubles count parts of people as far as this.
MOST_RECORDS = 2**50
#: Rows of a summary.
N_ROWS = 10


class TableCurve(ReleasedCurve):
    """Curves from one noisy table, of everybody and of groups: hazards at the ends of bands."""

    #: Parameters that a release must state.
    needed: ClassVar[tuple[str, ...]] = ("max_time", "n_intervals", "breakpoints")

    def __init__(self, release: Release) -> None:
        check_parameters(release, *self.needed)
        super().__init__(release)
        check_size(release.parameters)
        self.causes = Causes.of(release.parameters)
        n_records = stated_records(release, MOST_RECORDS)
        labels = release.parameters.get("groups")
        self.groups = None if labels is None else stated_labels("groups", labels)
        self.ends = ends = stated_ends(release.parameters)
        n_groups = 1 if self.groups is None else self.groups.size
        n_ways = self.causes.number + 1
        cells = released_array(release, "counts", (n_groups, n_ways * ends.size + 1))
        variance = table_variance(release)
        exact = variance > 0.0 or (cells.min() >= 0.0 and cells.sum() == n_records)
        if np.abs(cells).max() > 2.0**62 or np.any(cells != np.rint(cells)) or not exact:
            raise ValueError("values of the release must hold counts that are counts.")
        width = np.diff(ends, prepend=0.0) / ends[-1]
        whole = Table(cells.sum(axis=0), n_ways, n_groups * variance, n_records)
        tables = [whole]
        if n_groups > 1:
            others = (n_groups - 1) * cells.shape[1] * variance
            tables += [
                Table(own, n_ways, variance, n_records, (cells.sum() - own.sum(), others))
                for own in cells
            ]
        self._groups = [(table, fit_exits(table, width)) for table in tables]
        self._exact = _exact(release, len(tables), self.causes.number, ends.size)
        self._turn_to(0)

    def _turn_to(self, place: int) -> None:
        """Show everybody, or one group."""
        self.table, self.fit = self._groups[place]
        self.law = HazardLaw(self.fit, self.ends)
        #: Curves without privacy, if there are any.
        self.exact = {name: values[place] for name, values in self._exact.items()}
        self.estimates = self._cumulated()

    def _cumulated(self) -> FloatArray:
        if not self.exact:
            return np.cumsum(self.of_events(self.fit.hazards).sum(axis=0))
        with np.errstate(divide="ignore"):
            return np.minimum(np.abs(np.log(self.exact["survival"])), LARGEST_HAZARD)

    def of_group(self, label: Any) -> Self:
        """Return the curve of one of the groups."""
        view = copy.copy(self)
        if self.groups is not None and self.groups.size > 1:  # one group is everybody
            view._turn_to(1 + self.groups.tolist().index(label))
        return view

    def of_events(self, masses: FloatArray) -> FloatArray:
        """Return those of events, of masses (..., n_ways, n_bands) of all ways out."""
        return masses[..., : self.causes.number, :]

    @property
    def fitted(self) -> dict[str, Any]:
        """Labels of groups, and of the one that this is of."""
        return {"groups_": self.groups, "group_": None}

    @property
    def at_knots(self) -> FloatArray:
        """Cumulative hazards at the times of ``timeline``."""
        return np.append(0.0, self.estimates)

    def cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return it, between the ends of bands in proportion."""
        return self.law.between(times, parameters)

    def time_of(self, cumulative_hazard: float) -> float:
        """Return the first time by which the cumulative hazard is as large."""
        return crossing(self.timeline, self.at_knots, cumulative_hazard)

    @property
    def timeline(self) -> FloatArray:
        """The ends of bands, from 0 on."""
        return np.append(0.0, self.ends)

    def knots(self, end: float) -> FloatArray:
        """Return these, up to a time."""
        return np.append(self.timeline[self.timeline < end], end)

    def plausible(self, n_resamples: int) -> FloatArray:
        """Return cumulative hazards that may be the true ones."""
        draws = self.law.draws(n_resamples, random_source(0, purpose="interval").generator)
        return np.cumsum(self.of_events(draws).sum(axis=1), axis=-1)


class ExitCurves(ExitTableFitter, released=False):
    """Base of curves from one noisy table, of everybody and of groups.

    A subclass says which curve it is about, by a kind of :class:`TableCurve`, and how it is written
    (``_formula``).
    """

    #: Labels of the groups in the order of the table; None if there are none.
    groups_: NDArray[Any] | None
    #: The group that this is the curve of; None: everybody.
    group_: Any

    def of_group(self, label: Any) -> Self:
        """Return the curve of one group, which costs nothing: it is in the same release.

        Parameters
        ----------
        label : object
            One of ``groups``.

        Returns
        -------
        estimator
            Fitted, with the same methods. Its ``release_`` is the whole one.
        """
        curve = self._curve
        labels = [] if self.groups_ is None else self.groups_.tolist()
        if np.ndim(label) > 0 or label not in labels:
            raise ValueError(f"label must be one of the groups {labels}, got {label!r}.")
        view = copy.copy(self)
        view._released = curve.of_group(label)
        view.group_ = label
        view._shown = Shown(self._shown.timeline, str(label), self._shown.alpha)
        view.median_survival_time_ = view.percentile(0.5)
        return view

    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals of the cumulative hazards at the ends of the bands.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Not used: nothing is drawn.

        Returns
        -------
        pandas.DataFrame
            Indexed by the ends, columns ``lower`` and ``upper``.
        """
        band = self.survival_band(self._curve.ends, level)
        with np.errstate(divide="ignore"):
            ends = np.abs(np.log(band[["upper", "lower"]].to_numpy()))
        return pd.DataFrame(ends, index=band.index, columns=["lower", "upper"])

    def survival_band(
        self, times: ArrayLike, level: float = 0.95, n_resamples: int = 500
    ) -> pd.DataFrame:
        """Return pointwise intervals of the survival function.

        They allow for sampling and for privacy noise, follow from the release alone, and hold the
        estimate. What smoothing did to the estimate is no part of them.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Not used: nothing is drawn.

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = fraction("level", level), times_argument(times)
        curve = self._curve
        survival = np.exp(-curve.at(t))
        lower, upper = curve.law.survival_interval(t, level, curve.causes.number)
        ends = np.column_stack([np.minimum(lower, survival), np.maximum(upper, survival)])
        return pd.DataFrame(ends, index=t, columns=["lower", "upper"])

    def smoothed_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the hazard, as a smooth prior and the noisy table have it; positive.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not beyond ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Of events per unit of time, indexed by the times.
        """
        t, curve = times_argument(times), self._curve
        rate = curve.of_events(curve.fit.masses).sum(axis=0) / np.diff(curve.timeline)
        band = np.minimum(np.searchsorted(curve.ends, t), rate.size - 1)
        return pd.Series(rate[band], index=t, name=label or self.label)

    # --------------------------------------------------------------------------------------------
    # To be looked at
    # --------------------------------------------------------------------------------------------

    @property
    def event_table(self) -> pd.DataFrame:
        """Noisy counts by band, as lifelines has exact ones by time: fractions of people, too.

        Each is what was likely counted, by the released table and all else that is public: not
        negative, and together as many as there were.
        """
        curve = self._curve
        fit = curve.fit
        observed = np.append(0.0, curve.of_events(fit.counts).sum(axis=0))
        censored = np.append(0.0, fit.counts[-1])
        censored[-1] += fit.stayed
        return pd.DataFrame(
            {
                "removed": observed + censored,
                "observed": observed,
                "censored": censored,
                "entrance": np.append(fit.n_people, np.zeros(observed.size - 1)),
                "at_risk": np.append(fit.n_people, fit.at_risk[:-1]),
            },
            index=pd.Index(curve.timeline, name="event_at"),
        )

    def number_at_risk(self, times: ArrayLike) -> pd.Series:
        """Return how many people were still followed at some times: noisy, and between bands even.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t, curve = times_argument(times), self._curve
        found = np.interp(t, curve.timeline, curve.fit.at_risk)
        return pd.Series(found, index=t, name="at_risk")

    @property
    def summary(self) -> pd.DataFrame:
        """Numbers at risk, survival and its intervals at some times."""
        knots = self._curve.timeline
        times = knots[np.unique(np.linspace(0, knots.size - 1, N_ROWS).round().astype(int))]
        ends = self.survival_band(times, self._level)
        name = f"{100 * self._level:g}%"
        return pd.DataFrame(
            {
                "at risk": self.number_at_risk(times).to_numpy(),
                "survival": self.survival_function_at_times(times).to_numpy(),
                f"survival lower {name}": ends["lower"].to_numpy(),
                f"survival upper {name}": ends["upper"].to_numpy(),
            },
            index=pd.Index(times, name="timeline"),
        )

    def print_summary(self, decimals: int = 2) -> None:
        """Print what was promised, medians, and the curve of each group at some times.

        Parameters
        ----------
        decimals : int, default=2
        """
        print(headline(self.release_))
        for curve in self._curves():
            middle = curve.percentile_interval()
            shown = ", ".join(f"{end:.{decimals}f}" for end in middle[1:])
            who = "" if curve.group_ is None else f"{curve.group_}: "
            level = f"{100 * self._level:g} %"
            print(f"{who}median {middle.estimate:.{decimals}f} ({level}: {shown})")
            print(curve.summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def _curves(self) -> list[Self]:
        """Return the curves of all groups, or the one that this is."""
        if self.groups_ is None or self.group_ is not None:
            return [self]
        return [self.of_group(label) for label in self.groups_.tolist()]


def _exact(release: Release, n_curves: int, n_causes: int, n_bands: int) -> dict[str, FloatArray]:
    """Return curves without privacy, if the release holds them: sums of tables have none."""
    if not math.isinf(release.made_by.epsilon) or COUNT_VARIANCE in release.values:
        return {}
    survival = released_array(release, "survival", (n_curves, n_bands))
    incidence = released_array(release, "incidence", (n_curves, n_causes, n_bands))
    falls = survival.min() >= 0.0 and (np.diff(survival, axis=-1, prepend=1.0) <= 0.0).all()
    rises = (np.diff(incidence, axis=-1, prepend=0.0) >= 0.0).all()
    if not (falls and rises and incidence.sum(axis=1).max() <= 1.0 + 1e-9):
        raise ValueError("values of the release must hold curves that fall or rise.")
    return {"survival": survival, "incidence": incidence}


class KaplanMeierCurve(TableCurve):
    """A table as a survival function."""

    short_name = "KM"


class DPKaplanMeierFitter(ExitCurves):
    r"""Kaplan-Meier curves of everybody and of groups, which protect every record they are made of.

    One table is released, of how many people of each group had their event, or were censored, in
    each band of time, with noise. It is epsilon-differentially private under replacement of one
    record: whatever one person's time, event and group are, the probability of any release changes
    by a factor of at most :math:`e^\epsilon`. All groups together cost epsilon once; curves,
    intervals, medians, means and tests follow from the table.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the Kaplan-Meier estimate of
        the times themselves at the ends of the bands, for reference, without any privacy.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    n_intervals : int or "auto", default="auto"
        Bands of time. "auto" is by the number of records times epsilon, per group: 4 to 200.
    breakpoints : {"early", "equal"} or array-like of shape (n_intervals - 1,), default="early"
        Where bands end. "early": at ``max_time * (k / n_intervals) ** 2``, as curves are steepest
        at the start. "equal": bands of one length, such as years. Or these times; public.
    groups : list of labels or None, default=None
        Public: of all groups that there could be, such as ``["treated", "control"]``. None: no
        groups; if ``fit`` is given some, they are read from the records, with status "none" and a
        PrivacyLeakWarning.
    alpha : float, default=0.05
        Intervals of tables such as ``confidence_interval_`` cover 1 - alpha.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    survival_function_, cumulative_density_, cumulative_hazard_ : pandas.DataFrame
        Curves at the times of ``timeline``. The cumulative hazard is Nelson and Aalen's curve: the
        negative logarithm of the survival function, as hazards are continuous.
    confidence_interval_ : pandas.DataFrame
        Pointwise intervals of ``survival_function_``, for sampling and for privacy noise.
    median_survival_time_ : float
        In the unit of ``max_time``; infinite if survival does not fall to one half.
    event_table : pandas.DataFrame
        Noisy counts by band.
    timeline : ndarray
        Times of the tables: the ends of the bands, from 0 on.
    groups_ : ndarray or None
        Labels of the groups; :meth:`of_group` returns the curve of one.
    group_ : object or None
        Label of the group that a curve of :meth:`of_group` is of; None is everybody.
    guarantee_ : PrivacyGuarantee
        What was promised, about what, under which assumptions.
    release_ : Release
        The thing to publish; ``DPKaplanMeierFitter.from_release`` rebuilds the model.
    n_features_in_ : int
        Columns of X, which are not used; 0 if there was none.
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError
        If a parameter breaks its rule, or times are negative or not finite, or events are not
        0 and 1, or a group is not among ``groups``, or lengths differ. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    DPAalenJohansenFitter : Competing risks.
    skdpsurv.survival.comparisons.logrank_test : Whether two groups differ.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and sensitivity:
    docs/proofs/curves. Between the ends of bands the cumulative hazard is a straight line: the
    curve has no steps, as times of events are private.

    Estimates are smooth where noise hides the counts, and come to the counts where it does not.
    Intervals are of the curve of the population, pointwise, and not smoothed; they are wide where
    few are at risk, and from 0 to 1 for a group of nobody. docs/benchmarks/curves has the coverage
    measured.

    Times beyond ``max_time`` are clipped silently by design: how many were is private.

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

    _curve_type: ClassVar[type[TableCurve]] = KaplanMeierCurve

    def _formula(self, script: Script) -> str:
        knots = ", ".join(map(script.number, self._curve.timeline))
        hazards = ", ".join(map(script.number, self._curve.at_knots))
        return (
            "survival(time) = exp(-hazard(time)), hazard linear between\n"
            f"times   {knots}\nhazards {hazards}"
        )
