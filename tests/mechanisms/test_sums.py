"""Noisy counts and sums: their sensitivity and the law of their noise."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source
from skdpsurv.dp.privacy_cost import Concentrated, compose_gaussian
from skdpsurv.hybrid.points import nearest
from skdpsurv.mechanisms import sums
from skdpsurv.mechanisms.sums import (
    COUNT,
    HISTOGRAM,
    LOSS,
    Histogram,
    Histograms,
    Sum,
    Sums,
    least_scale,
)
from tests.support.spies import queries_without_noise

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", range(20))
def test_one_record_moves_counts_by_at_most_two(seed):
    rng = np.random.default_rng(seed)
    points, centers = rng.random((50, 2)), rng.random((8, 2))
    before = np.bincount(nearest(points, centers), minlength=8)
    moved = 0
    for _ in range(20):
        other = points.copy()
        other[rng.integers(50)] = rng.random(2)
        after = np.bincount(nearest(other, centers), minlength=8)
        moved = max(moved, np.abs(after - before).sum())
    assert moved == HISTOGRAM.sensitivity


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_scale_of_the_noise(monkeypatch, epsilon):
    seen = []

    def constant(values, scale, source):
        seen.append(scale)
        return values + 3

    monkeypatch.setattr(sums, "lattice_laplace", constant)
    released = HISTOGRAM.release(np.array([4, 0, 9]), epsilon, random_source(0))
    np.testing.assert_array_equal(released, [7.0, 3.0, 12.0])
    assert seen == [math.nextafter(2.0 / epsilon, math.inf)]


def test_law_of_the_noise():
    """Discrete Laplace of scale 2 / epsilon. Seeded; false alarm 1e-7."""
    counts, epsilon = np.full(20_000, 5), 0.8
    noise = HISTOGRAM.release(counts, epsilon, random_source(0)) - counts
    r = np.exp(-epsilon / 2.0)
    inner = np.arange(-12, 13)
    mass = (1 - r) / (1 + r) * r ** np.abs(inner)
    expected = np.r_[mass, 1 - mass.sum()] * noise.size
    found = np.r_[[np.sum(noise == k) for k in inner], np.sum(np.abs(noise) > 12)]
    assert stats.chisquare(found, expected).pvalue > 1e-7
    # Half the noise would not do.
    halved = np.r_[[np.sum(noise // 2 == k) for k in inner], np.sum(np.abs(noise // 2) > 12)]
    assert stats.chisquare(halved, expected).pvalue < 1e-7


def test_without_noise():
    counts = np.array([3, 0, 8])
    released = HISTOGRAM.release(counts, np.inf, random_source(0))
    np.testing.assert_array_equal(released, counts)


def test_a_release_has_whole_numbers_and_negative_ones():
    released = HISTOGRAM.release(np.zeros(200, dtype=np.int64), 0.5, random_source(1))
    np.testing.assert_array_equal(released, np.round(released))
    assert released.min() < 0 < released.max()


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 2**30, 2**53 + 1, 2**62 - 1])
def test_scales_are_never_too_small(sensitivity):
    rng = np.random.default_rng(0)
    for epsilon in 10.0 ** rng.uniform(-9, 9, 200):
        spent = Fraction(sensitivity) / Fraction(least_scale(sensitivity, epsilon))
        assert Fraction(epsilon) * Fraction(1 - 1e-15) <= spent <= Fraction(epsilon)


class TestSums:
    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.3, 0.7), (-5.0, -1e-9)])
    @pytest.mark.parametrize("exponent", [-30, -3, 0, 2])
    def test_no_term_moves_a_sum_by_more_than_the_sensitivity(self, low, high, exponent):
        query = Sum.of_reals(low, high, exponent)
        values = np.r_[low, high, np.random.default_rng(0).uniform(low, high, 500)]
        terms = query.terms(values)
        assert np.ptp(terms) == query.sensitivity  # attained at both ends
        assert query.total(values) == terms.sum()
        assert abs(query.value(query.total(values)) - values.sum()) <= values.size * 2.0**exponent

    def test_counts_and_losses(self):
        assert (COUNT.sensitivity, LOSS.sensitivity) == (1, 2**30)

    def test_several_sums_share_epsilon(self, monkeypatch):
        seen = []
        monkeypatch.setattr(sums, "lattice_laplace", lambda v, scale, _: seen.append(scale) or v)
        assert Sums(3, 7).release([1, 2, 3], 0.5, random_source(0)) == [1, 2, 3]
        assert seen == pytest.approx([42.0] * 3)

    def test_the_least_is_taken_without_noise(self):
        assert Sums(3, 1).least([4, 1, 2], math.inf, random_source(0)) == 1

    def test_law_of_a_choice(self):
        """Of two, the worse with half of exp(-epsilon gap / 2). Seeded; false alarm 1e-7."""
        source, n = random_source(0), 5_000
        worse = sum(Sums(2, 10).least([10, 30], 1.0, source) for _ in range(n))
        assert stats.binomtest(worse, n, 0.5 * math.exp(-1.0)).pvalue > 1e-7


@pytest.mark.parametrize("query", [COUNT, LOSS, HISTOGRAM, Sums(2, 3)])
def test_each_query_names_its_proof(query):
    page = re.search(r"docs/\S+\.md", query.proof)[0]
    text = (ROOT / page).read_text()
    assert {"Count": "Count", "Sum": "**Sum**", "Sums": "Several sums", "Histogram": "Histogram"}[
        type(query).__name__
    ] in text


@pytest.mark.parametrize(("times", "square"), [(1, 2), (2, 8), (3, 18)])
def test_a_record_that_is_counted_several_times_may_move_as_often(times, square):
    """All its counts leave one cell, and enter one other."""
    assert Histogram(2 * times).squared_distance == square
    moved = np.array([times, 0]) - np.array([0, times])
    assert moved @ moved == square


def test_several_sums_may_all_move():
    assert Sums(3, 7).squared_distance == 3 * 7**2


def test_of_several_histograms_each_has_an_equal_part(monkeypatch):
    seen, query = queries_without_noise(monkeypatch), Histograms(3)
    exact = [np.array([1]), np.array([0, 1]), np.array([0, 1, 0])]
    released = query.release(exact, 0.7, random_source(0))
    assert [r.tolist() for r in released] == [e.tolist() for e in exact]
    assert [(sensitivity, price) for sensitivity, _, price in seen] == [(2, 0.7 / 3)] * 3
    assert query.deviation(0.7) == HISTOGRAM.deviation(0.7 / 3)
    gaussian = Concentrated(0.7)
    assert compose_gaussian(*[query.each(gaussian)] * 3).mu == pytest.approx(0.7)
    assert compose_gaussian(*[query.each(gaussian)] * 3).mu <= 0.7 * (1 + 1e-15)
