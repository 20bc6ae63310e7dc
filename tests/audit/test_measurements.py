"""The walk over the tree: what is shipped is within its bounds, and what is wrong is not.

What draws are made from, which transcripts show, has the same planted bounds.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdpsurv import (
    DPKaplanMeierFitter,
    DPLogisticRegression,
    PosteriorSampling,
    PrivateStackingClassifier,
)
from skdpsurv.audit import measurement_audit
from skdpsurv.audit.walk import visits
from skdpsurv.classification.stack_plan import Stack
from skdpsurv.dp import random_source
from skdpsurv.dp.plan import AdaptiveChoice, Disjoint, Sequential
from skdpsurv.mechanisms import descent, joint_calibration, moments, sums
from skdpsurv.model_selection.candidates import Candidate
from tests.dp.test_plan import RECORDS, count
from tests.support import checks
from tests.support.planted_defects import (
    NoisySum,
    doubled_ladder,
    half_of_gradients,
    half_of_histograms,
    halved,
)
from tests.support.registry import PROTECTED
from tests.support.transcript import transcript_audit
from tests.support.transcript_cases import AT_ONCE, CASES, hazard, some_neighbours
from tests.support.worst_pairs import pair

EVENT = ([1.0, 4.0], [1, 1]), ([9.0, 4.0], [1, 1])
#: Models that vote loudly, so that a record's votes can differ.
LOUD = {"rows, stacked": {"epsilon": 100.0, "alpha": "auto"}}


def audited(name, audit=measurement_audit):
    case = CASES[name]
    estimator = case.estimator
    if name in LOUD:
        estimator = clone(estimator).set_params(**LOUD[name])
    return [audit(estimator, *made) for made in case.made()]


def refuted(results):
    return "; ".join(said for result in results for said in result.refuted)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * ("Langevin" in n)) for n in CASES]
)
def test_every_measurement_passes_and_is_moved_by_more_than_half(name):
    """By the pairs that are made for it: so that half of a bound is refuted."""
    most = {}
    for result in audited(name):
        assert result.passed, result
        for each in result.distances:
            if each.what not in ("ranks of Hessians", "what is promised"):
                most[each.measurement] = max(most.get(each.measurement, 0.0), each.share)
    names = [leaf for number, leaf in enumerate(most) if number not in CASES[name].unmoved]
    assert all(most[leaf] > 0.55 for leaf in names), most


@checks.each(PROTECTED)
def test_every_setting_passes(setting):
    """For some extreme neighbours; chains, too."""
    for data, neighbour in some_neighbours(setting):
        result = measurement_audit(setting.make(), data, neighbour)
        assert result.passed, result
        assert result.distances
        assert all(np.isfinite(each.price) for each in result.distances)


#: A planted defect, what shows it, and what the walk and a transcript say of it; both are quick
#: unless the last entry says that the transcript is not.
TOO_SMALL = {
    "sum": (functools.partial(halved, sums.Sum), "Weibull", "in ", "Sum"),
    "sums": (functools.partial(halved, sums.Sums), "hybrid, curve", "in ", "Sums"),
    "cells, squared": (
        *(functools.partial(halved, sums.CellSums, "squared_distance"), "hazard", "in ", None),
    ),
    "cells": (functools.partial(halved, sums.CellSums), "hazard", None, "CellSums", "slow"),
    "mean of rows": (functools.partial(halved, moments.MeanOfRows), "hazard", "in ", None),
    "columns": (functools.partial(halved, moments.ColumnMoments), "hazard, columns", "in ", None),
    "moments": (
        *(functools.partial(halved, moments.SecondMoments, "largest_trace"), "logistic", "in "),
        "second moments of rows",
    ),
    "histogram": (half_of_histograms, "Kaplan-Meier", "in L1: 2 of 1", "Histogram: 2 of 1"),
    "gradients": (half_of_gradients, "hazard", "gradients", "minimiser", "slow"),
    "gradients, output": (half_of_gradients, "hazard, output", "gradients", "minimiser", "slow"),
    "gradients, descent": (half_of_gradients, "hazard, descent", "gradients", "noisy", "slow"),
    "ladder": (doubled_ladder, "Weibull", "ladder, levels: 2 of 1", "ladder"),
}
transcript = functools.partial(transcript_audit, n_cells=64)


@pytest.mark.parametrize(
    ("defect", "name", "audit", "said"),
    [
        pytest.param(defect, name, audit, said, marks=[pytest.mark.slow] * bool(slow), id=what)
        for what, (defect, name, walk, drawn, *slow) in TOO_SMALL.items()
        for audit, said, slow in ((measurement_audit, walk, ()), (transcript, drawn, slow))
        if said is not None
    ],
)
def test_a_bound_that_is_too_small_is_refuted(defect, name, audit, said):
    with defect():
        results = audited(name, audit)
    assert said in refuted(results)
    assert any("REFUTED" in repr(result) or audit is transcript for result in results)


@pytest.mark.parametrize("name", ["logistic, three classes", "logistic, descents", "search"])
def test_a_calibration_that_spends_twice_its_price_is_refuted(monkeypatch, name):
    for module, given in ((joint_calibration, "calibrate_jointly"), (descent, "calibrate")):
        monkeypatch.setattr(module, given, _twice(getattr(module, given)))
    assert "all that is hidden together" in refuted(audited(name))


def _twice(honest):

    def calibrate(*arguments, **options):
        found = honest(*arguments, **options)
        return [_halved(each) for each in found] if isinstance(found, list) else _halved(found)

    return calibrate


def _halved(calibration):
    name = next(n for n in ("each", "linear", "output") if n in vars(calibration))
    law = getattr(calibration, name)
    return replace(calibration, **{name: replace(law, scale=law.scale / 2.0)})


@pytest.mark.parametrize("everybody", [False, True])
def test_sets_that_share_nobody(monkeypatch, everybody):
    """One of them sees another record; two that see it are refuted."""
    model = PrivateStackingClassifier(
        classes=[0, 1], n_partitions=2, partition="samples", combiner="logistic", alpha=10.0
    )
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    if everybody:
        order = np.arange(12)
        monkeypatch.setattr(Stack, "split", lambda stack, source: ([order] * 2, order))
    result = measurement_audit(model, (X, np.arange(12) % 2), (X, np.r_[1, np.arange(1, 12) % 2]))
    found = result.table.set_index("what")["found"]
    assert result.passed is not everybody
    assert found["sets that share a record"] == 1.0 + everybody
    assert found["parts that share a record"] in ((2.0,) if everybody else (0.0, 1.0))
    assert everybody or len(result.unmoved) == 1


def test_a_candidate_that_spends_more_than_it_is_given_is_refuted(monkeypatch):
    honest = Candidate.ready

    def lavish(self, spend, seed=None):
        fresh = honest(self, spend, seed)
        return fresh.set_params(epsilon=2.0 * fresh.epsilon) if seed == 0 else fresh

    monkeypatch.setattr(Candidate, "ready", lavish)
    assert "what is promised" in refuted(audited("search"))


def test_a_plan_that_looks_at_records_is_refuted():
    class Peeking(DPKaplanMeierFitter):
        def _shape(self, X, *arguments, **options):
            self.first = float(X[0])
            return super()._shape(X, *arguments, **options)

        def _plan(self, shape):
            plan = super()._plan(shape)
            return replace(plan, inputs={**plan.inputs, "first": self.first})

    result = measurement_audit(Peeking(max_time=10.0), *EVENT)
    assert result.refuted == ("the plan, other promises: 1 of 0",)


def test_the_walk_is_in_order_and_after_the_same_releases():
    first, second, third = (count(0.1, name) for name in "abc")
    chosen = []

    def choose(context):
        chosen.append(dict(context))
        return second

    apart = Disjoint((third,), lambda records, source: [records])
    tree = Sequential((first, AdaptiveChoice(0.1, choose, (second,)), apart))
    seen = list(visits(tree, {"public": 1}, RECORDS, RECORDS, random_source(0)))
    assert [visit.node for visit in seen] == [first, second, apart, third]
    known = [set(visit.context) - {"seen"} for visit in seen]
    assert known == [{"public"}, {"a", "public"}, *[{"a", "b", "public"}] * 2]
    assert seen[1].context["a"] == seen[3].context["a"] == chosen[0]["a"]
    assert seen[2].one == [RECORDS]


@pytest.mark.parametrize("sampler", ["mala", "psgld"])
def test_chains_are_compared(sampler):
    model = hazard(method=PosteriorSampling(sampler, n_epochs=1000), inference_share=0.0)
    result = measurement_audit(model, *pair(model, AT_ONCE, n=4))
    assert result.passed
    assert {each.what for each in result.distances} == {"energies", "log ratios"}
    assert result.distances[-1].share > 0.01


def test_what_no_record_moved_is_listed():
    model = DPKaplanMeierFitter(max_time=10.0)
    assert measurement_audit(model, *EVENT).unmoved == ()
    near = measurement_audit(model, EVENT[0], ([1.1, 4.0], [1, 1]))
    assert near.passed
    assert list(near.table) == ["measurement", "price", "what", "found", "allowed"]
    (name,) = near.unmoved
    assert name in repr(near)


@pytest.mark.parametrize(
    ("estimator", "data", "match"),
    [
        (NoisySum(), (([[0.0]], [0]), ([[1.0]], [0])), "plan"),
        (functools.partial(len), (([1.0],), ([2.0],)), "private_survival_metrics"),
        (DPKaplanMeierFitter(max_time=10.0), (EVENT[0], EVENT[0]), "identical"),
        (DPKaplanMeierFitter(np.inf, max_time=10.0), EVENT, "no claim"),
        (DPLogisticRegression(classes=[0, 1]), (([[0.0]], [0]), ([[1.0]] * 2, [0, 1])), "number"),
    ],
)
def test_what_cannot_be_compared_is_refused(estimator, data, match):
    with pytest.raises((TypeError, ValueError), match=match):
        measurement_audit(estimator, *data)
