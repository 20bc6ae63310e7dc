"""Private classifiers."""

from __future__ import annotations

from skdpsurv.classification.combiners import LogisticCombiner
from skdpsurv.classification.feature_partition import FeaturePartition
from skdpsurv.classification.logistic_regression import DPLogisticRegression, Perturbation
from skdpsurv.classification.stacking import PrivateStackingClassifier

__all__ = [
    "DPLogisticRegression",
    "FeaturePartition",
    "LogisticCombiner",
    "Perturbation",
    "PrivateStackingClassifier",
]
