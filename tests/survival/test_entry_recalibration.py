"""Recalibration of people who enter late: its joint table, what is expected in it, and the fit."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards import recalibration
from skdpsurv.survival.hazards.model import HazardRecords
from skdpsurv.survival.hazards.recalibration import HISTOGRAM, RiskPositions, fit_table
from skdpsurv.survival.hazards.risk_layout import POSITIONS, RiskLayout

COEF, Q = np.array([1.0, -0.5]), 40


def cells(q=Q, level=-3.0, **options):
    baseline = level + np.linspace(0.0, 1.0, q)
    how = COEF, baseline, LINKS["logit"], np.zeros(2), 0.8
    return RiskLayout(*how, has_entry=True, **options)


def positions_of(monkeypatch, layout, X, seen):
    """The exact answer of the query of positions with this layout."""
    monkeypatch.setattr(recalibration, "layout_of", lambda *_: layout)
    query = SimpleNamespace(fit=None, table_price=1.0, cause=0)
    return RiskPositions.exact_answer(query, None, InMemory([HazardRecords(X, seen)]))


def records(rng, n, q=Q):
    """Records on a grid, of which many enter or leave where a band ends, or never are at risk."""
    X = rng.normal(size=(n, 2)) * rng.choice([0.1, 1.0, 1e3], (n, 1))
    leaves, enters = rng.integers(1, q + 1, n), rng.integers(0, q + 1, n)
    enters = np.where(rng.random(n) < 0.1, leaves, enters)
    return X, Histories(leaves, rng.random(n) < 0.5, enters)


class TestSensitivity:
    @pytest.mark.parametrize("q", [1, 3, Q])
    def test_replacing_a_record_moves_two_cells_by_one(self, q):
        """Its row, entry, exit and event: the table is the sum of the records' own cells."""
        layout, n = cells(q), 500
        X, seen = records(np.random.default_rng(q), n, q)
        own = np.array(
            [layout.counts(X[i : i + 1], seen.take(slice(i, i + 1))).ravel() for i in range(n)]
        )
        assert set(own.sum(axis=1)) == set(own.max(axis=1)) == {1}
        np.testing.assert_array_equal(layout.counts(X, seen).ravel(), own.sum(axis=0))
        moved = np.abs(own[:, None] - own[None, :100]).sum(axis=2)
        assert moved.max() == HISTOGRAM.sensitivity == 2

    def test_replacing_a_record_moves_positions_by_their_sensitivity(self, monkeypatch):
        layout = cells()
        X, seen = records(np.random.default_rng(0), 400)
        each = [slice(i, i + 1) for i in range(400)]
        own = [positions_of(monkeypatch, layout, X[i], seen.take(i)).ravel() for i in each]
        whole = positions_of(monkeypatch, layout, X, seen).ravel()
        np.testing.assert_array_equal(whole, np.sum(own, axis=0))
        assert not any(one.any() for one, risk in zip(own, seen.at_risk, strict=True) if not risk)
        apart = np.array(own)[:, None] - np.array(own)
        assert np.abs(apart).sum(axis=2).max() <= POSITIONS.sensitivity
        assert (apart**2).sum(axis=2).max() <= POSITIONS.squared_distance

    def test_nobody_is_where_nobody_can_be(self):
        layout = cells()
        X, seen = records(np.random.default_rng(1), 2000)
        counts = layout.counts(X, seen)
        assert not counts[:, recalibration._can_be(layout) == 0].any()
        assert counts[:, -1].sum() == np.count_nonzero(~seen.at_risk)


@pytest.mark.parametrize("which_class", [0, 1, 4])
def test_slopes_of_probabilities_of_those_who_enter_late(which_class):
    layout = cells()
    X, seen = records(np.random.default_rng(2), 500)
    counts = layout.counts(X, seen).astype(float)
    how = np.zeros((2, layout.n_groups)), layout.baseline, 1.0, 500.0, 1.0
    table = recalibration._Table(layout, counts, *how)
    entered = table.entered[which_class]
    at, h = np.array([0.3, 0.2, -0.1, 0.1, 0.6]), 1e-5
    for which in (0, 1):
        slopes = table.outcome_probabilities(at, entered)[which + 2]
        for i, unit in enumerate(np.eye(at.size)):
            up, down = (
                table.outcome_probabilities(at + way * h * unit, entered)[which] for way in (1, -1)
            )
            np.testing.assert_allclose(slopes[i], (up - down) / (2 * h), atol=1e-7)


def aged(n, seed, even=False):
    """Entries that correlate .7 with a covariate, exits, and scores, of people alive then."""
    rng = np.random.default_rng(seed)
    old = rng.normal(size=4 * n)
    X = np.stack([0.7 * old + np.sqrt(0.51) * rng.normal(size=4 * n), rng.normal(size=4 * n)], 1)
    X = np.clip(X, -3.0, 3.0)
    entry = 9.5 * ndtr(old) if even else np.clip(3.5 + 2.0 * old, 0.0, 9.5)
    eta = X @ [0.6, -0.5]
    life = np.log1p(rng.exponential(size=4 * n) * np.exp(-eta) * 4.0) / 0.2
    ends = entry + rng.exponential(6.0, 4 * n)
    kept = np.flatnonzero(life > entry)[:n]
    time = np.minimum(life, ends)
    return X[kept], ((life <= ends)[kept], time[kept]), entry[kept], eta[kept]


def survival(time, eta):
    """The truth, from 0."""
    return np.exp(-np.exp(eta) * np.expm1(0.2 * time) / 4.0)


def gaps(model, X, eta):
    """Predicted less true chance to live from 3 to 8, by fifths of true risk."""
    found = model.predict_survival_function(X, return_array=True)
    found = found[:, 79] / found[:, 29]
    truth = survival(8.0, eta) / survival(3.0, eta)
    fifth = np.argsort(np.argsort(eta)) * 5 // eta.size
    return np.array([(found - truth)[fifth == k].mean() for k in range(5)])


def test_a_table_without_noise_finds_level_and_slope():
    """Half the coefficients and half the hazard: the line and the slope undo it."""
    X, (event, time), entry, _ = aged(200_000, seed=3, even=True)
    seen = Histories(time, event, entry).on_grid(10.0, 100)
    middle = 10.0 * (np.arange(100) + 0.5) / 100
    level = np.log(0.05 * np.exp(0.2 * middle) / 10.0) + np.log(0.5)
    coef = 0.5 * np.array([0.6, -0.5])
    layout = RiskLayout(coef, level, LINKS["cloglog"], np.zeros(2), 1.0, has_entry=True)
    counts = layout.counts(X, seen).astype(float)
    places = POSITIONS.values(layout.positions(X[seen.at_risk], seen.take(seen.at_risk)))
    found = fit_table(layout, counts, places, len(X), (1e4, 1e4), 1e4)
    assert found.slope == pytest.approx(2.0, rel=0.06)
    np.testing.assert_allclose(found.at(middle / 10.0)[25:], np.log(2.0), atol=0.09)


def test_private_risks_are_nearer_to_the_truth():
    """People who were not used for the fit; covariates that correlate .7 with the entry."""
    X, y, entry, _ = aged(20_000, seed=4)
    held, _, _, eta = aged(20_000, seed=5)
    found = []
    for share in (0.0, 0.1):
        own = {"max_time": 10.0, "n_intervals": 100, "recalibration_share": share}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPDiscreteTimeSurvival(3.0, data_norm=6.0, random_state=0, **own)
            model.fit(X, y, entry=entry)
        found.append(np.abs(gaps(model, held, eta)).mean())
    assert found[1] < 0.02
    assert found[0] > 0.04


def test_entries_beyond_all_exits_leave_the_fit_finite():
    X, y, *_ = aged(400, seed=6)
    model = DPDiscreteTimeSurvival(10.0, max_time=10.0, random_state=0)
    model.fit(X, y, entry=np.full(400, 1e300))
    assert np.isfinite(model.recalibration_.shift).all()
    assert model.recalibration_.slope > 0
