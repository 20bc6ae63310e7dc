"""The ladder mechanism: its levels, its law, its weights and the ratio of two laws.

Statistical tests have fixed seeds; they reject below a p-value of 1e-9 with every expected count at
least 20, so that a correct draw would fail with probability below 1e-6.
"""

import itertools
import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source
from skdpsurv.mechanisms import ladder as mechanism
from skdpsurv.mechanisms.ladder import UNIT, draw_cell, highest_level
from tests.support.combinations import thinned

REJECT = 1e-9


@dataclass(frozen=True)
class Listed:
    down: list[int]
    up: list[int]

    @property
    def n_cells(self) -> int:
        return len(self.down) - 1

    def down_to(self, node: int) -> int:
        return self.down[node]

    def up_to(self, node: int) -> int:
        return self.up[node]


def monotone_ladder(n_cells, rng, reach=6.0):
    """LadderLevels as data have them: down falls, up rises, and both are 0 around the answer."""
    answer = rng.integers(0, n_cells + 1)
    steps = rng.integers(0, int(reach * UNIT / n_cells) + 2, size=(2, n_cells + 1))
    down = np.where(np.arange(n_cells + 1) >= answer, 0, steps[0])[::-1].cumsum()[::-1]
    up = np.where(np.arange(n_cells + 1) <= answer, 0, steps[1]).cumsum()
    return Listed(down.tolist(), up.tolist())


def any_ladder(n_cells, rng, reach=6.0):
    return Listed(*rng.integers(0, int(reach * UNIT), size=(2, n_cells + 1)).tolist())


def neighbour(ladder, rng):
    """Move every number by at most one unit: at random, or all that matters one way."""
    n = ladder.n_cells + 1
    moves = [
        rng.integers(-UNIT, UNIT + 1, size=(2, n)),
        rng.choice([-UNIT, 0, UNIT], size=(2, n)),
        np.broadcast_to(np.where(np.arange(n) < rng.integers(n), UNIT, -UNIT), (2, n)),
    ][rng.integers(3)]
    moved = np.maximum(np.array([ladder.down, ladder.up]) + moves, 0)
    return Listed(*moved.tolist())


def levels_by_definition(ladder, top):
    """For each cell, the maximum over the blocks of repeated halving that hold it."""
    levels = np.zeros(ladder.n_cells, dtype=np.int64)

    def visit(start, end):
        if end - start == 1:
            return
        middle = (start + end) // 2
        levels[start:middle] = np.maximum(levels[start:middle], min(ladder.down[middle], top))
        levels[middle:end] = np.maximum(levels[middle:end], min(ladder.up[middle], top))
        visit(start, middle)
        visit(middle, end)

    visit(0, ladder.n_cells)
    return levels.tolist()


def law(levels, epsilon):
    levels = np.array(levels, dtype=float)
    weights = np.exp(-0.5 * epsilon * (levels - levels.min()) / UNIT)
    return weights / weights.sum()


def frequencies(ladder, epsilon, n_levels=None, draws=900, seed=11):
    source = random_source(seed)
    cells = [draw_cell(ladder, epsilon, source, n_levels) for _ in range(draws)]
    return np.bincount(cells, minlength=ladder.n_cells)


def p_value(observed, probabilities):
    expected = observed.sum() * np.asarray(probabilities)
    # Rare cells are pooled, the rarest first, until each pool is large enough.
    pools = [[0.0, 0.0]]
    for cell in np.argsort(expected):
        if pools[-1][1] >= 20.0:
            pools.append([0.0, 0.0])
        pools[-1][0] += observed[cell]
        pools[-1][1] += expected[cell]
    if pools[-1][1] < 20.0:
        last = pools.pop()
        pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    assert len(pools) > 1
    return stats.chisquare(*zip(*pools, strict=True)).pvalue


def test_levels_end_where_weights_do_not_matter():
    for epsilon in (1e-9, 0.013, 1.0, 3.7, 99.0, 1e4):
        top = highest_level(epsilon)
        assert Fraction(epsilon) * top / (2 * UNIT) >= mechanism.NEGLIGIBLE
        assert Fraction(epsilon) * (top - 1) / (2 * UNIT) < mechanism.NEGLIGIBLE
    for n_levels in (1, 7, 500):
        assert highest_level(0.1, n_levels) == (n_levels + 1) * UNIT
    assert highest_level(1.0, 10**9) == 2 * mechanism.SMALLEST * UNIT
    assert highest_level(1e6, 500) == math.ceil(2 * mechanism.SMALLEST * UNIT / 1e6)
    assert highest_level(1e300) == highest_level(1e300, 3) == 1
    assert (mechanism.NEGLIGIBLE, mechanism.SMALLEST) == (50, 150)


def test_first_level_is_the_least_that_is_reached():
    for least in range(6):
        assert mechanism.first_level(lambda level, least=least: level >= least, 4) == min(least, 4)


class TestLevels:
    """The acceptance step, in which the level of a cell shows to the last unit."""

    @staticmethod
    def accepts(monkeypatch, ladder, epsilon, cell, threshold, n_levels=None):
        """Offer a cell from one block of all cells with a given threshold."""
        script = [0, cell, threshold]

        class RejectedError(Exception):
            pass

        def scripted(bound, source):
            if not script:
                raise RejectedError
            value = script.pop(0)
            assert 0 <= value < bound
            return value

        monkeypatch.setattr(mechanism, "_FINE_ENOUGH", 1)
        monkeypatch.setattr(mechanism, "uniform_below", scripted)
        try:
            assert draw_cell(ladder, epsilon, random_source(0), n_levels) == cell
        except RejectedError:
            return False
        return True

    def test_a_cell_is_accepted_exactly_below_its_weight(self, monkeypatch):
        epsilon = 1.3
        for make, (n_cells, n_levels) in itertools.product(
            (monotone_ladder, any_ladder), ((2, None), (7, None), (13, 3))
        ):
            ladder = make(n_cells, np.random.default_rng(n_cells))
            levels = levels_by_definition(ladder, highest_level(epsilon, n_levels))
            for cell, level in enumerate(levels):
                weight = integer_weight(level, epsilon)
                assert self.accepts(monkeypatch, ladder, epsilon, cell, weight - 1, n_levels)
                if level > 0:
                    assert not self.accepts(monkeypatch, ladder, epsilon, cell, weight, n_levels)


def integer_weight(level, epsilon):
    """Return the weight as documented: e^(-epsilon level / 2) in units of 2^-384, rounded down."""
    rate = Fraction(epsilon) * (1 - Fraction(1, 2**64)) / (2 * UNIT)
    context = Context(prec=200)
    power = context.divide(Decimal(-level * rate.numerator), Decimal(rate.denominator))
    return max(1, int(context.multiply(context.exp(power), Decimal(2) ** 384)))


def weight_of(level, epsilon, n_levels=None):
    """Return the weight that the draw itself uses, read off the total over two cells."""
    totals = []

    def first_bound(bound, source):
        totals.append(bound)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "uniform_below", first_bound)
        for down in (0, level):
            draw_cell(Listed([0, down, 0], [0, 0, 0]), epsilon, random_source(0), n_levels)
    # Two cells draw three numbers each: which block, which cell, the threshold.
    zero = totals[0] // 2
    return totals[3] - zero


EPSILONS = [1e-9, 1e-3, 0.5, 1.0, 17.0, 99.9, 100.1, 250.0, 600.0, 1e4, 1e9]


class TestWeights:
    def test_one_record_changes_them_by_half_of_epsilon_at_most(self):
        """In exact arithmetic, for the integers that the draw compares; and by no less."""
        context, rng = Context(prec=80), np.random.default_rng(1)
        for epsilon, n_levels in itertools.product(EPSILONS, (None, 500)):
            bound = context.exp(min(Decimal(epsilon), Decimal(2000)) / 2)
            top = highest_level(epsilon, n_levels)
            for level in (0, top, top // 2, *rng.integers(0, top + 1, size=12).tolist()):
                weights = [weight_of(at, epsilon, n_levels) for at in (max(level - UNIT, 0), level)]
                ratio = Fraction(*weights)
                assert ratio >= 1
                assert context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)) <= bound
        for epsilon in (1e-3, 1.0, 17.0):
            ratio = Fraction(weight_of(0, epsilon), weight_of(UNIT, epsilon))
            assert math.log(ratio) == pytest.approx(epsilon / 2, rel=1e-12)
        assert weight_of(highest_level(1.0, 10**6), 1.0, 10**6) > 2**150


class TestLaw:
    """Chi-square against exact probabilities; false alarms below 1e-6 (module docstring)."""

    @pytest.mark.parametrize(
        ("case", "make"),
        thinned([(2, 0.5), (3, 0.1), (10, 1.0), (33, 6.0)], [monotone_ladder, any_ladder]),
    )
    def test_exponential_mechanism(self, case, make):
        n_cells, epsilon = case
        ladder = make(n_cells, np.random.default_rng(n_cells))
        levels = levels_by_definition(ladder, highest_level(epsilon))
        assert p_value(frequencies(ladder, epsilon), law(levels, epsilon)) > REJECT

    def test_another_epsilon_is_told_apart(self):
        ladder = monotone_ladder(16, np.random.default_rng(33), reach=20.0)
        levels = levels_by_definition(ladder, highest_level(1.0))
        observed = frequencies(ladder, 1.0)
        assert p_value(observed, law(levels, 1.0)) > REJECT
        assert p_value(observed, law(levels, 0.5)) < REJECT
        assert p_value(observed, law(levels, 2.0)) < REJECT

    @pytest.mark.parametrize(
        ("fine_enough", "make"), thinned([1, 10**30], [any_ladder, monotone_ladder])
    )
    def test_how_blocks_are_split_does_not_matter(self, monkeypatch, make, fine_enough):
        monkeypatch.setattr(mechanism, "_FINE_ENOUGH", fine_enough)
        ladder = make(20, np.random.default_rng(5))
        levels = levels_by_definition(ladder, highest_level(0.8))
        assert p_value(frequencies(ladder, 0.8, draws=500), law(levels, 0.8)) > REJECT

    def test_beyond_the_last_level_all_is_equally_likely(self):
        n_levels = 2
        ladder = monotone_ladder(20, np.random.default_rng(8), reach=20.0)
        uncut = levels_by_definition(ladder, 10**12)
        levels = np.minimum(uncut, (n_levels + 1) * UNIT)
        observed = frequencies(ladder, 1.5, n_levels)
        assert p_value(observed, law(levels, 1.5)) > REJECT
        assert p_value(observed, law(uncut, 1.5)) < REJECT

    def test_one_cell(self):
        for epsilon in EPSILONS:
            assert draw_cell(Listed([5, 0], [0, 5]), epsilon, random_source(0)) == 0

    def test_tiny_epsilon_is_uniform(self):
        ladder = monotone_ladder(20, np.random.default_rng(9), reach=1e6)
        assert p_value(frequencies(ladder, 1e-9), np.full(20, 1 / 20)) > REJECT

    def test_huge_epsilon_finds_the_answer(self):
        """Cells on the answer's own level, uniformly; any other has probability below 1e-40."""
        ladder = Listed([9, 8, 3, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 4])
        ladder = Listed([UNIT * v for v in ladder.down], [UNIT * v for v in ladder.up])
        for epsilon in (1e6, 1e300):
            counts = frequencies(ladder, epsilon, seed=2)
            assert counts[[0, 1, 5]].sum() == 0
            assert stats.chisquare(counts[2:5]).pvalue > REJECT

    def test_large_grid_looks_at_few_nodes(self):
        """A million cells; the answer's neighbourhood is found by halving."""
        asked = []

        class Steep:
            n_cells = 2**20

            def down_to(self, node):
                asked.append(node)
                return UNIT * max(0, 700_000 - node)

            def up_to(self, node):
                return self.down_to(1_400_001 - node)

        cells = [draw_cell(Steep(), 0.5, random_source(seed)) for seed in range(200)]
        assert len(asked) < 200 * 400
        # Levels grow by 1 a cell: a distance above 150 has probability e^-37.
        assert np.abs(np.array(cells) - 700_000).max() < 150
        assert len(set(cells)) > 10

    @pytest.mark.parametrize("epsilon", [0.0, math.inf, math.nan])
    def test_epsilon_out_of_range(self, epsilon):
        with pytest.raises(ValueError, match="epsilon"):
            draw_cell(Listed([0, 0], [0, 0]), epsilon, random_source(0))


def exact_law(ladder, epsilon, n_levels=None):
    """Probabilities as fractions, from the integer weights of the draw itself."""
    levels = levels_by_definition(ladder, highest_level(epsilon, n_levels))
    weights = {level: weight_of(level, epsilon, n_levels) for level in set(levels)}
    total = sum(weights[level] for level in levels)
    return [Fraction(weights[level], total) for level in levels]


def largest_log_ratio(one, other):
    context = Context(prec=60)
    ratio = max(max(a / b, b / a) for a, b in zip(one, other, strict=True))
    return context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


class TestPrivacy:
    """No sampling: probabilities are exact, and so is the comparison with epsilon."""

    @pytest.mark.parametrize("epsilon", [1e-3, 0.7, 8.0, 150.0])
    @pytest.mark.parametrize(("make", "n_levels"), [(monotone_ladder, None), (any_ladder, 2)])
    def test_neighbouring_ladders(self, make, epsilon, n_levels):
        largest = Decimal(0)
        for seed in range(12):
            rng = np.random.default_rng(seed)
            top = highest_level(epsilon, n_levels) / UNIT
            ladder = make(int(rng.integers(2, 10)), rng, reach=min(6.0, 1.5 * top))
            moved = neighbour(ladder, rng)
            pair = [exact_law(r, epsilon, n_levels) for r in (ladder, moved)]
            largest = max(largest, largest_log_ratio(*pair))
        assert largest <= Decimal(epsilon)
        assert largest > Decimal(epsilon) / 4

    def test_two_records_are_told_apart(self):
        """The bound has no slack to hide a defect in: two records break it."""
        for records, private in ((2, False), (1, True)):
            one = Listed([0] * 41, [0, 0] + [records * UNIT] * 39)
            other = Listed([0, *[records * UNIT] * 39, 0], [0] * 41)
            pair = [exact_law(ladder, 1.0) for ladder in (one, other)]
            assert (largest_log_ratio(*pair) <= 1) == private
