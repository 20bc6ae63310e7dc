"""Private records helped by records whose owners consented to publication."""

from __future__ import annotations

from skdpsurv.hybrid.estimator import HybridMEstimator
from skdpsurv.hybrid.subset import SubsetSelection

__all__ = ["HybridMEstimator", "SubsetSelection"]
