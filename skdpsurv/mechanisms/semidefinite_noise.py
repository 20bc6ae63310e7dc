r"""Noise on a symmetric matrix that hides the difference of two semidefinite ones.

Neighbours: any whose matrices differ by P - Q, with P and Q positive semidefinite and of trace at
most S. Theorem (docs/proofs/noise, "Noise on symmetric matrices"): noise A - B, with A and B
semidefinite of joint density :math:`\propto e^{-\epsilon\max(\mathrm{tr} A, \mathrm{tr} B)/S}`,
hides them for epsilon. In any direction it has a deviation of about 2 sqrt(D) S / epsilon for D
rows, and L2-Laplace noise one of about D S / epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdpsurv.dp.exact_matrices import exact_semidefinite_laplace, n_entries, semidefinite_laplace
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.types import FloatArray


def symmetric(triangle: FloatArray, width: int) -> FloatArray:
    """Return the symmetric matrix of an upper triangle, row by row."""
    found = np.zeros((width, width))
    found[np.triu_indices(width)] = triangle
    return found + np.triu(found, 1).T


def trace_distance(difference: FloatArray) -> float:
    """Return the least S such that a symmetric matrix is a difference P - Q of traces at most S."""
    values = np.linalg.eigvalsh(difference)
    return float(max(values[values > 0.0].sum(), -values[values < 0.0].sum()))


@dataclass(frozen=True)
class SemidefiniteLaplace:
    """The noise, as the upper triangle of a matrix of ``width`` rows, row by row."""

    width: int
    scale: float

    @classmethod
    def calibrated_to(cls, width: int, sensitivity: float, price: float) -> Self:
        return cls(width, sensitivity / price)

    @property
    def dimension(self) -> int:
        """Number of entries on and above the diagonal."""
        return n_entries(self.width)

    def cost(self, sensitivity: float) -> float:
        """Return the epsilon for which a distance by :func:`trace_distance` is hidden."""
        return sensitivity / self.scale

    @property
    def deviation(self) -> float:
        r"""Standard deviation of :math:`u^\top E u` for every unit vector u; off the diagonal less.

        With :math:`p = D(D + 1)/2`, the square of the larger trace has mean 2p(2p + 1) scales, a
        diagonal entry of a Wishart matrix over its trace is Beta((D + 1)/2, (D^2 - 1)/2), and the
        smaller trace over the larger is the largest of p uniform numbers.
        """
        width, size = self.width, self.dimension
        mean, square = 1.0 / width, (width + 3.0) / (2.0 * width * (size + 1.0))
        smaller, smaller_square = size / (size + 1.0), size / (size + 2.0)
        each = (1.0 + smaller_square) * square - 2.0 * smaller * mean**2
        return self.scale * math.sqrt(2.0 * size * (2.0 * size + 1.0) * each)

    def draw(self, source: RandomSource) -> FloatArray:
        return semidefinite_laplace(self.width, self.scale, source)

    def draw_exactly(self, source: RandomSource) -> ExactVector:
        """Return noise in more digits than doubles have."""
        return exact_semidefinite_laplace(self.width, self.scale, source)
