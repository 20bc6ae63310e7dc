"""Look behind a guarantee: attack it, or watch a sampler. Nothing in here is private."""

from __future__ import annotations

from skdpsurv.audit.density_ratio import DensityRatioResult, density_ratio_audit
from skdpsurv.audit.epsilon import audit_epsilon
from skdpsurv.audit.neighbour_pair import NeighbourPair
from skdpsurv.audit.neighbours import worst_neighbours
from skdpsurv.audit.part_ratio import AuditedPart
from skdpsurv.audit.posterior_chains import PosteriorChains, nonprivate_posterior_chains
from skdpsurv.audit.privacy_curve import PrivacyCurveResult, privacy_curve_audit
from skdpsurv.audit.result import AuditResult
from skdpsurv.audit.transcript import TranscriptResult, transcript_audit

__all__ = [
    "AuditResult",
    "AuditedPart",
    "DensityRatioResult",
    "NeighbourPair",
    "PosteriorChains",
    "PrivacyCurveResult",
    "TranscriptResult",
    "audit_epsilon",
    "density_ratio_audit",
    "nonprivate_posterior_chains",
    "privacy_curve_audit",
    "transcript_audit",
    "worst_neighbours",
]
