"""What the plans of a Weibull fit spend."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.survival.weibull import weibull_plan as weibull_plan
from skdpsurv.survival.weibull.log_time_counts import BEFORE_BINS, N_BINS, CountTable, ExactLevels
from skdpsurv.survival.weibull.tuning import Tuning
from tests.support import weibull_plans
from tests.support.combinations import thinned
from tests.support.weibull_plans import MAX_SHAPE, MAX_TIME, OMEGA, Ledger, make_fit, simulate

LADDERS = ["tight", "exact", "published"]
PRIVATE = [*LADDERS, "Laplace", "blocks"]
#: Shares of epsilon for the shape.
FRACTIONS = [None, 0.001, 0.3, 0.5, 0.9, 0.999]


def estimate(fit, time, event, seed=0):
    return weibull_plans.estimate(fit, time, event, random_source(seed))


def estimate_of(fit, table):
    return weibull_plans.estimate_of(fit, table, random_source(0))


def table_of(time, event):
    return weibull_plans.table_of(time, event, MAX_TIME, OMEGA)


@pytest.fixture
def few_cells(monkeypatch):
    """Make the published ladder quick."""
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 100)


def neighbours(n, rng):
    """Return tables that differ in one record, which is everywhere in turn."""
    places = rng.integers(0, N_BINS + 1, n - 1)
    seen = rng.random(n - 1) < 0.6
    records = np.bincount(places, minlength=N_BINS + 1)
    events = np.bincount(places[seen], minlength=N_BINS + 1)
    for place in range(0, N_BINS + 1, 16):
        one = np.arange(N_BINS + 1) == place
        for event in (False, True):
            yield CountTable(OMEGA, records + one, events + event * one)


class TestWhatIsSpent:
    """For every release, the largest change by one record, in units of the noise: all of epsilon.

    This is the privacy loss of Laplace noise; the ladder's is the epsilon that it is drawn with.
    The sum is exact: what shares and scales lose as floats counts.
    """

    @pytest.mark.parametrize(
        ("n_events", "epsilon", "shape_fraction"),
        thinned([-7, 30, 99, 400], [0.01, 1.0, 50.0], FRACTIONS),
    )
    def test_tight_ladder(self, monkeypatch, n_events, epsilon, shape_fraction):
        answers = (n_events, 2**35, -3000, 2**34, 2**33, 2**34)
        self.check_spent(monkeypatch, "tight", answers, epsilon, shape_fraction)

    @pytest.mark.parametrize(
        ("kind", "epsilon", "shape_fraction"),
        thinned(["exact", "published"], [0.01, 50.0], FRACTIONS),
    )
    def test_ladders_of_the_paper(self, monkeypatch, kind, epsilon, shape_fraction):
        self.check_spent(monkeypatch, kind, (50, 2**34), epsilon, shape_fraction)

    @staticmethod
    def check_spent(monkeypatch, kind, answers, epsilon, shape_fraction):
        n = 100
        ledger = Ledger(monkeypatch, answers)
        fit = make_fit(kind, n, epsilon, shape_fraction)
        values, public = [], set()
        for table in neighbours(n, np.random.default_rng(0)):
            estimate_of(fit, table)
            values.append(ledger.values)
            ((_, drawn, n_levels),) = ledger.ladders
            public.add((*ledger.scales, n_levels, drawn))
            ledger.forget()
        # Given the answers, scales and the ladder's epsilon are the same whatever the records are.
        ((*scales, _, drawn),) = public
        moves = [max(column) - min(column) for column in zip(*values, strict=True)]
        losses = [Fraction(m) / Fraction(s) for m, s in zip(moves, scales, strict=True)]
        assert 0.98 * epsilon < sum(losses) + Fraction(drawn) <= Fraction(epsilon)

    @staticmethod
    def nominal(monkeypatch, kind, rng):
        """Return what is spent less epsilon, exactly, for sensitivities from the definitions."""
        ledger = Ledger(monkeypatch, (8, 2**33, -3000, 2**34) if kind == "tight" else ())
        epsilon, fraction_ = 10.0 ** rng.uniform(-6, 2), rng.uniform(0.001, 0.999)
        fit = make_fit(kind, 9, epsilon, rng.choice([None, fraction_]))
        estimate(fit, *simulate(9))
        sensitivities = {
            "tight": (1, 2**30, N_BINS + BEFORE_BINS, 2**30),
            "exact": (1, 2**30),
            "Laplace": (MAX_SHAPE * 2**30, MAX_SHAPE * 2**30),
        }[kind]
        parts = [Fraction(epsilon) for _, epsilon, _ in ledger.ladders]
        for sensitivity, scale in zip(sensitivities, ledger.scales, strict=True):
            parts.append(Fraction(sensitivity) / Fraction(scale))
        return sum(parts) - Fraction(epsilon)

    @pytest.mark.parametrize("kind", ["tight", "exact", "Laplace"])
    def test_splitting_epsilon_in_floats_does_not_overspend(self, monkeypatch, kind):
        rng = np.random.default_rng(1)
        assert max(self.nominal(monkeypatch, kind, rng) for _ in range(200)) <= 0
        # Without what is set aside for it, shares of many parts would, and are refused.
        monkeypatch.setattr(weibull_plan, "ROUNDING_SHARE", 0.0)
        with pytest.raises(ValueError, match="must cost no more than"):
            max(self.nominal(monkeypatch, kind, rng) for _ in range(200))

    @pytest.mark.parametrize(
        ("epsilon", "shape_fraction"), thinned([1e-6, 1.0, 1e6], FRACTIONS), ids=str
    )
    def test_shares_of_the_tight_ladder(self, epsilon, shape_fraction):
        """Whatever is released first: all positive, and something is left for the scale."""
        n = 500
        fit = make_fit("tight", n, epsilon, shape_fraction)
        first = sum(fit.first_shares)
        if shape_fraction is None:
            assert first == sum(Tuning()[:2])
        for n_events, rate in itertools.product((1, 30, n), np.geomspace(1e-3, 1e3, 40)):
            shares = fit.later_shares(n_events, rate)
            assert min(*shares, 1.0 - first - sum(shares)) > 0.0
            if shape_fraction is not None:
                assert sum(shares) == pytest.approx(shape_fraction, rel=1e-12)

    @pytest.mark.parametrize(("kind", "shape_fraction"), thinned(PRIVATE, FRACTIONS))
    def test_the_composed_cost_is_epsilon(self, kind, shape_fraction):
        """But for what rounding may cost; each choice that is stated has nearly all of the rest."""
        for epsilon in (1e-9, 0.3, 1e9):
            fit = make_fit(kind, 500, epsilon, shape_fraction)
            plan = fit.way.plan(fit)
            assert 1 - 2.0**-39 < plan.cost.epsilon / Fraction(epsilon) <= 1
            assert plan.guarantee("proved").epsilon == epsilon
            if kind == "tight":
                total = plan.tree.nodes[-1]
                for choice in total.possible:
                    assert 1 - 2.0**-36 < choice.cost.epsilon / total.cost.epsilon <= 1
                corrected = 500 * epsilon >= Tuning().correction_events
                numbers = [len(choice.nodes) for choice in total.possible]
                assert numbers == [5 if corrected else 3, 3, 3]

    @pytest.mark.parametrize(
        ("sample", "shape_fraction"), thinned([("Laplace", 3), ("blocks", 1001)], FRACTIONS)
    )
    def test_noisy_estimates(self, monkeypatch, sample, shape_fraction):
        kind, n = sample
        ledger, epsilon = Ledger(monkeypatch), 0.7
        fit = make_fit(kind, n, epsilon, shape_fraction)
        time, event = simulate(n)
        values = []
        for last, seen in itertools.product((0.0, 0.1, 3.0, 5.0), (False, True)):
            time[-1], event[-1] = last, seen
            estimate(fit, time, event)
            values.append(ledger.values)
            scales = ledger.scales
            ledger.forget()
        # Each estimate is clamped to [0, max_shape], so a sum over blocks moves by that at most.
        sensitivity = MAX_SHAPE * 2**30
        share = 0.5 if shape_fraction is None else shape_fraction
        assert sensitivity / np.array(scales) == pytest.approx(
            [share * epsilon, (1 - share) * epsilon], rel=1e-12
        )
        moves = np.ptp(values, axis=0)
        assert np.all((moves > 0) & (moves <= sensitivity))

    def test_estimates_are_in_the_range_that_the_noise_is_for(self, monkeypatch):
        """Sums of rounded estimates from 0 to their largest, whose scale is public."""
        for max_shape in [0.3, 1e-3, 10.0, 999.9]:
            ledger = Ledger(monkeypatch)
            fit = make_fit("Laplace", 5, 1.0, max_shape=max_shape)
            for event in (np.zeros(5, dtype=bool), np.ones(5, dtype=bool), np.arange(5) == 0):
                for time in (np.full(5, MAX_TIME), np.zeros(5), MAX_TIME * np.arange(5) / 4):
                    estimate(fit, time, event)
            assert min(ledger.values) >= 0
            assert np.all(np.array(ledger.values) <= 0.5 * np.array(ledger.scales))
            assert max(ledger.values) == pytest.approx(max_shape * 2**30, rel=1e-6)

    def test_ladders_get_what_they_need(self, monkeypatch):
        ledger = Ledger(monkeypatch)
        table = table_of(*simulate(200))
        for kind in LADDERS:
            estimate_of(make_fit(kind, 200, 1.0, n_levels=7), table)
            levels, epsilon, n_levels = ledger.ladders[-1]
            assert (levels.table, levels.max_shape, n_levels) == (table, MAX_SHAPE, 7)
            if kind != "tight":
                # Not below the end of the ladder, or levels would be left out.
                assert levels.top * 2**20 >= weibull_plan.highest_level(epsilon, n_levels)

    def test_no_draw_of_the_tight_ladder_sees_the_mean_itself(self, monkeypatch):
        ledger = Ledger(monkeypatch, (100, 2**36, -3000, 2**34))
        means = set()
        for seed in range(5):
            estimate_of(make_fit("tight", 200, 1.0), table_of(*simulate(200, seed=seed)))
            means.add(ledger.ladders[-1][0].mean_log_event)
            ledger.forget()
        assert means == {((weibull_plan.CENTER - 30) / N_BINS - 1.0) * OMEGA}


def is_ladder(leaf):
    return isinstance(leaf, weibull_plan.Ladder)


class TestNeighbours:
    """What an audit finds at neighbours, given the same released values."""

    KNOWN: ClassVar = {
        "n_events": 60, "follow_up": 30.0, "mean_log_event": -1.2, "shape": 1.1, "log_scale": -0.8,
    }  # fmt: skip

    @staticmethod
    def measurements(kind, n):
        """Return all that may be asked, with a correction."""
        setting = make_fit(kind, n, 1e3)
        leaves = setting.way.plan(setting).leaves
        # Else ladders end at their first level.
        return [replace(leaf, price=1.0) if is_ladder(leaf) else leaf for leaf in leaves]

    @pytest.mark.parametrize("kind", LADDERS)
    def test_answers_are_within_what_queries_allow(self, few_cells, kind):
        n = 40
        tables = list(neighbours(n, np.random.default_rng(0)))
        for leaf in self.measurements(kind, n):
            if is_ladder(leaf):
                for one, other in itertools.pairwise(tables[::60]):
                    for what, found, bound in leaf.distances(self.KNOWN, one, other):
                        assert found <= bound == 1.0, what
            else:
                query = leaf.query_for(self.KNOWN)
                answers = [leaf.exact_answer(self.KNOWN, table) for table in tables]
                assert 0.9 * query.sensitivity < np.ptp(answers) <= query.sensitivity
                assert leaf.scales() == ()
        assert {type(leaf).__name__ for leaf in self.measurements("tight", n)} == {
            "Events", "FollowUp", "MeanLogTime", "ReleasedMeanLadder", "Scale", "Correction",
        }  # fmt: skip

    def test_scores_are_within_the_widest_range(self):
        for left_censored, shape in itertools.product([True, False], [0.01, 0.3, 1.4, 10.0]):
            public = replace(make_fit("tight", 4000, 2.0), left_censored=left_censored)
            leaf = weibull_plan.Correction(price=1.0, public=public)
            (widest,) = leaf.query_range()
            for n_events, log_scale, mean in itertools.product(
                (1, 4000), (-OMEGA, 0.0, 30.0), (-1.15 * OMEGA, -1.0, -0.12)
            ):
                known = {"n_events": n_events, "log_scale": log_scale, "mean_log_event": mean}
                query = leaf.query_for({**known, "shape": shape})
                assert widest.value(widest.low) <= query.value(query.low)
                assert query.value(query.high) <= widest.value(widest.high)

    def test_estimates_of_one_block_move(self):
        for kind in ["Laplace", "blocks"]:
            time, event = simulate(1200)
            fit = make_fit(kind, 1200, 1.0)
            read = [
                fit.way.read(
                    InMemory([Histories(np.append(first, time[1:]), event)]), MAX_TIME, OMEGA
                )
                for first in (0.0, 4.9)
            ]
            for _, found, bound in fit.way.plan(fit).tree.distances({}, *read):
                assert 0.0 < found <= bound == 1.0

    def test_levels_that_move_by_two_are_found(self, monkeypatch):
        class Doubled(ExactLevels):
            def down_to(self, node):
                return 2 * super().down_to(node)

        ends = [table_of(np.append(t, np.full(9, 5.0)), np.ones(10) > 0) for t in (0.0, 5.0)]
        (ladder, *_) = self.measurements("exact", 10)
        assert max(found for _, found, _ in ladder.distances({}, *ends)) == 1.0
        monkeypatch.setattr(published_plans, "ExactLevels", Doubled)
        assert max(found for _, found, _ in ladder.distances({}, *ends)) > 1.0


def test_scales_are_bounded(monkeypatch):
    """One noisy event, all powers: a tiny shape would have a scale beyond the floats."""
    Ledger(monkeypatch, (1, 2**62, -3000, 2**62), shape=0.01)
    table = table_of(np.full(900, 5.0), np.zeros(900, dtype=bool))
    found = estimate_of(make_fit("tight", 900, 1.0), table)
    assert found.log_scale == weibull_plan.LARGEST_LOG_SCALE


@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        *thinned(PRIVATE, [(6.0, 1e3), (100.0, 10.0), (100.0, 1e3), (1e-3, 1e3)]),
        ("tight", (6.0, 1e-3)),
    ],
    ids=str,
)
def test_estimates_are_within_public_bounds(few_cells, kind, domain):
    """Whatever the data: e^(-omega max_shape) is 0 in floats, and so may be all powers."""
    omega, max_shape = domain
    for time, event in (
        ([0.3], [False]),
        ([0.0] * 60, [True] * 60),
        ([0.5] * 1000, [True] * 1000),
        ([0.0] * 20 + [1.0] * 20, [True] * 40),
    ):
        time, event = MAX_TIME * np.array(time), np.array(event)
        # None: operating-system entropy, whose sampler is another.
        for epsilon, seed, share in ((1e-6, 0, None), (0.1, None, 0.999), (50.0, 1, 0.001)):
            fit = make_fit(kind, time.size, epsilon, share, omega=omega, max_shape=max_shape)
            (low_shape, high_shape), (low_scale, high_scale) = fit.bounds
            found = estimate(fit, time, event, seed)
            assert low_shape - 1e-9 <= math.log(found.shape) <= high_shape + 1e-9
            assert low_scale - 1e-9 <= found.log_scale <= high_scale + 1e-9
            assert found.n_events is None or 1 <= found.n_events <= time.size
