"""The actuarial estimate of a noisy table: counts, rates, and their errors."""

import itertools

import numpy as np
import pytest

from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_laplace
from skdpsurv.survival.curves import life_table
from skdpsurv.survival.curves.life_table import NoisyTable, outcome_probabilities
from tests.support.combinations import thinned

EVEN = np.full(8, 1.0 / 8)


def actuarial_estimate(table):
    return life_table.ActuarialEstimate(table, EVEN)


def noisy(n=2000, epsilon=1.0, seed=0):
    rng = np.random.default_rng(seed)
    chance, _ = outcome_probabilities(np.array([np.full(8, 0.1), np.full(8, 0.05)]))
    exact = rng.multinomial(n, chance)
    noise = lattice_laplace(exact, 2.0 / epsilon, random_source(seed))
    return exact, NoisyTable(noise.astype(float), 2, 8.0 / epsilon**2, n)


class TestOutcomeProbabilities:
    def test_everybody_leaves_once_and_slopes_are_derivatives(self):
        for scale, n_outcomes in itertools.product([1e-9, 1e-3, 0.3, 5.0], [2, 4]):
            masses = scale * np.random.default_rng(0).random((n_outcomes, 6))
            probability, slopes = outcome_probabilities(masses)
            assert probability.sum() == pytest.approx(1.0, rel=1e-12)
            assert (probability >= 0).all()
            for place in np.ndindex(masses.shape):
                up, down = masses.copy(), masses.copy()
                up[place] *= 1 + 1e-5
                down[place] *= 1 - 1e-5
                numeric = (outcome_probabilities(up)[0] - outcome_probabilities(down)[0]) / 2e-5
                row = slopes[place[0] * 6 + place[1]]
                np.testing.assert_allclose(row, numeric, rtol=1e-5, atol=2e-11)

    def test_masses_are_those_of_the_counts_that_they_expect(self):
        masses = np.random.default_rng(0).random((3, 6)) * 0.4
        expected = 1e6 * outcome_probabilities(masses)[0][:-1].reshape(3, 6)
        at_risk = 1e6 - np.append(0.0, np.cumsum(expected.sum(axis=0))[:-1])
        np.testing.assert_allclose(life_table.masses_of(expected, at_risk), masses[:-1], rtol=1e-9)


def test_without_noise_counts_are_counts_and_hazards_product_limits():
    exact, _ = noisy(200)
    fit = actuarial_estimate(NoisyTable(exact.astype(float), 2, 0.0, 200))
    np.testing.assert_allclose(np.append(fit.counts.ravel(), fit.stayed), exact, atol=1e-9)
    events = np.append(exact[:8], 0)
    alone = np.concatenate([exact[:8], np.zeros(8, int), [exact[8:].sum()]])
    fit = actuarial_estimate(NoisyTable(alone.astype(float), 2, 0.0, 200))
    survival = np.exp(-np.cumsum(fit.hazards[0]))
    np.testing.assert_allclose(survival, 1.0 - np.cumsum(events)[:8] / 200, rtol=1e-9)


def test_noise_is_smoothed_and_is_less_than_that_of_the_cells():
    """Two thirds of the error that clipped noisy counts have: 40 tables, of fixed seeds."""
    truth = np.exp(-np.cumsum(np.full(8, 0.1)))
    errors = []
    for seed in range(40):
        table = noisy(300, 0.3, seed)[1]
        cells = np.maximum(table.cells, 0.0)
        at_risk = np.maximum(300 - np.append(0.0, np.cumsum(cells[:8] + cells[8:16])[:-1]), 1.0)
        plain = np.cumprod(1.0 - np.minimum(cells[:8] / at_risk, 1.0))
        fit = actuarial_estimate(table)
        smooth = np.exp(-np.cumsum(fit.hazards[0]))
        errors.append([np.abs(curve - truth).max() for curve in (plain, smooth)])
    plain, smooth = np.mean(errors, axis=0)
    assert smooth < 0.67 * plain


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), thinned([200, 2000], [0.3, 3.0]))
def test_errors_are_as_large_as_they_are_said_to_be(n, epsilon):
    """By 400 tables each: cumulative hazards are centred, and spread by their covariance."""
    truth = np.cumsum(np.full(8, 0.1))
    low = np.tril(np.ones((8, 8)))
    scores = []
    for seed in range(400):
        fit = actuarial_estimate(noisy(n, epsilon, seed)[1])
        free, covariance = fit.unsmoothed
        error = np.sqrt(np.diag(low @ covariance[:8, :8] @ low.T))
        scores.append((np.cumsum(free[0]) - truth) / error)
    scores = np.array(scores)[:, [1, 3, 5]]
    # Means of 400 scores, and their deviations: five standard errors to either side.
    assert np.abs(scores.mean(axis=0)).max() < 0.25 + 0.25
    assert np.all((scores.std(axis=0) > 0.8) & (scores.std(axis=0) < 1.2))


@pytest.mark.parametrize(("variance", "n"), thinned([0.0, 8.0, 8e2, 8e18], [1, 30, 10**9]))
def test_no_table_is_too_strange(variance, n):
    rng = np.random.default_rng(0)
    size = np.sqrt(variance)
    tables = [np.zeros(17), np.full(17, -size), np.full(17, size), rng.normal(0, 1 + size, 17)]
    tables += [np.eye(17)[0] * n, np.eye(17)[16] * n, np.eye(17)[8] * n]
    with np.errstate(all="raise", under="ignore"):
        for cells in tables:
            for elsewhere in (None, (n / 2, 17 * variance)):
                fit = actuarial_estimate(NoisyTable(cells, 2, variance, n, elsewhere))
                for found in (fit.counts, fit.masses, *fit.unsmoothed, fit.hazards):
                    assert np.isfinite(found).all()
                assert (np.diag(fit.unsmoothed[1]) > 0).all()


def test_a_group_knows_how_many_are_elsewhere():
    cells = noisy(500, 1.0, 3)[1].cells
    alone = actuarial_estimate(NoisyTable(cells, 2, 8.0, 2000, (1500.0, 0.1)))
    assert alone.n_people == pytest.approx(500, abs=5)
    unsure = actuarial_estimate(NoisyTable(cells, 2, 8.0, 2000, (1500.0, 1e6)))
    assert unsure.n_people == pytest.approx(cells.sum(), abs=30)
    nobody = actuarial_estimate(NoisyTable(np.zeros(17), 2, 8.0, 1000, (1000.0, 136.0)))
    assert nobody.n_people < 30
    assert np.sqrt(nobody.unsmoothed[1][0, 0]) > 0.2
