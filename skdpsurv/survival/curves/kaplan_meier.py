"""DPKaplanMeierFitter: private survival curves; and what a released table of exits says."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from skdpsurv.data.cells import stated_labels
from skdpsurv.dp import random_source
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.curves.exit_fit import HazardLaw, Table, fit_exits
from skdpsurv.survival.curves.fitter import ExitCurves
from skdpsurv.survival.curves.table import Causes, check_size, stated_ends, table_variance
from skdpsurv.survival.released_curve import ReleasedCurve, crossing, stated_records

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Doubles count parts of people as far as this.
MOST_RECORDS = 2**50


class TableCurve(ReleasedCurve):
    """Curves from one noisy table, of everybody and of groups: hazards at the ends of bands."""

    short_name = "KM"
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
        self._turn_to(0)

    def _turn_to(self, place: int) -> None:
        """Show everybody, or one group."""
        self.table, self.fit = self._groups[place]
        self.law = HazardLaw(self.fit, self.ends)
        self.estimates = np.cumsum(self.of_events(self.fit.hazards).sum(axis=0))

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
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the life table of the exact
        counts, for reference, without any privacy.
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

    _curve_type: ClassVar[type[TableCurve]] = TableCurve

    def _formula(self, script: Script) -> str:
        knots = ", ".join(map(script.number, self._curve.timeline))
        hazards = ", ".join(map(script.number, self._curve.at_knots))
        return (
            "survival(time) = exp(-hazard(time)), hazard linear between\n"
            f"times   {knots}\nhazards {hazards}"
        )
