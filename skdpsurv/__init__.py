"""Differentially private survival analysis and classification, as scikit-learn estimators."""

from __future__ import annotations

import skdpsurv.published  # noqa: F401  Their releases can be loaded.
from skdpsurv.classification import (
    DPLogisticRegression,
    FeaturePartition,
    LogisticCombiner,
    PrivateStackingClassifier,
)
from skdpsurv.forecast import forecast_accuracy
from skdpsurv.frame_chunks import FrameChunks
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.model_selection import DisjointParts, PrivateSearchCV, RepeatedRuns
from skdpsurv.pooling import pool_releases
from skdpsurv.preprocessing import PublicBoundsScaler, PublicColumns, PublicInputWarning
from skdpsurv.privacy import (
    BudgetExceededError,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
)
from skdpsurv.publishing import make_release
from skdpsurv.release import Release
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPNelsonAalenFitter,
    DPWeibullFitter,
    PosteriorSampling,
)
from skdpsurv.target import split_target
from skdpsurv.version import __version__

__all__ = [
    "BudgetExceededError",
    "DPAalenJohansenFitter",
    "DPDiscreteTimeSurvival",
    "DPKaplanMeierFitter",
    "DPLogisticRegression",
    "DPNelsonAalenFitter",
    "DPWeibullFitter",
    "DisjointParts",
    "FeaturePartition",
    "FrameChunks",
    "HybridMEstimator",
    "LogisticCombiner",
    "PosteriorSampling",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateSearchCV",
    "PrivateStackingClassifier",
    "PublicBoundsScaler",
    "PublicColumns",
    "PublicInputWarning",
    "Release",
    "RepeatedRuns",
    "__version__",
    "forecast_accuracy",
    "make_release",
    "pool_releases",
    "split_target",
]
