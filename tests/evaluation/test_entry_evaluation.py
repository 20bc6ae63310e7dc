"""Private evaluation of people who enter late: by brute force, by known truth, and its bounds."""

import json
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival, forecast_accuracy
from skdpsurv.audit import measurement_audit
from skdpsurv.audit.walk import visits
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.evaluation import SurvivalEvaluation, evaluation, released_values
from skdpsurv.evaluation import private_survival_metrics as evaluate
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting, evaluation_plan
from skdpsurv.evaluation.forecast_records import HazardTruth
from skdpsurv.evaluation.risk_table import EvaluationRecords
from tests.support.transcript import transcript_audit

END = 1.0


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(released_values, "N_RESAMPLES", 20)


class Proportional:
    """The true model: cumulative hazard t² exp(x)."""

    def predict_survival_function(self, X):
        return [partial(self.survival, np.exp(x)) for x in np.asarray(X)[:, 0]]

    @staticmethod
    def survival(risk, times):
        return np.exp(-risk * np.asarray(times) ** 2)


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
    exits, event, entry = (
        np.minimum(found.exit, END),
        found.event & (found.exit <= END),
        found.entry,
    )
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
    return won / pairs, score / terms, rows, at, kaplan_meier


@pytest.mark.parametrize("ties", [False, True])
def test_without_noise_it_is_what_loops_count(ties):
    x, found = people(70, 3)
    if ties:
        rounded = np.ceil(found.exit * 8) / 8, found.event, np.floor(found.entry * 8) / 8
        found = Histories(*rounded)
    measured = evaluate(
        Proportional(), x, in_y(found), np.inf, max_time=END, entry=found.entry, risk_edges=[0.3]
    )
    c_index, brier, rows, at, kaplan_meier = by_hand(x, found)
    assert measured.c_index.value == pytest.approx(c_index, abs=1e-12)
    assert measured.integrated_brier.value == pytest.approx(brier, abs=1e-12)
    last = np.array([at(i, END) / at(i, found.entry[i]) for i in rows])
    for group in measured.groups:
        own = [k for k, i in enumerate(rows) if group.low <= at(i, END) < group.high]
        assert group.predicted.value == pytest.approx(last[own].mean())
        survives = kaplan_meier(found.clipped(END).event, False, rows[own])
        observed = np.mean([survives(found.entry[i], END) for i in rows[own]])
        assert group.observed.value == pytest.approx(observed)


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


def test_usual_weights_are_wrong():
    """The Brier score of the true model is known: about .176, and .206 with weights from 0.

    Its standard error is below .002, so that it is off by .01 with probability below 1e-6.
    """
    rng, n, slope, scale = np.random.default_rng(0), 40000, 0.2, 1.6
    x, start = rng.normal(size=5 * n), rng.uniform(0.0, 1.0, 5 * n)
    lifetime = np.sqrt(rng.exponential(size=5 * n) / (scale * np.exp(slope * x)))
    lost = rng.exponential(1.0 / 0.5, 5 * n)  # of those who enter, after the entry
    seen = np.flatnonzero((lifetime > start) & (lost > start))[:n]
    x, start, lifetime, lost = (each[seen] for each in (x, start, lifetime, lost))
    found = Histories(np.minimum(lifetime, lost), lifetime <= lost, start)
    own = EvaluationSetting(1.0, n, END, 2, 2, GIVEN, late_entry=True)
    risk = scale * np.exp(slope * x)[:, None]
    survival = np.exp(-risk * np.append(own.times, END) ** 2)
    records = EvaluationRecords(survival, found, np.exp(-risk[:, 0] * start**2))
    released = evaluation_plan(own).run(InMemory([records]), random_source(0))
    reading = released_values.Reading.of(own, released)
    measured = released_values.exact_measures(records, reading)
    since = np.exp(-risk * np.maximum(own.times**2 - start[:, None] ** 2, 0.0))
    entered = start[:, None] < own.times
    truth = (since * (1.0 - since))[entered].mean()
    assert truth == pytest.approx(0.176, abs=0.002)
    assert measured.brier == pytest.approx(truth, abs=0.01)
    assert measured.ratio == pytest.approx(1.0, abs=0.05)
    noisy = reading.measures(released_values.ReleasedSums.of(released))
    assert noisy.brier == pytest.approx(truth, abs=0.01)
    clipped = found.clipped(END)
    stays = released_values.KaplanMeier.of(~clipped.event, clipped.exit, start, after=clipped.event)
    gone = clipped.event[:, None] & (clipped.exit[:, None] <= own.times)
    at_exit = np.maximum(stays.since(np.zeros(n), clipped.exit), 0.05)[:, None]
    usual = np.where(gone, since**2 / at_exit, 0.0)
    left = (1.0 - since) ** 2 / stays.since(np.zeros(1), own.times)
    usual += np.where(clipped.exit[:, None] > own.times, left, 0.0)
    assert usual[entered].mean() == pytest.approx(0.206, abs=0.006)


#: Public edges of the tests of single numbers.
GIVEN = {"risk_edges": np.array([0.4]), "time_edges": np.array([0.5])}
TIMES = (0.0, 5e-324, 0.2, 0.5, np.nextafter(0.5, 1.0), 0.9, 1.0, 1.5)


def neighbours(n_pairs):
    """Yield pairs of data sets of three records, of which one differs in all that it has."""
    rng = np.random.default_rng(0)

    def one():
        last, at_entry = rng.choice([0.0, 0.3, 0.4, 0.9, 1.0]), rng.choice([0.0, 1e-300, 0.5, 1.0])
        exits, entry = rng.choice(TIMES, 2) if rng.random() < 0.5 else rng.uniform(0.0, 1.2, 2)
        return last, at_entry, exits, rng.random() < 0.5, entry

    def block(*each):
        last, at_entry, exits, event, entry = map(np.array, zip(*each, strict=True))
        survival = last[:, None] ** np.linspace(0.1, 1.0, 33)
        return InMemory([EvaluationRecords(survival, Histories(exits, event, entry), at_entry)])

    others = one(), one()
    for _ in range(n_pairs):
        yield block(*others, one()), block(*others, one())


@pytest.mark.parametrize(
    ("edges", "n_pairs"), [pytest.param(GIVEN, 10_000, marks=pytest.mark.slow), ({}, 300)]
)
def test_what_is_asked_of_neighbours_is_within_its_bounds(edges, n_pairs):
    """For each measurement and the same results before it; and each bound is nearly reached."""
    plan = evaluation_plan(EvaluationSetting(1.0, 3, END, 2, 2, edges, late_entry=True))
    most: dict[tuple[str, str], float] = {}
    pairs = list(neighbours(n_pairs))
    first = pairs[0][0]
    for leaf, known, *_ in visits(plan.tree, plan.context, first, first, random_source(0)):
        for one, other in pairs:
            for what, found, bound in leaf.distances(known, one, other):
                assert found <= bound, leaf.name
                most[leaf.name, what] = max(most.get((leaf.name, what), 0.0), found / bound)
    assert len(plan.leaves) == 7 - len(edges)
    assert min(most.values()) > (0.9 if edges else 0.3)


def test_the_result_goes_through_json():
    x, found = people(200, 6)
    measured = evaluate(Proportional(), x, in_y(found), 2.0, max_time=END, entry=found.entry)
    assert SurvivalEvaluation.from_dict(json.loads(json.dumps(measured.to_dict()))) == measured
    assert measured.guarantee.epsilon == 2.0
    assert measured.guarantee.public_inputs["late_entry"] is True
    for one, other in pairwise(measured.groups):
        assert one.high == other.low
    for group in measured.groups:
        assert group.observed == group.since_entry != group.curve[-1]


def test_entries_are_refused_as_for_fits():
    x, found = people(50, 6)
    for entry, match in [
        (found.entry[:-1], "entry must have one entry for each record"),
        (np.where(np.arange(50) == 3, np.nan, found.entry), "entry must not contain missing"),
    ]:
        with pytest.raises(ValueError, match=match):
            evaluate(Proportional(), x, in_y(found), max_time=END, entry=entry)


def test_nobody_at_risk():
    """Whoever enters too late counts for nothing, and the result is still a result."""
    x, found = people(50, 6)
    for epsilon in (1.0, np.inf):
        measured = evaluate(
            Proportional(), x, in_y(found), epsilon, max_time=END, entry=np.full(50, 3.0)
        )
        assert 0.0 <= measured.c_index.value <= 1.0


@pytest.mark.parametrize("shape", [0.5, 2.0])
@pytest.mark.parametrize("entries", [(1.0,), (3.0, 1.0)])
def test_simulated_people_enter_as_asked(shape, entries):
    """Shares of events and of censoring, each with a standard error below .003."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=30000)
    truth = HazardTruth.of(z[:4000], 1.0, 0.4, 0.5, shape, entries)
    drawn = truth.draw(z, rng)
    assert drawn.at_risk.all()
    assert drawn.event.mean() == pytest.approx(0.4, abs=0.02)
    assert (drawn.exit[~drawn.event] < 1.0).mean() == pytest.approx(0.5, abs=0.02)
    share = entries[0] / sum(entries) if len(entries) == 2 else 0.5
    assert (drawn.entry < 0.5).mean() == pytest.approx(share, abs=0.02)
    alike = HazardTruth.of(np.zeros(1), 0.0, 0.4, 0.5, shape, entries)
    drawn = alike.draw(0.0 * z, rng)
    survives = released_values.KaplanMeier.of(drawn.event, drawn.exit, drawn.entry)
    half, late = alike.survival(np.zeros(1), np.array([0.5, 0.9]))[0]
    found = survives.since(np.full(1, 0.5), np.full(1, 0.9))
    assert found == pytest.approx(late / half, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["survival", "km"])
def test_a_forecast_with_entries(kind):
    options = {"epsilons": [3.0], "n_repeats": 2, "random_state": 0}
    late = forecast_accuracy(kind, 800, entry="uniform", **options)
    assert late.about["entry"] == "uniform"
    assert not late.table.equals(forecast_accuracy(kind, 800, **options).table)
    parts = forecast_accuracy(kind, 800, entry=[3, 1], **options)
    assert parts.about["entry"] == [3.0, 1.0]
    assert not parts.table.equals(late.table)


def test_information_of_people_who_enter_late_is_that_of_a_partial_likelihood():
    """Drawn: the mean, over events, of the covariance of x among those at risk."""
    rng, n = np.random.default_rng(1), 4000
    z = rng.normal(size=n)
    truth = HazardTruth.of(z, 0.5, 0.4, 0.5, 1.0, (2.0, 1.0))
    drawn, total = truth.draw(z, rng), 0.0
    for i in np.flatnonzero(drawn.event):
        there = (drawn.entry < drawn.exit[i]) & (drawn.exit >= drawn.exit[i])
        weights = np.exp(0.5 * z[there])
        mean = weights @ z[there] / weights.sum()
        total += weights @ (z[there] - mean) ** 2 / weights.sum()
    assert truth.information(z[:, None], z)[0, 0] == pytest.approx(total / n, rel=0.1)


def test_forecasts_refuse_entries_by_name():
    for kind, entry, match in [
        ("weibull", "uniform", "entry must be None: DPWeibullFitter"),
        ("logistic", "uniform", "entry must be None: DPLogisticRegression"),
        ("km", "late", "entry must be None, 'uniform' or a list"),
        ("km", [], "entry must be None, 'uniform' or a list"),
        ("km", [1.0, -1.0], "entry must"),
    ]:
        with pytest.raises(ValueError, match=match):
            forecast_accuracy(kind, 800, entry=entry, n_repeats=1)


@pytest.mark.slow
def test_no_neighbour_exceeds_epsilon(monkeypatch):
    """All draws of an evaluation together, of extreme records and entries; and some come close."""
    monkeypatch.setattr(evaluation, "intervals", lambda reading, released, made, level: (made,) * 2)
    (x, found), largest = people(40, 7), 0.0
    records = [
        (0.0, True, 0.4, 0.1), (9.0, True, 0.4, 0.0), (-9.0, False, 3.0, 0.0),
        (0.0, True, 0.4, 0.4), (-9.0, True, 1.0, 5e-324), (9.0, False, 0.0, 0.0),
        (1.0, True, 0.9, 1e300),
    ]  # fmt: skip

    def data(record):
        rows, exits, event = x.copy(), found.exit.copy(), found.event.copy()
        entry = found.entry.copy()
        rows[5], event[5], exits[5], entry[5] = record
        return rows, Surv.from_arrays(event, exits), entry

    def run(X, y, entry, epsilon=1.0, random_state=None):
        own = {"entry": entry, "random_state": random_state, "n_bands": 2, "n_groups": 2}
        return evaluate(Proportional(), X, y, epsilon, max_time=END, **own)

    for record in records[1:]:
        result = transcript_audit(partial(run), data(records[0]), data(record))
        assert result.passed, result
        largest = max(largest, result.total)
    assert largest > 0.5


class InPlace:
    """Accelerated failure times, by a curve that computes in the array it is given."""

    unique_times_ = np.array([END])

    def predict_survival_function(self, X):
        def survival(times):
            times /= np.exp(np.asarray(X)[0, 0])
            return np.exp(-times)

        return [survival]


@pytest.mark.parametrize("late", [False, True])
def test_a_curve_that_writes_into_its_times_moves_no_other_record(late):
    """Records shared one array of times, so that one of them could decide all others."""
    x, found = people(60, 3)
    X = np.reshape(x, (60, -1)).astype(float)
    y = Surv.from_arrays(found.event, found.exit)
    more = [{"entry": found.entry}] if late else []
    other = X.copy()
    other[0] = 5.0
    asked = partial(evaluate, InPlace(), max_time=END, risk_edges=[0.3, 0.5], time_edges=[0.3, 0.6])
    result = measurement_audit(asked, (X, y, *more), (other, y, *more))
    assert result.passed, result
