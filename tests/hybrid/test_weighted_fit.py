"""Fits with released weights, of which negative ones count for nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge

from skdpsurv.hybrid import meta_estimator


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int), rng


def fit_weighted(estimator, X, y, weights):
    """Fit, and fail where nothing can be fitted."""
    fitted = meta_estimator.fit_weighted(estimator, X, y, weights, lambda: None)
    assert fitted is not None
    return fitted


def coef(fitted):
    return np.r_[np.ravel(fitted.coef_), np.ravel(fitted.intercept_)]


@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-10), PoissonRegressor(tol=1e-10)])
def test_all_negative_is_equal(data, estimator):
    X, y, _ = data
    equal = fit_weighted(estimator, X, y, np.ones(300))
    found = fit_weighted(estimator, X, y, np.full(300, -3.0))
    np.testing.assert_allclose(coef(found), coef(equal), atol=1e-5)


def test_clipped_weights_are_a_weighted_fit(data):
    X, y, rng = data
    weights = rng.normal(size=300)
    found = fit_weighted(LinearRegression(), X, y, weights)
    expected = LinearRegression().fit(X[weights > 0], y[weights > 0], weights[weights > 0])
    np.testing.assert_allclose(coef(found), coef(expected))


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LogisticRegression(solver="liblinear"), Ridge()], ids=repr
)
def test_a_class_without_weight(data, estimator):
    X, y, _ = data
    equal = clone(estimator).fit(X, y)
    weights = np.where(y == 1, -1.0, 1.0)
    fitted = meta_estimator.fit_weighted(estimator, X, y, weights, lambda: equal)
    assert np.isfinite(coef(fitted)).all()


def test_what_cannot_be_fitted_falls_back(data):
    X, y, _ = data
    equal = LogisticRegression().fit(X, y)
    alone = meta_estimator.fit_weighted(equal, X[:1], y[:1], np.ones(1), lambda: equal)
    assert alone is equal


def test_the_estimator_that_was_given_is_not_fitted(data):
    X, y, _ = data
    estimator = LogisticRegression()
    fit_weighted(estimator, X, y, np.ones(300))
    assert not hasattr(estimator, "coef_")
