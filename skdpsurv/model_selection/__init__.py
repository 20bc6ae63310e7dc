"""Choosing hyper-parameters at a privacy cost that is stated in advance."""

from __future__ import annotations

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.model_selection.candidates import charges_of
from skdpsurv.model_selection.search import PrivateSearchCV
from skdpsurv.model_selection.strategies import DisjointParts, RepeatedRuns

__all__ = ["DisjointParts", "PrivateSearchCV", "RepeatedRuns"]

# A ledger says beforehand what fits will charge, and lies too low to know them.
PrivacyAccountant._charges_of = staticmethod(charges_of)
