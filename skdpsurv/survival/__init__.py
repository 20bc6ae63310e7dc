"""Private survival models."""

from __future__ import annotations

from skdpsurv.survival.curves.aalen_johansen import DPAalenJohansenFitter
from skdpsurv.survival.curves.kaplan_meier import DPKaplanMeierFitter
from skdpsurv.survival.hazards.competing_risks import DPCompetingRisks
from skdpsurv.survival.hazards.discrete_time import DPDiscreteTimeSurvival
from skdpsurv.survival.hazards.posterior import PosteriorSampling
from skdpsurv.survival.weibull.fitter import DPWeibullFitter

__all__ = [
    "DPAalenJohansenFitter",
    "DPCompetingRisks",
    "DPDiscreteTimeSurvival",
    "DPKaplanMeierFitter",
    "DPWeibullFitter",
    "PosteriorSampling",
]
