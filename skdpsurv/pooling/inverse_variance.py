r"""Estimates of several parameters from several studies, weighed by their precisions.

Study i knows the coordinates :math:`K_i`, by an estimate :math:`\theta_i` with the covariance
:math:`C_i`, of sampling and of privacy noise. Others are integrated out: what it says is
:math:`P_i = (C_i[K_i, K_i])^{-1}` on its own coordinates and 0 elsewhere. Together

.. math::
   \Sigma = \Bigl(\sum_i P_i\Bigr)^{-1}, \qquad \hat\theta = \Sigma \sum_i P_i \theta_i

on the coordinates that anybody knows: generalised least squares. Coordinates that nobody knows stay
unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from skdpsurv.inference import Inference
from skdpsurv.types import FloatArray


def together(members: Sequence[Inference]) -> Inference:
    """Return the mean of estimates, weighed by their precisions, and its covariance.

    Parameters
    ----------
    members : sequence of Inference
        At least one; of the same coordinates.

    Returns
    -------
    Inference
        0 where nobody knows a coordinate.

    Raises
    ------
    ValueError
        If a covariance has no inverse.
    """
    size = members[0].known.size
    total, weighed = np.zeros((size, size)), np.zeros(size)
    for member in members:
        precision = _precision(member)
        total += precision
        weighed += precision @ member.estimate
    known = np.any([member.known for member in members], axis=0)
    at = np.ix_(known, known)
    estimate, covariance = np.zeros(size), np.zeros((size, size))
    covariance[at] = _inverse(total[at])
    estimate[known] = covariance[at] @ weighed[known]
    return Inference(estimate, covariance, known)


def with_spread(member: Inference, variance: FloatArray) -> Inference:
    r"""Return the same of the mean of all studies, around which their truths spread.

    Parameters
    ----------
    member : Inference
    variance : ndarray of shape (n_params,)
        :math:`\tau^2` of each coordinate, which is added to the diagonal.
    """
    return Inference(member.estimate, member.covariance + np.diag(variance), member.known)


def _precision(member: Inference) -> FloatArray:
    """Return the inverse covariance of what is known, and 0 elsewhere."""
    at = np.ix_(member.known, member.known)
    precision = np.zeros_like(member.covariance)
    precision[at] = _inverse(member.covariance[at])
    return precision


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
