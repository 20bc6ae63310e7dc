r"""Estimates of several parameters from several studies, weighed by their precisions.

Study i knows the coordinates :math:`K_i`, by an estimate :math:`\theta_i` with the covariance
:math:`C_i`, of sampling and of privacy noise. Others are integrated out: what it says is
:math:`P_i = (C_i[K_i, K_i])^{-1}` on its own coordinates and 0 elsewhere. Together

.. math::
   \Sigma = \Bigl(\sum_i P_i\Bigr)^{-1}, \qquad \hat\theta = \Sigma \sum_i P_i \theta_i

on the coordinates that anybody knows: generalised least squares. Coordinates that nobody knows stay
unknown.

**How far studies differ** by more than their errors, one coordinate at a time. Of one
coordinate let :math:`y_i` be the k estimates that know it, :math:`v_i` their variances,
:math:`w_i = 1 / v_i` and :math:`\bar y` their mean with these weights. Then

.. math::
   Q = \sum_i w_i (y_i - \bar y)^2, \qquad
   \tau^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{\sum_i w_i - \sum_i w_i^2 / \sum_i w_i}\Bigr),
   \qquad I^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{Q}\Bigr).

Q is Cochran's: about chi squared with k - 1 degrees of freedom where all studies have one truth.
:math:`\tau^2` is the estimate by DerSimonian and Laird of the variance of their truths, and
:math:`I^2` the part of Q beyond what errors explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg, special

from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference


class Spread(NamedTuple):
    """Of each coordinate; all arrays have the shape (n_params,).

    Parameters
    ----------
    tau2 : ndarray
        Variance between the truths of studies; 0 where fewer than two know the coordinate.
    q : ndarray
        Cochran's statistic.
    df : ndarray of int
        Its degrees of freedom; -1 where no study knows the coordinate.
    p, i2 : ndarray
        Of Q, if all studies had one truth, and the part of Q beyond what errors explain; no number
        where fewer than two know the coordinate.
    """

    tau2: FloatArray
    q: FloatArray
    df: FloatArray
    p: FloatArray
    i2: FloatArray

    @classmethod
    def of(cls, members: Sequence[Inference]) -> Self:
        """Return that of estimates of the same coordinates."""
        error = np.stack([member.standard_errors() for member in members])
        known = np.isfinite(error)
        y = np.where(known, np.stack([member.estimate for member in members]), 0.0)
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
    """Return the mean of one truth, or of truths that scatter around it."""
    if effects == "random":
        tau2 = np.diag(Spread.of(estimates).tau2)
        estimates = [Inference(e.estimate, e.covariance + tau2, e.known) for e in estimates]
    return together(estimates)


def together(members: Sequence[Inference]) -> Inference:
    """Return the mean of estimates, weighed by their precisions, and its covariance."""
    size = members[0].known.size
    total, weighed = np.zeros((size, size)), np.zeros(size)
    for member in members:
        own = np.ix_(member.known, member.known)
        precision = np.zeros_like(total)
        precision[own] = _inverse(member.covariance[own])
        total += precision
        weighed += precision @ member.estimate
    known = np.any([member.known for member in members], axis=0)
    at = np.ix_(known, known)
    estimate, covariance = np.zeros(size), np.zeros((size, size))
    covariance[at] = _inverse(total[at])
    estimate[known] = covariance[at] @ weighed[known]
    return Inference(estimate, covariance, known)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a positive matrix, whatever its scales; symmetric to the last bit."""
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
