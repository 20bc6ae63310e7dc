r"""Intervals of survival functions, from estimates of a hazard model and their covariance.

The cumulative hazard :math:`\Lambda(t) = \sum_{s \le t} \varphi(\eta_s)` is positive, and its
logarithm is nearer to normal than it is itself: with the error :math:`\sigma` that :math:`\log
\Lambda` has to first order, the ends are :math:`\exp(-\Lambda e^{\pm z\sigma})`, as lifelines and
R's survival have them ("log-log").
"""

from __future__ import annotations

import numpy as np

from skdpsurv.inference import Inference
from skdpsurv.inference.inference import half_width
from skdpsurv.likelihoods.links import Link
from skdpsurv.types import FloatArray

__all__ = ["survival_band"]


def survival_band(
    found: Inference, basis: FloatArray, link: Link, rows: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of pointwise intervals, of shape (n, n_intervals) each.

    Parameters
    ----------
    found : Inference
        Of baseline coefficients and those of the columns.
    basis : ndarray of shape (n_intervals, n_knots)
        What the former belong to.
    link : Link
    rows : ndarray of shape (n, n_features)
    level : float
    """
    q = len(basis)
    lower, upper = np.zeros((len(rows), q)), np.ones((len(rows), q))
    for i, row in enumerate(rows):
        combination = np.column_stack([basis, np.broadcast_to(row, (q, row.size))])
        if (combination[:, ~found.known] != 0.0).any():
            continue
        with np.errstate(all="ignore"):
            curve = link.survival(combination @ found.estimate)
            hazard = np.cumsum(curve.value)
            slopes = np.cumsum(curve.slope[:, None] * combination, axis=0) / hazard[:, None]
            variance = np.einsum("ij,jk,ik->i", slopes, found.covariance, slopes)
            factor = np.exp(half_width(level) * np.sqrt(np.maximum(variance, 0.0)))
            ends = np.exp(-hazard * factor), np.exp(-hazard / factor)
        lower[i], upper[i] = (
            np.where(np.isfinite(end), end, extreme)
            for end, extreme in zip(ends, (0.0, 1.0), strict=True)
        )
    return lower, upper
