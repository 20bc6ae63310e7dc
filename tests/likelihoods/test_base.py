"""The sum that a certificate rests on: its error does not grow with the number of records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpsurv.likelihoods.base import SUM_ROWS, weighted_sum

#: Below, at and above one piece, and many pieces with and without a rest.
COUNTS = [1, 7, SUM_ROWS - 1, SUM_ROWS, SUM_ROWS + 1, 10 * SUM_ROWS, 200_003]


def check(weights, rows):
    """Compare with math.fsum of the exact products, column by column."""
    n, found = len(weights), weighted_sum(weights, rows)
    assert found.shape == (rows.shape[1],)
    ulps = SUM_ROWS + math.log2(n)
    for column, value in zip(rows.T, found, strict=True):
        products = weights * column  # exact, with the weights or rows used here
        exact, size = math.fsum(products), math.fsum(np.abs(products))
        assert abs(value - exact) <= ulps * 2.0**-53 * size


@pytest.mark.parametrize("n", COUNTS)
def test_equal_addends(n):
    """The worst case of a running sum, whose errors all point the same way."""
    for addend in (0.1, 1 / 3, -0.7):
        check(np.ones(n), np.full((n, 2), addend))
        check(np.full(n, addend), np.ones((n, 2)))


@pytest.mark.parametrize("n", COUNTS)
def test_any_addends(n):
    """Of every sign and size, where the sum is small beside its terms."""
    rng = np.random.default_rng(n)
    weights = rng.choice([-2.0, 0.5, 1.0], size=n)
    check(weights, rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-8, 8, size=(n, 1)))


def test_a_running_sum_would_be_off_by_more():
    """Otherwise the test of equal addends could not fail."""
    n = 200_003
    running = np.cumsum(np.full(n, 0.1))[-1]
    assert abs(running - math.fsum([0.1] * n)) > (SUM_ROWS + math.log2(n)) * 2.0**-53 * 0.1 * n


def test_no_columns_and_no_rows():
    for n in (0, *COUNTS[:6]):
        assert weighted_sum(np.ones(n), np.empty((n, 0))).shape == (0,)
    np.testing.assert_array_equal(weighted_sum(np.empty(0), np.empty((0, 3))), np.zeros(3))


@pytest.mark.parametrize("n", [5, 3 * SUM_ROWS + 1])
def test_weights_belong_to_their_rows(n):
    """Integers, so that the answer is exact in any order."""
    rng = np.random.default_rng(0)
    weights, rows = rng.integers(-9, 9, size=n), rng.integers(-9, 9, size=(n, 4))
    found = weighted_sum(weights.astype(float), rows.astype(float))
    np.testing.assert_array_equal(found, weights @ rows)


def test_rows_need_not_be_contiguous():
    rng = np.random.default_rng(1)
    weights, rows = rng.normal(size=1000), rng.normal(size=(4, 2000)).T
    strided = weighted_sum(weights, rows[::2])
    whole = weighted_sum(weights, np.ascontiguousarray(rows[::2]))
    np.testing.assert_allclose(strided, whole, rtol=0, atol=1e-12)
