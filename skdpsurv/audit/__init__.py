"""Attack what a guarantee claims. Nothing in here is private."""

from __future__ import annotations

from skdpsurv.audit.density_ratio import DensityRatioResult, density_ratio_audit
from skdpsurv.audit.epsilon import AuditResult, audit_epsilon
from skdpsurv.audit.measurements import MeasuredDistance, MeasurementResult, measurement_audit
from skdpsurv.audit.neighbours import NeighbourPair, worst_neighbours
from skdpsurv.audit.privacy_curve import PrivacyCurveResult, privacy_curve_audit
from skdpsurv.audit.replay import ReplayResult, replay_audit

__all__ = [
    "AuditResult",
    "DensityRatioResult",
    "MeasuredDistance",
    "MeasurementResult",
    "NeighbourPair",
    "PrivacyCurveResult",
    "ReplayResult",
    "audit_epsilon",
    "density_ratio_audit",
    "measurement_audit",
    "privacy_curve_audit",
    "replay_audit",
    "worst_neighbours",
]
