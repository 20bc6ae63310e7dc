"""DPWeibullFitter: a private Weibull distribution of survival times."""

from __future__ import annotations

from skdpsurv.survival.weibull_curve import WeibullCurve
from skdpsurv.survival.weibull_plans import TIGHT

__all__ = ["DPWeibullFitter"]


class DPWeibullFitter(WeibullCurve):
    r"""Weibull distribution of survival times that protects every record it is fitted on.

    What is released (shape, scale and number of events) is epsilon-differentially private under
    replacement of one record: whatever one person's time and event status are, the probability of
    any release changes by a factor of at most :math:`e^\epsilon`.

    The survival function is :math:`S(t) = \exp(-(t/\lambda)^\rho)`, as in lifelines.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit,
        for reference, without any privacy: lifelines' where no time is below
        ``max_time * exp(-omega)``, and where some are, that of ``fit_interval_censoring``, of
        events there only known to have been before.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    omega : float, default=5.0
        Of events before ``max_time * exp(-omega)``, zero among them, only that is used. Public.
        Noise grows with omega; as it falls, less is used of small times.
    max_shape : float, default=10.0
        Largest shape. Public.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape. "auto" is 0.45 to 0.75,
        by the events per follow-up time, as far as these have been released.
    alpha : float, default=0.05
        Intervals of tables such as ``confidence_interval_`` cover 1 - alpha.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    rho_ : float
        Shape. Private release.
    lambda_ : float
        Scale, in the unit of ``max_time``: the time by which 63 % had their event. Private release.
    median_survival_time_ : float
        In the unit of ``max_time``; follows from the two.
    guarantee_ : PrivacyGuarantee
        What was promised, about what, under which assumptions.
    release_ : Release
        The thing to publish; ``DPWeibullFitter.from_release`` rebuilds the model.
    n_features_in_ : int
        Columns of X, which are not used; 0 if there was none.
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError
        If a parameter breaks its rule, or times are negative or not finite, or events are not
        0 and 1, or lengths differ. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    DPDiscreteTimeSurvival : Survival that depends on covariates.
    skdpsurv.published.PublishedWeibullFitter : The paper's own ladder [1]_, and its baselines.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorems and sensitivities:
    docs/proofs/ladder. Times are counted in 2,048 bins of log time first, each 0.25 % wide at the
    default omega; ``epsilon=numpy.inf`` uses the times themselves, and is lifelines' fit up to
    ``max_time``: of omega only times of 0 know, which are taken for times before the least.

    Noise is added to the number of events, the follow-up time and the sum of log event times; a
    ladder draws the shape from what is left. Events before ``max_time * exp(-omega)`` are taken for
    what they are. Records censored before it count as having been at risk for half of what they
    would have been until then.

    Intervals simulate records from Weibull distributions around the released one, and hold the
    shapes for which the released one is not extreme; they are true if times are Weibull, and always
    hold the estimate. docs/benchmarks/weibull has the coverage measured. How records were censored
    is only known as far as the number of events tells. A simulated fit takes a few milliseconds,
    whatever the number of records.

    Times beyond ``max_time`` or below the least are clipped silently by design: how many were
    clipped is private. Releases of version 1 took small times as exact; they load, and their
    intervals are those of the mechanism that made them.

    References
    ----------
    .. [1] T. T. Nguyen and S. C. Hui, "Privacy-preserving mechanisms for parametric survival
       analysis with Weibull distribution", TrustCom 2017, arXiv 1708.04517.
    .. [2] K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and sampling in private
       data analysis", STOC 2007.

    Examples
    --------
    >>> from skdpsurv import DPWeibullFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> y = load_flchain().y
    >>> fitter = DPWeibullFitter(epsilon=1.0, max_time=5200.0).fit(y["futime"], y["death"])
    >>> bool(0.9 < fitter.rho_ < 1.0)
    True
    >>> print(f"{fitter.predict(5 * 365.25):.1f}")
    0.9
    """

    _way = TIGHT
