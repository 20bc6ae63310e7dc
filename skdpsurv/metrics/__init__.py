"""How good a model is: on records that must not leak, or on those that may be disclosed.

:func:`private_survival_metrics` is differentially private. **Nothing else here is**: the other
functions compare a release with private data, or with a fit to private data. Use them for research
on data that may be disclosed.
"""

from __future__ import annotations

from skdpsurv.concordance import concordance_index
from skdpsurv.metrics.evaluation import private_survival_metrics
from skdpsurv.metrics.evaluation_result import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.metrics.parameters import (
    mean_relative_error,
    median_absolute_error,
    relative_error,
)

__all__ = [
    "Estimate",
    "RiskGroup",
    "SurvivalEvaluation",
    "concordance_index",
    "mean_relative_error",
    "median_absolute_error",
    "private_survival_metrics",
    "relative_error",
]
