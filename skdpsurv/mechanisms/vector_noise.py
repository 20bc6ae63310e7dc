"""L2-Laplace noise on a vector, rounded to a public lattice (docs/proofs/noise).

The theorem is about real numbers; noise and sum are floating-point, and the lattice is a safeguard
(docs/user_guide/limits).
"""

from __future__ import annotations

from skdpsurv.privacy import RandomSource, lattice_step, round_to_lattice, spherical_laplace
from skdpsurv.types import FloatArray

#: A sum is rounded to this fraction of its noise's scale.
LATTICE_FRACTION = 2.0**-8
#: What is left of epsilon for noise is lowered by this factor, and bounds are raised by it: far
#: more than the rounding of public numbers can take.
MARGIN = 1.0 + 2.0**-40
#: Least scale of noise on coefficients: less would drown in the spacing of doubles.
LEAST_NOISE = 1e-9


def add_noise(values: FloatArray, scale: float, source: RandomSource) -> FloatArray:
    """Return values plus L2-Laplace noise, rounded to a lattice that is public as the scale is."""
    noisy = values + spherical_laplace(values.size, scale, source)
    return round_to_lattice(noisy, lattice_step(scale * LATTICE_FRACTION))


def largest_norm(dimension: int, scale: float) -> float:
    """Return a norm that L2-Laplace noise does not exceed.

    The radius is a sum of ``dimension`` exponential variables of mean ``scale``; the probability of
    more than this, below 1e-200, is less than what a sampler of doubles can produce.
    """
    return scale * (2.0 * dimension + 1000.0)
