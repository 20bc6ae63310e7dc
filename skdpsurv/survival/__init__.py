"""Private survival models."""

from __future__ import annotations

from skdpsurv.survival.discrete_time import DPDiscreteTimeSurvival
from skdpsurv.survival.weibull_fitter import DPWeibullFitter

__all__ = ["DPDiscreteTimeSurvival", "DPWeibullFitter"]
