"""The number of runs: its law, and that it is drawn from it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdpsurv.model_selection.run_count import RunCount
from skdpsurv.privacy import random_source

LAWS = [(1.0, 0.1), (0.5, 0.05), (0.0, 0.02), (-0.5, 0.02)]


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_the_law_adds_up_and_has_its_mean(eta, gamma):
    law = RunCount(eta, gamma)
    k = np.arange(1, 6000)
    p = np.array([law.probability(int(i)) for i in k[:3000]])
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert (k[:3000] * p).sum() == pytest.approx(law.mean, rel=1e-7)


def test_known_laws():
    k = np.arange(1, 20)
    geometric = [RunCount(1.0, 0.2).probability(int(i)) for i in k]
    np.testing.assert_allclose(geometric, stats.geom(0.2).pmf(k))
    logarithmic = [RunCount(0.0, 0.2).probability(int(i)) for i in k]
    np.testing.assert_allclose(logarithmic, stats.logser(0.8).pmf(k))


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_draws_have_the_law(eta, gamma):
    """Chi-squared, 1,000 draws, fixed seeds; a false alarm has probability below 1e-7."""
    law, source = RunCount(eta, gamma), random_source(7)
    draws = np.array([law.draw(source) for _ in range(1000)])
    edges = [1, 2, 3, 4, 6, 10, 20]
    cells = [(a, b) for a, b in zip(edges, [*edges[1:], 10**9], strict=True)]
    seen = np.array([((draws >= a) & (draws < b)).sum() for a, b in cells])
    expected = [sum(law.probability(k) for k in range(a, b)) for a, b in cells[:-1]]
    expected = 1000 * np.array([*expected, 1.0 - sum(expected)])
    assert draws.min() >= 1
    assert stats.chisquare(seen, expected).pvalue > 1e-7


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("mean", [1.0, 1.5, 30.0, 1e4])
def test_gamma_for_a_mean(eta, mean):
    law = RunCount.with_mean(eta, mean)
    assert law.mean == pytest.approx(mean, rel=1e-6)
    assert 0.0 < law.gamma <= 1.0


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
def test_the_price_of_a_search_is_2_plus_eta(eta):
    """The theorem on a run with few outcomes: the worst ratio comes near, and never above.

    Probabilities of the best of K are differences of E[q^K], added up from the law itself.
    """
    law, epsilon = RunCount(eta, 0.05), 0.7
    k = np.arange(1, 600)
    p = np.array([law.probability(int(i)) for i in k])

    def best(q):
        below = np.concatenate([[0.0], np.cumsum(q)])
        return np.diff([(p * b**k).sum() for b in below])

    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(300):
        q = rng.dirichlet(np.full(4, 0.3)) + 1e-4
        # The extreme neighbours: up for a set of outcomes, down for the rest.
        up = np.arange(4) >= trial % 3 + 1
        a, b = q[up].sum() / q.sum(), q[~up].sum() / q.sum()
        factor = min(np.exp(epsilon), (1.0 - np.exp(-epsilon) * b) / a)
        other = np.where(up, q * factor, q * (1.0 - factor * a) / b) / q.sum()
        one = q / q.sum()
        assert np.abs(np.log(other / one)).max() <= epsilon + 1e-9
        ratio = np.abs(np.log(best(other) / best(one))).max()
        assert ratio <= (2.0 + eta) * epsilon + 1e-6
        worst = max(worst, ratio)
    assert worst > 0.5 * (2.0 + eta) * epsilon
