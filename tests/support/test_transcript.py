"""Half of the noise in any one part of any estimator is found."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from skdpsurv import DPKaplanMeierFitter, DPLogisticRegression, PosteriorSampling
from skdpsurv.dp.privacy_cost import Cost
from skdpsurv.evaluation import released_values
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.mechanisms import perturbation, sums, vector_noise
from skdpsurv.mechanisms import sums as moments
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.survival.curves import table as curve_table
from skdpsurv.survival.hazards import discrete_time
from skdpsurv.survival.weibull import counts as weibull_counts
from tests.support.choice_law import log_exponential_mechanism, log_permute_and_flip
from tests.support.planted_noise import HALF, NONE, Place, less_noise
from tests.support.registry import PROTECTED
from tests.support.transcript import transcript_audit
from tests.support.transcript_cases import AT_ONCE, CASES, Case, Pair, hazard
from tests.support.worst_pairs import pair


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Of evaluations, for intervals that follow from what was released."""
    monkeypatch.setattr(released_values, "N_RESAMPLES", 10)


SLOW = ("hazard, ", "Weibull, corrected", "rows", "search", "evaluation")


def named(*slow: str) -> Any:
    """Return a parameter for each case, some of them slow."""
    marks = {name: [pytest.mark.slow] if name.startswith(slow) else [] for name in CASES}
    values = [pytest.param(name, marks=marked) for name, marked in marks.items()]
    return pytest.mark.parametrize("name", values)


def audited(case: Case, made: Pair) -> Any:
    return transcript_audit(case.estimator, *made, n_cells=64)


def found(case: Case) -> tuple[list[Place], list[tuple[float, Pair]]]:
    """Return where noise is drawn, and for each part the largest share of its price, and where."""
    best: list[tuple[float, Pair]] = []
    with less_noise(None, HALF) as places:
        for made in case.made():
            result = audited(case, made)
            assert result.passed, result
            shares = [(part.share, made) for part in result.parts]
            best = [
                max(pair, key=itemgetter(0)) for pair in zip(best or shares, shares, strict=True)
            ]
    assert len(places) == case.n_places
    return places, best


@named(*SLOW)
def test_half_of_the_noise_in_any_one_part_is_refuted(name):
    """And the pairs that show it move the part by nearly as much as a record may."""
    case = CASES[name]
    places, best = found(case)
    for number, (share, _) in enumerate(best):
        if number not in case.unmoved:
            assert share > 0.55, number
    pairs = list({id(made): made for _, made in best}.values())
    for number, place in enumerate(places):
        # First the one that moves the part most, where parts have one sort of noise each.
        first = [best[number][1]] if len(best) == len(places) else []
        with less_noise(place, HALF):
            results = (audited(case, made) for made in first + pairs)
            seen = any(not result.passed for result in results)
        assert seen != (number in case.unmoved), place


@named(*SLOW, "hazard")
def test_no_noise_in_any_one_part_is_refuted(name):
    """Whether the pair moves the part or not."""
    case = CASES[name]
    made = next(iter(case.made()))
    with less_noise(None, NONE) as places:
        assert audited(case, made).passed
    for place in places:
        with less_noise(place, NONE):
            result = audited(case, made)
        assert not result.passed, place
        assert result.total == np.inf


class Half:
    """A sensitivity of half of what it is."""

    def __init__(self, honest: Any) -> None:
        self.honest = honest.fget

    def __get__(self, query: Any, kind: Any) -> Any:
        return self.honest(query) / 2 if self.honest(query) % 2 else self.honest(query) // 2


@pytest.mark.parametrize(
    ("kind", "case", "part"),
    [
        pytest.param(sums.CellSums, "hazard", "CellSums", marks=pytest.mark.slow),
        (sums.Sum, "Weibull", "Sum"),
        (sums.Sums, "hybrid, curve", "Sums"),
        (moments.SecondMoments, "logistic", "second moments of rows"),
    ],
)
def test_half_of_a_sensitivity_is_refuted(monkeypatch, kind, case, part):
    monkeypatch.setattr(kind, "sensitivity", Half(kind.sensitivity))
    results = [audited(CASES[case], made) for made in CASES[case].made()]
    assert any(part in said for result in results for said in result.refuted)


def test_half_of_the_sensitivity_of_a_histogram_is_refuted(monkeypatch):
    case = CASES["Kaplan-Meier"]
    monkeypatch.setattr(curve_table.EventCounts, "asked", sums.Histogram(1))
    (result,) = (audited(case, made) for made in case.made())
    assert result.refuted[0] == "Histogram: 2 of 1"
    assert "REFUTED" in repr(result)
    assert result.total == pytest.approx(2.0)


@pytest.mark.parametrize(
    "name",
    [
        "hazard",
        *(pytest.param(f"hazard, {n}", marks=pytest.mark.slow) for n in ("output", "descent")),
    ],
)
def test_half_of_the_sensitivity_of_gradients_is_refuted(monkeypatch, name):
    honest = DiscreteHazard.constants.func

    def half(self):
        whole = honest(self)
        return replace(whole, gradient_sensitivity=whole.gradient_sensitivity / 2)

    monkeypatch.setattr(DiscreteHazard, "constants", property(half))
    results = [audited(CASES[name], made) for made in CASES[name].made()[:2]]
    assert any(not result.passed for result in results)


def test_noise_that_is_drawn_and_added_to_nothing_is_refuted(monkeypatch):
    def unhidden(found, calibration, source):
        vector_noise.draw_noise(calibration.output, source)
        return found

    monkeypatch.setattr(perturbation, "_released", unhidden)
    model = DPLogisticRegression(classes=[0, 1], method="out_pert", data_norm=1.0)
    X = np.full((6, 1), 0.5)
    result = transcript_audit(model, (X, [0, 1, 0, 1, 0, 1]), (X, [1, 1, 0, 1, 0, 1]))
    assert not result.passed
    assert result.total == np.inf


def test_parts_that_no_record_moved_are_listed():
    model = DPKaplanMeierFitter(max_time=10.0)
    result = transcript_audit(model, ([1.0, 4.0], [1, 1]), ([1.1, 4.0], [1, 1]))
    assert result.passed
    assert result.unmoved == ("Histogram",)
    assert "nothing found out of Histogram" in repr(result)
    moved = transcript_audit(model, ([1.0, 4.0], [1, 1]), ([9.0, 4.0], [1, 1]))
    assert moved.unmoved == ()


def test_what_is_released_as_it_is_does_not_follow(monkeypatch):
    monkeypatch.setattr(sums, "_released", lambda query, exact, price, source: exact)
    case = CASES["Kaplan-Meier"]
    (result,) = (audited(case, made) for made in case.made())
    assert not result.follows
    assert "follow" in result.refuted[0]
    assert result.parts == ()


def test_prices_that_add_up_to_more_than_epsilon_are_refuted(monkeypatch):
    monkeypatch.setattr(discrete_time, "remaining_budget", lambda whole, *spent: whole)
    # A plan that costs too much cannot be made: let it.
    monkeypatch.setattr(Cost, "within", lambda *arguments: True)
    case = CASES["hazard"]
    results = [audited(case, made) for made in case.made()[1:2]]
    assert any("prices of all parts" in said for result in results for said in result.refuted)


def test_a_scale_that_depends_on_the_records_is_refuted(monkeypatch):
    honest = sums.lattice_laplace

    def laplace(value, scale, source):
        return honest(value, scale * (1.0 + abs(np.sum(value)) / 1000.0), source)

    monkeypatch.setattr(sums, "lattice_laplace", laplace)
    case = CASES["Weibull"]
    assert any(not audited(case, made).passed for made in case.made())


def test_a_ladder_that_moves_by_two_rungs_is_refuted(monkeypatch):
    class Doubled(weibull_counts.ReleasedMeanLevels):
        def down_to(self, node):
            return 2 * super().down_to(node)

        def up_to(self, node):
            return 2 * super().up_to(node)

    monkeypatch.setattr(weibull_counts, "ReleasedMeanLevels", Doubled)
    case = CASES["Weibull"]
    results = [audited(case, made) for made in case.made()]
    assert any("ladder" in said for result in results for said in result.refuted)


def test_one_noisy_gradient_of_many_counts():
    case = CASES["logistic, descents"]
    made = next(iter(case.made()))
    drawn = itertools.count()
    honest = vector_noise.exact_spherical_gaussian

    def small(size, scale, source):
        return honest(size, scale / 2 if next(drawn) % 7 == 0 else scale, source)

    assert audited(case, made).passed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_noise, "exact_spherical_gaussian", small)
        assert not audited(case, made).passed


@pytest.mark.parametrize("sampler", ["mala", "psgld"])
def test_chains_are_refused(sampler):
    model = hazard(method=PosteriorSampling(sampler, n_epochs=1000), inference_share=0.0)
    with pytest.raises(TypeError, match="law that is not known"):
        transcript_audit(model, *pair(model, AT_ONCE, n=4))


def test_chains_within_a_search_are_refused():
    """The search itself takes a run that fails for one that is bad."""
    model = hazard(method=PosteriorSampling(n_epochs=100), inference_share=0.0)
    tried = PrivateSearchCV(model, {"alpha": [1.0]}, epsilon=4.0)
    with pytest.raises(TypeError, match="law that is not known"):
        transcript_audit(tried, *pair(model, AT_ONCE, n=9))


#: Of which no law is known.
CHAINS = ("mala", "psgld")


def neighbours(setting: Any) -> list[tuple[Any, ...]]:
    return [
        (each.X, each.y, each.options)[: 3 if each.options else 2]
        for each in setting.data().neighbours()
    ]


@pytest.mark.parametrize(
    "setting",
    [
        setting if setting.representative else pytest.param(setting, marks=pytest.mark.slow)
        for setting in PROTECTED
        if not setting.name.split(": ")[1].startswith(CHAINS)
    ],
    ids=str,
)
def test_every_setting_passes(setting):
    """For some extreme neighbours: each draw is known, and none is too dear."""
    sets = neighbours(setting)
    for data, neighbour in itertools.pairwise(sets[1:]):
        result = transcript_audit(setting.make(), data, neighbour, n_cells=64)
        assert result.passed, result
        assert result.parts
        assert all(np.isfinite(part.allowed) for part in result.parts)
        if setting.representative:
            break


def test_law_of_permute_and_flip():
    """Beside all orders of three candidates."""
    exponents = [Fraction(0), Fraction(1, 2), Fraction(3)]
    kept = np.exp([-float(x) for x in exponents])
    outcome_probabilities = np.zeros(3)
    for order in itertools.permutations(range(3)):
        left = 1.0 / 6.0
        for i in order:
            outcome_probabilities[i] += left * kept[i]
            left *= 1.0 - kept[i]
    np.testing.assert_allclose(
        np.exp(log_permute_and_flip(exponents)), outcome_probabilities, rtol=1e-12
    )
    np.testing.assert_allclose(
        np.exp(log_exponential_mechanism(exponents)), kept / kept.sum(), rtol=1e-12
    )
