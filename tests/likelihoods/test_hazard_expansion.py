"""Separable expansions: the losses and gradients of the loop over intervals, without the loop."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import special

from skdpsurv.likelihoods import hazard, hazard_expansion
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.hazard_expansion import FULL, MOST_TERMS, expand
from skdpsurv.likelihoods.links import LINKS, Probit
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.support.hazard_blocks import hazard_block

Q, N = 20, 80
BASIS = orthogonal_basis(Q, 3)
#: Constant part of the predictor, from hazards that vanish to such that are 1.
LEVELS = [-30.0, -8.0, -3.0, 0.0, 3.0, 40.0]
#: Size of the coefficients; the last two are beyond every expansion.
SIZES = [0.0, 0.5, 3.0, 8.0, 60.0, 1e4]


@pytest.fixture(params=sorted(LINKS))
def link(request):
    return LINKS[request.param]


@pytest.fixture(scope="module")
def block():
    """Every number of intervals survived, events in the first interval and censoring at the last.

    Row norms reach the bound R = 1 exactly.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, 2))
    X /= np.maximum(np.linalg.norm(X, axis=1), 0.9)[:, None]
    X /= np.linalg.norm(X, axis=1).max()
    interval = np.concatenate([np.arange(1, Q + 1), rng.integers(1, Q + 1, N - Q)])
    event = rng.random(N) < 0.5
    event[:2], interval[:2] = True, 1
    event[2], interval[2] = False, Q
    made = hazard_block(X, interval, event)
    assert made.survived.min() == 0
    assert made.survived.max() == Q
    return made


def coefficients(level, size):
    return np.array([level, 0.4, -0.3, size, -0.6 * size])


def weights_of(n, seed=1):
    return np.random.default_rng(seed).uniform(-1, 2, size=n)


def check(likelihood, coef, block, tolerance, error):
    """Compare with the loop; errors are relative to the largest entry."""
    losses, gradient = likelihood.linearized(coef, block, tolerance)
    weights = weights_of(likelihood.n_records(block))
    exact = likelihood.losses(coef, block)
    slope = likelihood.derivatives(coef, block, weights, order=1).gradient
    assert losses.shape == exact.shape
    atol = error * np.abs(exact).max(initial=0.0)
    np.testing.assert_allclose(losses, exact, rtol=0, atol=atol)
    atol = error * np.abs(slope).max(initial=0.0)
    np.testing.assert_allclose(gradient(weights), slope, rtol=0, atol=atol)
    # A second weighting uses the same expansion.
    np.testing.assert_allclose(gradient(-2.0 * weights), -2.0 * slope, rtol=0, atol=2 * atol)


def expansion_at(link, coef, block, tolerance=FULL):
    a, b = BASIS @ coef[:3], block.X @ coef[3:]
    return expand(link, a, b, tolerance)


class TestLinearized:
    def test_is_the_loop(self, link, block):
        for level, size in itertools.product(LEVELS, SIZES):
            coef = coefficients(level, size)
            check(DiscreteHazard(BASIS, 2, 1.0, link), coef, block, FULL, 1e-12)
            check(DiscreteHazard(BASIS, 2, 1.0, link), coef, block, 1e-8, 1e-7)

    def test_the_cases_go_different_ways(self, link, block):
        """Powers, Chebyshev polynomials, and neither: every way is taken above."""
        cases = itertools.product(LEVELS, SIZES)
        ways = [expansion_at(link, coefficients(*case), block) for case in cases]
        terms = [way.slope.shape[0] for way in ways if way is not None]
        assert 0 < sum(way is None for way in ways) < len(ways) or link.name == "cloglog"
        assert max(terms) <= MOST_TERMS
        if link.name == "cloglog":
            assert set(terms[:10]) == {1}  # its own series has one term
        else:
            assert len(set(terms)) > 3

    def test_looser_is_shorter(self, link, block):
        for level, size in ((-6.0, 1.0), (0.0, 3.0)):
            coef = coefficients(level, size)
            terms = [
                expansion_at(link, coef, block, tolerance).records.shape[0]
                for tolerance in (FULL, 1e-8, 1e-4)
            ]
            assert terms == sorted(terms, reverse=True)
            assert terms[-1] < terms[0] or link.name == "cloglog"

    @pytest.mark.parametrize("tolerance", [FULL, 1e-8])
    def test_cap(self, link, block, tolerance):
        """Capped losses are no function of a + b: no expansion; some are beyond the threshold."""
        likelihood = DiscreteHazard(BASIS, 2, 1.0, link.bounded_at(0.1), 0.7)
        coef = coefficients(-1.5, 2.0)
        capped, _ = likelihood._capped(*likelihood._predictor(coef, block), block.survived)
        assert 0.05 < capped.mean() < 0.95
        check(likelihood, coef, block, tolerance, 1e-12)

    def test_bounded_event_slope(self, link, block):
        bounded = DiscreteHazard(BASIS, 2, 1.0, link.bounded_at(0.3))
        check(bounded, coefficients(-4.0, 2.0), block, FULL, 1e-12)

    def test_empty_block(self, link, block):
        likelihood = DiscreteHazard(BASIS, 2, 1.0, link)
        empty = likelihood.take(block, np.zeros(0, dtype=np.int64))
        for level, size in itertools.product((-8.0, 0.0, 40.0), (0.0, 2.0, 1e4)):
            losses, gradient = likelihood.linearized(coefficients(level, size), empty)
            assert losses.shape == (0,)
            np.testing.assert_array_equal(gradient(np.zeros(0)), np.zeros(5))

    @pytest.mark.parametrize("level", [-8.0, 0.0])
    @pytest.mark.parametrize("event", [False, True])
    def test_one_interval_and_one_record(self, link, level, event):
        """An event in interval 1 survived none (k = 0), and has the event's loss alone."""
        block = hazard_block(np.array([[0.6, -0.8]]), np.array([1]), np.array([event]))
        likelihood = DiscreteHazard(np.ones((1, 1)), 2, 1.0, link)
        coef = np.array([level, 1.0, 0.5])
        check(likelihood, coef, block, FULL, 1e-12)
        curve = (link.event if event else link.survival)(np.array([level + 0.2]))
        losses, gradient = likelihood.linearized(coef, block)
        assert losses == pytest.approx(curve.value, rel=1e-12)
        expected = curve.slope * np.array([1.0, 0.6, -0.8])
        np.testing.assert_allclose(gradient(np.ones(1)), expected, rtol=1e-12)

    def test_energy_needs_no_loop_over_intervals(self, monkeypatch, link, block):
        """Plain coefficients never fall back to the loop."""

        def loop(*args, **kwargs):
            raise AssertionError("the loop was used")

        for name in ("losses", "derivatives"):
            monkeypatch.setattr(DiscreteHazard, name, loop)
        likelihood = DiscreteHazard(BASIS, 2, 1.0, link)
        for level in (-20.0, -5.0, 0.0):
            losses, gradient = likelihood.linearized(coefficients(level, 3.0), block)
            assert np.isfinite(losses).all()
            assert np.isfinite(gradient(losses)).all()

    def test_a_defect_is_noticed(self, monkeypatch, link, block):
        """What the comparisons see: losses off by one in a thousand fail them."""

        def spoiled(*args):
            whole = expand(*args)
            return replace(whole, slope=0.999 * whole.slope)

        monkeypatch.setattr(hazard, "expand", spoiled)
        likelihood = DiscreteHazard(BASIS, 2, 1.0, link)
        with pytest.raises(AssertionError):
            check(likelihood, coefficients(0.0, 1.0), block, FULL, 1e-12)

    def test_both_ways_of_adding_up(self, monkeypatch, link, block):
        """Counting into cells, for few records, and adding up runs, for many."""
        likelihood = DiscreteHazard(BASIS, 2, 1.0, link)
        coef, weights = coefficients(-1.0, 1.0), weights_of(N)
        counted = likelihood.linearized(coef, block).gradient(weights)
        monkeypatch.setattr(hazard_expansion, "FEW_RECORDS", -1)
        added = likelihood.linearized(coef, block).gradient(weights)
        np.testing.assert_allclose(added, counted, rtol=1e-12)
        empty = likelihood.take(block, np.zeros(0, dtype=np.int64))
        assert not likelihood.linearized(coef, empty).gradient(np.zeros(0)).any()


def chebyshev_error(link, reach, tolerance, a):
    """Return the largest error of values and slopes, each relative to the largest of them."""
    b = np.linspace(-reach, reach, 801)
    expansion = hazard_expansion._chebyshev(link, a, b, reach, tolerance)
    if expansion is None:
        return None
    curve = link.survival(a[:, None] + b)
    errors = []
    for terms, exact in ((expansion.value, curve.value), (expansion.slope, curve.slope)):
        errors.append(np.abs(terms.T @ expansion.records - exact).max() / np.abs(exact).max())
    return max(errors)


@dataclass(frozen=True)
class Hasty(Probit):
    """A strip that is claimed to be twice as wide."""

    strip = 5.6


class TestStrip:
    """The width in which phi is analytic decides the degree."""

    #: The worst places are those with a singularity over the middle of the interval.
    A = np.array([-6.0, -1.9, 0.0, 1.9, 4.0])

    @pytest.mark.parametrize("name", ["logit", "probit"])
    def test_degree_is_enough(self, name):
        for reach, tolerance in itertools.product((1e-9, 0.1, 1.0, 4.0, 15.0), (1e-4, 1e-8, 1e-12)):
            assert chebyshev_error(LINKS[name], reach, tolerance, self.A) < 10 * tolerance

    @pytest.mark.parametrize("reach", [1e3, 1e4, 1e17, np.inf, np.nan])
    def test_none_for_huge_predictors(self, link, reach):
        """Nor where cloglog, beyond its series' reach, is constant: a corner."""
        b = np.array([min(reach, 1e3)])
        assert hazard_expansion._chebyshev(link, self.A, b, reach, FULL) is None
        some = hazard_expansion._chebyshev(link, self.A, b, 10.0, FULL)
        assert (some is None) == (link.name == "cloglog")
        assert expand(LINKS["cloglog"], np.array([345.0]), np.array([8.0])) is None

    def test_degree_is_not_wasted(self):
        """A strip that is too wide shows: the tolerance is then missed by far."""
        for reach in (4.0, 10.0):
            assert chebyshev_error(Probit(), reach, 1e-8, self.A) < 1e-8
            assert chebyshev_error(Hasty(), reach, 1e-8, self.A) > 1e-7

    def test_probit_ends_at_the_first_zero_of_erfc(self):
        """Newton's method finds it, and it lies barely outside of the strip."""
        z = -1.35 + 1.99j  # Abramowitz and Stegun, table 7.10, mirrored: erf z = 1
        for _ in range(50):
            z += special.erfc(z) * np.exp(z**2) * np.sqrt(np.pi) / 2.0
        assert abs(special.erfc(z)) < 1e-12
        eta = np.sqrt(2.0) * z
        assert LINKS["probit"].strip < eta.imag < LINKS["probit"].strip + 0.03

    @pytest.mark.parametrize(("height", "zeros"), [(2.8, 0), (2.9, 2), (4.0, 4)])
    def test_probit_has_no_zero_inside(self, height, zeros):
        """Argument principle for erfc(z) e^(z^2) on a rectangle; zeros come in conjugate pairs."""
        corners = np.array([-8 - 1j * height, 8 - 1j * height, 8 + 1j * height, -8 + 1j * height])
        t = np.linspace(0, 1, 20_001)
        sides = zip(corners, np.roll(corners, -1), strict=True)
        path = np.concatenate([one + (other - one) * t for one, other in sides])
        values = special.wofz(1j * path / np.sqrt(2.0))
        turns = np.unwrap(np.angle(values))
        assert np.abs(np.diff(turns)).max() < 0.5
        assert round((turns[-1] - turns[0]) / (2 * np.pi)) == zeros
