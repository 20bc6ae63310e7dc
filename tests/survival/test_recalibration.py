"""One table of risks over time: its cells, what is expected in them, and what is fitted to it."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv import DPDiscreteTimeSurvival, Release
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.dp.plan import Sequential
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards import recalibration, risk_layout
from skdpsurv.survival.hazards.fit_plan import fit_of, perturbed_plan
from skdpsurv.survival.hazards.model import HazardModel, HazardRecords
from skdpsurv.survival.hazards.outcome_probabilities import outcome_probabilities
from skdpsurv.survival.hazards.recalibration import fit_table
from skdpsurv.survival.hazards.risk_layout import N_GROUPS, POSITIONS, RiskLayout
from tests.support.combinations import thinned
from tests.support.spies import queries_without_noise
from tests.support.weibull import target

COEF, SLOPE = np.array([1.0, -0.5]), recalibration.SLOPE


def exact_table(layout, X, interval, event):
    seen = Histories(interval, event)
    return layout.counts(X, seen), POSITIONS.values(layout.positions(X, seen))


def cells(q=40, level=-3.0, coef=COEF, link="logit", course=1.0):
    baseline = level + course * np.linspace(0.0, 1.0, q)
    return RiskLayout(coef, baseline, LINKS[link], np.full(coef.size, 0.1), 0.8)


def people(n, seed=0, q=40):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, COEF.size))
    return X, rng.integers(1, q + 1, n), rng.random(n) < 0.5


class TestCells:
    def test_each_record_is_in_one_cell_whatever_the_others_are(self):
        """Which makes 2 the sensitivity: the table is the sum of the records' own tables."""
        X, interval, event = people(200)
        X[:4] = [[1e308, -1e308], [-1e308, 1e308], [1e308, 1e308], [0.1, 0.1]]
        layout, each = cells(), [slice(i, i + 1) for i in range(200)]
        with np.errstate(over="ignore", invalid="ignore"):
            whole = layout.counts(X, Histories(interval, event))
            own = [layout.counts(X[i], Histories(interval[i], event[i])) for i in each]
            for rows in (np.asfortranarray(X), X[:, ::-1][:, ::-1]):
                np.testing.assert_array_equal(
                    layout.counts(rows, Histories(interval, event)), whole
                )
        assert all(one.sum() == 1 and one.max() == 1 for one in own)
        np.testing.assert_array_equal(whole, np.sum(own, axis=0))

    def test_outcomes_and_groups(self):
        """Events by band, censored by band, and those who reach the horizon."""
        layout = cells()
        X, n = np.full((4, 2), 0.1), layout.n_bands
        interval, event = np.array([1, 1, 40, 40]), np.array([True, False, False, True])
        table = layout.counts(X, Histories(interval, event))
        assert np.flatnonzero(table.sum(axis=0)).tolist() == [0, n - 1, n, 2 * n]
        # Groups are of scores less that of the mean, which this moves by standard deviations.
        steps = np.array([-9, -1, 0, 1, 9])[:, None] + 0.01
        rows = layout.mean + steps * layout.scale * [1.0, 0.0]
        table = layout.counts(rows, Histories(np.ones(5, dtype=int), np.ones(5, dtype=bool)))
        assert np.flatnonzero(table.sum(axis=1)).tolist() == [0, 1, 3, 4, 5]

    def test_bands_cover_the_grid_in_order(self):
        for q, level in itertools.product([1, 2, 5, 40, 1000], [-80.0, -9.0, -2.0, 60.0]):
            layout = cells(q=q, level=level)
            bands, knots = layout.bands, layout.knots
            assert bands.shape == (q,)
            assert (np.diff(bands) >= 0).all()
            assert bands[-1] == layout.n_bands - 1 == min(q, N_GROUPS) - 1
            assert (knots[0], knots[-1]) == (0.0, pytest.approx(1.0))
            assert (np.diff(knots) > 0).all()

    @pytest.mark.parametrize("odd", ["coef", "mean", "spread", "baseline"])
    def test_the_layout_is_finite_and_sorted_whatever_was_released(self, odd):
        base, (X, interval, event) = cells(), people(10)
        for size in (0.0, 1e-320, 1e100, 1e154, 1e308, np.inf, np.nan):
            value = size if odd == "spread" else size * np.ones_like(getattr(base, odd))
            layout = replace(base, **{odd: value})
            lower, upper = layout.group_ends
            for ends in (layout.inner_edges * layout.scale, lower, upper, layout.knots):
                assert np.isfinite(ends).all()
                assert (np.diff(ends) > 0).all()
            assert (lower < upper).all()
            assert math.isfinite(layout.center)
            assert (np.diff(layout.bands) >= 0).all()
            seen = Histories(interval, event)
            assert layout.counts(X, seen).sum() == 10
            assert (np.abs(POSITIONS.values(layout.positions(X, seen))) <= 0.5 * 10).all()


class TestPositions:
    def test_squared_distance_of_any_two_positions(self):
        """Within a group or in two, rounded as sums are: the root of what Gaussian noise hides."""
        p = np.linspace(-0.5, 0.5, 2001)
        p = np.concatenate([p, -0.5 + 2.0**-22 * np.arange(9), 0.5 - 2.0**-22 * np.arange(9)])
        steps = np.stack([np.rint(part * 2**20) for part in (p, 2.0 * p**2 - 0.25)])
        within = sum((part[:, None] - part) ** 2 for part in steps).max()
        apart = 2.0 * (steps**2).sum(axis=0).max()
        assert 2**40 < within <= POSITIONS.squared_distance < 1.00001 * 2**40
        assert apart <= 0.63 * 2**40

    def test_one_record_moves_them_by_three_halves_at_most(self):
        """In L1, over both sums of all groups: any two records may be exchanged."""
        layout, rng = cells(), np.random.default_rng(0)
        rows = rng.normal(size=(400, 2)) * np.geomspace(1e-3, 1e3, 400)[:, None]
        step = np.linspace(-4, 4, 401)[:, None] * layout.scale
        rows = np.concatenate([rows, layout.mean + step * [1.0, 0.0], [[1e308, 1e308]]])
        rows = np.concatenate([rows, [[1e308, -1e308], [-1e308, 1e308]]])
        seen = Histories(np.ones(len(rows), int), np.ones(len(rows), bool))
        own = [layout.positions(rows[i : i + 1], seen) for i in range(len(rows))]
        np.testing.assert_array_equal(layout.positions(rows, seen), np.sum(own, axis=0))
        flat = np.array(own).reshape(len(rows), -1)
        moved = [np.abs(flat - one).sum(axis=1).max() for one in flat]
        assert max(moved) <= POSITIONS.sensitivity == 1.5 * 2**20
        assert max(moved) > 0.99 * POSITIONS.sensitivity

    def test_they_are_where_scores_are(self):
        layout = cells()
        lower, upper = layout.group_ends
        at = np.array([-0.5, -0.25, 0.0, 0.25, 0.4999])
        scores = (lower + upper)[2] / 2 + at * (upper - lower)[2]
        rows = layout.mean + np.outer(scores, [1.0, 0.0])
        rows[0, 0] += 1e-9  # an end belongs to the group below
        first, second = POSITIONS.values(layout.positions(rows, Histories(np.ones(5), np.ones(5))))
        assert first[2] == pytest.approx(at.sum(), abs=1e-5)
        assert second[2] == pytest.approx((2 * at**2 - 0.25).sum(), abs=1e-5)
        assert not first[[0, 1, 3, 4, 5]].any()


def test_everybody_leaves_once_and_slopes_are_derivatives():
    in_band = np.repeat(np.eye(4), 3, axis=0)
    rng = np.random.default_rng(0)
    for scale in [1e-9, 1e-4, 2e-3, 0.2, 3.0, 30.0]:
        event, censoring, a = scale * rng.random((3, 3, 2, 12))
        none = np.zeros((0, *event.shape))
        probability, (slope,) = outcome_probabilities(event, censoring, a[None], in_band)
        assert probability.shape == (3, 2, 9)
        assert (probability >= 0).all()
        np.testing.assert_allclose(probability.sum(axis=-1), 1.0, rtol=1e-12)
        up, down = (
            outcome_probabilities(event + h * a, censoring, none, in_band)[0] for h in (1e-5, -1e-5)
        )
        np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5, atol=1e-9)


class TestFit:
    @pytest.mark.parametrize("link", LINKS)
    def test_slopes_of_outcome_probabilities(self, link):
        X, interval, event = people(500)
        layout = cells(link=link, level=-2.5 if link == "probit" else -3.0)
        counts, places = exact_table(layout, X, interval, event)
        how = layout.baseline, 1.0, 500.0, 1.0
        table = recalibration._Table(layout, counts.astype(float), places, *how)
        at = np.array([0.1, -0.2, 0.15, 0.05, 0.6])
        for which in (0, 1):
            slopes = table.outcome_probabilities(at)[which + 2]
            for i, unit in enumerate(np.eye(at.size)):
                h = 1e-5
                up, down = (
                    table.outcome_probabilities(at + way * h * unit)[which] for way in (1, -1)
                )
                np.testing.assert_allclose(slopes[i], (up - down) / (2 * h), rtol=1e-4, atol=1e-7)

    def test_tables_are_finer_the_less_noise_there_is(self):
        """And outer groups wider."""
        sizes = (100, 1_000, 10_000, 20_000, 10**5, 10**7)
        for made, ends in (
            (risk_layout.groups_of, (risk_layout.LEAST_GROUPS, N_GROUPS)),
            (risk_layout.outer_width_of, risk_layout.OUTER_WIDTHS),
        ):
            found = [made(n, 0.1) for n in sizes]
            assert found == sorted(found)
            assert (found[0], found[-1]) == ends
            assert made(2000, 1.0) == made(20_000, 0.1)
        groups_of = risk_layout.groups_of
        assert groups_of(1000, Concentrated(1.0)) >= groups_of(1000, 1.0)

    def test_the_prior_slope_is_nearer_to_one_the_more_information_there_is(self):
        for columns in [1, 2, 30]:
            layout, nothing = cells(coef=np.ones(columns)), np.zeros((2, N_GROUPS))
            half = recalibration.HALF_SIGNAL * math.sqrt(columns)
            found = [
                fit_table(layout, np.zeros(layout.shape), nothing, 500, (1e-8, 1e-8), signal).slope
                for signal in (0.0, half, 1e9)
            ]
            np.testing.assert_allclose(found, [SLOPE, (1.0 + SLOPE) / 2.0, 1.0], atol=2e-3)

    def test_any_table_gives_finite_numbers_and_keeps_ranks(self):
        for value, q in itertools.product([0.0, -1e3, 1e6, 1e200, -1e200], [1, 3, 40]):
            layout = cells(q=q)
            for epsilon in (1e-3, 1.0, 1e6):
                with np.errstate(all="ignore"):
                    places = np.full((2, N_GROUPS), value)
                    counts = np.full(layout.shape, value)
                    found = fit_table(layout, counts, places, 100, (epsilon, epsilon), 1.0)
                assert np.isfinite(found.shift).all()
                assert recalibration.LEAST_SLOPE <= found.slope < 1e3

    def test_what_it_costs_is_what_the_table_is_given(self, monkeypatch):
        """The only thing that reads records, with the sensitivity of a histogram."""
        seen = queries_without_noise(monkeypatch)
        X, interval, event = people(300)
        parts = [
            HazardRecords(X[rows], Histories(interval[rows], event[rows]))
            for rows in (slice(100), slice(100, None))
        ]
        model = HazardModel("logit", 40, 3, 1000, 2, 1.5, "auto", 0.4)
        fit, prices = fit_of(model, 3.0, "obj_pert", 0.0, (0.0, 0.1, 0.0))
        epsilon = prices[1]  # 0.3, of which two rounded parts are more than the whole
        (node,) = (n for n in perturbed_plan(fit, prices).tree.nodes if isinstance(n, Sequential))
        known = {"_fitted": (np.linspace(-3.0, -2.0, 40), COEF)}
        node.run(known, InMemory(parts), random_source(0))
        layout = recalibration.layout_of(fit, known, node.nodes[0].price)
        (table, places) = seen
        assert (table[0], places[0]) == (2, 1.5 * 2**20)
        assert table[2] + places[2] == pytest.approx(epsilon, rel=1e-12)
        assert Fraction(table[2]) + Fraction(places[2]) <= Fraction(epsilon)
        np.testing.assert_array_equal(table[1], layout.counts(X, Histories(interval, event)))
        np.testing.assert_array_equal(places[1], layout.positions(X, Histories(interval, event)))


class TestConsistency:
    """Of expected counts the fit is that of exact numbers at risk and of events."""

    @pytest.mark.parametrize(
        ("leaving", "noise"),
        thinned(
            ["late entry", "the middle leaves", "nobody"],
            [(40_000, (0.255, 0.045), 10.0), (10_000_000, (1e6, 1e6), 1e9)],
        ),
        ids=str,
    )
    def test_three_atoms_and_censoring_by_group(self, leaving, noise):
        """No distribution of scores, and none of censoring, is supposed."""
        n, prices, signal = noise
        q = 60
        atoms, parts = np.array([-1.0, 0.0, 1.0]), np.array([0.6, 0.3, 0.1])
        layout = RiskLayout(
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


def simulated(n=7000, d=10, seed=0):
    """Proportional hazards, constant in time: records, and everybody's survival at half time."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    eta = X[:, :5] @ [1.0, -1.0, 0.5, -0.5, 0.25]
    rate = np.exp(eta) * 1.75
    time = rng.exponential(size=n) / rate
    return X, target(time <= 1, np.minimum(time, 1)), eta, np.exp(-rate / 2)


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

    def test_the_release_holds_coefficients_as_they_were_released(self):
        X, y, *_ = simulated(500, 5)
        y["time"] *= 30.0
        fit = DPDiscreteTimeSurvival(max_time=30.0, random_state=0).fit(X, y)
        again = DPDiscreteTimeSurvival.from_release(Release.from_json(fit.release_.to_json()))
        np.testing.assert_array_equal(again.coef_, fit.coef_)
        assert again.recalibration_.slope == fit.recalibration_.slope
        assert fit.recalibration_.knots[-1] == 1.0
        found, same = (one.predict_survival_function(X, return_array=True) for one in (fit, again))
        np.testing.assert_array_equal(found, same)

    def test_crafted_recalibrations_are_refused(self):
        X, y, *_ = simulated(300, 5)
        release = DPDiscreteTimeSurvival(max_time=1.0, random_state=0).fit(X, y).release_
        own = {"slope": 0.5, "knots": [0.0, 0.5, 1.0], "shift": [0.1, 0.2, 0.3]}
        changes = [{"slope": slope} for slope in (-1.0, [1.0])]
        no_knots = [0.0], [0.0, 0.0, 1.0], [0.1, 0.5, 1.0], [0.0, 0.5, 2.0], [0.0, 5e-324, 1.0]
        changes += [{"knots": knots} for knots in no_knots]
        changes += [{"shift": shift} for shift in ([1e308, -1e308, 1e308], [0.0, 1.0], None)]
        for change in changes:
            crafted = {f"recalibration_{name}": v for name, v in {**own, **change}.items()}
            values = {k: v for k, v in {**release.values, **crafted}.items() if v is not None}
            with pytest.raises(ValueError, match="recalibration"):
                DPDiscreteTimeSurvival.from_release(replace(release, values=values))


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
