"""DPCompetingRisks: private hazards of competing causes over discrete time.

``pilot_share`` of epsilon pays for a life table by cause and the covariates' mean, by which the fit
is centred, clipped and capped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.histories import read_target
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.data.shape import Shape, few_intervals, require_in_memory
from skdpsurv.data.target import paired, survival_target
from skdpsurv.dp import checks
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.inference import Inference
from skdpsurv.inference.uncertainty import NAMES
from skdpsurv.priors import is_prior
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.curves.aalen_johansen import check_causes, is_label
from skdpsurv.survival.curves.event_counts import Causes, is_one_of
from skdpsurv.survival.hazards.cause_coefficients import CauseModel
from skdpsurv.survival.hazards.causes import CAP_TIMES, CausesFit, CausesMaximum
from skdpsurv.survival.hazards.fit import PILOT_RECORDS
from skdpsurv.survival.hazards.fit_plan import fit_of, perturbed_plan
from skdpsurv.survival.hazards.hazard_formula import cause_formula
from skdpsurv.survival.hazards.model import (
    CAP_SCALE,
    Recalibration,
    hazard_plan,
    interval_ends,
    published_basis,
    released_caps,
)
from skdpsurv.survival.hazards.spreads import SPREADS_SHARE

if TYPE_CHECKING:
    from skdpsurv.release.script import Script


def _n_times(model: Any, cause: Any = None, return_array: bool = False) -> int | None:
    return model.unique_times_.size if return_array else None


def _curve_type(model: Any, cause: Any = None, return_array: bool = False) -> Any:
    return np.float64 if return_array else object


class DPCompetingRisks(
    CauseModel,
    word="competing-regression",
    analysis="competing_regression",
    takes=("rows", "causes"),
    ratio="logit",
    measure="",
    such_as={"max_time": 1.0, "causes": [1, 2]},
    adds_up={
        "same": ("max_time", "n_intervals", "n_knots", "causes", "censored"),
        "common": ("the baseline", "baseline_coef"),
        "n_common": lambda release: int(release.parameters["n_knots"]),
        "by": "causes",
    },
):
    r"""Regression of competing risks that protects every record of the training data.

    The released coefficients and baselines of all causes together are epsilon-differentially
    private under replacement of one record: one person's covariates, time and event change the
    probability of any release by a factor of at most :math:`e^\epsilon`.

    Time up to ``max_time`` is cut into ``n_intervals`` equal intervals. In each, a person who is
    still at risk has an event of cause j with probability :math:`h_j`, or none with :math:`h_0`:

    .. math:: \log(h_j / h_0) = \gamma_j(s) + x^\top\beta_j

    with a natural cubic spline :math:`\gamma_j` for each cause. So all hazards and :math:`h_0` add
    up to 1, and incidences of all causes and survival do, too, at each time.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent once for all causes. ``numpy.inf`` gives the maximum
        likelihood fit, for reference, without any privacy: centre and row bound are then ignored,
        and a cap is used only if it is a number.
    causes : list of labels
        Public labels of all possible events, such as ``["relapse", "death"]``. Required.
    censored : label, default=0
        Label of records without an observed event.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, as for
        :class:`DPDiscreteTimeSurvival`.
    n_intervals : int, default=200
        q. A censored record counts as having survived its interval.
    n_knots : int, default=3
        Knots of each cause's baseline; 1 is a constant, 2 a straight line.
    data_norm : float or "auto", default="auto"
        Public bound on the Euclidean norm of a row of X, as for :class:`DPDiscreteTimeSurvival`.
    alpha : float, default=0.0
        Least ridge, on the scale of the mean loss, in addition to the ridge that privacy needs.
    max_cumulative_hazard : float or "auto", default="auto"
        Public cap on the cumulative hazards, of all causes together, with which one person can move
        the fit. Causes share it by the cumulative hazards of the pilot's life table; half of it in
        equal parts. "auto" is 0.8 to 5, half as much again as for :class:`DPDiscreteTimeSurvival`.
    prior_event_rate : float, default=0.5
        Public guess of the share of people with an event, of any cause, by ``max_time``.
    pilot_share : float or "auto", default="auto"
        Share of epsilon spent on a pilot estimate: a private life table by cause, and a private
        mean of the covariates. Skipped if ``n * epsilon`` is below 200. "auto" is 0.1; and 0.033
        where ``columns`` knows the centres and spreads.
    recalibration_share : float, default=0.0
        Share of epsilon spent, after the coefficients, on a private table for each cause of its
        scores over time, which corrects predicted hazards as for :class:`DPDiscreteTimeSurvival`.
        Where most people have an event by ``max_time``, 0.35 makes absolute risks better if
        ``n * epsilon`` is 2,500 or more for each cause. Elsewhere it hardly helps, and ranking is a
        little worse. Skipped if ``n * epsilon`` is below 200.
    inference_share : float, default=0.0
        Share of epsilon for standard errors of all causes, as for :class:`DPDiscreteTimeSurvival`:
        0.3 is a good choice. 0: none. Skipped if ``n * epsilon`` is below 200.
    prior : Release or None, default=None
        Release of another fit of the same causes, in any order, as for
        :class:`DPDiscreteTimeSurvival`: used for each cause with which its records agree. It turns
        coefficients, whose size along their new direction stays (docs/proofs/priors).
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    coef_ : ndarray of shape (n_causes, n_features)
        Log odds ratios of each cause against surviving the interval, per unit of the features. For
        short intervals, log ratios of cause-specific hazards. Private release.
    baseline_coef_ : ndarray of shape (n_causes, n_knots)
        Coefficients of the baselines in the published spline basis. Private release.
    causes_ : list
        Labels of the causes, in the order of ``coef_``.
    inference_ : dict of label to Inference, or None
        Unshrunk estimates and their covariance, by cause; None without ``inference_share``.
        Private release.
    max_cumulative_hazard_ : ndarray of shape (n_causes,) or None
        Caps of the causes; None without privacy. Private release.
    recalibration_ : list of Recalibration
        Correction of each cause's predictor: slope 1 and no shift without a recalibration. Private
        release.
    unique_times_ : ndarray of shape (n_intervals,)
        Right ends of the intervals, in the unit of ``max_time``. Public.
    guarantee_ : PrivacyGuarantee
        The privacy guarantee, with its assumptions.
    release_ : Release
        The result to publish; ``DPCompetingRisks.from_release`` rebuilds the model.
    columns_ : transformer or None
        Fitted copy of ``columns``. Public.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    See Also
    --------
    DPAalenJohansenFitter : Incidences of groups, without covariates.
    DPDiscreteTimeSurvival : One kind of event.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/competing_risks. Mechanism: objective perturbation of one objective, whose
    sensitivity is that of the gradients of all causes as one vector.

    Covariances between causes are not estimated.

    References
    ----------
    .. [1] C. B. Begg and R. Gray, "Calculation of polychotomous logistic regression parameters
       using individualized regressions", Biometrika 71, 1984.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv import DPCompetingRisks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (4000, 1))
    >>> relapse = rng.exponential(10.0 * np.exp(-X[:, 0]))
    >>> death = rng.exponential(20.0, 4000)
    >>> time, what = np.minimum(relapse, death), np.where(relapse < death, "relapse", "death")
    >>> model = DPCompetingRisks(
    ...     epsilon=3.0, causes=["relapse", "death"], censored="alive", max_time=8.0, data_norm=1.0
    ... )
    >>> model = model.fit(X, (np.where(time < 8.0, what, "alive"), time))
    >>> bool(model.coef_[0, 0] > 0.4)
    True
    >>> curves = [model.predict_survival_function(X[:1], return_array=True)]
    >>> for cause in model.causes_:
    ...     incidence = model.predict_cumulative_incidence_function(X[:1], cause, return_array=True)
    ...     curves.append(incidence)
    >>> bool(np.allclose(sum(curves), 1.0))
    True
    """

    baseline_coef_: FloatArray
    recalibration_: list[Recalibration]

    _rules: ClassVar[dict[str, checks.Check]] = {
        "causes": checks.required("the public labels of all events.", check_causes),
        "censored": is_label,
        "max_cumulative_hazard": checks.auto_or(checks.positive()),
        "prior_event_rate": checks.number_in(1e-9, 1.0 - 1e-9),
        "pilot_share": checks.auto_or(checks.number_in(0.0, 1.0, closed="left")),
        "recalibration_share": checks.number_in(0.0, 1.0, closed="left"),
        "inference_share": checks.number_in(0.0, 1.0, closed="left"),
        "prior": is_prior,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        causes: Sequence[Any] | None = None,
        censored: Any = 0,
        max_time: float | None = None,
        columns: Any = None,
        n_intervals: int = 200,
        n_knots: int = 3,
        data_norm: float | str = "auto",
        alpha: float = 0.0,
        max_cumulative_hazard: float | str = "auto",
        prior_event_rate: float = 0.5,
        pilot_share: float | str = "auto",
        recalibration_share: float = 0.0,
        inference_share: float = 0.0,
        prior: Release | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.causes = causes
        self.censored = censored
        self.max_time = max_time
        self.columns = columns
        self.n_intervals = n_intervals
        self.n_knots = n_knots
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

    def _check_together(self) -> None:
        super()._check_together()
        if is_one_of(self.censored, self._stated_causes().labels or []):
            raise ValueError("censored must not be one of causes.")
        pilot: Any = SPREADS_SHARE if isinstance(self.pilot_share, str) else self.pilot_share
        shares = pilot + self.recalibration_share + self.inference_share
        if not (math.isinf(self.epsilon) or shares < 1.0):
            raise ValueError(
                "pilot_share, recalibration_share and inference_share must sum to less than 1."
            )

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options)
        if self.inference_share and not math.isinf(self.epsilon):
            how = float(self.epsilon), float(self.inference_share), PILOT_RECORDS
            found += few_intervals(shape.n_records, shape.n_features, *how)
        return found

    def _plan(self, shape: Shape) -> Plan:
        cap, known = self.max_cumulative_hazard, None
        if self.columns is not None and isinstance(self.data_norm, str):
            known = KnownColumns.of(self._features(self.columns))
        model = self._model(
            shape,
            exact_rows=False,
            max_cumulative_hazard=cap if isinstance(cap, str) else float(cap),
            prior_event_rate=float(self.prior_event_rate),
            cap_scale=CAP_TIMES * CAP_SCALE,
            has_entry=shape.has_entry,
        )
        epsilon, alpha, causes = float(self.epsilon), float(self.alpha), self._stated_causes()
        if math.isinf(epsilon):
            maximum = CausesMaximum(model, causes.number)
            plan = hazard_plan(model, epsilon, alpha, maximum)
        else:
            share: Any = self.pilot_share
            pilot = share if isinstance(share, str) else float(share)
            shares = pilot, float(self.recalibration_share), float(self.inference_share)
            options: Any = {"known": known, "n_causes": causes.number}
            options |= {"kind": CausesFit, "distribution": self._noise_law}
            options["prior"] = self._read_prior("causes", model.n_features)
            plan = perturbed_plan(*fit_of(model, epsilon, "obj_pert", alpha, shares, **options))
        return replace(plan, inputs={**plan.inputs, **causes.stated()})

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        return {**self._grid(), **self._stated_causes().stated()}

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "n_knots", "causes", "censored")
        stated = release.parameters
        causes = Causes.of(stated)
        self.causes_ = list(causes.labels or [])
        shape = causes.number, int(stated["n_knots"])
        self.coef_ = released_array(release, "coef", (causes.number, release.n_features))
        self.baseline_coef_ = released_array(release, "baseline_coef", shape)
        self.unique_times_ = interval_ends(stated["max_time"], stated["n_intervals"])
        self.max_cumulative_hazard_ = released_caps(release, causes.number)
        self.recalibration_ = Recalibration.of_causes(release, causes.number)
        self.inference_ = None
        if not release.values.keys().isdisjoint(NAMES):
            size = self.baseline_coef_.shape[1] + release.n_features
            each = Inference.each_of(release, size, causes.number)
            self.inference_ = dict(zip(self.causes_, each, strict=True))

    @supports_lazy_input(lambda self, cause=None: None)
    def predict(self, X: ArrayLike, cause: Any = None) -> FloatArray:
        """Return risk scores of a cause, higher is riskier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        cause : label or None
            One of ``causes``. None: the first one.

        Returns
        -------
        risk : ndarray of shape (n_samples,)
            The covariates' part of the log odds of this cause against surviving.
        """
        number = self._cause(cause)
        return self._of_rows(X, lambda rows: np.asarray(rows @ self.coef_[number]))

    def _log_odds(self, risk: FloatArray) -> FloatArray:
        """Return log odds against surviving, of shape (n_samples, n_causes, n_intervals)."""
        basis = published_basis(self.unique_times_.size, self.baseline_coef_.shape[1])
        ends = interval_ends(1.0, self.unique_times_.size)
        shift = np.array([one.at(ends) for one in self.recalibration_])
        slopes = np.array([one.slope for one in self.recalibration_])
        return np.asarray(self.baseline_coef_ @ basis.T + shift + (slopes * risk)[:, :, None])

    def _cumulative_hazard(self, risk: FloatArray, stratum: Any = None) -> FloatArray:
        return np.cumsum(_of_surviving(self._log_odds(risk)), axis=1)

    def _draw_events(self, X: ArrayLike, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        def drawn(log_odds: FloatArray) -> IndexArray:
            hazard = np.cumsum(_of_surviving(log_odds), axis=1)
            place = (hazard < rng.exponential(size=(len(hazard), 1))).sum(axis=1)
            at = log_odds[np.arange(len(hazard)), :, np.minimum(place, hazard.shape[1] - 1)]
            # The largest sum with Gumbel noise is of each cause in proportion to its odds.
            return np.column_stack([place, 1 + (at + rng.gumbel(size=at.shape)).argmax(axis=1)])

        def of(risk: FloatArray, stratum: Any = None) -> FloatArray:
            return self._log_odds(risk)

        place, cause = self._by_blocks(X, drawn, 2, dtype=np.intp, of=of).T
        return place, cause

    @supports_lazy_input(_n_times, _curve_type)
    def predict_cumulative_incidence_function(
        self, X: ArrayLike, cause: Any = None, return_array: bool = False
    ) -> NDArray[Any]:
        r"""Return probabilities of an event of a cause up to each time, before any other event.

        They are :math:`\sum_{s \le t} h_j(s) \prod_{r < s} h_0(r)`. Those of all causes add up to 1
        less survival.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        cause : label or None
            One of ``causes``. None: the first one.
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        incidence : ndarray
            StepFunction objects, shape (n_samples,), defined on [0, max_time] and 0 before the
            first of ``unique_times_``; or floats, shape (n_samples, n_intervals).
        """
        number = self._cause(cause)

        def incidence(risk: FloatArray, stratum: Any = None) -> FloatArray:
            log_odds = self._log_odds(risk)
            total = _of_surviving(log_odds)
            before = np.cumsum(total, axis=1) - total
            return np.cumsum(np.exp(log_odds[:, number] - total - before), axis=1)

        return self._curves(X, return_array, np.asarray, 0.0, of=incidence)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        cause: Any = None,
        entry: ArrayLike | None = None,
    ) -> float:
        """Return Harrell's concordance index of a cause. This score is not private.

        Events of other causes count as censored, as for hazards of one cause.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : as for ``fit``
        sample_weight : array-like of shape (n_samples,) or None
            Each pair counts with the product of its weights.
        cause : label or None
            One of ``causes``. None: the first one.
        entry : array-like of shape (n_samples,) or None
            As for ``fit``: a pair counts only if both are at risk at the time of the event.

        Returns
        -------
        c_index : float
            0.5 if no pair can be compared.
        """
        require_in_memory(X, y, sample_weight, entry)
        number = self._cause(cause)
        reader = Causes.of(self.release_.parameters).reader
        seen = read_target(paired(y), causes=reader)
        target = survival_target(seen.cause == number + 1, seen.exit)
        risk, how = self.predict(X, cause), {"sample_weight": sample_weight, "entry": entry}
        return concordance_index(target, risk, **how)

    def _formula(self, script: Script) -> str:
        return cause_formula(self, script)


def _of_surviving(log_odds: FloatArray) -> FloatArray:
    """Return -log h_0 of each interval, of shape (n_samples, n_intervals)."""
    return np.asarray(np.logaddexp(np.logaddexp.reduce(log_odds, axis=1), 0.0))
