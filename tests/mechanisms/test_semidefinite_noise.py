"""Noise on symmetric matrices: what it hides, how large it is, who draws it."""

import math
from itertools import product

import numpy as np
import pytest

from skdpsurv.dp import random_source
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace, symmetric, trace_distance
from skdpsurv.mechanisms.vector_noise import draw_noise

#: A grid over the semidefinite matrices ((x, z), (z, y)), in units of the scale.
STEP, LARGEST = 0.125, 14.0
X, Y, Z = np.meshgrid(
    *[np.arange(STEP / 2, LARGEST, STEP)] * 2, np.arange(-LARGEST / 2, LARGEST / 2, STEP)
)


def density(x, y, z, norm=np.maximum):
    """Return the density of noise on two rows at a matrix, up to a factor, by its integral."""
    inside = (X * Y >= Z**2) & (X + x >= 0.0) & ((X + x) * (Y + y) >= (Z + z) ** 2)
    return np.exp(-norm(X + x + Y + y, X + Y))[inside & (Y + y >= 0.0)].sum()


def largest_ratio(norm=np.maximum):
    """Return the largest log ratio of densities at matrices a record apart."""
    angles = np.linspace(0.0, math.pi, 4, endpoint=False)
    units = [np.array([math.cos(a) ** 2, math.sin(a) ** 2, math.sin(2 * a) / 2]) for a in angles]
    points = [(0.0, 0.0, 0.0), (2.0, -2.0, 0.0), (-1.0, -2.0, 1.0), (3.0, 1.0, 0.0)]
    points = [np.array(point) for point in points]
    moves = [p - q for p, q in product(units, units)] + units
    there = {tuple(point): density(*point, norm) for point in points}
    return max(
        abs(math.log(density(*(point + move), norm) / there[tuple(point)]))
        for point in points
        for move in moves
    )


def test_it_hides_differences_of_semidefinite_matrices():
    """A sum over a grid is off by a few per cent; what is hidden half as well is found."""
    assert 0.8 < largest_ratio() < 1.05
    assert largest_ratio(lambda x, y: 1.6 * np.maximum(x, y)) > 1.3
    law = SemidefiniteLaplace.calibrated_to(2, 1.5, 0.5)
    assert (law.scale, law.cost(1.5), law.dimension) == (3.0, 0.5, 3)


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
