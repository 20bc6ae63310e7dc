"""One record moves the levels of each Weibull ladder by one: exactly."""

import itertools
import math

import numpy as np
import pytest

from skdpsurv.likelihoods.weibull import SHAPE_RANGE
from skdpsurv.mechanisms.ladder import UNIT
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.published.weibull_fitters import PublishedLevels
from skdpsurv.survival.weibull import log_time_counts as weibull_counts
from skdpsurv.survival.weibull.log_time_counts import (
    N_BINS,
    N_CELLS,
    ExactLevels,
    ReleasedMeanLevels,
)
from tests.support.combinations import thinned
from tests.support.weibull_tables import DOMAINS, distances, levels_at, make_table, random_records

#: Bins where a neighbour's record may be.
SPOTS = [0, 1, N_BINS // 2, N_BINS - 300, N_BINS]


def star(n, rng):
    """Return data sets that differ in one record, each a neighbour of each."""
    crowd = random_records(n - 1, rng)
    spots = [*SPOTS, int(rng.integers(N_BINS + 1))]
    return [[*crowd, (place, event)] for place in spots for event in (False, True)]


def grid_nodes(rng):
    """Return nodes over the grid, its ends, and neighbours of those."""
    return [0, 1, N_CELLS - 1, N_CELLS, *rng.integers(0, N_CELLS + 1, 4).tolist()]


def check_moves(sizes, levels_of, nodes, rng, closest=UNIT):
    """66 pairs in each star of 12 data sets, at all nodes, on both sides."""
    largest = 0
    for size in sizes:
        make, data_sets, at = levels_of(rng), star(size, rng), nodes or grid_nodes(rng)
        found = np.array([levels_at(make(records), at) for records in data_sets])
        assert 0 <= found.min() <= found.max() <= size * UNIT
        assert np.ptp(found, axis=0).max() <= UNIT
        largest = max(largest, np.ptp(found, axis=0).max())
    assert largest >= closest


class TestOneRecordMovesOneLevel:
    @pytest.mark.parametrize(("domain", "left_censored"), thinned(DOMAINS, [True, False]), ids=str)
    def test_released_mean(self, domain, left_censored):
        omega, max_shape = domain

        def levels_of(rng):
            least = -omega - weibull_counts.before_offset(omega) * left_censored
            means = [least, -1e-9, -1.0 / (0.9 * max_shape), -omega * rng.random()]
            mean = float(rng.choice(means))
            return lambda d: ReleasedMeanLevels(
                make_table(d, omega), mean, max_shape, left_censored
            )

        sizes = [*range(1, 13), *range(1, 13), 200, 200]
        check_moves(sizes, levels_of, None, np.random.default_rng(1), 0.99 * UNIT)

    @pytest.mark.parametrize(
        ("domain", "top", "left_censored"), thinned(DOMAINS, [2, 10**6], [True, False]), ids=str
    )
    def test_exact(self, domain, top, left_censored):
        omega, max_shape = domain

        def levels_of(rng):
            return lambda d: ExactLevels(make_table(d, omega), max_shape, top, left_censored)

        check_moves((1, 2, 3, 5, 8, 12, 200), levels_of, None, np.random.default_rng(2))

    @pytest.mark.parametrize(("domain", "top"), thinned(DOMAINS, [2, 10**6]), ids=str)
    def test_published(self, monkeypatch, domain, top):
        """On a grid of 16 cells, all of them."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 16)
        omega, max_shape = domain

        def levels_of(rng):
            return lambda d: PublishedLevels(make_table(d, omega), max_shape, top)

        check_moves([*range(1, 13), 200], levels_of, range(17), np.random.default_rng(3))

    def test_every_pair_of_tiny_data_sets(self, monkeypatch):
        """All multisets of up to three of six records, and all pairs that differ in one."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 6)
        omega, max_shape = 6.0, 10.0
        kinds = list(itertools.product([0, N_BINS - 171, N_BINS], [False, True]))
        nodes = [1, 60_000, 90_000, 105_000, 120_000, N_CELLS - 1]

        def found(records):
            table = make_table(records, omega)
            ours = (
                one
                for before in (True, False)
                for one in (
                    ReleasedMeanLevels(table, -0.5, max_shape, before),
                    ReleasedMeanLevels(table, -5.9, max_shape, before),
                    ExactLevels(table, max_shape, 100, before),
                )
            )
            theirs = levels_at(PublishedLevels(table, max_shape, 100), range(7))
            return np.vstack([*(levels_at(one, nodes) for one in ours), theirs])

        for size in (1, 2, 3):
            data_sets = list(itertools.combinations_with_replacement(kinds, size))
            each = np.array([found(records) for records in data_sets])
            distance = distances(data_sets, kinds)
            moves = np.abs(each[:, None] - each[None, :]).max(axis=(2, 3))
            assert np.all(moves <= UNIT * distance)
            assert moves[distance == 1].max() == UNIT


@pytest.mark.parametrize("make", [ExactLevels, PublishedLevels])
def test_top_cuts_levels_off(monkeypatch, make):
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 60)
    rng = np.random.default_rng(8)
    for size in (1, 5, 30):
        table = make_table(random_records(size, rng), 6.0)
        nodes = grid_nodes(rng) if make is ExactLevels else range(61)
        free = levels_at(make(table, 10.0, 10**6), nodes)
        for top in (1, 2, 4):
            cut = levels_at(make(table, 10.0, top), nodes)
            np.testing.assert_array_equal(cut, np.minimum(free, top * UNIT))


def test_ends_of_the_grid_are_free():
    shapes = [weibull_counts.shape_at(node, 10.0) for node in (0, N_CELLS)]
    assert shapes == [10.0 * SHAPE_RANGE, 10.0]
    for records in ([(0, True)], [(N_BINS, True)] * 3, [(5, False)]):
        table = make_table(records, 6.0)
        for one in (ReleasedMeanLevels(table, -1.0, 10.0), ExactLevels(table, 10.0, 100)):
            assert one.n_cells == N_CELLS
            assert one.down_to(N_CELLS) == one.up_to(0) == 0


class TestExtremesOfTheMean:
    @pytest.mark.parametrize(("size", "left_censored"), thinned([1, 2, 3, 4], [True, False]))
    def test_against_all_data_sets(self, size, left_censored):
        omega = 6.0
        kinds = list(itertools.product([0, 300, 1700, N_BINS], [False, True]))
        data_sets = list(itertools.combinations_with_replacement(kinds, size))
        distance = distances(data_sets, kinds)
        means = []
        for records in data_sets:
            raised = weibull_counts.BEFORE_BINS * left_censored
            bins = [place - (place == 0) * raised for place, event in records if event]
            x = [omega * (place / N_BINS - 1.0) for place in bins]
            means.append(math.fsum(x) / len(x) if x else 0.0)
        means = np.array(means)
        for i, records in enumerate(data_sets):
            ladder = ExactLevels(make_table(records, omega), 10.0, 100, left_censored)
            for k in range(size + 1):
                within = means[distance[i] <= k]
                assert ladder.largest_mean(k) == pytest.approx(within.max(), abs=1e-12)
                assert ladder.least_mean(k) == pytest.approx(within.min(), abs=1e-12)

    def test_order_between_neighbours_to_the_last_bit(self):
        """What the proof needs of the floats: the ball grows and its extremes do not shrink."""
        rng = np.random.default_rng(6)
        for size, left_censored in itertools.product([*range(1, 13), 200], [True, False]):
            each = [
                ExactLevels(make_table(d, 6.0), 10.0, 100, left_censored) for d in star(size, rng)
            ]
            for k in {*range(min(size, 12) + 1), size - 1, size}:
                largest = [[one.largest_mean(at) for one in each] for at in (k, k + 1)]
                assert min(largest[1]) >= max(largest[0])
                least = [[one.least_mean(at) for one in each] for at in (k, k + 1)]
                assert max(least[1]) <= min(least[0])


def test_published_bounds_are_ordered_where_all_powers_round_to_zero(monkeypatch):
    """Many records at the least time: no power is left on the lattice, but f is not 0."""
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 2000)
    records = np.zeros(N_BINS + 1, dtype=np.int64)
    records[0] = 2**30
    other = records.copy()
    other[0] -= 1
    other[-1] += 1
    events = records // 2
    one, two = (
        PublishedLevels(weibull_counts.CountTable(100.0, counts, events), 400.0, 2)
        for counts in (records, other)
    )
    for cell in range(6):
        levels = [max(ladder.down_to(cell + 1), ladder.up_to(cell)) for ladder in (one, two)]
        assert abs(levels[0] - levels[1]) <= UNIT
