"""Private survival models."""

from __future__ import annotations

from skdpsurv.survival.discrete_time import DPDiscreteTimeSurvival

__all__ = ["DPDiscreteTimeSurvival"]
