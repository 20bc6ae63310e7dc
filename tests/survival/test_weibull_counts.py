"""The public domain of a Weibull fit: clipping, bins, sums of tables, one unit for one record."""

from __future__ import annotations

import itertools
import math

import numpy as np

from skdpsurv.data import blocks
from skdpsurv.data.blocks import InMemory
from skdpsurv.survival.weibull.counts import (
    N_BINS,
    count_table,
    lattice_exponent,
    log_time_grid,
    log_times,
)


def table_of(time, event, max_time, omega):
    return count_table(InMemory([(event, time)]), max_time, omega)


def sample(n, seed=0, max_time=5.0):
    """Times over all of the domain and beyond both ends, and events."""
    rng = np.random.default_rng(seed)
    time = max_time * np.exp(rng.uniform(-8.0, 1.0, n))
    return time, rng.random(n) < 0.6


class TestLogTimes:
    def test_beyond_the_horizon_is_censored_at_it(self):
        time = np.array([5.0, np.nextafter(5.0, 9.0), 1e300])
        x, event, before = log_times(time, np.ones(3), 5.0, 6.0)
        assert x.tolist() == [0.0, 0.0, 0.0]
        assert event.tolist() == [True, False, False]
        assert not before.any()

    def test_small_times_and_zero_are_raised_and_stay_what_they_were(self):
        for omega in [1e-3, 6.0, 100.0]:
            time = np.array([0.0, 0.0, 5e-324, 4.999 * math.exp(-omega)])
            x, event, before = log_times(time, np.array([True, False, True, False]), 5.0, omega)
            assert x.tolist() == [-omega] * 4
            assert event.tolist() == [True, False, True, False]
            assert before.all()

    def test_the_least_time_itself_is_not_before_it(self):
        least = math.exp(-6.0)
        x, _, before = log_times(np.array([least, 0.999 * least]), np.ones(2), 1.0, 6.0)
        assert before.tolist() == [False, True]
        np.testing.assert_allclose(x, [-6.0, -6.0], rtol=1e-15)


class TestGrid:
    def test_ends_and_order(self):
        for omega in [1e-3, 0.7, 6.0, 100.0]:
            grid = log_time_grid(omega)
            assert grid.shape == (N_BINS + 1,)
            assert grid[0] == -omega
            assert grid[-1] == 0.0
            assert not np.signbit(grid[-1])
            np.testing.assert_allclose(np.diff(grid), omega / N_BINS, rtol=1e-9)

    def test_points_are_in_their_own_bins(self):
        for omega in (0.7, 6.0):
            time = 5.0 * np.exp(log_time_grid(omega))
            time[0] *= 0.999  # the first bin is what is before it
            table = table_of(time, np.ones(N_BINS + 1, dtype=bool), 5.0, omega)
            assert np.all(table.records == 1)
            np.testing.assert_array_equal(table.log_time, log_time_grid(omega))


class TestCountTable:
    def test_every_record_is_in_the_nearest_bin(self):
        time, event = sample(3000)
        table = table_of(time, event, 5.0, 6.0)
        x = np.clip(np.log(time / 5.0), -6.0, 0.0)
        # The first bin is what is before; what is just after has the next.
        first = (x > -6.0) & (x < -6.0 + 6.0 / N_BINS)
        x[first] = -6.0 + 6.0 / N_BINS
        seen = event & (time <= 5.0)
        for counts, values in ((table.records, x), (table.events, x[seen])):
            assert counts.dtype == np.int64
            assert counts.shape == (N_BINS + 1,)
            assert counts.sum() == values.size
            nearest = np.repeat(table.log_time, counts)
            assert np.max(np.abs(np.sort(values) - nearest)) <= 6.0 / N_BINS / 2 * (1 + 1e-9)
        assert table.n_records == 3000

    def test_the_first_bin_has_who_is_before_and_nobody_else(self):
        time = 5.0 * math.exp(-6.0) * np.array([0.0, 0.5, 0.9999, 1.0001, 1.001, 1.01])
        table = table_of(time, np.array([True, False, True] * 2), 5.0, 6.0)
        assert (table.records[0], table.events[0]) == (3, 2)
        assert (table.records[1], table.events[1]) == (2, 1)

    def test_blocks_do_not_matter(self, monkeypatch):
        for rows in [7, 1000]:
            time, event = sample(1000, seed=2)
            whole = table_of(time, event, 5.0, 6.0)
            monkeypatch.setattr(blocks, "BLOCK_ROWS", rows)
            parts = count_table(blocks.in_blocks(event, time), 5.0, 6.0)
            np.testing.assert_array_equal(whole.records, parts.records)
            np.testing.assert_array_equal(whole.events, parts.events)

    def test_neighbours_move_one_unit(self):
        """Whatever the other value is: beyond the horizon, zero, or the same time censored."""
        for seed in range(30):
            time, event = sample(20, seed=seed)
            before = table_of(time, event, 5.0, 6.0)
            rng = np.random.default_rng(100 + seed)
            time[0], event[0] = rng.choice([0.0, 5.0, 1e9, time[0], 1.0]), rng.random() < 0.5
            after = table_of(time, event, 5.0, 6.0)
            for one, other in ((before.records, after.records), (before.events, after.events)):
                moved = other - one
                assert np.abs(moved).sum() <= 2
                assert np.abs(moved).max(initial=0) <= 1
            assert (after.records - before.records).sum() == 0
            assert abs((after.events - before.events).sum()) <= 1

    def test_unit_of_time_does_not_matter(self):
        time, event = sample(500, seed=5)
        for unit in (2.0**-40, 2.0**30):
            one = table_of(time, event, 5.0, 6.0)
            other = table_of(unit * time, event, unit * 5.0, 6.0)
            np.testing.assert_array_equal(one.records, other.records)
            np.testing.assert_array_equal(one.events, other.events)


class TestLatticeExponent:
    def test_sums_of_terms_and_of_their_differences_fit(self):
        """n terms of either sign, and their gaps, twice as large, stay within 63 bits."""
        for n, largest in itertools.product(
            [1, 7, 8, 50_000, 10**9, 2**40], [1e-3, 0.9, 1.0, 14.2, 2e6, 2.0**20]
        ):
            exponent = lattice_exponent(n, largest)
            assert exponent <= 30
            assert 2 * n * math.ceil(largest * 2.0**exponent) < 2**63
