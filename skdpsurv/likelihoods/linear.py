r"""Losses of a linear predictor: one scalar function is a whole likelihood.

.. math:: \ell(f; x, y) = \phi(x^\top f, y), \qquad \|x\|_2 \le R

A :class:`ScalarLoss` states :math:`\phi`, its first two derivatives and their bounds,
:math:`|\phi'| \le c` and :math:`0 \le \phi'' \le K`. Neighbours: replace-one. The gradient
:math:`\phi' x` is no longer than cR, so that gradients of two records differ by at most
:math:`S = 2cR`. The Hessian :math:`\phi'' x x^\top` has rank 1 and a trace of at most
:math:`\tau = KR^2` (docs/proofs/linear). Both hold for a longer row that counts w times, with
:math:`w \le \min(1, R^2/\|x\|^2)`, as :math:`w\|x\| \le R` and :math:`w\|x\|^2 \le R^2`.

The logistic loss of a label has a cap on the residual:

.. math:: \ell(f; x, y) = \phi(y\,x^\top f), \qquad
    \phi'(m) = -\min(\sigma(-m), c), \qquad y \in \{-1, 1\},\ \|x\|_2 \le R,\ c \in [\tfrac12, 1]

At c = 1 this is :math:`\log(1 + e^{-m})`. A smaller c makes the loss linear where the residual
:math:`\sigma(-m)`, label less probability, would exceed c, as in Huber's loss. At c = 1/2 there is
half the noise. The curvature :math:`\sigma(1 - \sigma)` is at most 1/4: :math:`\tau = R^2/4`
(Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.1, for c = 1; docs/proofs/logistic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import special

from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.loss import (
    ELEMENTARY,
    SUM_DEPTH,
    BlockLikelihood,
    Derivatives,
    PrivacyConstants,
    counted,
    gram,
    weighted_sum,
)

#: Units of 2^-53 of the largest slope that a slope is off by, if its loss does not state it.
SLOPE_ROUNDING = 64.0


class ScalarLoss(Protocol):
    """A convex function of one predictor, for each outcome of a public domain.

    Its slope is continuous and nondecreasing, the integral of the curvature. Privacy rests on the
    bounds: they are public and hold for every predictor and every outcome of the domain.

    For the proof about the program, a loss may also state ``slope_rounding``, the units of 2^-53 c
    that computed slopes are off by (default ``SLOPE_ROUNDING``), and ``loss_at_zero``, the largest
    value at the predictor 0 less the least anywhere.
    """

    @property
    def largest_slope(self) -> float:
        """c, a bound on the slope, of either sign."""

    @property
    def largest_curvature(self) -> float:
        """K, a bound on the curvature."""

    def value(self, predictor: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return the loss of each record."""

    def derivatives(
        self, predictor: FloatArray, outcome: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the slopes in the predictor and, at order 2, the curvatures.

        At a kink of the slope the curvature is anything between 0 and K.
        """


class LinearBlock(NamedTuple):
    """Records inside the public domain.

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
class LinearLikelihood(BlockLikelihood):
    """Likelihood of an outcome given a linear predictor.

    An intercept is a constant column of X: it counts in the norm and is regularised like the rest.

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
        """Number of parameters: one coefficient per column."""
        return self.n_features

    @property
    def constants(self) -> PrivacyConstants:
        """Privacy constants S, tau and r of the loss of one record."""
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

    def stated(self) -> dict[str, Any]:
        """Return loss, c, K and R."""
        return {
            "kind": type(self.loss).__name__,
            "slope": self.loss.largest_slope,
            "curvature": self.loss.largest_curvature,
            "data_norm": self.data_norm,
            "n_features": self.n_features,
        }

    def n_records(self, block: LinearBlock) -> int:
        return int(block.y.size)

    def losses(self, coef: FloatArray, block: LinearBlock) -> FloatArray:
        values = self.loss.value(block.X @ coef, block.y)
        return values if block.weight is None else values * block.weight

    def derivatives(
        self,
        coef: FloatArray,
        block: LinearBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        slope, curvature = self.loss.derivatives(block.X @ coef, block.y, order)
        weights = counted(block.weight, weights)
        gradient = weighted_sum(slope if weights is None else slope * weights, block.X)
        if curvature is None:
            return Derivatives(gradient, None)
        if weights is not None:
            curvature = curvature * weights
        return Derivatives(gradient, gram(block.X, curvature))


@dataclass(frozen=True)
class LogisticLoss:
    """The loss of a label, -1 or 1; ``largest_slope`` is the cap c on the residual, 0.5 to 1."""

    largest_slope: float = 1.0
    largest_curvature = 0.25
    #: Outcomes for which slope and curvature are bounded.
    outcome_range = (-1.0, 1.0)
    slope_rounding = ELEMENTARY
    loss_at_zero = math.log(2.0)

    def value(self, predictor: FloatArray, outcome: FloatArray) -> FloatArray:
        margin = outcome * predictor
        threshold = -margin_threshold(self.largest_slope)
        curved = np.logaddexp(0.0, -np.maximum(margin, threshold))
        return np.asarray(curved + self.largest_slope * np.maximum(threshold - margin, 0.0))

    def derivatives(
        self, predictor: FloatArray, outcome: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray | None]:
        margin = outcome * predictor
        residual = special.expit(-margin)
        slope = np.asarray(-outcome * np.minimum(residual, self.largest_slope))
        if order < 2:
            return slope, None
        curvature = np.asarray(residual * special.expit(margin))
        curvature[residual > self.largest_slope] = 0.0
        return slope, curvature


class Logistic(LinearLikelihood):
    """Likelihood of a binary label.

    Parameters
    ----------
    n_features : int
    data_norm : float, default=1.0
        R, the public bound on the Euclidean norm of a row.
    max_residual : float, default=1.0
        c, between 0.5 and 1.
    """

    def __init__(self, n_features: int, data_norm: float = 1.0, max_residual: float = 1.0) -> None:
        super().__init__(LogisticLoss(max_residual), n_features, data_norm)


def margin_threshold(max_residual: float) -> float:
    """Return the size of the (negative) margin beyond which the loss is linear; inf at c = 1."""
    return math.log(max_residual / (1.0 - max_residual)) if max_residual < 1.0 else math.inf


def log_odds(predictor: FloatArray, max_residual: float = 1.0) -> FloatArray:
    """Return the logarithm of the odds of label 1, as :func:`probability` has them at slope 1."""
    towards, away = special.log_expit(predictor), special.log_expit(-predictor)
    if max_residual < 1.0:
        most = math.log(max_residual)
        towards, away = np.minimum(towards, most), np.minimum(away, most)
    return np.asarray(towards - away)


def log_odds_slope(max_residual: float) -> float:
    """Return the mean derivative of log odds by a standard normal predictor; 1 without a cap.

    A coefficient times this is a log odds ratio, in first order.
    """
    grid = special.ndtri((np.arange(200) + 0.5) / 200.0)
    return float(np.sum(grid * log_odds(grid, max_residual)) / np.sum(grid**2))


def probability(predictor: FloatArray, max_residual: float = 1.0, slope: float = 1.0) -> FloatArray:
    r"""Return the probability of label 1 for linear predictors :math:`m = x^\top f`.

    The predictor m minimises the expected loss, :math:`\eta\phi'(m) = (1 - \eta)\phi'(-m)`, at this
    probability: the logistic function up to :math:`|m| = \log(c/(1-c))`, and
    :math:`c/(c + \sigma(-m))` beyond. ``slope`` multiplies the log odds.
    """
    return np.asarray(special.expit(slope * log_odds(predictor, max_residual)))
