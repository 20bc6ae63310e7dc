"""Private evaluation of released models, and forecasts of accuracy.

:func:`private_survival_metrics` is differentially private, and :func:`forecast_accuracy` uses
public numbers only. :func:`concordance_index` is **not** private: its result depends on records.
"""

from __future__ import annotations

from skdpsurv.evaluation.evaluation import private_survival_metrics
from skdpsurv.evaluation.forecast import forecast_accuracy
from skdpsurv.evaluation.forecast_result import AccuracyForecast
from skdpsurv.evaluation.result import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.survival.concordance import concordance_index

__all__ = [
    "AccuracyForecast",
    "Estimate",
    "RiskGroup",
    "SurvivalEvaluation",
    "concordance_index",
    "forecast_accuracy",
    "private_survival_metrics",
]
