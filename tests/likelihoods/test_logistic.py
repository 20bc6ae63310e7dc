"""The logistic loss: derivatives, sums over blocks, constants, and the minimum elsewhere found."""

import math

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from skdpsurv.data.blocks import InMemory
from skdpsurv.likelihoods.linear import (
    LinearBlock,
    Logistic,
    log_odds,
    log_odds_slope,
    margin_threshold,
    probability,
)
from skdpsurv.mechanisms.newton import Certificate, Objective, minimize

R = 1.7
N_FEATURES = 3


def records(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    X *= R * rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return LinearBlock(X, rng.choice([-1.0, 1.0], size=n))


@pytest.fixture
def likelihood():
    return Logistic(N_FEATURES, R)


def no_pair_passes(likelihood, n=50):
    """Rows on the sphere, one by one; tests are of their gradients and Hessians."""
    constants, block = likelihood.constants, records(n)
    X = R * (1 - 1e-15) * block.X / np.linalg.norm(block.X, axis=1)[:, None]
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.1, 1.0, 1e3):
        coef = scale * rng.normal(size=N_FEATURES)
        parts = [
            likelihood.derivatives(coef, LinearBlock(X[i : i + 1], block.y[i : i + 1]))
            for i in range(n)
        ]
        g = np.array([part.gradient for part in parts])
        assert np.linalg.norm(g[:, None] - g, axis=2).max() <= constants.gradient_sensitivity
        for part in parts:
            eigenvalues = np.linalg.eigvalsh(part.hessian)
            assert eigenvalues.min() >= -1e-12
            assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-12)
            assert np.sum(eigenvalues > 1e-12) <= constants.hessian_rank == 1


class TestConstants:
    def test_no_pair_of_records_passes_them(self, likelihood):
        no_pair_passes(likelihood, 60)
        plain = Logistic(7)
        constants = plain.constants
        assert (constants.gradient_sensitivity, constants.hessian_trace) == (2.0, 0.25)
        assert plain.n_params == constants.predictor_rounding == 7


def test_slope_of_log_odds_is_its_mean_derivative():
    """E Z g(Z) = E g'(Z) of a standard normal Z (Stein), by a fine grid."""
    z = np.linspace(-9.0, 9.0, 20_001)
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    for cap in (0.5, 0.8, 1.0):
        exact = float(density @ (z * log_odds(z, cap)))
        assert log_odds_slope(cap) == pytest.approx(exact, rel=0.004)


@pytest.mark.parametrize("kappa", [0.5, 20.0])
def test_minimum_is_that_of_scikit_learn(likelihood, kappa):
    """C is 1 / kappa; 3000 records, so that the solver's pilot runs too."""
    block = records(3000)
    y = np.where(np.random.default_rng(5).random(3000) < 0.8, np.sign(block.X[:, 0]), block.y)
    block = LinearBlock(block.X, y)
    zeros = np.zeros(N_FEATURES)
    halves = LinearBlock(block.X[:1000], y[:1000]), LinearBlock(block.X[1000:], y[1000:])
    parts = InMemory(halves)
    coef = minimize(Objective(likelihood, parts, kappa, zeros, zeros), Certificate(1e-9, np.inf))
    reference = LogisticRegression(
        C=1 / kappa, fit_intercept=False, solver="newton-cholesky", tol=1e-10
    ).fit(block.X, y)
    np.testing.assert_allclose(coef, reference.coef_[0], atol=1e-8)
    assert np.abs(coef).max() > 0.5


CAPS = [0.5, 0.6, 0.75, 0.9, 1.0]


def loss(margin, cap):
    """phi, of margins."""
    margin = np.atleast_1d(np.asarray(margin, dtype=float))
    block = LinearBlock(margin[:, None], np.ones(margin.size))
    return Logistic(1, 1.0, cap).losses(np.ones(1), block)


def slope(margin, cap):
    """phi', of one margin."""
    block = LinearBlock(np.array([[float(margin)]]), np.ones(1))
    return Logistic(1, 1.0, cap).derivatives(np.ones(1), block, order=1).gradient[0] / margin


class TestCap:
    """``max_residual``: what a record's residual cannot exceed."""

    @pytest.mark.parametrize("cap", CAPS)
    def test_slope_is_the_capped_residual(self, cap):
        for margin in (-30.0, -2.0, -0.3, 0.01, 0.3, 2.0):
            residual = 1 / (1 + math.exp(margin))
            assert slope(margin, cap) == pytest.approx(-min(residual, cap), rel=1e-12)

    @pytest.mark.parametrize("cap", CAPS)
    def test_loss_is_logistic_above_the_threshold_and_a_line_below(self, cap):
        margin = np.append(np.linspace(-40, 40, 401), [-1e6, 1e6])
        threshold = math.log((1 - cap) / cap) if cap < 1.0 else -math.inf
        assert margin_threshold(cap) == pytest.approx(-threshold)
        logistic = np.logaddexp(0, -np.maximum(margin, threshold))
        line = cap * np.where(margin < threshold, threshold - margin, 0.0)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            np.testing.assert_allclose(loss(margin, cap), logistic + line, rtol=1e-13)

    @pytest.mark.parametrize("cap", CAPS)
    def test_no_pair_of_records_passes_the_constants(self, cap):
        likelihood = Logistic(N_FEATURES, R, cap)
        assert likelihood.constants.gradient_sensitivity == pytest.approx(2 * cap * R)
        assert likelihood.constants.hessian_trace == pytest.approx(R**2 / 4)
        no_pair_passes(likelihood)

    @pytest.mark.parametrize("cap", CAPS)
    def test_sensitivity_is_attained(self, cap):
        """By opposed rows that are both classified wrongly."""
        likelihood, tilt, coef = Logistic(2, R, cap), 1e-4, np.array([0.0, -1e7])
        ends = []
        for side in (-1.0, 1.0):
            row = R * np.array([[side * math.cos(tilt), math.sin(tilt)]])
            ends.append(likelihood.derivatives(coef, LinearBlock(row, np.ones(1))).gradient)
        gap = np.linalg.norm(ends[0] - ends[1])
        assert gap == pytest.approx(likelihood.constants.gradient_sensitivity, rel=1e-6)


class TestProbability:
    @pytest.mark.parametrize("cap", CAPS)
    @pytest.mark.parametrize("eta", [0.03, 0.3, 0.45, 0.55, 0.8, 0.98])
    def test_inverts_the_minimiser_of_the_expected_loss(self, cap, eta):
        """Of label 1 with probability eta; minimised numerically."""
        found = optimize.minimize_scalar(
            lambda m: eta * loss(m, cap)[0] + (1 - eta) * loss(-m, cap)[0],
            bounds=(-30, 30),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert probability(np.array([found.x]), cap)[0] == pytest.approx(eta, abs=1e-5)

    @pytest.mark.parametrize("cap", CAPS)
    def test_increasing_and_symmetric_to_the_ends(self, cap):
        predictor = np.linspace(-20, 20, 801)
        p = probability(predictor, cap)
        assert (np.diff(p) > 0).all()
        np.testing.assert_allclose(p + p[::-1], 1.0, rtol=1e-15)
        assert p[400] == 0.5
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            far = probability(np.array([-np.inf, -1e308, -800.0, 800.0, np.inf]), cap)
        np.testing.assert_allclose(far, [0, 0, 0, 1, 1], atol=1e-300)
