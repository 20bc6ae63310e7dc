"""DPWeibullFitter: a private Weibull distribution of survival times."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.likelihoods.weibull import mean_log_likelihood
from skdpsurv.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    call_without_data,
    fraction,
    one_of,
    positive_int,
    positive_number,
    random_source,
    validate_random_state,
)
from skdpsurv.release import Release, check_parameters
from skdpsurv.shape import Shape, seen_shape
from skdpsurv.survival.time_grid import required_horizon
from skdpsurv.survival.weibull_counts import log_times
from skdpsurv.survival.weibull_curves import WeibullCurves, times_argument
from skdpsurv.survival.weibull_plans import (
    ExactLadder,
    MaximumLikelihood,
    NoisyEstimates,
    Plan,
    PublishedLadder,
    SampleAggregate,
    TightLadder,
)
from skdpsurv.target import fit_target, is_two_dimensional, n_targets
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["DPWeibullFitter"]


LADDERS: dict[str, type[Plan]] = {
    "tight": TightLadder,
    "exact": ExactLadder,
    "published": PublishedLadder,
}
METHODS: dict[str, type[Plan] | None] = {
    "ladder": None,
    "laplace": NoisyEstimates,
    "sample_aggregate": SampleAggregate,
}
#: What double precision can work with.
SPANS = {
    "epsilon": (1e-9, 1e9),
    "omega": (1e-3, 100.0),
    "max_shape": (1e-3, 1e3),
    "max_time": (1e-150, 1e150),
}
#: Beyond that, doubles do not count.
MOST_RECORDS = 2**53
ASSUMPTIONS = (
    "n and every constructor parameter are public",
    "max_time was not read off these records",
)


class DPWeibullFitter(WeibullCurves):
    r"""Weibull distribution of survival times that protects every record it is fitted on.

    What is released (shape, scale and number of events) is epsilon-differentially private under
    replacement of one record: whatever one person's time and event status are, the probability of
    any release changes by a factor of at most :math:`e^\epsilon`.

    The survival function is :math:`S(t) = \exp(-(t/\lambda)^\rho)`, as in lifelines.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit of
        the clipped times, for reference, without any privacy.
    method : {"ladder", "laplace", "sample_aggregate"}, default="ladder"
        How to spend it. The other two are baselines of the paper: Laplace noise on the estimates,
        and on means of estimates of blocks of 500 records. Both have the whole range of the
        parameters for a sensitivity.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    calibration : {"tight", "exact", "published"}, default="tight"
        Of the ladder. "tight": noise on the number of events and the sum of their log times,
        and a ladder for what is left. "exact": the paper's ladder with exact rungs. "published":
        the paper's own rungs.
    omega : float, default=6.0
        Times below ``max_time * exp(-omega)``, zero among them, are raised to it. Public. Noise
        grows with omega; so does bias as it falls.
    max_shape : float, default=10.0
        Largest shape. Public.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape. "auto" is 0.5, and for the tight ladder 0.45
        to 0.75, by the events per follow-up time, as far as these have been released.
    n_rungs : int or None, default=None
        Where the ladder ends: all shapes beyond are equally likely. None: where they hardly matter
        any more.
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

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorems and sensitivities:
    docs/proofs/ladder. Times are counted in 2,048 bins of log time first, each 0.3 % wide at the
    default omega; ``epsilon=numpy.inf`` uses the times themselves.

    Times beyond ``max_time`` or below the smallest are clipped silently by design: how many were
    clipped is private.

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

    n_features_in_: int

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        method: str = "ladder",
        calibration: str = "tight",
        omega: float = 6.0,
        max_shape: float = 10.0,
        shape_fraction: float | str = "auto",
        n_rungs: int | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_time = max_time
        self.method = method
        self.calibration = calibration
        self.omega = omega
        self.max_shape = max_shape
        self.shape_fraction = shape_fraction
        self.n_rungs = n_rungs
        self.random_state = random_state
        self.accountant = accountant

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
    ) -> Self:
        """Fit the distribution, spending ``epsilon``.

        As in lifelines, ``fit(durations, event_observed)``, by position or by name; or as in
        scikit-learn, ``fit(X, y)``, where X has a row for each record and is not used.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_features), or None
            One-dimensional: durations. Two-dimensional: ignored but for its length.
        y : array-like of shape (n_samples,) or None
            Structured array of event indicator and time, as scikit-survival has them. Else, events
            if X is one-dimensional, and times, all observed, if X is two-dimensional or None.
        durations : array-like of shape (n_samples,) or None
            Times of event or censoring, in the unit of ``max_time``. Private.
        event_observed : array-like of shape (n_samples,) or None
            True or 1 where the event was seen, False or 0 where censored. Private. None: all seen.

        Returns
        -------
        self
        """
        return self._fit(X, y, durations=durations, event_observed=event_observed)

    def _shape(self, X: Any, y: Any, durations: Any = None, event_observed: Any = None) -> Shape:
        """Return the number of records, and columns of a two-dimensional X, which are not used."""
        n_records = n_targets(X, y, durations, event_observed)
        if is_two_dimensional(X):
            return Shape(n_records, seen_shape(self, X, used=False).n_features)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = 0
        return Shape(n_records, 0)

    def _read(
        self, shape: Shape, X: Any, y: Any, durations: Any = None, event_observed: Any = None
    ) -> tuple[BoolArray, FloatArray]:
        event, time = fit_target(X, y, durations, event_observed)
        shape.require(time.size)
        return event, time

    def _run(
        self, shape: Shape, plan: Plan, records: tuple[BoolArray, FloatArray]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        event, time = records
        estimate = plan.run(time, event, random_source(self.random_state))
        values = {"rho": estimate.shape, "lambda": plan.max_time * math.exp(estimate.log_scale)}
        if estimate.n_events is not None:
            values["n_events"] = estimate.n_events
        parameters = {
            "max_time": plan.max_time,
            "method": self.method,
            "calibration": self.calibration,
            "omega": plan.omega,
            "max_shape": plan.max_shape,
            "shape_fraction": self._shape_fraction,
            "n_rungs": plan.n_rungs,
        }
        return parameters, values

    def _set_fitted(self, release: Release) -> None:
        rho, scale = (np.asarray(release.values.get(name)) for name in ("rho", "lambda"))
        if not all(
            value.dtype == float and value.ndim == 0 and value > 0 for value in (rho, scale)
        ):
            raise ValueError("values of the release must hold rho and lambda, positive numbers.")
        check_parameters(release, "max_time", "omega")
        _check_counts(release)
        if not 0.0 < float(scale) / release.parameters["max_time"] < math.inf:
            raise ValueError("values of the release must hold a lambda on the scale of max_time.")
        self.rho_, self.lambda_ = float(rho), float(scale)
        self.median_survival_time_ = self.percentile(0.5)

    def predict(self, times: ArrayLike) -> Any:
        """Return the probability to survive each time.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``. After a fit on a two-dimensional X, rows of
            as many columns are taken, too, as scikit-learn's tools pass them: they all get the
            same risk score, 0, as this model has no covariates.

        Returns
        -------
        ndarray of shape (n_times,), or float
        """
        check_is_fitted(self, "rho_")
        if np.ndim(times) == 2 or hasattr(times, "tocsr"):
            if self.n_features_in_ == 0:
                raise ValueError("times must be one-dimensional, got 2-D.")
            return np.zeros(self._see_rows(times))
        survival = np.exp(-self._cumulative_hazard(times_argument(times)))
        return survival if np.ndim(times) else float(survival[0])

    def score(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
    ) -> float:
        """Return the mean log-likelihood of records, which is not private.

        Times are clipped as in ``fit``.

        Parameters
        ----------
        X, y, durations, event_observed
            As for ``fit``.

        Returns
        -------
        float
            Of densities in the unit of ``max_time``; higher is better.
        """
        check_is_fitted(self, "rho_")
        if self.n_features_in_ > 0 and is_two_dimensional(X):
            self._see_rows(X)
        event, time = fit_target(X, y, durations, event_observed)
        parameters = self.release_.parameters
        max_time = parameters["max_time"]
        x, seen = log_times(time, event, max_time, parameters["omega"])
        return mean_log_likelihood(x + math.log(max_time), seen, math.log(self.lambda_), self.rho_)

    def _check_parameters(self) -> None:
        """Refuse parameters that break a rule; they are public."""
        positive_number("epsilon", self.epsilon, allow_inf=True)
        required_horizon(self.max_time)
        one_of("method", self.method, tuple(METHODS))
        one_of("calibration", self.calibration, tuple(LADDERS))
        positive_number("omega", self.omega)
        positive_number("max_shape", self.max_shape)
        for name, (low, high) in SPANS.items():
            value = float(getattr(self, name))
            if not low <= value <= high and not math.isinf(value):
                raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}.")
        if isinstance(self.shape_fraction, str):
            one_of("shape_fraction", self.shape_fraction, ("auto",))
        elif not 1e-3 <= fraction("shape_fraction", self.shape_fraction) <= 1.0 - 1e-3:
            raise ValueError("shape_fraction must be between 0.001 and 0.999, or 'auto'.")
        if self.n_rungs is not None:
            positive_int("n_rungs", self.n_rungs)
        validate_random_state(self.random_state)
        self._check_accountant()

    @property
    def _shape_fraction(self) -> float | str:
        fraction_ = self.shape_fraction
        return fraction_ if isinstance(fraction_, str) else float(fraction_)

    def _see_rows(self, X: Any) -> int:
        checked = call_without_data(
            validate_data,
            self,
            X,
            dtype=None,
            ensure_all_finite=False,
            accept_sparse=True,
            reset=False,
        )
        return int(checked.shape[0])

    def _plan(self, shape: Shape) -> Plan:
        kind: type[Plan] = METHODS[self.method] or LADDERS[self.calibration]
        if math.isinf(self.epsilon):
            kind = MaximumLikelihood
        return kind(
            n_records=shape.n_records,
            epsilon=float(self.epsilon),
            max_time=required_horizon(self.max_time),
            omega=float(self.omega),
            max_shape=float(self.max_shape),
            shape_fraction=None if self._shape_fraction == "auto" else float(self._shape_fraction),
            n_rungs=None if self.n_rungs is None else int(self.n_rungs),
        )

    def _guarantee(self, shape: Shape, plan: Plan) -> PrivacyGuarantee:
        return PrivacyGuarantee(
            epsilon=plan.epsilon,
            mechanism=plan.mechanism,
            status=self._status(),
            public_inputs={
                "n_records": plan.n_records,
                "max_time": plan.max_time,
                "omega": plan.omega,
                "max_shape": plan.max_shape,
                "shape_fraction": self._shape_fraction,
                "n_rungs": plan.n_rungs,
            },
            assumptions=ASSUMPTIONS,
            source=plan.source,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags


def _check_counts(release: Release) -> None:
    """Refuse a release whose numbers of records and events are none; intervals are made of them.

    Raises
    ------
    ValueError
    """
    for guarantee in (release.guarantee, release.made_by):
        n_records = guarantee.public_inputs.get("n_records")
        if type(n_records) is not int or not 1 <= n_records <= MOST_RECORDS:
            raise ValueError(
                "public_inputs of the release must hold n_records, a positive integer."
            )
    n_events = np.asarray(release.values.get("n_events", 0.0))
    if n_events.ndim > 0 or not 0.0 <= n_events <= n_records:
        raise ValueError("values of the release must hold n_events from 0 to n_records, if any.")
