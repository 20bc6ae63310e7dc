"""Replays with frozen answers: what is shipped does not diverge, and what is planted does."""

import functools
import warnings
from itertools import islice
from unittest import mock

import numpy as np
import pytest

from skdpsurv import DPKaplanMeierFitter, DPLogisticRegression, PosteriorSampling
from skdpsurv.audit import measurement_audit, replay_audit
from skdpsurv.audit.measurements import PROMISES_NOTHING
from skdpsurv.audit.tape import Tape
from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_laplace
from skdpsurv.mechanisms import moments, perturbation, sums, vector_noise
from skdpsurv.survival.curves.event_counts import EventCounts
from tests.audit import test_measurements as measurements
from tests.audit.test_measurements import EVENT, refuted
from tests.support.planted_defects import (
    NoisySum,
    doubled_ladder,
    half_of_gradients,
    half_of_histograms,
    halved,
    less_gaussian_noise,
    less_lattice_noise,
    less_vector_noise,
)
from tests.support.registry import PROTECTED
from tests.support.transcript_cases import AT_ONCE, CASES, hazard, some_neighbours
from tests.support.worst_pairs import pair

QUICK = ("Kaplan-Meier", "hybrid", "Table 1", "Poisson")


audited = functools.partial(measurements.audited, audit=replay_audit)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_every_measurement_passes_and_is_moved_by_more_than_half(name):
    """Of what all its draws may cost, by the pairs that are made for it.

    Of noise in an objective a part only: the frozen minimum is not the worst one.
    """
    most = {}
    for result in audited(name):
        assert result.passed, result
        for each in result.distances:
            if each.what == "all that it drew":
                most[each.measurement] = max(most.get(each.measurement, 0.0), each.share)
    names = [leaf for number, leaf in enumerate(most) if number not in CASES[name].unmoved]
    assert all(most[leaf] > (0.05 if leaf.startswith("objective") else 0.5) for leaf in names), most


@pytest.mark.slow
@pytest.mark.parametrize("setting", PROTECTED, ids=str)
def test_every_setting_passes(setting):
    """For one pair of extreme neighbours."""
    for data, neighbour in islice(some_neighbours(setting), 1):
        result = replay_audit(setting.make(), data, neighbour)
        assert result.passed, result
        assert result.distances


# ---- Planted defects.


def scale_of_records():
    def laplace(value, scale, source):
        found = abs(np.dot(np.ravel(value), np.arange(np.size(value)) + 1.0))
        return lattice_laplace(value, scale * (1.0 + 1e-9 * found), source)

    return mock.patch.object(sums, "lattice_laplace", laplace)


def branch_on_records():
    def laplace(value, scale, source):
        if np.ravel(value)[0] > 0:
            lattice_laplace(0, scale, source)
        return lattice_laplace(value, scale, source)

    return mock.patch.object(sums, "lattice_laplace", laplace)


def no_noise_on_sums():
    return mock.patch.object(sums, "_released", lambda query, exact, price, source: exact)


def no_noise_on_minimisers():
    return mock.patch.object(perturbation, "_released", lambda found, how, source: found)


def unused_noise():
    def unhidden(found, how, source):
        vector_noise.draw_noise(how.output, source)
        return found

    return mock.patch.object(perturbation, "_released", unhidden)


def best_choice():
    def best(scores, *others):
        return int(np.argmax(scores))

    return mock.patch.object(sums, "permute_and_flip", best)


def exact_sums_beside():
    """Released beside the noisy ones."""
    honest = EventCounts.run

    def run(self, context, records, source):
        exact = np.array(self.exact_answer(context, records), float)
        return {**honest(self, context, records, source), "exact": exact}

    return mock.patch.object(EventCounts, "run", run)


#: What is planted, where, and what the audit says of it.
PLANTED = {
    "scale from records": (scale_of_records, "Kaplan-Meier", "discrete laplace"),
    "a branch on records": (branch_on_records, "Kaplan-Meier", "draw 2 is"),
    "half of a sum's sensitivity": (functools.partial(halved, sums.Sum), "Weibull", "in L1: "),
    "half of a histogram's": (half_of_histograms, "Kaplan-Meier", "in L1: 2 of 1"),
    "half of a mean's": (functools.partial(halved, moments.MeanOfRows), "hazard", "in L2: "),
    "half of a trace": (
        *(functools.partial(halved, moments.SecondMoments, "largest_trace"), "logistic"),
        "in traces: ",
    ),
    "half of S": (half_of_gradients, "hazard", "gradients at the minimum"),
    "half of S, output": (half_of_gradients, "hazard, output", "all that it drew"),
    "half of S, descent": (half_of_gradients, "hazard, descent", "all that it drew"),
    "levels that move by two": (doubled_ladder, "Weibull", "levels: 2 of 1"),
    "half of the noise on sums": (
        functools.partial(less_lattice_noise, 0.5),
        *("Kaplan-Meier", "in L1: 2 of 1"),
    ),
    "half of the noise on vectors": (
        functools.partial(less_vector_noise, 0.5),
        *("logistic, output", "all that it drew"),
    ),
    "half of the Gaussian noise": (
        functools.partial(less_gaussian_noise, 0.5),
        *("logistic, descents", "all that it drew"),
    ),
    "a sum without noise": (no_noise_on_sums, "Kaplan-Meier", "draws nothing"),
    "a minimiser without noise": (no_noise_on_minimisers, "logistic, output", "draws nothing"),
    "noise on nothing": (unused_noise, "logistic, output", "not added once"),
    "a choice without noise": (best_choice, "hybrid, subset", "draws nothing"),
    "exact sums beside": (exact_sums_beside, "Kaplan-Meier", "release_.values is another"),
}
SLOW = ("hazard", "logistic", "Weibull", "hybrid, ")


@pytest.mark.parametrize(
    ("defect", "name", "said"),
    [
        pytest.param(*planted, marks=[pytest.mark.slow] * planted[1].startswith(SLOW), id=what)
        for what, planted in PLANTED.items()
    ],
)
def test_a_planted_defect_is_found(defect, name, said):
    with defect():
        results = audited(name)
    assert said in refuted(results)
    assert any("REFUTED" in repr(result) for result in results)


class Private(DPKaplanMeierFitter):
    """Keeps, warns of or fails by a private number, or draws noise beside its plan."""

    def __init__(self, epsilon=1.0, *, max_time=None, random_state=None, does="keeps"):
        super().__init__(epsilon, max_time=max_time, random_state=random_state)
        self.does = does

    def _read(self, shape, X, *arguments, **options):
        if self.does == "keeps":
            self.first_ = float(X[0])
        elif self.does == "warns":
            warnings.warn(f"the first is {X[0]}", UserWarning, stacklevel=1)
        elif self.does == "draws":
            lattice_laplace(int(X[0]), 1.0, random_source(0))
        elif X[0] > 5.0:
            raise ValueError("late")
        return super()._read(shape, X, *arguments, **options)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("keeps", "first_ is another"),
        ("warns", "warns of"),
        ("fails", "raised ValueError: late"),
        ("draws", "outside of its measurements"),
    ],
)
def test_what_a_fit_keeps_says_and_raises_is_compared(does, said):
    result = replay_audit(Private(max_time=10.0, does=does), *EVENT)
    assert said in result.diverged[-1]
    assert not result.passed


def test_what_no_record_moved_is_listed():
    result = replay_audit(DPKaplanMeierFitter(max_time=10.0), EVENT[0], ([1.1, 4.0], [1, 1]))
    assert result.passed
    assert result.unmoved
    assert list(result.table) == ["measurement", "price", "what", "found", "allowed"]


@pytest.mark.parametrize("audit", [measurement_audit, replay_audit])
def test_a_fit_that_promises_nothing_is_called_that(audit):
    """Its classes are read off the records."""
    rows, labels = [[0.1], [0.2], [0.3], [0.4]], [0, 1, 0, 1]
    model = DPLogisticRegression(random_state=0)
    result = audit(model, (rows, labels), ([[0.9], *rows[1:]], labels))
    assert PROMISES_NOTHING in result.not_audited
    assert "its status is 'none'" in repr(result)


def test_answers_are_those_of_the_seed_and_are_frozen():
    """The first fit draws noise as any seeded fit does; the second one gets the same numbers."""
    first = Tape()
    second = Tape(first)
    found = []
    for value, tape in ((np.array([1, 50]), first), (np.array([2, 48]), second)):
        with tape.running():
            source = random_source(3)
            found.append(lattice_laplace(value, 2.0, source).tolist())
            found.append(source.generator.random())
    assert found[:2] == found[2:]
    assert found[0] != [1, 50]
    one, other = (tape.parts[0].draws[0] for tape in (first, second))
    (gap,) = one.gaps(one, other)
    assert gap == ("in L1", 3.0, 2.0, None)
    assert type(random_source(3)).__name__ == "RandomSource"


def test_a_source_without_a_seed_is_never_replayed():
    with Tape().running():
        assert not random_source(None).seeded
        assert type(random_source(None)) is type(random_source(3, purpose="split"))
        assert type(random_source(3)) is not type(random_source(None))


@pytest.mark.parametrize("sampler", ["mala", pytest.param("psgld", marks=pytest.mark.slow)])
def test_chains_are_frozen_as_a_whole(sampler):
    model = hazard(method=PosteriorSampling(sampler, n_epochs=1000), inference_share=0.0)
    result = replay_audit(model, *pair(model, AT_ONCE, n=4))
    assert result.passed
    assert {each.what for each in result.distances} >= {"energies"}
    assert any("frozen as a whole" in each for each in result.not_audited)


@pytest.mark.parametrize(
    ("estimator", "data", "match"),
    [
        (NoisySum(), (([[0.0]], [0]), ([[1.0]], [0])), "plan"),
        (DPKaplanMeierFitter(max_time=10.0), (EVENT[0], EVENT[0]), "identical"),
        (DPKaplanMeierFitter(np.inf, max_time=10.0), EVENT, "no claim"),
    ],
)
def test_what_cannot_be_compared_is_refused(estimator, data, match):
    with pytest.raises((TypeError, ValueError), match=match):
        replay_audit(estimator, *data)
