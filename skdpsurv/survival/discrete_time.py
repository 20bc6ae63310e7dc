"""DPDiscreteTimeSurvival: a private hazard model over discrete time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.base import Weakness
from skdpsurv.blocks import Blocks
from skdpsurv.checks import (
    Check,
    auto_or,
    choice,
    fraction,
    horizon,
    integer,
    number_in,
    optional,
    positive,
    required_horizon,
    verbosity,
    zero_or,
)
from skdpsurv.inference import Inference, Summarised
from skdpsurv.likelihoods.links import LINKS, steepness
from skdpsurv.mechanisms.methods import NAMES, candidates, check_delta
from skdpsurv.priors import Evidence, Promises, Terms, is_prior
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.privacy.plan import Plan
from skdpsurv.references import REAL_ARITHMETIC
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.shape import Shape
from skdpsurv.survival.hazard_bands import survival_band
from skdpsurv.survival.hazard_chain import LEAST_STEPS as LEAST_NOISY_STEPS
from skdpsurv.survival.hazard_chain import LangevinFit
from skdpsurv.survival.hazard_constants import FIRST_LOOK_RECORDS
from skdpsurv.survival.hazard_formula import write_survival
from skdpsurv.survival.hazard_plans import (
    HazardModel,
    HazardRecords,
    MaximumLikelihood,
    hazard_plan,
)
from skdpsurv.survival.perturbed_plan import fit_of, perturbed_plan
from skdpsurv.survival.posterior_plan import (
    LEAST_STEPS,
    MOST_EPOCHS,
    SAMPLERS,
    PosteriorDraw,
    Schedule,
)
from skdpsurv.survival.published import PublishedPerturbation
from skdpsurv.survival.recalibration import Recalibration
from skdpsurv.survival.regression import SurvivalRegression
from skdpsurv.survival.spline import published_basis
from skdpsurv.survival.time_grid import interval_ends
from skdpsurv.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["DPDiscreteTimeSurvival"]


#: Finer grids fill the memory, and are finer than any clock in a study.
MOST_INTERVALS = 1_000_000


#: Of the chain as published.
TWICE_ITS_EPSILON = (
    "calibration='published' with method='psgld' spends twice its epsilon even in the limit: use "
    "calibration='tight'."
)


class DPDiscreteTimeSurvival(Summarised, SurvivalRegression):
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
    method : {"auto", "obj_pert", "noisy_gd", "out_pert", "psgld"}, default="auto"
        Objective perturbation; noisy gradient descent, which needs a delta; output perturbation
        (simpler, and less accurate). "auto" takes that of the first two which needs less noise, by
        public numbers alone. "psgld", one
        draw of a sanitised posterior, has without a delta an **asymptotic guarantee only**: epsilon
        holds for the law that its Markov chain tends to, and nothing is proved about a chain of
        finite length, whatever its diagnostics show.
        Its likelihood is uncapped and it takes no first look, so that ``max_cumulative_hazard``
        and ``center_share`` do not enter, and it works with every link.
        With a delta and ``sampler="psgld"`` the guarantee is **proved, of the chain that was run**:
        each step's gradient is a Gaussian mechanism. Likelihood, cap, first look and recalibration
        are then those of the other methods.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as a :class:`~skdpsurv.preprocessing.PublicColumns`:
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
        :class:`~skdpsurv.preprocessing.PublicBoundsScaler`, or twice that, which clips none of
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
    center_share : float, default=0.1
        Share of epsilon spent on a first look, a private life table and a private mean of the
        covariates, to shrink towards what they say instead of the guess. 0 trusts the guess.
        Skipped where ``n * epsilon`` is below 200.
    recalibration_share : float, default=0.1
        Share of epsilon spent, after the coefficients, on a private table of their scores over
        time. It sets predicted survival right: level and course of the hazard, and how far the
        scores spread, which noise in coefficients overstates. 0 leaves it out: ranking is a little
        better, absolute risk mostly much worse where noise is strong or events are many. Skipped
        where ``n * epsilon`` is below 200; not used with ``calibration="published"``, nor with
        ``method="psgld"`` without a delta.
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
    calibration : {"tight", "published"}, default="tight"
        "published": the algorithms of the paper to the letter, uncapped, to reproduce its tables.
        Its pSGLD is not private: its limit spends twice its epsilon, status "none".
    sampler : {"mala", "psgld"}, default="mala"
        Markov chain of ``method="psgld"``: the Metropolis-adjusted Langevin algorithm on all
        records, or the paper's stochastic gradients, whose step is corrected. One law, but the
        first gets there a hundred times faster. With a delta only "psgld", on all records.
    n_epochs : int or "auto", default="auto"
        Passes over the data: one step of "mala", n steps of "psgld" as in the paper, after 100
        passes from a draw of the prior. "auto" is 400 (to 4000 below 10,000 records), and 250. At
        least 100 with "mala", and so many that "psgld" has 1000 steps. With a delta a pass is one
        step, at least 30, and "auto" follows from public numbers: what is not used is
        ``batch_size``, ``step_size`` and ``step_exponent``.
    batch_size : int, default=200
        Records in a step of "psgld"; all of them if there are fewer.
    step_size : float or "auto", default="auto"
        First step a_1 of "psgld"; "auto" is the largest that is stable at a mode, and 1 with
        ``calibration="published"``. Refused if so small, by public numbers, that the chain would
        stay where it begins.
    step_exponent : float, default=0.51
        Steps of "psgld" shrink as ``t ** -step_exponent``, above 0.5 and at most 1.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.
    verbose : int, default=0
        1 shows a progress bar while a chain runs.

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
    skdpsurv.preprocessing.PublicBoundsScaler : Columns to [-1, 1] by public bounds.

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

    _inference_needs = (
        ", another method than 'psgld', calibration='tight', a finite epsilon",
        FIRST_LOOK_RECORDS,
    )

    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "method": choice("auto", *NAMES, "psgld"),
        "max_time": horizon(positive()),
        "n_intervals": integer(at_most=MOST_INTERVALS),
        "n_knots": integer(),
        "link": choice(*LINKS),
        "data_norm": auto_or(positive()),
        "alpha": zero_or(positive()),
        "max_cumulative_hazard": optional(auto_or(positive())),
        "prior_event_rate": number_in(1e-9, 1.0 - 1e-9),
        "center_share": number_in(0.0, 1.0, closed="left"),
        "recalibration_share": number_in(0.0, 1.0, closed="left"),
        "inference_share": number_in(0.0, 1.0, closed="left"),
        "prior": is_prior,
        "calibration": choice("tight", "published"),
        "sampler": choice(*SAMPLERS),
        "n_epochs": auto_or(integer(at_most=MOST_EPOCHS)),
        "batch_size": integer(),
        "step_size": auto_or(positive()),
        "step_exponent": number_in(0.5, 1.0, closed="right", why="Else the chain has no limit."),
        "verbose": verbosity,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        method: str = "auto",
        max_time: float | None = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        link: str = "logit",
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        max_cumulative_hazard: float | str | None = "auto",
        prior_event_rate: float = 0.5,
        center_share: float = 0.1,
        recalibration_share: float = 0.1,
        inference_share: float = 0.0,
        prior: Release | None = None,
        calibration: str = "tight",
        sampler: str = "mala",
        n_epochs: int | str = "auto",
        batch_size: int = 200,
        step_size: float | str = "auto",
        step_exponent: float = 0.51,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
        verbose: int = 0,
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
        self.center_share = center_share
        self.recalibration_share = recalibration_share
        self.inference_share = inference_share
        self.prior = prior
        self.calibration = calibration
        self.sampler = sampler
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.step_size = step_size
        self.step_exponent = step_exponent
        self.random_state = random_state
        self.accountant = accountant
        self.verbose = verbose

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> Blocks[HazardRecords]:
        horizon, n_intervals = required_horizon(self.max_time), int(self.n_intervals)
        records = super()._read(shape, X, y)

        def on_grid(block: tuple[FloatArray, BoolArray, FloatArray]) -> HazardRecords:
            rows, event, time = block
            return HazardRecords.on_grid(rows, event, time, horizon, n_intervals)

        return records.map(on_grid)

    def _stated(self, shape: Shape) -> dict[str, Any]:
        return {
            "max_time": required_horizon(self.max_time),
            "n_intervals": int(self.n_intervals),
            "n_knots": int(self.n_knots),
            "link": self.link,
        }

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "n_knots", "link")
        self.coef_ = released_array(release, "coef", (release.n_features,))
        n_knots = int(release.parameters["n_knots"])
        self.baseline_coef_ = released_array(release, "baseline_coef", (n_knots,))
        self.unique_times_ = interval_ends(
            release.parameters["max_time"], release.parameters["n_intervals"]
        )
        self.recalibration_ = Recalibration.of(release)
        self.inference_ = Inference.of(release, n_knots + release.n_features)
        self.max_cumulative_hazard_ = None
        if "inference_cap" in release.values:
            (self.max_cumulative_hazard_,) = released_array(release, "inference_cap", (1,)).tolist()

    def survival_band(self, X: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival functions, at ``unique_times_``.

        They allow for sampling and for privacy noise, and are about unshrunk estimates
        (``summary``): recalibrated predictions may be outside. That of the baseline is that of a
        row of zeros. No budget is spent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default=0.95
            Coverage asked for, at each time.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_intervals)
            0 and 1 where nothing is known.

        Raises
        ------
        ValueError
            If there are no standard errors: ``inference_share`` was 0, or the data too few.
        """
        level, found = fraction("level", level), self._require_inference()
        stated = self.release_.parameters
        basis = published_basis(stated["n_intervals"], stated["n_knots"])
        return survival_band(found, basis, LINKS[stated["link"]], self._asked_rows(X), level)

    def _cumulative_hazard(self, risk: FloatArray) -> FloatArray:
        parameters = self.release_.parameters
        basis = published_basis(parameters["n_intervals"], parameters["n_knots"])
        ends = interval_ends(1.0, parameters["n_intervals"])
        baseline = basis @ self.baseline_coef_ + self.recalibration_.at(ends)
        eta = baseline + self.recalibration_.slope * risk[:, None]
        return np.cumsum(LINKS[parameters["link"]].survival(eta).value, axis=1)

    def _check_together(self) -> None:
        if self.n_knots > self.n_intervals:
            raise ValueError(
                f"n_knots must be at most n_intervals={self.n_intervals}, got {self.n_knots}."
            )
        check_delta(self)
        asymptotic = self.method == "psgld" and not self.delta
        looks = not asymptotic and self.calibration == "tight" and self.epsilon < math.inf
        shares = self.center_share, self.recalibration_share, self.inference_share
        if looks and not sum(shares) < 1.0:
            raise ValueError(
                "center_share, recalibration_share and inference_share must leave something of "
                f"epsilon to the fit, got {shares[0]}, {shares[1]} and {shares[2]}."
            )
        if self.inference_share and (self.method == "psgld" or self.calibration == "published"):
            raise ValueError(
                "inference_share must be 0 with method='psgld' or calibration='published': they "
                "have no standard errors."
            )
        if self.prior is not None:
            if self.method == "psgld" or self.calibration == "published":
                raise ValueError(
                    "prior must be None with method='psgld' or calibration='published': they do "
                    "not say how sure they are of their coefficients."
                )
            Promises.of(self.prior)
        uncapped = self.max_cumulative_hazard is None and not asymptotic
        if uncapped and self.link != "logit" and not math.isinf(self.epsilon):
            raise ValueError(
                "max_cumulative_hazard must be a number with link="
                f"{self.link!r}: without a cap its gradient has no bound."
            )
        least = LEAST_STEPS["mala"]
        if self.sampler == "mala" and not isinstance(self.n_epochs, str) and self.n_epochs < least:
            raise ValueError(
                f"n_epochs must be at least {least} with sampler='mala', got {self.n_epochs}."
            )
        epochs = self.n_epochs
        if self._noisy_chain() and not isinstance(epochs, str) and epochs < LEAST_NOISY_STEPS:
            raise ValueError(
                f"n_epochs must be at least {LEAST_NOISY_STEPS} with method='psgld' and a delta, "
                f"got {epochs}."
            )
        if self._published_chain() and self.sampler != "psgld":
            raise ValueError(
                "calibration='published' with method='psgld' needs sampler='psgld': the paper has "
                "no other chain."
            )

    def _published_chain(self) -> bool:
        return self.method == "psgld" and self.calibration == "published"

    def _noisy_chain(self) -> bool:
        """Say whether the steps' noise is what privacy rests on, and not the chain's limit."""
        return self.method == "psgld" and self.delta > 0.0

    def _schedule(self) -> Schedule:
        epochs, step = self.n_epochs, self.step_size
        return Schedule(
            self.sampler,
            epochs if isinstance(epochs, str) else int(epochs),
            int(self.batch_size),
            step if isinstance(step, str) else float(step),
            float(self.step_exponent),
        )

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found = super()._weaknesses(shape)
        if self._published_chain():
            found.append(Weakness("none", TWICE_ITS_EPSILON))
        return [*found, *(Weakness("proved", text) for text in Promises.of(self.prior).leaks())]

    def _plan(self, shape: Shape) -> Plan:
        if not isinstance(self.data_norm, str):
            data_norm = float(self.data_norm)
        else:
            exact = self.method == "psgld" and not self._noisy_chain()
            data_norm = math.sqrt(shape.n_features) / (1.0 if exact else 2.0)
        cap = self.max_cumulative_hazard
        model = HazardModel(
            link=self.link,
            n_intervals=int(self.n_intervals),
            n_knots=int(self.n_knots),
            n_records=shape.n_records,
            n_features=shape.n_features,
            data_norm=data_norm,
            max_cumulative_hazard=cap if cap is None or isinstance(cap, str) else float(cap),
            prior_event_rate=float(self.prior_event_rate),
            max_time=required_horizon(self.max_time),
        )
        # Numbers may be of NumPy's narrow types, in which shares of them would be rounded.
        epsilon, alpha = float(self.epsilon), float(self.alpha)
        if math.isinf(epsilon):
            return hazard_plan(model, epsilon, alpha, MaximumLikelihood(model))
        if self.method == "psgld" and not self._noisy_chain():
            drawn = PosteriorDraw(
                model, epsilon, alpha, self._schedule(), self._published_chain(), self.verbose
            )
            return hazard_plan(model, epsilon, alpha, drawn, numbers=REAL_ARITHMETIC)
        if self.calibration == "published":
            ((method, _),) = candidates(self.method, 0.0)
            perturbed = PublishedPerturbation(model, epsilon, method, alpha)
            return hazard_plan(model, epsilon, alpha, perturbed)
        return self._tight(model, epsilon, alpha)

    def _tight(self, model: HazardModel, epsilon: float, alpha: float) -> Plan:
        """Plan a first look and a perturbed minimiser, by the law that needs less noise."""
        asked = self.center_share, self.recalibration_share, self.inference_share
        shares, delta = tuple(map(float, asked)), float(self.delta)
        if self.method == "psgld":
            steps = None if isinstance(self.n_epochs, str) else int(self.n_epochs)
            found = fit_of(
                model, epsilon, self.method, alpha, shares, delta, LangevinFit, n_steps=steps
            )
            return perturbed_plan(*found, delta, self.verbose)
        prior = self._read_prior("hazard", model.n_features)
        law = self._noise_law
        fits = [
            (fit_of(model, epsilon, method, alpha, shares, used, law=law, prior=prior), used)
            for method, gaussian in candidates(self.method, delta)
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

    def _formula(self, script: Script) -> None:
        stated = self.release_.parameters
        public = {name: stated[name] for name in ("max_time", "n_intervals", "link")}
        write_survival(script, self.coef_, self.baseline_coef_, self.recalibration_, **public)
