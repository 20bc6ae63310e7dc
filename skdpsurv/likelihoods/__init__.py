"""Convex per-record losses with the constants that a privacy proof needs."""

from __future__ import annotations

from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, Logistic, ScalarLoss
from skdpsurv.likelihoods.loss import Derivatives, Likelihood, PrivacyConstants

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
