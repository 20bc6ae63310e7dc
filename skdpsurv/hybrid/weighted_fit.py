r"""Fit any estimator to public records with released weights: post-processing, from here on.

Weights are noisy counts and may be negative. Clipped to 0 they suit any estimator, and are biased
upwards. As they are they are unbiased, and suit a loss that stays convex with them: the solution
found is checked, and where it is no minimum the clipped weights are used. Everything that is looked
at here has been released, so that failures may show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skdpsurv.likelihoods.base import gram
from skdpsurv.privacy import warnings_as_errors
from skdpsurv.privacy.silence import attempted
from skdpsurv.types import FloatArray

__all__ = ["SIGNED_ESTIMATORS", "fit_weighted", "takes_signed_weights"]


#: Estimators that accept negative weights, with a check of what they found.
SIGNED_ESTIMATORS = (LogisticRegression, PoissonRegressor)


def takes_signed_weights(estimator: Any) -> bool:
    """Return whether signed weights are sound for this estimator."""
    if type(estimator) is LogisticRegression:
        smooth = estimator.solver in ("lbfgs", "newton-cg", "newton-cholesky")
        return smooth and estimator.class_weight is None
    return type(estimator) is PoissonRegressor


def fit_weighted(
    estimator: Any,
    X: FloatArray,
    y: NDArray[Any],
    weights: FloatArray,
    signed: bool,
    fit_equally: Callable[[], Any],
) -> Any:
    """Return a fitted clone, which nobody else holds.

    Parameters
    ----------
    estimator : estimator
        Whose ``fit`` takes ``sample_weight``.
    X, y : ndarray
        Public records.
    weights : ndarray of shape (n_public,)
        Released.
    signed : bool
        Whether to try weights as they are.
    fit_equally : callable
        Returns a new clone, fitted to all public records alike: for where nothing else can be
        fitted. An estimator that was used before might remember what it was used for.
    """
    if signed:
        try:
            with warnings_as_errors():
                fitted = clone(estimator).fit(X, y, sample_weight=weights)
            if is_minimum(fitted, X, weights):
                return fitted
        except (ValueError, ArithmeticError, Warning):
            pass  # not convex with these weights, or no minimum
    clipped = np.maximum(weights, 0.0)
    if not clipped.any():
        clipped = np.ones_like(weights)
    fitted = attempted(lambda: clone(estimator).fit(X, y, sample_weight=clipped))
    # It may fail, say, for a class without weight, or a subset of one class.
    return fit_equally() if fitted is None else fitted


def is_minimum(fitted: Any, X: FloatArray, weights: FloatArray) -> bool:
    """Return whether a fit with signed weights is at a minimum: its Hessian is positive there."""
    coef = np.asarray(fitted.coef_)
    if not np.isfinite(coef).all() or (coef.ndim == 2 and coef.shape[0] > 1):
        return False
    predictor = X @ coef.ravel() + float(np.ravel(fitted.intercept_)[0])
    if isinstance(fitted, LogisticRegression):
        likely = 0.5 * (1.0 + np.tanh(0.5 * predictor))
        curvature, ridge = likely * (1.0 - likely), 1.0 / fitted.C
        if getattr(fitted, "penalty", "l2") is None:
            ridge = 0.0
    else:
        if weights.sum() <= 0.0:  # by which its losses are divided
            return False
        with np.errstate(over="ignore"):
            curvature = np.exp(predictor) / weights.sum()
        ridge = fitted.alpha
    rows = np.column_stack([X, np.ones(X.shape[0])]) if fitted.fit_intercept else X
    hessian = gram(rows, curvature * weights)
    penalised = np.zeros(rows.shape[1])
    penalised[: X.shape[1]] = ridge if np.isfinite(ridge) else 0.0
    hessian += np.diag(penalised)
    if not np.isfinite(hessian).all():
        return False
    return bool(np.linalg.eigvalsh(hessian)[0] > 0.0)
