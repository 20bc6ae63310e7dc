"""Noise on a vector: its law, its lattice, and a norm that it does not exceed."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.mechanisms import vector_noise
from skdpsurv.mechanisms.vector_noise import (
    LATTICE_FRACTION,
    LEAST_NOISE,
    SphericalGaussian,
    SphericalLaplace,
)
from tests.support import noise_laws

VALUES = np.array([1.0, -300.0, 1e-3])


def add_noise(values, scale, source):
    return vector_noise.add_noise(values, SphericalLaplace(values.size, scale), source)


def test_a_law_hides_what_it_says():
    for dimension, (sensitivity, epsilon) in product([1, 2, 7], [(1.0, 0.5), (3e-4, 20.0)]):
        law = SphericalLaplace.calibrated_to(dimension, sensitivity, epsilon)
        noise_laws.check(law, sensitivity, epsilon)


def test_normal_noise_is_that_of_scipy():
    """Density, draws (Kolmogorov at 1e-7; a third less is told apart), length and price."""
    law = SphericalGaussian.calibrated_to(2, 1.5, 0.5)
    normal = stats.norm(0.0, 3.0)
    for b in ([0.0, 1.0], [-7.0, 2.0]):
        density = normal.logpdf(b).sum() - 2 * normal.logpdf(0.0)
        assert law.log_density(np.array(b)) == pytest.approx(density)
    drawn = np.array([law.draw(random_source(seed)) for seed in range(400)]).ravel()
    assert stats.kstest(drawn, normal.cdf).pvalue > 1e-7
    assert stats.kstest(0.6 * drawn, normal.cdf).pvalue < 1e-7
    assert (law.deviation, law.cost(1.5), law.mean_norm) == (3.0, 0.5, math.sqrt(2.0) * 3.0)
    for dimension in (1, 10, 1000):
        longest = SphericalGaussian(dimension, 2.0).largest_norm() / 2.0
        assert stats.chi2(dimension).logsf(longest**2) < -43 * np.log(10)
        assert longest <= math.sqrt(dimension) + 15.0


@pytest.mark.parametrize("fault", noise_laws.FAULTS)
def test_a_law_that_does_not_is_found(fault):
    law = fault.calibrated_to(3, 1.0, 0.5)
    with pytest.raises(AssertionError):
        noise_laws.check(law, 1.0, 0.5)


@pytest.mark.parametrize(("seeded", "scale"), [(True, 1e-3), (False, 7.0)])
def test_law(seeded, scale):
    """Norm Gamma(3, scale), direction uniform; false-alarm rate 1e-7 for each of two tests."""
    noise = [
        add_noise(VALUES, scale, random_source(i if seeded else None)) - VALUES for i in range(600)
    ]
    norm = np.linalg.norm(noise, axis=1)
    law = stats.gamma(3, scale=scale)
    assert stats.kstest(norm, law.cdf).pvalue > 1e-7
    assert stats.kstest(0.7 * norm, law.cdf).pvalue < 1e-7
    # On a sphere in three dimensions each coordinate is uniform (Archimedes).
    assert stats.kstest(np.array(noise)[:, 1] / norm, stats.uniform(-1, 2).cdf).pvalue > 1e-7


def test_sums_are_on_a_lattice_that_the_scale_tells():
    """Fine beside the noise; steps of coefficients up to 1000 are still numbers."""
    assert np.spacing(1000.0) < LEAST_NOISE * LATTICE_FRACTION < 0.01 * LEAST_NOISE
    for scale in (LEAST_NOISE, 3e-4, 1.0, 1e6):
        step = 2.0 ** np.floor(np.log2(scale * LATTICE_FRACTION))
        noisy = np.array([add_noise(VALUES, scale, random_source(seed)) for seed in range(20)])
        np.testing.assert_array_equal(noisy, np.round(noisy / step) * step)
        # Not on every second point of it: the lattice is no coarser.
        coarse = noisy / (2 * step)
        assert (coarse != np.round(coarse)).any()


def test_largest_norm_is_not_exceeded():
    """Probability below 1e-43 by Chernoff's bound on a Gamma variable's upper tail."""
    for dimension in (1, 2, 10, 300, 1000, 10**5):
        radius = SphericalLaplace(dimension, 1.0).largest_norm()
        log_probability = dimension - radius + dimension * np.log(radius / dimension)
        assert -120.0 < log_probability <= -100.0 < -43 * np.log(10)
        assert SphericalLaplace(dimension, 2.5).largest_norm() == pytest.approx(2.5 * radius)


@pytest.mark.parametrize("law", [SphericalLaplace(3, 0.7), SphericalGaussian(3, 0.7)])
@pytest.mark.parametrize("seed", [None, 0])
def test_sums_with_drawn_noise_are_on_the_lattice(law, seed):
    step = 2.0 ** np.floor(np.log2(law.scale * LATTICE_FRACTION))
    for _ in range(5):
        noise = vector_noise.draw_noise(law, random_source(seed))
        assert isinstance(noise, ExactVector) == (seed is None)
        noisy = vector_noise.with_noise(VALUES, noise, law)
        np.testing.assert_array_equal(noisy, np.round(noisy / step) * step)
