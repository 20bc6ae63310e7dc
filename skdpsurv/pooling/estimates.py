r"""Estimates of several parameters from several studies, weighted by their precisions.

Study i has an estimate :math:`\theta_i` of the coordinates :math:`K_i`, with covariance
:math:`C_i` of sampling and privacy noise. Its precision is
:math:`P_i = (C_i[K_i, K_i])^{-1}` on these coordinates and 0 elsewhere. The pooled estimate is

.. math::
   \Sigma = \Bigl(\sum_i P_i\Bigr)^{-1}, \qquad \hat\theta = \Sigma \sum_i P_i \theta_i

by generalised least squares, on the coordinates that some study knows.

**Heterogeneity** beyond the studies' errors, one coordinate at a time: let :math:`y_i` be its k
estimates, :math:`v_i` their variances, :math:`w_i = 1 / v_i` and :math:`\bar y` their mean with
these weights. Then

.. math::
   Q = \sum_i w_i (y_i - \bar y)^2, \qquad
   \tau^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{\sum_i w_i - \sum_i w_i^2 / \sum_i w_i}\Bigr),
   \qquad I^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{Q}\Bigr).

Cochran's Q is about chi squared with k - 1 degrees of freedom if all studies have one truth.
:math:`\tau^2` is DerSimonian and Laird's estimate of the variance of their truths, and
:math:`I^2` the part of Q that errors do not explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg, special

from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference


class Heterogeneity(NamedTuple):
    """Statistics of each coordinate.

    If fewer than two studies know a coordinate, ``tau2`` is 0, and ``p`` and ``i2`` are NaN.
    """

    tau2: FloatArray
    q: FloatArray
    df: FloatArray
    p: FloatArray
    i2: FloatArray

    @classmethod
    def of(cls, estimates: Sequence[Inference]) -> Self:
        """Return the statistics of estimates of the same coordinates."""
        error = np.stack([each.standard_errors() for each in estimates])
        known = np.isfinite(error)
        y = np.where(known, np.stack([each.estimate for each in estimates]), 0.0)
        weight = error**-2.0
        df = known.sum(axis=0) - 1
        several = df > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            total = weight.sum(axis=0)
            mean = (weight * y).sum(axis=0) / total
            q = np.where(several, (weight * (y - mean) ** 2).sum(axis=0), 0.0)
            freedom = total - (weight**2).sum(axis=0) / total
            tau2 = np.where(several, np.maximum(0.0, (q - df) / freedom), 0.0)
            i2 = np.where(q > df, (q - df) / q, 0.0)
        p = special.chdtrc(np.maximum(df, 1), q)
        return cls(tau2, q, df, np.where(several, p, np.nan), np.where(several, i2, np.nan))


def pooled_estimate(estimates: Sequence[Inference], effects: str) -> Inference:
    """Return the pooled estimate with fixed or random effects."""
    if effects == "random":
        tau2 = np.diag(Heterogeneity.of(estimates).tau2)
        estimates = [Inference(e.estimate, e.covariance + tau2, e.known) for e in estimates]
    return weighted_mean(estimates)


def weighted_mean(estimates: Sequence[Inference]) -> Inference:
    """Return the mean of estimates, weighted by their precisions, and its covariance."""
    size = estimates[0].known.size
    total, weighted = np.zeros((size, size)), np.zeros(size)
    for each in estimates:
        own = np.ix_(each.known, each.known)
        precision = np.zeros_like(total)
        precision[own] = _inverse(each.covariance[own])
        total += precision
        weighted += precision @ each.estimate
    known = np.any([each.known for each in estimates], axis=0)
    at = np.ix_(known, known)
    estimate, covariance = np.zeros(size), np.zeros((size, size))
    covariance[at] = _inverse(total[at])
    estimate[known] = covariance[at] @ weighted[known]
    return Inference(estimate, covariance, known)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the exactly symmetric inverse of a positive matrix of any scale."""
    with np.errstate(all="ignore"):
        size = np.sqrt(np.diag(matrix))
        scaled = matrix / np.outer(size, size)
        try:
            factor = linalg.cholesky(scaled, lower=True)
            root = linalg.solve_triangular(factor, np.diag(1.0 / size), lower=True)
        except (linalg.LinAlgError, ValueError):  # not positive; not finite
            root = np.full_like(matrix, np.nan)
        inverse = root.T @ root
    if not np.isfinite(inverse).all():
        raise ValueError("releases must have standard errors whose covariance has an inverse.")
    return np.asarray(0.5 * (inverse + inverse.T))
