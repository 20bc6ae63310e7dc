"""The private life table, and the baseline that it suggests."""

import itertools
import math

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms import sums
from skdpsurv.survival.hazards import life_table
from skdpsurv.survival.hazards.model import N_BANDS, HazardRecords, orthogonal_basis
from tests.support.hazard_blocks import hazard_block


@pytest.fixture
def scales(monkeypatch):
    """Record the scale of the noise, and add none."""
    seen = []
    monkeypatch.setattr(sums, "lattice_laplace", lambda n, scale, _: seen.append(scale) or n)
    return seen


def table(interval, event, q=40, epsilon=1.0, seed=0):
    interval, event = np.asarray(interval), np.asarray(event, dtype=bool)
    records = InMemory([HazardRecords(np.zeros((interval.size, 0)), Histories(interval, event))])
    exact = life_table.outcome_counts(records, q, N_BANDS)
    return sums.HISTOGRAM.release(exact, epsilon, random_source(seed)).reshape(-1, 2)


def test_counts_by_band_and_status(scales):
    interval, event = [1, 10, 11, 40, 40, 31], [0, 1, 1, 0, 1, 1]
    np.testing.assert_array_equal(table(interval, event), [[1, 1], [0, 1], [0, 0], [1, 2]])
    for q in [1, 2, 3, 4, 7, 200]:
        counts = table(np.arange(1, q + 1), np.zeros(q), q)
        assert counts.shape == (min(N_BANDS, q), 2)
        assert counts.sum() == q
        assert (counts[:, 0] > 0).all()


def test_neighbours_move_two_cells_by_one_and_the_scale_knows_it(scales):
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(100):
        interval, event = rng.integers(1, 41, size=5), rng.random(5) < 0.5
        one = table(interval, event, epsilon=0.5)
        interval[2], event[2] = rng.integers(1, 41), rng.random() < 0.5
        worst = max(worst, np.abs(table(interval, event, epsilon=0.5) - one).sum())
    assert worst == 2.0
    assert set(scales) == {math.nextafter(worst / 0.5, math.inf)}


def baseline(counts, epsilon, link="logit", prior_level=-4.0):
    prior = np.array([prior_level, 0.0, 0.0])
    basis = orthogonal_basis(40, 3)
    return life_table.baseline_from_life_table(counts, epsilon, basis, LINKS[link], prior)


def hazards(coef, link):
    return -np.expm1(-LINKS[link].survival(orthogonal_basis(40, 3) @ coef).value)


def test_noise_is_discrete_and_negative_counts_are_cut():
    draws = np.array([table([1], [False], epsilon=0.1, seed=i) for i in range(200)])
    assert draws.dtype == np.int64
    # Of discrete Laplace noise of scale 20, what is positive has a mean of about 20.
    assert 16 < draws[:, 1:][draws[:, 1:] > 0].mean() < 25
    for noisy in draws[:20]:
        found, cut = (baseline(counts, 0.1) for counts in (noisy, np.maximum(noisy, 0)))
        np.testing.assert_array_equal(found, cut)


@pytest.mark.parametrize("link", sorted(LINKS))
def test_a_large_exact_table_decides(link):
    """Constant hazard 0.02: the table has it in every band, and so has the fit, nearly.

    A band's events are put in its middle, which costs some per cent at the ends.
    """
    at_risk = 1e6 * 0.98 ** (10 * np.arange(5))
    counts = np.column_stack([np.zeros(4), -np.diff(at_risk)])
    counts[-1, 0] = at_risk[-1]
    np.testing.assert_allclose(hazards(baseline(counts, 10.0, link), link), 0.02, rtol=0.2)


def test_any_table_gives_a_finite_baseline():
    """Post-processing never fails, whatever the noise did to the counts."""
    tables = [np.zeros((4, 2)), np.eye(4, 2), np.full((4, 2), 1e9), [[0, 1e6]] * 4, [[1e6, 0]] * 4]
    for link, counts, epsilon in itertools.product(sorted(LINKS), tables, (1e-4, 0.1, 50.0)):
        coef = baseline(np.array(counts, dtype=float), epsilon, link)
        assert np.isfinite(coef).all()
        assert ((hazards(coef, link) >= 0) & (hazards(coef, link) <= 1)).all()


def test_a_table_that_is_all_noise_leaves_the_prior():
    coef = baseline(np.array([[3.0, 5.0], [0.0, 2.0], [8.0, 0.0], [1.0, 1.0]]), 1e-4)
    np.testing.assert_allclose(coef, [-4.0, 0.0, 0.0], atol=0.05)


@pytest.mark.parametrize("link", sorted(LINKS))
def test_a_baseline_fitted_to_exits_has_the_scores_of_maximum_likelihood(link):
    rng = np.random.default_rng(0)
    basis, exits = orthogonal_basis(20, 3), rng.integers(1, 30, size=(20, 2)).astype(float)
    start = np.array([-2.0, 0.0, 0.0])
    coef = life_table.fit_to_exits(exits, basis, LINKS[link], start, 0.0, 20)
    interval, event = np.repeat(np.arange(1, 21), 2), np.tile([False, True], 20)
    block = hazard_block(np.zeros((40, 0)), interval, event)
    order = np.argsort(interval - event, kind="stable")
    likelihood = DiscreteHazard(basis, 0, link=LINKS[link])
    gradient = likelihood.derivatives(coef, block, exits.ravel()[order], order=1).gradient
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


@pytest.mark.parametrize("event", [False, True])
def test_without_survivors_or_events_the_start_is_finite(event):
    exits = np.zeros((20, 2))
    exits[0, int(event)] = 5.0
    basis, start = orthogonal_basis(20, 3), np.array([-2.0, 0.0, 0.0])
    assert np.abs(life_table.fit_to_exits(exits, basis, LINKS["logit"], start, 0.0, 6)).max() < 20
