"""What makes a result private: randomness, noise, domains, guarantees and the ledger.

Nothing here knows a model; every other part of the package may import from here.
"""

from __future__ import annotations

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError, compose
from skdpsurv.dp.checks import clip_times
from skdpsurv.dp.guarantee import PrivacyGuarantee, PrivacyLeakWarning
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.noise import RandomSource, random_source

__all__ = [
    "BudgetExceededError",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "RandomSource",
    "Receipt",
    "clip_times",
    "compose",
    "random_source",
]
