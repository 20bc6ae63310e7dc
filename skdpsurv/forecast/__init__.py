"""What will be lost to privacy: simulated from public numbers, before any budget is spent."""

from __future__ import annotations

from skdpsurv.forecast.forecast import forecast_accuracy
from skdpsurv.forecast.result import AccuracyForecast

__all__ = ["AccuracyForecast", "forecast_accuracy"]
