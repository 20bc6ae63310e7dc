"""Differentially private survival analysis and classification, as scikit-learn estimators."""

from __future__ import annotations

from skdpsurv.classification import DPLogisticRegression, PrivateStackingClassifier
from skdpsurv.hybrid import HybridMEstimator, PerturbedHistogramMEstimator
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.preprocessing import PublicBoundsScaler
from skdpsurv.privacy import (
    BudgetExceededError,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
)
from skdpsurv.release import Release
from skdpsurv.survival import DPDiscreteTimeSurvival, DPWeibullFitter

__all__ = [
    "BudgetExceededError",
    "DPDiscreteTimeSurvival",
    "DPLogisticRegression",
    "DPWeibullFitter",
    "HybridMEstimator",
    "PerturbedHistogramMEstimator",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateSearchCV",
    "PrivateStackingClassifier",
    "PublicBoundsScaler",
    "Release",
]

__version__ = "0.1.0"
