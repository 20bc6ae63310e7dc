"""Noise on a vector: its distribution, and sums with it that are rounded to a public lattice.

Without a seed, the sum with a distribution of :data:`Proved` is that of the theorem about real
numbers within a total variation of 1e-30 (:mod:`~skdpsurv.dp.noise`). Other distributions, and
seeded noise, are drawn in doubles, where the lattice is a safeguard and no proof
(docs/user_guide/limits). A vector longer than the theorem allows is refused when a plan is made,
before any charge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from skdpsurv.dp.exact_vectors import (
    ExactVector,
    exact_spherical_gaussian,
    exact_spherical_laplace,
    require_theorem,
    spherical_gaussian,
    spherical_laplace,
)
from skdpsurv.dp.noise import RandomSource, drawn_by_source, lattice_step, round_to_lattice
from skdpsurv.dp.privacy_cost import Concentrated, Price
from skdpsurv.dp.references import DOUBLES, REAL_ARITHMETIC
from skdpsurv.dp.stated_noise import GAUSSIAN, LAPLACE, NONE, Noise
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace

#: A sum is rounded to this fraction of its noise's scale.
LATTICE_FRACTION = 2.0**-8
#: Factor by which bounds are raised, and epsilons lowered: far more than the rounding of public
#: numbers can take.
MARGIN = 1.0 + 2.0**-40
#: Least scale of noise on coefficients: less would drown in the spacing of doubles.
LEAST_NOISE = 1e-9


class NoiseDistribution(Protocol):
    """A distribution of noise on a vector that hides how far a record can move it.

    Mechanisms and audits know the shape of the noise by this protocol alone. For differences of
    Euclidean norm S at the price epsilon, log p(b) - log p(b + v) <= ``cost(S)`` <= epsilon must
    hold for all b and all v with ||v|| <= S. Models that share a record also need cost(t) <= t/S
    cost(S) for t <= S, which holds where the cost is convex and 0 at 0.
    """

    @property
    def dimension(self) -> int:
        """Length of the vector."""

    @property
    def scale(self) -> float:
        """Size of the noise; 0 for none."""

    @classmethod
    def calibrated_to(cls, dimension: int, sensitivity: float, price: float) -> Self:
        """Return the distribution that hides a distance for an epsilon."""

    def cost(self, sensitivity: float) -> float:
        """Return the epsilon for which a distance is hidden: convex in it, and 0 at 0."""

    def draw(self, source: RandomSource) -> FloatArray:
        """Draw a vector of noise."""

    @property
    def deviation(self) -> float:
        """Standard deviation of each coordinate; they are uncorrelated."""

    def largest_norm(self) -> float:
        """Return a norm that the noise does not exceed."""

    def log_density(self, noise: FloatArray) -> float:
        """Return the log density, up to a constant."""


@dataclass(frozen=True)
class _Spherical:
    """A distribution whose direction is uniform; a distance costs its part of the scale."""

    dimension: int
    scale: float

    def __post_init__(self) -> None:
        require_theorem(self.dimension)

    @classmethod
    def calibrated_to(cls, dimension: int, sensitivity: float, price: float) -> Self:
        return cls(dimension, sensitivity / price)

    def cost(self, sensitivity: float) -> float:
        return sensitivity / self.scale


@dataclass(frozen=True)
class SphericalLaplace(_Spherical):
    r"""The L2-Laplace distribution, :math:`p(b) \propto e^{-\|b\|_2/\text{scale}}`.

    Neighbours: any whose vectors are at most S apart in the Euclidean norm. Theorem: it hides them
    for S / scale, by the triangle inequality (docs/proofs/noise).
    """

    def draw(self, source: RandomSource) -> FloatArray:
        return spherical_laplace(self.dimension, self.scale, source)

    def draw_exactly(self, source: RandomSource) -> ExactVector:
        """Return noise in more digits than doubles have."""
        return exact_spherical_laplace(self.dimension, self.scale, source)

    @property
    def deviation(self) -> float:
        """Standard deviation of each coordinate: the radius has mean square d (d + 1) scale^2."""
        return self.scale * math.sqrt(self.dimension + 1.0)

    @property
    def mean_norm(self) -> float:
        """Mean length of the noise."""
        return self.dimension * self.scale

    def largest_norm(self) -> float:
        """Return a norm that the noise exceeds with a probability below 1e-43.

        The radius is a sum of d = ``dimension`` exponential variables of mean ``scale``, which is
        beyond d + sqrt(2 d x) + x with a probability of at most exp(-x) (Boucheron, Lugosi and
        Massart 2013, section 2.4).
        """
        d, x = float(self.dimension), 100.0
        return self.scale * (d + math.sqrt(2.0 * d * x) + x)

    def log_density(self, noise: FloatArray) -> float:
        return -float(np.linalg.norm(noise)) / self.scale


@dataclass(frozen=True)
class SphericalGaussian(_Spherical):
    r"""Independent normal numbers of deviation ``scale``.

    Neighbours: any whose vectors are at most S apart in the Euclidean norm. Theorem: it hides them
    at the price :math:`\mu = S / \text{scale}`, in zCDP :math:`\tfrac12\mu^2`
    (docs/proofs/gaussian); no epsilon hides them without a delta.
    """

    def draw(self, source: RandomSource) -> FloatArray:
        return spherical_gaussian(self.dimension, self.scale, source)

    def draw_exactly(self, source: RandomSource) -> ExactVector:
        """Return noise in more digits than doubles have."""
        return exact_spherical_gaussian(self.dimension, self.scale, source)

    @property
    def deviation(self) -> float:
        """Standard deviation of each coordinate."""
        return self.scale

    @property
    def mean_norm(self) -> float:
        """Mean length of the noise, or slightly more."""
        return math.sqrt(self.dimension) * self.scale

    def largest_norm(self) -> float:
        """Return a norm that the noise exceeds with a probability below 1e-43.

        The norm has mean at most the root of d and is 1-Lipschitz in normal numbers, so that it is
        x above with a probability of at most exp(-x^2 / 2).
        """
        return self.scale * (math.sqrt(self.dimension) + 15.0)

    def log_density(self, noise: FloatArray) -> float:
        return -0.5 * float(noise @ noise) / self.scale**2


#: Distributions whose direction is uniform and whose mean length is known.
Spherical = SphericalLaplace | SphericalGaussian
#: Distributions that are drawn in many digits, and whose program is proved.
Proved = Spherical | SemidefiniteLaplace
#: Names of these in a release.
LAWS: dict[type, str] = {
    SphericalLaplace: f"spherical {LAPLACE}",
    SphericalGaussian: f"spherical {GAUSSIAN}",
    SemidefiniteLaplace: f"semidefinite {LAPLACE}",
}


def calibrated_noise(dimension: int, sensitivity: float, price: Price) -> Spherical:
    """Return the distribution that hides a distance at a price: for an epsilon, or for a mu."""
    if isinstance(price, Concentrated):
        return SphericalGaussian.calibrated_to(dimension, sensitivity, price.mu)
    return SphericalLaplace.calibrated_to(dimension, sensitivity, price)


def arithmetic(distribution: type[NoiseDistribution]) -> str:
    """Return the assumption about numbers that the proof of a fit with such noise rests on."""
    return DOUBLES if distribution in LAWS else REAL_ARITHMETIC


def stated_law(distribution: NoiseDistribution | Proved) -> dict[str, Any]:
    """Return a distribution as releases state it."""
    kind, scale = type(distribution), distribution.scale
    law = LAWS.get(kind, kind.__name__)
    return {"law": law, "dimension": distribution.dimension, "scale": scale}


def lattice_of(distribution: NoiseDistribution | Proved) -> float:
    """Return the spacing of released sums of vectors and noise."""
    scale = distribution.scale
    return lattice_step(scale * LATTICE_FRACTION) if scale > 0.0 else 0.0


def vector_noise(
    distribution: NoiseDistribution | Proved, sensitivity: float, norm: str = "L2"
) -> Noise:
    """Return the noise on a vector, as a release states it."""
    own, variance = stated_law(distribution), distribution.deviation**2
    law = own["law"] if own["scale"] else NONE
    return Noise(law, own["scale"], sensitivity, norm, lattice_of(distribution), variance)


#: Noise that was drawn: in many digits where no seed was given and the distribution is proved.
Drawn = ExactVector | FloatArray


@drawn_by_source
def draw_noise(distribution: NoiseDistribution | Proved, source: RandomSource) -> Drawn:
    """Return noise, to be added by :func:`with_noise`."""
    # A class that is derived of these may have a distribution of its own.
    own = type(distribution) in LAWS
    if isinstance(distribution, Proved) and own and source.exact:
        return distribution.draw_exactly(source)
    return distribution.draw(source)


def with_noise(
    values: FloatArray, noise: Drawn, distribution: NoiseDistribution | Proved
) -> FloatArray:
    """Return values plus noise, rounded to a lattice that is public as the distribution is."""
    step = lattice_step(distribution.scale * LATTICE_FRACTION)
    if isinstance(noise, ExactVector):
        return noise.added_to(values, step)
    return round_to_lattice(values + noise, step)


def add_noise(
    values: FloatArray, distribution: NoiseDistribution | Proved, source: RandomSource
) -> FloatArray:
    """Draw noise, and return the values with it."""
    return with_noise(values, draw_noise(distribution, source), distribution)


def nearest_doubles(noise: Drawn) -> FloatArray:
    """Return noise in doubles, for a mechanism that allows for how near they are."""
    return noise.nearest_doubles() if isinstance(noise, ExactVector) else noise
