"""Private evaluation of people who enter late: by brute force, by known truth, and its bounds."""

import json
from itertools import pairwise

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.audit.walk import visits
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.evaluation import SurvivalEvaluation, released_values
from skdpsurv.evaluation import private_survival_metrics as evaluate
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting, evaluation_plan
from skdpsurv.evaluation.risk_table import EvaluationRecords

END = 1.0


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(released_values, "N_RESAMPLES", 20)


class Proportional:
    """The true model: cumulative hazard t² exp(x)."""

    def predict_survival_function(self, X):
        return [lambda t, r=np.exp(x): np.exp(-r * np.asarray(t) ** 2) for x in np.asarray(X)[:, 0]]


def people(n, seed, *, dropout=1.0, correlated=False):
    """Return x, histories of those seen at all, and the true survival at the horizon."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4 * n)
    lifetime = np.sqrt(rng.exponential(size=4 * n) / np.exp(x))
    start = np.where(rng.random(4 * n) < 0.2, 0.0, rng.uniform(0.0, 1.1, 4 * n))
    if correlated:  # those at high risk come late
        start = np.clip(0.45 + 0.25 * x + 0.2 * rng.normal(size=4 * n), 0.0, 1.1)
    lost = start + rng.exponential(1.0 / dropout, 4 * n) if dropout else np.full(4 * n, np.inf)
    seen = np.flatnonzero(lifetime > start)[:n]
    exits = np.minimum(lifetime, lost)[seen]
    return x[seen, None], Histories(exits, (lifetime <= lost)[seen], start[seen])


def in_y(found):
    return Surv.from_arrays(found.event, found.exit)


def by_hand(x, found):
    """C, Brier score, expected / observed and the share at risk, with loops over records."""
    exits, event, entry = np.minimum(found.exit, END), found.event & (found.exit <= END), found.entry
    at_risk = (entry < exits) | (entry == 0.0)
    rows = np.flatnonzero(at_risk)

    def at(i, t):
        return np.exp(-np.exp(x[i, 0]) * t**2)

    won = pairs = 0.0
    for i in rows[event[rows]]:
        for j in rows:
            later = exits[j] > exits[i] or (exits[j] == exits[i] and not event[j])
            if i != j and later and entry[j] < exits[i]:
                pairs, won = pairs + 1, won + (x[i, 0] > x[j, 0]) + 0.5 * (x[i, 0] == x[j, 0])

    def kaplan_meier(leaving, others_first, among):
        def since(start, end):
            share = 1.0
            for t in np.unique(exits[among]):
                if start < t <= end:
                    there = among[(entry[among] < t) & (exits[among] >= t)]
                    before = sum(event[i] and exits[i] == t for i in there) * others_first
                    gone = sum(leaving[i] and exits[i] == t for i in there)
                    share *= 1.0 - gone / max(len(there) - before, 1)
            return share

        return since

    stays = kaplan_meier(~event, True, rows)
    score = terms = 0.0
    for i in rows:
        for t in END * (np.arange(32) + 0.5) / 32:
            if entry[i] >= t:
                continue
            terms, predicted = terms + 1, at(i, t) / at(i, entry[i])
            if event[i] and exits[i] <= t:
                score += predicted**2 / stays(entry[i], exits[i])
            elif exits[i] > t:
                score += (1.0 - predicted) ** 2 / stays(entry[i], t)
    return won / pairs, score / terms, rows, at, kaplan_meier(event, False, rows)


@pytest.mark.parametrize("ties", [False, True])
def test_without_noise_it_is_what_loops_count(ties):
    x, found = people(70, 3)
    if ties:
        rounded = np.ceil(found.exit * 8) / 8, found.event, np.floor(found.entry * 8) / 8
        found = Histories(*rounded)
    measured = evaluate(
        Proportional(), x, in_y(found), np.inf, max_time=END, entry=found.entry, risk_edges=[0.3]
    )
    c_index, brier, rows, at, survives = by_hand(x, found)
    assert measured.c_index.value == pytest.approx(c_index, abs=1e-12)
    assert measured.integrated_brier.value == pytest.approx(brier, abs=1e-12)
    last = np.array([at(i, END) / at(i, found.entry[i]) for i in rows])
    for group in measured.groups:
        own = [k for k, i in enumerate(rows) if group.low <= at(i, END) < group.high]
        assert group.predicted.value == pytest.approx(last[own].mean())
    del survives


def test_it_agrees_with_the_score_of_a_model():
    x, found = people(600, 1)
    model = DPDiscreteTimeSurvival(epsilon=np.inf, max_time=END).fit(x, in_y(found))
    clipped = found.clipped(END)
    measured = evaluate(model, x, in_y(found), np.inf, max_time=END, entry=found.entry)
    score = model.score(x, in_y(clipped), entry=found.entry)
    assert measured.c_index.value == pytest.approx(score, abs=1e-3)  # ties of risks at the end


def test_entries_at_zero_change_nothing_without_noise():
    x, found = people(300, 2)
    options = {"epsilon": np.inf, "max_time": END, "risk_edges": [0.3, 0.6], "time_edges": [0.5]}
    one = evaluate(Proportional(), x, in_y(found), **options)
    other = evaluate(Proportional(), x, in_y(found), entry=np.zeros(300), **options)
    assert one.c_index.value == pytest.approx(other.c_index.value, abs=1e-12)
    assert one.integrated_brier.value == pytest.approx(other.integrated_brier.value, abs=1e-12)
    for a, b in zip(one.groups, other.groups, strict=True):
        assert a.predicted.value == pytest.approx(b.predicted.value, abs=1e-12)
        assert a.observed.value == pytest.approx(b.observed.value, abs=1e-12)


@pytest.mark.parametrize("correlated", [False, True])
def test_the_table_says_nearly_the_same(correlated):
    """At a large epsilon, as measures of all records without noise."""
    x, found = people(3000, 4, correlated=correlated)
    call = Proportional(), x, in_y(found)
    exact = evaluate(*call, np.inf, max_time=END, entry=found.entry)
    with pytest.warns(match="random_state"):
        noisy = evaluate(*call, 1e6, max_time=END, entry=found.entry, random_state=0)
    assert abs(noisy.c_index.value - exact.c_index.value) < 0.02
    assert abs(noisy.integrated_brier.value - exact.integrated_brier.value) < 0.004
    assert abs(noisy.expected_observed.value - exact.expected_observed.value) < 0.05
    for one, other in zip(noisy.groups, exact.groups, strict=True):
        assert abs(one.predicted.value - other.predicted.value) < 0.005
        assert abs(one.observed.value - other.observed.value) < 0.05
