"""A study: one protocol, one charge, one report."""

from __future__ import annotations

from skdpsurv.study.analyses import Analysis
from skdpsurv.study.forecast import Scenario
from skdpsurv.study.plan import StudyPlan
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study import Study

__all__ = ["Analysis", "Protocol", "Scenario", "Study", "StudyPlan"]
