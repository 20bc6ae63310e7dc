"""Levels of the Weibull ladders against brute force, but where a sum is within rounding of 0."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.likelihoods import weibull as likelihood
from skdpsurv.likelihoods.weibull import SHAPE_RANGE, shape_score
from skdpsurv.mechanisms.ladder import UNIT
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.published.weibull_fitters import PublishedLevels
from skdpsurv.survival.weibull import log_time_counts as weibull_counts
from skdpsurv.survival.weibull.log_time_counts import (
    N_BINS,
    N_CELLS,
    ExactLevels,
    ReleasedMeanLevels,
    before_offset,
    log_time_grid,
    records_to_change,
    shape_at,
)
from tests.support.combinations import thinned
from tests.support.weibull_tables import DOMAINS, distances, levels_at, make_table, random_records


def least_changes(possible, distance, size):
    """Return the least distance to a possible data set, or the size if there is none."""
    return int(distance[possible].min()) if possible.any() else size


class TestRecordsToChange:
    def test_against_one_record_at_a_time(self):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            counts, gains = rng.integers(0, 4, 12), rng.integers(0, 1000 if seed % 2 else 3, 12)
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


class TestReleasedMeanAgainstBruteForce:
    """The level is the true number of changes, from a search through all data sets."""

    @pytest.mark.parametrize(("size", "omega"), thinned([1, 2, 3, 4], [1.0, 3.0]))
    def test_least_number_of_changes(self, size, omega):
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
            roots = np.array([balance(row, mean, max_shape, omega) for row in x])
            distance = distances(data_sets, kinds)
            # Nodes between two solutions, so that none is at a node.
            inner = np.unique(np.round(roots, 9))
            shapes = np.sqrt(inner[1:] * inner[:-1])
            nodes = np.rint(N_CELLS * (1.0 - np.log(shapes / max_shape) / math.log(SHAPE_RANGE)))
            chosen = rng.choice(nodes.astype(int), size=min(3, nodes.size), replace=False)
            for node in chosen.tolist():
                shape = shape_at(node, max_shape)
                if np.min(np.abs(roots / shape - 1.0)) < 1e-5:
                    continue
                for i, records in enumerate(data_sets):
                    table = make_table(records, omega)
                    ladder = ReleasedMeanLevels(table, mean, max_shape, left_censored=True)
                    for level, possible in (
                        (ladder.down_to(node), roots <= shape),
                        (ladder.up_to(node), roots >= shape),
                    ):
                        assert -(-level // UNIT) == least_changes(possible, distance[i], size)
                        compared += 1
        assert compared > 10 * size

    def test_ordered_along_the_grid(self):
        rng = np.random.default_rng(4)
        for _ in range(10):
            table = make_table(random_records(12, rng), 2.0)
            ladder = ReleasedMeanLevels(table, -2.0 * rng.random(), 3.0, left_censored=True)
            down, up = levels_at(ladder, np.linspace(0, N_CELLS, 40).astype(int).tolist()).T
            assert np.all(np.diff(down) <= 0)
            assert np.all(np.diff(up) >= 0)
            assert np.all(np.minimum(down, up) == 0)


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


class TestExactLevels:
    @pytest.mark.parametrize(
        ("domain", "side"), thinned([(6.0, 3.0), (1.0, 10.0), (6.0, 1.0)], ["down", "up"]), ids=str
    )
    def test_against_the_formula(self, domain, side):
        omega, max_shape = domain
        rng = np.random.default_rng(7)
        compared, seen = 0, set()
        for size in [*range(1, 13), 25, 40]:
            records = random_records(size, rng)
            ladder = ExactLevels(make_table(records, omega), max_shape, 10**6)
            for node in rng.integers(1, N_CELLS, 6).tolist():
                level, nearest = exact_level(records, shape_at(node, max_shape), omega, side)
                if nearest < 1e-7:
                    continue
                found = ladder.down_to(node) if side == "down" else ladder.up_to(node)
                assert found == level * UNIT
                compared += 1
                seen.add(level)
        assert compared > 40
        assert len(seen) > 2

    def test_no_more_than_the_true_distance(self):
        """Each data set has its own mean here: all that can be reached is within the level."""
        omega, max_shape, size = 3.0, 4.0, 3
        kinds = list(itertools.product([0, 900, 1800, N_BINS], [False, True]))
        data_sets = list(itertools.combinations_with_replacement(kinds, size))
        tables = [make_table(records, omega) for records in data_sets]

        def root(table):
            if not table.events.any():
                given = table.log_time, table.events, max_shape
                return likelihood.maximum_likelihood(*given, weights=table.records)[0][0]
            offset = before_offset(omega) * table.events[0]
            mean = (table.events @ table.log_time - offset) / table.events.sum()
            return balance(np.repeat(table.log_time, table.records), mean, max_shape, omega)

        roots, distance = np.array([root(table) for table in tables]), distances(data_sets, kinds)
        attained = 0
        for node in (60_000, 100_000, 120_000):
            shape = shape_at(node, max_shape)
            for i, table in enumerate(tables):
                ladder = ExactLevels(table, max_shape, 100, left_censored=True)
                for level, possible in (
                    (ladder.down_to(node), roots <= shape),
                    (ladder.up_to(node), roots >= shape),
                ):
                    true = least_changes(possible, distance[i], size)
                    assert level <= true * UNIT
                    attained += level == true * UNIT > 0
        assert attained > 100


def published_levels(records, omega, max_shape, n_cells, slack):
    """Return levels from the definition: every level's first crossings, in floats.

    With a slack below or above 0 levels begin late and end early, or the other way.
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
    levels = []
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
        levels.append((first, last))
    return np.array(
        [
            next((k for k, (first, last) in enumerate(levels) if first <= q <= last), n + 1)
            for q in range(n_cells)
        ]
    )


class TestPublishedLevels:
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
            ladder = PublishedLevels(make_table(records, omega), max_shape, 10**6)
            found = [
                max(ladder.down_to(j + 1), ladder.up_to(j)) // UNIT for j in range(self.N_CELLS)
            ]
            narrow, wide = (
                published_levels(records, omega, max_shape, self.N_CELLS, slack)
                for slack in (-1e-5, 1e-5)
            )
            # The last node ends the grid and the last level: it needs no crossing to begin there.
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
        ladder = PublishedLevels(make_table(records, omega), max_shape, 100)
        # Level 1 ends at the first root, 1.6, and what is beyond the second, 5.1, is not on it.
        ended = [ladder.up_to(node) > UNIT for node in range(self.N_CELLS + 1)]
        first = ended.index(True)
        assert published_plans.shape_at(first, max_shape) == pytest.approx(
            1.6, abs=2 * max_shape / self.N_CELLS
        )
        assert all(ended[first:])


@pytest.mark.parametrize(
    ("domain", "n", "left_censored"),
    thinned([*DOMAINS, (100.0, 1e3), (1e-3, 1e-3)], [1, 1000, 10**9], [True, False]),
    ids=str,
)
def test_sums_of_scores_do_not_overflow(domain, n, left_censored):
    """All records where the score is greatest, or least, against sums of Python's integers."""
    omega, max_shape = domain
    for node, mean in itertools.product((0, N_CELLS // 2, N_CELLS), (-omega, -0.5 * omega, 0.0)):
        given = log_time_grid(omega), shape_at(node, max_shape), mean
        score = shape_score(*given)
        if left_censored:
            mean *= 7 / 6
            score = likelihood.score_with_before(*given[:2], mean, before_offset(omega))
        for place in (int(np.argmax(score)), int(np.argmin(score)), 0, N_BINS):
            counts = np.zeros(N_BINS + 1, dtype=np.int64)
            counts[place] = n
            records = weibull_counts.CountTable(omega, counts, counts)
            table = weibull_counts.ScoreTable.at(records, given[1], mean, left_censored)
            assert table.total == n * int(table.score[place])
            for level, sign in ((table.to_raise(), -1), (table.to_lower(), 1)):
                worst = table.score.max() if sign < 0 else table.score.min()
                gap = int(worst) - int(table.score[place])
                exact = n * UNIT
                if sign * table.total <= 0:
                    exact = 0
                elif abs(gap) * n >= abs(table.total):
                    exact = math.floor(Fraction(-table.total, gap) * UNIT)
                assert level == exact
