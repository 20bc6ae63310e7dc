"""Private classifiers."""

from __future__ import annotations

from skdpsurv.classification.logistic_regression import DPLogisticRegression
from skdpsurv.classification.stacking import PrivateStackingClassifier

__all__ = ["DPLogisticRegression", "PrivateStackingClassifier"]
