"""DPKaplanMeierFitter and DPNelsonAalenFitter: private curves of survival and of hazard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from skdpsurv.survival.exit_curves import ExitCurves, TableCurve

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["DPKaplanMeierFitter", "DPNelsonAalenFitter"]


class KaplanMeierCurve(TableCurve):
    """A table as a survival function."""

    short_name = "KM"


class NelsonAalenCurve(TableCurve):
    """A table as a cumulative hazard."""

    short_name = "NA"
    main = predicts = "cumulative_hazard"


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
        Curves at the times of ``timeline``.
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
    DPNelsonAalenFitter : The same table as a cumulative hazard.
    DPAalenJohansenFitter : Competing risks.
    skdpsurv.statistics.logrank_test : Whether two groups differ.

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
        knots = ", ".join(map(script.number, self._exits.timeline))
        hazards = ", ".join(map(script.number, self._exits.at_knots))
        return (
            "survival(time) = exp(-hazard(time)), hazard linear between\n"
            f"times   {knots}\nhazards {hazards}"
        )


class DPNelsonAalenFitter(DPKaplanMeierFitter, reads=("DPKaplanMeierFitter",)):
    r"""Nelson-Aalen cumulative hazards of everybody and of groups, which protect every record.

    A view of the table that :class:`DPKaplanMeierFitter` releases, and it reads that one's
    releases. Parameters, privacy and costs are the same.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf``: the Nelson-Aalen estimate of the
        times themselves at the ends of the bands, without any privacy.
    max_time : float
        Public horizon, in the unit of the times.
    n_intervals : int or "auto", default="auto"
        Bands of time.
    breakpoints : {"early", "equal"} or array-like, default="early"
        Where bands end.
    groups : list of labels or None, default=None
        Public labels of groups.
    alpha : float, default=0.05
        Intervals of tables cover 1 - alpha.
    random_state : None or int, default=None
        An int makes the fit reproducible and therefore not private.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    cumulative_hazard_ : pandas.DataFrame
        At the times of ``timeline``. With finite epsilon this is the negative logarithm of the
        survival function, as hazards are continuous; without privacy, Nelson and Aalen's sum.
    confidence_interval_ : pandas.DataFrame
        Pointwise intervals of ``cumulative_hazard_``, for sampling and for privacy noise.
    survival_function_, cumulative_density_, event_table, timeline, groups_, group_
        As those of :class:`DPKaplanMeierFitter`.
    guarantee_ : PrivacyGuarantee
        What was promised.
    release_ : Release
        The thing to publish.
    n_features_in_ : int
        Columns of X, which are not used.

    See Also
    --------
    DPKaplanMeierFitter : Where all is explained.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter, DPNelsonAalenFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> y = load_flchain().y
    >>> curve = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0).fit(y["futime"], y["death"])
    >>> hazard = DPNelsonAalenFitter.from_release(curve.release_)
    >>> print(f"{hazard.predict(4000):.1f}")
    0.3
    """

    _curve_type = NelsonAalenCurve
