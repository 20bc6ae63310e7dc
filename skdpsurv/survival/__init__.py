"""Private survival models."""

from __future__ import annotations

from skdpsurv.survival.aalen_johansen import DPAalenJohansenFitter
from skdpsurv.survival.discrete_time import DPDiscreteTimeSurvival
from skdpsurv.survival.kaplan_meier import DPKaplanMeierFitter, DPNelsonAalenFitter
from skdpsurv.survival.sampling_method import PosteriorSampling
from skdpsurv.survival.weibull_fitter import DPWeibullFitter

__all__ = [
    "DPAalenJohansenFitter",
    "DPDiscreteTimeSurvival",
    "DPKaplanMeierFitter",
    "DPNelsonAalenFitter",
    "DPWeibullFitter",
    "PosteriorSampling",
]
