"""Objective perturbation: how epsilon is spent, and the law of what is released."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import PrivacyConstants, Sensitivity
from skdpsurv.mechanisms import objective
from skdpsurv.mechanisms.newton import certificate
from skdpsurv.mechanisms.objective import SOLVER_SHARE, calibrate, calibrate_to_cost, smallest_ridge
from skdpsurv.mechanisms.perturbation import Problem, perturb
from skdpsurv.mechanisms.vector_noise import LEAST_NOISE, SphericalLaplace
from tests.support.hazard_blocks import hazard_block

CONSTANTS = [
    PrivacyConstants(2.0, 0.25, 1),
    PrivacyConstants(6.0, 5.0, 3),
    PrivacyConstants(400.0, 60.0, 4),
]
P = 5


@cache
def calibrated():
    """Return settings of every kind, each with its least ridge wanted and its calibration."""
    grid = product(
        CONSTANTS, (0.01, 1.0, 20.0, 1e7), ((1, 0.0), (1000, 1e-3), (10**7, 0.5)), (0.05, 0.5)
    )
    return [
        (
            constants,
            epsilon,
            n,
            share,
            (n * alpha, smallest_ridge(constants, share * epsilon), 0.01 * constants.hessian_trace),
            calibrate(constants, epsilon, n, P, alpha, curvature_share=share),
        )
        for constants, epsilon, (n, alpha), share in grid
    ]


class TestCalibrate:
    def test_the_parts_add_up_to_epsilon(self):
        for constants, epsilon, *_, c in calibrated():
            parts = (c.epsilon_noise, c.epsilon_curvature, c.epsilon_solver)
            assert min(parts) > 0
            assert math.fsum(parts) == pytest.approx(epsilon, rel=1e-12)
            assert c.epsilon_solver / epsilon in (SOLVER_SHARE, objective.LARGEST_SOLVER_SHARE)
            # What the largest move costs, solver included, is no more, and no less if it need not.
            r = constants.hessian_rank
            sides = np.full(r, constants.hessian_trace / r)
            cost = c.cost(Sensitivity(constants.gradient_sensitivity, sides))
            assert cost <= epsilon * (1 + 1e-15)
            if c.solver_scale > LEAST_NOISE:
                assert cost == pytest.approx(epsilon, rel=1e-9)

    def test_curvature_is_paid_by_the_theorem(self):
        for constants, epsilon, _, share, _, c in calibrated():
            r, tau = constants.hessian_rank, constants.hessian_trace
            assert c.epsilon_curvature == pytest.approx(
                r * math.log(1 + tau / (r * c.kappa)), rel=1e-6
            )
            assert c.epsilon_curvature <= share * epsilon * (1 + 1e-9)

    def test_scales_are_sensitivity_over_epsilon(self):
        for constants, _, n, _, _, c in calibrated():
            assert c.noise_scale * c.epsilon_noise == pytest.approx(constants.gradient_sensitivity)
            # Two points within g/kappa of one minimum are 2g/kappa apart.
            apart = 2 * c.certificate.tolerance / c.kappa
            assert c.solver_scale * c.epsilon_solver >= apart * (1 - 1e-9)
            if c.solver_scale > LEAST_NOISE:  # no larger than needed, either
                assert c.solver_scale * c.epsilon_solver == pytest.approx(apart)
            assert LEAST_NOISE <= c.solver_scale <= objective.LARGEST_SOLVER_SCALE * (1 + 1e-9)
            assert c.certificate == certificate(constants, n, c.kappa, c.linear.largest_norm())

    def test_the_ridge_is_as_large_as_asked_or_as_a_solver_needs(self):
        """With the noise of the least epsilon_b; every reason for a ridge is in the grid."""
        origins = set()
        for constants, epsilon, n, share, asked, c in calibrated():
            epsilon_noise = epsilon - c.epsilon_solver - share * epsilon
            noise = SphericalLaplace.calibrated_to(P, constants.gradient_sensitivity, epsilon_noise)
            needed = objective.least_ridge(constants, n, noise, c.epsilon_solver)
            assert c.kappa == pytest.approx(max(*asked, needed), rel=1e-9)
            assert c.kappa >= max(asked)
            origins.add(asked.index(c.kappa) if c.kappa in asked else "solver")
        assert origins == {0, 1, 2, "solver"}


def test_smallest_ridge_inverts_the_cost_and_is_zero_rather_than_too_small():
    for constants in CONSTANTS:
        for cost in (1e-4, 0.3, 5.0):
            assert objective.curvature_cost(
                constants, smallest_ridge(constants, cost)
            ) == pytest.approx(cost)
        r = constants.hessian_rank
        assert 0 < smallest_ridge(constants, 699.0 * r) < 1e-290
        for cost in (700.0 * r, 1e9, 1e300):
            assert smallest_ridge(constants, cost) == 0.0


class TestCalibrateToCost:
    """Algorithm 2 of Nguyen and Hui."""

    CONSTANTS = PrivacyConstants(5.0, 6.0, 2)

    @staticmethod
    def cost(kappa):
        return 2.0 * math.log1p(3.0 / kappa)

    def test_keeps_kappa_where_the_cost_is_small(self):
        c = calibrate_to_cost(self.CONSTANTS, self.cost, 1.0, 1000, P, 0.1)
        assert c.kappa == 100.0
        assert c.epsilon_curvature == self.cost(100.0)

    def test_enlarges_kappa_until_the_cost_is_half(self):
        available = (1 - SOLVER_SHARE) * 1.0
        for alpha in (0.0, 1e-6):
            c = calibrate_to_cost(self.CONSTANTS, self.cost, 1.0, 1000, P, alpha)
            assert c.epsilon_curvature == pytest.approx(available / 2)
            assert c.epsilon_curvature <= available / 2
            assert c.epsilon_noise == pytest.approx(available / 2)
            assert c.kappa == pytest.approx(3.0 / math.expm1(available / 4))


def tiny_problem():
    rng = np.random.default_rng(0)
    link = LINKS["logit"]
    likelihood = DiscreteHazard(np.full((4, 1), 0.5), 1, 1.0, link, 1.0)
    X = rng.uniform(-1, 1, size=(12, 1))
    block = hazard_block(X, rng.integers(1, 5, size=12), rng.random(12) < 0.5)
    return likelihood, InMemory([block]), np.array([-1.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
def test_law_of_the_release(seeded):
    """The release determines b, whose norm is Gamma(d, S/epsilon_b) and direction uniform.

    Fixed seeds; unseeded, each of the two tests has a false-alarm rate of 1e-7.
    """
    likelihood, blocks, center = tiny_problem()
    calibration = calibrate(likelihood.constants, 1.0, 12, 2)
    problem, noise = Problem(likelihood, blocks, calibration, center), []
    for i in range(600):
        coef = perturb(problem, random_source(i if seeded else None)).coef
        gradient = likelihood.derivatives(coef, blocks.blocks[0], order=1).gradient
        noise.append(-gradient - calibration.kappa * (coef - center))
    noise = np.array(noise)
    scale = likelihood.constants.gradient_sensitivity / calibration.epsilon_noise
    law = stats.gamma(2, scale=scale)
    assert stats.kstest(np.linalg.norm(noise, axis=1), law.cdf).pvalue > 1e-7
    angle = np.arctan2(noise[:, 1], noise[:, 0])
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-7
    # The same test does tell a scale that is a third too small.
    shrunk = 0.67 * np.linalg.norm(noise, axis=1)
    assert stats.kstest(shrunk, law.cdf).pvalue < 1e-7


def test_release_is_on_a_public_lattice():
    likelihood, blocks, center = tiny_problem()
    calibration = calibrate(likelihood.constants, 1.0, 12, 2)
    coef = perturb(Problem(likelihood, blocks, calibration, center), random_source(0)).coef
    step = 2.0 ** np.floor(np.log2(calibration.solver_scale / 256))
    np.testing.assert_array_equal(np.round(coef / step) * step, coef)
