"""Private classifiers."""

from __future__ import annotations

from skdpsurv.classification.logistic_regression import DPLogisticRegression, Perturbation
from skdpsurv.classification.stack_plan import FeaturePartition, LogisticCombiner
from skdpsurv.classification.stacking import PrivateStackingClassifier

__all__ = [
    "DPLogisticRegression",
    "FeaturePartition",
    "LogisticCombiner",
    "Perturbation",
    "PrivateStackingClassifier",
]
