"""Discrete Gaussian noise: one law, whichever sampler draws it."""

import math

import numpy as np
import pytest

from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_gaussian
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.mechanisms.sums import COUNT, HISTOGRAM, Sums, least_deviation

N = 4000


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("deviation", [0.4, 3.0, 40.0])
def test_law(seed, deviation):
    """Within the bound of Dvoretzky, Kiefer and Wolfowitz at 1e-8; twice as much is not."""
    drawn = np.asarray(lattice_gaussian(np.full(N, 7), deviation, random_source(seed))) - 7
    reach = math.ceil(12.0 * deviation) + 2
    at = np.arange(-reach, reach + 1)

    def distance(sigma):
        mass = np.exp(-0.5 * (at / sigma) ** 2)
        law = np.cumsum(mass / mass.sum())
        return np.abs(np.searchsorted(np.sort(drawn), at, side="right") / N - law).max()

    assert distance(deviation) <= math.sqrt(math.log(2e8) / (2.0 * N))
    assert distance(2.0 * deviation) > math.sqrt(math.log(2e8) / (2.0 * N))


def test_shapes_and_limits():
    assert lattice_gaussian(np.zeros((2, 3), dtype=np.int64), 2.0, random_source(0)).shape == (2, 3)
    assert lattice_gaussian(2**80, 1e-9, random_source(0)) == np.iinfo(np.int64).max
    with pytest.raises(ValueError, match="deviation"):
        lattice_gaussian(5, 0.0, random_source(0))
    with pytest.raises(TypeError, match="value must be an integer"):
        lattice_gaussian(0.5, 1.0, random_source(0))


@pytest.mark.parametrize("query", [COUNT, HISTOGRAM, Sums(3, 5)])
@pytest.mark.parametrize("mu", [1e-3, 0.3, 7.0])
def test_deviations_are_rounded_upwards(query, mu):
    deviation = least_deviation(query.squared_distance, mu)
    assert deviation >= math.sqrt(query.squared_distance) / mu * (1.0 - 1e-15)
    assert deviation == pytest.approx(query.deviation(Concentrated(mu)), rel=1e-12)
