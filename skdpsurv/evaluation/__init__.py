"""How good a model is: on records that must not leak, on others, or before there are any.

:func:`private_survival_metrics` is differentially private. **Nothing else here is**: the other
functions compare a release with private data, or with a fit to private data. Use them for research
on data that may be disclosed.

:func:`forecast_accuracy` simulates from public numbers what a study will get at each epsilon.
"""

from __future__ import annotations

from skdpsurv.evaluation.evaluation import private_survival_metrics
from skdpsurv.evaluation.forecast import forecast_accuracy
from skdpsurv.evaluation.forecast_result import AccuracyForecast
from skdpsurv.evaluation.parameters import (
    mean_relative_error,
    median_absolute_error,
    relative_error,
)
from skdpsurv.evaluation.result import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.survival.concordance import concordance_index

__all__ = [
    "AccuracyForecast",
    "Estimate",
    "RiskGroup",
    "SurvivalEvaluation",
    "concordance_index",
    "forecast_accuracy",
    "mean_relative_error",
    "median_absolute_error",
    "private_survival_metrics",
    "relative_error",
]
