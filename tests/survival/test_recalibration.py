"""One table of risks over time: its cells, what is expected in them, and what is fitted to it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv import DPDiscreteTimeSurvival, Release
from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.dp.plan import Sequential
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards import recalibration
from skdpsurv.survival.hazards.discrete_time import fit_of, perturbed_plan
from skdpsurv.survival.hazards.inference import exit_probabilities
from skdpsurv.survival.hazards.model import HazardModel, HazardRecords
from skdpsurv.survival.hazards.recalibration import (
    HALF_SIGNAL,
    LEAST_GROUPS,
    LEAST_SLOPE,
    LINE_SCALES,
    OUTER_WIDTHS,
    SLOPE,
    Recalibration,
    _Table,
    cells_of,
    fit_table,
    groups_of,
    outer_width_of,
)
from skdpsurv.survival.hazards.risk_cells import N_GROUPS, PLACES, RiskCells
from tests.support.spies import queries_without_noise

COEF = np.array([1.0, -0.5])


def counted(layout, rows, interval, event):
    return layout.counts(rows, interval, event)


def placed(layout, rows):
    """Sums of places, which depend on rows alone."""
    return layout.places(rows)


def exact_table(layout, X, interval, event):
    return layout.counts(X, interval, event), PLACES.values(layout.places(X))


def cells(q=40, level=-3.0, coef=COEF, link="logit", course=1.0):
    baseline = level + course * np.linspace(0.0, 1.0, q)
    return RiskCells(coef, baseline, LINKS[link], np.full(coef.size, 0.1), 0.8)


def people(n, seed=0, q=40):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, COEF.size))
    return X, rng.integers(1, q + 1, n), rng.random(n) < 0.5


class TestCells:
    def test_each_record_is_in_one_cell_whatever_the_others_are(self):
        """Which makes 2 the sensitivity: the table is the sum of the records' own tables."""
        X, interval, event = people(200)
        X[:4] = [[1e308, -1e308], [-1e308, 1e308], [1e308, 1e308], [0.1, 0.1]]
        layout = cells()
        with np.errstate(over="ignore", invalid="ignore"):
            whole = counted(layout, X, interval, event)
            own = [
                counted(layout, X[i : i + 1], interval[i : i + 1], event[i : i + 1])
                for i in range(200)
            ]
        assert all(one.sum() == 1 and one.max() == 1 for one in own)
        np.testing.assert_array_equal(whole, np.sum(own, axis=0))

    def test_order_and_memory_layout_do_not_move_a_record(self):
        X, interval, event = people(3000, 1)
        layout, turn = cells(), np.random.default_rng(0).permutation(3000)
        wanted = counted(layout, X, interval, event)
        for rows in (np.asfortranarray(X), X[:, ::-1][:, ::-1]):
            np.testing.assert_array_equal(counted(layout, rows, interval, event), wanted)
        np.testing.assert_array_equal(counted(layout, X[turn], interval[turn], event[turn]), wanted)

    def test_ways_out(self):
        """Events by band, censored by band, and those who reach the horizon."""
        layout = cells()
        X = np.full((3, 2), 0.1)
        table = counted(layout, X, np.array([1, 1, 40]), np.array([True, False, False]))
        ways = np.flatnonzero(table.sum(axis=0)).tolist()
        assert ways == [0, layout.n_bands, 2 * layout.n_bands]
        table = counted(layout, X[:1], np.array([40]), np.array([True]))
        assert table[:, layout.n_bands - 1].sum() == 1

    def test_groups_are_of_scores_less_that_of_the_mean(self):
        layout = cells()
        middle = layout.mean + np.array([[0.0, 0.0]])
        step = layout.scale * np.array([[1.0, 0.0]])  # moves the score by one standard deviation
        rows = np.concatenate([middle + (k + 0.01) * step for k in (-9, -1, 0, 1, 9)])
        table = counted(layout, rows, np.ones(5, dtype=int), np.ones(5, dtype=bool))
        assert np.flatnonzero(table.sum(axis=1)).tolist() == [0, 1, 3, 4, 5]

    @pytest.mark.parametrize("q", [1, 2, 5, 40, 1000])
    @pytest.mark.parametrize("level", [-80.0, -9.0, -2.0, 60.0])
    def test_bands_cover_the_grid_in_order(self, q, level):
        layout = cells(q=q, level=level)
        bands, knots = layout.bands, layout.knots
        assert bands.shape == (q,)
        assert (np.diff(bands) >= 0).all()
        assert bands[-1] == layout.n_bands - 1 == min(q, N_GROUPS) - 1
        assert (knots[0], knots[-1]) == (0.0, pytest.approx(1.0))
        assert (np.diff(knots) > 0).all()

    def test_no_coefficients_have_no_spread(self):
        layout = cells(coef=np.zeros(2))
        assert layout.scale > 0
        X, interval, event = people(10)
        assert counted(layout, X, interval, event).sum() == 10

    @pytest.mark.parametrize("size", [0.0, 1e-320, 1e100, 1e154, 1e308, np.inf, np.nan])
    @pytest.mark.parametrize("odd", ["coef", "mean", "spread", "baseline"])
    def test_the_layout_is_finite_and_sorted_whatever_was_released(self, odd, size):
        base = cells()
        value = size if odd == "spread" else size * np.ones_like(getattr(base, odd))
        layout = replace(base, **{odd: value})
        lower, upper = layout.group_ends
        for ends in (layout.inner_edges * layout.scale, lower, upper, layout.knots):
            assert np.isfinite(ends).all()
            assert (np.diff(ends) > 0).all()
        assert (lower < upper).all()
        assert math.isfinite(layout.center)
        assert (np.diff(layout.bands) >= 0).all()
        X, interval, event = people(10)
        assert counted(layout, X, interval, event).sum() == 10
        assert (np.abs(PLACES.values(placed(layout, X))) <= 0.5 * 10).all()


class TestPlaces:
    def test_squared_distance_of_any_two_places(self):
        """Within a group or in two, rounded as sums are: the root of what Gaussian noise hides."""
        p = np.linspace(-0.5, 0.5, 2001)
        p = np.concatenate([p, -0.5 + 2.0**-22 * np.arange(9), 0.5 - 2.0**-22 * np.arange(9)])
        steps = np.stack([np.rint(part * 2**20) for part in (p, 2.0 * p**2 - 0.25)])
        within = sum((part[:, None] - part) ** 2 for part in steps).max()
        apart = 2.0 * (steps**2).sum(axis=0).max()
        assert 2**40 < within <= PLACES.squared_distance < 1.00001 * 2**40
        assert apart <= 0.63 * 2**40

    def test_one_record_moves_them_by_three_halves_at_most(self):
        """In L1, over both sums of all groups: any two records may be exchanged."""
        layout, rng = cells(), np.random.default_rng(0)
        rows = rng.normal(size=(400, 2)) * np.geomspace(1e-3, 1e3, 400)[:, None]
        step = np.linspace(-4, 4, 401)[:, None] * layout.scale
        rows = np.concatenate([rows, layout.mean + step * [1.0, 0.0], [[1e308, 1e308]]])
        rows = np.concatenate([rows, [[1e308, -1e308], [-1e308, 1e308]]])
        own = [placed(layout, rows[i : i + 1]) for i in range(len(rows))]
        np.testing.assert_array_equal(placed(layout, rows), np.sum(own, axis=0))
        flat = np.array(own).reshape(len(rows), -1)
        moved = [np.abs(flat - one).sum(axis=1).max() for one in flat]
        assert max(moved) <= PLACES.sensitivity == 1.5 * 2**20
        assert max(moved) > 0.99 * PLACES.sensitivity

    def test_they_are_where_scores_are(self):
        layout = cells()
        lower, upper = layout.group_ends
        at = np.array([-0.5, -0.25, 0.0, 0.25, 0.4999])
        scores = (lower + upper)[2] / 2 + at * (upper - lower)[2]
        rows = layout.mean + np.outer(scores, [1.0, 0.0])
        rows[0, 0] += 1e-9  # an end belongs to the group below
        first, second = PLACES.values(placed(layout, rows))
        assert first[2] == pytest.approx(at.sum(), abs=1e-5)
        assert second[2] == pytest.approx((2 * at**2 - 0.25).sum(), abs=1e-5)
        assert not first[[0, 1, 3, 4, 5]].any()


class TestExitLaw:
    def rates(self, shape=(3, 2, 12), scale=0.2, seed=0):
        rng = np.random.default_rng(seed)
        return [scale * rng.random(shape) for _ in range(2)]

    in_band = np.repeat(np.eye(4), 3, axis=0)

    @pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.2, 30.0])
    def test_everybody_leaves_once(self, scale):
        event, censoring = self.rates(scale=scale)
        none = np.zeros((0, *event.shape))
        probability, _ = exit_probabilities(event, censoring, none, self.in_band)
        assert probability.shape == (3, 2, 9)
        assert (probability >= 0).all()
        np.testing.assert_allclose(probability.sum(axis=-1), 1.0, rtol=1e-12)

    @pytest.mark.parametrize("scale", [1e-9, 1e-4, 2e-3, 0.2, 3.0])
    def test_slopes_are_derivatives(self, scale):
        event, censoring = self.rates(scale=scale)
        a, _ = self.rates(scale=scale, seed=1)
        none = np.zeros((0, *event.shape))
        _, (slope,) = exit_probabilities(event, censoring, a[None], self.in_band)
        up, down = (
            exit_probabilities(event + h * a, censoring, none, self.in_band)[0]
            for h in (1e-5, -1e-5)
        )
        np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5, atol=1e-9)

    def test_constant_rates_have_a_closed_form(self):
        event, censoring = np.full((1, 12), 0.03), np.full((1, 12), 0.01)
        none = np.zeros((0, 1, 12))
        probability, _ = exit_probabilities(event, censoring, none, self.in_band)
        left = np.exp(-0.04 * np.array([0, 3, 6, 9, 12]))
        np.testing.assert_allclose(probability[0, :4], -np.diff(left) * 0.75, rtol=1e-12)
        np.testing.assert_allclose(probability[0, 4:8], -np.diff(left) * 0.25, rtol=1e-12)


class TestFit:
    @pytest.mark.parametrize("link", ["logit", "cloglog", "probit"])
    def test_slopes_of_chances(self, link):
        X, interval, event = people(500)
        layout = cells(link=link, level=-2.5 if link == "probit" else -3.0)
        counts, places = exact_table(layout, X, interval, event)
        table = _Table(layout, counts.astype(float), places, 1.0, 500, 1.0)
        at = np.array([0.1, -0.2, 0.15, 0.05, 0.6])
        for which in (0, 1):
            slopes = table.outcome_probabilities(at)[which + 2]
            for i, unit in enumerate(np.eye(at.size)):
                h = 1e-5
                up, down = (
                    table.outcome_probabilities(at + way * h * unit)[which] for way in (1, -1)
                )
                np.testing.assert_allclose(slopes[i], (up - down) / (2 * h), rtol=1e-4, atol=1e-7)

    def test_who_is_censored_evenly_misses_the_events_of_the_rest_of_a_band(self):
        """Of a constant hazard over a band, those who leave evenly have lambda (1 - p) / p left."""
        q, n_bands = 600, 3
        layout = RiskCells(
            COEF, np.full(q, math.log(3.0 / q)), LINKS["cloglog"], np.zeros(2), 1e-9, n_bands
        )
        nothing = np.zeros((2, n_bands))
        table = _Table(layout, np.ones(layout.shape), nothing, 1e9, 21, 1.0)
        event, later, *_ = table.outcome_probabilities(np.array([0.0, 0.0, 0.0, 0.0, 1.0]))
        hazard = np.bincount(layout.bands) * 3.0 / q
        right = -np.expm1(-hazard)
        np.testing.assert_allclose(event, np.tile(right, (n_bands, 1)), rtol=1e-5)
        left = 1.0 - hazard * (1.0 - right) / right
        np.testing.assert_allclose(later, np.tile(left, (n_bands, 1)), rtol=0.01)

    @pytest.mark.parametrize("link", ["logit", "cloglog"])
    def test_a_wrong_predictor_is_set_right(self, link):
        """Released: twice the slope, hazards e times too high, and no course."""
        n, q = 60_000, 40
        rng = np.random.default_rng(5)
        X = rng.normal(size=(n, 2)) / 2
        layout = RiskCells(COEF, np.full(q, -3.0), LINKS[link], np.zeros(2), 0.5 * math.sqrt(2))
        eta = -4.0 + 1.0 * np.linspace(0, 1, q) + 0.5 * (X @ COEF)[:, None]
        hazard = -np.expm1(-LINKS[link].survival(eta).value)
        happens = rng.random((n, q)) < hazard
        leaves = rng.integers(1, 3 * q, n)
        first = np.where(happens.any(axis=1), happens.argmax(axis=1) + 1, 10 * q)
        interval = np.minimum(np.minimum(first, leaves), q)
        event = (first <= leaves) & (first <= q)
        found = exact_fit(layout, X, interval, event)
        assert found.slope == pytest.approx(0.5, abs=0.05)
        ends = np.arange(1, q + 1) / q
        right = np.linspace(-1.0, 0.0, q)
        assert np.max(np.abs(found.at(ends) - right)) < 0.12

    def test_noise_alone_says_what_the_priors_say(self):
        layout, rng = cells(), np.random.default_rng(0)
        for scale in (1e4, 1e8, 1e15):
            noise = rng.laplace(scale=scale, size=layout.shape)
            places = rng.laplace(scale=scale, size=(2, N_GROUPS))
            found = fit_table(layout, noise, places, 500, (2.0 / scale, 1.5 / scale), 0.0)
            assert found.slope == pytest.approx(SLOPE, abs=0.05)
            shift = found.shift - layout.center * (1 - found.slope)
            assert np.max(np.abs(shift)) < 0.1 * sum(LINE_SCALES)

    @pytest.mark.parametrize("way", [-1.5, 1.5])
    def test_a_level_that_is_far_off_is_set_right(self, way):
        """With many columns, and so little signal, a table may know what coefficients do not."""
        n, q = 5_000, 40
        rng = np.random.default_rng(3)
        layout = RiskCells(
            COEF, np.full(q, -5.0 - way), LINKS["cloglog"], np.zeros(2), 0.8, groups_of(n, 0.085)
        )
        X = rng.uniform(-1, 1, (n, 2))
        first = np.ceil(rng.exponential(size=n) / math.exp(-4.0)).astype(np.int64)
        event, interval = first <= q, np.minimum(first, q)
        counts, places = exact_table(layout, X, interval, event)
        ends = np.arange(1, q + 1) / q
        survival = []
        for _ in range(5):
            noisy = counts + rng.laplace(scale=2.0 / 0.085, size=counts.shape)
            found = fit_table(layout, noisy, places, n, (0.085, 0.015), 0.25)
            eta = -5.0 - way + found.at(ends)
            survival.append(math.exp(-np.exp(eta).sum()))
        assert np.mean(survival) == pytest.approx(math.exp(-q * math.exp(-4.0)), abs=0.06)

    def test_tables_are_finer_the_less_noise_there_is(self):
        found = [groups_of(n, 0.1) for n in (100, 1_000, 10_000, 10**5, 10**6)]
        assert found == sorted(found)
        assert (found[0], found[-1]) == (LEAST_GROUPS, N_GROUPS)
        assert groups_of(1000, 1.0) == groups_of(10_000, 0.1)
        assert groups_of(1000, Concentrated(1.0)) >= groups_of(1000, 1.0)

    def test_outer_groups_are_wider_the_less_noise_there_is(self):
        found = [outer_width_of(n, 0.1) for n in (100, 10_000, 20_000, 10**5, 10**7)]
        assert found == sorted(found)
        assert (found[0], found[-1]) == OUTER_WIDTHS
        assert outer_width_of(2000, 1.0) == outer_width_of(20_000, 0.1)

    @pytest.mark.parametrize("columns", [1, 2, 30])
    def test_the_prior_slope_is_nearer_to_one_the_more_signal_there_is(self, columns):
        layout, nothing = cells(coef=np.ones(columns)), np.zeros((2, N_GROUPS))
        half = HALF_SIGNAL * math.sqrt(columns)
        found = [
            fit_table(layout, np.zeros(layout.shape), nothing, 500, (1e-8, 1e-8), signal).slope
            for signal in (0.0, half, 1e9)
        ]
        np.testing.assert_allclose(found, [SLOPE, (1.0 + SLOPE) / 2.0, 1.0], atol=2e-3)

    @pytest.mark.parametrize("value", [0.0, -1e3, 1e6, 1e200, -1e200])
    @pytest.mark.parametrize("q", [1, 3, 40])
    def test_any_table_gives_finite_numbers_and_keeps_ranks(self, value, q):
        layout = cells(q=q)
        for epsilon in (1e-3, 1.0, 1e6):
            with np.errstate(all="ignore"):
                places = np.full((2, N_GROUPS), value)
                counts = np.full(layout.shape, value)
                found = fit_table(layout, counts, places, 100, (epsilon, epsilon), 1.0)
            assert np.isfinite(found.shift).all()
            assert LEAST_SLOPE <= found.slope < 1e3

    def test_what_it_costs_is_what_the_table_is_given(self, monkeypatch):
        """The only thing that reads records, with the sensitivity of a histogram."""
        seen = queries_without_noise(monkeypatch)
        X, interval, event = people(300)
        blocks = InMemory(
            [
                HazardRecords(X[:100], interval[:100], event[:100]),
                HazardRecords(X[100:], interval[100:], event[100:]),
            ]
        )
        model = HazardModel("logit", 40, 3, 1000, 2, 1.5, "auto", 0.4)
        fit, prices = fit_of(model, 3.0, "obj_pert", 0.0, (0.0, 0.1, 0.0))
        epsilon = prices[1]  # 0.3, of which two rounded parts are more than the whole
        (node,) = (n for n in perturbed_plan(fit, prices).tree.nodes if isinstance(n, Sequential))
        known = {"_fitted": (np.linspace(-3.0, -2.0, 40), COEF)}
        node.run(known, blocks, random_source(0))
        layout = cells_of(fit, known, node.nodes[0].price)
        (table, places) = seen
        assert table[0] == 2
        assert places[0] == 1.5 * 2**20
        assert table[2] + places[2] == pytest.approx(epsilon, rel=1e-12)
        assert Fraction(table[2]) + Fraction(places[2]) <= Fraction(epsilon)
        np.testing.assert_array_equal(table[1], counted(layout, X, interval, event))
        np.testing.assert_array_equal(places[1], placed(layout, X))

    @pytest.mark.parametrize("kind", ["binary", "skewed", "uniform"])
    def test_scores_need_not_be_normal(self, kind):
        """A predictor that is right stays right, whatever the law of its scores is."""
        n, q = 60_000, 40
        rng = np.random.default_rng(7)
        x = {
            "binary": np.where(rng.random(n) < 0.5, 1.0, -1.0),
            "skewed": 2 * np.clip(rng.exponential(0.2, n), 0, 1) - 1,
            "uniform": rng.uniform(-1, 1, n),
        }[kind]
        baseline = np.full(q, -3.5)
        layout = RiskCells(
            np.ones(1),
            baseline,
            LINKS["cloglog"],
            np.array([x.mean()]),
            math.sqrt(1 - x.mean() ** 2),
        )
        leaves = np.minimum(rng.exponential(size=n) / np.exp(-3.5 + x), q * 0.999999)
        drops = rng.uniform(0, 1.5 * q, n)
        event = (leaves <= drops) & (leaves < q * 0.99)
        interval = np.minimum(np.ceil(np.minimum(leaves, drops)), q).astype(np.int64)
        found = exact_fit(layout, x[:, None], interval, event)
        risks = np.array([-1.0, 0.0, 1.0])
        hazard = np.exp(-3.5 + risks) * q
        ends = np.arange(1, q + 1) / q
        eta = baseline + found.at(ends) + found.slope * risks[:, None]
        again = np.exp(eta).sum(axis=1)
        assert np.max(np.abs(np.exp(-again) - np.exp(-hazard))) < 0.03


class TestConsistency:
    """Of expected counts the fit is that of exact numbers at risk and of events."""

    @pytest.mark.parametrize("leaving", ["late entry", "the middle leaves", "nobody"])
    @pytest.mark.parametrize(
        ("n", "prices", "signal"), [(40_000, (0.255, 0.045), 10.0), (10_000_000, (1e6, 1e6), 1e9)]
    )
    def test_three_atoms_and_censoring_by_group(self, leaving, n, prices, signal):
        """No law of scores, and none of censoring, is supposed."""
        q = 60
        atoms, parts = np.array([-1.0, 0.0, 1.0]), np.array([0.6, 0.3, 0.1])
        layout = RiskCells(
            np.array([1.0]), np.full(q, -7.0), LINKS["cloglog"], np.array([parts @ atoms]), 0.67
        )
        truth = -7.3 + 0.8 * atoms[:, None] + np.linspace(0.0, 0.6, q)
        hazard = -np.expm1(-np.exp(truth))
        rate = {
            "late entry": [np.where(layout.bands == k, 0.1, 0.0) for k in (5, 4, 0)],
            "the middle leaves": [np.full(q, r) for r in (0.0005, 0.1, 0.0005)],
            "nobody": [np.zeros(q)] * 3,
        }[leaving]
        counts, places = np.zeros(layout.shape), np.zeros((2, N_GROUPS))
        for k, atom in enumerate(atoms):
            row = np.array([[atom]])
            alive = n * parts[k]
            own, place = exact_table(layout, row, np.array([1]), np.array([True]))
            group = int(np.argmax(own.sum(axis=1)))
            places += place * alive
            for i in range(q):
                lost = 0.0 if i == q - 1 else rate[k][i]
                event = alive * hazard[k, i] * (1.0 - lost / 2.0)
                censored = alive * lost * (1.0 - hazard[k, i] / 2.0)
                counts[group, layout.bands[i]] += event
                counts[group, layout.n_bands + layout.bands[i]] += censored
                alive -= event + censored
            counts[group, -1] += alive
        found = fit_table(layout, counts, places, n, prices, signal)
        eta = -7.0 + found.at(np.arange(1, q + 1) / q) + found.slope * atoms[:, None]
        survival, right = (np.exp(-np.cumsum(np.exp(e), axis=1)) for e in (eta, truth))
        assert np.max(np.abs(survival - right)) < 0.01


def exact_fit(layout, X, interval, event):
    """Fit a table without noise."""
    counts, places = exact_table(layout, X, interval, event)
    return fit_table(layout, counts.astype(float), places, len(X), (1e6, 1e6), 1e9)


def simulated(n=7000, d=10, seed=0):
    """Proportional hazards, constant in time: records, and everybody's survival at half time."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    eta = X[:, :5] @ [1.0, -1.0, 0.5, -0.5, 0.25]
    rate = np.exp(eta) * 1.75
    time = rng.exponential(size=n) / rate
    y = np.array(list(zip(time <= 1, np.minimum(time, 1), strict=True)), dtype="?,f8")
    return X, y, eta, np.exp(-rate / 2)


class TestPredictions:
    def test_absolute_risk_by_fifths_of_true_risk(self):
        """Three in four have an event, which a cap alone does not survive."""
        X, y, eta, truth = simulated()
        fifth = np.argsort(np.argsort(eta)) * 5 // eta.size
        means = []
        for seed in range(3):
            fit = DPDiscreteTimeSurvival(max_time=1.0, random_state=seed).fit(X, y)
            survival = fit.predict_survival_function(X, return_array=True)[:, 99]
            means.append([(survival - truth)[fifth == k].mean() for k in range(5)])
        assert np.max(np.abs(np.mean(means, axis=0))) < 0.03

    def test_people_with_rare_values_do_not_spoil_the_level_of_others(self):
        """Their scores are far from the mean, and rows with them are clipped in the fit."""
        n, d = 12_000, 7
        rng = np.random.default_rng(0)
        X = np.where(rng.random((n, d)) < 0.04, 1.0, -1.0)
        n_rare = (X > 0).sum(axis=1)
        time = rng.exponential(size=n) / (0.1 * np.exp(0.75 * n_rare))
        y = np.array(list(zip(time <= 1, np.minimum(time, 1), strict=True)), dtype="?,f8")
        fit = DPDiscreteTimeSurvival(3.0, max_time=1.0, random_state=1).fit(X, y)
        survival = fit.predict_survival_function(X, return_array=True)[:, -1]
        for k in (0, 1):
            assert survival[n_rare == k].mean() == pytest.approx(
                math.exp(-0.1 * math.exp(0.75 * k)), abs=0.02
            )

    def test_ranks_stay_what_they_are(self):
        X, y, *_ = simulated(500, 5)
        fit = DPDiscreteTimeSurvival(max_time=1.0, random_state=0).fit(X, y)
        order = np.argsort(fit.predict(X))
        for survival in fit.predict_survival_function(X, return_array=True)[order].T:
            assert (np.diff(survival) <= 0).all()

    def test_without_a_share_nothing_is_added(self):
        X, y, *_ = simulated(500, 5)
        fit = DPDiscreteTimeSurvival(max_time=1.0, recalibration_share=0.0, random_state=0).fit(
            X, y
        )
        own = {"evidence_coef", "evidence_error"}
        assert set(fit.release_.values) == {"coef", "baseline_coef"} | own
        assert fit.recalibration_.slope == 1.0
        assert not fit.recalibration_.at(fit.unique_times_).any()

    def test_the_release_holds_coefficients_as_they_were_released(self):
        X, y, *_ = simulated(500, 5)
        fit = DPDiscreteTimeSurvival(max_time=30.0, random_state=0)
        y["f1"] *= 30.0
        fit.fit(X, y)
        again = DPDiscreteTimeSurvival.from_release(Release.from_json(fit.release_.to_json()))
        np.testing.assert_array_equal(again.coef_, fit.coef_)
        assert again.recalibration_.slope == fit.recalibration_.slope
        assert fit.recalibration_.knots[-1] == 1.0
        np.testing.assert_array_equal(
            again.predict_survival_function(X, return_array=True),
            fit.predict_survival_function(X, return_array=True),
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"recalibration_slope": -1.0},
            {"recalibration_slope": [1.0]},
            {"recalibration_knots": [0.0]},
            {"recalibration_knots": [0.0, 0.0, 1.0]},
            {"recalibration_knots": [0.1, 0.5, 1.0]},
            {"recalibration_knots": [0.0, 0.5, 2.0]},
            {"recalibration_knots": [0.0, 5e-324, 1.0]},
            {"recalibration_shift": [1e308, -1e308, 1e308]},
            {"recalibration_shift": [0.0, 1.0]},
            {"recalibration_shift": None},
        ],
    )
    def test_crafted_recalibrations_are_refused(self, change):
        values = {
            "recalibration_slope": 0.5,
            "recalibration_knots": [0.0, 0.5, 1.0],
            "recalibration_shift": [0.1, 0.2, 0.3],
        } | change
        X, y, *_ = simulated(300, 5)
        release = DPDiscreteTimeSurvival(max_time=1.0, random_state=0).fit(X, y).release_
        kept = dict(release.values) | values
        kept = {name: value for name, value in kept.items() if value is not None}
        crafted = Release(
            release.estimator, release.guarantee, release.parameters, kept, release.n_features_in
        )
        with pytest.raises(ValueError, match="recalibration"):
            DPDiscreteTimeSurvival.from_release(crafted)


def test_an_identity_changes_nothing():
    assert Recalibration().slope == 1.0
    np.testing.assert_array_equal(Recalibration().at(np.array([0.0, 0.5, 1.0])), np.zeros(3))
    assert Recalibration() != Recalibration()


@pytest.mark.parametrize("how", ["nan", "error"])
def test_a_singular_step_falls_back_on_the_priors(monkeypatch, how):
    """What cannot be fitted must not fail: a failure would tell of the table."""

    def solve(a, b):
        if how == "error":
            raise np.linalg.LinAlgError
        return np.full(b.shape, np.nan)

    monkeypatch.setattr(recalibration.np.linalg, "solve", solve)
    layout = cells()
    places = np.zeros((2, N_GROUPS))
    found = fit_table(layout, np.ones(layout.shape), places, 100, (1.0, 1.0), 0.0)
    assert found.slope == pytest.approx(SLOPE, rel=1e-12)
