"""Noisy counts and sums: their sensitivity and the law of their noise; choices between sums."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.dp.privacy_cost import Concentrated, compose_gaussian
from skdpsurv.hybrid.hybrid_records import nearest
from skdpsurv.mechanisms import sums
from skdpsurv.mechanisms.sums import HISTOGRAM, CellSums, Choices, Histogram, Histograms, Sum, Sums
from tests.support.spies import queries_without_noise


def test_one_record_moves_counts_by_at_most_two():
    rng = np.random.default_rng(0)
    points, centers = rng.random((50, 2)), rng.random((8, 2))
    before = np.bincount(nearest(points, centers), minlength=8)
    moved = 0
    for _ in range(100):
        other = points.copy()
        other[rng.integers(50)] = rng.random(2)
        after = np.bincount(nearest(other, centers), minlength=8)
        moved = max(moved, np.abs(after - before).sum())
    assert moved == HISTOGRAM.sensitivity


def test_scale_of_the_noise(monkeypatch):
    seen = []

    def constant(values, scale, source):
        seen.append(scale)
        return values + 3

    monkeypatch.setattr(sums, "lattice_laplace", constant)
    for epsilon in (0.1, 1.0, 7.0):
        released = HISTOGRAM.release(np.array([4, 0, 9]), epsilon, random_source(0))
        np.testing.assert_array_equal(released, [7.0, 3.0, 12.0])
        assert seen.pop() == math.nextafter(2.0 / epsilon, math.inf)
    released = HISTOGRAM.release(np.array([3, 0, 8]), math.inf, random_source(0))
    np.testing.assert_array_equal(released, [3, 0, 8])
    assert not seen


def test_law_of_the_noise():
    """Discrete Laplace of scale 2 / epsilon. Seeded; false alarm 1e-7."""
    counts, epsilon = np.full(20_000, 5), 0.8
    noise = HISTOGRAM.release(counts, epsilon, random_source(0)) - counts
    r = np.exp(-epsilon / 2.0)
    inner = np.arange(-12, 13)
    mass = (1 - r) / (1 + r) * r ** np.abs(inner)
    expected = np.r_[mass, 1 - mass.sum()] * noise.size
    # Half the noise would not do.
    for drawn, honest in ((noise, True), (noise // 2, False)):
        found = np.r_[[np.sum(drawn == k) for k in inner], np.sum(np.abs(drawn) > 12)]
        assert (stats.chisquare(found, expected).pvalue > 1e-7) == honest


def test_scales_are_never_too_small():
    """Of discrete Laplace noise, and of discrete Gaussian noise; nor larger than rounding."""
    rng, one = np.random.default_rng(0), Fraction(1 - 1e-15)
    for sensitivity in (1, 2, 3, 2**30, 2**53 + 1, 2**62 - 1):
        for price in 10.0 ** rng.uniform(-9, 9, 100):
            spent = Fraction(sensitivity) / Fraction(sums.least_scale(sensitivity, price))
            assert Fraction(price) * one <= spent <= Fraction(price)
            squared = (
                Fraction(sensitivity) / Fraction(sums.least_deviation(sensitivity, price)) ** 2
            )
            assert Fraction(price) ** 2 * one <= squared <= Fraction(price) ** 2


class TestSums:
    def test_no_term_moves_a_sum_by_more_than_the_sensitivity(self):
        for (low, high), exponent in product(
            [(0.0, 1.0), (-0.3, 0.7), (-5.0, -1e-9)], [-30, -3, 0, 2]
        ):
            query = Sum.of_reals(low, high, exponent)
            values = np.r_[low, high, np.random.default_rng(0).uniform(low, high, 500)]
            terms = query.terms(values)
            assert np.ptp(terms) == query.sensitivity  # attained at both ends
            assert query.total(values) == terms.sum()
            off = query.value(query.total(values)) - values.sum()
            assert abs(off) <= values.size * 2.0**exponent

    def test_sensitivities(self):
        """In L1 and in the square of L2, in units of the lattice."""
        for query, length, square in (
            (sums.COUNT, 1, 1),
            (sums.LOSS, 2**30, 2**60),
            (HISTOGRAM, 2, 2),
            # A record that is counted several times: all leave one cell and enter one other.
            (Histogram(4), 4, 8),
            (Histogram(6), 6, 18),
            (Histograms((1, 1, 1)), 6, 6),
            (Sums(3, 7), 21, 3 * 7**2),  # all may move
            (CellSums(0.5), 2**20, 2**40),
            (CellSums(0.75, distance=1.0), 3 * 2**19, (2**20 + 2) ** 2),
        ):
            assert (query.sensitivity, query.squared_distance) == (length, square)
            assert query.deviation(Concentrated(0.5)) == pytest.approx(
                2.0 * math.sqrt(square), rel=1e-6
            )

    def test_several_sums_share_epsilon(self, monkeypatch):
        seen = []
        monkeypatch.setattr(sums, "lattice_laplace", lambda v, scale, _: seen.append(scale) or v)
        assert Sums(3, 7).release([1, 2, 3], 0.5, random_source(0)) == [1, 2, 3]
        assert seen == pytest.approx([42.0] * 3)

    def test_law_of_a_choice(self):
        """Of two, the worse with half of exp(-epsilon gap / 2). Seeded; false alarm 1e-7."""
        source, n = random_source(0), 5_000
        worse = sum(Sums(2, 10).least([10, 30], 1.0, source) for _ in range(n))
        assert stats.binomtest(worse, n, 0.5 * math.exp(-1.0)).pvalue > 1e-7


def test_of_several_histograms_each_has_an_equal_part(monkeypatch):
    seen, query = queries_without_noise(monkeypatch), Histograms((1, 1, 1))
    exact = [np.array([1]), np.array([0, 1]), np.array([0, 1, 0])]
    released = query.release(exact, 0.7, random_source(0))
    assert [r.tolist() for r in released] == [e.tolist() for e in exact]
    assert [(sensitivity, price) for sensitivity, _, price in seen] == [(2, 0.7 / 3)] * 3
    assert query.deviation(0.7) == HISTOGRAM.deviation(0.7 / 3)
    coarse = Histograms((1, 4, 1))  # noise grows with the unit, and so does what it hides
    assert (coarse.sensitivity, coarse.squared_distance) == (12, 36)
    assert coarse.deviation(0.7) == query.deviation(0.7)
    coarse.release(exact, 0.7, random_source(0))
    assert [(sensitivity, price) for sensitivity, _, price in seen[3:]] == [
        (2, 0.7 / 3), (8, 0.7 / 3), (2, 0.7 / 3),
    ]  # fmt: skip
    gaussian = Concentrated(0.7)
    assert compose_gaussian(*[query.each(gaussian)] * 3).mu == pytest.approx(0.7)
    assert compose_gaussian(*[query.each(gaussian)] * 3).mu <= 0.7 * (1 + 1e-15)


# ---- Choices.


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranks(Choices):
    name = "ranks"
    proof = "a page"
    moves: int = 4

    @property
    def queries(self):
        return [Sums(3, self.moves)] * 2

    def losses(self, known, records):
        below = records.map_reduce(lambda block: (block[:, None] <= np.arange(3)).sum(axis=0))
        n = known["n"]
        return [[abs(4 * int(rank) - part * n) for rank in below] for part in (1, 3)]

    def postprocess(self, known, places):
        return {"places": list(places)}


ONE = InMemory([np.array([0.0, 1.0, 1.0, 2.0]), np.array([2.0])])
OTHER = InMemory([np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0])])


def test_each_has_an_equal_part_of_the_price(monkeypatch):
    asked = []

    def spy(scores, epsilon, sensitivity, source):
        asked.append((list(scores), epsilon, sensitivity))
        return 2

    monkeypatch.setattr(sums, "permute_and_flip", spy)
    ranks = Ranks(price=0.3)
    found = ranks.run({"n": 5}, ONE, random_source(0))
    assert found == {"places": [2, 2]}
    assert asked == [([-1, -7, -15], 0.15, 4.0), ([-11, -3, -5], 0.15, 4.0)]
    assert ranks.cost.epsilon == 2 * Fraction(0.15)
    assert ranks.scales() == [1.0 / 0.3]


def test_without_privacy_the_least_losses_are_chosen():
    ranks = Ranks(price=math.inf)
    assert ranks.run({"n": 5}, ONE, random_source(0)) == {"places": [0, 1]}
    assert ranks.cost.epsilon == math.inf


def test_losses_of_neighbours_are_as_far_apart_as_they_may_be():
    for moves in (4, 3):
        found = Ranks(price=0.3, moves=moves).distances({"n": 5}, ONE, OTHER)
        assert found == [("losses", 4.0, float(moves))] * 2
