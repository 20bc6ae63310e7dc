"""Simulated survival data whose coefficients and baseline are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.utils import Bunch, check_random_state

from skdpsurv.data.target import survival_target
from skdpsurv.dp.checks import fraction, one_of, positive_int, positive_number
from skdpsurv.dp.types import FloatArray

_WEIBULL_SHAPE = {"front-loaded": 0.5, "flat": 1.0, "rising": 2.0}


def make_discrete_time_survival(
    n_samples: int = 1000,
    n_features: int = 3,
    *,
    coef: ArrayLike | None = None,
    baseline: str = "flat",
    event_rate: float = 0.3,
    censoring: str = "exponential",
    censoring_rate: float = 0.3,
    max_time: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Simulate proportional hazards with a Weibull baseline, censoring and a horizon.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of records.
    n_features : int, default=3
        Number of covariates, independent and uniform on [-1, 1].
    coef : array-like of shape (n_features,), default=None
        True log hazard ratios. None: evenly spaced from 1 down to -1.
    baseline : {"flat", "front-loaded", "rising"}, default="flat"
        Course of the baseline hazard: Weibull shape 1, 0.5 or 2.
    event_rate : float, default=0.3
        Expected share of records with an event by ``max_time`` without dropout, in (0, 1), given
        the covariates drawn.
    censoring : {"exponential", "uniform"}, default="exponential"
        Distribution of the dropout times, independent of the rest.
    censoring_rate : float, default=0.3
        Probability that a record without an event drops out before ``max_time``, in [0, 1).
    max_time : float, default=1.0
        Horizon; later times are censored there.
    random_state : int, RandomState instance or None, default=None
        Source of random numbers. Simulated records are nobody's: a seed is harmless here.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        X : ndarray of shape (n_samples, n_features)
            Covariates in [-1, 1]; a row's norm is at most ``sqrt(n_features)``.
        y : structured array of shape (n_samples,)
            Fields ``event`` (bool) and ``time`` (float in [0, max_time]).
        max_time : float
            The horizon.
        coef : ndarray of shape (n_features,)
            The true coefficients.
        shape, cumulative_hazard : float
            The baseline: its cumulative hazard at t is
            ``cumulative_hazard * (t / max_time) ** shape``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    The hazard of a record is :math:`\lambda_0(t) \exp(x \cdot \beta)` and its time is
    continuous. On every grid of intervals, proportional hazards are exactly the discrete-time model
    with complementary log-log link and the same :math:`\beta`. The logit link comes near when the
    hazards of the intervals are small. The one difference is dropouts inside of an interval: the
    discrete-time model counts them as having survived it.

    Examples
    --------
    >>> data = make_discrete_time_survival(200, 2, coef=[1, 0], random_state=0)
    >>> data.X.shape, data.y.dtype.names, data.max_time
    ((200, 2), ('event', 'time'), 1.0)
    """
    n_samples = positive_int("n_samples", n_samples)
    n_features = positive_int("n_features", n_features)
    one_of("baseline", baseline, tuple(_WEIBULL_SHAPE))
    event_rate = fraction("event_rate", event_rate)
    one_of("censoring", censoring, ("exponential", "uniform"))
    censoring_rate = fraction("censoring_rate", censoring_rate, closed="left")
    max_time = positive_number("max_time", max_time)
    beta = np.linspace(1.0, -1.0, n_features) if coef is None else np.array(coef, dtype=float)
    if beta.shape != (n_features,) or not np.isfinite(beta).all():
        raise ValueError(f"coef must be finite and have shape (n_features,) = ({n_features},).")

    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n_samples, n_features))
    log_ratio = X @ beta
    shape = _WEIBULL_SHAPE[baseline]
    cumulative_hazard = _cumulative_hazard(log_ratio, event_rate)
    # H0(T) exp(x beta) is a unit exponential.
    unit = rng.exponential(size=n_samples) * np.exp(-log_ratio) / cumulative_hazard
    lifetime = max_time * unit ** (1 / shape)
    dropout = max_time * _dropout(rng, n_samples, censoring, censoring_rate)
    time = np.minimum(np.minimum(lifetime, dropout), max_time)
    return Bunch(
        X=X,
        y=survival_target(lifetime <= np.minimum(dropout, max_time), time),
        max_time=max_time,
        coef=beta,
        shape=shape,
        cumulative_hazard=cumulative_hazard,
    )


def _cumulative_hazard(log_ratio: FloatArray, event_rate: float) -> float:
    """Return the baseline cumulative hazard at the horizon with the expected share of events."""

    def excess(log_hazard: float) -> float:
        return float(np.mean(-np.expm1(-np.exp(log_hazard + log_ratio)))) - event_rate

    # Equal hazard ratios have an explicit solution; unequal ones shift it by their range.
    middle = np.log(-np.log1p(-event_rate))
    low, high = middle - log_ratio.max() - 1, middle - log_ratio.min() + 1
    return float(np.exp(brentq(excess, low, high)))


def _dropout(rng: np.random.RandomState, n_samples: int, censoring: str, rate: float) -> FloatArray:
    """Return dropout times in units of the horizon, of which the share ``rate`` is below 1."""
    if rate == 0:
        return np.full(n_samples, np.inf)
    if censoring == "exponential":
        return rng.exponential(scale=-1 / np.log1p(-rate), size=n_samples)
    return rng.uniform(0.0, 1 / rate, size=n_samples)
