"""Recalibration with strata: its joint table, lines by stratum, one slope, and its releases."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, PublicColumns, Release
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.data.target import survival_target
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.report import formula
from skdpsurv.survival.hazards import recalibration
from skdpsurv.survival.hazards.fit import STRATUM_RECORDS
from skdpsurv.survival.hazards.model import HazardRecords
from skdpsurv.survival.hazards.recalibration import HISTOGRAM, RiskPositions, fit_table
from skdpsurv.survival.hazards.risk_layout import POSITIONS, RiskLayout
from tests.test_scoring import run_text

COEF, Q, G = np.array([1.0, -0.5]), 40, 3


def cells(q=Q, **options):
    baseline = np.linspace(-4.0, -2.5, G)[:, None] + np.linspace(0.0, 1.0, q)
    return RiskLayout(COEF, baseline, LINKS["logit"], np.zeros(2), 0.8, **options)


def records(rng, n, q=Q, late=False):
    X = rng.normal(size=(n, 2)) * rng.choice([0.1, 1.0, 1e3], (n, 1))
    leaves, enters = rng.integers(1, q + 1, n), rng.integers(0, q + 1, n)
    stratum = rng.integers(0, G, n)
    return X, Histories(leaves, rng.random(n) < 0.5, enters if late else None, stratum)


class TestSensitivity:
    """A record is in one cell of stratum, group and outcome, which another's do not move."""

    @pytest.mark.parametrize("late", [False, True])
    @pytest.mark.parametrize("q", [1, 3, Q])
    def test_replacing_a_record_moves_two_cells_by_one(self, q, late):
        layout, n = cells(q, has_entry=late), 300
        X, seen = records(np.random.default_rng(q), n, q, late)
        own = [layout.counts(X[i : i + 1], seen.take(slice(i, i + 1))).ravel() for i in range(n)]
        own = np.array(own)
        assert set(own.sum(axis=1)) == set(own.max(axis=1)) == {1}
        np.testing.assert_array_equal(layout.counts(X, seen).ravel(), own.sum(axis=0))
        assert np.abs(own[:, None] - own[None, :50]).sum(axis=2).max() == HISTOGRAM.sensitivity == 2
        by_stratum = layout.counts(X, seen).reshape(G, -1).sum(axis=1)
        np.testing.assert_array_equal(by_stratum, np.bincount(seen.stratum, minlength=G))

    @pytest.mark.parametrize("late", [False, True])
    def test_replacing_a_record_moves_positions_by_their_sensitivity(self, monkeypatch, late):
        layout = cells(has_entry=late)
        monkeypatch.setattr(recalibration, "layout_of", lambda *_: layout)
        query = SimpleNamespace(fit=None, table_price=1.0, cause=0)
        X, seen = records(np.random.default_rng(0), 300, late=late)

        def answer(rows):
            block = HazardRecords(X[rows], seen.take(rows))
            return RiskPositions.exact_answer(query, None, InMemory([block])).ravel()

        own = np.array([answer(slice(i, i + 1)) for i in range(300)])
        np.testing.assert_array_equal(answer(slice(None)), own.sum(axis=0))
        assert own.shape[1] == 2 * G * layout.n_groups
        apart = own[:, None] - own[:100]
        assert np.abs(apart).sum(axis=2).max() <= POSITIONS.sensitivity
        assert (apart**2).sum(axis=2).max() <= POSITIONS.squared_distance


def test_a_table_without_noise_finds_the_line_of_each_stratum_and_one_slope():
    """Levels and courses that differ by stratum, whose scores have other means, come back."""
    rng, n, q = np.random.default_rng(0), 300_000, 60
    stratum = rng.integers(0, G, n)
    X = rng.normal(size=(n, 2)) * 0.7 + np.array([-0.6, 0.0, 0.6])[stratum][:, None] * [1.0, 0.0]
    t = (np.arange(q) + 0.5) / q
    level = np.array([-5.0, -4.0, -4.5])[:, None] + np.array([0.0, 1.0, -0.8])[:, None] * t
    off = np.array([0.3, -0.2, 0.1])[:, None] + np.array([-0.4, 0.3, 0.0])[:, None] * t
    hazard = -np.expm1(-np.exp((level + off)[stratum] + 1.5 * (X @ [0.6, -0.4])[:, None]))
    is_event = rng.random((n, q)) < hazard
    lost = rng.integers(1, 2 * q, n)
    first = np.where(is_event.any(axis=1), is_event.argmax(axis=1) + 1, q + 1)
    seen = Histories(np.minimum(np.minimum(first, lost), q), first <= np.minimum(lost, q))
    seen = Histories(seen.exit, seen.cause, None, stratum)
    layout = RiskLayout(np.array([0.6, -0.4]), level, LINKS["cloglog"], np.zeros(2), 0.8)
    counts = layout.counts(X, seen).astype(float)
    places = POSITIONS.values(layout.positions(X, seen))
    found = fit_table(layout, counts, places, n, (1e5, 1e5), 1e5)
    assert found.slope == pytest.approx(1.5, abs=0.06)
    assert found.shift.shape == (G, layout.knots.size)
    # In each stratum risks are those of its people, by quarters of the horizon.
    for g in range(G):
        score = (X[stratum == g] @ [0.6, -0.4])[:20_000, None]
        fitted, true = (
            np.exp(-np.cumsum(np.exp(eta), axis=1))[:, q // 4 - 1 :: q // 4].mean(axis=0)
            for eta in (
                level[g] + found.at(t)[g] + found.slope * score,
                (level + off)[g] + 1.5 * score,
            )
        )
        np.testing.assert_allclose(fitted, true, atol=0.012)


def test_levels_stay_apart_whatever_the_slope():
    """Noise alone says nothing, so that lines stay 0 at the mean score of each stratum."""
    layout = cells()
    nothing = np.zeros((2, layout.shape[0]))
    found = fit_table(layout, np.zeros(layout.shape), nothing, 500, (1e-8, 1e-8), 0.0)
    assert found.slope < 0.1
    np.testing.assert_allclose(found.shift, 0.0, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1e3, 1e6, 1e200, -1e200])
def test_any_table_gives_finite_numbers(value):
    for q in (1, 3, Q):
        for epsilon in (1e-3, 1.0, 1e6):
            layout = cells(q)
            places = np.full((2, layout.shape[0]), value)
            counts = np.full(layout.shape, value)
            found = fit_table(layout, counts, places, 100, (epsilon, epsilon), 1.0)
            assert np.isfinite(found.shift).all()
            assert recalibration.LEAST_SLOPE <= found.slope < 1e3


SITES = ["A", "B", "C"]
COLUMNS = PublicColumns({"site": SITES, "x": (-2, 2), "z": (-2, 2)})


def people(n, seed):
    """Sites with other hazards and other means of x; and the truth at quarters of the horizon."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 3, n)
    x, z = np.clip(0.6 * rng.normal(size=(2, n)) + [0.5 * (site - 1), 0.0 * site], -2, 2)
    shape, rate = np.array([0.7, 1.0, 1.8])[site], np.array([0.5, 1.0, 0.3])[site]
    rate = rate * np.exp(0.9 * x - 0.6 * z)
    time = (rng.exponential(size=n) / rate) ** (1.0 / shape)
    last = rng.uniform(0.0, 4.0, n)
    X = pd.DataFrame({"site": np.array(SITES)[site], "x": x, "z": z})
    truth = np.exp(-rate[:, None] * np.array([0.5, 1.0, 1.5, 2.0]) ** shape[:, None])
    return X, survival_target(time <= last, np.minimum(time, last)), truth


def fitted(X, y, epsilon=3.0, seed=0, columns=COLUMNS, **options):
    how = {"columns": columns, "strata": "site", "max_time": 2.0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entry = {"entry": how.pop("entry")} if "entry" in how else {}
        return DPDiscreteTimeSurvival(epsilon, random_state=seed, **how).fit(X, y, **entry)


@pytest.mark.slow
def test_private_risks_are_nearer_to_the_truth_in_each_stratum():
    """At quarters of the horizon, of other people: the mean of 5 fits is 8 errors away."""
    (X, y, _), (other, _, truth) = people(20_000, 1), people(5000, 2)
    gaps = []
    for share in (0.0, 0.1):
        found = []
        for seed in range(5):
            model = fitted(X, y, 8.0, seed, recalibration_share=share)
            curves = model.predict_survival_function(other, return_array=True)[:, 49::50]
            own = [(other.site == site).to_numpy() for site in SITES]
            found.append([np.abs((curves - truth)[rows].mean(axis=0)) for rows in own])
        gaps.append(np.mean(found))
    assert gaps[1] < gaps[0]
    assert gaps[1] < 0.01


def test_the_default_recalibrates_and_a_release_stands_alone():
    X, y, _ = people(2000, 3)
    for late in ({}, {"entry": np.where(X.site == "A", 0.1, 0.0)}):
        model = fitted(X, y, 5.0, n_intervals=20, **late)
        assert model.recalibration_.shift.shape == (3, model.recalibration_.knots.size)
        assert model.recalibration_.slope != 1.0
        again = DPDiscreteTimeSurvival.from_release(Release.from_json(model.release_.to_json()))
        found = model.predict_survival_function(X, return_array=True)
        same = again.predict_survival_function(X, return_array=True)
        np.testing.assert_array_equal(found, same)
    rows = X.head(9)
    assert "bend" in formula(model.release_)
    survival = run_text(model, rows, model.release_.features)["survival"]
    np.testing.assert_allclose(survival(1.0), found[:9, 9], rtol=1e-12)
    for shape in ((), (1,), (4,), (3, 1)):
        content = json.loads(model.release_.to_json())
        wrong = np.zeros((*shape, model.recalibration_.knots.size)).tolist()
        content["values"]["recalibration_shift"] = wrong
        with pytest.raises(ValueError, match=r"recalibration_shift|must hold"):
            DPDiscreteTimeSurvival.from_release(Release.from_json(json.dumps(content)))


def test_few_people_in_a_stratum_have_no_table_and_its_share_is_kept():
    """By public numbers alone; the default is then no error, and costs the fit nothing."""
    X, y, _ = people(500, 4)
    epsilon = STRATUM_RECORDS * 3 / 500
    below, above = (fitted(X, y, factor * epsilon) for factor in (0.99, 1.01))
    assert below.recalibration_.slope == 1.0
    assert not below.recalibration_.shift.any()
    spent = [one.guarantee_.public_inputs["epsilon_recalibration"] for one in (below, above)]
    assert spent == [0.0, pytest.approx(0.1 * 1.01 * epsilon)]
    without = fitted(X, y, 0.99 * epsilon, recalibration_share=0.0)
    np.testing.assert_array_equal(below.coef_, without.coef_)
