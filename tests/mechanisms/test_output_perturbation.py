"""Output perturbation: its scale, and the law of what is released."""

import math

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms.newton import Certificate, Objective, certificate, minimize
from skdpsurv.mechanisms.output_perturbation import calibrate, calibrate_at
from skdpsurv.mechanisms.perturbation import Problem, perturb
from skdpsurv.mechanisms.vector_noise import LEAST_NOISE
from tests.support.hazard_blocks import hazard_block


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_scale_is_the_sensitivity_of_certified_minima(epsilon):
    constants = PrivacyConstants(3.0, 2.0, 2)
    for n, alpha in ((1, 0.0), (1000, 0.1), (10**8, 0.0)):
        c = calibrate(constants, epsilon, n, 4, alpha)
        # Balanced between noise and shrinkage (docs/benchmarks/discrete_time).
        balanced = math.sqrt(0.03 * n * 4 * 3.0 / epsilon)
        assert c.kappa == pytest.approx(max(n * alpha, balanced, 0.01 * 2.0))
        apart = (3.0 + 2 * c.certificate.tolerance) / c.kappa
        assert c.noise_scale == pytest.approx(apart / epsilon)
        assert c.certificate == certificate(constants, n, c.kappa, 0.0)
        assert calibrate_at(constants, epsilon, n, 4, c.kappa) == c


def test_noise_stays_above_the_spacing_of_doubles():
    constants = PrivacyConstants(3.0, 2.0, 2)
    exact = 3.0 / (1e6 * 1e6)
    assert calibrate_at(constants, 1e6, 100, 4, 1e6).noise_scale == LEAST_NOISE > 100 * exact
    assert calibrate_at(constants, 1.0, 100, 4, 1e6).noise_scale == pytest.approx(3e-6)


def problem(rng, n=12):
    likelihood = DiscreteHazard(np.full((4, 1), 0.5), 1, 1.0, LINKS["logit"], 1.0)
    X = rng.uniform(-1, 1, size=(n, 1))
    interval, event = rng.integers(1, 5, size=n), rng.random(n) < 0.5
    return likelihood, X, interval, event


@pytest.mark.slow
def test_law_of_the_release():
    """Distance from the minimum is Gamma(d, scale) and its direction uniform. Seeds are fixed."""
    likelihood, X, interval, event = problem(np.random.default_rng(0))
    blocks, center = InMemory([hazard_block(X, interval, event)]), np.array([-1.0, 0.0])
    calibration = calibrate(likelihood.constants, 1.0, 12, 2)
    exact = minimize(
        Objective(likelihood, blocks, calibration.kappa, center, np.zeros(2)),
        Certificate(1e-10, np.inf),
    )
    made = Problem(likelihood, blocks, calibration, center)
    noise = np.array([perturb(made, random_source(i)).coef - exact for i in range(600)])
    norms = np.linalg.norm(noise, axis=1)
    law = stats.gamma(2, scale=likelihood.constants.gradient_sensitivity / calibration.kappa)
    assert stats.kstest(norms, law.cdf).pvalue > 1e-7
    assert stats.kstest(0.67 * norms, law.cdf).pvalue < 1e-7
    angle = np.arctan2(noise[:, 1], noise[:, 0])
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-7


def test_minima_of_neighbours_are_within_the_sensitivity():
    """Random neighbours, extreme ones among them; a bound half as large would be passed."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(80):
        likelihood, X, interval, event = problem(rng, n=2)
        kappa = 10 ** rng.uniform(0, 2)
        minima = []
        for _ in range(2):
            X[0] = rng.choice([-1.0, 1.0])
            interval[0], event[0] = rng.choice([1, 4]), rng.random() < 0.5
            block = hazard_block(X, interval, event)
            center = np.array([4.0, 0.0])
            objective = Objective(likelihood, InMemory([block]), kappa, center, np.zeros(2))
            minima.append(minimize(objective, Certificate(1e-10, np.inf)))
        gap = np.linalg.norm(minima[0] - minima[1]) * kappa
        worst = max(worst, gap / likelihood.constants.gradient_sensitivity)
    assert 0.5 < worst <= 1.0
