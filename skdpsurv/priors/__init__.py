"""Priors: a fit starts from what another model has released, as far as its own records agree."""

from __future__ import annotations

from skdpsurv.priors.evidence import Evidence
from skdpsurv.priors.prior import (
    PlannedScales,
    Prior,
    Promises,
    check_same_features,
    is_prior,
    is_scales,
    of_the_same_ledger,
)
from skdpsurv.priors.terms import Terms

__all__ = [
    "Evidence",
    "PlannedScales",
    "Prior",
    "Promises",
    "Terms",
    "check_same_features",
    "is_prior",
    "is_scales",
    "of_the_same_ledger",
]
