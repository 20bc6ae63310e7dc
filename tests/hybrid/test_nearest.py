"""Nearest public points, against brute force."""

from itertools import product

import numpy as np
import pytest

from skdpsurv.hybrid import hybrid_records as module
from skdpsurv.hybrid.hybrid_records import nearest, nested_counts


def brute_force(points, centers):
    squares = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    return squares.argmin(axis=1)


@pytest.fixture
def random_points():
    rng = np.random.default_rng(0)
    return rng.random((211, 5)), rng.random((97, 5))


@pytest.fixture
def lattice_points():
    """Points of a coarse lattice: exact in doubles, and full of ties."""
    rng = np.random.default_rng(1)
    return rng.integers(0, 4, (150, 2)) / 4.0, rng.integers(0, 3, (40, 2)) / 2.0


def small_blocks(monkeypatch, rows, pairs):
    monkeypatch.setattr(module, "BLOCK_ROWS", rows)
    monkeypatch.setattr(module, "BLOCK_PAIRS", pairs)


def test_a_cut_changes_nothing_where_rounding_would_decide():
    """Tenths are no doubles, and few rows are multiplied in another order than many."""
    rng = np.random.default_rng(0)
    points, centers = rng.integers(0, 11, (700, 9)) / 10.0, rng.integers(0, 6, (40, 9)) / 5.0
    whole = brute_force(np.rint(10 * points), np.rint(10 * centers))  # without rounding
    for cut in [1, 3, 7, 100, 700]:
        parts = [nearest(points[start : start + cut], centers) for start in range(0, 700, cut)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_blocks_change_nothing(monkeypatch, lattice_points):
    """Not even which of several nearest points is taken, the first, in whatever blocks they are."""
    points, centers = lattice_points
    squares = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    assert (np.sum(squares == squares.min(axis=1)[:, None], axis=1) > 1).sum() > 50
    for rows, pairs in [(2**10, 2**21), (1, 1), (7, 21), (64, 64 * 5), (1000, 10)]:
        small_blocks(monkeypatch, rows, pairs)
        np.testing.assert_array_equal(nearest(points, centers), brute_force(points, centers))


def test_nested_counts_are_those_of_each_prefix(monkeypatch, random_points):
    points, centers = random_points
    for sizes, block in product([(1,), (97,), (1, 2, 50, 97)], [(2**10, 2**21), (10, 40)]):
        small_blocks(monkeypatch, *block)
        for size, counts in zip(sizes, nested_counts(points, centers, sizes), strict=True):
            expected = np.bincount(brute_force(points, centers[:size]), minlength=size)
            np.testing.assert_array_equal(counts, expected)


def test_a_record_has_the_same_cell_whoever_else_is_there(random_points):
    """Else one changed record could move others, and a sensitivity of 2 would not hold."""
    points, centers = random_points
    other = points.copy()
    other[17] = 1.0 - other[17]
    same = nearest(points, centers) == nearest(other, centers)
    assert np.delete(same, 17).all()
