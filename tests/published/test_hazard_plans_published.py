"""Algorithms 1 and 2 of Nguyen and Hui, arXiv 1708.07436, and where their theorem fails."""

import math

import numpy as np
import pytest

from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.mechanisms.objective import SOLVER_SHARE
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.published.hazards import (
    PublishedPerturbation,
    published_cost,
    published_sensitivity,
    true_cost,
)
from skdpsurv.survival.hazards.model import HazardModel, published_basis
from tests.support.hazard_blocks import hazard_block
from tests.support.refusing import refused


def planned(epsilon, method="obj_pert", alpha=0.0, q=50, e=3, n=1000, link="logit"):
    model = HazardModel(link, q, e, n, 2, 1.0, None, 0.5)
    return PublishedPerturbation.planned(model, epsilon, method, alpha)


def test_bounds_are_the_papers_formulas():
    for q, e in [(5, 1), (50, 3), (200, 4)]:
        basis = published_basis(q, e)
        squares = [sum(v * v for v in row) for row in basis]
        assert published_sensitivity(basis) == pytest.approx(
            sum(math.sqrt(a + 4) for a in squares) + max(math.sqrt(4 * a + 4) for a in squares)
        )
        for kappa in (0.1, 3.0, 1e4):
            theirs = 2 * sum(math.log(1 + 0.25 * math.sqrt(a + 1) / kappa) for a in squares)
            assert published_cost(basis, kappa) == pytest.approx(theirs)
            true = sum(math.log(1 + 0.25 * (a + 1) / kappa) for a in squares)
            assert true_cost(basis, kappa) == pytest.approx(true)
    assert published_sensitivity(published_basis(200, 3)) == pytest.approx(470, rel=0.02)


def test_no_pair_of_records_passes_the_bounds():
    """Of gradients, and of the determinant that one record's Hessian can make of a ridge."""
    for q, e in [(5, 1), (12, 3)]:
        rng = np.random.default_rng(3)
        basis = published_basis(q, e)
        likelihood, largest = DiscreteHazard(basis, 2), 0.0
        for _ in range(400):
            X = rng.normal(size=(2, 2))
            X /= np.linalg.norm(X, axis=1)[:, None]
            if rng.random() < 0.5:
                X[1] = -X[0]
            kinds = rng.integers(1, q + 1, size=2), rng.random(2) < 0.5
            coef = 10.0 ** rng.uniform(-1, 1.5) * rng.normal(size=likelihood.n_params)
            one, other = (
                likelihood.derivatives(coef, hazard_block(X[[i]], *(kind[[i]] for kind in kinds)))
                for i in (0, 1)
            )
            apart = float(np.linalg.norm(one.gradient - other.gradient))
            assert apart <= published_sensitivity(basis)
            largest = max(largest, apart)
            for kappa in (0.01, 1.0, 100.0):
                ratio = np.linalg.slogdet(np.eye(coef.size) + one.hessian / kappa)[1]
                assert ratio <= true_cost(basis, kappa) + 1e-12
        assert largest > 0.2 * published_sensitivity(basis)


def test_objective_perturbation():
    """Of an uncapped loss in the paper's basis; kappa is n lambda where the cost allows."""
    plan = planned(1.0, alpha=0.1, n=10**6)
    basis, likelihood, calibration = published_basis(50, 3), plan.likelihood, plan.calibration
    np.testing.assert_array_equal(likelihood.basis, basis)
    assert likelihood.max_cumulative_hazard is None
    J, S = published_cost(basis, 1e5), published_sensitivity(basis)
    found = calibration.kappa, calibration.epsilon_curvature, calibration.noise_scale
    assert found == pytest.approx((1e5, J, S / (1 - SOLVER_SHARE - J)))
    # S of the package covers less than the paper's: it errs on the safe side there.
    assert likelihood.constants.gradient_sensitivity <= S
    # Elsewhere half of epsilon pays for curvature.
    calibration, half = planned(1.0).calibration, (1 - SOLVER_SHARE) / 2
    found = calibration.epsilon_curvature, calibration.epsilon_noise
    assert (*found, published_cost(basis, calibration.kappa)) == pytest.approx((half,) * 3)


def test_output_perturbation():
    S = published_sensitivity(published_basis(50, 3))
    for alpha in [1e-3, 0.1]:
        found = planned(2.0, "out_pert", alpha).calibration
        kappa = 1000 * alpha
        assert (found.kappa, found.noise_scale) == pytest.approx((kappa, S / (kappa * 2.0)), 1e-6)
    assert planned(2.0, "out_pert").calibration.kappa > 0  # without alpha there is still a ridge


def implied_kappa(c, epsilon):
    """Return the kappa at which the published J is half of what is available, by bisection."""
    half, low, high = (1 - SOLVER_SHARE) * epsilon / 2, 1e-12, 1e12
    for _ in range(300):
        middle = math.sqrt(low * high)
        J = 2 * np.sum(np.log1p(np.sqrt(c) / (4 * middle)))
        low, high = (middle, high) if half < J else (low, middle)
    return high


class TestErratum:
    """Erratum 1: where the spare factor 2 does not cover the wrong eigenvalue."""

    # n_intervals, n_knots, epsilon, alpha
    FAILS = ((60, 60, 0.1, 0.0), (200, 80, 1.0, 0.0), (60, 60, 60.0, 10.0))
    HOLDS = ((4, 4, 1.0, 0.0), (7, 7, 1.0, 0.0), (200, 7, 0.1, 0.0), (200, 3, 10.0, 0.0))

    def test_refused_exactly_where_the_sum_falls_short(self):
        for q, e, epsilon, alpha in self.FAILS + self.HOLDS:
            c = np.sum(published_basis(q, e) ** 2, axis=1) + 1
            kappa = max(1000 * alpha, implied_kappa(c, epsilon))
            published = np.sum(2 * np.log1p(np.sqrt(c) / (4 * kappa)))
            needed = np.sum(np.log1p(c / (4 * kappa)))
            assert (published < needed) == ((q, e, epsilon, alpha) in self.FAILS)
            if published < needed:
                with pytest.raises(ValueError, match="n_knots, epsilon and alpha must be"):
                    planned(epsilon, alpha=alpha, q=q, e=e)
            else:
                plan = planned(epsilon, alpha=alpha, q=q, e=e)
                assert plan.calibration.kappa == pytest.approx(kappa)
        planned(0.1, "out_pert", 0.1, 60, 60)  # is not concerned

    def test_refusal_costs_nothing(self):
        model = PublishedDiscreteTimeSurvival(0.1, max_time=1.0, n_intervals=60, n_knots=60)
        message = "n_knots, epsilon and alpha must be"
        refused(model, message, np.zeros((20, 2)), np.linspace(0.1, 1, 20))


def test_other_links_are_refused():
    for link in ["cloglog", "probit"]:
        with pytest.raises(ValueError, match="link must be 'logit'"):
            planned(1.0, link=link)


def test_a_fit_has_a_ridge_that_a_solver_can_work_with():
    """To the letter kappa would be 1e-12, and the minimum 1e10 away."""
    for epsilon, method in [(100.0, "obj_pert"), (1000.0, "obj_pert"), (5.0, "out_pert")]:
        how = {"method": method, "max_time": 1.0, "n_intervals": 1, "n_knots": 1}
        fit = PublishedDiscreteTimeSurvival(epsilon, random_state=0, **how)
        fit.fit(np.full((300, 1), 0.3), np.full(300, 0.5))
        assert "as published" in fit.guarantee_.mechanism
        assert fit.guarantee_.public_inputs["kappa"] > 1e-4
        assert np.abs(fit.coef_).max() < 1e6
