"""A study: one protocol, one charge, one report."""

from __future__ import annotations

from skdpsurv.study.analyses import Analysis
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study import Study
from skdpsurv.study.study_forecast import Scenario
from skdpsurv.study.study_plan import StudyPlan

__all__ = ["Analysis", "Protocol", "Scenario", "Study", "StudyPlan"]
