"""Fits with released weights: negative ones are kept only where a minimum was found."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skdpsurv.hybrid import meta_estimator
from skdpsurv.hybrid.meta_estimator import takes_signed_weights


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int), rng


def fit_weighted(estimator, X, y, weights, signed):
    return meta_estimator.fit_weighted(estimator, X, y, weights, signed, lambda: None)


def coef(fitted):
    return np.r_[np.ravel(fitted.coef_), np.ravel(fitted.intercept_)]


class Mine(LogisticRegression):
    """Of which nothing is known."""


def test_stated_list():
    sound = [LogisticRegression(), LogisticRegression(solver="newton-cholesky"), PoissonRegressor()]
    solvers = [LogisticRegression(solver=name) for name in ("liblinear", "saga")]
    balanced = LogisticRegression(class_weight="balanced")
    assert all(map(takes_signed_weights, sound))
    assert not any(map(takes_signed_weights, [*solvers, balanced, Mine(), Ridge()]))


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


def test_three_classes_and_a_negative_total_are_clipped(data):
    """Poisson regression divides by the total, which must not swap more for less."""
    X, _, rng = data
    three = np.digitize(X[:, 0], [-0.5, 0.5]), rng.normal(size=300) + 3.0
    assert (three[1] < 0).any()
    half = np.arange(300) < 150
    negative = np.where(half, 1.0, 5.0), np.where(half, 0.5, -3.0)
    for estimator, case in ((LogisticRegression(), three), (PoissonRegressor(), negative)):
        signed, clipped = (fit_weighted(estimator, X, *case, kept) for kept in (True, False))
        np.testing.assert_array_equal(coef(signed), coef(clipped))


def test_unpenalised_fits_have_no_ridge():
    X = np.array([[1.0], [-1.0], [1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LogisticRegression(penalty=None, fit_intercept=False).fit(X, [0, 1, 1])
    fitted.coef_ = np.zeros((1, 1))
    assert not meta_estimator.is_minimum(fitted, X[[0, 2]], np.array([1.0, -2.0]))


def test_a_class_without_weight_and_what_cannot_be_fitted(data):
    X, y, _ = data
    weights = np.where(y == 1, -1.0, 1.0)
    for estimator in (LogisticRegression(), LogisticRegression(solver="liblinear"), Ridge()):
        for signed in (True, False):
            fitted = fit_weighted(estimator, X, y, weights, signed) or estimator.fit(X, y)
            assert np.isfinite(coef(fitted)).all()
    equal = LogisticRegression().fit(X, y)
    one = meta_estimator.fit_weighted(equal, X[:1], y[:1], np.ones(1), False, lambda: equal)
    assert one is equal
