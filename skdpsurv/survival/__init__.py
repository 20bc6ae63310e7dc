"""Private survival models."""

from __future__ import annotations

from skdpsurv.survival.aalen_johansen import DPAalenJohansenFitter
from skdpsurv.survival.discrete_time import DPDiscreteTimeSurvival
from skdpsurv.survival.exit_curves import DPKaplanMeierFitter
from skdpsurv.survival.posterior_plan import PosteriorSampling
from skdpsurv.survival.weibull_curve import DPWeibullFitter

__all__ = [
    "DPAalenJohansenFitter",
    "DPDiscreteTimeSurvival",
    "DPKaplanMeierFitter",
    "DPWeibullFitter",
    "PosteriorSampling",
]
