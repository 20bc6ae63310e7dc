"""The walk over the tree: what is shipped is within its bounds, and what is wrong is not."""

import functools
import itertools
from dataclasses import replace
from typing import Any

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
from skdpsurv.dp.plan import Disjoint, Sequential, Total
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.mechanisms import descent, joint_calibration, sums
from skdpsurv.model_selection.candidates import Candidate
from skdpsurv.survival.curves import table as curve_table
from skdpsurv.survival.weibull import counts as weibull_counts
from tests.dp.test_plan import RECORDS, count
from tests.support.planted_defects import NoisySum
from tests.support.registry import PROTECTED
from tests.support.transcript_cases import AT_ONCE, CASES, hazard
from tests.support.worst_pairs import pair

EVENT = ([1.0, 4.0], [1, 1]), ([9.0, 4.0], [1, 1])


#: Models that vote loudly, so that a record's votes can differ.
LOUD = {"rows, stacked": {"epsilon": 100.0, "alpha": "auto"}}


def audited(name: str) -> list[Any]:
    case = CASES[name]
    estimator = case.estimator
    if name in LOUD:
        estimator = clone(estimator).set_params(**LOUD[name])
    return [measurement_audit(estimator, *made) for made in case.made()]


def refuted(results: list[Any]) -> str:
    return "; ".join(said for result in results for said in result.refuted)


@pytest.mark.parametrize("name", CASES)
def test_every_measurement_passes_and_is_moved_by_more_than_half(name):
    """By the pairs that are made for it: so that half of a bound is refuted."""
    most: dict[str, float] = {}
    for result in audited(name):
        assert result.passed, result
        assert len(result.not_audited) == 2
        for each in result.distances:
            if each.what not in ("ranks of Hessians", "what is promised"):
                most[each.measurement] = max(most.get(each.measurement, 0.0), each.share)
    names = [leaf for number, leaf in enumerate(most) if number not in CASES[name].unmoved]
    assert all(most[leaf] > 0.55 for leaf in names), most


@pytest.mark.parametrize(
    "setting",
    [
        each if each.representative else pytest.param(each, marks=pytest.mark.slow)
        for each in PROTECTED
    ],
    ids=str,
)
def test_every_setting_passes(setting):
    """For some extreme neighbours; chains, too."""
    sets = [
        (each.X, each.y, each.options)[: 3 if each.options else 2]
        for each in setting.data().neighbours()
    ]
    for data, neighbour in itertools.pairwise(sets[1:]):
        result = measurement_audit(setting.make(), data, neighbour)
        assert result.passed, result
        assert result.distances
        assert all(np.isfinite(each.price) for each in result.distances)
        if setting.representative:
            break


class Half:
    """A bound of half of what it is."""

    def __init__(self, honest: Any) -> None:
        self.honest = honest.fget

    def __get__(self, query: Any, kind: Any) -> Any:
        return self.honest(query) / 2


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (sums.Sum, "Weibull"),
        (sums.Sums, "hybrid, curve"),
        (sums.CellSums, "hazard"),
        (sums.MeanOfRows, "hazard"),
        (sums.SecondMoments, "logistic"),
    ],
)
def test_half_of_a_sensitivity_is_refuted(monkeypatch, kind, case):
    name = {sums.CellSums: "squared_distance"}.get(kind, "sensitivity")
    monkeypatch.setattr(kind, name, Half(getattr(kind, name)))
    said = refuted(audited(case))
    assert "in " in said


def test_half_of_the_sensitivity_of_a_histogram_is_refuted(monkeypatch):
    monkeypatch.setattr(curve_table.EventCounts, "asked", sums.Histogram(1))
    (result,) = audited("Kaplan-Meier")
    assert not result.passed
    assert result.refuted[0].endswith("in L1: 2 of 1")
    assert "REFUTED" in repr(result)


@pytest.mark.parametrize("name", ["hazard", "hazard, output", "hazard, descent"])
def test_half_of_the_sensitivity_of_gradients_is_refuted(monkeypatch, name):
    honest = DiscreteHazard.constants.func

    def half(self):
        whole = honest(self)
        return replace(whole, gradient_sensitivity=whole.gradient_sensitivity / 2)

    monkeypatch.setattr(DiscreteHazard, "constants", property(half))
    assert "gradients" in refuted(audited(name))


@pytest.mark.parametrize("name", ["logistic, three classes", "logistic, descents", "search"])
def test_a_calibration_that_spends_twice_its_price_is_refuted(monkeypatch, name):
    for module, given in ((joint_calibration, "calibrate_jointly"), (descent, "calibrate")):
        monkeypatch.setattr(module, given, _twice(getattr(module, given)))
    assert "all that is hidden together" in refuted(audited(name))


def _twice(honest):
    """Return calibrations with half of the noise."""

    def calibrate(*arguments, **options):
        found = honest(*arguments, **options)
        return [_halved(each) for each in found] if isinstance(found, list) else _halved(found)

    return calibrate


def _halved(calibration):
    name = next(n for n in ("each", "linear", "output") if n in vars(calibration))
    law = getattr(calibration, name)
    return replace(calibration, **{name: replace(law, scale=law.scale / 2.0)})


def test_a_ladder_that_moves_by_two_rungs_is_refuted(monkeypatch):
    class Doubled(weibull_counts.ReleasedMeanLevels):
        def down_to(self, node):
            return 2 * super().down_to(node)

        def up_to(self, node):
            return 2 * super().up_to(node)

    monkeypatch.setattr(weibull_counts, "ReleasedMeanLevels", Doubled)
    assert "ladder, rungs: 2 of 1" in refuted(audited("Weibull"))


class TestSets:
    """Measurements of records that share nobody."""

    model = PrivateStackingClassifier(
        classes=[0, 1], n_partitions=2, partition="samples", combiner="logistic", alpha=10.0
    )
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    data = (X, np.arange(12) % 2), (X, np.r_[1, np.arange(1, 12) % 2])

    def test_one_sees_another_record(self):
        result = measurement_audit(self.model, *self.data)
        assert result.passed
        found = result.table.set_index("what")["found"]
        assert found["sets that share a record"] == 1.0
        assert found["parts that share a record"] in (0.0, 1.0)
        assert len(result.unmoved) == 1

    def test_two_that_see_it_are_refuted(self, monkeypatch):
        def everybody(stack, source):
            order = np.arange(stack.n_records)
            return [order] * len(stack.low), order

        monkeypatch.setattr(Stack, "deal", everybody)
        (_, *said) = refuted([measurement_audit(self.model, *self.data)]).partition("sets")
        assert "that share a record: 2 of 1" in "".join(said)
        assert "parts that share a record: 2 of 1" in "".join(said)


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


class TestWalk:
    """In order, and after the same releases."""

    def test_all_kinds_of_nodes(self):
        first, second, third = (count(0.1, name) for name in "abc")
        chosen = []

        def choose(known):
            chosen.append(dict(known))
            return second

        apart = Disjoint((third,), lambda records, source: [records])
        tree = Sequential((first, Total(0.1, choose, (second,)), apart))
        seen = list(visits(tree, {"public": 1}, RECORDS, RECORDS, random_source(0)))
        assert [visit.node for visit in seen] == [first, second, apart, third]
        assert [set(visit.known) - {"seen"} for visit in seen] == [
            {"public"}, {"a", "public"}, *[{"a", "b", "public"}] * 2
        ]  # fmt: skip
        assert seen[1].known["a"] == seen[3].known["a"] == chosen[0]["a"]
        assert seen[2].one == [RECORDS]


@pytest.mark.parametrize("sampler", ["mala", "psgld"])
def test_chains_are_compared(sampler):
    model = hazard(method=PosteriorSampling(sampler, n_epochs=1000), inference_share=0.0)
    result = measurement_audit(model, *pair(model, AT_ONCE, n=4))
    assert result.passed
    assert {each.what for each in result.distances} == {"energies", "log ratios"}
    assert result.distances[-1].share > 0.01


def test_a_table_of_what_was_found():
    result = measurement_audit(DPKaplanMeierFitter(max_time=10.0), *EVENT)
    assert list(result.table) == ["measurement", "price", "what", "found", "allowed"]
    assert result.unmoved == ()
    near = measurement_audit(DPKaplanMeierFitter(max_time=10.0), EVENT[0], ([1.1, 4.0], [1, 1]))
    assert near.passed
    (name,) = near.unmoved
    assert f"nothing found out of {name}" in repr(near)


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
