"""DPWeibullFitter, and the base of private Weibull distributions of survival times."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from skdpsurv.base.private_estimator import Published
from skdpsurv.data.histories import Histories
from skdpsurv.data.shape import Shape
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, auto_or, horizon, number_in, required_horizon
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.weibull import mean_log_likelihood
from skdpsurv.release import Release, check_parameters, released_array, stated_records
from skdpsurv.survival.released_curve import ReleasedCurve
from skdpsurv.survival.univariate import UnivariateFitter
from skdpsurv.survival.weibull import tuning, weibull_plan
from skdpsurv.survival.weibull.log_time_counts import Records, log_times
from skdpsurv.survival.weibull.plausible import WeibullEstimate, plausible_estimates

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Largest number of records that doubles represent.
MOST_RECORDS = 2**53
#: Name of a released value: the covariance of log scale and log shape of pooled fits.
LOG_COVARIANCE = "log_covariance"
#: Largest logarithm of a released value.
LARGEST_LOG = 700.0


class WeibullDistribution(ReleasedCurve):
    """Scale and shape of a release."""

    main, names = "cumulative_hazard", ("lambda_", "rho_")
    extrapolates = True

    #: An estimator with the public parameters, which simulates records by the mechanism.
    fitter: Any

    def __init__(self, release: Release) -> None:
        rho, scale = (np.asarray(release.values.get(name)) for name in ("rho", "lambda"))
        if not all(x.dtype == float and x.ndim == 0 and x > 0 for x in (rho, scale)):
            raise ValueError("values of the release must hold rho and lambda, positive numbers.")
        check_parameters(release, "max_time", "omega")
        super().__init__(release)
        self.n_records, n_events = _stated_counts(release)
        if not 0.0 < float(scale) / self.max_time < math.inf:
            raise ValueError("values of the release must hold a lambda on the scale of max_time.")
        self.rho, self.scale = float(rho), float(scale)
        self.estimates = np.array([self.scale, self.rho])
        self.log_covariance = _log_covariance(release)
        self.exact = math.isinf(release.made_by.epsilon)
        self.tuning = _tuning(release)
        self.estimate = WeibullEstimate(self.rho, math.log(self.scale / self.max_time), n_events)
        self.left_censored = release.made_by.public_inputs.get(weibull_plan.LEFT_CENSORED) is True

    def cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        scale, shape = np.split(parameters, 2, axis=-1)
        return np.asarray((times / scale) ** shape)

    def hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        scale, shape = np.split(parameters, 2, axis=-1)
        return np.asarray(shape / scale * (times / scale) ** (shape - 1.0))

    def percentiles(self, p: float, parameters: FloatArray) -> FloatArray:
        scale, shape = parameters.T
        return np.asarray(scale * (-math.log(p)) ** (1.0 / shape))

    def time_of(self, cumulative_hazard: float) -> float:
        return float(self.scale * np.power(cumulative_hazard, 1.0 / self.rho))

    def mean_log_likelihood(self, histories: Histories) -> float:
        omega = self.fitter.omega
        seen, before = log_times(histories, self.max_time, omega, exact=self.exact)
        seen = replace(seen, exit=seen.exit + math.log(self.max_time))
        censored = before if self.left_censored else None
        return mean_log_likelihood(seen, math.log(self.scale), self.rho, censored)

    def plausible(self, n_resamples: int) -> FloatArray:
        if self.log_covariance is not None:
            generator = random_source(0, purpose="interval").generator
            deviation = np.linalg.cholesky(self.log_covariance)
            away = generator.standard_normal((n_resamples, 2)) @ deviation.T
            logs = np.log([self.scale, self.rho]) + away
            return np.asarray(np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG)))
        public = self.fitter._setting(Shape(self.n_records, 0))
        public = replace(public, left_censored=self.left_censored, tuning=self.tuning)
        with np.errstate(all="ignore"):
            draws = plausible_estimates(public, self.estimate, n_resamples)
        return np.column_stack([self.max_time * np.exp(draws[:, 1]), np.exp(draws[:, 0])])


class WeibullCurve(UnivariateFitter, released=False, measure="largest_error"):
    """Base of private Weibull distributions; a subclass sets ``_way``, the way to fit."""

    _curve_type = WeibullDistribution
    _released: WeibullDistribution

    #: Ranges of parameters in which double precision is accurate enough.
    _rules: ClassVar[dict[str, Check]] = {
        "epsilon": number_in(1e-9, 1e9, allow_inf=True),
        "max_time": horizon(number_in(1e-150, 1e150)),
        "omega": number_in(1e-3, 100.0),
        "max_shape": number_in(1e-3, 1e3),
        "shape_fraction": auto_or(number_in(1e-3, 1.0 - 1e-3)),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        omega: float = 5.0,
        max_shape: float = 10.0,
        shape_fraction: float | str = "auto",
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_time = max_time
        self.omega = omega
        self.max_shape = max_shape
        self.shape_fraction = shape_fraction
        self.alpha = alpha
        self.random_state = random_state
        self.accountant = accountant

    @property
    @abstractmethod
    def _way(self) -> weibull_plan.Way:
        """The plan and the reader of records that ``method`` stands for."""

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        return self._setting(shape).stated()

    def _setting(self, shape: Shape) -> weibull_plan.WeibullSetting:
        """Return the public numbers of a fit."""
        fraction, way = self.shape_fraction, self._way
        if math.isinf(self.epsilon):
            way = weibull_plan.MAXIMUM_LIKELIHOOD._replace(n_levels=way.n_levels)
        return weibull_plan.WeibullSetting(
            way=way,
            n_records=shape.n_records,
            epsilon=float(self.epsilon),
            max_time=required_horizon(self.max_time),
            omega=float(self.omega),
            max_shape=float(self.max_shape),
            shape_fraction=None if isinstance(fraction, str) else float(fraction),
        )

    def _plan(self, shape: Shape) -> Plan:
        setting = self._setting(shape)
        return setting.way.plan(setting)

    def _read(self, shape: Shape, X: Any, y: Any, **options: Any) -> Records:
        records = super()._read(shape, X, y, **options)
        public = self._setting(shape)
        return public.way.read(records, public.max_time, public.omega)

    def _publish(self, shape: Shape, published: Published) -> Self:
        """Publish shape and scale, in the unit of time, and the number of events."""
        released = published.values
        values = {
            "rho": released["shape"],
            "lambda": required_horizon(self.max_time) * math.exp(released["log_scale"]),
            **({"n_events": released["n_events"]} if "n_events" in released else {}),
        }
        fitted: Self = super()._publish(shape, published._replace(values=values))
        return fitted

    def _set_fitted(self, release: Release) -> None:
        super()._set_fitted(release)
        stated = {"epsilon": release.made_by.epsilon, **release.parameters}
        stated.pop("tuning", None)
        # The constructor of a subclass may take others, and nothing may fail here.
        made = (call_or_none(partial(kind, **stated)) for kind in type(self).__mro__)
        self._released.fitter = next(filter(None, made))

    def _formula(self, script: Script) -> str:
        scale, shape = map(script.number, self._curve.estimates)
        return f"survival(time) = exp(-((time / {scale}) ** {shape}))"


def _log_covariance(release: Release) -> FloatArray | None:
    """Return the covariance of a pooled release; None for a fit."""
    if LOG_COVARIANCE not in release.values:
        return None
    found = released_array(release, LOG_COVARIANCE, (2, 2))
    (scale, both), (again, shape) = found.tolist()
    if both != again or not (scale > 0.0 and shape > 0.0 and scale * shape > both**2):
        raise ValueError(f"values of the release must hold {LOG_COVARIANCE!r}, a covariance.")
    return found


def _tuning(release: Release) -> tuning.Tuning:
    """Return the constants of the fit; a pool has none, and needs none."""
    number = release.parameters.get("tuning", tuning.TUNING)
    if type(number) is not int or number not in tuning.TUNINGS:
        raise ValueError("tuning of the release must be a number that this package knows.")
    return tuning.TUNINGS[number]


def _stated_counts(release: Release) -> tuple[int, float | None]:
    """Return the numbers of records and, if released, of events, for intervals."""
    n_records = stated_records(release, MOST_RECORDS)
    n_events = np.asarray(release.values.get("n_events", 0.0))
    if n_events.ndim > 0 or not 0.0 <= n_events <= n_records:
        raise ValueError("values of the release must hold n_events from 0 to n_records, if any.")
    return n_records, float(n_events) if "n_events" in release.values else None


class DPWeibullFitter(
    WeibullCurve, word="weibull", adds_up="distributions", beyond_constructor=("tuning",)
):
    r"""Weibull distribution of survival times that protects every record it is fitted on.

    The released shape, scale and number of events are epsilon-differentially private under
    replacement of one record: one person's time and event status change the probability of any
    release by a factor of at most :math:`e^\epsilon`.

    The survival function is :math:`S(t) = \exp(-(t/\lambda)^\rho)`, as in lifelines.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` gives the maximum likelihood fit,
        for reference, without any privacy, as lifelines' ``WeibullFitter`` does. Times of 0 are
        left-censored at ``max_time * exp(-omega)``, as in ``fit_interval_censoring``.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
        Required: take it from the study's protocol, never from the data.
    omega : float, default=5.0
        Events before ``max_time * exp(-omega)``, zero among them, are left-censored at it. Public.
        Noise grows with omega; a small omega loses information about small times.
    max_shape : float, default=10.0
        Largest shape. Public.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape and on the sum of log times that it needs.
        "auto" is 0.45 to 0.75, by the released number of events per follow-up time.
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
        In the unit of ``max_time``; follows from the two. Extrapolated if it is later.
    guarantee_ : PrivacyGuarantee
        The privacy guarantee, with its assumptions.
    release_ : Release
        The result to publish; ``DPWeibullFitter.from_release`` rebuilds the model.
    n_features_in_ : int
        Columns of X, which are not used; 0 if there was none.
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError
        If a parameter is not allowed, or times are negative or not finite, or events are not
        0 and 1, or lengths differ. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded, before any record is read.

    See Also
    --------
    DPDiscreteTimeSurvival : Survival that depends on covariates.
    skdpsurv.published.PublishedWeibullFitter : The paper's own ladder [1]_, and its baselines.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorems and sensitivities:
    docs/proofs/ladder. Times are counted in 2,048 bins of log time first, each 0.25 % wide at the
    default omega; ``epsilon=numpy.inf`` uses the times themselves, and omega for times of 0 alone.

    Noise is added to the number of events, the follow-up time and the sum of log event times; a
    ladder then draws the shape. Events before ``max_time * exp(-omega)`` are left-censored. Records
    censored before it count as having been at risk for half of their expected time until then.

    Intervals invert a test: they contain the shapes from which simulated records give the released
    one not too rarely. They assume that times are Weibull, and always contain the estimate.
    Censoring is known from the number of events alone. docs/benchmarks/intervals has the measured
    coverage. A simulated fit takes a few milliseconds, whatever the number of records.

    Predictions beyond ``max_time`` follow from the formula alone, with a PublicInputWarning.

    Times beyond ``max_time`` or below the least are clipped silently by design, as their number is
    private. Releases of version 1 took small times as exact; they load, and their intervals are
    those of the mechanism that made them.

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

    _way = weibull_plan.TIGHT

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        return {**super()._release_parameters(shape), "tuning": tuning.TUNING}
