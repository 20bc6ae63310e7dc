"""How far one record moves the derivatives of a sum of losses: measured, where proofs have bounds.

The points are public: a theorem about a perturbed minimiser speaks of all coefficients at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.base import Likelihood, block_derivatives
from skdpsurv.types import FloatArray

#: How far from a centre derivatives are compared, along at most so many coordinates.
STEPS, MOST_COORDINATES = (0.3, 1.0, 3.0, 10.0, 100.0), 6
#: Eigenvalues below this part of the largest trace are rounding.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Move:
    """How far neighbours are apart at one point.

    Parameters
    ----------
    gradient : float
        Norm of the difference of gradients.
    eigenvalues : ndarray
        Of the difference of Hessians. What one record adds is positive and what the other takes
        away negative, so that neither side has a larger trace, or rank, than a record's Hessian.
    """

    gradient: float
    eigenvalues: FloatArray

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """The sizes of positive eigenvalues, and of negative ones."""
        return np.maximum(self.eigenvalues, 0.0), np.maximum(-self.eigenvalues, 0.0)

    @property
    def trace(self) -> float:
        """That of the larger side."""
        return max(float(side.sum()) for side in self.sides)

    def rank(self, largest_trace: float) -> int:
        """Return that of the larger side."""
        least = RANK_TOLERANCE * largest_trace
        return max(int(np.count_nonzero(side > least)) for side in self.sides)


def moves(
    likelihood: Likelihood, one: Blocks[Any], other: Blocks[Any], center: FloatArray
) -> Iterator[Move]:
    """Yield how far neighbours are apart, at points around a centre.

    Parameters
    ----------
    likelihood : Likelihood
    one, other : Blocks
        Of the likelihood's blocks: the same but for one record.
    center : ndarray of shape (n_params,)
    """

    def apart(point: FloatArray) -> tuple[FloatArray, Move]:
        at = partial(block_derivatives, likelihood, point, 2)
        mine, theirs = one.map_sum(at), other.map_sum(at)
        pull = mine.gradient - theirs.gradient
        bend = np.asarray(mine.hessian) - np.asarray(theirs.hessian)
        return pull, Move(float(np.linalg.norm(pull)), np.linalg.eigvalsh(bend))

    pull, move = apart(center)
    yield move
    for point in around(center, pull):
        yield apart(point)[1]


def around(center: FloatArray, *ways: FloatArray) -> Iterator[FloatArray]:
    """Yield points around a centre: in given directions, in that of all coordinates, in single."""
    size = center.size
    found = np.vstack([*ways, np.ones(size), np.eye(size)[:MOST_COORDINATES]])
    found = found[np.linalg.norm(found, axis=1) > 0.0]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    for step in STEPS:
        for way in (*found, *-found):
            yield center + step * way
