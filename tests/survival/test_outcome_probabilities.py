"""Outcomes of a study: probabilities, scores of records, and the private table of losses."""

from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.dp.plan import Plan
from skdpsurv.likelihoods.changing_hazard import ChangingHazard, TimeEffects
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards import hazard_inference, outcome_probabilities
from skdpsurv.survival.hazards import model as hazard_model
from skdpsurv.survival.hazards.fit_plan import fit_of
from skdpsurv.survival.hazards.hazard_inference import N_BANDS
from skdpsurv.survival.hazards.life_table import outcome_counts
from skdpsurv.survival.hazards.model import HazardRecords
from skdpsurv.survival.hazards.outcome_probabilities import N_BLOCKS
from tests.support.combinations import thinned
from tests.support.hazard_blocks import hazard_block
from tests.support.spies import queries_without_noise

Q = 12
A, B = np.array([-2.0, 0.4, 0.2]), np.array([-1.0, 0.0, 1.5])


def outcomes(link="cloglog", cap=1.2, q=Q, losses=0.03):
    basis = hazard_model.orthogonal_basis(q, 3)
    likelihood = DiscreteHazard(basis, 1, 1.0, LINKS[link].bounded_at(0.05), cap)
    return outcome_probabilities.OutcomeProbabilities(likelihood, np.full(min(q, N_BLOCKS), losses))


def numerically(function, a, b, step=1e-6):
    """Derivatives by a and by b, of a function of both."""
    moves = [(step * unit, 0.0) for unit in np.eye(a.size)] + [(np.zeros(a.size), step)]
    return np.stack(
        [(function(a + da, b + db) - function(a - da, b - db)) / (2 * step) for da, db in moves]
    )


@pytest.mark.parametrize(("q", "link"), thinned([1, 3, Q, 200], sorted(LINKS)))
def test_people_leave_by_one_outcome(q, link):
    one = outcomes(link, q=q)
    a = A[: one.likelihood.basis.shape[1]]
    chance, slopes = one.outcome_probabilities(a, B)
    assert chance.shape == (3, 2 * min(q, N_BLOCKS) + 1)
    assert (chance >= 0).all()
    assert chance.sum(axis=1) == pytest.approx(np.ones(3))
    expected = numerically(lambda a, b: one.outcome_probabilities(a, b)[0], a, B)
    assert slopes == pytest.approx(expected, abs=1e-7)
    assert one.outcome_probabilities(a, B, slopes=False)[1].shape == (0, *chance.shape)
    kept = replace(one, losses=0.0 * one.losses).outcome_probabilities(a, B)[0]
    assert (kept[:, one.losses.size : -1] == 0).all()


@pytest.mark.parametrize("link", sorted(LINKS))
def test_scores_are_gradients_of_the_loss_where_a_block_is_an_interval(link):
    def gradient(one, b, interval, event):
        block = hazard_block(np.array([[1.0]]), np.array([interval]), np.array([event]))
        return one.likelihood.derivatives(np.append(A, b), block, order=1).gradient

    one = outcomes(link, cap=50.0)
    scores = one.record_scores(A, B)
    kinds = [(s, event) for event in (True, False) for s in range(1, Q + 1)] + [(Q, False)]
    for i, b in enumerate(B):
        for cell, kind in enumerate(kinds):
            assert scores[:, i, cell] == pytest.approx(gradient(one, b, *kind), abs=1e-12)
    capped = outcomes(link, cap=0.6)
    expected = gradient(capped, 1.5, Q, False)
    assert expected[-1] == pytest.approx(capped.likelihood.cap)
    assert capped.record_scores(A, np.array([1.5]))[:, 0, -1] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("cap", [None, 0.6, 0.1])
@pytest.mark.parametrize("link", sorted(LINKS))
def test_curvatures_are_derivatives_of_expected_scores(link, cap):
    """Below and beyond the cap, and with effects that change over time."""
    plain = outcomes(link, cap)
    values = np.column_stack([np.log(np.arange(1, Q + 1)), np.ones(Q)])
    given = plain.likelihood.basis, 1, 1.0, plain.likelihood.link, cap
    effects = TimeEffects(values, np.array([0, 1]), np.array([0, 0]))
    changing = replace(plain, likelihood=ChangingHazard(*given, effects=effects))
    rng = np.random.default_rng(4)
    for one, b in ((plain, B), (changing, np.column_stack([B, rng.normal(size=(3, 2))]))):
        size = A.size + (1 if b.ndim == 1 else b.shape[1])
        likely = rng.random((3, 2 * Q + 1))
        found = one.expected_curvature(A, b, likely)
        assert found.shape == (3, size, size)

        def expected(step, one=one, b=b, likely=likely):
            scores = one.record_scores(A + step[: A.size], b + step[A.size :])
            return np.einsum("knc,nc->nk", scores, likely)

        moves = 1e-6 * np.eye(size)
        numbers = [(expected(move) - expected(-move)) / 2e-6 for move in moves]
        np.testing.assert_allclose(found, np.stack(numbers, axis=2), atol=1e-6)


def test_blocks_cover_the_grid():
    for q in [1, 7, 20, 37, 200, 100_000]:
        edges = outcome_probabilities.block_edges(q)
        assert (edges[0], edges[-1]) == (0, q)
        assert (np.diff(edges) > 0).all()


def people(n=4000, q=200):
    rng = np.random.default_rng(0)
    event_time, lost = rng.exponential(0.9, n), rng.exponential(1.0, n)
    time = np.minimum(np.minimum(event_time, lost), 1.0)
    event = (event_time <= lost) & (event_time <= 1.0)
    return HazardRecords(np.zeros((n, 1)), Histories(time, event).on_grid(1.0, q))


def test_rates_are_those_of_the_people(monkeypatch):
    """Off by at most five standard deviations of a count of 300."""
    seen = queries_without_noise(monkeypatch)
    model = hazard_model.HazardModel("cloglog", 200, 3, 4000, 1, 1.0, "auto", 0.5)
    fit, _ = fit_of(model, 3.0, "obj_pert", 0.0, (0.1, 0.1, 0.2))
    asked = hazard_inference.OutcomeCounts(price=0.5, fit=fit)
    known = Plan(asked, 0.5).tree.run({}, InMemory([people()]), random_source(0))
    assert known["_losses"].sum() == pytest.approx(1.0, rel=0.12)
    assert [(sensitivity, epsilon) for sensitivity, _, epsilon in seen] == [(2, 0.5)]


def test_each_record_is_in_one_cell():
    for interval, event in ((1, True), (1, False), (200, True), (200, False), (113, True)):
        records = HazardRecords(
            np.zeros((1, 1)), Histories(np.array([interval]), np.array([event]))
        )
        counts = outcome_counts(InMemory([records]), 200, N_BANDS, horizon=True)
        assert counts.size == 2 * N_BANDS + 1
        assert sorted(counts)[-2:] == [0, 1]


def test_any_noisy_table_gives_rates():
    for q in [1, 2, 5, 200]:
        exact = outcome_counts(InMemory([people(40, q=q)]), q, N_BANDS, horizon=True)
        for seed in range(20):
            noisy = HISTOGRAM.release(exact, 1e-3, random_source(seed))
            rates = hazard_inference.loss_rates(noisy[None], q)
            assert rates.shape == (1, min(q, N_BLOCKS))
            assert ((rates >= 0) & np.isfinite(rates)).all()
