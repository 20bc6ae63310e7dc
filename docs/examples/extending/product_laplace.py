"""Noise of another shape: independent Laplace variables in all coordinates."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from skdpsurv.dp import RandomSource
from skdpsurv.dp.types import FloatArray


@dataclass(frozen=True)
class ProductLaplace:
    r"""The L1-Laplace law, :math:`p(b) \propto e^{-\|b\|_1/\text{scale}}`.

    Neighbours: any whose vectors are at most S apart in the Euclidean norm, hence
    :math:`\sqrt d\,S` in the L1 norm. Theorem: it hides them for :math:`\sqrt d\,S` / scale, by the
    triangle inequality, in real arithmetic.
    """

    dimension: int
    scale: float
    asserted = True  # no registered theorem is about this class

    @classmethod
    def calibrated_to(cls, dimension: int, sensitivity: float, epsilon: float) -> Self:
        return cls(dimension, np.sqrt(dimension) * sensitivity / epsilon)

    def cost(self, sensitivity: float) -> float:
        return np.sqrt(self.dimension) * sensitivity / self.scale

    def draw(self, source: RandomSource) -> FloatArray:
        return source.generator.laplace(scale=self.scale, size=self.dimension)

    @property
    def deviation(self) -> float:
        return np.sqrt(2.0) * self.scale

    def largest_norm(self) -> float:
        # Each coordinate is beyond 1000 scales with probability e^-1000.
        return 1000.0 * self.scale * np.sqrt(self.dimension)

    def log_density(self, noise: FloatArray) -> float:
        return -float(np.abs(noise).sum()) / self.scale
