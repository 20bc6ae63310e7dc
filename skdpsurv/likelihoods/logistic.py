r"""Logistic loss of labelled records in a ball.

.. math:: \ell(f; x, y) = \log(1 + e^{-y\,x^\top f}), \qquad y \in \{-1, 1\},\ \|x\|_2 \le R

The gradient is :math:`-y\,\sigma(-y\,x^\top f)\,x`, of norm below R, so gradients differ by less
than :math:`S = 2R`; the Hessian :math:`\sigma(1 - \sigma)\,x x^\top` has rank 1 and trace at most
:math:`\tau = R^2/4` (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdpsurv.likelihoods.base import SUM_ROWS, Derivatives, PrivacyConstants, weighted_sum

FloatArray = NDArray[np.float64]


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
    """

    n_features: int
    data_norm: float = 1.0

    @property
    def n_params(self) -> int:
        """One coefficient per column."""
        return self.n_features

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record."""
        return PrivacyConstants(
            gradient_sensitivity=2.0 * self.data_norm,
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

    def losses(self, coef: FloatArray, block: LabelledBlock) -> FloatArray:
        """Return the loss of each record."""
        return np.asarray(np.logaddexp(0.0, -block.y * (block.X @ coef)))

    def derivatives(
        self,
        coef: FloatArray,
        block: LabelledBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block."""
        margin = block.y * (block.X @ coef)
        miss = special.expit(-margin)
        slope = -block.y * miss
        if weights is not None:
            slope = slope * weights
        gradient = weighted_sum(slope, block.X)
        if order < 2:
            return Derivatives(gradient, None)
        curvature = miss * special.expit(margin)
        if weights is not None:
            curvature = curvature * weights
        return Derivatives(gradient, (block.X * curvature[:, None]).T @ block.X)
