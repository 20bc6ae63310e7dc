"""NON-PRIVATE reference fits, to compare private releases with.

They need lifelines and scikit-survival: ``pip install "skdpsurv[reference]"``. Results depend on
each record without noise: keep them where the records are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from skdpsurv.data.histories import read_target
from skdpsurv.data.shape import require_one_each
from skdpsurv.data.target import event_and_time, survival_target
from skdpsurv.dp.checks import positive_int, positive_number
from skdpsurv.dp.references import extra
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.weibull import BEFORE_PART

if TYPE_CHECKING:
    from lifelines import WeibullFitter
    from sksurv.linear_model import CoxPHSurvivalAnalysis

__all__ = [
    "cox_coefficients",
    "fit_cox",
    "fit_weibull",
    "person_period",
    "relative_error",
    "relative_error_to_cox",
]


def fit_cox(X: ArrayLike, y: ArrayLike) -> CoxPHSurvivalAnalysis:
    """Fit a NON-PRIVATE Cox regression by maximum partial likelihood, ties by Efron's method.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Covariates (private), without missing values.
    y : structured array of shape (n_samples,)
        Events and times (private). See :func:`skdpsurv.data.target.event_and_time`.

    Returns
    -------
    sksurv.linear_model.CoxPHSurvivalAnalysis
        The fitted model, without a penalty. It holds event times of the records.

    Raises
    ------
    ValueError
        From scikit-survival, if Cox regression is impossible (no events, missing values, a
        singular information matrix). Its messages may show private data.

    See Also
    --------
    cox_coefficients : Only the coefficients.
    """
    with extra("reference", "scikit-survival", "fit_cox"):
        from sksurv.linear_model import CoxPHSurvivalAnalysis
    target = survival_target(*event_and_time(y))
    return CoxPHSurvivalAnalysis(alpha=0, ties="efron").fit(X, target)


def cox_coefficients(X: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return NON-PRIVATE coefficients (log hazard ratios) of a Cox regression.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Covariates (private), without missing values.
    y : structured array of shape (n_samples,)
        Events and times (private). See :func:`skdpsurv.data.target.event_and_time`.

    Returns
    -------
    ndarray of shape (n_features,)
        Log hazard ratio for one unit of each column of ``X``.

    Raises
    ------
    ValueError
        As :func:`fit_cox`.

    Examples
    --------
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> data = make_discrete_time_survival(5000, 2, coef=[1.0, -0.5], random_state=1)
    >>> cox_coefficients(data.X, data.y).round(1)
    array([ 1. , -0.5])
    """
    return np.asarray(fit_cox(X, y).coef_, dtype=np.float64)


def relative_error(estimate: ArrayLike, reference: ArrayLike) -> float:
    """NON-PRIVATE distance of an estimate from a reference, relative to the reference's length.

    Parameters
    ----------
    estimate : array-like of shape (n_params,)
        Estimated parameters, for example released coefficients.
    reference : array-like of shape (n_params,)
        Parameters to compare with, for example those of a non-private fit. Not all zero.

    Returns
    -------
    float
        ``norm(estimate - reference) / norm(reference)``, Euclidean norms.

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or the reference is zero.

    References
    ----------
    T. T. Nguyên and S. C. Hui, "Differentially private regression for discrete-time survival
    analysis", arXiv:1708.07436, 2017, section 6 (RE).

    Examples
    --------
    >>> relative_error([3.0, 3.0], [3.0, 4.0])
    0.2
    """
    estimate, reference = np.asarray(estimate, np.float64), np.asarray(reference, np.float64)
    if estimate.ndim != 1 or estimate.shape != reference.shape:
        raise ValueError(
            "estimate and reference must be 1-D and have the same shape, got "
            f"{estimate.shape} and {reference.shape}."
        )
    if not np.isfinite([estimate, reference]).all() or not reference.any():
        raise ValueError("estimate and reference must be finite, and reference not zero.")
    return float(np.linalg.norm(estimate - reference) / np.linalg.norm(reference))


def relative_error_to_cox(coef: ArrayLike, X: ArrayLike, y: ArrayLike) -> float:
    """Return the NON-PRIVATE relative distance of coefficients from those of a Cox regression.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Coefficients on the scale of ``X``, without an intercept or a baseline.
    X : array-like of shape (n_samples, n_features)
        Covariates (private), without missing values, scaled as for the fit of ``coef``.
    y : structured array of shape (n_samples,)
        Events and times (private). See :func:`skdpsurv.data.target.event_and_time`.

    Returns
    -------
    float
        ``norm(coef - cox) / norm(cox)``.

    Raises
    ------
    ValueError
        As :func:`fit_cox` and :func:`relative_error`.

    Notes
    -----
    It is not zero even without noise: a discrete-time model with logit link approximates
    proportional hazards, and counts censored records as having survived their interval. Both
    effects vanish as the intervals get short. The second is larger where censoring is heavy and
    depends on the covariates: use 200 intervals rather than 20. The source below finds 2 to 9 per
    cent on its data sets.

    References
    ----------
    T. T. Nguyên and S. C. Hui, "Differentially private regression for discrete-time survival
    analysis", arXiv:1708.07436, 2017, table 3.
    """
    return relative_error(coef, cox_coefficients(X, y))


def fit_weibull(y: ArrayLike, *, max_time: float, omega: float = 5.0) -> WeibullFitter:
    """Fit a NON-PRIVATE Weibull distribution by maximum likelihood, with times clipped publicly.

    Events before the least time are interval-censored there. Records censored before it count for
    half of their hazard at it.

    Parameters
    ----------
    y : structured array of shape (n_samples,)
        Events and times (private). See :func:`skdpsurv.data.target.event_and_time`.
    max_time : float
        Public horizon, in the unit of the times: later times are censored at it.
    omega : float, default=5.0
        The least time is ``max_time * exp(-omega)``.

    Returns
    -------
    lifelines.WeibullFitter
        The fitted model, with ``lambda_`` and ``rho_``. It holds the records.

    Raises
    ------
    ValueError, lifelines.exceptions.ConvergenceError
        From lifelines, if the fit is impossible. Its messages may show private data.

    Examples
    --------
    >>> from skdpsurv.datasets import load_flchain
    >>> fitter = fit_weibull(load_flchain().y, max_time=5200)
    >>> print(f"{fitter.rho_:.3f}")
    0.956
    """
    with extra("reference", "lifelines", "fit_weibull"):
        from lifelines import WeibullFitter
    seen = read_target(y).clipped(max_time)
    time, event, least = seen.exit, seen.event, max_time * np.exp(-omega)
    before = time < least
    if not before.any():
        return WeibullFitter().fit(time, event)
    lower = np.where(before & event, 0.0, np.maximum(time, least))
    upper = np.where(before & event, least, np.where(event, lower, np.inf))
    weights = np.where(before & ~event, BEFORE_PART, 1.0)
    return WeibullFitter().fit_interval_censoring(lower, upper, weights=weights)


def person_period(
    X: ArrayLike, y: ArrayLike, *, max_time: float, n_intervals: int, basis: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the NON-PRIVATE expansion to one row per record and interval at risk.

    Any binary regression on these rows fits the discrete-time hazard model: logistic regression
    for the logit link, a generalised linear model for the others. Tests compare faster likelihoods
    with it. It takes up to ``n_intervals`` times the memory of the data.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Covariates (private), without missing values.
    y : structured array of shape (n_samples,)
        Events and times (private). See :func:`skdpsurv.data.target.event_and_time`.
    max_time : float
        Public horizon, in the unit of the times. Later times are censored in the last interval.
    n_intervals : int
        Number q of intervals of equal length that (0, max_time] is cut into (public).
    basis : array-like of shape (n_intervals, n_basis)
        Baseline basis: row s holds its values in interval s + 1 (public).

    Returns
    -------
    design : ndarray of shape (n_rows, n_basis + n_features)
        The basis row of the interval, then the record's covariates. Records in order, the
        intervals of a record in order.
    response : ndarray of shape (n_rows,)
        1 in the last interval of a record with an event, else 0.

    Raises
    ------
    ValueError
        If a parameter is out of range or shapes do not fit.

    Notes
    -----
    A record with time t is in interval ``s = clip(ceil(q * t / max_time), 1, q)`` and
    contributes rows 1, ..., s. A censored record counts as having survived its interval. A
    time of 0 falls in the first interval.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([(True, 1.5), (False, 9.0)], dtype=[("event", "?"), ("time", "f8")])
    >>> design, response = person_period(
    ...     [[7.0], [8.0]], y, max_time=3, n_intervals=3, basis=np.eye(3)
    ... )
    >>> design
    array([[1., 0., 0., 7.],
           [0., 1., 0., 7.],
           [1., 0., 0., 8.],
           [0., 1., 0., 8.],
           [0., 0., 1., 8.]])
    >>> response
    array([0., 1., 0., 0., 0.])
    """
    max_time = positive_number("max_time", max_time)
    q = positive_int("n_intervals", n_intervals)
    rows = np.asarray(basis, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != q or not np.isfinite(rows).all():
        raise ValueError(f"basis must be finite and of shape ({q}, n_basis), got {rows.shape}.")
    covariates = check_array(X, dtype=np.float64, input_name="X")
    histories = read_target(y)
    require_one_each(histories.size, len(covariates))
    seen = histories.on_grid(max_time, q)
    interval = seen.exit
    record = np.repeat(np.arange(len(interval)), interval)
    last = np.cumsum(interval) - 1
    first = last - interval + 1
    at_risk = np.arange(len(record)) - first[record]
    design = np.hstack([rows[at_risk], covariates[record]])
    response = np.zeros(len(record))
    response[last[seen.event]] = 1.0
    return design, response
