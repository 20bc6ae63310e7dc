"""A scalar loss is all that a regression needs: a second one beside the logistic, end to end."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, LogisticLoss
from skdpsurv.mechanisms.newton import Certificate, Objective, gradient_error, minimize
from skdpsurv.mechanisms.objective import calibrate
from skdpsurv.mechanisms.perturbation import Problem, perturb
from tests.support.extensions import extension

from .scalar_losses import check_scalar_loss

CappedPoisson = extension("poisson").CappedPoisson
LARGEST_COUNT, R = 6, 1.5
PREDICTORS = np.linspace(-40.0, 40.0, 80_001)
COUNTS = range(LARGEST_COUNT + 1)


@pytest.mark.parametrize("cap", [0.5, 0.7, 1.0])
def test_logistic_keeps_its_promises(cap):
    check_scalar_loss(LogisticLoss(cap), [-1.0, 1.0], PREDICTORS)


@dataclass(frozen=True)
class Faulty:
    """The capped Poisson with one fault, which the check must find."""

    fault: str
    loss = CappedPoisson(3.0, LARGEST_COUNT)

    @property
    def largest_slope(self):
        return self.loss.largest_slope * {"loose": 1.01, "tight": 0.99}.get(self.fault, 1.0)

    @property
    def largest_curvature(self):
        return self.loss.largest_curvature * {"flat": 0.99, "bent": 1.01}.get(self.fault, 1.0)

    def value(self, eta, y):
        return self.loss.value(eta, y) * (1.001 if self.fault == "value" else 1.0)

    def derivatives(self, eta, y, order):
        slope, curvature = self.loss.derivatives(eta, y, order)
        if self.fault == "slope":
            slope = 0.9995 * slope
        if self.fault == "falling":
            slope = slope - 0.5 * np.exp(-((eta - 3.0) ** 2))
        if self.fault == "jump":
            slope = np.where(eta > 0.123, np.minimum(slope + 1e-2, 3.0), slope)
        if self.fault == "curvature" and order >= 2:
            curvature = np.where(eta < 0.0, 0.98 * curvature, curvature)
        return slope, curvature


FAULTS = ["slope", "curvature", "value", "falling", "jump", "loose", "tight", "flat", "bent"]


def test_what_a_loss_does_not_state_is_assumed():
    constants = LinearLikelihood(Faulty("none"), 2, R).constants
    assert constants.rounding == (64.0 + 2.0 + 256.0 + 66.0) / 2.0  # slope, weight, sums
    assert (constants.predictor_rounding, constants.loss_at_zero) == (2.0, math.inf)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds_what_is_wrong(fault):
    check_scalar_loss(Faulty("none"), COUNTS, PREDICTORS)
    with pytest.raises(AssertionError):
        check_scalar_loss(Faulty(fault), COUNTS, PREDICTORS)


@pytest.fixture
def likelihood():
    return LinearLikelihood(CappedPoisson(3.0, LARGEST_COUNT), 2, R)


def test_no_pair_of_records_passes_the_constants(likelihood):
    """Rows on the sphere, every count, and coefficients up to where all slopes are capped."""
    rng, constants = np.random.default_rng(0), likelihood.constants
    X = rng.normal(size=(60, 2))
    X *= R * (1 - 1e-15) / np.linalg.norm(X, axis=1)[:, None]
    y = np.resize(np.arange(LARGEST_COUNT + 1.0), 60)
    largest_gap = largest_trace = 0.0
    for scale in (0.0, 1.0, 3.0, 1e3):
        coef = scale * rng.normal(size=2)
        parts = [
            likelihood.derivatives(coef, LinearBlock(X[i : i + 1], y[i : i + 1])) for i in range(60)
        ]
        g = np.array([part.gradient for part in parts])
        largest_gap = max(largest_gap, np.linalg.norm(g[:, None] - g, axis=2).max())
        for part in parts:
            eigenvalues = np.linalg.eigvalsh(part.hessian)
            assert eigenvalues.min() >= -1e-12
            assert np.sum(eigenvalues > 1e-12 * constants.hessian_trace) <= 1
            largest_trace = max(largest_trace, eigenvalues.sum())
    assert 0.7 < largest_gap / constants.gradient_sensitivity <= 1.0
    assert 0.7 < largest_trace / constants.hessian_trace <= 1.0 + 1e-12


class Unstated(CappedPoisson):
    slope_rounding = 64.0


def test_a_steep_loss_allows_for_more_rounding():
    """Against a longer double, of equal records, whose errors do not cancel."""
    n, count = 1000, 100.0
    steep, flat = (LinearLikelihood(Unstated(0.01, most), 2) for most in (int(count), 0))
    worst, length = 0.0, 0.0
    for x in np.random.default_rng(2).uniform(0.3, 0.7, size=(50, 2)):
        coef = np.array([40.0, (np.log(count) - 40.0 * x[0]) / x[1]])  # slopes of nearly 0
        block = LinearBlock(np.tile(x, (n, 1)), np.full(n, count))
        computed = steep.derivatives(coef, block, order=1).gradient
        predictor = np.sum(x.astype(np.longdouble) * coef)
        exact = n * (np.exp(predictor) - count) * x
        worst = max(worst, np.linalg.norm((computed - exact).astype(float)))
        length = max(length, np.linalg.norm(coef))
    low, high = (gradient_error(each.constants, n, 0.0, length) for each in (flat, steep))
    assert low < worst < high


def test_private_fit(likelihood):
    """The minimum for the noise that was drawn, and near the truth."""
    rng, n, truth = np.random.default_rng(1), 20_000, np.array([0.6, -0.4])
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    y = np.minimum(rng.poisson(np.exp(X @ truth)), LARGEST_COUNT).astype(float)
    blocks = [LinearBlock(X[rows], y[rows]) for rows in (slice(0, 9000), slice(9000, n))]
    calibration = calibrate(likelihood.constants, 1.0, n, 2)
    held = InMemory(blocks)
    problem = Problem(likelihood, held, calibration, np.zeros(2))
    released = perturb(problem, random_source(7)).coef

    objective = problem.task(random_source(7))  # the same noise
    gradient = sum(likelihood.derivatives(released, block).gradient for block in blocks)
    total = gradient + calibration.kappa * released + objective.linear
    # Noise that hides the solver moves the gradient by the curvature: 40 scales are exceeded with
    # probability 41 e^-40.
    bend = sum(likelihood.derivatives(released, block).hessian for block in blocks)
    curvature = np.linalg.norm(bend, 2) + calibration.kappa
    allowed = calibration.certificate.tolerance + 40.4 * calibration.solver_scale * curvature
    assert np.linalg.norm(total) <= allowed
    assert allowed < 0.2 * np.linalg.norm(objective.linear)

    zeros = np.zeros(2)
    exact = minimize(
        Objective(likelihood, held, calibration.kappa, zeros, zeros), Certificate(1e-6, np.inf)
    )
    # Strong convexity: noise moves the minimum no further than its own length over the curvature
    # of the records, which is more than n / 20 near here.
    assert 0.0 < np.linalg.norm(released - exact) < 20.0 * np.linalg.norm(objective.linear) / n
    np.testing.assert_allclose(released, truth, atol=0.1)
