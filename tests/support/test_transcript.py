"""Half of the noise in any one part of any estimator is found."""

import itertools
import threading
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from operator import itemgetter
from unittest import mock

import numpy as np
import pytest

from skdpsurv import DPKaplanMeierFitter, DPLogisticRegression, PosteriorSampling
from skdpsurv.dp import noise, random_source
from skdpsurv.dp.exact_matrices import n_entries
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.dp.privacy_cost import Cost
from skdpsurv.evaluation import released_values
from skdpsurv.mechanisms import newton, perturbation, semidefinite_noise, sums, vector_noise
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.survival.hazards import fit_plan
from tests.support import checks
from tests.support.asked_source import INSTEAD, AskedSource, asked_instead
from tests.support.draw_ratio import log_exponential_mechanism, log_permute_and_flip
from tests.support.registry import PROTECTED
from tests.support.transcript import transcript_audit
from tests.support.transcript_cases import AT_ONCE, CASES, hazard, some_neighbours
from tests.support.worst_pairs import pair


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Of evaluations, for intervals that follow from what was released."""
    monkeypatch.setattr(released_values, "N_RESAMPLES", 10)


# ---- Less noise in one part of a fit, by the number of the part and of its draw.


def _place(source):
    part = source._answers
    how = part.what.calibration if isinstance(part.what, Problem) else None
    two_sorts = how is not None and how.linear is not None and how.output is not None
    return part.replay.parts.index(part), len(part.drawn) if two_sorts else 0


def _half(honest, what, scale, source):
    return honest(what, scale / 2, source)


def _at_zero(honest, size, scale, source):
    return ExactVector([0] * size, scale)


#: Where noise is drawn, and what half of it is, or none.
HALF = {
    (sums, "lattice_laplace"): _half,
    (sums, "lattice_gaussian"): _half,
    (sums, "permute_and_flip"): lambda honest, scores, epsilon, *others: honest(
        scores, 2 * epsilon, *others
    ),
    (vector_noise, "exact_spherical_laplace"): _half,
    (vector_noise, "exact_spherical_gaussian"): _half,
    (semidefinite_noise, "exact_semidefinite_laplace"): _half,
}
NONE = {
    (sums, "lattice_laplace"): lambda honest, value, scale, source: value,
    (sums, "lattice_gaussian"): lambda honest, value, scale, source: value,
    (sums, "permute_and_flip"): lambda honest, scores, *others: int(np.argmax(scores)),
    (vector_noise, "exact_spherical_laplace"): _at_zero,
    (vector_noise, "exact_spherical_gaussian"): _at_zero,
    (semidefinite_noise, "exact_semidefinite_laplace"): lambda honest, width, *others: _at_zero(
        honest, n_entries(width), *others
    ),
}


@contextmanager
def less_noise(place, how):
    """Plant less noise in one place, or nowhere; yield the places where noise is drawn."""
    seen = []

    def planted(honest, faulty):
        def draw(*arguments):
            if not isinstance(arguments[-1], AskedSource):  # what is made of a release
                return honest(*arguments)
            here = _place(arguments[-1])
            if here not in seen:
                seen.append(here)
            return faulty(honest, *arguments) if here == place else honest(*arguments)

        return draw

    with ExitStack() as stack:
        for (module, name), faulty in how.items():
            honest = getattr(module, name)
            stack.enter_context(mock.patch.object(module, name, planted(honest, faulty)))
        yield seen


SLOW = ("hazard", "competing", "logistic, three", "Weibull, ", "rows", "hybrid, s")
SLOW += ("search", "evaluation")


def named(*slow):
    """Return a parameter for each case, some of them slow."""
    marks = [pytest.mark.slow]
    names = [pytest.param(n, marks=marks if n.startswith(slow) else []) for n in CASES]
    return pytest.mark.parametrize("name", names)


def audited(case, made):
    return transcript_audit(case.estimator, *made, n_cells=64)


def found(case):
    """Return where noise is drawn, and for each part the largest share of its price, and where.

    And the numbers of parts that no pair moves: a measurement's, but that solvers have parts.
    """
    best, unmoved = [], set()
    with less_noise(None, HALF) as places:
        for made in case.made():
            result = audited(case, made)
            assert result.passed, result
            shares = [(part.share, made) for part in result.parts]
            names = [part.name for part in result.parts]
            of = [number - names[:number].count("solver") for number in range(len(names))]
            unmoved = {
                n for n, name in enumerate(names) if name != "solver" and of[n] in case.unmoved
            }
            best = [max(two, key=itemgetter(0)) for two in zip(best or shares, shares, strict=True)]
    assert len(places) == case.n_places
    return places, best, unmoved


@named(*SLOW)
def test_half_of_the_noise_in_any_one_part_is_refuted(name):
    """And the pairs that show it move the part by nearly as much as a record may."""
    case = CASES[name]
    places, best, unmoved = found(case)
    for number, (share, _) in enumerate(best):
        if number not in unmoved:
            assert share > 0.51, number
    pairs = list({id(made): made for _, made in best}.values())
    for number, place in enumerate(places):
        # First the one that moves the part most, where parts have one sort of noise each.
        first = [best[number][1]] if len(best) == len(places) else []
        with less_noise(place, HALF):
            results = (audited(case, made) for made in first + pairs)
            seen = any(not result.passed for result in results)
        assert seen != (number in unmoved), place


@named(*SLOW)
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


def test_no_minimum_is_asked_for_that_no_fit_releases(monkeypatch):
    """Where ridges are small, a solver would look for it for more than ten minutes."""
    monkeypatch.setattr(newton, "gradient_descent", mock.Mock(side_effect=AssertionError))
    case = CASES["logistic, three classes"]
    assert all(audited(case, made).passed for made in case.made())


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


def test_a_part_that_no_record_moved_has_nothing_found():
    model = DPKaplanMeierFitter(max_time=10.0)
    for time, moved in ((1.1, 0.0), (9.0, 1.0)):
        result = transcript_audit(model, ([1.0, 4.0], [1, 1]), ([time, 4.0], [1, 1]))
        assert result.passed
        assert [part.found for part in result.parts] == pytest.approx([moved])


def test_what_is_released_as_it_is_does_not_follow(monkeypatch):
    monkeypatch.setattr(sums, "_released", lambda query, exact, price, source: exact)
    case = CASES["Kaplan-Meier"]
    (result,) = (audited(case, made) for made in case.made())
    assert not result.follows
    assert "follow" in result.refuted[0]
    assert result.parts == ()


def test_prices_that_add_up_to_more_than_epsilon_are_refuted(monkeypatch):
    monkeypatch.setattr(fit_plan, "remaining_budget", lambda whole, *spent: whole)
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


def test_one_noisy_gradient_of_many_counts():
    case = CASES["logistic, descents"]
    made = next(iter(case.made()))
    drawn = itertools.count()
    honest = vector_noise.exact_spherical_gaussian

    def small(size, scale, source):
        return honest(size, scale / 2 if next(drawn) % 7 == 0 else scale, source)

    assert audited(case, made).passed
    with mock.patch.object(vector_noise, "exact_spherical_gaussian", small):
        assert not audited(case, made).passed


#: Of which no law is known.
CHAINS = ("mala", "psgld")


@pytest.mark.parametrize("sampler", CHAINS)
def test_chains_are_refused(sampler):
    """Within a search, too, which by itself takes a run that fails for one that is bad."""
    model = hazard(method=PosteriorSampling(sampler, n_epochs=1000), inference_share=0.0)
    data = pair(model, AT_ONCE, n=9)
    for chain in (model, PrivateSearchCV(model, {"alpha": [1.0]}, epsilon=4.0)):
        with pytest.raises(TypeError, match="law that is not known"):
            transcript_audit(chain, *data)


@checks.each([s for s in PROTECTED if not s.name.split(": ")[1].startswith(CHAINS)])
def test_every_setting_passes(setting):
    """For some extreme neighbours: each draw is known, and none is too dear."""
    for data, neighbour in some_neighbours(setting):
        result = transcript_audit(setting.make(), data, neighbour, n_cells=64)
        assert result.passed, result
        assert result.parts
        assert all(np.isfinite(part.allowed) for part in result.parts)


def test_law_of_permute_and_flip():
    """Beside all orders of three candidates."""
    exponents = [Fraction(0), Fraction(1, 2), Fraction(3)]
    kept = np.exp([-float(x) for x in exponents])
    expected = np.zeros(3)
    for order in itertools.permutations(range(3)):
        left = 1.0 / 6.0
        for i in order:
            expected[i] += left * kept[i]
            left *= 1.0 - kept[i]
    np.testing.assert_allclose(np.exp(log_permute_and_flip(exponents)), expected, rtol=1e-12)
    found = np.exp(log_exponential_mechanism(exponents))
    np.testing.assert_allclose(found, kept / kept.sum(), rtol=1e-12)


class Answers:
    def __init__(self):
        self.asked = []

    def part(self, what, price):
        return self

    def ask(self, draw):
        self.asked.append(draw.law)
        return draw.given


def test_whoever_holds_a_sampler_has_the_one_that_asks():
    """Also in a closure: what is planted in place of a sampler calls the one from before.

    Fits that are not private anyway ask, in this thread, and nobody else does.
    """
    held, answers, found = sums.lattice_laplace, Answers(), []
    code = noise.uniform_below.__code__
    with asked_instead(answers):
        assert held(7, 1e9, random_source(0)) == 7
        noisy = sums.HISTOGRAM.release(np.array([1, 2]), 1.0, random_source(0))
        assert noisy.tolist() == [1, 2]
        split = random_source(0, purpose="split").generator.random()
        source = random_source(None)
        assert len({held(0, 1e9, source) for _ in range(5)}) > 1
        thread = threading.Thread(target=lambda: found.append(random_source(0)))
        thread.start()
        thread.join()
    assert answers.asked == ["discrete Laplace"] * 2
    assert split == random_source(0, purpose="split").generator.random()
    assert noise.uniform_below.__code__ is code
    assert not any(isinstance(each, AskedSource) for each in (*found, random_source(0)))
    assert held(7, 1e9, random_source(0)) != 7
    assert not any(name.startswith("_instead_of") for f in INSTEAD for name in f.__globals__)
