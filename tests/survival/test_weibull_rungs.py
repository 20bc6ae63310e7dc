"""The rungs of the Weibull ladders: one record moves them by one, and they say what they should.

Everything here is exact but for comparisons of real numbers with those rounded to a lattice; where
a sum is within rounding of 0, the comparison is left out, and few are.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.likelihoods.weibull import (
    SHAPE_RANGE,
    maximum_likelihood,
    score_with_before,
    shape_score,
)
from skdpsurv.mechanisms.ladder import UNIT
from skdpsurv.published import weibull as published_plans
from skdpsurv.published.weibull import PublishedLevels
from skdpsurv.survival.weibull.counts import (
    BEFORE_BINS,
    N_BINS,
    N_CELLS,
    CountTable,
    ExactLevels,
    ReleasedMeanLevels,
    ScoreTable,
    before_offset,
    log_time_grid,
    records_to_change,
    shape_at,
)
from tests.support.combinations import thinned

#: (omega, max_shape): the default, small and large shapes, short and long domains.
DOMAINS = [(6.0, 10.0), (0.4, 10.0), (20.0, 300.0), (6.0, 0.2), (2.0, 3.0)]
#: Bins where a neighbour's record may be.
SPOTS = [0, 1, N_BINS // 2, N_BINS - 300, N_BINS]


def make_table(records, omega):
    """Count (bin, event) pairs."""
    counts = np.zeros((2, N_BINS + 1), dtype=np.int64)
    for place, event in records:
        counts[0, place] += 1
        counts[1, place] += event
    return CountTable(omega, *counts)


def random_records(n, rng):
    """Return n records, built to be awkward."""
    kind = rng.integers(9)
    places = rng.integers(0, N_BINS + 1, n)
    events = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
    if kind == 0:
        places[:] = N_BINS
    elif kind == 1:
        places[:] = 0
    elif kind == 2:
        places = rng.choice([0, N_BINS], n)
    elif kind == 3:
        events[:] = False
    elif kind == 4:
        events[:] = np.arange(n) == 0
    elif kind == 5:
        events[:] = True
    elif kind == 6:
        places = rng.choice(rng.integers(0, N_BINS + 1, 2), n)
    elif kind == 7:
        places = np.rint(N_BINS * rng.uniform(0.9, 1.0, n)).astype(int)
    else:
        places = np.clip(N_BINS - rng.geometric(0.004, n), 0, N_BINS)
    return list(zip(places.tolist(), events.tolist(), strict=True))


def star(n, rng):
    """Return data sets that differ in one record, each a neighbour of each."""
    crowd = random_records(n - 1, rng)
    spots = [*SPOTS, int(rng.integers(N_BINS + 1))]
    return [[*crowd, (place, event)] for place in spots for event in (False, True)]


def levels(rungs, nodes):
    return np.array([[rungs.down_to(node), rungs.up_to(node)] for node in nodes])


def grid_nodes(rng):
    """Return nodes over the grid, its ends, and neighbours of those."""
    return [0, 1, N_CELLS - 1, N_CELLS, *rng.integers(0, N_CELLS + 1, 4).tolist()]


def largest_move(data_sets, rungs_of, nodes):
    found = np.array([levels(rungs_of(records), nodes) for records in data_sets])
    assert found.min() >= 0
    assert found.max() <= len(data_sets[0]) * UNIT
    return int(np.max(found.max(axis=0) - found.min(axis=0)))


#: Whether times before the grid are taken for that; if not, as by releases of version 1.
both_ways = pytest.mark.parametrize("left_censored", [True, False])


class TestOneRecordMovesOneRung:
    """66 pairs in each star of 12 data sets, at 8 nodes, on both sides."""

    @pytest.mark.parametrize(("domain", "left_censored"), thinned(DOMAINS, [True, False]), ids=str)
    def test_released_mean(self, domain, left_censored):
        omega, max_shape = domain
        rng = np.random.default_rng(1)
        largest = 0
        for size in [*range(1, 13), *range(1, 13), 200, 200]:
            least = -omega - before_offset(omega) * left_censored
            means = [least, -1e-9, -1.0 / (0.9 * max_shape), -omega * rng.random()]
            mean = float(rng.choice(means))
            nodes = grid_nodes(rng)
            move = largest_move(
                star(size, rng),
                lambda d, m=mean: ReleasedMeanLevels(
                    make_table(d, omega), m, max_shape, left_censored
                ),
                nodes,
            )
            assert move <= UNIT
            largest = max(largest, move)
        assert largest > 0.99 * UNIT

    @pytest.mark.parametrize(
        ("domain", "top", "left_censored"), thinned(DOMAINS, [2, 10**6], [True, False]), ids=str
    )
    def test_exact(self, domain, top, left_censored):
        omega, max_shape = domain
        rng = np.random.default_rng(2)
        largest = 0
        for size in (1, 2, 3, 5, 8, 12, 200):
            move = largest_move(
                star(size, rng),
                lambda d: ExactLevels(make_table(d, omega), max_shape, top, left_censored),
                grid_nodes(rng),
            )
            assert move <= UNIT
            largest = max(largest, move)
        assert largest == UNIT

    @pytest.mark.parametrize(("domain", "top"), thinned(DOMAINS, [2, 10**6]), ids=str)
    def test_published(self, monkeypatch, domain, top):
        """On a grid of 16 cells, all of them."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 16)
        omega, max_shape = domain
        rng = np.random.default_rng(3)
        largest = 0
        for size in [*range(1, 13), 200]:
            move = largest_move(
                star(size, rng),
                lambda d: PublishedLevels(make_table(d, omega), max_shape, top),
                range(17),
            )
            assert move <= UNIT
            largest = max(largest, move)
        assert largest == UNIT

    def test_every_pair_of_tiny_data_sets(self, monkeypatch):
        """All multisets of up to three of six records, and all pairs that differ in one."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 6)
        omega, max_shape = 6.0, 10.0
        kinds = list(itertools.product([0, N_BINS - 171, N_BINS], [False, True]))
        nodes = [1, 60_000, 90_000, 105_000, 120_000, N_CELLS - 1]
        for size in (1, 2, 3):
            data_sets = list(itertools.combinations_with_replacement(kinds, size))
            found = []
            for records in data_sets:
                table = make_table(records, omega)
                found.append(
                    np.vstack(
                        [
                            *(
                                levels(rungs, nodes)
                                for before in (True, False)
                                for rungs in (
                                    ReleasedMeanLevels(table, -0.5, max_shape, before),
                                    ReleasedMeanLevels(table, -5.9, max_shape, before),
                                    ExactLevels(table, max_shape, 100, before),
                                )
                            ),
                            levels(PublishedLevels(table, max_shape, 100), range(7)),
                        ]
                    )
                )
            found = np.array(found)
            distance = distances(data_sets, kinds)
            moves = np.abs(found[:, None] - found[None, :]).max(axis=(2, 3))
            assert np.all(moves <= UNIT * distance)
            assert moves[distance == 1].max() == UNIT


def distances(data_sets, kinds):
    """Return how many records separate each two data sets of one size."""
    counts = np.array([[records.count(kind) for kind in kinds] for records in data_sets])
    common = np.minimum(counts[:, None], counts[None, :]).sum(axis=2)
    return len(data_sets[0]) - common


def least_changes(possible, distance, size):
    """Return the least distance to a possible data set, or the size if there is none."""
    return int(distance[possible].min()) if possible.any() else size


class TestShapes:
    def test_grid_of_shapes(self):
        assert shape_at(0, 10.0) == 10.0 * SHAPE_RANGE
        assert shape_at(N_CELLS, 10.0) == 10.0
        ratio = shape_at(71, 10.0) / shape_at(70, 10.0)
        assert math.log(ratio) == pytest.approx(-math.log(SHAPE_RANGE) / N_CELLS, rel=1e-6)


class TestRecordsToChange:
    def test_counts_and_interpolates(self):
        counts, gains = np.array([2, 5, 3]), np.array([10, 0, 4])
        expected = {1: 0.1, 10: 1.0, 15: 1.5, 20: 2.0, 21: 2.25, 24: 3.0, 32: 5.0}
        for needed, records in expected.items():
            assert records_to_change(counts, gains, needed, 10) == math.floor(records * UNIT)
        assert records_to_change(counts, gains, 33, 10) == 10 * UNIT

    def test_rounds_down(self):
        assert records_to_change(np.array([1]), np.array([3]), 1, 1) == UNIT // 3

    @pytest.mark.parametrize("seed", range(20))
    def test_against_one_record_at_a_time(self, seed):
        rng = np.random.default_rng(seed)
        counts, gains = rng.integers(0, 4, 12), rng.integers(0, 1000, 12)
        n = int(counts.sum())
        steps = sorted(np.repeat(gains, counts).tolist(), reverse=True)
        for needed in rng.integers(1, sum(steps) + 50, 10).tolist():
            left, records = Fraction(needed), Fraction(0)
            for step in steps:
                if left > 0 and step > 0:
                    part = min(Fraction(1), left / step)
                    left, records = left - part * step, records + part
            exact = math.floor(records * UNIT) if left == 0 else n * UNIT
            assert records_to_change(counts, gains, needed, n) == exact

    def test_no_overflow(self):
        """As many records as int64 sums allow for, where each gains little and much is needed."""
        counts, gains = np.array([2**40, 1]), np.array([2**20, 2**21])
        needed = 2**60 + 2**21
        assert records_to_change(counts, gains, needed, 2**40 + 1) == (2**40 + 1) * UNIT
        assert records_to_change(counts, gains, needed - 2**19, 2**40 + 1) == (
            2**40 * UNIT + UNIT // 2
        )


def balance(x, mean, max_shape, omega):
    """Solve for the shape at which the mean log time is as given, clamped to the range of shapes.

    The integral over who is at risk, of what an event counts as: further down before -omega, where
    records of the first bin are at risk for half of what the others are. It is found by quadrature,
    and not by what the code makes of it.
    """
    grid = log_time_grid(omega)
    middle = (grid[1:] + grid[:-1]) / 2
    at_risk = (x[:, None] > middle).sum(axis=0)
    first = 0.5 * np.count_nonzero(x == -omega) + np.count_nonzero(x > -omega)

    def gap(log_shape):
        shape = math.exp(log_shape)
        weight = at_risk * np.diff(np.exp(shape * grid))
        start = first * math.exp(-shape * omega)
        total = start * (-omega - before_offset(omega)) + weight @ middle
        return total / (start + weight.sum()) - mean

    low, high = math.log(SHAPE_RANGE * max_shape), math.log(max_shape)
    if gap(high) <= 0.0:
        return max_shape
    if gap(low) >= 0.0:
        return SHAPE_RANGE * max_shape
    return math.exp(optimize.brentq(gap, low, high, xtol=1e-12))


def solution(x, mean, max_shape):
    """Solve f(p) = 1/p + mean by brentq, clamped to the range of shapes."""

    def gap(log_shape):
        shape = math.exp(log_shape)
        below = x - x.max()
        power = np.exp(shape * below)
        return power @ below / power.sum() + x.max() - 1.0 / shape - mean

    low, high = math.log(SHAPE_RANGE * max_shape), math.log(max_shape)
    if gap(high) <= 0.0:
        return max_shape
    if gap(low) >= 0.0:
        return SHAPE_RANGE * max_shape
    return math.exp(optimize.brentq(gap, low, high, xtol=1e-14))


class TestReleasedMeanAgainstBruteForce:
    """The level is the true number of changes, from a search through all data sets."""

    @both_ways
    @pytest.mark.parametrize("omega", [1.0, 3.0])
    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    def test_least_number_of_changes(self, omega, size, left_censored):
        rng = np.random.default_rng(10 * size + int(omega))
        max_shape, compared = 4.0, 0
        for _ in range(3):
            # Scores are greatest at an end of the domain and least at the mean: with these three
            # among them, a few times are as good as all.
            spots = [0, N_BINS, *rng.integers(1, N_BINS, 3).tolist()]
            mean = float(log_time_grid(omega)[spots[2]])
            kinds = [(spot, False) for spot in spots]
            data_sets = list(itertools.combinations_with_replacement(kinds, size))
            x = log_time_grid(omega)[np.array([[place for place, _ in d] for d in data_sets])]
            roots = np.array(
                [
                    balance(row, mean, max_shape, omega)
                    if left_censored
                    else solution(row, mean, max_shape)
                    for row in x
                ]
            )
            distance = distances(data_sets, kinds)
            # Nodes between two solutions, so that none is at a node.
            inner = np.unique(np.round(roots, 9))
            shapes = np.sqrt(inner[1:] * inner[:-1])
            nodes = np.rint(N_CELLS * (1.0 - np.log(shapes / max_shape) / math.log(SHAPE_RANGE)))
            chosen = rng.choice(nodes.astype(int), size=min(3, nodes.size), replace=False)
            for node in chosen.tolist():
                shape = shape_at(node, max_shape)
                if np.min(np.abs(roots / shape - 1.0)) < (1e-5 if left_censored else 1e-7):
                    continue
                for i, records in enumerate(data_sets):
                    table = make_table(records, omega)
                    rungs = ReleasedMeanLevels(table, mean, max_shape, left_censored)
                    for level, possible in (
                        (rungs.down_to(node), roots <= shape),
                        (rungs.up_to(node), roots >= shape),
                    ):
                        assert -(-level // UNIT) == least_changes(possible, distance[i], size)
                        compared += 1
        assert compared > 10 * size

    def test_ends_of_the_grid_are_free(self):
        for records in ([(0, True)], [(N_BINS, True)] * 3, [(5, False)]):
            rungs = ReleasedMeanLevels(make_table(records, 6.0), -1.0, 10.0)
            assert rungs.down_to(rungs.n_cells) == 0
            assert rungs.up_to(0) == 0

    @both_ways
    def test_ordered_along_the_grid(self, left_censored):
        rng = np.random.default_rng(4)
        for _ in range(10):
            table = make_table(random_records(12, rng), 2.0)
            rungs = ReleasedMeanLevels(table, -2.0 * rng.random(), 3.0, left_censored)
            down, up = levels(rungs, np.linspace(0, N_CELLS, 40).astype(int).tolist()).T
            assert np.all(np.diff(down) <= 0)
            assert np.all(np.diff(up) >= 0)
            assert np.all(np.minimum(down, up) == 0)

    def test_at_the_estimate_nothing_must_change(self):
        rng = np.random.default_rng(5)
        records = [
            (int(place), bool(event))
            for place, event in zip(
                rng.integers(1000, N_BINS, 300), rng.random(300) < 0.5, strict=True
            )
        ]
        table = make_table(records, 6.0)
        x, events = table.log_time, table.events
        shape = maximum_likelihood(x, events, 10.0, weights=table.records)[0][0]
        node = N_CELLS * (1.0 - math.log(shape / 10.0) / math.log(SHAPE_RANGE))
        mean = events @ x / events.sum()
        rungs = ReleasedMeanLevels(table, float(mean), 10.0)
        assert rungs.down_to(math.ceil(node)) == rungs.up_to(math.floor(node)) == 0
        assert rungs.down_to(math.floor(node) - 1) > 0
        assert rungs.up_to(math.ceil(node) + 1) > 0


def mean_bounds(records, k, omega):
    """Return the least and largest mean of log event times, by the formulas, in fractions."""
    n = len(records)
    x = sorted(Fraction(place, N_BINS) - 1 for place, event in records if event)
    total, number = sum(x), len(x)
    if number == 0:
        return (0.0 if k == 0 else -omega), 0.0
    j = min(k, number)
    least = (total - j - sum(x[number - j :])) / number
    largest = Fraction(0)
    if k < number:
        largest = max(
            (total - sum(x[:j])) / (number + min(k - j, n - number))
            for j in range(min(k, number) + 1)
        )
    return float(least) * omega, float(largest) * omega


class TestExtremesOfTheMean:
    @both_ways
    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    def test_against_all_data_sets(self, size, left_censored):
        omega = 6.0
        kinds = list(itertools.product([0, 300, 1700, N_BINS], [False, True]))
        data_sets = list(itertools.combinations_with_replacement(kinds, size))
        distance = distances(data_sets, kinds)
        means = []
        for records in data_sets:
            bins = [place - (place == 0) * left_censored * BEFORE_BINS for place, e in records if e]
            x = [omega * (place / N_BINS - 1.0) for place in bins]
            means.append(math.fsum(x) / len(x) if x else 0.0)
        means = np.array(means)
        for i, records in enumerate(data_sets):
            rungs = ExactLevels(make_table(records, omega), 10.0, 100, left_censored)
            for k in range(size + 1):
                within = means[distance[i] <= k]
                assert rungs.largest_mean(k) == pytest.approx(within.max(), abs=1e-12)
                assert rungs.least_mean(k) == pytest.approx(within.min(), abs=1e-12)

    @pytest.mark.parametrize("seed", range(40))
    def test_against_the_formula(self, seed):
        rng = np.random.default_rng(seed)
        records = random_records(int(rng.integers(1, 60)), rng)
        rungs = ExactLevels(make_table(records, 5.0), 10.0, 100)
        for k in range(len(records) + 3):
            least, largest = mean_bounds(records, k, 5.0)
            assert rungs.least_mean(k) == pytest.approx(least, abs=1e-12)
            assert rungs.largest_mean(k) == pytest.approx(largest, abs=1e-12)

    @both_ways
    def test_order_between_neighbours_to_the_last_bit(self, left_censored):
        """What the proof needs of the floats: the ball grows and its extremes do not shrink."""
        rng = np.random.default_rng(6)
        for size in [*range(1, 13), 200]:
            rungs = [
                ExactLevels(make_table(d, 6.0), 10.0, 100, left_censored) for d in star(size, rng)
            ]
            ks = sorted({*range(min(size, 12) + 1), size - 1, size})
            largest = np.array([[r.largest_mean(k) for k in ks] for r in rungs])
            least = np.array([[r.least_mean(k) for k in ks] for r in rungs])
            further = [[r.largest_mean(k + 1) for k in ks] for r in rungs]
            assert np.all(np.min(further, axis=0) >= largest.max(axis=0))
            further = [[r.least_mean(k + 1) for k in ks] for r in rungs]
            assert np.all(np.max(further, axis=0) <= least.min(axis=0))


def exact_level(records, shape, omega, side):
    """Return the least k for which the formulas allow the sign, and how near to 0 a sum came."""
    n = len(records)
    x = np.array([omega * (place / N_BINS - 1.0) for place, _ in records])
    nearest = math.inf
    for k in range(n + 1):
        least, largest = mean_bounds(records, k, omega)
        mean = least if side == "down" else largest
        score = np.sort(shape_score(x, shape, mean))
        if side == "down":
            ends = shape_score(np.array([-omega, 0.0]), shape, mean)
            extreme = score[k:].sum() + k * ends.max()
        else:
            # The least is at a point of the grid next to the mean.
            extreme = (
                score[: n - k].sum() + k * shape_score(log_time_grid(omega), shape, mean).min()
            )
            extreme = -extreme
        nearest = min(nearest, abs(extreme))
        if extreme >= 0.0:
            return k, nearest
    return n, nearest


class TestExactRungs:
    @pytest.mark.parametrize("side", ["down", "up"])
    @pytest.mark.parametrize("domain", [(6.0, 3.0), (1.0, 10.0), (6.0, 1.0)], ids=str)
    def test_against_the_formula(self, domain, side):
        omega, max_shape = domain
        rng = np.random.default_rng(7)
        compared, seen = 0, set()
        for size in [*range(1, 13), 25, 40]:
            records = random_records(size, rng)
            rungs = ExactLevels(make_table(records, omega), max_shape, 10**6)
            for node in rng.integers(1, N_CELLS, 6).tolist():
                level, nearest = exact_level(records, shape_at(node, max_shape), omega, side)
                if nearest < 1e-7:
                    continue
                found = rungs.down_to(node) if side == "down" else rungs.up_to(node)
                assert found == level * UNIT
                compared += 1
                seen.add(level)
        assert compared > 40
        assert len(seen) > 2

    @both_ways
    def test_no_more_than_the_true_distance(self, left_censored):
        """Each data set has its own mean here: all that can be reached is on the rungs."""
        omega, max_shape, size = 3.0, 4.0, 3
        kinds = list(itertools.product([0, 900, 1800, N_BINS], [False, True]))
        data_sets = list(itertools.combinations_with_replacement(kinds, size))
        tables = [make_table(records, omega) for records in data_sets]
        roots = []
        for table in tables:
            if left_censored and table.events.any():
                offset = before_offset(omega) * table.events[0]
                mean = (table.events @ table.log_time - offset) / table.events.sum()
                roots.append(
                    balance(np.repeat(table.log_time, table.records), mean, max_shape, omega)
                )
                continue
            fit = maximum_likelihood(table.log_time, table.events, max_shape, weights=table.records)
            roots.append(fit[0][0])
        roots = np.array(roots)
        distance = distances(data_sets, kinds)
        attained = 0
        for node in (60_000, 100_000, 120_000):
            shape = shape_at(node, max_shape)
            for i, table in enumerate(tables):
                rungs = ExactLevels(table, max_shape, 100, left_censored)
                for level, possible in (
                    (rungs.down_to(node), roots <= shape),
                    (rungs.up_to(node), roots >= shape),
                ):
                    true = least_changes(possible, distance[i], size)
                    assert level <= true * UNIT
                    attained += level == true * UNIT > 0
        assert attained > 100

    def test_top_cuts_levels_off(self):
        rng = np.random.default_rng(8)
        for size in (1, 5, 30):
            table = make_table(random_records(size, rng), 6.0)
            nodes = grid_nodes(rng)
            free = levels(ExactLevels(table, 10.0, 10**6), nodes)
            for top in (1, 2, 4):
                cut = levels(ExactLevels(table, 10.0, top), nodes)
                np.testing.assert_array_equal(cut, np.minimum(free, top * UNIT))

    def test_ends_of_the_grid_are_free(self):
        for records in ([(0, True)], [(N_BINS, True)] * 3, [(5, False)]):
            rungs = ExactLevels(make_table(records, 6.0), 10.0, 100)
            assert rungs.down_to(rungs.n_cells) == 0
            assert rungs.up_to(0) == 0


class TestTighterRungsAreHigher:
    """A rung that is part of another excludes more, so levels on it are higher.

    Domains on which powers are far above the lattice, for the two ladders round differently.
    """

    DOMAINS: ClassVar = [(0.4, 10.0), (6.0, 1.0), (2.0, 3.0)]

    @pytest.mark.slow
    def test_exact_rungs_are_within_published_ones(self, monkeypatch):
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 16)
        higher = 0
        for omega, max_shape in self.DOMAINS:
            rng = np.random.default_rng(9)
            for size in range(1, 13):
                table = make_table(random_records(size, rng), omega)
                published = PublishedLevels(table, max_shape, 10**6)
                exact = ExactLevels(table, max_shape, 10**6)
                for j in range(1, 16):
                    shape = published_plans.shape_at(j, max_shape) / max_shape
                    node = N_CELLS * (1.0 - math.log(shape) / math.log(SHAPE_RANGE))
                    below, above = math.floor(node), min(math.ceil(node), N_CELLS - 1)
                    assert exact.down_to(below) >= published.down_to(j)
                    assert exact.up_to(above) >= published.up_to(j)
                    higher += exact.down_to(below) > published.down_to(j)
                    higher += exact.up_to(above) > published.up_to(j)
        assert higher > 100

    def test_a_known_mean_makes_rungs_narrower_than_exact_ones(self):
        higher = 0
        for omega, max_shape in self.DOMAINS:
            rng = np.random.default_rng(10)
            for size in [*range(1, 13), 100]:
                table = make_table(random_records(size, rng), omega)
                exact = ExactLevels(table, max_shape, 10**6)
                assert exact.least_mean(0) == exact.largest_mean(0)
                known = ReleasedMeanLevels(table, exact.least_mean(0), max_shape)
                nodes = grid_nodes(rng)
                whole = -(-levels(known, nodes) // UNIT) * UNIT
                assert np.all(whole >= levels(exact, nodes))
                higher += np.any(whole > levels(exact, nodes))
        assert higher > 20


def published_levels(records, omega, max_shape, n_cells, slack):
    """Return levels from the definition: every rung's first crossings, in floats.

    With a slack below or above 0 rungs begin late and end early, or the other way.
    """
    n = len(records)
    x = np.array([omega * (place / N_BINS - 1.0) for place, _ in records])
    log_events = np.array([value for value, (_, event) in zip(x, records, strict=True) if event])
    number, total = log_events.size, log_events.sum()
    shapes = max_shape * np.arange(1, n_cells + 1) / n_cells
    bound = 1.0 / (math.e * shapes)
    power = np.exp(np.outer(shapes, x))
    s0, s1 = power.sum(axis=1), power @ x
    largest_first = -np.sort(-power, axis=1)
    rungs = []
    for k in range(n + 1):
        top = largest_first[:, :k].sum(axis=1)
        lower_f = (s1 - k * bound) / (s0 - top) if k < n else np.full(n_cells, -np.inf)
        upper_f = np.minimum(0.0, (s1 + k * bound) / (s0 + k))
        mean = (total - k * omega) / (number - k) if k < number else -np.inf
        lower_g = 1.0 / shapes + mean
        mean = min(0.0, (total + k * omega) / (number + k)) if number + k else 0.0
        upper_g = 1.0 / shapes + mean
        begun = np.flatnonzero(upper_f >= lower_g - slack)
        ended = np.flatnonzero(lower_f >= upper_g + slack)
        first = begun[0] if begun.size else n_cells
        last = ended[0] if ended.size else n_cells - 1
        rungs.append((first, last))
    return np.array(
        [
            next((k for k, (first, last) in enumerate(rungs) if first <= q <= last), n + 1)
            for q in range(n_cells)
        ]
    )


class TestPublishedRungs:
    N_CELLS = 60

    @pytest.fixture(autouse=True)
    def fewer_cells(self, monkeypatch):
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", self.N_CELLS)

    @pytest.mark.parametrize("domain", [(6.0, 1.0), (1.0, 6.0), (2.0, 3.0)], ids=str)
    def test_against_the_definition(self, domain):
        omega, max_shape = domain
        rng = np.random.default_rng(11)
        compared, seen = 0, set()
        for size in [*range(1, 13), *range(1, 13), 30]:
            records = random_records(size, rng)
            rungs = PublishedLevels(make_table(records, omega), max_shape, 10**6)
            found = [max(rungs.down_to(j + 1), rungs.up_to(j)) // UNIT for j in range(self.N_CELLS)]
            narrow, wide = (
                published_levels(records, omega, max_shape, self.N_CELLS, slack)
                for slack in (-1e-5, 1e-5)
            )
            # The last node ends the grid and the last rung: it needs no crossing to begin there.
            narrow[-1], wide[-1] = 10**6, 0
            assert np.all((wide <= found) & (found <= narrow))
            compared += np.count_nonzero(wide == narrow)
            seen.update(found)
        assert compared > 0.9 * 25 * (self.N_CELLS - 1)
        assert len(seen) > 4

    def test_two_roots(self):
        """Four records of the proof's page: the second difference crosses twice, and then back."""
        omega, max_shape = 6.0, 10.0
        x = [0.0, -0.5, -6.0, -6.0]
        records = [(round((v / omega + 1.0) * N_BINS), i > 0) for i, v in enumerate(x)]
        rungs = PublishedLevels(make_table(records, omega), max_shape, 100)
        # Rung 1 ends at the first root, 1.6, and what is beyond the second, 5.1, is not on it.
        ended = [rungs.up_to(node) > UNIT for node in range(self.N_CELLS + 1)]
        first = ended.index(True)
        assert published_plans.shape_at(first, max_shape) == pytest.approx(
            1.6, abs=2 * max_shape / self.N_CELLS
        )
        assert all(ended[first:])

    def test_top_cuts_levels_off(self):
        rng = np.random.default_rng(12)
        for size in (1, 5, 30):
            table = make_table(random_records(size, rng), 6.0)
            free = levels(PublishedLevels(table, 10.0, 10**6), range(self.N_CELLS + 1))
            for top in (1, 2, 4):
                cut = levels(PublishedLevels(table, 10.0, top), range(self.N_CELLS + 1))
                np.testing.assert_array_equal(cut, np.minimum(free, top * UNIT))

    def test_estimate_is_on_the_first_rung(self):
        rng = np.random.default_rng(13)
        table = make_table([(int(p), True) for p in rng.integers(1200, N_BINS, 100)], 6.0)
        fit = maximum_likelihood(table.log_time, table.events, 10.0, weights=table.records)
        rungs = PublishedLevels(table, 10.0, 100)
        found = [max(rungs.down_to(j + 1), rungs.up_to(j)) for j in range(self.N_CELLS)]
        cell = int(fit[0][0] * self.N_CELLS / 10.0)
        assert found[cell] == 0
        assert found[cell - 2] > 0
        assert found[cell + 2] > 0


class TestScoreTable:
    @both_ways
    @pytest.mark.parametrize("n", [1, 1000, 10**9])
    @pytest.mark.parametrize("domain", [*DOMAINS, (100.0, 1e3), (1e-3, 1e-3)], ids=str)
    def test_sums_do_not_overflow(self, domain, n, left_censored):
        """All records where the score is greatest, or least, against sums of Python's integers."""
        omega, max_shape = domain
        for node, mean in itertools.product(
            (0, N_CELLS // 2, N_CELLS), (-omega, -0.5 * omega, 0.0)
        ):
            shape = shape_at(node, max_shape)
            score = shape_score(log_time_grid(omega), shape, mean)
            if left_censored:
                args = log_time_grid(omega), shape, mean * 7 / 6, before_offset(omega)
                score = score_with_before(*args)
            for place in (int(np.argmax(score)), int(np.argmin(score)), 0, N_BINS):
                counts = np.zeros(N_BINS + 1, dtype=np.int64)
                counts[place] = n
                table = ScoreTable.at(
                    CountTable(omega, counts, counts),
                    shape,
                    mean * 7 / 6 if left_censored else mean,
                    left_censored,
                )
                assert table.total == n * int(table.score[place])
                for level, sign in ((table.to_raise(), -1), (table.to_lower(), 1)):
                    worst = table.score.max() if sign < 0 else table.score.min()
                    gap = int(worst) - int(table.score[place])
                    needed = -table.total
                    if sign * table.total <= 0:
                        exact = 0
                    elif abs(gap) * n < abs(needed):
                        exact = n * UNIT
                    else:
                        exact = math.floor(Fraction(needed, gap) * UNIT)
                    assert level == exact


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
        published_plans.PublishedLevels(CountTable(100.0, counts, events), 400.0, 2)
        for counts in (records, other)
    )
    for cell in range(6):
        levels = [max(rungs.down_to(cell + 1), rungs.up_to(cell)) for rungs in (one, two)]
        assert abs(levels[0] - levels[1]) <= UNIT
