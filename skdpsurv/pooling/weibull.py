r"""Weibull distributions: log scale and log shape are pooled, by the errors of each release.

A release holds no errors: its intervals are made of draws of parameters that could have led to it.
The width of the central 95 % of them is that of a normal law of the standard error that is used
here, and their rank correlation :math:`r` gives its correlation, :math:`2 \sin(\pi r / 6)`. A
pooled release holds its errors, and its own intervals are made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from skdpsurv.inference import Inference
from skdpsurv.pooling.members import require_same
from skdpsurv.release import Release, released_array
from skdpsurv.survival.weibull.fitter import LOG_COVARIANCE
from skdpsurv.types import FloatArray

#: Parameters as they are pooled.
LOGS = ("log lambda_", "log rho_")
#: Draws that the errors of a release are read from: those of its intervals.
N_DRAWS = 500
#: Part of the draws between the ends of an interval, and of rank correlations that are believed.
LEVEL, LARGEST_CORRELATION = 0.95, 0.99


class Distributions:
    """Of DPWeibullFitter: its parameters are log scale and log shape."""

    same = ("max_time", "omega")

    def check(self, members: Sequence[Release]) -> None:
        """Refuse releases on different scales of time.

        Raises
        ------
        ValueError
            Naming what differs.
        """
        require_same(members, self.same)

    def estimates(self, members: Sequence[Release]) -> list[Inference]:
        """Return log scales and log shapes with their errors."""
        return [_estimate(member) for member in members]

    def names(self, release: Release) -> list[str]:
        """Return what the parameters are called in messages."""
        return list(LOGS)

    def values(
        self, members: Sequence[Release], estimates: Sequence[Inference], mean: Inference
    ) -> dict[str, Any]:
        """Return scale and shape, and the covariance of their logs.

        Raises
        ------
        ValueError
            If no release knows one of them.
        """
        if not mean.known.all():
            raise ValueError("releases must have standard errors: noise hides those of all.")
        scale, shape = np.exp(mean.estimate)
        return {"lambda": scale, "rho": shape, LOG_COVARIANCE: mean.covariance}


def _estimate(release: Release) -> Inference:
    fitter = release.to_estimator()
    estimate = np.log([fitter.lambda_, fitter.rho_])
    if LOG_COVARIANCE in release.values:
        covariance = released_array(release, LOG_COVARIANCE, (2, 2))
    else:
        covariance = _covariance(np.log(fitter._draws(N_DRAWS)))
    known = np.isfinite(estimate) & np.isfinite(np.diag(covariance))  # else noise hides it
    at = np.outer(known, known)
    return Inference(np.where(known, estimate, 0.0), np.where(at, covariance, 0.0), known)


def _covariance(draws: FloatArray) -> FloatArray:
    """Return the covariance of a normal law with the central part of the draws."""
    if not np.isfinite(draws).all():
        return np.full((2, 2), np.inf)
    low, high = np.quantile(draws, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], axis=0)
    error = (high - low) / (2.0 * special.ndtri(0.5 + 0.5 * LEVEL))
    ranks = stats.rankdata(draws, axis=0)
    with np.errstate(invalid="ignore"):
        by_rank = float(np.nan_to_num(np.asarray(np.corrcoef(ranks.T))[0, 1]))
    correlation = 2.0 * np.sin(np.pi * by_rank / 6.0)
    correlation = float(np.clip(correlation, -LARGEST_CORRELATION, LARGEST_CORRELATION))
    return np.asarray(np.outer(error, error) * [[1.0, correlation], [correlation, 1.0]])
