"""Foundations of privacy: randomness, noise, clipping, guarantees and the ledger.

Nothing here knows a model; every other part of the package may import from here.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdpsurv.dp.accountant import PrivacyAccountant
    from skdpsurv.dp.appetite import AppetiteError, RiskAppetite
    from skdpsurv.dp.budget import BudgetExceededError
    from skdpsurv.dp.clipping import clip_times
    from skdpsurv.dp.composition import compose
    from skdpsurv.dp.guarantee import PrivacyGuarantee, PrivacyLeakWarning
    from skdpsurv.dp.ledger import Receipt
    from skdpsurv.dp.noise import RandomSource, random_source

__all__ = [
    "AppetiteError",
    "BudgetExceededError",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "RandomSource",
    "Receipt",
    "RiskAppetite",
    "clip_times",
    "compose",
    "random_source",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for (PEP 562): pandas and scikit-learn come with it."""
    if name in __all__:
        modules = (
            "accountant",
            "appetite",
            "budget",
            "clipping",
            "composition",
            "guarantee",
            "noise",
        )
        for module in modules:
            if name in (names := vars(resolve_name(f"{__name__}.{module}:"))):
                return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
