"""Noise on symmetric matrices: what it hides, how large it is, who draws it."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from skdpsurv.dp import random_source
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace, symmetric, trace_distance
from skdpsurv.mechanisms.vector_noise import draw_noise


def density(x, y, z):
    """Return the density of noise on two rows at ((x, z), (z, y)), up to a factor.

    Of its integral over B, in units of the scale, one is left: over the angle v between the axes of
    B and those of the matrix, with K0 and K1 the Bessel functions.
    """
    trace, apart = abs(x + y), max(math.hypot(x - y, 2.0 * z), 1e-9)
    half, turn = apart / 2.0, math.acos(max(-trace / apart, -1.0))

    def at(v):
        angular = math.sin(v) ** 2 * special.k0(half) + special.k1(half) / half
        early = math.exp(-half * math.cos(v) - trace)
        return angular * (early if v < turn else math.exp(half * math.cos(v)))

    parts = ((0.0, turn), (turn, math.pi))
    return 2.0 * half**2 * sum(integrate.quad(at, *ends, epsabs=1e-13)[0] for ends in parts)


def largest_ratio(factor=1.0):
    """Return the largest log ratio of densities at random matrices that a record moves."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        angles, lengths = rng.uniform(0.0, math.pi, 2), rng.random(2) ** 0.2
        p, q = (
            length * np.array([math.cos(a) ** 2, math.sin(a) ** 2, math.sin(2.0 * a) / 2.0])
            for a, length in zip(angles, lengths, strict=True)
        )
        point = rng.normal(size=3) * rng.choice([0.3, 2.0, 8.0])
        ratio = density(*(factor * (point + p - q))) / density(*(factor * point))
        found.append(abs(math.log(ratio)))
    return max(found)


def test_it_hides_differences_of_semidefinite_matrices():
    """And one that is drawn too small is found."""
    assert 0.85 < largest_ratio() <= 1.0
    assert largest_ratio(1.3) > 1.1
    law = SemidefiniteLaplace.calibrated_to(2, 1.5, 0.5)
    assert (law.scale, law.cost(1.5), law.dimension) == (3.0, 0.5, 3)


def test_draws_have_the_density():
    """Of 4,000 draws, by trace and by distance of eigenvalues: a false alarm in 1e-6 runs."""
    ends = np.array([0.0, 1.5, 3.0, 5.0, 9.0])
    traces = np.array([0.0, 0.8, 2.0, 4.0])
    expected = np.zeros((ends.size, traces.size))
    grid = np.arange(0.125, 32.0, 0.25)
    for trace in grid:
        for apart in grid:
            # Matrices with these have a volume in proportion to their distance.
            cell = np.searchsorted(ends, apart) - 1, np.searchsorted(traces, trace) - 1
            expected[cell] += apart * density((trace + apart) / 2.0, (trace - apart) / 2.0, 0.0)
    law, source = SemidefiniteLaplace(2, 1.0), random_source(3)
    x, z, y = np.array([law.draw(source) for _ in range(4000)]).T
    apart, trace = np.hypot(x - y, 2.0 * z), np.abs(x + y)
    cells = np.searchsorted(ends, apart) - 1, np.searchsorted(traces, trace) - 1
    seen = np.zeros_like(expected)
    np.add.at(seen, cells, 1.0)
    assert stats.chisquare(seen.ravel(), 4000 * (expected / expected.sum()).ravel()).pvalue > 1e-6


def test_distances_are_those_of_the_parts():
    rng = np.random.default_rng(0)
    for width in (1, 2, 5):
        rows = rng.standard_normal((2, width))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        apart = np.outer(rows[0], rows[0]) - np.outer(rows[1], rows[1])
        assert trace_distance(apart) <= 1.0 + 1e-12
        assert trace_distance(rows[:1].T @ rows[:1]) == pytest.approx(1.0)
    assert trace_distance(np.diag([1.0, -1.0, 0.5])) == pytest.approx(1.5)
    assert trace_distance(np.zeros((3, 3))) == 0.0


@pytest.mark.parametrize(("width", "known"), [(1, math.sqrt(2.0)), (7, 5.12), (12, 6.84)])
def test_it_has_the_stated_deviation(width, known):
    """In any direction; off the diagonal less. An estimate is off by 2 %: allowed are seven."""
    law, source = SemidefiniteLaplace(width, 2.0), random_source(5)
    assert law.deviation == pytest.approx(2.0 * known, rel=1e-3)
    draws = np.array([symmetric(law.draw(source), width) for _ in range(1500)])
    assert (draws == np.swapaxes(draws, 1, 2)).all()
    direction = np.linspace(1.0, 2.0, width) / np.linalg.norm(np.linspace(1.0, 2.0, width))
    for values in (draws[:, 0, 0], np.einsum("i,nij,j->n", direction, draws, direction)):
        assert np.std(values) == pytest.approx(law.deviation, rel=0.14)
    assert width == 1 or 0.5 < np.std(draws[:, 0, -1]) / law.deviation < 0.95
    l2_laplace = 2.0 * math.sqrt(2.0 * (law.dimension + 1.0))
    assert law.deviation < 0.82 * l2_laplace


def test_without_a_seed_it_is_drawn_exactly():
    law = SemidefiniteLaplace(2, 0.7)
    assert isinstance(draw_noise(law, random_source(None)), ExactVector)
    assert draw_noise(law, random_source(0)).shape == law.draw(random_source(None)).shape == (3,)
