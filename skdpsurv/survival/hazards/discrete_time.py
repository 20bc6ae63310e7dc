"""DPDiscreteTimeSurvival: a private hazard model over discrete time.

A first look spends ``pilot_share`` of epsilon on a life table, which gives the baseline to shrink
to, and on the covariates' mean: rows are centred by it and clipped to the spread that is left. When
coefficients are released, ``recalibration_share`` pays for a table of their scores over time, which
corrects level, course and slope of the hazard, and ``inference_share`` for standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from skdpsurv.base import Weakness
from skdpsurv.data.shape import Shape
from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.checks import Check, auto_or, number_in, optional, positive, word_or
from skdpsurv.dp.plan import Measurement, Node, Plan, Sequential
from skdpsurv.dp.privacy_cost import (
    Price,
    epsilon_or_mu,
    remaining_budget,
    share_of,
    split_gaussian,
    subtract,
)
from skdpsurv.dp.references import REAL_ARITHMETIC
from skdpsurv.likelihoods.links import LINKS, steepness
from skdpsurv.mechanisms.perturbation import NAMES, candidates, check_delta
from skdpsurv.mechanisms.vector_noise import arithmetic
from skdpsurv.priors import Evidence, Promises, Terms, is_prior
from skdpsurv.release import Release
from skdpsurv.survival.hazards.base import DiscreteTimeModel
from skdpsurv.survival.hazards.fit import (
    EXITS_PART,
    FIRST_LOOK_RECORDS,
    TABLE_PART,
    HazardFit,
    HazardMinimiser,
    LifeTable,
    RowMean,
)
from skdpsurv.survival.hazards.inference import ExitCounts, HazardMoments
from skdpsurv.survival.hazards.model import (
    HazardModel,
    MaximumLikelihood,
    hazard_plan,
    published_basis,
)
from skdpsurv.survival.hazards.posterior import (
    HazardChain,
    LangevinFit,
    PosteriorDraw,
    PosteriorSampling,
)
from skdpsurv.survival.hazards.recalibration import PLACES_PART, RiskPlaces, RiskTable


class DPDiscreteTimeSurvival(DiscreteTimeModel):
    r"""Discrete-time survival regression that protects every record of the training data.

    What is released (coefficients and baseline hazard) is epsilon-differentially private under
    replacement of one record: whatever one person's covariates, time and event status are, the
    probability of any release changes by a factor of at most :math:`e^\epsilon`. (With
    ``method="psgld"`` and no delta this guarantee is asymptotic: true only at the limit of a Markov
    chain.)

    Time up to ``max_time`` is cut into ``n_intervals`` equal intervals. The hazard h of interval s
    for a person with covariates x is :math:`g(h) = \gamma(s) + x^\top\beta`, with g the link and
    :math:`\gamma` a natural cubic spline; predicted hazards are recalibrated (``recalibration_``).

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit,
        for reference, without any privacy: centre and row bound are then ignored, and so is the
        cap, unless it is a number: then this is the capped fit, which private ones estimate.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail. 0 is pure differential privacy. A
        small one, at most :math:`1/n^2`, allows Gaussian noise, of which many columns need less: it
        is used where it is less, and else ``guarantee_`` has ``delta=0``.
    method : {"auto", "obj_pert", "noisy_gd", "out_pert", "psgld"} or PosteriorSampling
        By default "auto". Objective perturbation; noisy gradient descent, which needs a delta;
        output perturbation (simpler, and less accurate). "auto" takes that of the first two which
        needs less noise, by public numbers alone. "psgld", which is
        :class:`~skdpsurv.PosteriorSampling` with its defaults, is one draw of a sanitised
        posterior. Without a delta it has an **asymptotic guarantee only**: epsilon holds for the
        law that its Markov chain tends to, and nothing is proved about a chain of finite length,
        whatever its diagnostics show. Its likelihood is uncapped and it takes no first look, so
        that ``max_cumulative_hazard`` and ``pilot_share`` do not enter, and it works with every
        link. With a delta and ``PosteriorSampling("psgld")`` the guarantee is **proved, of the
        chain that was run**: each step's gradient is a Gaussian mechanism. Likelihood, cap, first
        look and recalibration are then those of the other methods.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as a :class:`~skdpsurv.data.PublicColumns`:
        what the columns of X hold, by public bounds and categories. It is cloned, learns nothing,
        and ``release_`` then stands alone. None: X holds numbers, taken as they are.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    n_intervals : int, default=200
        q. A censored record counts as having survived its interval, so a coarse grid underrates
        hazards where censoring is common.
    n_knots : int, default=3
        Knots of the baseline's spline, at most ``n_intervals``; 1 is a constant, 2 a straight line.
    link : {"logit", "cloglog", "probit"}, default="logit"
        Proportional odds of the hazard; proportional hazards as in Cox regression; normal
        threshold.
    data_norm : float or "auto", default="auto"
        Public bound on the Euclidean norm of a row of X; longer rows are scaled down to it. "auto"
        is ``sqrt(n_features) / 2``, meant for columns in [-1, 1] as made by
        :class:`~skdpsurv.data.PublicBoundsScaler`, or twice that, which clips none of
        them, with ``method="psgld"`` and no delta: its guarantee needs no bound.
    alpha : float, default=0.0
        Least ridge, on the scale of the mean loss, on top of what privacy needs anyway.
    max_cumulative_hazard : float, "auto" or None, default="auto"
        Cap on the cumulative hazard with which one person can pull at the fit. Public; needs no
        knowledge of the data. A low cap means little noise, a high one little bias: "auto" is
        0.8 to 5, growing with ``n * epsilon`` per parameter, and rises to at most 3 with the level
        of the first look's life table. None: no cap (link="logit" only), and
        much more noise.
    prior_event_rate : float, default=0.5
        Public guess of the share of people with an event by ``max_time``. The fit is shrunk towards
        the baseline that it implies.
    pilot_share : float, default=0.1
        Share of epsilon spent on a first look, a private life table and a private mean of the
        covariates, to shrink towards what they say instead of the guess. 0 trusts the guess.
        Skipped where ``n * epsilon`` is below 200.
    recalibration_share : float, default=0.1
        Share of epsilon spent, after the coefficients, on a private table of their scores over
        time. It sets predicted survival right: level and course of the hazard, and how far the
        scores spread, which noise in coefficients overstates. 0 leaves it out: ranking is a little
        better, absolute risk mostly much worse where noise is strong or events are many. Skipped
        where ``n * epsilon`` is below 200; not used with ``method="psgld"`` without a delta.
    inference_share : float, default=0.0
        Share of epsilon spent on second moments of the covariates and a table of exits, which
        ``summary`` needs for standard errors: 0.2 is a good choice. 0 leaves them out. Skipped
        where ``n * epsilon`` is below 200.
    prior : Release or None, default=None
        What another fit has released, or a paper (:meth:`Release.from_coefficients`): log hazard
        ratios to start from, mapped between columns, bounds, grids and links. It is used if these
        records agree with its direction, and weighed by its error and theirs; it costs nothing.
        With one that describes its columns, ``columns`` must be given. Its people have its own
        promise. Not used with an infinite epsilon.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, on the scale of the features: of X, or of what ``columns`` makes of it.
        Private release.
    baseline_coef_ : ndarray of shape (n_knots,)
        Coefficients of the baseline in the spline basis of the paper. Private release.
    recalibration_ : Recalibration
        What predicted hazards add to these two: a ``slope``, which the risk score is multiplied by,
        and a ``shift`` of the baseline at ``knots``, shares of the horizon. Slope 1 and no shift
        without a recalibration. Private release.
    inference_ : Inference or None
        Unshrunk estimates and their covariance, which ``summary`` shows; None without
        ``inference_share``. Private release.
    max_cumulative_hazard_ : float or None
        The cap H of a fit with ``inference_share``: its ``summary`` is about the coefficients that
        minimise the expected loss capped at H, which a fit with ``epsilon=numpy.inf`` and
        ``max_cumulative_hazard=H`` computes. They are those of the model where it is true and few
        people reach H. None without a cap or standard errors. Private release.
    unique_times_ : ndarray of shape (n_intervals,)
        Right ends of the intervals, in the unit of ``max_time``. Public: never the data's event
        times.
    guarantee_ : PrivacyGuarantee
        What was promised, about what, under which assumptions.
    release_ : Release
        The thing to publish; ``DPDiscreteTimeSurvival.from_release`` rebuilds the model.
    columns_ : transformer or None
        That of the fit, which reads the rows that predictions are asked for. Public.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError
        If a parameter breaks its rule, or the data are not finite or not of the right shape. No
        budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    skdpsurv.data.PublicBoundsScaler : Columns to [-1, 1] by public bounds.
    skdpsurv.published.PublishedDiscreteTimeSurvival : The algorithms of the paper [1]_.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/discrete_time. The guarantee covers one fit; choosing among fits by their scores on
    private records is not covered.

    Rows that are longer than ``data_norm`` and times beyond ``max_time`` are clipped silently by
    design: how many were clipped is private.

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
        "pilot_share": number_in(0.0, 1.0, closed="left"),
        "recalibration_share": number_in(0.0, 1.0, closed="left"),
        "inference_share": number_in(0.0, 1.0, closed="left"),
        "prior": is_prior,
    }
    _methods: ClassVar[Mapping[str, Callable[..., Any]]] = {"psgld": PosteriorSampling}

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        method: str | PosteriorSampling = "auto",
        max_time: float | None = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        link: str = "logit",
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        max_cumulative_hazard: float | str | None = "auto",
        prior_event_rate: float = 0.5,
        pilot_share: float = 0.1,
        recalibration_share: float = 0.1,
        inference_share: float = 0.0,
        prior: Release | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
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
        self.prior = prior
        self.random_state = random_state
        self.accountant = accountant

    @property
    def _sampling(self) -> PosteriorSampling | None:
        """How a posterior is sampled, if it is."""
        method = self.method
        if isinstance(method, str):
            return PosteriorSampling() if method == "psgld" else None
        return method

    @property
    def _is_asymptotic(self) -> bool:
        """Whether privacy rests on the limit of a chain, and not on the noise of its steps."""
        return self._sampling is not None and not self.delta

    def _check_together(self) -> None:
        super()._check_together()
        sampling = self._sampling
        check_delta(self.method, self.delta)
        if sampling is not None and self.delta:
            sampling.check_noisy()
        looks = not self._is_asymptotic and self.epsilon < math.inf
        shares = self.pilot_share, self.recalibration_share, self.inference_share
        if looks and not sum(shares) < 1.0:
            raise ValueError(
                "pilot_share, recalibration_share and inference_share must leave something of "
                f"epsilon to the fit, got {shares[0]}, {shares[1]} and {shares[2]}."
            )
        if self.inference_share and sampling is not None:
            raise ValueError(
                "inference_share must be 0 with method='psgld': it has no standard errors."
            )
        if self.prior is not None:
            if sampling is not None:
                raise ValueError(
                    "prior must be None with method='psgld': it does not say how sure it is of its "
                    "coefficients."
                )
            Promises.of(self.prior)
        uncapped = self.max_cumulative_hazard is None and not self._is_asymptotic
        if uncapped and self.link != "logit" and not math.isinf(self.epsilon):
            raise ValueError(
                "max_cumulative_hazard must be a number with link="
                f"{self.link!r}: without a cap its gradient has no bound."
            )

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found = super()._weaknesses(shape)
        if self._is_asymptotic:
            found.append(Weakness("asymptotic", ""))
        if self.prior is not None:
            found += [Weakness("proved", text) for text in Promises.of(self.prior).leaks()]
        return found

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        doubts = super()._input_warnings(shape, X, y, **options)
        if self.inference_share:
            doubts += self._few_intervals(shape, FIRST_LOOK_RECORDS)
        return doubts

    def _plan(self, shape: Shape) -> Plan:
        cap, sampling = self.max_cumulative_hazard, self._sampling
        model = self._model(
            shape,
            exact_rows=self._is_asymptotic,
            max_cumulative_hazard=cap if cap is None or isinstance(cap, str) else float(cap),
            prior_event_rate=float(self.prior_event_rate),
        )
        # Numbers may be of NumPy's narrow types, in which shares of them would be rounded.
        epsilon, alpha = float(self.epsilon), float(self.alpha)
        if math.isinf(epsilon):
            return hazard_plan(model, epsilon, alpha, MaximumLikelihood(model))
        if sampling is not None and self._is_asymptotic:
            drawn = PosteriorDraw(model, epsilon, alpha, sampling)
            return hazard_plan(model, epsilon, alpha, drawn, numbers=REAL_ARITHMETIC)
        asked = self.pilot_share, self.recalibration_share, self.inference_share
        shares, delta = tuple(map(float, asked)), float(self.delta)
        if sampling is not None:
            steps = sampling.n_epochs
            n_steps = None if isinstance(steps, str) else int(steps)
            found = fit_of(
                model, epsilon, "psgld", alpha, shares, delta, LangevinFit, n_steps=n_steps
            )
            return perturbed_plan(*found, delta, sampling.verbose)
        prior = self._read_prior("hazard", model.n_features)
        law = self._noise_law
        fits = [
            (fit_of(model, epsilon, method, alpha, shares, used, law=law, prior=prior), used)
            for method, gaussian in candidates(str(self.method), delta)
            for used in [delta if gaussian else 0.0]
        ]
        found, used = min(fits, key=lambda fit: fit[0][0].noise)
        return perturbed_plan(*found, used)

    _is_evidence_of = ("hazard",)

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence | None, Terms]:
        """Return what a release says of log hazard ratios, and of which features."""
        built = cls.from_release(release)
        terms = Terms.of(release.features, release.transformer())
        own = Evidence.of(release, built.coef_.shape)
        return None if own is None else own.scaled(built._steepness()), terms

    def _steepness(self) -> float:
        """Return how fast log hazards rise with the linear predictor."""
        stated = self.release_.parameters
        basis = published_basis(stated["n_intervals"], stated["n_knots"])
        return steepness(LINKS[stated["link"]].survival(basis @ self.baseline_coef_))


def fit_of(
    model: HazardModel,
    epsilon: float,
    method: str,
    alpha: float,
    shares: Sequence[float],
    delta: float = 0.0,
    kind: type[HazardFit] = HazardFit,
    **options: Any,
) -> tuple[HazardFit, tuple[Price, Price, Price]]:
    """Return what is public of a fit, and the prices of look, recalibration and inference."""
    enough = model.n_records * epsilon >= FIRST_LOOK_RECORDS
    shares = [share if enough else 0.0 for share in shares]
    own: Price
    others: Any
    if delta:
        # Squares of mus add up, so that small parts cost little: they get twice their share.
        own, *others = split_gaussian(
            epsilon, delta, [1.0 - sum(shares), *(2.0 * s for s in shares)]
        )
    else:
        others = [share * epsilon for share in shares]
        own = remaining_budget(epsilon, *others)
    center, recalibration, inference = others
    looks, weighed = epsilon_or_mu(center) > 0.0, epsilon_or_mu(inference) > 0.0
    fit = kind(model, epsilon, method, alpha, own, looks=looks, weighed=weighed, **options)
    return fit, (center, recalibration, inference)


def perturbed_plan(
    fit: HazardFit, prices: tuple[Price, Price, Price], delta: float = 0.0, verbose: int = 0
) -> Plan:
    """Return the plan of a fit, with what comes before and after it at these prices."""
    center, recalibration, inference = prices
    nodes: list[Node] = []
    if epsilon_or_mu(center):
        of_table = share_of(center, TABLE_PART)
        look = (
            LifeTable(price=of_table, fit=fit),
            RowMean(price=subtract(center, of_table), fit=fit),
        )
        nodes.append(Sequential(look, center, "center"))
    point: Measurement = HazardMinimiser(fit)
    if isinstance(fit, LangevinFit):
        point = HazardChain(fit, verbose)
    nodes.append(point)
    if epsilon_or_mu(recalibration):
        of_places = share_of(recalibration, PLACES_PART)
        of_table = subtract(recalibration, of_places)
        table = (
            RiskTable(price=of_table, fit=fit),
            RiskPlaces(price=of_places, fit=fit, of_table=of_table),
        )
        nodes.append(Sequential(table, recalibration, "recalibration"))
    if epsilon_or_mu(inference):
        of_exits = share_of(inference, EXITS_PART)
        moments = HazardMoments.planned(fit, subtract(inference, of_exits))
        nodes.append(
            Sequential((ExitCounts(price=of_exits, fit=fit), moments), inference, "inference")
        )
    unit = "mu" if delta else "epsilon"
    return hazard_plan(
        fit.model,
        fit.epsilon,
        fit.alpha,
        Sequential(tuple(nodes)),
        delta,
        arithmetic(fit.law),
        # Unless a node states what it spends.
        {f"{unit}_center": 0.0, f"{unit}_recalibration": 0.0},
    )
