"""Noisy counts: their sensitivity and the law of their noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdpsurv.hybrid import counts as module
from skdpsurv.hybrid.counts import SENSITIVITY, noisy_counts
from skdpsurv.hybrid.nearest import nearest
from skdpsurv.privacy import random_source


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
    assert moved == SENSITIVITY


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
def test_scale_of_the_noise(monkeypatch, epsilon):
    seen = []

    def constant(values, scale, source):
        seen.append(scale)
        return values + 3

    monkeypatch.setattr(module, "lattice_laplace", constant)
    released = noisy_counts(np.array([4, 0, 9]), epsilon, random_source(0))
    np.testing.assert_array_equal(released, [7.0, 3.0, 12.0])
    assert seen == [2.0 / epsilon]


def test_law_of_the_noise():
    """Discrete Laplace of scale 2 / epsilon. Seeded; false alarm 1e-7."""
    counts, epsilon = np.full(20_000, 5), 0.8
    noise = noisy_counts(counts, epsilon, random_source(0)) - counts
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
    released = noisy_counts(counts, np.inf, random_source(0))
    assert released.dtype == np.float64
    np.testing.assert_array_equal(released, counts)


def test_a_release_has_whole_numbers_and_negative_ones():
    released = noisy_counts(np.zeros(200, dtype=np.int64), 0.5, random_source(1))
    np.testing.assert_array_equal(released, np.round(released))
    assert released.min() < 0 < released.max()
