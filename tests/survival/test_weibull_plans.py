"""The plans of a Weibull fit: what they spend, what they recover, and what awkward data do."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.weibull import SHAPE_RANGE, maximum_likelihood
from skdpsurv.mechanisms import sums
from skdpsurv.published import weibull as published_plans
from skdpsurv.survival.weibull import counts as weibull_counts
from skdpsurv.survival.weibull import plan as weibull_plan
from skdpsurv.survival.weibull.counts import (
    BEFORE_BINS,
    CENTER,
    CORRECTION_EVENTS,
    CORRECTION_RATE,
    EVENTS_SHARE,
    FOLLOW_UP_SHARE,
    LARGEST_LOG_SCALE,
    N_BINS,
    CountTable,
    WeibullSetting,
    before_offset,
    count_table,
)
from skdpsurv.survival.weibull.intervals import Estimate
from skdpsurv.survival.weibull.ladder import N_CELLS, ExactRungs, shape_at
from skdpsurv.survival.weibull.plan import Ladder
from tests.support.combinations import thinned


def table_of(time, event, max_time, omega):
    return count_table(InMemory([(event, time)]), max_time, omega)


def estimate_of(public, records, source):
    """Return what the plan releases of records as they are read, or of their counts."""
    known = public.plan().run(records, source)
    return Estimate(known["shape"], known["log_scale"], known.get("n_events"))


def estimate(public, time, event, source):
    records = public.way.read(InMemory([(event, time)]), public.max_time, public.omega)
    return estimate_of(public, records, source)


def exact_fit(time, event):
    """Return the fit without noise of what private plans know: times below the least are zero."""
    known = np.where(time < MAX_TIME * math.exp(-OMEGA), 0.0, time)
    return estimate(make_fit("no privacy", len(time), math.inf), known, event, None)


WAYS = {
    "tight": weibull_plan.TIGHT,
    "exact": published_plans.EXACT,
    "published": published_plans.PUBLISHED,
    "Laplace": published_plans.LAPLACE,
    "blocks": published_plans.SAMPLE_AGGREGATE,
    "no privacy": weibull_plan.MAXIMUM_LIKELIHOOD,
}
LADDERS = ["tight", "exact", "published"]
PRIVATE = [*LADDERS, "Laplace", "blocks"]
MAX_TIME, OMEGA, MAX_SHAPE = 5.0, 6.0, 10.0
#: Shares of epsilon for the shape.
FRACTIONS = [None, 0.001, 0.3, 0.5, 0.9, 0.999]


def make_fit(kind, n, epsilon, shape_fraction=None, n_rungs=None, omega=OMEGA, max_shape=MAX_SHAPE):
    way = WAYS[kind]._replace(n_rungs=n_rungs)
    return WeibullSetting(way, n, epsilon, MAX_TIME, omega, max_shape, shape_fraction)


def simulate(n, shape=1.4, scale=2.0, censoring=4.0, seed=0):
    rng = np.random.default_rng(seed)
    life, end = scale * rng.weibull(shape, n), rng.exponential(censoring, n)
    return np.minimum(life, end), life <= end


def likeliest(time, event):
    """Fit the bins, with times before the first taken as at it: what the paper's ladder finds."""
    table = table_of(time, event, MAX_TIME, OMEGA)
    fit = maximum_likelihood(table.log_time, table.events, MAX_SHAPE, weights=table.records)
    return fit[0][0], fit[1][0]


def balanced(time, event):
    """Return the shape, and log scale, at which log times of events are as they should be.

    By integrals over bins of who is at risk, of the log time that an event there would count as.
    """
    table = table_of(time, event, MAX_TIME, OMEGA)
    x, n_events = table.log_time, table.events.sum()
    counted = (table.events @ x - table.events[0] * before_offset(OMEGA)) / n_events
    # Half of the first bin leave before it has passed.
    weight = np.where(np.arange(N_BINS + 1) == 0, 0.5, 1.0) * table.records
    later = np.cumsum(table.records[::-1])[::-1][1:]

    def excess(shape):
        first = (weight[0] + later[0]) * math.exp(-shape * OMEGA)
        power = np.exp(shape * x)
        inner = np.diff(power) * later
        # The mean log time between two points, weighted by the density of the power.
        means = np.diff(power * (x - 1.0 / shape)) / np.diff(power)
        total = first + inner.sum()
        return (first * (-OMEGA - before_offset(OMEGA)) + inner @ means) / total - counted

    shape = optimize.brentq(excess, 0.02, 9.9, xtol=1e-12)
    return shape, math.log(weight @ np.exp(shape * x) / n_events) / shape


@pytest.fixture
def few_cells(monkeypatch):
    """Make the published ladder quick."""
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 100)


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(sums, "lattice_laplace", lambda value, scale, source: value)


class Ledger:
    """Stands in for the noise: keeps what it is asked for, and returns what it is told to.

    With answers that do not depend on the records, what follows an answer is seen as sequential
    composition sees it: given the same answers before.
    """

    def __init__(self, monkeypatch, answers=(), shape=1.5):
        self.answers, self.shape = answers, shape
        self.values, self.scales, self.ladders = [], [], []
        monkeypatch.setattr(sums, "lattice_laplace", self.lattice_laplace)
        monkeypatch.setattr(weibull_plan, "draw_cell", self.draw_cell)

    def lattice_laplace(self, value, scale, source):
        self.values.append(value)
        self.scales.append(scale)
        return self.answers[len(self.values) - 1] if self.answers else value

    def draw_cell(self, rungs, epsilon, source, n_rungs=None):
        self.ladders.append((rungs, epsilon, n_rungs))
        if rungs.n_cells != N_CELLS:
            return int(rungs.n_cells * self.shape / MAX_SHAPE)
        return round(N_CELLS * (1.0 - math.log(self.shape / MAX_SHAPE) / math.log(SHAPE_RANGE)))

    def forget(self):
        self.values, self.scales, self.ladders = [], [], []


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
        spent = self.spent(monkeypatch, "tight", answers, epsilon, shape_fraction)
        assert 0.98 * epsilon < spent <= Fraction(epsilon)

    @pytest.mark.parametrize(
        ("kind", "epsilon", "shape_fraction"),
        thinned(["exact", "published"], [0.01, 50.0], FRACTIONS),
    )
    def test_ladders_of_the_paper(self, monkeypatch, kind, epsilon, shape_fraction):
        spent = self.spent(monkeypatch, kind, (50, 2**34), epsilon, shape_fraction)
        assert 0.98 * epsilon < spent <= Fraction(epsilon)

    @staticmethod
    def spent(monkeypatch, kind, answers, epsilon, shape_fraction):
        n = 100
        ledger = Ledger(monkeypatch, answers)
        fit = make_fit(kind, n, epsilon, shape_fraction)
        values, public = [], set()
        for table in neighbours(n, np.random.default_rng(0)):
            estimate_of(fit, table, random_source(0))
            values.append(ledger.values)
            drawn = tuple((epsilon, n_rungs) for _, epsilon, n_rungs in ledger.ladders)
            public.add((*ledger.scales, drawn))
            ledger.forget()
        # Given the answers, scales and the ladder's epsilon are the same whatever the records are.
        (*scales, drawn) = public.pop()
        assert not public
        assert len(drawn) == 1
        moves = [max(column) - min(column) for column in zip(*values, strict=True)]
        losses = [Fraction(m) / Fraction(s) for m, s in zip(moves, scales, strict=True)]
        return sum(losses) + Fraction(drawn[0][0])

    @staticmethod
    def nominal(monkeypatch, kind, rng):
        """Return what is spent less epsilon, exactly, for sensitivities from the definitions."""
        ledger = Ledger(monkeypatch, (8, 2**33, -3000, 2**34) if kind == "tight" else ())
        epsilon, fraction_ = 10.0 ** rng.uniform(-6, 2), rng.uniform(0.001, 0.999)
        fit = make_fit(kind, 9, epsilon, rng.choice([None, fraction_]))
        estimate(fit, *simulate(9), random_source(0))
        sensitivities = {
            "tight": (1, 2**30, N_BINS + BEFORE_BINS, 2**30),
            "exact": (1, 2**30),
            "Laplace": (MAX_SHAPE * 2**30, MAX_SHAPE * 2**30),
        }[kind]
        spent = sum(Fraction(epsilon) for _, epsilon, _ in ledger.ladders)
        for sensitivity, scale in zip(sensitivities, ledger.scales, strict=True):
            spent += Fraction(sensitivity) / Fraction(scale)
        return spent - Fraction(epsilon)

    @pytest.mark.parametrize("kind", ["tight", "exact", "Laplace"])
    def test_splitting_epsilon_in_floats_does_not_overspend(self, monkeypatch, kind):
        rng = np.random.default_rng(1)
        assert max(self.nominal(monkeypatch, kind, rng) for _ in range(200)) <= 0
        # Without what is set aside for it, shares of many parts would, and are refused.
        monkeypatch.setattr(weibull_counts, "ROUNDING_SHARE", 0.0)
        with pytest.raises(ValueError, match="must cost no more than"):
            max(self.nominal(monkeypatch, kind, rng) for _ in range(200))

    def test_with_a_correction_and_without(self, monkeypatch):
        """The cases above have both; a correction has two more releases."""
        ledger = Ledger(monkeypatch)
        cases = [(99, 32, 50.0, 6), (99, 32, 1.0, 4), (30, 32, 100.0, 4), (99, 100, 50.0, 4)]
        for n_events, follow_up, epsilon, releases in cases:
            ledger.answers = (n_events, follow_up * 2**30, -3000, 2**34, 2**33, 2**34)
            table = next(neighbours(100, np.random.default_rng(0)))
            estimate_of(make_fit("tight", 100, epsilon), table, random_source(0))
            assert len(ledger.values) == releases
            often = n_events >= CORRECTION_RATE * follow_up
            corrected = n_events * epsilon >= CORRECTION_EVENTS and often
            assert corrected == (releases == 6)
            ledger.forget()

    @pytest.mark.parametrize("shape_fraction", FRACTIONS)
    @pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
    def test_shares_of_the_tight_ladder(self, epsilon, shape_fraction):
        """Whatever is released first: all positive, and something is left for the scale."""
        n = 500
        fit = make_fit("tight", n, epsilon, shape_fraction)
        first = sum(fit.first_shares)
        if shape_fraction is None:
            assert first == EVENTS_SHARE + FOLLOW_UP_SHARE
        for n_events, rate in itertools.product((1, 30, n), np.geomspace(1e-3, 1e3, 40)):
            shares = fit.later_shares(n_events, rate)
            assert min(shares) > 0.0
            assert first + sum(shares) < 1.0
            if shape_fraction is not None:
                assert sum(shares) == pytest.approx(shape_fraction, rel=1e-12)

    @pytest.mark.parametrize("shape_fraction", FRACTIONS)
    @pytest.mark.parametrize("kind", PRIVATE)
    def test_the_composed_cost_is_epsilon(self, kind, shape_fraction):
        """But for what rounding may cost; each choice that is stated has nearly all of the rest."""
        for epsilon in (1e-9, 0.3, 1e9):
            fit = make_fit(kind, 500, epsilon, shape_fraction)
            plan = fit.plan()
            assert 1 - 2.0**-39 < plan.cost.epsilon / Fraction(epsilon) <= 1
            assert plan.guarantee("proved").epsilon == epsilon
            if kind == "tight":
                total = plan.tree.nodes[-1]
                for choice in total.possible:
                    assert 1 - 2.0**-36 < choice.cost.epsilon / total.cost.epsilon <= 1
                numbers = [len(choice.nodes) for choice in total.possible]
                assert numbers == [5 if 500 * epsilon >= CORRECTION_EVENTS else 3, 3, 3]

    @pytest.mark.parametrize("shape_fraction", FRACTIONS)
    @pytest.mark.parametrize(("kind", "n"), [("Laplace", 3), ("blocks", 1001)])
    def test_noisy_estimates(self, monkeypatch, kind, n, shape_fraction):
        ledger = Ledger(monkeypatch)
        epsilon = 0.7
        fit = make_fit(kind, n, epsilon, shape_fraction)
        time, event = simulate(n)
        values = []
        for last in (0.0, 0.1, 3.0, 5.0):
            for seen in (False, True):
                time[-1], event[-1] = last, seen
                estimate(fit, time, event, random_source(0))
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
        assert np.all(moves > 0)
        assert np.all(moves <= sensitivity)

    @pytest.mark.parametrize("max_shape", [0.3, 1e-3, 10.0, 999.9])
    def test_estimates_are_in_the_range_that_the_noise_is_for(self, monkeypatch, max_shape):
        """Sums of rounded estimates from 0 to their largest, whose scale is public."""
        ledger = Ledger(monkeypatch)
        fit = make_fit("Laplace", 5, 1.0, max_shape=max_shape)
        for event in (np.zeros(5, dtype=bool), np.ones(5, dtype=bool), np.arange(5) == 0):
            for time in (np.full(5, MAX_TIME), np.zeros(5), MAX_TIME * np.arange(5) / 4):
                estimate(fit, time, event, random_source(0))
        assert min(ledger.values) >= 0
        assert np.all(np.array(ledger.values) <= 0.5 * np.array(ledger.scales))
        assert max(ledger.values) == pytest.approx(max_shape * 2**30, rel=1e-6)

    def test_ladders_get_what_they_need(self, monkeypatch):
        ledger = Ledger(monkeypatch)
        time, event = simulate(200)
        table = table_of(time, event, MAX_TIME, OMEGA)
        for kind in LADDERS:
            estimate_of(make_fit(kind, 200, 1.0, n_rungs=7), table, random_source(0))
            rungs, epsilon, n_rungs = ledger.ladders[-1]
            assert rungs.table is table
            assert rungs.max_shape == MAX_SHAPE
            assert n_rungs == 7
            if kind != "tight":
                # Not below the end of the ladder, or rungs would be left out.
                assert rungs.top * 2**20 >= weibull_plan.highest_level(epsilon, n_rungs)

    def test_no_draw_of_the_tight_ladder_sees_the_mean_itself(self, monkeypatch):
        ledger = Ledger(monkeypatch, (100, 2**36, -3000, 2**34))
        means = set()
        for seed in range(5):
            table = table_of(*simulate(200, seed=seed), MAX_TIME, OMEGA)
            estimate_of(make_fit("tight", 200, 1.0), table, random_source(0))
            means.add(ledger.ladders[-1][0].mean_log_event)
            ledger.forget()
        assert means == {((CENTER - 30) / N_BINS - 1.0) * OMEGA}


class TestNeighbours:
    """What an audit finds at neighbours, given the same released values."""

    KNOWN: ClassVar = {
        "n_events": 60, "follow_up": 30.0, "mean_log_event": -1.2, "shape": 1.1, "log_scale": -0.8,
    }  # fmt: skip

    @staticmethod
    def measurements(kind, n):
        """Return all that may be asked, with a correction."""
        leaves = make_fit(kind, n, 1e3).plan().leaves
        # Else ladders end at their first rung.
        return [replace(leaf, price=1.0) if isinstance(leaf, Ladder) else leaf for leaf in leaves]

    @pytest.mark.parametrize("kind", LADDERS)
    def test_answers_are_within_what_queries_allow(self, few_cells, kind):
        n = 40
        tables = list(neighbours(n, np.random.default_rng(0)))
        for leaf in self.measurements(kind, n):
            if isinstance(leaf, Ladder):
                for one, other in itertools.pairwise(tables[::60]):
                    for what, found, bound in leaf.distances(self.KNOWN, one, other):
                        assert found <= bound == 1.0, what
            else:
                query = leaf.query(self.KNOWN)
                answers = [leaf.ask(self.KNOWN, table) for table in tables]
                assert 0.9 * query.sensitivity < np.ptp(answers) <= query.sensitivity
                assert leaf.scales() == ()
        assert {type(leaf).__name__ for leaf in self.measurements("tight", n)} == {
            "Events", "FollowUp", "MeanLogTime", "ReleasedMeanLadder", "Scale", "Correction",
        }  # fmt: skip

    @pytest.mark.parametrize("left_censored", [True, False])
    @pytest.mark.parametrize("shape", [0.01, 0.3, 1.4, 10.0])
    def test_scores_are_within_the_widest_range(self, shape, left_censored):
        public = replace(make_fit("tight", 4000, 2.0), left_censored=left_censored)
        leaf = weibull_plan.Correction(price=1.0, public=public)
        (widest,) = leaf.query_range()
        for n_events, log_scale, mean in itertools.product(
            (1, 4000), (-OMEGA, 0.0, 30.0), (-1.15 * OMEGA, -1.0, -0.12)
        ):
            known = {"n_events": n_events, "log_scale": log_scale, "mean_log_event": mean}
            query = leaf.query({**known, "shape": shape})
            assert widest.value(widest.low) <= query.value(query.low)
            assert query.value(query.high) <= widest.value(widest.high)

    @pytest.mark.parametrize("kind", ["Laplace", "blocks"])
    def test_estimates_of_one_block_move(self, kind):
        time, event = simulate(1200)
        fit = make_fit(kind, 1200, 1.0)
        read = [
            fit.way.read(InMemory([(event, np.append(first, time[1:]))]), MAX_TIME, OMEGA)
            for first in (0.0, 4.9)
        ]
        for _, found, bound in fit.plan().tree.distances({}, *read):
            assert 0.0 < found <= bound == 1.0

    def test_rungs_that_move_by_two_are_found(self, monkeypatch):
        class Doubled(ExactRungs):
            def down_to(self, node):
                return 2 * super().down_to(node)

        ends = [table_of(np.append(t, np.ones(9)), np.ones(10) > 0, 1.0, OMEGA) for t in (0.0, 1.0)]
        (ladder, *_) = self.measurements("exact", 10)
        assert max(found for _, found, _ in ladder.distances({}, *ends)) == 1.0
        monkeypatch.setattr(published_plans, "ExactRungs", Doubled)
        assert max(found for _, found, _ in ladder.distances({}, *ends)) > 1.0


SAMPLES = {
    "many events": {"censoring": 1e3},
    "half": {},
    "few events": {"censoring": 0.1, "shape": 0.9},
    "steep": {"shape": 6.0},
}


class TestWithoutNoise:
    @pytest.mark.parametrize("sample", SAMPLES)
    @pytest.mark.parametrize("kind", ["tight", "exact"])
    def test_ladders_find_the_maximum_of_the_likelihood(self, no_noise, kind, sample):
        """The shape to a cell of the grid, 5e-5 wide, and the scale for it, as in version 1."""
        time, event = simulate(1500, **SAMPLES[sample])
        shape, log_scale = likeliest(time, event)
        fit = make_fit(kind, 1500, 1e9)
        fit = replace(fit, left_censored=False)
        found = estimate(fit, time, event, random_source(0))
        assert found.shape == pytest.approx(shape, rel=1e-4)
        assert found.log_scale == pytest.approx(log_scale, abs=2e-4 / shape)
        assert found.n_events == np.sum(event & (time <= MAX_TIME))

    @pytest.mark.parametrize("sample", [*SAMPLES, "before"])
    @pytest.mark.parametrize("kind", ["tight", "exact"])
    def test_ladders_balance_log_times(self, monkeypatch, no_noise, kind, sample):
        """To a cell of the grid; a correction, which goes to the likelihood, is not taken."""
        monkeypatch.setattr(weibull_counts, "CORRECTION_RATE", math.inf)
        time, event = simulate(1500, **{**SAMPLES, "before": {"shape": 0.4}}[sample])
        shape, log_scale = balanced(time, event)
        found = estimate(make_fit(kind, 1500, 1e9), time, event, random_source(0))
        assert found.shape == pytest.approx(shape, rel=1e-4)
        assert found.log_scale == pytest.approx(log_scale, abs=3e-4 / shape)
        # As many events before as the shape lets expect, and not as were seen: near the likeliest.
        best = exact_fit(time, event)
        assert found.shape == pytest.approx(best.shape, rel=0.012)
        if sample == "before":
            assert likeliest(time, event)[0] > 1.08 * best.shape

    @pytest.mark.parametrize("shape", [0.4, 0.7])
    def test_a_correction_ends_at_the_likeliest(self, no_noise, shape):
        """Times before the first bin among them, 6 and 1 per cent of all."""
        time, event = simulate(6000, shape=shape, scale=1.0)
        best = exact_fit(time, event)
        found = estimate(make_fit("tight", 6000, 1e9), time, event, random_source(0))
        assert found.shape == pytest.approx(best.shape, rel=2e-3)
        assert found.log_scale == pytest.approx(best.log_scale, abs=5e-3)

    def test_published_ladder(self, no_noise):
        """The same, to a cell of 0.005."""
        time, event = simulate(1500)
        shape, log_scale = likeliest(time, event)
        found = estimate(make_fit("published", 1500, 1e9), time, event, random_source(0))
        assert found.shape == pytest.approx(shape, abs=0.0051)
        assert found.log_scale == pytest.approx(log_scale, abs=0.01)

    def test_bins_hardly_matter(self):
        time, event = simulate(1500)
        fit = make_fit("no privacy", 1500, math.inf)
        exact = estimate(fit, time, event, random_source(0))
        assert exact.n_events == np.sum(event & (time <= MAX_TIME))
        binned = estimate_of(fit, table_of(time, event, MAX_TIME, OMEGA), random_source(0))
        assert binned == pytest.approx(exact, rel=1e-3)

    @pytest.mark.parametrize("kind", ["Laplace", "blocks"])
    def test_one_block_is_the_maximum_of_the_likelihood(self, no_noise, kind):
        time, event = simulate(400)
        time = np.maximum(time, 1.001 * MAX_TIME * math.exp(-OMEGA))
        found = estimate(make_fit(kind, 400, 1.0), time, event, random_source(0))
        exact = estimate(make_fit("no privacy", 400, math.inf), time, event, random_source(0))
        assert found[:2] == pytest.approx(exact[:2], rel=1e-8)
        assert found.n_events is None

    @pytest.mark.parametrize(
        ("wrong", "left"),
        [(0.8, 0.3), (0.9, 0.2), (0.98, 0.1), (1.02, 0.1), (1.1, 0.3), (1.3, 0.6)],
    )
    @pytest.mark.parametrize("sample", ["many events", "half", "steep"])
    def test_correction_corrects(self, monkeypatch, sample, wrong, left):
        """From a first shape that is off, one step leaves a part of the way."""
        time, event = simulate(4000, **SAMPLES[sample])
        shape = exact_fit(time, event).shape
        Ledger(monkeypatch, shape=wrong * shape)
        found = estimate(make_fit("tight", 4000, 100.0), time, event, random_source(0))
        assert abs(math.log(found.shape / shape)) < left * abs(math.log(wrong))
        near = estimate(make_fit("tight", 4000, 0.1), time, event, random_source(0))
        assert near.shape == pytest.approx(wrong * shape, rel=1e-4)


#: Name: times in units of the horizon, and events.
AWKWARD = {
    "one event": ([0.3], [True]),
    "one censored": ([0.3], [False]),
    "one event at zero": ([0.0], [True]),
    "one censored at zero": ([0.0], [False]),
    "one event at the horizon": ([1.0], [True]),
    "no events": ([0.1, 0.4, 0.4, 0.9, 2.0], [False] * 5),
    "all events at the horizon": ([1.0] * 6, [True] * 6),
    "all beyond the horizon": ([2.0] * 6, [True] * 6),
    "all events at zero": ([0.0] * 60, [True] * 60),
    "all at one time": ([0.5] * 1000, [True] * 1000),
    "no events, two blocks": ([0.5] * 1000, [False] * 1000),
    "both ends": ([0.0] * 20 + [1.0] * 20, [True] * 40),
}
EPSILONS = [1e-6, 0.1, 10.0, 1e6]


def check_awkward(kind, time, event, epsilon, seeds, **parameters):
    time, event = MAX_TIME * np.array(time), np.array(event)
    fit = make_fit(kind, time.size, epsilon, **parameters)
    (low_shape, high_shape), (low_scale, high_scale) = fit.bounds
    for seed in seeds:
        found = estimate(fit, time, event, random_source(seed))
        assert low_shape - 1e-9 <= math.log(found.shape) <= high_shape + 1e-9
        assert low_scale - 1e-9 <= found.log_scale <= high_scale + 1e-9
        if found.n_events is not None and math.isfinite(epsilon):
            assert 1 <= found.n_events <= time.size
        assert math.isfinite(MAX_TIME * math.exp(found.log_scale))


class TestAwkwardData:
    """Nothing raises, and what is released is within public bounds."""

    @pytest.mark.parametrize(("name", "kind"), thinned(AWKWARD, PRIVATE))
    def test_estimates_are_finite(self, few_cells, name, kind):
        for epsilon in EPSILONS:
            # None: operating-system entropy, whose sampler is another.
            check_awkward(kind, *AWKWARD[name], epsilon, seeds=[0, 1, None])

    @pytest.mark.parametrize("name", AWKWARD)
    def test_maximum_likelihood(self, name):
        check_awkward(
            "no privacy", *AWKWARD[name][:1], [True] * len(AWKWARD[name][0]), math.inf, seeds=[0]
        )

    @pytest.mark.parametrize(
        ("name", "domain", "kind"),
        thinned(
            ["all events at zero", "all at one time", "both ends"],
            [(6.0, 1e3), (100.0, 10.0), (100.0, 1e3)],
            LADDERS,
        ),
    )
    def test_powers_that_underflow(self, few_cells, name, domain, kind):
        """e^(-omega max_shape) is 0 in floats, and so may be all powers of all records."""
        omega, max_shape = domain
        for epsilon in (0.1, 50.0):
            check_awkward(kind, *AWKWARD[name], epsilon, range(4), omega=omega, max_shape=max_shape)

    @pytest.mark.parametrize(
        ("domain", "kind"), thinned([(1e-3, 1e-3), (1e-3, 1e3), (6.0, 1e-3)], LADDERS)
    )
    def test_small_domains(self, few_cells, domain, kind):
        omega, max_shape = domain
        for name in ("one event", "no events", "all at one time", "both ends"):
            for epsilon in (0.1, 50.0):
                check_awkward(
                    kind, *AWKWARD[name], epsilon, range(2), omega=omega, max_shape=max_shape
                )

    @pytest.mark.parametrize("kind", LADDERS)
    def test_shape_and_rungs_asked_for(self, few_cells, kind):
        for name in ("one event", "no events", "both ends"):
            for shape_fraction in (0.001, 0.999):
                check_awkward(
                    kind, *AWKWARD[name], 1.0, range(4), shape_fraction=shape_fraction, n_rungs=1
                )

    def test_scale_is_bounded(self, monkeypatch):
        """One noisy event, all powers: a tiny shape would have a scale beyond the floats."""
        Ledger(monkeypatch, (1, 2**62, -3000, 2**62), shape=0.01)
        table = table_of(np.full(900, 5.0), np.zeros(900, dtype=bool), MAX_TIME, OMEGA)
        found = estimate_of(make_fit("tight", 900, 1.0), table, random_source(0))
        assert found.log_scale == LARGEST_LOG_SCALE


class TestReproducible:
    @pytest.mark.parametrize("kind", PRIVATE)
    def test_a_seed_gives_one_result(self, few_cells, kind):
        time, event = simulate(1200)
        # At less the baselines end at their bounds.
        fit = make_fit(kind, 1200, 100.0)
        results = [estimate(fit, time, event, random_source(seed)) for seed in (3, 3, 4)]
        assert results[0] == results[1]
        assert results[0] != results[2]

    @pytest.mark.parametrize("kind", LADDERS)
    def test_counts_are_all_that_matters(self, few_cells, kind):
        time, event = simulate(300)
        fit = make_fit(kind, 300, 1.0)
        order = np.random.default_rng(0).permutation(300)
        table = table_of(time, event, MAX_TIME, OMEGA)
        results = {
            estimate(fit, time, event, random_source(3)),
            estimate(fit, time[order], event[order], random_source(3)),
            estimate_of(fit, table, random_source(3)),
        }
        assert len(results) == 1


class TestSampleAggregate:
    @pytest.fixture
    def groups(self, monkeypatch):
        """What the likelihood is given: log times, events and where blocks begin."""
        seen = []

        def spy(x, events, max_shape, starts=(0,), weights=None):
            seen.append((x.copy(), np.array(events), np.array(starts)))
            return maximum_likelihood(x, events, max_shape, starts, weights)

        monkeypatch.setattr(published_plans, "maximum_likelihood", spy)
        return seen

    @pytest.mark.parametrize(
        ("n", "blocks"), [(1, 1), (499, 1), (999, 1), (1000, 2), (1499, 2), (10_000, 20)]
    )
    def test_blocks(self, groups, n, blocks):
        time, event = simulate(n)
        fit = make_fit("blocks", n, 1.0)
        estimate(fit, time, event, random_source(0))
        x, events, starts = groups[0]
        assert fit.plan().tree.n_blocks == starts.size == blocks
        sizes = np.diff([*starts, n])
        assert sizes.sum() == n
        assert sizes.max() - sizes.min() <= 1
        assert n < published_plans.BLOCK_RECORDS or sizes.min() >= published_plans.BLOCK_RECORDS
        # Every record is in it once, with its own event.
        expected = np.sort(np.clip(np.log(time / MAX_TIME), -OMEGA, 0.0))
        np.testing.assert_allclose(np.sort(x), expected, rtol=1e-12)
        assert events.sum() == np.sum(event & (time <= MAX_TIME))

    def test_blocks_do_not_depend_on_values(self, groups):
        """A record that changes is the same place's record, and one block's estimate changes."""
        time, event = simulate(2500)
        fit = make_fit("blocks", 2500, 1.0)
        estimate(fit, time, event, random_source(0))
        time[77], event[77] = 0.0, True
        estimate(fit, time, event, random_source(0))
        (x, events, starts), (other_x, other_events, _) = groups
        assert np.count_nonzero(x != other_x) == 1
        fits = [
            maximum_likelihood(a, b, MAX_SHAPE, starts)[0]
            for a, b in ((x, events), (other_x, other_events))
        ]
        assert np.count_nonzero(fits[0] != fits[1]) == 1

    def test_order_is_random(self, groups):
        time, event = simulate(1000)
        fit = make_fit("blocks", 1000, 1.0)
        for seed in (0, 1):
            estimate(fit, time, event, random_source(seed))
        assert np.count_nonzero(groups[0][0] != groups[1][0]) > 900

    def test_release_is_the_mean_of_the_blocks(self, groups, no_noise):
        time, event = simulate(5000)
        found = estimate(make_fit("blocks", 5000, 1.0), time, event, random_source(0))
        shape, log_scale = maximum_likelihood(*groups[0][:2], MAX_SHAPE, groups[0][2])
        assert found.shape == pytest.approx(shape.mean(), rel=1e-8)
        assert found.log_scale == pytest.approx(math.log(np.exp(log_scale).mean()), rel=1e-8)

    def test_counts_give_as_many_records(self, groups):
        time, event = simulate(1000)
        table = table_of(time, event, MAX_TIME, OMEGA)
        estimate_of(make_fit("blocks", 1000, 1.0), table, random_source(0))
        x, events, _ = groups[0]
        for values, counts in ((x, table.records), (x[events], table.events)):
            places = np.rint((values / OMEGA + 1.0) * N_BINS).astype(int)
            np.testing.assert_array_equal(np.bincount(places, minlength=N_BINS + 1), counts)


#: Whose 50 fits take seconds. Tests of the fitter have them, with fewer.
LONG = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("exact", "published")]


@pytest.mark.parametrize("kind", ["tight", *LONG, "Laplace", "blocks"])
def test_more_epsilon_less_error(few_cells, kind):
    """Median error in the log shape of 25 seeded fits, at epsilons a factor of 30 apart."""
    time, event = simulate(1000)
    shape, _ = likeliest(time, event)
    errors = []
    for epsilon in (0.3, 9.0):
        fit = make_fit(kind, 1000, epsilon)
        fits = [estimate(fit, time, event, random_source(seed)) for seed in range(25)]
        errors.append(np.median([abs(math.log(fit.shape / shape)) for fit in fits]))
    assert errors[1] < 0.7 * errors[0]


def test_shape_at_the_ends():
    """The cells of the grid end where the bounds of an estimate are."""
    fit = make_fit("tight", 10, 1.0)
    ends = [math.log(shape_at(node, MAX_SHAPE)) for node in (0, N_CELLS)]
    np.testing.assert_allclose(fit.bounds[0], ends, rtol=1e-12)
