"""Means of columns and of their squares: sensitivity, exact sums, law of the noise."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.mechanisms.moments import ColumnMoments

GRID = np.concatenate([np.linspace(-1.0, 1.0, 81), [math.sqrt(5.0) - 2.0, 2.0 - math.sqrt(5.0)]])
ONE = np.array([True])


def moved(query, one, other, squared):
    """Return the distance of exact answers to records that differ in the first."""
    rest = np.full((query.n_records - 1, query.n_columns), 0.25)
    both = (query.mean(InMemory([np.vstack([row, rest])]), squared) for row in (one, other))
    return query.distances(*both)


def test_no_pair_passes_the_sensitivity():
    """It is attained at the ends, and of a column and its square together no pair moves more."""
    query, worst = ColumnMoments(5, 1, 1, 4), 0.0
    for u, v in itertools.product(GRID, repeat=2):
        ((_, far, bound),) = moved(query, [u], [v], ONE)
        assert far <= bound
        worst = max(worst, far)
    assert worst > 0.999 * bound
    both = ColumnMoments(5, 3, 2, 12)
    rng = np.random.default_rng(0)
    for _ in range(500):
        u, v = rng.choice(GRID, 3), rng.choice(GRID, 3)
        ((_, far, bound),) = moved(both, u, v, np.array([True, False, True]))
        assert far <= bound


def test_a_larger_weight_would_pass_it():
    """The page's largest weight is 1.665."""
    b = math.sqrt(5.0) - 1.0
    ((_, far, bound),) = moved(ColumnMoments(5, 1, 1, 4, 1.7), [1.0], [1.0 - b], ONE)
    assert far > 1.01 * bound
    ((_, far, bound),) = moved(ColumnMoments(5, 1, 1, 4, 1.665), [1.0], [1.0 - b], ONE)
    assert 0.999 * bound < far <= bound


def test_rounding_is_in_the_sensitivity():
    assert ColumnMoments(10, 1, 1, 4).sensitivity > 0.2
    assert (
        ColumnMoments(10, 400, 400, 1600).sensitivity > 4.0 + 2.0 * math.sqrt(800) * 2.0**-31 / 10
    )


def test_moments_are_those_of_clipped_columns():
    X = np.random.default_rng(1).uniform(-1.3, 1.3, (300, 2))
    query, squared = ColumnMoments(300, 2, 1, 8), np.array([False, True])
    answer = query.mean(InMemory([X[:100], X[100:]]), squared)
    mean, square = query.moments(query.release(answer, math.inf, random_source(0)))
    u = np.clip(X, -1.0, 1.0)
    np.testing.assert_allclose(mean, u.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(square, (u[:, 1:] ** 2).mean(axis=0), atol=1e-8)


def test_law_of_the_noise():
    """Its length is Gamma(D, sensitivity / epsilon). Seeds are fixed."""
    query, epsilon = ColumnMoments(200, 3, 2, 12), 1.0
    answer = query.mean(InMemory([np.zeros((200, 3))]), np.array([True, True, False]))
    sources = map(random_source, range(700))
    noise = [query.release(answer, epsilon, source) - answer for source in sources]
    length = np.linalg.norm(noise, axis=1)
    law = stats.gamma(5, scale=math.sqrt(12.0) / (200 * epsilon))
    assert stats.kstest(length, law.cdf).pvalue > 1e-7
    assert stats.kstest(0.7 * length, law.cdf).pvalue < 1e-7
    assert np.std(noise) == pytest.approx(query.deviation(epsilon), rel=0.1)
