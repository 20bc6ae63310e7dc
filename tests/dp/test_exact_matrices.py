"""Noise on symmetric matrices in many digits: its law, and how far from it."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import exact_vectors, random_source
from skdpsurv.dp.exact_matrices import exact_semidefinite_laplace, n_entries, semidefinite_laplace
from skdpsurv.dp.exact_vectors import BITS, FRACTION, MOST_COORDINATES, TOTAL_VARIATION
from skdpsurv.mechanisms.semidefinite_noise import symmetric
from skdpsurv.mechanisms.vector_noise import LATTICE_FRACTION
from tests.dp.test_exact_vectors import Refined, exact, given_bits

#: Each statistical test is seeded; a p-value below this is an alarm, false at this rate.
REJECT = 1e-7


def uniform_semidefinite(n, rng):
    """Return matrices of two rows, uniform among those of trace at most 1, by rejection."""
    x, y, z = rng.random((3, 40 * n)) * [[1.0], [1.0], [2.0]] - [[0.0], [0.0], [1.0]]
    inside = (x + y <= 1.0) & (x * y >= z * z)
    return np.stack([x, z, y], axis=1)[inside][:n]


def statistics(triangles):
    values = np.linalg.eigvalsh([symmetric(one, 2) for one in triangles])
    return [*np.transpose(triangles), *values.T, values.sum(axis=1)]


@pytest.mark.parametrize("seeded", [True, False])
def test_law(seeded):
    """The other construction is a Gamma(2p + 1) radius times a uniform pair of traces below 1."""
    n, rng, bits = 4000, np.random.default_rng(0), random.Random(1).getrandbits
    if seeded:
        source = random_source(2)
        drawn = np.array([semidefinite_laplace(2, 1.0, source) for _ in range(n)])
    else:
        vectors = [exact_semidefinite_laplace(2, 1.0, given_bits(bits)) for _ in range(n)]
        drawn = np.array([one.nearest_doubles() for one in vectors])
    pairs = uniform_semidefinite(n, rng), uniform_semidefinite(n, rng)
    other = rng.gamma(7.0, size=(n, 1)) * (pairs[0] - pairs[1])
    for one, two in zip(statistics(drawn), statistics(other), strict=True):
        assert stats.ks_2samp(one, two).pvalue > REJECT
        assert stats.ks_2samp(0.65 * one, two).pvalue < REJECT


@pytest.mark.parametrize("seeded", [True, False])
def test_of_one_row_it_is_laplace_noise(seeded):
    source = random_source(0) if seeded else given_bits(random.Random(0).getrandbits)
    how = semidefinite_laplace if seeded else exact_semidefinite_laplace
    drawn = [how(1, 2.0, source) for _ in range(2000)]
    noise = np.array([one if seeded else one.nearest_doubles() for one in drawn])[:, 0]
    assert stats.kstest(noise, stats.laplace(scale=2.0).cdf).pvalue > REJECT
    assert stats.kstest(noise, stats.laplace(scale=2.8).cdf).pvalue < REJECT


@pytest.mark.parametrize("width", [1, 2, 7])
def test_more_bits_and_digits_change_what_the_proof_allows(width, monkeypatch):
    """The uniform numbers are refined inside their cells, and nothing is rounded any more."""
    as_ever = [given_bits(random.Random(seed).getrandbits) for seed in range(10)]
    coarse = [exact_semidefinite_laplace(width, 1.0, source) for source in as_ever]
    for module in (exact_vectors, exact_semidefinite_laplace.__globals__):
        set_item = monkeypatch.setitem if isinstance(module, dict) else monkeypatch.setattr
        set_item(module, "BITS", 2 * BITS)
    monkeypatch.setattr(exact_vectors, "FRACTION", 2 * FRACTION)
    refined = [given_bits(Refined(seed)) for seed in range(10)]
    fine = [exact_semidefinite_laplace(width, 1.0, source) for source in refined]
    fine = [replace(one, multiples=[k >> FRACTION for k in one.multiples]) for one in fine]
    allowed = math.isqrt((4 * n_entries(width) + 1000) ** 3) * Fraction(2) ** -159
    for one, other in zip(coarse, fine, strict=True):
        gaps = [abs(a - b) for a, b in zip(exact(one), exact(other), strict=True)]
        assert 0 < max(gaps) <= allowed
        assert max(abs(a) for a in exact(one)) > 1e-6


def test_constants_of_the_proof():
    size = MOST_COORDINATES // 2
    rare = (6 * size + 4) * 2.0**-150
    near = (4 * size + 1000) ** 1.5 * 2.0**-158.8
    cell = math.exp(LATTICE_FRACTION) * 2.0 / LATTICE_FRACTION
    assert rare + size * 2.0 * near * cell <= 0.7 * TOTAL_VARIATION
    width = math.isqrt(MOST_COORDINATES)
    with pytest.raises(ValueError, match=r"at most 600,000 numbers, .* got 601,400"):
        exact_semidefinite_laplace(width + 1, 1.0, random_source(None))
