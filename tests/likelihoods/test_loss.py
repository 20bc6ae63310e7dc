"""The sum that a certificate rests on: its error does not grow with the number of records."""

import math

import numpy as np
import pytest

from skdpsurv.likelihoods.loss import SUM_ROWS, Sensitivity, weighted_sum

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
    """Of every sign and size, where the sum is small beside its terms; rows of any stride."""
    rng = np.random.default_rng(n)
    weights = rng.choice([-2.0, 0.5, 1.0], size=n)
    rows = rng.normal(size=(3, 2 * n)).T * 10.0 ** rng.uniform(-8, 8, size=(2 * n, 1))
    check(weights, rows[::2])


def test_a_running_sum_would_be_off_by_more():
    """Otherwise the test of equal addends could not fail."""
    n = 200_003
    running = np.cumsum(np.full(n, 0.1))[-1]
    assert abs(running - math.fsum([0.1] * n)) > (SUM_ROWS + math.log2(n)) * 2.0**-53 * 0.1 * n


def test_no_columns_and_no_rows():
    for n in (0, *COUNTS[:6]):
        assert weighted_sum(np.ones(n), np.empty((n, 0))).shape == (0,)
    np.testing.assert_array_equal(weighted_sum(np.empty(0), np.empty((0, 3))), np.zeros(3))


def test_sides_of_a_move_are_added_up_apart():
    move = Sensitivity(1.0, np.array([2.0, 0.5, 0.0, -0.25, -3.0, -0.5]))
    assert [side.tolist() for side in move.sides] == [[2, 0.5, 0, 0, 0, 0], [0, 0, 0, 0.25, 3, 0.5]]
    assert (move.trace, move.rank(3.75)) == (3.75, 3)
