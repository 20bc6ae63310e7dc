"""Noise on a vector: its law, and a sum with it that is rounded to a public lattice.

Without a seed, the sum with a spherical law has the law of the theorem about real numbers within a
total variation of 1e-30 (:mod:`~skdpsurv.dp.exact_vectors`). Other laws, and seeded noise, are
drawn in doubles; for these the lattice is a safeguard and no proof (docs/user_guide/limits). A law
of longer vectors than the theorem allows for cannot be made: plans hold laws, so that this is found
before anything is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from skdpsurv.dp import (
    RandomSource,
    lattice_step,
    round_to_lattice,
    spherical_gaussian,
    spherical_laplace,
)
from skdpsurv.dp.exact_vectors import (
    ExactVector,
    exact_spherical_gaussian,
    exact_spherical_laplace,
    require_theorem,
)
from skdpsurv.dp.privacy_cost import Concentrated, Price
from skdpsurv.dp.references import DOUBLES, REAL_ARITHMETIC
from skdpsurv.dp.types import FloatArray

#: A sum is rounded to this fraction of its noise's scale.
LATTICE_FRACTION = 2.0**-8
#: What is left of epsilon for noise is lowered by this factor, and bounds are raised by it: far
#: more than the rounding of public numbers can take.
MARGIN = 1.0 + 2.0**-40
#: Least scale of noise on coefficients: less would drown in the spacing of doubles.
LEAST_NOISE = 1e-9


class NoiseDistribution(Protocol):
    """A law of noise on a vector that hides how far a record can move it.

    A calibration carries laws, and every mechanism and audit asks them: nobody else knows the shape
    of the noise. To hide differences of Euclidean norm S at the price epsilon, a law must satisfy
    log p(b) - log p(b + v) <= ``cost(S)`` <= epsilon for all b and all v with ||v|| <= S. A part of
    a distance must cost no more than its part, cost(t) <= t/S cost(S) for t <= S: so do laws whose
    cost is convex and 0 at 0, and models that share a record rely on it.
    """

    @property
    def dimension(self) -> int:
        """How long the vector is."""

    @property
    def scale(self) -> float:
        """Size of the noise; 0 for none."""

    @classmethod
    def calibrated_to(cls, dimension: int, sensitivity: float, price: float) -> Self:
        """Return the law that hides a distance for an epsilon."""

    def cost(self, sensitivity: float) -> float:
        """Return the epsilon for which a distance is hidden: convex in it, and 0 at 0."""

    def draw(self, source: RandomSource) -> FloatArray:
        """Return noise."""

    @property
    def deviation(self) -> float:
        """Standard deviation of each coordinate; they are uncorrelated."""

    def largest_norm(self) -> float:
        """Return a norm that the noise does not exceed."""

    def log_density(self, noise: FloatArray) -> float:
        """Return the log density, up to a constant."""


@dataclass(frozen=True)
class _Spherical:
    """A law whose direction is uniform; a distance costs its part of the scale."""

    dimension: int
    scale: float

    def __post_init__(self) -> None:
        require_theorem(self.dimension)

    @classmethod
    def calibrated_to(cls, dimension: int, sensitivity: float, price: float) -> Self:
        """Return the law that hides a distance for an epsilon, or for a mu."""
        return cls(dimension, sensitivity / price)

    def cost(self, sensitivity: float) -> float:
        """Return the epsilon, or the mu, for which a distance is hidden."""
        return sensitivity / self.scale


@dataclass(frozen=True)
class SphericalLaplace(_Spherical):
    r"""The L2-Laplace law, :math:`p(b) \propto e^{-\|b\|_2/\text{scale}}`.

    Neighbours: any whose vectors are at most S apart in the Euclidean norm. Theorem: it hides them
    for S / scale, by the triangle inequality (docs/proofs/noise).
    """

    def draw(self, source: RandomSource) -> FloatArray:
        """Return noise."""
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
        """Return a norm that the noise does not exceed.

        With a probability below 1e-43: the radius is a sum of d = ``dimension`` exponential
        variables of mean ``scale``, which is beyond d + sqrt(2 d x) + x with one of at most
        exp(-x) (Boucheron, Lugosi and Massart 2013, section 2.4).
        """
        d, x = float(self.dimension), 100.0
        return self.scale * (d + math.sqrt(2.0 * d * x) + x)

    def log_density(self, noise: FloatArray) -> float:
        """Return the log density, up to a constant."""
        return -float(np.linalg.norm(noise)) / self.scale


@dataclass(frozen=True)
class SphericalGaussian(_Spherical):
    r"""Independent normal numbers of deviation ``scale``.

    Neighbours: any whose vectors are at most S apart in the Euclidean norm. Theorem: it hides them
    at the price :math:`\mu = S / \text{scale}`, in zCDP :math:`\tfrac12\mu^2`
    (docs/proofs/gaussian); no epsilon hides them without a delta.
    """

    def draw(self, source: RandomSource) -> FloatArray:
        """Return noise."""
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
        """Return a norm that the noise does not exceed.

        With a probability below 1e-43: the norm has mean at most the root of d, and is a function
        of normal numbers of Lipschitz constant 1, so that it is x above with one of at most
        exp(-x^2 / 2).
        """
        return self.scale * (math.sqrt(self.dimension) + 15.0)

    def log_density(self, noise: FloatArray) -> float:
        """Return the log density, up to a constant."""
        return -0.5 * float(noise @ noise) / self.scale**2


#: Laws whose direction is uniform and whose mean length is known.
Spherical = SphericalLaplace | SphericalGaussian


def law_hiding(dimension: int, sensitivity: float, price: Price) -> Spherical:
    """Return the law that hides a distance at a price: for an epsilon, or for a mu."""
    if isinstance(price, Concentrated):
        return SphericalGaussian.calibrated_to(dimension, sensitivity, price.mu)
    return SphericalLaplace.calibrated_to(dimension, sensitivity, price)


def arithmetic(law: type[NoiseDistribution]) -> str:
    """Return the assumption about numbers that the proof of a fit with such noise rests on."""
    return DOUBLES if law in (SphericalLaplace, SphericalGaussian) else REAL_ARITHMETIC


#: Noise that was drawn: in many digits where no seed was given and the law is spherical.
Drawn = ExactVector | FloatArray


def draw_noise(law: NoiseDistribution, source: RandomSource) -> Drawn:
    """Return noise, to be added by :func:`with_noise`."""
    # A class that is derived of these may have a law of its own.
    own = type(law) in (SphericalLaplace, SphericalGaussian)
    if isinstance(law, Spherical) and own and source.exact:
        return law.draw_exactly(source)
    return law.draw(source)


def with_noise(values: FloatArray, noise: Drawn, law: NoiseDistribution) -> FloatArray:
    """Return values plus noise, rounded to a lattice that is public as the law is."""
    step = lattice_step(law.scale * LATTICE_FRACTION)
    if isinstance(noise, ExactVector):
        return noise.added_to(values, step)
    return round_to_lattice(values + noise, step)


def add_noise(values: FloatArray, law: NoiseDistribution, source: RandomSource) -> FloatArray:
    """Draw noise, and return values with it."""
    return with_noise(values, draw_noise(law, source), law)


def nearest_doubles(noise: Drawn) -> FloatArray:
    """Return noise in doubles, for a mechanism that allows for how near they are."""
    return noise.nearest_doubles() if isinstance(noise, ExactVector) else noise
