"""Noisy gradient descent and noisy Langevin steps: price, law, and where they lead."""

import math
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.loss import Derivatives, PrivacyConstants
from skdpsurv.mechanisms import descent, vector_noise
from skdpsurv.mechanisms.descent import (
    Chain,
    Descent,
    LangevinCalibration,
    apart,
    calibrate,
    calibrate_langevin,
    max_distance,
)
from skdpsurv.mechanisms.newton import Certificate, Objective, gradient_error, minimize
from skdpsurv.mechanisms.perturbation import Problem, perturb
from skdpsurv.mechanisms.vector_noise import SphericalGaussian

D = 3


def block(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-X @ [2.0, -1.0, 0.0])), 1.0, -1.0)
    return LinearBlock(X, y)


def problem(n=400, mu=0.5, seed=0, **changes):
    likelihood = Logistic(D)
    calibration = calibrate(likelihood.constants, mu, n, D, **changes)
    return Problem(likelihood, InMemory([block(n, seed)]), calibration, np.zeros(D))


def drawn_with(patch, scale=1.0):
    """Return a list of the noise that is drawn from now on, made larger or smaller."""
    drawn, honest = [], SphericalGaussian.draw
    noise = lambda *args: drawn.append(scale * honest(*args)) or drawn[-1]  # noqa: E731
    patch.setattr(SphericalGaussian, "draw", noise)
    return drawn


def farthest(steps, start, *arguments):
    """Return how far from its start a run of steps asks for a gradient; at first it is there."""
    met = []

    class Watched(steps):
        def _gradient(self, point):
            met.append(np.linalg.norm(point - start))
            return super()._gradient(point)

    run = Watched(*arguments)
    list(run.states(random_source(0)) if steps is Chain else run.run())
    assert met[0] == 0.0
    return max(met)


class TestPrice:
    def test_all_gradients_together_cost_mu(self):
        constants = Logistic(D).constants
        for n, mu in product([1, 1000, 10**7], [1e-3, 0.2, 5.0]):
            how = calibrate(constants, mu, n, D)
            each = how.each.cost(constants.gradient_sensitivity)
            assert each * math.sqrt(how.n_steps) <= mu
            assert each * math.sqrt(how.n_steps) == pytest.approx(mu, rel=1e-3)
            assert descent.STEPS_RANGE[0] <= how.n_steps <= descent.STEPS_RANGE[1]
            # The step is stable, and the ridge no larger than that or its rule asks for.
            curvature = 0.5 * n * constants.hessian_trace
            assert how.kappa * how.n_steps >= curvature * (1 - 1e-12)
            wanted = 0.7 * apart(constants, n) / mu
            assert how.kappa == pytest.approx(max(wanted, curvature / descent.STEPS_RANGE[1]))
            assert how.excess == pytest.approx(how.kappa / wanted)
        assert calibrate(constants, 1.0, 1000, D, 0.5).kappa == 500.0

    def test_noise_hides_what_rounding_adds(self):
        """On either side, for points as far out as they may be."""
        constants, n = Logistic(D).constants, 10**10
        for center_norm in (0.0, 1e6):
            rounding = gradient_error(constants, n, center_norm, max_distance(constants))
            distance = constants.gradient_sensitivity + 2.0 * rounding
            for how in (
                calibrate(constants, 0.5, n, D, center_norm=center_norm),
                calibrate_langevin(constants, 0.5, n, D, 1.0, center_norm=center_norm),
            ):
                assert how.each.cost(distance) * math.sqrt(how.n_steps) <= 0.5

    def test_every_gradient_gets_noise_of_its_own(self, monkeypatch):
        one, drawn = problem(), drawn_with(monkeypatch)
        perturb(one, random_source(0))
        assert len({noise.tobytes() for noise in drawn}) == len(drawn) == one.calibration.n_steps

    def test_records_reach_the_points_through_noisy_gradients_alone(self, monkeypatch):
        """Where those are replaced, whose records they were does not show."""
        honest = vector_noise.round_to_lattice
        answers = iter([])

        def replaced(values, step):
            honest(values, step)
            return next(answers)

        monkeypatch.setattr(vector_noise, "round_to_lattice", replaced)
        given = list(np.random.default_rng(0).normal(size=(200, D)))
        found = []
        for seed in (1, 2):
            answers = iter(given)
            found.append(perturb(problem(seed=seed), random_source(0)))
        np.testing.assert_array_equal(found[0].coef, found[1].coef)
        np.testing.assert_array_equal(found[0].center, found[1].center)

    def test_noisy_gradients_are_on_a_public_lattice(self, monkeypatch):
        seen, honest = [], vector_noise.round_to_lattice

        def spy(values, step):
            seen.append((honest(values, step), step))
            return seen[-1][0]

        monkeypatch.setattr(vector_noise, "round_to_lattice", spy)
        one = problem()
        perturb(one, random_source(0))
        assert len({step for _, step in seen}) == 1
        assert seen[0][1] <= one.calibration.each.scale / 256.0
        for values, step in seen:
            np.testing.assert_array_equal(np.rint(values / step) * step, values)

    def test_points_stay_within_max_distance(self):
        """However much noise there is: rounding is bounded there and nowhere else."""
        assert max_distance(PrivacyConstants(3.0, 0.5, 1)) == 2000.0 * 3.0 / 0.5
        inside, start = np.array([3.0, 4.0]), np.array([3.0, 0.0])
        np.testing.assert_array_equal(descent.within(inside, start, 4.0), inside)
        np.testing.assert_allclose(descent.within(inside, start, 2.0), [3.0, 2.0])
        one, start = problem(), np.full(D, 5.0)
        far = max_distance(one.likelihood.constants)
        how = replace(one.calibration, kappa=1e-6)
        noise = list(np.random.default_rng(0).normal(size=(how.n_steps, D)) * how.each.scale)
        met = farthest(Descent, start, one.likelihood, one.blocks, how, start, noise)
        assert 0.999 * far < met <= far * (1.0 + 1e-12)  # it was tried


class TestLaw:
    def test_privacy_loss_of_whole_descents(self, monkeypatch):
        """It is N(mu^2/2, mu^2) at most, of neighbours whose gradients are S apart everywhere.

        Losses are computed from the noise that was drawn and both data sets' gradients at every
        point: no estimate stands between. Seeded; means and variances of 300 losses have a
        false-alarm rate below 1e-6 each at 5 standard errors, and half the noise is 9 off.
        """
        likelihood, n, mu = Logistic(2), 2, 0.8
        # Far out both records are misclassified, and pull in opposite directions.
        start, labels = np.array([60.0, 0.0]), np.array([-1.0, 1.0])
        one = LinearBlock(np.array([[0.1, 0.99], [0.0, 0.0]]), labels)
        other = LinearBlock(np.array([[0.1, -0.99], [0.0, 0.0]]), labels)
        how = calibrate(likelihood.constants, mu, n, 2)

        def losses(scale):
            found, made = [], Problem(likelihood, InMemory([one]), how, start)
            with monkeypatch.context() as patch:
                drawn = drawn_with(patch, scale)
                patch.setattr(vector_noise, "round_to_lattice", lambda values, step: values)
                for seed in range(300):
                    drawn.clear()
                    perturb(made, random_source(seed))
                    found.append(self.loss(likelihood, one, other, how, drawn, scale, start))
            return np.array(found)

        found = losses(1.0)
        allowed = 5.0 * mu / math.sqrt(found.size)
        assert found.mean() <= 0.5 * mu**2 + allowed
        assert found.var() <= mu**2 * (1.0 + 5.0 * math.sqrt(2.0 / found.size))
        assert found.mean() >= 0.4 * mu**2  # these neighbours are nearly S apart
        cheat = losses(0.5)
        assert cheat.mean() > 0.5 * mu**2 + allowed

    @staticmethod
    def loss(likelihood, one, other, how, drawn, scale, point):
        """Return log p(all noisy gradients | one) / p(... | other)."""
        total, sigma = 0.0, scale * how.each.scale
        for noise in drawn:
            gradient = likelihood.derivatives(point, one, order=1).gradient
            gap = gradient - likelihood.derivatives(point, other, order=1).gradient
            total += float(2.0 * noise @ gap + gap @ gap) / (2.0 * sigma**2)
            point = point - (gradient + noise) / (how.kappa * how.n_steps)
        return total

    def test_noise_on_the_mean_gradient(self):
        """Of the deviation that is stated, by what balances the records; seeded.

        A deviation of 600 normal numbers is off by more than 15 % with probability below 1e-6.
        """
        one = problem(mu=0.05)
        how = one.calibration
        gaps = []
        for seed in range(200):
            found = perturb(one, random_source(seed))
            exact = one.likelihood.derivatives(found.coef, one.blocks.blocks[0], order=1).gradient
            gaps.append(exact + how.kappa * (found.coef - found.center))
        assert np.std(gaps) == pytest.approx(how.linear.deviation, rel=0.15)
        deviation = math.sqrt(4.0 / 3.0) * apart(one.likelihood.constants, 400) / 0.05
        assert how.linear.deviation == pytest.approx(deviation, rel=0.03)
        z = np.mean(gaps, axis=0) / (np.std(gaps) / math.sqrt(200))
        assert np.abs(z).max() < 5.5  # the first order is near


class TestWhereItLeads:
    def test_with_little_noise_and_many_records_to_the_minimum(self):
        one = problem(n=20_000, mu=50.0, ridge=1.0)
        found = perturb(one, random_source(0)).coef
        objective = Objective(one.likelihood, one.blocks, 1e-6, np.zeros(D), np.zeros(D))
        exact = minimize(objective, Certificate(1e-8, np.inf))
        np.testing.assert_allclose(found, exact, atol=0.05)

    def test_its_centre_balances_the_records(self):
        """To first order, whatever stopping early has left undone."""
        one = problem(n=5000, mu=1000.0, ridge=500.0)
        found = perturb(one, random_source(0))
        gradient = one.likelihood.derivatives(found.coef, one.blocks.blocks[0], order=1).gradient
        pull = one.calibration.kappa * (found.coef - found.center)
        assert np.linalg.norm(gradient + pull) < 0.05 * np.linalg.norm(gradient)


# ---- Langevin steps.

CONSTANTS = PrivacyConstants(gradient_sensitivity=2.0, hessian_trace=0.4, hessian_rank=1)
SETTINGS = list(product((1, 300, 10**5), (1e-3, 0.2, 3.0, 100.0), (None, 30, 5000), (1e-2, 1e4)))


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


class TestCalibration:
    def test_all_gradients_cost_mu(self):
        for n, mu, n_steps, prior in SETTINGS:
            how = calibrate_langevin(CONSTANTS, mu, n, 5, prior, n_steps)
            together = math.sqrt(how.n_steps) * apart(CONSTANTS, n) / how.each.scale
            assert together <= mu
            if how.n_steps < (n_steps or descent.LANGEVIN_STEPS_RANGE[1]):
                assert together == pytest.approx(mu)

    def test_its_law_is_the_posterior_and_it_is_stable_and_forgets(self):
        for n, mu, n_steps, prior in SETTINGS:
            how = calibrate_langevin(CONSTANTS, mu, n, 5, prior, n_steps)
            assert how.temperature == descent.TEMPERATURE == 1.0
            assert 0.5 * how.step_size * how.each.scale**2 == pytest.approx(descent.TEMPERATURE)
            assert how.step_size * (n * CONSTANTS.hessian_trace + how.kappa) <= 1.0 + 1e-9
            assert how.time * how.kappa >= descent.FORGETTING * (1.0 - 1e-9)
            assert how.kappa >= prior
            assert how.n_steps >= descent.LANGEVIN_STEPS_RANGE[0]
            assert n_steps is None or how.n_steps == n_steps

    def test_closed_form_of_the_time(self):
        """At temperature 1, rho = H S^2 / 4."""
        how = calibrate_langevin(CONSTANTS, 0.2, 300, 5, 1e-2)
        assert how.time * apart(CONSTANTS, 300, 5) ** 2 / 4.0 == pytest.approx(0.5 * 0.2**2)


class TestChain:
    def test_noise_of_every_gradient_has_its_law(self):
        """KS at 1e-6; two coordinates and successive steps are uncorrelated (six deviations)."""
        how = LangevinCalibration(0.5, 8000, 1e-3, SphericalGaussian(2, 7.0), 0.0245)
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

    def test_points_stay_within_max_distance(self):
        far, start = max_distance(CONSTANTS), np.full(3, 5.0)
        # One step's noise takes points a tenth of the way.
        how = LangevinCalibration(1e-6, 300, 1e-3, SphericalGaussian(3, 100.0 * far), 1.0)
        blocks = InMemory([np.zeros(3)])
        met = farthest(Chain, start, Quadratic(0.0, 3), blocks, how, start)
        assert 0.999 * far < met <= far * (1.0 + 1e-12)  # it was tried

    def test_on_a_lattice(self):
        how = calibrate_langevin(CONSTANTS, 1.0, 300, 3, 1e-2)
        *states, last = chain(how, 3).states(random_source(3))
        assert len(states) == how.n_steps - 1
        step = 2.0 ** math.floor(math.log2(how.step_size * how.each.scale * 2.0**-8))
        assert np.all(np.mod(last / step, 1.0) == 0.0)
