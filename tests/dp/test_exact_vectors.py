"""Noise in many digits: its law, how far from it, and sums that are rounded exactly."""

import decimal
import math
import random
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdpsurv.dp import PrivacyAccountant, exact_vectors, random_source
from skdpsurv.dp.exact_vectors import (
    BITS,
    FRACTION,
    MOST_COORDINATES,
    TOTAL_VARIATION,
    ExactVector,
    exact_spherical_gaussian,
    exact_spherical_laplace,
    spherical_gaussian,
    spherical_laplace,
)
from skdpsurv.inference.row_moments import MOST_FEATURES
from skdpsurv.mechanisms.moments import SecondMoments
from skdpsurv.mechanisms.vector_noise import (
    LATTICE_FRACTION,
    SphericalGaussian,
    SphericalLaplace,
    add_noise,
    draw_noise,
)
from tests.support import checks
from tests.support.registry import PROTECTED

#: Each statistical test is seeded; a p-value below this is an alarm, false at this rate.
REJECT = 1e-7
LAWS = (exact_spherical_laplace, exact_spherical_gaussian)


def given_bits(bits):
    return SimpleNamespace(bits=bits, words=lambda n, count: [bits(count) for _ in range(n)])


def exact(vector):
    return [Fraction(k) * Fraction(vector.scale) / 2**FRACTION for k in vector.multiples]


def test_coordinates_of_gaussian():
    """Of Laplace noise the law is that of tests/dp/test_noise.py."""
    source = given_bits(random.Random(0).getrandbits)
    drawn = [exact_spherical_gaussian(3, 2.0, source) for _ in range(3000)]
    noise = np.array([one.nearest_doubles() for one in drawn])
    for coordinate in noise.T:
        assert stats.kstest(coordinate, stats.norm(scale=2.0).cdf).pvalue > REJECT
        assert stats.kstest(coordinate, stats.norm(scale=2.4).cdf).pvalue < REJECT
    assert stats.kstest((noise**2).sum(axis=1) / 4.0, stats.chi2(3).cdf).pvalue > REJECT


class Refined:
    """Bits of uniform numbers in twice as many digits, the first half of them as given."""

    def __init__(self, seed):
        self.first, self.rest = random.Random(seed), random.Random(seed + 1000)

    def __call__(self, count):
        if count == 1:
            return self.first.getrandbits(1)
        return (self.first.getrandbits(BITS) << BITS) + self.rest.getrandbits(BITS)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_more_bits_and_digits_change_what_the_proof_allows(law, dimension, monkeypatch):
    """The uniform numbers are refined inside their cells, and nothing is rounded any more."""
    as_ever = [given_bits(random.Random(seed).getrandbits) for seed in range(20)]
    coarse = [law(dimension, 1.0, source) for source in as_ever]
    monkeypatch.setattr(exact_vectors, "BITS", 2 * BITS)
    monkeypatch.setattr(exact_vectors, "FRACTION", 2 * FRACTION)
    fine = [law(dimension, 1.0, given_bits(Refined(seed))) for seed in range(20)]
    fine = [replace(one, multiples=[k >> FRACTION for k in one.multiples]) for one in fine]
    allowed = Fraction(math.isqrt((2 * dimension + 1000) ** 3), 2**160)
    for one, other in zip(coarse, fine, strict=True):
        gaps = [abs(a - b) for a, b in zip(exact(one), exact(other), strict=True)]
        assert 0 < max(gaps) <= allowed
        assert max(abs(a) for a in exact(one)) > 1e-6


def test_constants_of_the_proof():
    d = MOST_COORDINATES
    step = LATTICE_FRACTION / 2.0
    # docs/proofs/noise: rare events, and noise that is near an edge of a cell of the lattice.
    rare = (2 * d + 2) * 2.0**-150
    near = (2 * d + 1000) ** 1.5 * 2.0**-160
    assert rare + 2 * d * near * (1.0 / step + 0.5) <= TOTAL_VARIATION
    assert BITS >= 320
    assert FRACTION >= 384
    # A square and a product of uniform numbers have logarithms.
    assert 2 * BITS <= exact_vectors.FACTORS * BITS == 5120


@pytest.mark.parametrize("number", [1, 2, 3, 255, 2**16 + 1, 2**384 - 1, 2**640 - 1, 2**5120 - 1])
def test_logarithms_are_as_near_as_the_proof_says(number):
    drawn = random.Random(number).getrandbits(max(number.bit_length(), 2)) + 1
    with decimal.localcontext(prec=300):
        for k in (number, drawn):
            ideal = decimal.Decimal(k).ln() * 2**FRACTION
            assert abs(exact_vectors._log(k) - ideal) < 2**22
        for x in (1, Fraction(5, 4), Fraction(3, 2), Fraction(2**40 - 1, 2**39), 2):
            found = exact_vectors._log_near_one(int(x * 2**FRACTION), FRACTION)
            exactly = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
            assert abs(found - exactly.ln() * 2**FRACTION) < 2**9


def test_longer_vectors_have_no_law():
    """Second moments of as many features as there may be have one."""
    for law in (SphericalLaplace, SphericalGaussian):
        assert law(MOST_COORDINATES, 1.0).dimension == MOST_COORDINATES
    for law in (SphericalLaplace, SphericalGaussian, *(partial(law, source=None) for law in LAWS)):
        with pytest.raises(ValueError, match=r"at most 600,000 numbers, .* got 600,001"):
            law(MOST_COORDINATES + 1, 1.0)
    width = MOST_FEATURES + 1
    assert 10**5 < SecondMoments(100, width, 1.0).distribution(1.0).dimension <= MOST_COORDINATES


@pytest.mark.parametrize("most", [1, pytest.param(4, marks=pytest.mark.slow), 9])
@checks.each(PROTECTED, checks.PLANS)
def test_what_is_too_long_is_refused_before_it_is_charged(setting, most, monkeypatch):
    """With a theorem about few numbers nothing is charged and then refused.

    There are settings whose coefficients are fewer than 9 and whose second moments are more.
    """
    monkeypatch.setattr(exact_vectors, "MOST_COORDINATES", most)
    accountant = PrivacyAccountant(rehearsal=True)
    data, refused = setting.data(), ""
    with checks.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            setting.make(None, accountant=accountant).fit(data.X, data.y, **data.options)
        except ValueError as error:
            refused = str(error)
    assert ("its law is proved" in refused) == bool(refused)
    assert len(accountant.entries()) == (0 if refused else 1)


def test_tails_do_not_end_where_those_of_doubles_do():
    """An exponential variate of NumPy is at most 44.434."""
    vector = exact_spherical_laplace(1, 1.0, given_bits(lambda count: 0))
    assert -vector.nearest_doubles().item() == pytest.approx(BITS * math.log(2))
    middle = given_bits(lambda count: 1 << (BITS - 1))  # of the disc
    normal = exact_spherical_gaussian(2, 1.0, middle).nearest_doubles()
    assert normal == pytest.approx(np.full(2, math.sqrt((2 * BITS - 1) * math.log(2))))

    # Points outside of it are drawn again.
    bits = iter([0, 0, (1 << BITS) - 1, 0, 1 << (BITS - 1), 3 << (BITS - 2)])
    first, second = exact_spherical_gaussian(2, 1.0, given_bits(lambda count: next(bits))).multiples
    assert 0 < first < 2**68 < second
    assert next(bits, None) is None


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**120), 10**120),
    st.floats(1e-12, 1e12),
    st.integers(-60, 20),
)
def test_sums_are_rounded_exactly(value, multiple, scale, exponent):
    vector = ExactVector([multiple], scale)
    (found,) = vector.added_to(np.array([value]), 2.0**exponent)
    unit = Fraction(2) ** exponent
    expected = round((Fraction(value) + exact(vector)[0]) / unit) * unit  # ties to even
    most = 2**1024 - 2**970
    assert found == min(max(expected, -most), most) or found == float(expected)
    assert math.copysign(1.0, found) == 1.0 or found < 0.0
    assert vector.nearest_doubles()[0] == float(exact(vector)[0])


def test_halves_go_to_the_even_multiple():
    vector = ExactVector([0, 0, 0, 2**FRACTION, 1], 1.0)
    found = vector.added_to(np.array([0.5, 1.5, -0.5, 1.5, 0.5]), 1.0)
    assert found.tolist() == [0.0, 2.0, 0.0, 2.0, 1.0]
    assert not np.signbit(found).any()
    large = ExactVector([2 ** (FRACTION + 10), -(2 ** (FRACTION + 10)), 0], 1e308)
    found = large.added_to(np.array([1e308, -1e308, np.inf]), 1.0)
    most = np.finfo(float).max
    assert found.tolist() == [most, -most, np.inf]
    assert large.nearest_doubles()[0] == most


@pytest.mark.parametrize("law", [SphericalLaplace(3, 0.7), SphericalGaussian(3, 0.7)])
class TestWhoDrawsThem:
    def test_without_a_seed_exactly(self, law):
        assert isinstance(draw_noise(law, random_source(None)), ExactVector)
        assert isinstance(draw_noise(law, random_source(0)), np.ndarray)
        found = [add_noise(np.zeros(3), law, random_source(None)) for _ in range(2)]
        assert not np.array_equal(*found)

    def test_a_law_that_is_derived_draws_for_itself(self, law):
        class Other(type(law)):
            def draw(self, source):
                return np.ones(3)

        assert draw_noise(Other(3, 0.7), random_source(None)).tolist() == [1.0, 1.0, 1.0]

    def test_doubles_alone(self, law, monkeypatch):
        """What the public functions return is nearest to what they would draw in digits."""
        function = spherical_laplace if type(law) is SphericalLaplace else spherical_gaussian
        source, twin = random_source(None), random.Random(1)
        words = given_bits(twin.getrandbits).words
        monkeypatch.setattr(type(source), "words", lambda self, *numbers: words(*numbers))
        found = function(3, 0.7, source)
        twin.seed(1)
        assert np.array_equal(found, law.draw_exactly(source).nearest_doubles())


def test_words_are_bits_drawn_at_once():
    one, other = random_source(3), random_source(3)
    assert one.words(5, BITS) == [other.bits(BITS) for _ in range(5)]
    assert one.bits(32) == other.bits(32)


def test_bits_of_a_source_are_fair():
    source = random_source(None)
    assert {source.bits(1) for _ in range(60)} == {0, 1}  # fails once in 2^59
    drawn = [source.bits(11) for _ in range(4000)]
    assert min(drawn) >= 0
    assert 2**10 <= max(drawn) < 2**11
    places = np.array([[(k >> j) & 1 for j in range(11)] for k in drawn]).sum(axis=0)
    assert all(stats.binomtest(int(k), 4000).pvalue > 1e-8 for k in places)
