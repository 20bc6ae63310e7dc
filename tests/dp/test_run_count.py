"""The number of runs: its law, and that it is drawn from it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source, selection
from skdpsurv.dp.noise import uniform_below
from skdpsurv.dp.selection import RunCount

LAWS = [(1.0, 0.1), (0.5, 0.05), (0.0, 0.02), (-0.5, 0.02)]
#: The product of such an eta with a logarithm has no digits left, and the mean needs none of them.
NOTHING = [0.0, 5e-324, -5e-324, 1e-310, 1e-200, 1e-16]
MORE_LAWS = [*LAWS, (-0.7, 1e-6), (1e-300, 0.3), (0.4, 1 - 1e-9)]


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_the_law_adds_up_and_has_its_mean(eta, gamma):
    law = RunCount(eta, gamma)
    k = np.arange(1, round(60 / gamma) + 1)  # what is beyond is of the order of e^-60
    p = np.array([law.probability(int(i)) for i in k])
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert (k * p).sum() == pytest.approx(law.mean, rel=1e-7)


def test_known_laws():
    for wrong in ((-1.0, 0.5), (1.5, 0.5), (np.nan, 0.5), (0.0, 0.0), (0.0, 1.1)):
        with pytest.raises(ValueError, match="eta"):
            RunCount(*wrong)
    for eta, known in ((1.0, stats.geom(0.2)), (0.0, stats.logser(0.8))):
        found = [RunCount(eta, 0.2).probability(k) for k in range(1, 20)]
        np.testing.assert_allclose(found, known.pmf(np.arange(1, 20)))


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_draws_have_the_law(eta, gamma):
    """Chi-squared, 1,000 draws, fixed seeds; a false alarm has probability below 1e-7."""
    law, source = RunCount(eta, gamma), random_source(7)
    draws = np.array([law.draw(source) for _ in range(1000)])
    edges = [1, 2, 3, 4, 6, 10, 20]
    seen = np.histogram(draws, [*edges, 10**9])[0]
    expected = [sum(map(law.probability, range(a, b))) for a, b in pairwise(edges)]
    expected = 1000 * np.array([*expected, 1.0 - sum(expected)])
    assert draws.min() >= 1
    assert stats.chisquare(seen, expected).pvalue > 1e-7


@pytest.mark.parametrize(("eta", "gamma"), MORE_LAWS)
def test_places_are_those_of_the_law(eta, gamma):
    """At every 1/200: K is where the sum of the probabilities passes the number."""
    law = RunCount(eta, gamma)
    below = np.cumsum([law.probability(k) for k in range(1, 400)])
    for part in range(200):
        if part / 200 + 1e-9 < below[-1]:
            k = law._place(part * 2**128 // 200, 128)
            assert below[k - 1] > part / 200 - 1e-12
            assert k == 1 or below[k - 2] <= part / 200 + 1e-12


@pytest.mark.parametrize(("eta", "gamma"), MORE_LAWS)
def test_the_first_probability_is_known_to_the_last_bit_asked_for(eta, gamma):
    law = RunCount(eta, gamma)
    least, most = law._bounds(4096)
    for bits in (30, 128, 500):
        low, high = law._bounds(bits)
        assert high - low <= 3
        assert low << (4096 - bits) <= least < most <= high << (4096 - bits)
    assert least / 2**4096 == pytest.approx(law.probability(1), rel=1e-8)


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_a_number_that_is_too_coarse_gets_more_digits(eta, gamma):
    """With few bits many places are open; those that are not stay what they are."""
    law = RunCount(eta, gamma)
    coarse = [law._place(uniform, 9) for uniform in range(512)]
    assert 10 < sum(k is None for k in coarse) < 500
    for uniform, k in enumerate(coarse):
        if k is not None:
            ends = [law._place((uniform << 200) + end, 209) for end in (0, 2**200 - 1)]
            assert ends == [k, k]


@pytest.mark.parametrize(("eta", "mean"), [(0.0, 6e4), (-0.5, 900.0), (-0.7, 100.0)])
def test_a_draw_takes_one_number_whatever_the_law(eta, mean, monkeypatch):
    """Where most K are small, and few very large."""
    law, asked = RunCount.with_mean(eta, mean), []

    def counted(bound, source):
        asked.append(bound)
        assert len(asked) <= 40
        return uniform_below(bound, source)

    monkeypatch.setattr(selection, "uniform_below", counted)
    source = random_source(3)
    draws = [law.draw(source) for _ in range(20)]
    assert min(draws) >= 1


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.3, 1.0, *NOTHING])
@pytest.mark.parametrize("mean", [1.0, 1.5, 30.0, 1e4])
def test_gamma_for_a_mean(eta, mean):
    law = RunCount.with_mean(eta, mean)
    assert law.mean == pytest.approx(mean, rel=1e-9 if eta in NOTHING else 1e-6)
    assert 0.0 < law.gamma <= 1.0
    if eta in NOTHING:
        assert law.gamma == pytest.approx(RunCount.with_mean(0.0, mean).gamma, rel=1e-12)


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
