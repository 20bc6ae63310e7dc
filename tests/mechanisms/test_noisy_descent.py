"""Noisy gradient descent: its price, its law, and where it leads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.mechanisms import descent, vector_noise
from skdpsurv.mechanisms.descent import STEPS_RANGE, Descent, apart, calibrate, max_distance
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


class TestPrice:
    @pytest.mark.parametrize("mu", [1e-3, 0.2, 5.0])
    @pytest.mark.parametrize("n", [1, 1000, 10**7])
    def test_all_gradients_together_cost_mu(self, n, mu):
        constants = Logistic(D).constants
        how = calibrate(constants, mu, n, D)
        each = how.each.cost(constants.gradient_sensitivity)
        assert each * math.sqrt(how.n_steps) <= mu
        assert each * math.sqrt(how.n_steps) == pytest.approx(mu, rel=1e-3)
        assert STEPS_RANGE[0] <= how.n_steps <= STEPS_RANGE[1]

    @pytest.mark.parametrize("center_norm", [0.0, 1e6])
    def test_noise_hides_what_rounding_adds(self, center_norm):
        """On either side, for points as far out as they may be."""
        constants, n = Logistic(D).constants, 10**10
        rounding = gradient_error(constants, n, center_norm, max_distance(constants))
        distance = constants.gradient_sensitivity + 2.0 * rounding
        for how in (
            calibrate(constants, 0.5, n, D, center_norm=center_norm),
            descent.calibrate_langevin(constants, 0.5, n, D, 1.0, center_norm=center_norm),
        ):
            assert how.each.cost(distance) * math.sqrt(how.n_steps) <= 0.5

    def test_every_gradient_gets_noise_of_its_own(self, monkeypatch):
        drawn, honest = [], SphericalGaussian.draw
        monkeypatch.setattr(
            SphericalGaussian, "draw", lambda *args: drawn.append(honest(*args)) or drawn[-1]
        )
        one = problem()
        perturb(one, random_source(0))
        assert len(drawn) == one.calibration.n_steps
        assert len({noise.tobytes() for noise in drawn}) == len(drawn)

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

    @pytest.mark.parametrize("seed", range(3))
    def test_points_stay_within_max_distance(self, seed):
        """However much noise there is: rounding is bounded there and nowhere else."""
        one = problem()
        far = max_distance(one.likelihood.constants)
        how = replace(one.calibration, kappa=1e-6)
        start, met = np.full(D, 5.0), []

        class Watched(Descent):
            def _gradient(self, point):
                met.append(np.linalg.norm(point - start))
                return super()._gradient(point)

        noise = np.random.default_rng(seed).normal(size=(how.n_steps, D)) * how.each.scale
        Watched(one.likelihood, one.blocks, how, start, list(noise)).run()
        assert max(met) <= far * (1.0 + 1e-12)
        assert max(met) > 0.999 * far  # it was tried


class TestLaw:
    def test_privacy_loss_of_whole_descents(self, monkeypatch):
        """It is N(mu^2/2, mu^2) at most, of neighbours whose gradients are S apart everywhere.

        Losses are computed from the noise that was drawn and both data sets' gradients at every
        point: no estimate stands between. Seeded; means and variances of 800 losses have a
        false-alarm rate below 1e-6 each at 5 standard errors, and half the noise is 15 off.
        """
        likelihood, n, mu = Logistic(2), 2, 0.8
        # Far out both records are misclassified, and pull in opposite directions.
        start, labels = np.array([60.0, 0.0]), np.array([-1.0, 1.0])
        one = LinearBlock(np.array([[0.1, 0.99], [0.0, 0.0]]), labels)
        other = LinearBlock(np.array([[0.1, -0.99], [0.0, 0.0]]), labels)
        how = calibrate(likelihood.constants, mu, n, 2)

        def losses(scale):
            drawn, honest = [], SphericalGaussian.draw
            with monkeypatch.context() as patch:
                patch.setattr(
                    SphericalGaussian,
                    "draw",
                    lambda *args: drawn.append(scale * honest(*args)) or drawn[-1],
                )
                patch.setattr(vector_noise, "round_to_lattice", lambda values, step: values)
                found = []
                for seed in range(800):
                    drawn.clear()
                    made = Problem(likelihood, InMemory([one]), how, start)
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

        A variance of 900 normal numbers is off by more than a third with probability below 1e-8.
        """
        one = problem(mu=0.05)
        how = one.calibration
        gaps = []
        for seed in range(300):
            found = perturb(one, random_source(seed))
            exact = one.likelihood.derivatives(found.coef, one.blocks.blocks[0], order=1).gradient
            gaps.append(exact + how.kappa * (found.coef - found.center))
        assert np.std(gaps) == pytest.approx(how.linear.deviation, rel=0.15)
        deviation = math.sqrt(4.0 / 3.0) * apart(one.likelihood.constants, 400) / 0.05
        assert how.linear.deviation == pytest.approx(deviation, rel=0.03)
        z = np.mean(gaps, axis=0) / (np.std(gaps) / math.sqrt(300))
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

    def test_starts_where_it_is_told(self):
        one = problem(mu=1e-3)
        far = Problem(one.likelihood, one.blocks, one.calibration, np.full(D, 30.0))
        found = [perturb(each, random_source(0)).coef for each in (one, far)]
        assert np.linalg.norm(found[1] - found[0]) > 5.0

    def test_a_larger_alpha_is_a_larger_ridge(self):
        constants = Logistic(D).constants
        assert calibrate(constants, 1.0, 1000, D, 0.5).kappa == 500.0
        assert calibrate(constants, 1.0, 1000, D).kappa < 500.0

    def test_the_noise_is_normal(self):
        """Kolmogorov-Smirnov at 1e-7; seeded. A third less is told apart."""
        law = SphericalGaussian(2, 3.0)
        drawn = np.array([law.draw(random_source(seed)) for seed in range(600)]).ravel()
        assert stats.kstest(drawn, stats.norm(0.0, 3.0).cdf).pvalue > 1e-7
        assert stats.kstest(0.67 * drawn, stats.norm(0.0, 3.0).cdf).pvalue < 1e-7
