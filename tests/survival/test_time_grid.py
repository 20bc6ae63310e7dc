"""The public time grid, interval by interval."""

from __future__ import annotations

import math
import warnings

import numpy as np

from skdpsurv.survival.hazards.model import grid_intervals, interval_ends


def test_ends_are_public_and_end_at_the_horizon():
    np.testing.assert_allclose(interval_ends(6.0, 4), [1.5, 3.0, 4.5, 6.0])
    for q in (1, 3, 7, 49, 200):
        ends = interval_ends(0.1, q)
        assert ends[-1] == 0.1
        assert (np.diff(ends) > 0).all()


def test_intervals_by_definition():
    for q in [1, 4, 200]:
        rng = np.random.default_rng(0)
        time, event = rng.uniform(0, 13, size=300), rng.random(300) < 0.5
        interval, kept = grid_intervals(time, event, 10.0, q)
        for t, d, s, e in zip(time, event, interval, kept, strict=True):
            assert s == min(max(math.ceil(q * t / 10.0), 1), q)
            assert e == (d and t <= 10.0)
        assert interval.dtype == np.int64


def test_intervals_are_closed_on_the_right_and_zero_is_in_the_first():
    time = np.array([0.0, 0.5, 1.0, 1.0 + 1e-12, 4.0, 4.0 + 1e-12])
    interval, event = grid_intervals(time, np.ones(6, dtype=bool), 4.0, 4)
    np.testing.assert_array_equal(interval, [1, 1, 1, 2, 4, 4])
    np.testing.assert_array_equal(event, [True] * 5 + [False])


def test_each_record_is_on_its_own():
    time, event = np.array([1.0, 7.0, 3.0]), np.array([True, True, False])
    together = grid_intervals(time, event, 5.0, 10)
    alone = [grid_intervals(time[i : i + 1], event[i : i + 1], 5.0, 10) for i in range(3)]
    np.testing.assert_array_equal(together[0], np.concatenate([a[0] for a in alone]))
    np.testing.assert_array_equal(together[1], np.concatenate([a[1] for a in alone]))


def test_a_grid_of_days_has_each_day_in_its_own_interval():
    """Rounding of t / max_time must not push whole numbers over their interval's end."""
    for q in [3, 49, 200, 1461]:
        days = np.arange(1.0, q + 1)
        interval, _ = grid_intervals(days, np.ones(q, dtype=bool), float(q), q)
        np.testing.assert_array_equal(interval, np.arange(1, q + 1))


def test_the_largest_horizon_neither_warns_nor_fails():
    """A warning that only some times raise would tell them apart."""
    largest = np.finfo(float).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interval, _ = grid_intervals(np.array([1.0, largest]), np.ones(2, bool), largest, 200)
    assert list(interval) == [1, 200]
