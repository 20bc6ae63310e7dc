"""Private mean of bounded rows: sensitivity, law, and what is made of the noisy mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.dp.checks import clip_rows
from skdpsurv.mechanisms import sums as module
from skdpsurv.mechanisms import vector_noise
from skdpsurv.mechanisms.sums import MeanOfRows


def rows(n=50, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, d))


def private_mean(blocks, n, norm, price, source):
    query = MeanOfRows(n, blocks.blocks[0].shape[1], norm)
    return query.shrunk(query.release(query.mean(blocks), price, source), price)


@pytest.fixture
def scales(monkeypatch):
    """Record the scale of the noise, and add none."""
    seen = []

    def no_noise(dimension, scale, source):
        seen.append(scale)
        return np.zeros(dimension)

    monkeypatch.setattr(vector_noise, "spherical_laplace", no_noise)
    monkeypatch.setattr(module, "SHRINKAGE", 0.0)
    return seen


@pytest.mark.parametrize("norm", [0.1, 1.0, 3.0])
def test_without_noise_it_is_the_mean_of_the_clipped_rows(scales, norm):
    X = rows()
    mean, spread = private_mean(InMemory([X]), 50, norm, 1.0, random_source(0))
    exact = clip_rows(X, norm).mean(axis=0)
    np.testing.assert_allclose(mean, exact, atol=scales[0] / 100)
    assert spread == pytest.approx(np.sqrt(norm**2 - mean @ mean))
    distances = np.linalg.norm(clip_rows(X, norm) - exact, axis=1)
    assert np.sqrt(np.mean(distances**2)) <= spread * (1 + scales[0] / norm)


def test_neighbours_differ_by_at_most_scale_times_epsilon(scales):
    """The scale is the sensitivity over epsilon, and opposite rows attain it."""
    n, norm, epsilon = 8, 0.7, 2.0
    worst = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, row = rng.normal(size=(n, 2)), 10.0 * rng.normal(size=2)
        ends = []
        for first in (row, -row):
            X[0] = first
            ends.append(private_mean(InMemory([X]), n, norm, epsilon, random_source(0))[0])
        worst = max(worst, np.linalg.norm(ends[0] - ends[1]))
    step = scales[0] / 256
    assert 0.98 * 2 * norm / n < worst <= scales[0] * epsilon + 2 * step
    assert scales[0] == pytest.approx(2 * norm / (n * epsilon), rel=1e-6)


def test_law_of_the_noise(monkeypatch):
    """||mean - exact|| is Gamma(d, 2R / (n epsilon)). Seeds are fixed."""
    monkeypatch.setattr(module, "SHRINKAGE", 0.0)
    X, norm, epsilon = rows(200), 4.0, 1.0
    exact = clip_rows(X, norm).mean(axis=0)
    distance = [
        np.linalg.norm(private_mean(InMemory([X]), 200, norm, epsilon, random_source(i))[0] - exact)
        for i in range(1000)
    ]
    law = stats.gamma(3, scale=2 * norm / (200 * epsilon))
    assert stats.kstest(distance, law.cdf).pvalue > 1e-7
    assert stats.kstest(0.75 * np.array(distance), law.cdf).pvalue < 1e-7


def test_the_sum_is_exact(scales):
    """Rows that a sum of doubles would get wrong in one order or another: no order matters.

    One row is within 2^-31 of the lattice in each coordinate, and so is their mean.
    """
    rng = np.random.default_rng(1)
    X = 10.0 ** rng.uniform(-12, 0, size=(5000, 3)) * rng.choice([-1.0, 1.0], size=(5000, 3))
    means = [
        private_mean(InMemory([X[order]]), 5000, 1.0, 1e16, random_source(0))[0]
        for order in (np.arange(5000), np.argsort(X[:, 0]), rng.permutation(5000))
    ]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])
    exact = [math.fsum(column) / 5000 for column in clip_rows(X, 1.0).T]
    np.testing.assert_allclose(means[0], exact, rtol=0, atol=2.0**-31 + 1e-11)


def test_rounding_to_the_lattice_is_in_the_sensitivity(scales):
    """The scale is above that of real rows by what rounding may add, and by no more than that."""
    private_mean(InMemory([rows(50, 100)]), 50, 1.0, 1.0, random_source(0))
    assert scales[0] == pytest.approx(2 / 50 * (1 + 10 * 2.0**-31), rel=1e-14)
    assert scales[0] > 2 / 50


def test_blocks_do_not_matter():
    X = rows()
    whole = private_mean(InMemory([X]), 50, 1.0, 1.0, random_source(0))
    parts = private_mean(InMemory([X[:1], X[1:20], X[20:]]), 50, 1.0, 1.0, random_source(0))
    np.testing.assert_array_equal(whole[0], parts[0])
    assert whole[1] == parts[1]


@pytest.mark.parametrize("seed", range(20))
def test_mean_stays_in_the_ball(seed):
    """Also where the noise is a thousand times the ball."""
    mean, spread = private_mean(InMemory([rows(1)]), 1, 0.5, 1e-3, random_source(seed))
    assert np.linalg.norm(mean) <= 0.5 * (1 + 1e-12)
    assert 0.0 <= spread <= 0.5


def test_pure_noise_is_shrunk():
    """Rows of zeros: the release is closer to 0 than its noise, and often 0."""
    X, noise_length = np.zeros((100, 5)), 5 * 2 / 100
    means = [private_mean(InMemory([X]), 100, 1.0, 1.0, random_source(i))[0] for i in range(300)]
    lengths = np.linalg.norm(means, axis=1)
    assert np.mean(lengths) < 0.8 * noise_length
    assert any(length == 0.0 for length in lengths)
