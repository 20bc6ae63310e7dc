"""What every law of noise must keep, and laws that do not."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source
from skdpsurv.mechanisms.vector_noise import SphericalLaplace


def check(law, sensitivity, epsilon, n_draws=2000):
    """Check what a law says of itself: what it costs, how it is drawn, how large it can be."""
    rng, source = np.random.default_rng(0), random_source(0)
    assert law.cost(sensitivity) <= epsilon * (1.0 + 1e-12)
    assert law.cost(2.0 * sensitivity) > law.cost(sensitivity)
    for part in (0.01, 0.3, 0.9):
        assert law.cost(part * sensitivity) <= part * law.cost(sensitivity) * (1.0 + 1e-9)
    noise = np.array([law.draw(source) for _ in range(n_draws)])
    assert noise.shape == (n_draws, law.dimension)
    assert (np.linalg.norm(noise, axis=1) <= law.largest_norm()).all()
    for _ in range(5):
        way = rng.standard_normal(law.dimension)
        apart = sensitivity * way / np.linalg.norm(way)
        gaps = np.array([law.log_density(b + apart) - law.log_density(b) for b in noise])
        assert np.abs(gaps).max() <= epsilon * (1.0 + 1e-9)
        # With log 2e7 in Hoeffding's bound: below 1e-6 for ten of them.
        width = np.exp(min(epsilon, 1.0)) - np.exp(-min(epsilon, 1.0))
        if epsilon <= 1.0:
            allowed = width * np.sqrt(np.log(2e7) / (2.0 * n_draws))
            assert abs(np.exp(gaps).mean() - 1.0) <= allowed
    # A mean of 2,000 squares of a Laplace variable is off by 5 %: allowed are ten of that.
    assert np.mean(noise**2) == pytest.approx(law.deviation**2, rel=0.5)
    # The law of the length, where noise is spherical, and that of each coordinate are symmetric.
    signs = (noise > 0).sum(axis=0)
    assert all(stats.binomtest(int(k), n_draws).pvalue > 1e-8 for k in signs)


@dataclass(frozen=True)
class HalfTheNoise(SphericalLaplace):
    """Says that it is larger than it is."""

    def draw(self, source):
        return 0.25 * super().draw(source)


@dataclass(frozen=True)
class WrongPrice(SphericalLaplace):
    """Costs more than it says."""

    @classmethod
    def calibrated_to(cls, dimension, sensitivity, epsilon):
        return cls(dimension, 0.5 * sensitivity / epsilon)

    def cost(self, sensitivity):
        return 0.5 * super().cost(sensitivity)


@dataclass(frozen=True)
class ShortBound(SphericalLaplace):
    """Is longer than it says."""

    def largest_norm(self):
        return self.scale * self.dimension


@dataclass(frozen=True)
class DearInParts(SphericalLaplace):
    """Costs more for a part of a distance than its part."""

    def cost(self, sensitivity):
        return max(sensitivity, np.sqrt(min(sensitivity, 1.0))) / self.scale


@dataclass(frozen=True)
class SmallerDeviation(SphericalLaplace):
    """Varies more than it says."""

    @property
    def deviation(self):
        return 0.5 * super().deviation


FAULTS = [HalfTheNoise, WrongPrice, ShortBound, DearInParts, SmallerDeviation]
