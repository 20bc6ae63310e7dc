"""Every link keeps to what its proofs and its releases say: those of ``LINKS``, and one more.

Truth is the formula that releases print, in 50 correct digits and more. A new link is a class and a
line of ``LINKS``, and is tried here at once.
"""

import itertools
import math
import re
import tomllib
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import special

import skdpsurv
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import ETA_LIMIT, LINKS, Link, Logit, Symmetric
from skdpsurv.report.text import WORDS
from tests.likelihoods.hazards import records
from tests.support.hazard_blocks import hazard_block

#: Digits at which truth is computed, and digits that subtractions from 1 may take from it.
DIGITS, SPARE = 220, 150
TINY = np.finfo(float).tiny
#: What formulas call, as numbers and with all digits.
FLOATS = {"exp": np.exp, "expit": special.expit, "normal_cdf": special.ndtr}
EXACT = {
    "exp": mpmath.exp,
    "expit": lambda v: 1 / (1 + mpmath.exp(-v)),
    "normal_cdf": lambda v: mpmath.erfc(-v / mpmath.sqrt(2)) / 2,
}


class Steep(Logit):
    """A link of somebody's own: the logit of twice the predictor, with slopes up to 2."""

    name, formula = "steep", "expit(2 * ({}))"
    event_curvature, bounded_slope, series, rough_series = 1.0, False, None, None
    strip = math.pi / 2
    survival_outer = Link.survival_outer

    def predictor(self, hazard):
        return super().predictor(hazard) / 2

    def survival(self, eta):
        value, slope, curvature = super().survival(2 * np.asarray(eta))
        return type(super().survival(eta))(value, 2 * slope, 4 * curvature)

    def slope_inverse(self, slope):
        return super().slope_inverse(slope / 2) / 2

    def curvature_of_slope(self, slope):
        return 4 * super().curvature_of_slope(slope / 2)


STEEP = Steep(event_slope=2.0)


@pytest.fixture(params=[*LINKS, STEEP.name])
def link(request, monkeypatch):
    if request.param == STEEP.name:
        monkeypatch.setitem(LINKS, STEEP.name, STEEP)
    return LINKS[request.param]


@pytest.fixture(params=[1e-6, 0.02, 0.3])
def bounded(request, link):
    """The link as fits have it, its event slope bounded at a public hazard."""
    return link.bounded_at(request.param)


GRID = np.unique(
    np.concatenate([np.linspace(-ETA_LIMIT, ETA_LIMIT, 351), np.linspace(-12.0, 12.0, 241)])
)


@cache
def truth(formula):
    """Return predictors, and the losses of both outcomes there with two derivatives, exactly."""
    with mpmath.workdps(DIGITS):

        def hazard(eta):
            return eval(formula.format("eta"), {**EXACT, "eta": mpmath.mpf(eta)})

        losses = (lambda eta: -mpmath.log1p(-hazard(eta))), (lambda eta: -mpmath.log(hazard(eta)))
        spare = mpmath.mpf(10) ** -SPARE
        tried = (-300.0, -90.0, -37.0, -20.5, *np.arange(-9.0, 9.5, 0.75), 20.5, 37.0, 300.0)
        kept = [eta for eta in tried if spare < hazard(eta) < 1 - spare]
        found = [[eta, *(mpmath.diff(f, eta, k) for f in losses for k in range(3))] for eta in kept]
        return np.array([[float(one) for one in row] for row in found])


# ---- The functions.


def test_losses_and_derivatives_are_those_of_the_formula(link):
    eta, *exact = truth(link.formula).T
    assert eta.size >= 15
    assert eta[0] < -19.0
    found = [*link.survival(eta), *link._natural_event(eta)]
    for one, other, tolerance in zip(found, exact, [1e-12, 1e-12, 1e-10] * 2, strict=True):
        normal = np.abs(other) >= TINY
        # Curvatures of 1e-16 are lost in slopes near 1, in the tail where no noise depends on them.
        np.testing.assert_allclose(one[normal], other[normal], rtol=tolerance, atol=1e-15)
        assert np.all(np.abs(one[~normal]) <= TINY)


def test_the_predictor_is_the_inverse_of_the_formula(link):
    hazards = np.array([1e-12, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
    eta = np.array([link.predictor(hazard) for hazard in hazards])
    again = eval(link.formula.format("eta"), {**FLOATS, "eta": eta})
    np.testing.assert_allclose(again, hazards, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(-np.expm1(-link.survival(eta).value), hazards, rtol=1e-10)


def test_slopes_are_positive_normal_numbers_or_their_tail_is_exact(link):
    """A slope of 0 is that of a record without influence: no record may get one by rounding."""
    slope = link.survival(GRID).slope
    assert np.all(np.diff(slope) >= 0.0)
    assert np.all(np.isfinite(slope))
    with mpmath.workdps(50):
        for eta in GRID[slope < TINY]:  # all digits of the hazard: it is the slope but for 1 - h

            def hazard(x):
                return eval(link.formula.format("eta"), {**EXACT, "eta": mpmath.mpf(x)})

            assert mpmath.diff(hazard, eta) < TINY * 1.01


def test_the_slope_is_inverted(link):
    eta = np.linspace(-20.0, 2.0, 89)
    slope = link.survival(eta).slope
    np.testing.assert_allclose(link.slope_inverse(slope), eta, rtol=1e-9, atol=1e-9)


def test_outer_sums_are_the_plain_ones(link):
    for scale, order in itertools.product((1.0, 30.0, ETA_LIMIT), (1, 2)):
        a, b = np.linspace(-9.0, 3.0, 25), scale * np.linspace(-1.0, 1.0, 17)
        slope, curvature = link.survival_outer(a, b, order)
        expected = link.survival(a + b[:, None])
        np.testing.assert_allclose(slope, expected.slope, rtol=1e-13, atol=TINY)
        assert (curvature is None) == (order == 1)
        if order == 2:
            np.testing.assert_allclose(curvature, expected.curvature, rtol=1e-12, atol=TINY)


def test_series_are_the_slope(link):
    for series, tolerance in ((link.series, 1e-15), (link.rough_series, 1e-7)):
        if series is None:
            continue
        share = np.array([1e-12, 1e-6, 0.01, 0.1, 0.3, 0.7, 0.99, 1.0])
        expected = link.survival(np.log(share) + series.log_limit)
        for name, error in (("slope", tolerance), ("curvature", 1e-5)):
            polynomial = np.polynomial.Polynomial([0.0, *getattr(series, name)])(share)
            scale = series.limit if error > 1e-14 else 0.0
            np.testing.assert_allclose(
                polynomial, getattr(expected, name), rtol=100 * error, atol=error * scale
            )


@pytest.mark.parametrize("level", [-9.0, -1.0])
def test_sums_over_intervals_are_the_plain_ones(link, level):
    """However sums are computed: by series, tiles, expansions, or one by one."""
    X, interval, event = records(60)
    basis = np.column_stack([np.ones(9), np.linspace(-1.0, 1.0, 9)])
    bounded = link.bounded_at(0.05)
    likelihood = DiscreteHazard(basis, X.shape[1], link=bounded, max_cumulative_hazard=1e6)
    coef = np.array([level, 0.7, 0.9, -0.4])
    eta = (basis @ coef[:2])[None, :] + (X @ coef[2:])[:, None]
    survived = np.arange(9) < (interval - event)[:, None]
    here = (np.arange(9) == interval[:, None] - 1) & event[:, None]
    of_survival, of_event = bounded.survival(eta), bounded.event(eta)
    slopes = np.where(survived, of_survival.slope, 0.0) + np.where(here, of_event.slope, 0.0)
    values = np.where(survived, of_survival.value, 0.0) + np.where(here, of_event.value, 0.0)
    gradient = np.concatenate([basis.T @ slopes.sum(axis=0), X.T @ slopes.sum(axis=1)])
    block = hazard_block(X, interval, event)
    found = likelihood.derivatives(coef, block, order=1)[0]
    assert likelihood.losses(coef, block).sum() == pytest.approx(values.sum(), rel=1e-11)
    np.testing.assert_allclose(found, gradient, rtol=1e-10, atol=1e-12 * np.abs(slopes).sum())


# ---- What proofs rest on.


def broken_bounds(link):
    """Return what a link says of its slopes and curvatures that does not hold."""
    survival, event = link.survival(GRID), link.event(GRID)
    curvature = np.array([link.curvature_of_slope(slope) for slope in survival.slope.tolist()])
    room = 1.0 + 1e-12
    claims = {
        "V": np.all(-event.slope <= link.event_slope * room),
        "events fall": np.all(event.slope <= 0.0) and np.all(survival.slope >= 0.0),
        "bounded slope": not link.bounded_slope or np.all(survival.slope <= link.event_slope),
        "G": np.all(survival.curvature <= curvature * room + TINY),
        "event curvature": np.all(event.curvature <= link.event_curvature * room),
        "convex": np.all(survival.curvature >= 0.0) and np.all(event.curvature >= 0.0),
        "G rises": np.all(np.diff(curvature) >= 0.0),
        "exponential": np.all(survival.slope <= link.event_slope * np.exp(GRID) * room)
        or link.name == STEEP.name,
    }
    return {claim for claim, holds in claims.items() if not holds}


def test_slopes_and_curvatures_are_within_their_bounds(bounded):
    assert broken_bounds(bounded) == set()


def test_bounds_are_no_larger_than_they_must_be(bounded):
    assert -bounded.event(GRID).slope.min() > 0.9999 * bounded.event_slope
    natural = LINKS[bounded.name]
    fine = natural.event(np.linspace(-40.0, 40.0, 80_001)).curvature.max()
    assert fine > 0.999 * natural.event_curvature


def test_curvature_is_a_concave_function_of_the_slope(link):
    """Concavity makes equal hazards the worst case of a sum."""
    curve = link.survival(np.linspace(-8.0, 3.0, 400))
    chord = np.diff(curve.curvature) / np.diff(curve.slope)
    assert np.all(np.diff(chord) <= 1e-6 * np.abs(chord).max())


@pytest.mark.parametrize("scale", [1.0, 1.2345, 1.7])
def test_the_curvature_of_a_probit_slope_is_rounded_up(scale):
    """G, in 60 digits and without any allowance."""
    link = LINKS["probit"]
    for slope in scale * np.array([1e-300, 1e-30, 1e-4, 0.02, 0.4, 1.0, 5.0, 30.0, 340.0, 580.0]):
        with mpmath.workdps(400 if slope < 1e-99 else 60):
            y = mpmath.mpf(slope)

            def log_ratio(eta):
                tail = mpmath.erfc(eta / mpmath.sqrt(2)) / 2
                return -(eta**2) / 2 - mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(tail)

            start = float(link.slope_inverse(np.array([slope]))[0])
            eta = mpmath.findroot(lambda x, y=y: log_ratio(x) - mpmath.log(y), start)
            stated = link.curvature_of_slope(float(slope))
            assert y * (y - eta) <= stated <= y * (y - eta) * (1 + mpmath.mpf("1e-8"))


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        ({"curvature_of_slope": lambda self, slope: 1e-4}, "G"),
        ({"event_curvature": 1e-4}, "event curvature"),
        ({"bounded_slope": True, "event_slope": 0.5}, "bounded slope"),
    ],
)
def test_a_link_that_understates_is_found(wrong, claim):
    made = type("Understated", (Logit,), dict(wrong))
    assert claim in broken_bounds(made(event_slope=wrong.get("event_slope", 1.0)))


def test_a_link_says_how_its_events_behave():
    """Symmetry is stated, not assumed."""
    with pytest.raises(TypeError, match="abstract"):
        Link()
    left = {"predictor", "survival", "slope_inverse", "curvature_of_slope"}
    assert Link.__abstractmethods__ - Symmetric.__abstractmethods__ == {"_natural_event"}
    assert Symmetric.__abstractmethods__ == left


# ---- Words.


def test_formulas_and_reports_have_words_for_it():
    path = Path(skdpsurv.__file__).parent / "dp/words.toml"
    known = {name for table in tomllib.loads(path.read_text()).values() for name in table}
    for name, link in LINKS.items():
        assert link.name == name
        assert set(WORDS["ratios"][name]) == {"name", "says", "note"}
        assert WORDS["ratios"][name]["note"]
        called = set(re.findall(r"(\w+)\(", link.formula))
        assert called <= known | {"exp"}
        assert called <= FLOATS.keys()
        assert "{}" in link.formula
    stated = re.search(r"link : \{(.*?)\}", DPDiscreteTimeSurvival.__doc__).group(1)
    assert stated.replace('"', "").split(", ") == list(LINKS)
