r"""Standardised differences between two groups, with intervals that know the noise.

Numbers: :math:`d = (\mu_1 - \mu_0) / s` with :math:`s^2 = (\sigma_0^2 + \sigma_1^2) / 2`. Two
labels: the same with shares, :math:`\sigma^2 = p (1 - p)`. More labels (Yang and Dalton 2012):
:math:`d = \sqrt{T^\top \Sigma^{-1} T}`, T the differences of all shares but the first and
:math:`\Sigma` the mean of the two covariances of indicators.

Noise makes :math:`\hat T` longer than T, so that only an interval says something. By the triangle
inequality :math:`|d - \hat d|` is at most the length of :math:`\hat T - T` in the norm of
:math:`\Sigma^{-1}`, which is at most :math:`\sqrt{\lambda\,\chi^2}` with the level of the interval,
where :math:`\lambda` is the largest eigenvalue of :math:`\Sigma^{-1/2} \mathrm{Cov}(\hat T)
\Sigma^{-1/2}`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg, special

from skdpsurv.descriptive.intervals import UNKNOWN, Ends, Estimated, Moments
from skdpsurv.descriptive.solution import Solved
from skdpsurv.dp.types import FloatArray

UNSAID = Estimated(math.nan, UNKNOWN, UNKNOWN)


def of_numbers(solved: Solved, points: FloatArray, pair: FloatArray, z: float) -> Estimated:
    """Return the standardised difference of means; ``pair`` chooses the two groups."""
    both = [Moments(solved, points, chosen, z) for chosen in pair]
    scale = math.sqrt(0.5 * sum(one.deviation_value**2 for one in both))
    if not (scale > 0.0 and all(one.present > 0.0 for one in both)):
        return UNSAID
    d = (both[1].mean_value - both[0].mean_value) / scale
    centred = np.array([one.centred() / (one.present * scale) for one in both])
    _, noise = solved.sums(centred)
    own = float(noise[0, 0] + noise[1, 1] - 2.0 * noise[0, 1])
    # The squares of both deviations have noise of their own.
    squares = sum(float(one.variance_of_square()) for one in both) / (16.0 * scale**4)
    own += d * d * squares
    n0, n1 = (one.present for one in both)
    sampling = sum(one.deviation_value**2 / (one.present * scale**2) for one in both)
    sampling += d * d / (2.0 * (n0 + n1))
    return Estimated(d, _around(d, z * math.sqrt(own)), _around(d, z * math.sqrt(own + sampling)))


def of_labels(solved: Solved, n_labels: int, pair: FloatArray, level: float) -> Estimated:
    """Return the standardised difference of the shares of labels."""
    counts = pair @ solved.cells[:, :n_labels]
    present = counts.sum(axis=1)
    if n_labels < 2 or present.min() <= 0.0:
        return UNSAID
    least = 0.5 / np.maximum(present, 1.0)[:, None]
    share = np.clip(counts / present[:, None], least, 1.0)
    share /= share.sum(axis=1, keepdims=True)
    difference = (counts[1] / present[1] - counts[0] / present[0])[1:]
    spread = [np.diag(p[1:]) - np.outer(p[1:], p[1:]) for p in share]
    factor = linalg.cholesky(0.5 * (spread[0] + spread[1]), lower=True)
    forms = np.zeros((2, n_labels - 1, len(solved.cells), solved.cells.shape[1]))
    for forms_of_one, chosen, p, n in zip(forms, pair, share, present, strict=True):
        residual = np.eye(n_labels)[1:] - p[1:, None]
        forms_of_one[:, :, :n_labels] = chosen[:, None] * residual[:, None, :] / n
    _, noise = solved.sums(forms[1] - forms[0])
    sampling = spread[0] / present[0] + spread[1] / present[1]
    d = float(np.linalg.norm(linalg.solve_triangular(factor, difference, lower=True)))
    radius = math.sqrt(special.chdtri(n_labels - 1, 1.0 - level))
    found = []
    for covariance in (noise, noise + sampling):
        half = linalg.solve_triangular(factor, covariance, lower=True)
        white = linalg.solve_triangular(factor, half.T, lower=True)
        reach = radius * math.sqrt(max(float(linalg.eigvalsh(0.5 * (white + white.T))[-1]), 0.0))
        found.append(Ends(max(d - reach, 0.0), d + reach))
    if n_labels > 2:
        return Estimated(d, *found)
    d = math.copysign(d, difference[0])
    reaches = (one.high - abs(d) for one in found)
    return Estimated(d, *(_around(d, reach) for reach in reaches))


def _around(d: float, reach: float) -> Ends:
    return Ends(d - reach, d + reach)
