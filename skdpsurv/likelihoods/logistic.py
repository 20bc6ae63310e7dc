r"""Logistic loss of a label, with a cap on the residual.

.. math:: \ell(f; x, y) = \phi(y\,x^\top f), \qquad
    \phi'(m) = -\min(\sigma(-m), c), \qquad y \in \{-1, 1\},\ \|x\|_2 \le R,\ c \in [\tfrac12, 1]

At c = 1 this is :math:`\log(1 + e^{-m})`. A smaller c makes the loss linear where the residual
:math:`\sigma(-m)`, label less probability, would exceed c: as in Huber's loss, a record that the
model gets wrong pulls no harder than c. Slopes of at most c make gradients differ by at most
:math:`S = 2cR`: at c = 1/2, half the noise. The curvature, where it exists, is
:math:`\sigma(1 - \sigma)`, at most 1/4, which makes :math:`\tau = R^2/4` (Chaudhuri, Monteleoni and
Sarwate 2011, section 3.4.1, for c = 1; docs/proofs/logistic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from skdpsurv.likelihoods.base import ELEMENTARY
from skdpsurv.likelihoods.linear import LinearLikelihood
from skdpsurv.types import FloatArray


@dataclass(frozen=True)
class LogisticLoss:
    """The loss of a label, -1 or 1; ``largest_slope`` is the cap c on the residual, 0.5 to 1."""

    largest_slope: float = 1.0
    largest_curvature = 0.25
    slope_rounding = ELEMENTARY
    loss_at_zero = math.log(2.0)

    def value(self, predictor: FloatArray, outcome: FloatArray) -> FloatArray:
        margin = outcome * predictor
        knee = -knee_of(self.largest_slope)
        curved = np.logaddexp(0.0, -np.maximum(margin, knee))
        return np.asarray(curved + self.largest_slope * np.maximum(knee - margin, 0.0))

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


def knee_of(max_residual: float) -> float:
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
    """Return how fast log odds rise with a predictor, on average over a standard normal one.

    1 without a cap. A coefficient times this is a log odds ratio, in first order.
    """
    grid = special.ndtri((np.arange(200) + 0.5) / 200.0)
    return float(np.sum(grid * log_odds(grid, max_residual)) / np.sum(grid**2))


def probability(predictor: FloatArray, max_residual: float = 1.0, slope: float = 1.0) -> FloatArray:
    r"""Return the probability of label 1 that belongs to a linear predictor.

    Parameters
    ----------
    predictor : ndarray
        :math:`x^\top f`.
    max_residual : float, default=1.0
        c of the loss that f was fitted with.
    slope : float, default=1.0
        What log odds are multiplied with.

    Returns
    -------
    ndarray
        The one at which the predictor m minimises the expected loss, :math:`\eta\phi'(m) =
        (1 - \eta)\phi'(-m)`: the logistic function up to :math:`|m| = \log(c/(1-c))`, and
        :math:`c/(c + \sigma(-m))` beyond; its odds to the power of ``slope``.
    """
    return np.asarray(special.expit(slope * log_odds(predictor, max_residual)))
