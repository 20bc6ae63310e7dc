"""The public domain of a Weibull fit: clipping, bins, sums of tables, one unit for one record."""

import itertools
import math

import numpy as np

from skdpsurv.data import blocks
from skdpsurv.data.histories import Histories
from skdpsurv.survival.weibull.log_time_counts import (
    N_BINS,
    count_table,
    lattice_exponent,
    log_times,
)
from tests.support.weibull_plans import table_of


def sample(n, seed=0):
    """Times over all of the domain and beyond both ends, and events."""
    rng = np.random.default_rng(seed)
    return 5.0 * np.exp(rng.uniform(-8.0, 1.0, n)), rng.random(n) < 0.6


def test_log_times_are_clipped():
    """What is later is censored, and what is before keeps its event; the least is not before."""
    for omega in [1e-3, 6.0, 100.0]:
        least = 5.0 * math.exp(-omega)
        late, early = [5.0, np.nextafter(5.0, 9.0), 1e300], [0.0, 0.0, 5e-324, 0.999 * least]
        given = [True, True, True, True, False, True, False, True]
        histories = Histories(np.array([*late, *early, least]), np.array(given))
        clipped, before = log_times(histories, 5.0, omega)
        x, event = clipped.exit, clipped.event
        assert x[:7].tolist() == [0.0] * 3 + [-omega] * 4
        np.testing.assert_allclose(x[7], -omega, rtol=1e-12)
        assert event.tolist() == [True, False, False, *given[3:]]
        assert before.tolist() == [False] * 3 + [True] * 4 + [False]


class TestCountTable:
    def test_points_of_the_grid_are_in_their_own_bins(self):
        for omega in [0.1, 0.7, 6.0, 100.0]:
            grid = np.linspace(-omega, 0.0, N_BINS + 1)
            time = 5.0 * np.exp(grid)
            time[0] *= 0.999  # the first bin is what is before it
            table = table_of(time, np.ones(N_BINS + 1, dtype=bool), 5.0, omega)
            np.testing.assert_allclose(table.log_time, grid, atol=1e-12 * omega)
            assert (table.log_time[0], table.log_time[-1]) == (-omega, 0.0)
            assert not np.signbit(table.log_time[-1])
            assert np.all(table.records == 1)

    def test_every_record_is_in_the_nearest_bin(self, monkeypatch):
        """But the first, of what is before. Neither blocks nor the unit of time matter."""
        time, event = sample(3000)
        time[:6] = 5.0 * math.exp(-6.0) * np.array([1e-300, 0.5, 0.9999, 1.0001, 1.001, 1.01])
        table = table_of(time, event, 5.0, 6.0)
        x = np.clip(np.log(time / 5.0), -6.0, 0.0)
        bins = np.where(x > -6.0, np.maximum(np.rint((x / 6.0 + 1.0) * N_BINS), 1), 0).astype(int)
        seen = event & (time <= 5.0)
        for counts, places in ((table.records, bins), (table.events, bins[seen])):
            assert counts.dtype == np.int64
            np.testing.assert_array_equal(counts, np.bincount(places, minlength=N_BINS + 1))
        assert table.n_records == 3000
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 7)
        others = [table_of(unit * time, event, unit * 5.0, 6.0) for unit in (2.0**-40, 2.0**30)]
        cut = blocks.in_blocks(time, event)
        for other in (*others, count_table(cut.map(lambda each: Histories(*each)), 5.0, 6.0)):
            np.testing.assert_array_equal(table.records, other.records)
            np.testing.assert_array_equal(table.events, other.events)

    def test_neighbours_move_one_unit(self):
        """Whatever the other value is: beyond the horizon, zero, or the same time censored."""
        for seed in range(30):
            time, event = sample(20, seed=seed)
            before = table_of(time, event, 5.0, 6.0)
            rng = np.random.default_rng(100 + seed)
            time[0], event[0] = rng.choice([0.0, 5.0, 1e9, time[0], 1.0]), rng.random() < 0.5
            after = table_of(time, event, 5.0, 6.0)
            for one, other in ((before.records, after.records), (before.events, after.events)):
                assert np.abs(other - one).sum() <= 2
                assert np.abs(other - one).max(initial=0) <= 1
            assert (after.records - before.records).sum() == 0
            assert abs((after.events - before.events).sum()) <= 1


def test_sums_of_terms_and_of_their_differences_fit_the_lattice():
    """n terms of either sign, and their gaps, twice as large, stay within 63 bits."""
    for n, largest in itertools.product(
        [1, 7, 8, 50_000, 10**9, 2**40], [1e-3, 0.9, 1.0, 14.2, 2e6, 2.0**20]
    ):
        exponent = lattice_exponent(n, largest)
        assert exponent <= 30
        assert 2 * n * math.ceil(largest * 2.0**exponent) < 2**63
