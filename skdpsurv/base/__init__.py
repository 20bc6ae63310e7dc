"""Bases of private estimators: of all, of those on rows of a table, and of linear models."""

from __future__ import annotations

from skdpsurv.base.prepared import PreparedFit
from skdpsurv.base.private_estimator import PrivateEstimator

__all__ = ["PreparedFit", "PrivateEstimator"]
