"""The public time grid, interval by interval, and the splines on it."""

import math
import warnings

import numpy as np
from scipy.interpolate import CubicSpline

from skdpsurv.data.histories import Histories
from skdpsurv.survival.hazards.model import (
    interval_ends,
    orthogonal_basis,
    published_basis,
    to_published,
)


def on_grid(time, event, max_time, q):
    found = Histories(time, event).on_grid(max_time, q)
    return found.exit, found.event


def test_ends_are_public_and_end_at_the_horizon():
    np.testing.assert_allclose(interval_ends(6.0, 4), [1.5, 3.0, 4.5, 6.0])
    for q in (1, 3, 7, 49, 200):
        ends = interval_ends(0.1, q)
        assert ends[-1] == 0.1
        assert (np.diff(ends) > 0).all()


def test_intervals_by_definition():
    """Each record is on its own, too."""
    for q in [1, 4, 200]:
        rng = np.random.default_rng(0)
        time, event = rng.uniform(0, 13, size=300), rng.random(300) < 0.5
        interval, kept = on_grid(time, event, 10.0, q)
        expected = [min(max(math.ceil(q * t / 10.0), 1), q) for t in time]
        np.testing.assert_array_equal(interval, expected)
        np.testing.assert_array_equal(kept, event & (time <= 10.0))
        assert interval.dtype == np.int64
        for i in range(9):
            alone = on_grid(time[i : i + 1], event[i : i + 1], 10.0, q)
            assert (interval[i], kept[i]) == (alone[0][0], alone[1][0])


def test_intervals_are_closed_on_the_right_and_zero_is_in_the_first():
    time = np.array([0.0, 0.5, 1.0, 1.0 + 1e-12, 4.0, 4.0 + 1e-12])
    interval, event = on_grid(time, np.ones(6, dtype=bool), 4.0, 4)
    np.testing.assert_array_equal(interval, [1, 1, 1, 2, 4, 4])
    np.testing.assert_array_equal(event, [True] * 5 + [False])
    # Rounding of t / max_time must not push whole numbers over their interval's end.
    for q in [3, 49, 200, 1461]:
        interval, _ = on_grid(np.arange(1.0, q + 1), np.ones(q, bool), float(q), q)
        np.testing.assert_array_equal(interval, np.arange(1, q + 1))


def test_the_largest_horizon_neither_warns_nor_fails():
    """A warning that only some times raise would tell them apart."""
    largest = np.finfo(float).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interval, _ = on_grid(np.array([1.0, largest]), np.ones(2, bool), largest, 200)
    assert list(interval) == [1, 200]


def by_the_paper(t, e):
    knots = [i / (e - 1) for i in range(e)]

    def cube(u):
        return max(u, 0.0) ** 3

    def d(j):
        return (cube(t - knots[j]) - cube(t - knots[-1])) / (knots[-1] - knots[j])

    return [1.0, t, *(d(j) - d(e - 2) for j in range(e - 2))]


def test_published_basis_is_the_papers():
    for q, e in [(50, 3), (200, 7), (10, 4)]:
        expected = [by_the_paper(s / q, e) for s in range(1, q + 1)]
        np.testing.assert_allclose(published_basis(q, e), expected, atol=1e-14)
    # One knot is a constant, and two are a line.
    np.testing.assert_array_equal(published_basis(4, 1), np.ones((4, 1)))
    np.testing.assert_array_equal(published_basis(4, 2).T, [[1, 1, 1, 1], [0.25, 0.5, 0.75, 1]])


def test_holds_every_natural_cubic_spline_on_its_knots():
    """scipy's natural spline through any values at the knots is in the span."""
    for e in [3, 4, 7]:
        knots = np.linspace(0, 1, e)
        spline = CubicSpline(knots, np.random.default_rng(0).normal(size=e), bc_type="natural")
        values, basis = spline(np.arange(1, 61) / 60), published_basis(60, e)
        coef = np.linalg.lstsq(basis, values, rcond=None)[0]
        np.testing.assert_allclose(basis @ coef, values, atol=1e-9)


def test_orthogonal_basis_has_unit_columns_and_a_constant():
    """And spans the space of the other, with a map to it."""
    for q, e in [(1, 1), (2, 2), (5, 5), (50, 1), (50, 2), (50, 3), (200, 7), (200, 12)]:
        basis = orthogonal_basis(q, e)
        np.testing.assert_allclose(basis.T @ basis, q * np.eye(e), atol=1e-9 * q)
        np.testing.assert_allclose(basis[:, 0], 1.0, atol=1e-12)
        values = basis @ np.random.default_rng(1).normal(size=e)
        np.testing.assert_allclose(
            published_basis(q, e) @ to_published(values, e), values, atol=1e-7
        )
