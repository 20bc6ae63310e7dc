"""DPDiscreteTimeSurvival: a private hazard model over discrete time.

``pilot_share`` of epsilon pays for a life table and the covariates' mean, by which the fit is
centred, clipped and capped; ``recalibration_share`` for a risk table, which corrects the released
hazard; ``inference_share`` for standard errors.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from skdpsurv.base.private_estimator import Caveat
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.data.shape import Shape
from skdpsurv.data.stratified_columns import stratified
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, auto_or, instance, number_in, optional, positive, word_or
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.references import REAL_ARITHMETIC
from skdpsurv.inference import least_noise
from skdpsurv.likelihoods.links import steepness
from skdpsurv.mechanisms.perturbation import NAMES, candidates, check_delta
from skdpsurv.priors import Evidence, PlannedScales, Promises, Terms, is_prior, is_scales
from skdpsurv.release import Release
from skdpsurv.survival.hazards.estimand import moments_of
from skdpsurv.survival.hazards.fit import PILOT_RECORDS
from skdpsurv.survival.hazards.fit_plan import fit_of, perturbed_plan
from skdpsurv.survival.hazards.late_entry import LateEntryModel
from skdpsurv.survival.hazards.maximum import HazardMaximum
from skdpsurv.survival.hazards.model import hazard_plan
from skdpsurv.survival.hazards.posterior import LangevinFit, PosteriorDraw, PosteriorSampling
from skdpsurv.survival.hazards.spreads import SPREADS_SHARE
from skdpsurv.survival.hazards.strata import n_strata, refuse_with_strata

#: Share of epsilon for the recalibration.
RECALIBRATION_SHARE = 0.1


class DPDiscreteTimeSurvival(
    LateEntryModel,
    word="survival",
    analysis="regression",
    moments=moments_of,
    methods={"psgld": PosteriorSampling},
    adds_up={
        "same": ("max_time", "n_intervals", "n_knots", "link"),
        "common": ("the baseline", "baseline_coef"),
        "n_common": lambda release: int(release.parameters["n_knots"]),
    },
):
    r"""Discrete-time survival regression that protects every record of the training data.

    The released coefficients and baseline hazard are epsilon-differentially private under
    replacement of one record: one person's covariates, time and event status change the probability
    of any release by a factor of at most :math:`e^\epsilon`. With ``method="psgld"`` and no delta
    this guarantee is asymptotic: it holds only in the limit of a Markov chain.

    Time up to ``max_time`` is cut into ``n_intervals`` equal intervals. The hazard h of interval s
    for a person with covariates x is :math:`g(h) = \gamma(s) + x^\top\beta`, with g the link and
    :math:`\gamma` a natural cubic spline; predicted hazards are recalibrated (``recalibration_``).

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit,
        for reference, without any privacy: centre and row bound are then ignored. A cap is used
        only if it is a number, and gives the capped fit, which private fits estimate.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail. 0 is pure differential privacy. A
        small delta, at most :math:`1/n^2`, allows Gaussian noise, which is smaller for many
        columns. It is used only if it is smaller, or, with ``inference_share``, at most half on
        second moments and 1.5 times as large; otherwise ``guarantee_`` has ``delta=0``.
    method : {"auto", "obj_pert", "noisy_gd", "out_pert", "psgld"} or PosteriorSampling
        Objective perturbation; noisy gradient descent, which needs a delta; output perturbation,
        which is simpler and less accurate. The default "auto" takes whichever of the first two
        needs less noise, by public numbers alone. "psgld",
        :class:`~skdpsurv.PosteriorSampling` with its defaults, is one draw of a sanitised
        posterior. Without a delta it has an **asymptotic guarantee only**: nothing is proved about
        a chain of finite length. Its likelihood is then uncapped and there is no pilot estimate, so
        that ``max_cumulative_hazard`` and ``pilot_share`` are not used. With a delta and
        ``PosteriorSampling("psgld")`` the guarantee is **proved, of the chain that was run**: each
        step's gradient is a Gaussian mechanism. Likelihood, cap, pilot and recalibration are then
        those of the other methods.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, which
        describes the columns of X by public bounds and categories. It is cloned, learns nothing,
        and is part of ``release_``. None: X holds numbers, taken as they are.
    strata : str or None, default=None
        Name of a category of ``columns``, a :class:`~skdpsurv.data.PublicColumns`, that tells
        groups apart, such as sites, whose hazards need not be proportional: each of its labels has
        a baseline of its own, and all share the coefficients. It is no covariate then; interactions
        with it are. Coefficients have up to 4 % more noise, and each baseline is learnt from its
        own people. None: one baseline.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    n_intervals : int, default=200
        q. A censored record counts as having survived its interval, so a coarse grid underrates
        hazards if censoring is common.
    n_knots : int, default=3
        Knots of the baseline's spline, at most ``n_intervals``; 1 is a constant, 2 a straight line.
    link : {"logit", "cloglog", "probit"}, default="logit"
        Proportional odds of the hazard; proportional hazards as in Cox regression; normal
        threshold.
    data_norm : float or "auto", default="auto"
        Public bound on the Euclidean norm of a row of X; longer rows are scaled down to it. "auto"
        is ``sqrt(n_features) / 2``, for columns in [-1, 1] as made by
        :class:`~skdpsurv.data.PublicBoundsScaler`. With ``method="psgld"`` and no delta, whose
        guarantee needs no bound, it is twice that, which clips no such row. With "auto" and
        ``columns``, each column is centred and divided by its spread before rows are scaled down:
        as ``columns`` or ``scales`` have it; or, with ``inference_share``, by a private estimate
        where ``n * epsilon`` is above some 80 times the number of features.
    alpha : float, default=0.0
        Least ridge, on the scale of the mean loss, in addition to the ridge that privacy needs.
    max_cumulative_hazard : float, "auto" or None, default="auto"
        Public cap on the cumulative hazard with which one person can move the fit. A low cap means
        little noise, a high one little bias. "auto" is 0.8 to 5, growing with ``n * epsilon`` per
        parameter; it follows the level of the pilot's life table, down to 0.8 and up to at most 3.
        None: no cap (link="logit" only), and much more noise.
    prior_event_rate : float, default=0.5
        Public guess of the share of people with an event by ``max_time``. The fit is shrunk towards
        the baseline that it implies.
    pilot_share : float or "auto", default="auto"
        Share of epsilon spent on a pilot estimate: a private life table and a private mean of the
        covariates, which the fit is shrunk to instead of the guess. 0 trusts the guess.
        Skipped if ``n * epsilon`` is below 200. "auto" is 0.1; 0.15 where spreads of the columns
        are asked for, too (see ``data_norm``); and 0.033 where ``columns`` or ``scales`` know them.
    recalibration_share : float or "auto", default="auto"
        Share of epsilon spent, after the coefficients, on a private table of their scores over
        time. It corrects predicted survival: level and course of the hazard, and the spread of
        the scores, which noise in coefficients overstates. With 0, ranking is a little better, and
        absolute risks are mostly much worse if noise is strong or events are many. Skipped
        if ``n * epsilon`` is below 200, or with ``strata`` below 2,500 for each; not used with
        ``method="psgld"`` without a delta. "auto" is 0.1, and 0 where effects change over time,
        for which there is no such table.
    inference_share : float, default=0.0
        Share of epsilon spent on second moments of the covariates and an event-count table, which
        ``summary`` needs for standard errors: 0.3 is a good choice. 0: no standard errors. Skipped
        if ``n * epsilon`` is below 200.
    scales : Release or None, default=None
        Released Table 1 of these columns (``DPTableOne``), whose means and standard deviations
        centre and scale the columns at no cost, where these state no ``spread``; or an earlier fit
        of this class with ``columns``, for its own scales. Whoever is in it, too, has the sum of
        both epsilons. Needs ``columns``.
    prior : Release or None, default=None
        Release of another fit, or of a paper (:meth:`Release.from_coefficients`). Its log hazard
        ratios are mapped between columns, bounds, grids and links. They are used if the
        released estimate agrees with their direction, weighted by both standard errors, at no
        cost. A prior that describes its columns needs ``columns``. The prior's people have its own
        guarantee. Not used with an infinite epsilon.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, on the scale of the features: those of X, or of ``columns``. Private release.
    baseline_coef_ : ndarray of shape (n_knots,), or (n_strata, n_knots)
        Coefficients of the baseline in the spline basis of the paper; with ``strata`` those of each
        label, in order. Where ``columns`` state steps of effects, those of the baseline's steps
        come after them. Private release.
    over_time_coef_ : ndarray of shape (n_terms,)
        Coefficients of products of columns with functions of time, where ``columns`` state
        ``over_time``, in the order of ``summary``; ``coef_`` is then the mean of an effect over the
        time up to ``max_time``. Private release.
    recalibration_ : Recalibration
        Correction of predicted hazards: a ``slope`` of the risk score, and a ``shift`` of the
        baseline at ``knots``, shares of the horizon; with ``strata`` a row of shifts for each
        label. Slope 1 and no shift without a recalibration. Private release.
    inference_ : Inference or None
        Unshrunk estimates and their covariance, as in ``summary``; None without
        ``inference_share``. Private release.
    max_cumulative_hazard_ : float or None
        The cap H of a private fit: its ``summary`` is about the coefficients that minimise the
        expected loss capped at H (``estimand``). They are those of the model if it is true and few
        people reach H. None without a cap or privacy. Private release.
    unique_times_ : ndarray of shape (n_intervals,)
        Right ends of the intervals, in the unit of ``max_time``. Public: never the data's event
        times.
    guarantee_ : PrivacyGuarantee
        The privacy guarantee, with its assumptions.
    release_ : Release
        The result to publish; ``DPDiscreteTimeSurvival.from_release`` rebuilds the model.
    columns_ : transformer or None
        Fitted copy of ``columns``, applied to rows passed to ``predict``. Public.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError
        If a parameter is not allowed, or the data are not finite or not of the right shape. No
        budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded, before any record is read.

    See Also
    --------
    skdpsurv.data.PublicBoundsScaler : Columns to [-1, 1] by public bounds.
    skdpsurv.published.PublishedDiscreteTimeSurvival : The algorithms of the paper [1]_.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/discrete_time. The guarantee covers one fit. It does not cover a choice among fits
    by their scores on private records.

    Rows that are longer than ``data_norm`` and times beyond ``max_time`` are clipped silently by
    design, as the number of clipped rows is private.

    References
    ----------
    .. [1] T. T. Nguyen and S. C. Hui, "Differentially private regression for discrete-time survival
       analysis", CIKM 2017, arXiv 1708.07436.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpsurv import DPDiscreteTimeSurvival, PublicBoundsScaler
    >>> from skdpsurv.datasets import load_flchain
    >>> data = load_flchain()
    >>> scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    >>> model = make_pipeline(scaler, DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time))
    >>> model = model.fit(data.X, data.y)
    >>> model[-1].guarantee_.status
    'proved'
    >>> bool(model.score(data.X, data.y) > 0.75)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "method": word_or(PosteriorSampling, "auto", *NAMES, "psgld"),
        "max_cumulative_hazard": optional(auto_or(positive())),
        "prior_event_rate": number_in(1e-9, 1.0 - 1e-9),
        "pilot_share": auto_or(number_in(0.0, 1.0, closed="left")),
        "recalibration_share": auto_or(number_in(0.0, 1.0, closed="left")),
        "inference_share": number_in(0.0, 1.0, closed="left"),
        "strata": optional(instance(str, "text")),
        "prior": is_prior,
        "scales": is_scales,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        strata: str | None = None,
        method: str | PosteriorSampling = "auto",
        max_time: float | None = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        link: str = "logit",
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        max_cumulative_hazard: float | str | None = "auto",
        prior_event_rate: float = 0.5,
        pilot_share: float | str = "auto",
        recalibration_share: float | str = "auto",
        inference_share: float = 0.0,
        scales: Release | None = None,
        prior: Release | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.strata = strata
        self.method = method
        self.max_time = max_time
        self.n_intervals = n_intervals
        self.n_knots = n_knots
        self.link = link
        self.data_norm = data_norm
        self.alpha = alpha
        self.max_cumulative_hazard = max_cumulative_hazard
        self.prior_event_rate = prior_event_rate
        self.pilot_share = pilot_share
        self.recalibration_share = recalibration_share
        self.inference_share = inference_share
        self.scales = scales
        self.prior = prior
        self.random_state = random_state
        self.accountant = accountant

    @property
    def _is_asymptotic(self) -> bool:
        """Whether privacy rests on the convergence of a chain, not on the noise of its steps."""
        return self._sampling is not None and not self.delta

    def as_fitted(self) -> Self:
        own = super().as_fitted()
        if isinstance(own.strata, str):  # else the checks of parameters, which come next, refuse
            own.columns = stratified(own.columns, own.strata)
        return own

    def _check_together(self) -> None:
        super()._check_together()
        if self.strata is not None:
            stratified(self.columns, self.strata)
        sampling = self._sampling
        check_delta(self.method, self.delta)
        if sampling is not None and self.delta:
            sampling.check_noisy()
        pilot: Any = SPREADS_SHARE if isinstance(self.pilot_share, str) else self.pilot_share
        stated: Any = self.recalibration_share
        recalibration = RECALIBRATION_SHARE if isinstance(stated, str) else stated
        shares = pilot, recalibration, self.inference_share
        splits = not self._is_asymptotic and not math.isinf(self.epsilon)
        if splits and not sum(shares) < 1.0:
            raise ValueError(
                "pilot_share, recalibration_share and inference_share must sum to less than 1."
            )
        if self.inference_share and sampling is not None:
            raise ValueError("inference_share must be 0 with method='psgld'.")
        if self.prior is not None and sampling is not None:
            raise ValueError("prior must be None with method='psgld'.")
        if self.scales is not None:
            self._check_scales(self.scales)
        uncapped = self.max_cumulative_hazard is None and not self._is_asymptotic
        if uncapped and self.link != "logit" and not math.isinf(self.epsilon):
            raise ValueError(f"max_cumulative_hazard must be a number with link={self.link!r}.")

    def _check_scales(self, scales: Release | PlannedScales) -> None:
        Promises.of(scales, "scales")
        if isinstance(scales, Release) and Release.kinds[scales.estimator]._card.moments is None:
            raise ValueError(
                f"scales must be a release of a table or a fit, got {scales.estimator:.60}."
            )
        if math.isinf(scales.guarantee.epsilon):
            raise ValueError(
                "scales must be a release with a finite epsilon: spreads of records without noise "
                "are not public."
            )
        if self.columns is None or not isinstance(self.data_norm, str):
            raise ValueError("scales must be None without columns, or with a data_norm.")

    def _caveats(self, shape: Any) -> list[Caveat]:
        found = super()._caveats(shape)
        if self.scales is not None:
            leaks = Promises.of(self.scales, "scales").leaks()
            found += [Caveat(self.scales.guarantee.status, text) for text in leaks]
        if self._is_asymptotic:
            found.append(Caveat("asymptotic", ""))
        return found

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options)
        if self.inference_share:
            found += self._few_intervals(shape, PILOT_RECORDS)
        return found

    def _plan(self, shape: Shape) -> Plan:
        cap, sampling = self.max_cumulative_hazard, self._sampling
        model = self._model(
            shape,
            exact_rows=self._is_asymptotic,
            max_cumulative_hazard=cap if cap is None or isinstance(cap, str) else float(cap),
            prior_event_rate=float(self.prior_event_rate),
            has_entry=shape.has_entry,
            n_strata=n_strata(self),
        )
        changing = model.changing is not None
        # Numbers may be of NumPy's narrow types, in which shares of them would be rounded.
        epsilon, alpha = float(self.epsilon), float(self.alpha)
        if math.isinf(epsilon):
            return hazard_plan(model, epsilon, alpha, HazardMaximum(model))
        if changing:
            self._refuse_over_time()
        if shape.has_entry:
            self._refuse_with_entry()
        if self.strata is not None:
            refuse_with_strata(self)
        if sampling is not None and self._is_asymptotic:
            draw = PosteriorDraw(model, epsilon, alpha, sampling)
            return hazard_plan(model, epsilon, alpha, draw, assumed=(REAL_ARITHMETIC,))
        recalibration: Any = self.recalibration_share
        if isinstance(recalibration, str):
            recalibration = 0.0 if changing else RECALIBRATION_SHARE
        requested = recalibration, self.inference_share
        share: Any = (
            self.pilot_share if isinstance(self.pilot_share, str) else float(self.pilot_share)
        )
        shares, delta = (share, *map(float, requested)), float(self.delta)
        if sampling is not None:
            epochs, budget = sampling.n_epochs, (alpha, shares, delta)
            n_steps = None if isinstance(epochs, str) else int(epochs)
            options = {**self._scaling(), "n_steps": n_steps}
            fit, prices = fit_of(model, epsilon, "psgld", *budget, LangevinFit, **options)
            return perturbed_plan(fit, prices, delta, sampling.verbose)
        options = {"distribution": self._noise_law, **self._scaling()}
        options["prior"] = self._read_prior("hazard", model.n_features)
        plans = [
            perturbed_plan(*fit_of(model, epsilon, method, alpha, shares, used, **options), used)
            for method, used in candidates(str(self.method), delta)
        ]
        return least_noise(plans)

    def _scaling(self) -> dict[str, Any]:
        """Return what is public of the columns, and what the people behind it were promised."""
        promises = Promises.of(self.scales, "scales")
        return {"known": self._known_columns(), "promises": promises}

    def _known_columns(self) -> KnownColumns | None:
        """Return what is public of the features, if rows are to be scaled by it."""
        if self.columns is None or not isinstance(self.data_norm, str):
            return None
        features = self._features(self.columns)
        known = KnownColumns.of(features)
        scales: Any = self.scales
        if scales is None or known is None:
            return known
        is_planned = isinstance(scales, PlannedScales)
        if (release := scales.release if is_planned else scales) is not None:
            source: Any = Release.kinds[release.estimator]
            known = known.released(features, source._card.moments(source.from_release(release)))
        # A plan may not depend on what noise leaves unknown.
        return known.completed() if is_planned else known

    _is_evidence_of = ("hazard",)

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence | None, Terms]:
        """Return a release's evidence about log hazard ratios, and the features it is about."""
        built = cls.from_release(release)
        terms = Terms.of(release.features, release.transformer())
        own = Evidence.of(release, built.coef_.shape)
        if own is None:
            return None, terms
        # On the scale of log hazards, by their derivative along the baseline.
        mean = np.atleast_2d(built.baseline_coef_).mean(axis=0)
        baseline = built._link.survival(built._basis @ mean)
        return own.scaled(steepness(baseline)), terms
