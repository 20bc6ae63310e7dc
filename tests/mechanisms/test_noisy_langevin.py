"""Noisy Langevin steps: what they cost, what noise they draw, and which law they tend to."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.base import Derivatives, PrivacyConstants
from skdpsurv.mechanisms.descent import (
    FORGETTING,
    LANGEVIN_STEPS_RANGE,
    TEMPERATURE,
    Chain,
    LangevinCalibration,
    apart,
    calibrate_langevin,
    max_distance,
)
from skdpsurv.mechanisms.vector_noise import SphericalGaussian

CONSTANTS = PrivacyConstants(gradient_sensitivity=2.0, hessian_trace=0.4, hessian_rank=1)
PRICES = [(n, mu) for n in (1, 300, 10**5) for mu in (1e-3, 0.2, 3.0, 100.0)]


class Quadratic(NamedTuple):
    """The loss curvature / 2 ||f||^2 - <z, f> of all records together."""

    curvature: float
    n_params: int

    @property
    def constants(self):
        return CONSTANTS

    def n_records(self, block):
        return 1

    def derivatives(self, coef, block, weights=None, order=2):
        return Derivatives(self.curvature * coef - block, None)


def chain(calibration, n_params, curvature=0.0, pull=0.0):
    record_scores = np.full(n_params, pull)
    likelihood = Quadratic(curvature, n_params)
    return Chain(likelihood, InMemory([record_scores]), calibration, np.zeros(n_params))


@pytest.mark.parametrize(("n", "mu"), PRICES)
@pytest.mark.parametrize("n_steps", [None, 30, 5000])
@pytest.mark.parametrize("prior", [1e-2, 1e4])
class TestCalibration:
    def test_all_gradients_cost_mu(self, n, mu, n_steps, prior):
        how = calibrate_langevin(CONSTANTS, mu, n, 5, prior, n_steps)
        together = math.sqrt(how.n_steps) * apart(CONSTANTS, n) / how.each.scale
        assert together <= mu
        if how.n_steps < (n_steps or LANGEVIN_STEPS_RANGE[1]):
            assert together == pytest.approx(mu)

    def test_its_law_is_the_posterior(self, n, mu, n_steps, prior):
        how = calibrate_langevin(CONSTANTS, mu, n, 5, prior, n_steps)
        assert how.temperature == TEMPERATURE
        assert 0.5 * how.step_size * how.each.scale**2 == pytest.approx(TEMPERATURE)

    def test_it_is_stable_and_forgets(self, n, mu, n_steps, prior):
        how = calibrate_langevin(CONSTANTS, mu, n, 5, prior, n_steps)
        assert how.step_size * (n * CONSTANTS.hessian_trace + how.kappa) <= 1.0 + 1e-9
        assert how.time * how.kappa >= FORGETTING * (1.0 - 1e-9)
        assert how.kappa >= prior
        assert how.n_steps >= LANGEVIN_STEPS_RANGE[0]
        assert n_steps is None or how.n_steps == n_steps


def test_closed_form_of_the_time():
    """At temperature 1, rho = H S^2 / 4."""
    mu = 0.2
    how = calibrate_langevin(CONSTANTS, mu, 300, 5, 1e-2)
    assert how.time * apart(CONSTANTS, 300, 5) ** 2 / 4.0 == pytest.approx(0.5 * mu**2)


class TestChain:
    def test_noise_of_every_gradient_has_its_law(self):
        """KS at 1e-6; two coordinates and successive steps are uncorrelated (six deviations)."""
        how = LangevinCalibration(0.5, 20_000, 1e-3, SphericalGaussian(2, 7.0), 0.0245)
        one = chain(how, 2, curvature=3.0, pull=11.0)
        points = np.vstack([one.start, *one.states(random_source(1))])
        drift = 3.5 * points[:-1] - 11.0
        noise = -(np.diff(points, axis=0) / how.step_size + drift) / 7.0
        for column in noise.T:
            assert stats.kstest(column, "norm").pvalue > 1e-6
        products = [noise[:, 0] * noise[:, 1], noise[1:, 0] * noise[:-1, 0]]
        assert all(abs(p.mean()) * math.sqrt(p.size) < 6.0 for p in products)

    def test_stationary_law_on_a_quadratic(self):
        """Independent coordinates, long after the start; chi2 at 1e-7 on either side."""
        n_params, curvature, kappa, step = 4000, 8.0, 2.0, 0.01
        each = SphericalGaussian(n_params, math.sqrt(2.0 / step))
        one = chain(LangevinCalibration(kappa, 200, step, each, 1.0), n_params, curvature, 30.0)
        *_, last = one.states(random_source(2))
        total = curvature + kappa
        # 1 / curvature, and what steps of this length add.
        variance = 1.0 / (total * (1.0 - 0.5 * step * total))
        assert abs(last.mean() - 3.0) < 6.0 * math.sqrt(variance / n_params)
        chi2 = float(np.sum((last - 3.0) ** 2)) / variance
        low, high = stats.chi2(n_params).ppf([1e-7, 1.0 - 1e-7])
        assert low < chi2 < high
        assert variance == pytest.approx(1.0 / total, rel=0.06)

    @pytest.mark.parametrize("seed", range(3))
    def test_points_stay_within_max_distance(self, seed):
        """However much noise there is: rounding is bounded there and nowhere else."""
        far, start, met = max_distance(CONSTANTS), np.full(3, 5.0), []

        class Watched(Chain):
            def _gradient(self, point):
                met.append(np.linalg.norm(point - start))
                return super()._gradient(point)

        # One step's noise takes points a tenth of the way.
        how = LangevinCalibration(1e-6, 300, 1e-3, SphericalGaussian(3, 100.0 * far), 1.0)
        one = Watched(Quadratic(0.0, 3), InMemory([np.zeros(3)]), how, start)
        assert len(list(one.states(random_source(seed)))) == len(met)
        assert max(met) <= far * (1.0 + 1e-12)
        assert max(met) > 0.999 * far  # it was tried

    def test_on_a_lattice(self):
        how = calibrate_langevin(CONSTANTS, 1.0, 300, 3, 1e-2)
        *states, last = chain(how, 3).states(random_source(3))
        assert len(states) == how.n_steps - 1
        step = 2.0 ** math.floor(math.log2(how.step_size * how.each.scale * 2.0**-8))
        assert np.all(np.mod(last / step, 1.0) == 0.0)
