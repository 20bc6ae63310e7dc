"""DPDiscreteTimeSurvival: a private hazard model over discrete time."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from skdpsurv.base import PrivateEstimator
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    call_without_data,
    check_unclipped,
    fraction,
    one_of,
    positive_int,
    positive_number,
    random_source,
    validate_random_state,
)
from skdpsurv.progress import check_verbose
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.shape import Shape, seen_shape
from skdpsurv.survival.hazard_plans import (
    HazardModel,
    HazardRecords,
    MaximumLikelihood,
    Perturbation,
)
from skdpsurv.survival.hazard_predictions import HazardPredictions
from skdpsurv.survival.posterior_plan import PosteriorSampling, Schedule, checked_schedule
from skdpsurv.survival.published import PublishedPerturbation
from skdpsurv.survival.spline import to_published
from skdpsurv.survival.time_grid import interval_ends, required_horizon
from skdpsurv.target import event_and_time
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["DPDiscreteTimeSurvival"]

Plan = MaximumLikelihood | Perturbation | PublishedPerturbation | PosteriorSampling

METHODS = ("obj_pert", "out_pert", "psgld")

CALIBRATIONS = ("tight", "published")
#: Finer grids fill the memory, and are finer than any clock in a study.
MOST_INTERVALS = 1_000_000
ASSUMPTIONS = (
    "n, the columns and every constructor parameter are public",
    "max_time and data_norm were not read off these records",
    "real arithmetic: docs/user_guide/limits says where floating point departs from it",
)


class DPDiscreteTimeSurvival(HazardPredictions, PrivateEstimator):
    r"""Discrete-time survival regression that protects every record of the training data.

    What is released (coefficients and baseline hazard) is epsilon-differentially private under
    replacement of one record: whatever one person's covariates, time and event status are, the
    probability of any release changes by a factor of at most :math:`e^\epsilon`. (With
    ``method="psgld"`` this guarantee is asymptotic: true at the limit of a Markov chain only.)

    Time up to ``max_time`` is cut into ``n_intervals`` equal intervals. The hazard h of interval s
    for a person with covariates x is :math:`g(h) = \gamma(s) + x^\top\beta`, with g the link and
    :math:`\gamma` a natural cubic spline.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit,
        for reference, without any privacy: cap, centre and row bound are then ignored.
    method : {"obj_pert", "out_pert", "psgld"}, default="obj_pert"
        Objective perturbation, or output perturbation (simpler, and less accurate). "psgld", one
        draw of a sanitised posterior, has an **asymptotic guarantee only**: epsilon holds for the
        law that its Markov chain tends to, and nothing is proved about a chain of finite length,
        whatever its diagnostics show.
        Its likelihood is uncapped and it takes no first look, so that ``max_cumulative_hazard``
        and ``center_share`` do not enter, and it works with every link.
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
        them, with ``method="psgld"``: its guarantee needs no bound.
    alpha : float, default=0.0
        Least ridge, on the scale of the mean loss, on top of what privacy needs anyway.
    max_cumulative_hazard : float, "auto" or None, default="auto"
        Cap on the cumulative hazard with which one person can pull at the fit. Public; needs no
        knowledge of the data. A low cap means little noise, a high one little bias: "auto" is
        0.8 to 5, growing with ``n * epsilon`` per parameter. None: no cap (link="logit" only), and
        much more noise.
    prior_event_rate : float, default=0.5
        Public guess of the share of people with an event by ``max_time``. The fit is shrunk towards
        the baseline that it implies.
    center_share : float, default=0.1
        Share of epsilon spent on a first look, a private life table and a private mean of the
        covariates, to shrink towards what they say instead of the guess. 0 trusts the guess.
        Skipped where ``n * epsilon`` is below 200.
    calibration : {"tight", "published"}, default="tight"
        "published": the algorithms of the paper to the letter, uncapped, to reproduce its tables.
        Its pSGLD is not private: its limit spends twice its epsilon, status "none".
    sampler : {"mala", "psgld"}, default="mala"
        Markov chain of ``method="psgld"``: the Metropolis-adjusted Langevin algorithm on all
        records, or the paper's stochastic gradients, whose step is corrected. One law, but the
        first gets there a hundred times faster.
    n_epochs : int or "auto", default="auto"
        Passes over the data: one step of "mala", n steps of "psgld" as in the paper, after 100
        passes from a draw of the prior. "auto" is 400 (to 4000 below 10,000 records), and 250. At
        least 100 with "mala", and so many that "psgld" has 1000 steps.
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
        Coefficients, on the scale of X. Private release.
    baseline_coef_ : ndarray of shape (n_knots,)
        Coefficients of the baseline in the spline basis of the paper. Private release.
    unique_times_ : ndarray of shape (n_intervals,)
        Right ends of the intervals, in the unit of ``max_time``. Public: never the data's event
        times.
    guarantee_ : PrivacyGuarantee
        What was promised, about what, under which assumptions.
    release_ : Release
        The thing to publish; ``DPDiscreteTimeSurvival.from_release`` rebuilds the model.
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

    _deciding = "epsilon, alpha, data_norm, max_cumulative_hazard and center_share"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        method: str = "obj_pert",
        max_time: float | None = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        link: str = "logit",
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        max_cumulative_hazard: float | str | None = "auto",
        prior_event_rate: float = 0.5,
        center_share: float = 0.1,
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
        self.calibration = calibration
        self.sampler = sampler
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.step_size = step_size
        self.step_exponent = step_exponent
        self.random_state = random_state
        self.accountant = accountant
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Covariates, finite. Private.
        y : structured array of shape (n_samples,), or array-like of times
            Event indicator (bool) and time of event or censoring, under any field names, as
            scikit-survival has them. A 1-D array of numbers holds times, all observed. Private.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _shape(self, X: ArrayLike, y: ArrayLike) -> Shape:
        return seen_shape(self, X)

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> HazardRecords:
        rows: FloatArray = call_without_data(validate_data, self, X, dtype=np.float64, reset=False)
        shape.require(rows.shape[0])
        if math.isinf(self.epsilon):
            check_unclipped(rows, "X")
        event, time = _checked_target(y, rows.shape[0])
        return HazardRecords.on_grid(rows, time, event, self._horizon, int(self.n_intervals))

    def _run(
        self, shape: Shape, plan: Plan, records: HazardRecords
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        baseline, coef = plan.run(records, random_source(self.random_state))
        parameters = {
            "max_time": self._horizon,
            "n_intervals": int(self.n_intervals),
            "n_knots": int(self.n_knots),
            "link": self.link,
        }
        return parameters, {"coef": coef, "baseline_coef": to_published(baseline, self.n_knots)}

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "n_knots", "link")
        self.coef_ = released_array(release, "coef", (release.n_features_in,))
        n_knots = int(release.parameters["n_knots"])
        self.baseline_coef_ = released_array(release, "baseline_coef", (n_knots,))
        self.unique_times_ = interval_ends(
            release.parameters["max_time"], release.parameters["n_intervals"]
        )

    @property
    def _horizon(self) -> float:
        return required_horizon(self.max_time)

    def _check_parameters(self) -> None:
        """Refuse parameters that break a rule.

        Parameters are public, so messages may show them.
        """
        positive_number("epsilon", self.epsilon, allow_inf=True)
        required_horizon(self.max_time)
        one_of("method", self.method, METHODS)
        one_of("link", self.link, tuple(LINKS))
        one_of("calibration", self.calibration, CALIBRATIONS)
        n_intervals = positive_int("n_intervals", self.n_intervals)
        if n_intervals > MOST_INTERVALS:
            raise ValueError(f"n_intervals must be at most {MOST_INTERVALS:,}, got {n_intervals}.")
        if positive_int("n_knots", self.n_knots) > n_intervals:
            raise ValueError(
                f"n_knots must be at most n_intervals={n_intervals}, got {self.n_knots}."
            )
        if isinstance(self.data_norm, str):
            one_of("data_norm", self.data_norm, ("auto",))
        else:
            positive_number("data_norm", self.data_norm)
        if self.alpha != 0:
            positive_number("alpha", self.alpha)
        if isinstance(self.max_cumulative_hazard, str):
            one_of("max_cumulative_hazard", self.max_cumulative_hazard, ("auto",))
        elif self.max_cumulative_hazard is not None:
            positive_number("max_cumulative_hazard", self.max_cumulative_hazard)
        elif self.link != "logit" and self.method != "psgld" and not math.isinf(self.epsilon):
            raise ValueError(
                "max_cumulative_hazard must be a number with link="
                f"{self.link!r}: without a cap its gradient has no bound."
            )
        if not 1e-9 <= fraction("prior_event_rate", self.prior_event_rate) <= 1.0 - 1e-9:
            raise ValueError("prior_event_rate must be between 1e-9 and 1 - 1e-9.")
        fraction("center_share", self.center_share, open_low=False)
        self._schedule()
        check_verbose(self.verbose)
        validate_random_state(self.random_state)
        self._check_accountant()

    def _published_chain(self) -> bool:
        return self.method == "psgld" and self.calibration == "published"

    def _schedule(self) -> Schedule:
        schedule = checked_schedule(
            self.sampler, self.n_epochs, self.batch_size, self.step_size, self.step_exponent
        )
        if self._published_chain() and schedule.sampler != "psgld":
            raise ValueError(
                "calibration='published' with method='psgld' needs sampler='psgld': the paper has "
                "no other chain."
            )
        return schedule

    def _status(self) -> str:
        status = super()._status()
        if self.method != "psgld":
            return status
        if self._published_chain():
            return "none"
        return "asymptotic" if status == "proved" else status

    def _leaks(self) -> list[str]:
        reasons = super()._leaks()
        if self._published_chain() and not math.isinf(self.epsilon):
            reasons.append(
                "calibration='published' with method='psgld' spends twice its epsilon even in the "
                "limit: use calibration='tight'."
            )
        return reasons

    def _plan(self, shape: Shape) -> Plan:
        if not isinstance(self.data_norm, str):
            data_norm = float(self.data_norm)
        else:
            data_norm = math.sqrt(shape.n_features) / (1.0 if self.method == "psgld" else 2.0)
        # Numbers may be of NumPy's narrow types, in which shares of them would be rounded.
        epsilon, alpha, cap = float(self.epsilon), float(self.alpha), self.max_cumulative_hazard
        model = HazardModel(
            link=self.link,
            n_intervals=int(self.n_intervals),
            n_knots=int(self.n_knots),
            n_records=shape.n_records,
            n_features=shape.n_features,
            data_norm=data_norm,
            max_cumulative_hazard=cap if cap is None or isinstance(cap, str) else float(cap),
            prior_event_rate=float(self.prior_event_rate),
        )
        if math.isinf(self.epsilon):
            return MaximumLikelihood(model)
        if self.method == "psgld":
            return PosteriorSampling(
                model,
                epsilon,
                alpha,
                self._schedule(),
                self._published_chain(),
                self.verbose,
            )
        if self.calibration == "published":
            return PublishedPerturbation(model, epsilon, self.method, alpha)
        return Perturbation(model, epsilon, self.method, alpha, float(self.center_share))

    def _guarantee(self, shape: Shape, plan: Plan) -> PrivacyGuarantee:
        inputs = {
            "n_records": shape.n_records,
            "max_time": self.max_time,
            "n_intervals": self.n_intervals,
            "n_knots": self.n_knots,
            "link": self.link,
            "data_norm": plan.model.data_norm,
            "max_cumulative_hazard": self.max_cumulative_hazard,
            "prior_event_rate": self.prior_event_rate,
            "alpha": self.alpha,
        }
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            mechanism=plan.mechanism,
            status=self._status(),
            public_inputs={**inputs, **plan.public_inputs()},
            assumptions=ASSUMPTIONS,
            source=plan.source,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _checked_target(y: ArrayLike, n_records: int) -> tuple[BoolArray, FloatArray]:
    """Take y apart and check its length."""
    if y is None:
        raise ValueError(
            "y must be given: this estimator requires y to be passed, but the target y is None."
        )
    event, time = event_and_time(y)
    if time.shape[0] != n_records:
        raise ValueError(
            "X and y must have the same number of records: found input variables with inconsistent "
            "numbers of samples."
        )
    return event, time
