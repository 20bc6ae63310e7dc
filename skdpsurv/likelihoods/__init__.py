"""Convex per-record losses with the constants that a privacy proof needs."""

from __future__ import annotations

from skdpsurv.likelihoods.base import Derivatives, Likelihood, PrivacyConstants
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, Logistic, ScalarLoss

__all__ = [
    "Derivatives",
    "DiscreteHazard",
    "Likelihood",
    "LinearBlock",
    "LinearLikelihood",
    "Logistic",
    "PrivacyConstants",
    "ScalarLoss",
]
