"""Fits with released weights: negative ones are kept only where a minimum was found."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.tree import DecisionTreeClassifier

from skdpsurv.hybrid import meta_estimator
from skdpsurv.hybrid.meta_estimator import takes_signed_weights


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int), rng


def fit_weighted(estimator, X, y, weights, signed):
    """Fit, and fail where nothing can be fitted."""
    fitted = meta_estimator.fit_weighted(estimator, X, y, weights, signed, lambda: None)
    assert fitted is not None
    return fitted


def coef(fitted):
    return np.r_[np.ravel(fitted.coef_), np.ravel(fitted.intercept_)]


class Mine(LogisticRegression):
    """Of which nothing is known."""


def test_stated_list():
    sound = [LogisticRegression(), LogisticRegression(solver="newton-cholesky"), PoissonRegressor()]
    solvers = [LogisticRegression(solver=name) for name in ("liblinear", "saga")]
    others = [Mine(), LinearRegression(), Ridge(), QuantileRegressor(), HuberRegressor()]
    assert all(map(takes_signed_weights, sound))
    assert not any(map(takes_signed_weights, [*solvers, *others, DecisionTreeClassifier()]))


@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-10), PoissonRegressor(tol=1e-10)])
class TestSigned:
    def test_a_record_and_its_negative_cancel(self, data, estimator):
        """Weights 1 and -1 of the same record are as if it were not there."""
        X, y, _ = data
        more = np.vstack([X, X[:40], X[:40]])
        outcomes = np.r_[y, y[:40], y[:40]]
        weights = np.r_[np.ones(300), np.ones(40), -np.ones(40)]
        signed = fit_weighted(estimator, more, outcomes, weights, True)
        plain = fit_weighted(estimator, X, y, np.ones(300), True)
        np.testing.assert_allclose(coef(signed), coef(plain), atol=1e-4)
        clipped = fit_weighted(estimator, more, outcomes, weights, False)
        assert np.abs(coef(clipped) - coef(plain)).max() > 1e-3

    def test_what_is_not_convex_is_clipped(self, data, estimator):
        X, y, rng = data
        weights = 30.0 * rng.normal(size=300)
        weights += 1.0 - weights.mean()
        signed = fit_weighted(estimator, X, y, weights, True)
        clipped = fit_weighted(estimator, X, y, np.maximum(weights, 0.0), False)
        np.testing.assert_array_equal(coef(signed), coef(clipped))

    def test_all_negative_is_equal(self, data, estimator):
        X, y, _ = data
        equal = fit_weighted(estimator, X, y, np.ones(300), False)
        for signed in (True, False):
            found = fit_weighted(estimator, X, y, np.full(300, -3.0), signed)
            np.testing.assert_allclose(coef(found), coef(equal), atol=1e-5)


def test_three_classes_are_clipped(data):
    X, _, rng = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weights = rng.normal(size=300) + 3.0
    assert (weights < 0).any()
    signed = fit_weighted(LogisticRegression(), X, y, weights, True)
    clipped = fit_weighted(LogisticRegression(), X, y, weights, False)
    np.testing.assert_array_equal(coef(signed), coef(clipped))


def test_a_class_without_weight(data):
    for estimator, signed in product(
        [LogisticRegression(), LogisticRegression(solver="liblinear"), Ridge()], [True, False]
    ):
        X, y, _ = data
        equal = clone(estimator).fit(X, y)
        weights = np.where(y == 1, -1.0, 1.0)
        fitted = meta_estimator.fit_weighted(
            estimator, X, y, weights, signed, partial(clone, equal)
        )
        assert np.isfinite(coef(fitted)).all()


def test_what_cannot_be_fitted_falls_back(data):
    X, y, _ = data
    equal = LogisticRegression().fit(X, y)
    alone = meta_estimator.fit_weighted(
        equal, X[:1], y[:1], np.ones(1), False, lambda equal=equal: equal
    )
    assert alone is equal
