"""DPWeibullFitter: a private Weibull distribution of survival times."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base import PrivateEstimator
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
from skdpsurv.release import Release
from skdpsurv.survival.time_grid import required_horizon
from skdpsurv.survival.weibull_counts import log_times
from skdpsurv.survival.weibull_intervals import plausible_estimates
from skdpsurv.survival.weibull_plans import (
    Estimate,
    ExactLadder,
    MaximumLikelihood,
    NoisyEstimates,
    Plan,
    PublishedLadder,
    SampleAggregate,
    TightLadder,
)
from skdpsurv.target import checked_events, checked_times, event_and_time

__all__ = ["DPWeibullFitter"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

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
ASSUMPTIONS = (
    "n and every constructor parameter are public",
    "max_time was not read off these records",
)


class DPWeibullFitter(PrivateEstimator):
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
        Of the ladder. "tight": noise on the number of events and the sum of their log times, and
        a ladder for what is left. "exact": the paper's ladder with exact rungs. "published": the
        paper's own rungs.
    omega : float, default=6.0
        Times below ``max_time * exp(-omega)``, zero among them, are raised to it. Public. Noise
        grows with omega; so does bias as it falls.
    max_shape : float, default=10.0
        Largest shape. Public.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape. "auto" is 0.5, and for the tight ladder 0.5 to
        0.8, by the part of records that are events, as far as that has been released.
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
        max_time = self._check_parameters()
        self._check_budget()
        n_features = self._see_columns(X)
        event, time = _target(X, y, durations, event_observed)
        if time.size == 0:
            raise ValueError(
                "durations must hold at least one record: Found array with 0 sample(s)."
            )
        plan = self._plan(time.size, max_time)
        guarantee = self._guarantee(plan)
        self._charge(guarantee)

        # Whatever NumPy was told to raise on: past the charge nothing may depend on the records.
        with np.errstate(all="ignore"):
            estimate = plan.run(time, event, random_source(self.random_state))
        self.n_features_in_ = n_features
        values = {
            "rho": estimate.shape,
            "lambda": max_time * math.exp(estimate.log_scale),
        }
        if estimate.n_events is not None:
            values["n_events"] = estimate.n_events
        parameters = {
            "max_time": max_time,
            "method": self.method,
            "calibration": self.calibration,
            "omega": plan.omega,
            "max_shape": plan.max_shape,
            "shape_fraction": self._shape_fraction,
            "n_rungs": plan.n_rungs,
        }
        return self._publish(guarantee, parameters, values)

    def _set_fitted(self, release: Release) -> None:
        self.rho_ = float(np.asarray(release.values["rho"]))
        self.lambda_ = float(np.asarray(release.values["lambda"]))
        self.median_survival_time_ = self.percentile(0.5)

    def percentile(self, p: float) -> float:
        """Return the time by which survival has fallen to ``p``, as lifelines does.

        Parameters
        ----------
        p : float
            Probability of survival, between 0 and 1.

        Returns
        -------
        float
            In the unit of ``max_time``.
        """
        check_is_fitted(self, "rho_")
        p = fraction("p", p)
        with np.errstate(over="ignore", under="ignore"):
            return float(self.lambda_ * np.power(-math.log(p), 1.0 / self.rho_))

    def cumulative_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        r"""Return :math:`(t/\lambda)^\rho`.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t = _times(times)
        return pd.Series(self._cumulative_hazard(t), index=t, name=label or "Weibull_estimate")

    def survival_function_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the probability to survive each time.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        return np.exp(-self.cumulative_hazard_at_times(times, label))

    def hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        r"""Return :math:`\rho/\lambda\,(t/\lambda)^{\rho-1}`, infinite at 0 for rho below 1.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not negative, in the unit of ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        check_is_fitted(self, "rho_")
        t = _times(times)
        with np.errstate(divide="ignore", over="ignore"):
            hazard = self.rho_ / self.lambda_ * (t / self.lambda_) ** (self.rho_ - 1.0)
        return pd.Series(hazard, index=t, name=label or "Weibull_estimate")

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
            return np.zeros(self._see_rows(times, reset=False))
        survival = np.exp(-self._cumulative_hazard(_times(times)))
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
        event, time = _target(X, y, durations, event_observed)
        parameters = self.release_.parameters
        max_time = parameters["max_time"]
        x, seen = log_times(time, event, max_time, parameters["omega"])
        return mean_log_likelihood(x + math.log(max_time), seen, math.log(self.lambda_), self.rho_)

    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals for shape and scale that allow for sampling and for privacy noise.

        They are computed from the release and public parameters alone, by simulating records and
        running the same mechanism on them: no record is looked at and no budget is spent.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Simulated fits; each takes a few milliseconds, whatever the number of records. (With
            the published ladder a tenth of a second; the two baselines take as long as a fit.)

        Returns
        -------
        pandas.DataFrame
            Rows ``lambda_`` and ``rho_``, columns ``lower`` and ``upper``.

        Notes
        -----
        True if times are Weibull; docs/benchmarks/weibull has the coverage measured. How records
        were censored is only known as far as the number of events tells.
        """
        level = fraction("level", level)
        scale, shape = self._plausible(n_resamples)
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        return pd.DataFrame(
            np.quantile([scale, shape], tails, axis=1).T,
            index=["lambda_", "rho_"],
            columns=["lower", "upper"],
        )

    @property
    def summary(self) -> pd.DataFrame:
        """Estimates with 95 % intervals, as lifelines has them; see ``confidence_interval``."""
        interval = self.confidence_interval()
        return pd.DataFrame(
            {
                "coef": [self.lambda_, self.rho_],
                "coef lower 95%": interval["lower"],
                "coef upper 95%": interval["upper"],
            },
            index=interval.index,
        )

    def print_summary(self, decimals: int = 2) -> None:
        """Print the estimates, their intervals and what was promised.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        guarantee = self.guarantee_
        print(
            f"DPWeibullFitter: {guarantee.public_inputs['n_records']:,} records, "
            f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
        )
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the survival function with a 95 % band; see ``plot_weibull`` for the options.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Of :func:`skdpsurv.plotting.plot_weibull`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_weibull  # needs the extra "plot"

        return plot_weibull(self, ax=ax, **options)

    def survival_band(
        self, times: ArrayLike, level: float = 0.95, n_resamples: int = 500
    ) -> pd.DataFrame:
        """Return pointwise intervals of the survival function.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level, n_resamples
            As for ``confidence_interval``.

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = fraction("level", level), _times(times)
        scale, shape = self._plausible(n_resamples)
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            curves = np.exp(-np.exp(shape[:, None] * (np.log(t) - np.log(scale)[:, None])))
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        return pd.DataFrame(
            np.quantile(curves, tails, axis=0).T, index=t, columns=["lower", "upper"]
        )

    def _plausible(self, n_resamples: int) -> tuple[FloatArray, FloatArray]:
        """Scales and shapes that the release is compatible with."""
        check_is_fitted(self, "rho_")
        n_resamples = positive_int("n_resamples", n_resamples)
        release = self.release_
        max_time = release.parameters["max_time"]
        n_events = release.values.get("n_events")
        estimate = Estimate(
            self.rho_,
            math.log(self.lambda_ / max_time),
            None if n_events is None else float(np.asarray(n_events)),
        )
        plan = self._plan(int(str(release.guarantee.public_inputs["n_records"])), max_time)
        with np.errstate(all="ignore"):
            draws = plausible_estimates(plan, estimate, n_resamples)
        return max_time * np.exp(draws[:, 1]), np.exp(draws[:, 0])

    def _cumulative_hazard(self, times: FloatArray) -> FloatArray:
        check_is_fitted(self, "rho_")
        with np.errstate(over="ignore"):
            return np.asarray((times / self.lambda_) ** self.rho_)

    def _check_parameters(self) -> float:
        """Refuse parameters that break a rule, and return max_time; they are public."""
        positive_number("epsilon", self.epsilon, allow_inf=True)
        max_time = required_horizon(self.max_time)
        one_of("method", self.method, tuple(METHODS))
        one_of("calibration", self.calibration, tuple(LADDERS))
        positive_number("omega", self.omega)
        positive_number("max_shape", self.max_shape)
        for name, (low, high) in SPANS.items():
            value = getattr(self, name)
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
        return max_time

    @property
    def _shape_fraction(self) -> float | str:
        fraction_ = self.shape_fraction
        return fraction_ if isinstance(fraction_, str) else float(fraction_)

    def _see_columns(self, X: Any) -> int:
        """Note the columns of a two-dimensional X, whose values are not used."""
        if X is None or not (np.ndim(X) == 2 or hasattr(X, "tocsr")):
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return 0
        self._see_rows(X, reset=True)
        return int(self.n_features_in_)

    def _see_rows(self, X: Any, reset: bool) -> int:
        checked = call_without_data(
            validate_data,
            self,
            X,
            dtype=None,
            ensure_all_finite=False,
            accept_sparse=True,
            reset=reset,
        )
        return int(checked.shape[0])

    def _plan(self, n_records: int, max_time: float) -> Plan:
        """Decide from public numbers alone how epsilon is spent."""
        kind: type[Plan] = METHODS[self.method] or LADDERS[self.calibration]
        if math.isinf(self.epsilon):
            kind = MaximumLikelihood
        return kind(
            n_records=n_records,
            epsilon=float(self.epsilon),
            max_time=max_time,
            omega=float(self.omega),
            max_shape=float(self.max_shape),
            shape_fraction=None if self._shape_fraction == "auto" else float(self._shape_fraction),
            n_rungs=None if self.n_rungs is None else int(self.n_rungs),
        )

    def _guarantee(self, plan: Plan) -> PrivacyGuarantee:
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
        return tags


def _times(times: ArrayLike) -> FloatArray:
    return checked_times(np.atleast_1d(np.asarray(times)), "times")


def _target(X: Any, y: Any, durations: Any, event_observed: Any) -> tuple[BoolArray, FloatArray]:
    """Find events and times in the arguments of ``fit``."""
    two_dimensional = X is not None and (np.ndim(X) == 2 or hasattr(X, "tocsr"))
    if durations is not None:
        if X is not None or y is not None:
            raise ValueError("durations must be given instead of X and y, not beside them.")
    elif X is None or two_dimensional or getattr(np.asarray(y).dtype, "names", None):
        if event_observed is not None:
            raise ValueError("event_observed must be given with durations, not with y.")
        if y is None:
            raise ValueError(
                "y or durations must be given: this estimator requires y to be passed, but the "
                "target y is None."
            )
        event, time = event_and_time(y)
        if X is not None and _length(X) != time.size:
            raise ValueError(
                "X and y must have the same number of records: found input variables with "
                "inconsistent numbers of samples."
            )
        return event, time
    else:
        if y is not None and event_observed is not None:
            raise ValueError("event_observed must not be given twice, as y and by name.")
        durations, event_observed = X, y if event_observed is None else event_observed
    time = checked_times(durations, "durations")
    if event_observed is None:
        return np.ones(time.shape, dtype=bool), time
    event = checked_events(event_observed, "event_observed")
    if event.size != time.size:
        raise ValueError(
            "durations and event_observed must have the same length: found input variables with "
            "inconsistent numbers of samples."
        )
    return event, time


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
