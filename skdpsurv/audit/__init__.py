"""Look behind a guarantee: attack it, or watch a sampler. Nothing in here is private."""

from __future__ import annotations

from skdpsurv.audit.density_ratio import DensityRatioResult, density_ratio_audit
from skdpsurv.audit.epsilon import AuditResult, audit_epsilon
from skdpsurv.audit.measurements import MeasuredDistance, MeasurementResult, measurement_audit
from skdpsurv.audit.neighbours import NeighbourPair, worst_neighbours
from skdpsurv.audit.posterior_chains import PosteriorChains, nonprivate_posterior_chains
from skdpsurv.audit.privacy_curve import PrivacyCurveResult, privacy_curve_audit

__all__ = [
    "AuditResult",
    "DensityRatioResult",
    "MeasuredDistance",
    "MeasurementResult",
    "NeighbourPair",
    "PosteriorChains",
    "PrivacyCurveResult",
    "audit_epsilon",
    "density_ratio_audit",
    "measurement_audit",
    "nonprivate_posterior_chains",
    "privacy_curve_audit",
    "worst_neighbours",
]
