"""Choosing hyper-parameters at a privacy cost that is stated in advance."""

from __future__ import annotations

from skdpsurv.model_selection.search import PrivateSearchCV
from skdpsurv.model_selection.strategies import DisjointParts, RepeatedRuns

__all__ = ["DisjointParts", "PrivateSearchCV", "RepeatedRuns"]
