"""What makes a result private: randomness, noise, domains, guarantees and the ledger.

Nothing here knows a model; every other part of the package may import from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

#: The module of each name: pandas and scikit-learn are imported with the first of them.
_MODULES = {
    "PrivacyAccountant": "accountant",
    "clip_times": "checks",
    "Receipt": "ledger",
    **dict.fromkeys(("BudgetExceededError", "compose"), "budget"),
    **dict.fromkeys(("PrivacyGuarantee", "PrivacyLeakWarning"), "guarantee"),
    **dict.fromkeys(("RandomSource", "random_source"), "noise"),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
