"""Hybrid fits with a delta: Gaussian noise on moments of residuals, where it is less."""

import math
import warnings

import numpy as np
import pytest

from skdpsurv import HybridMEstimator, PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.dp.privacy_cost import Concentrated, epsilon_at
from skdpsurv.hybrid import hybrid_plan
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from tests.support.spies import laws_drawn

N, DELTA = 3000, 1e-8


def records(d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, d))
    public = np.arange(2 * N) < N
    slope = np.where(public[:, None], 0.2, 0.8) * np.where(np.arange(d) % 3, 1.0, -1.0)
    y = rng.random(2 * N) < 1.0 / (1.0 + np.exp(-(X * slope).sum(axis=1)))
    return X, y.astype(int), public


def fit(d, seed=None, **parameters):
    X, y, public = records(d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = HybridMEstimator(**{"delta": DELTA, "random_state": seed, **parameters})
        return model.fit(X, y, public=public)


def test_all_rounds_cost_what_is_claimed(monkeypatch):
    laws, accountant = laws_drawn(monkeypatch, SphericalGaussian), PrivacyAccountant(1.0, DELTA)
    model = fit(40, accountant=accountant)
    assert (accountant.spent(), accountant.spent_delta()) == (1.0, DELTA)
    stated = model.guarantee_.public_inputs
    assert len(laws) == len(stated["mu_residuals"]) > 1
    assert {law.dimension for law in laws} == {41}
    rho = sum(mu**2 for mu in stated["mu_residuals"]) / 2.0
    assert model.guarantee_.rho == pytest.approx(rho, rel=1e-6)
    assert epsilon_at(model.guarantee_.rho, DELTA) <= model.guarantee_.epsilon == 1.0
    assert epsilon_at(model.guarantee_.rho, DELTA) == pytest.approx(1.0, rel=1e-6)
    assert (model.guarantee_.delta, model.guarantee_.status) == (DELTA, "proved")
    X, y, public = records(40)
    built = HybridMEstimator.from_release(model.release_, X=X[public], y=y[public])
    assert built.delta == DELTA
    np.testing.assert_allclose(built.estimator_.coef_, model.estimator_.coef_, rtol=1e-6)


def test_what_has_no_use_for_it_does_not_use_it():
    for parameters in [{"d": 3}, {"d": 10}, {"d": 20, "method": "all"}, {"epsilon": math.inf}]:
        model = fit(**{"d": 40, **parameters})
        assert (model.guarantee_.delta, model.guarantee_.rho) == (0.0, None)
        assert "epsilon_residuals" in model.guarantee_.public_inputs
        assert (model.guarantee_.status == "none") == ("epsilon" in parameters)


def test_noise_of_moments_is_what_is_drawn():
    for price in [0.7, Concentrated(0.7)]:
        laplace = not isinstance(price, Concentrated)
        expected = (math.sqrt(12.0) if laplace else 1.0) * 2.0 * 3.0 / (500 * 0.7)
        assert hybrid_plan.noise_of_moments(500, 10, 3.0, price) == pytest.approx(expected)
