"""What every private estimator has, and what all on rows of a table and on linear predictors do."""

from __future__ import annotations

from skdpsurv.base.prepared import PreparedFit
from skdpsurv.base.private_estimator import PrivateEstimator

__all__ = ["PreparedFit", "PrivateEstimator"]
