r"""Losses of a linear predictor: one scalar function is a whole likelihood.

.. math:: \ell(f; x, y) = \phi(x^\top f, y), \qquad \|x\|_2 \le R

A :class:`ScalarLoss` says what is particular, the function :math:`\phi` of predictor and outcome,
its first two derivatives and a bound on each: :math:`|\phi'| \le c` and :math:`0 \le \phi'' \le K`.
The rest follows from them. The gradient :math:`\phi' x` is no longer than cR, so that the gradients
of two records differ by at most :math:`S = 2cR`; the Hessian :math:`\phi'' x x^\top` has rank 1 and
a trace of at most :math:`\tau = KR^2` (docs/proofs/linear).

A row longer than R may be weighed instead: the loss of its record counts w times, with :math:`w \le
\min(1, R^2/\|x\|^2)`. Then :math:`w\|x\| \le R` and :math:`w\|x\|^2 \le R^2`: the gradient
:math:`w\phi' x` is no longer than cR, and the Hessian :math:`w\phi'' x x^\top` has a trace of at
most :math:`KR^2`. S and :math:`\tau` are as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from skdpsurv.likelihoods.base import (
    SUM_DEPTH,
    Derivatives,
    Linearized,
    PrivacyConstants,
    counted,
    each_field,
    gram,
    weighted_sum,
)
from skdpsurv.types import FloatArray, IntArray

#: Units of 2^-53 of the largest slope that a slope is off by, if its loss does not say.
SLOPE_ROUNDING = 64.0


class ScalarLoss(Protocol):
    """A convex function of one predictor, for each outcome of a public domain.

    Its slope is continuous and does not fall, and it is the integral of the curvature. The bounds
    hold for every predictor and every outcome of the domain, and are public constants: privacy
    rests on them.

    For the proof about the program a loss may also state ``slope_rounding``, how many units of
    2^-53 c computed slopes are off by at the predictor that they are computed at
    (``SLOPE_ROUNDING`` if it does not), and ``loss_at_zero``, the largest value at the predictor 0
    less the least anywhere.
    """

    @property
    def largest_slope(self) -> float:
        """c, a bound on the slope, of either sign."""
        ...

    @property
    def largest_curvature(self) -> float:
        """K, a bound on the curvature."""
        ...

    def value(self, predictor: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return the loss of each record."""
        ...

    def derivatives(
        self, predictor: FloatArray, outcome: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the slopes in the predictor and, at order 2, the curvatures.

        At a kink of the slope the curvature is anything between 0 and K.
        """
        ...


class LinearBlock(NamedTuple):
    """Some records, inside the public domain.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
        In the domain of the loss.
    weight : ndarray of shape (n,) or None
        How often a record counts, at most 1 and at most ``(R / norm of its row)^2``; None: once.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray | None = None


@dataclass(frozen=True)
class LinearLikelihood:
    """Likelihood of an outcome given a linear predictor.

    An intercept is a constant column of X: it counts in the norm, and is regularised like the rest.

    Parameters
    ----------
    loss : ScalarLoss
    n_features : int
    data_norm : float, default=1.0
        R, the public bound on the Euclidean norm of a row.
    """

    loss: ScalarLoss
    n_features: int
    data_norm: float = 1.0

    @property
    def n_params(self) -> int:
        """One coefficient per column."""
        return self.n_features

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record."""
        c, curvature = self.loss.largest_slope, self.loss.largest_curvature
        slope_rounding = getattr(self.loss, "slope_rounding", SLOPE_ROUNDING)
        return PrivacyConstants(
            gradient_sensitivity=2.0 * c * self.data_norm,
            hessian_trace=curvature * self.data_norm**2,
            hessian_rank=1,
            # A gradient is no longer than S/2; two roundings are for weights.
            rounding=(slope_rounding + 2.0 + SUM_DEPTH) / 2.0,
            predictor_rounding=float(self.n_features),
            loss_at_zero=getattr(self.loss, "loss_at_zero", math.inf),
        )

    def n_records(self, block: LinearBlock) -> int:
        """Return the number of records in a block."""
        return int(block.y.size)

    def thin(self, block: LinearBlock, step: int) -> LinearBlock:
        """Return every ``step``-th record."""
        return each_field(block, lambda field: np.ascontiguousarray(field[::step]))

    def take(self, block: LinearBlock, rows: IntArray | slice) -> LinearBlock:
        """Return the records at the positions ``rows``."""
        return each_field(block, lambda field: field[rows])

    def losses(self, coef: FloatArray, block: LinearBlock) -> FloatArray:
        """Return the loss of each record."""
        values = self.loss.value(block.X @ coef, block.y)
        return values if block.weight is None else values * block.weight

    def linearized(
        self, coef: FloatArray, block: LinearBlock, tolerance: float = 1e-15
    ) -> Linearized:
        """Return losses and weighted gradients; always to rounding."""
        return Linearized(
            self.losses(coef, block),
            lambda weights: self.derivatives(coef, block, weights, order=1).gradient,
        )

    def derivatives(
        self,
        coef: FloatArray,
        block: LinearBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block."""
        slope, curvature = self.loss.derivatives(block.X @ coef, block.y, order)
        weights = counted(block.weight, weights)
        gradient = weighted_sum(slope if weights is None else slope * weights, block.X)
        if curvature is None:
            return Derivatives(gradient, None)
        if weights is not None:
            curvature = curvature * weights
        return Derivatives(gradient, gram(block.X, curvature))
