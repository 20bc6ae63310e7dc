"""The logistic loss: derivatives, sums over blocks, constants, and the minimum elsewhere found."""

from __future__ import annotations

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
from skdpsurv.mechanisms.newton import Certificate, Objective, certificate, minimize

R = 1.7
N_FEATURES = 3


def records(n=40, d=N_FEATURES, norm=R, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= norm * rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return LinearBlock(X, rng.choice([-1.0, 1.0], size=n))


def coefs(d=N_FEATURES, scales=(0.3, 3.0, 30.0), seed=1):
    rng = np.random.default_rng(seed)
    return [scale * rng.normal(size=d) for scale in scales]


@pytest.fixture
def likelihood():
    return Logistic(N_FEATURES, R)


def test_loss_by_hand():
    block = LinearBlock(np.array([[2.0], [-1.0]]), np.array([1.0, -1.0]))
    expected = [math.log1p(math.exp(-1.0)), math.log1p(math.exp(-0.5))]
    np.testing.assert_allclose(Logistic(1, 2.0).losses(np.array([0.5]), block), expected)


def test_loss_of_a_hopeless_record_is_linear():
    """No overflow: log(1 + e^1000) is 1000."""
    block = LinearBlock(np.array([[1.0], [1.0]]), np.array([-1.0, 1.0]))
    np.testing.assert_array_equal(Logistic(1).losses(np.array([1000.0]), block), [1000.0, 0.0])
    gradient, hessian = Logistic(1).derivatives(np.array([1000.0]), block)
    assert gradient == [1.0]
    assert hessian == [[0.0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_numerical_derivatives(likelihood, weighted):
    block = records()
    weights = np.random.default_rng(2).uniform(0, 2, size=40) if weighted else None
    w = np.ones(40) if weights is None else weights
    step = 1e-5
    for coef in coefs():
        gradient, hessian = likelihood.derivatives(coef, block, weights)
        for j, unit in enumerate(step * np.eye(N_FEATURES)):
            up, down = coef + unit, coef - unit
            change = w @ (likelihood.losses(up, block) - likelihood.losses(down, block))
            bend = (
                likelihood.derivatives(up, block, weights, order=1).gradient
                - likelihood.derivatives(down, block, weights, order=1).gradient
            )
            assert gradient[j] == pytest.approx(change / (2 * step), rel=1e-6, abs=1e-7)
            np.testing.assert_allclose(hessian[j], bend / (2 * step), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(hessian, hessian.T, atol=1e-14)


def test_order_one_gives_the_same_gradient_and_no_hessian(likelihood):
    block, coef = records(), coefs()[1]
    first, second = (likelihood.derivatives(coef, block, order=order) for order in (1, 2))
    np.testing.assert_array_equal(first.gradient, second.gradient)
    assert first.hessian is None


def test_weights_count_records(likelihood):
    block, coef = records(), coefs()[1]
    weights = np.random.default_rng(3).integers(0, 3, size=40)
    repeated = LinearBlock(*(np.repeat(field, weights, axis=0) for field in block[:2]))
    weighted = likelihood.derivatives(coef, block, weights.astype(float))
    expected = likelihood.derivatives(coef, repeated)
    np.testing.assert_allclose(weighted.gradient, expected.gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.hessian, expected.hessian, rtol=1e-12, atol=1e-12)


def test_sums_add_up_over_blocks(likelihood):
    """Of more records than one piece of a sum has."""
    block, coef = records(1000), coefs()[1]
    whole = likelihood.derivatives(coef, block)
    parts = [
        likelihood.derivatives(coef, LinearBlock(block.X[rows], block.y[rows]))
        for rows in np.split(np.random.default_rng(4).permutation(1000), [1, 300])
    ]
    np.testing.assert_allclose(sum(p.gradient for p in parts), whole.gradient, rtol=1e-11)
    np.testing.assert_allclose(sum(p.hessian for p in parts), whole.hessian, rtol=1e-11)
    losses = likelihood.losses(coef, block)
    assert losses.shape == (1000,)
    np.testing.assert_allclose(
        losses[7:9], likelihood.losses(coef, LinearBlock(block.X[7:9], block.y[7:9]))
    )


def test_thinning_takes_every_stepth_record(likelihood):
    block = records()
    thin = likelihood.thin(block, 3)
    assert likelihood.n_records(block) == 40
    assert likelihood.n_records(thin) == 14
    np.testing.assert_array_equal(thin.X, block.X[::3])
    np.testing.assert_array_equal(thin.y, block.y[::3])


class TestConstants:
    def test_no_pair_of_records_passes_them(self, likelihood):
        constants = likelihood.constants
        block = records(60)
        block = LinearBlock(R * block.X / np.linalg.norm(block.X, axis=1)[:, None], block.y)
        singles = [LinearBlock(block.X[i : i + 1], block.y[i : i + 1]) for i in range(60)]
        for coef in coefs(scales=(0.0, 0.1, 1.0, 1e3)):
            parts = [likelihood.derivatives(coef, z) for z in singles]
            g = np.array([part.gradient for part in parts])
            gaps = np.linalg.norm(g[:, None] - g[None], axis=2)
            assert gaps.max() <= constants.gradient_sensitivity
            for part in parts:
                eigenvalues = np.linalg.eigvalsh(part.hessian)
                assert eigenvalues.min() >= -1e-12
                assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-12)
                assert np.sum(eigenvalues > 1e-12) <= constants.hessian_rank

    @pytest.mark.parametrize("norm", [0.3, R])
    def test_trace_and_rank_are_attained(self, norm):
        likelihood = Logistic(2, norm)
        row = norm * np.array([[0.6, 0.8]])
        hessian = likelihood.derivatives(np.zeros(2), LinearBlock(row, np.ones(1))).hessian
        assert np.trace(hessian) == pytest.approx(likelihood.constants.hessian_trace)
        assert np.linalg.matrix_rank(hessian) == likelihood.constants.hessian_rank == 1

    def test_without_bounds_of_ones_own(self):
        constants = Logistic(7).constants
        assert (constants.gradient_sensitivity, constants.hessian_trace) == (2.0, 0.25)
        assert Logistic(7).n_params == 7


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


def test_many_equal_records_are_certified():
    """The exact gradient, by counting, is below what was certified from sums of doubles."""
    n, n_positive = 100_000, 33_333
    likelihood = Logistic(2)
    row = np.array([0.6, -0.7])
    y = np.where(np.arange(n) < n_positive, 1.0, -1.0)
    found = certificate(likelihood.constants, n, 2.0, 6.0)
    block, linear = LinearBlock(np.tile(row, (n, 1)), y), np.array([3.0, -5.0])
    objective = Objective(likelihood, InMemory([block]), 2.0, np.zeros(2), linear)
    coef = minimize(objective, found).astype(np.longdouble)
    z = row.astype(np.longdouble)
    share = 1 / (1 + np.exp(-(z @ coef)))
    gradient = z * (n * share - n_positive) + 2 * coef + linear
    assert np.sqrt(gradient @ gradient) <= found.tolerance


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
    def test_derivatives_are_numerical_derivatives(self, cap):
        likelihood, block, step = Logistic(N_FEATURES, R, cap), records(), 1e-6
        for coef in coefs():
            gradient, hessian = likelihood.derivatives(coef, block)
            bend = np.zeros_like(hessian)
            for j, unit in enumerate(step * np.eye(N_FEATURES)):
                up, down = (likelihood.losses(coef + s * unit, block).sum() for s in (1, -1))
                assert gradient[j] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)
                up, down = (likelihood.derivatives(coef + s * unit, block) for s in (1, -1))
                bend[j] = (up.gradient - down.gradient) / (2 * step)
            np.testing.assert_allclose(hessian, bend, rtol=1e-4, atol=1e-6)

    def test_the_cap_binds_in_the_test_above(self):
        block, coef = records(), coefs()[1]
        residual = 1 / (1 + np.exp(block.y * (block.X @ coef)))
        assert 0.1 < (residual > 0.6).mean() < 0.9

    @pytest.mark.parametrize("cap", CAPS)
    def test_slope_is_the_capped_residual(self, cap):
        for margin in (-30.0, -2.0, -0.3, 0.01, 0.3, 2.0):
            residual = 1 / (1 + math.exp(margin))
            assert slope(margin, cap) == pytest.approx(-min(residual, cap), rel=1e-12)

    @pytest.mark.parametrize("cap", CAPS)
    def test_convex_and_decreasing(self, cap):
        phi = loss(np.linspace(-6, 6, 2001), cap)
        assert (np.diff(phi) < 0).all()
        assert (np.diff(phi, 2) > -1e-13).all()

    @pytest.mark.parametrize("cap", CAPS[:-1])
    def test_threshold_is_continuously_differentiable(self, cap):
        threshold = -margin_threshold(cap)
        assert threshold == pytest.approx(math.log((1 - cap) / cap))
        below, above = loss([threshold - 1e-9, threshold + 1e-9], cap)
        assert below == pytest.approx(above, abs=3e-9)
        near = [slope(threshold + shift - 1e-12, cap) for shift in (-1e-6, 0.0, 1e-6)]
        np.testing.assert_allclose(near, -cap, atol=1e-6)
        # Logistic above the threshold, a straight line below.
        assert loss(threshold + 1, cap)[0] == pytest.approx(math.log1p(math.exp(-threshold - 1)))
        assert np.diff(loss([threshold - 3, threshold - 2, threshold - 1], cap)) == pytest.approx(
            -cap
        )

    @pytest.mark.parametrize("cap", CAPS[:-1])
    def test_hessian_is_zero_beyond_the_threshold_only(self, cap):
        likelihood = Logistic(1, 9.0, cap)
        for shift, positive in ((-0.01, False), (0.01, True)):
            block = LinearBlock(np.array([[-margin_threshold(cap) + shift]]), np.ones(1))
            hessian = likelihood.derivatives(np.ones(1), block).hessian
            # At c = 1/2 the threshold is at 0, where the row itself is nearly 0.
            assert (hessian[0, 0] > 0) == positive

    def test_without_a_cap_it_is_the_logistic_loss(self):
        margin = np.linspace(-40, 40, 401)
        np.testing.assert_allclose(loss(margin, 1.0), np.logaddexp(0, -margin), rtol=1e-14)
        assert margin_threshold(1.0) == math.inf

    @pytest.mark.parametrize("cap", CAPS)
    def test_no_pair_of_records_passes_the_constants(self, cap):
        likelihood = Logistic(N_FEATURES, R, cap)
        constants = likelihood.constants
        assert constants.gradient_sensitivity == pytest.approx(2 * cap * R)
        assert constants.hessian_trace == pytest.approx(R**2 / 4)
        block = records(50)
        X = R * (1 - 1e-15) * block.X / np.linalg.norm(block.X, axis=1)[:, None]
        for coef in coefs(scales=(0.0, 0.1, 1.0, 1e3)):
            parts = [
                likelihood.derivatives(coef, LinearBlock(X[i : i + 1], block.y[i : i + 1]))
                for i in range(50)
            ]
            g = np.array([part.gradient for part in parts])
            assert np.linalg.norm(g[:, None] - g, axis=2).max() <= constants.gradient_sensitivity
            for part in parts:
                eigenvalues = np.linalg.eigvalsh(part.hessian)
                assert eigenvalues.min() >= -1e-12
                assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-12)
                assert np.sum(eigenvalues > 1e-12) <= 1

    @pytest.mark.parametrize("cap", CAPS)
    def test_sensitivity_is_attained(self, cap):
        """By opposed rows that are both classified wrongly."""
        likelihood, tilt = Logistic(2, R, cap), 1e-4
        ends = [
            likelihood.derivatives(
                np.array([0.0, -1e7]),
                LinearBlock(R * np.array([[side * math.cos(tilt), math.sin(tilt)]]), np.ones(1)),
                order=1,
            ).gradient
            for side in (-1.0, 1.0)
        ]
        gap = np.linalg.norm(ends[0] - ends[1])
        assert gap == pytest.approx(likelihood.constants.gradient_sensitivity, rel=1e-6)

    @pytest.mark.parametrize("cap", CAPS[1:])
    def test_trace_is_attained_at_margin_zero(self, cap):
        row = np.array([[0.0, R]])
        hessian = Logistic(2, R, cap).derivatives(np.zeros(2), LinearBlock(row, np.ones(1)))[1]
        assert np.trace(hessian) == pytest.approx(R**2 / 4)

    @pytest.mark.parametrize("cap", CAPS)
    def test_huge_margins(self, cap):
        """A line of slope -c below, zero above; no overflow."""
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            far, farther, right = loss([-1e6, -2e6, 1e6], cap)
        assert farther - far == pytest.approx(cap * 1e6)
        assert right == 0.0
        assert math.isfinite(far)


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
    def test_increasing_symmetric_and_one_half_at_zero(self, cap):
        predictor = np.linspace(-20, 20, 801)
        p = probability(predictor, cap)
        assert (np.diff(p) > 0).all()
        np.testing.assert_allclose(p + p[::-1], 1.0, rtol=1e-15)
        assert p[400] == 0.5

    def test_by_hand(self):
        """The logistic function up to the threshold, c / (c + sigma(-m)) beyond."""
        sigma = 1 / (1 + math.exp(2.0))
        predictor = np.array([-2.0, 2.0])
        np.testing.assert_allclose(probability(predictor), [sigma, 1 - sigma])
        np.testing.assert_allclose(probability(predictor, 0.9), [sigma, 1 - sigma])
        half = 0.5 / (0.5 + sigma)
        np.testing.assert_allclose(probability(predictor, 0.5), [1 - half, half])

    @pytest.mark.parametrize("cap", CAPS)
    def test_huge_predictors(self, cap):
        predictor = np.array([-np.inf, -1e308, -800.0, 800.0, 1e308, np.inf])
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            p = probability(predictor, cap)
        np.testing.assert_allclose(p, [0, 0, 0, 1, 1, 1], atol=1e-300)


@pytest.mark.parametrize("cap", [0.5, 0.75])
def test_capped_minimum_is_certified_and_that_of_scipy(cap):
    """The Hessian jumps at the threshold; the solver must not mind."""
    block, kappa = records(400), 0.5
    likelihood = Logistic(N_FEATURES, R, cap)
    zeros = np.zeros(N_FEATURES)
    coef = minimize(
        Objective(likelihood, InMemory([block]), kappa, zeros, zeros), Certificate(1e-9, np.inf)
    )
    found = optimize.minimize(
        lambda f: likelihood.losses(f, block).sum() + 0.5 * kappa * f @ f, zeros, tol=1e-9
    )
    np.testing.assert_allclose(coef, found.x, atol=1e-4)
    total = likelihood.derivatives(coef, block).gradient + kappa * coef
    assert np.linalg.norm(total) <= 1e-9
