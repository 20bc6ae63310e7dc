r"""Logistic loss of labelled records in a ball, with a cap on the residual.

.. math:: \ell(f; x, y) = \phi(y\,x^\top f), \qquad
    \phi'(m) = -\min(\sigma(-m), c), \qquad y \in \{-1, 1\},\ \|x\|_2 \le R,\ c \in [\tfrac12, 1]

At c = 1 this is :math:`\log(1 + e^{-m})`. A smaller c makes the loss linear where the residual
:math:`\sigma(-m)`, label less probability, would exceed c: as in Huber's loss, a record that the
model gets wrong pulls no harder than c. The gradient :math:`-y\min(\sigma(-m), c)\,x` is no longer
than cR, so gradients differ by at most :math:`S = 2cR`: at c = 1/2, half the noise. The Hessian,
where it exists, is at most :math:`\sigma(1 - \sigma)\,x x^\top`, of rank 1 and trace at most
:math:`\tau = R^2/4` (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.1, for c = 1;
docs/proofs/logistic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from skdpsurv.likelihoods.base import (
    SUM_ROWS,
    Derivatives,
    Linearized,
    PrivacyConstants,
    weighted_sum,
)
from skdpsurv.types import FloatArray, IntArray


class LabelledBlock(NamedTuple):
    """Rows X of shape (n, n_features) and labels y of shape (n,), each -1 or 1."""

    X: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class Logistic:
    """Likelihood of a binary label.

    An intercept is a constant column of X: it counts in the norm, and is regularised like the rest.

    Parameters
    ----------
    n_features : int
    data_norm : float
        R, the public bound on the Euclidean norm of a row.
    max_residual : float, default=1.0
        c, between 0.5 and 1.
    """

    n_features: int
    data_norm: float = 1.0
    max_residual: float = 1.0

    @property
    def n_params(self) -> int:
        """One coefficient per column."""
        return self.n_features

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record."""
        return PrivacyConstants(
            gradient_sensitivity=2.0 * self.max_residual * self.data_norm,
            hessian_trace=self.data_norm**2 / 4.0,
            hessian_rank=1,
            rounding=2.0 * SUM_ROWS + 2.0 * self.n_features + 200.0,
        )

    def n_records(self, block: LabelledBlock) -> int:
        """Return the number of records in a block."""
        return int(block.y.size)

    def thin(self, block: LabelledBlock, step: int) -> LabelledBlock:
        """Return every ``step``-th record."""
        return LabelledBlock(np.ascontiguousarray(block.X[::step]), block.y[::step])

    def take(self, block: LabelledBlock, rows: IntArray) -> LabelledBlock:
        """Return the records at the positions ``rows``."""
        return LabelledBlock(block.X.take(rows, axis=0), block.y.take(rows))

    def losses(self, coef: FloatArray, block: LabelledBlock) -> FloatArray:
        """Return the loss of each record."""
        margin = block.y * (block.X @ coef)
        knee = -knee_of(self.max_residual)
        curved = np.logaddexp(0.0, -np.maximum(margin, knee))
        return np.asarray(curved + self.max_residual * np.maximum(knee - margin, 0.0))

    def linearized(
        self, coef: FloatArray, block: LabelledBlock, tolerance: float = 1e-15
    ) -> Linearized:
        """Return losses and weighted gradients; always to rounding."""
        return Linearized(
            self.losses(coef, block),
            lambda weights: self.derivatives(coef, block, weights, order=1).gradient,
        )

    def derivatives(
        self,
        coef: FloatArray,
        block: LabelledBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block."""
        margin = block.y * (block.X @ coef)
        residual = special.expit(-margin)
        slope = -block.y * np.minimum(residual, self.max_residual)
        if weights is not None:
            slope = slope * weights
        gradient = weighted_sum(slope, block.X)
        if order < 2:
            return Derivatives(gradient, None)
        curvature = residual * special.expit(margin)
        curvature[residual > self.max_residual] = 0.0
        if weights is not None:
            curvature = curvature * weights
        return Derivatives(gradient, (block.X * curvature[:, None]).T @ block.X)


def knee_of(max_residual: float) -> float:
    """Return the size of the (negative) margin beyond which the loss is linear; inf at c = 1."""
    return math.log(max_residual / (1.0 - max_residual)) if max_residual < 1.0 else math.inf


def probability(predictor: FloatArray, max_residual: float = 1.0) -> FloatArray:
    r"""Return the probability of label 1 that belongs to a linear predictor.

    Parameters
    ----------
    predictor : ndarray
        :math:`x^\top f`.
    max_residual : float, default=1.0
        c of the loss that f was fitted with.

    Returns
    -------
    ndarray
        The one at which the predictor m minimises the expected loss, :math:`\eta\phi'(m) =
        (1 - \eta)\phi'(-m)`: the logistic function up to :math:`|m| = \log(c/(1-c))`, and
        :math:`c/(c + \sigma(-m))` beyond.
    """
    down = special.expit(-predictor)
    away = np.minimum(down, max_residual)
    towards = np.minimum(special.expit(predictor), max_residual)
    return np.asarray(towards / (towards + away))
