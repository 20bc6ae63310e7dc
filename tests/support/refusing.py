"""Fits that are refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from skdpsurv import PrivacyAccountant


def refused(estimator: Any, match: str, *args: Any, **options: Any) -> str:
    """See a fit refused, charging and leaving nothing, and return the words of the refusal."""
    ledger = PrivacyAccountant(rehearsal=True)
    estimator.set_params(accountant=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError), match=match) as refusal:
            estimator.fit(*args, **options)
    assert len(ledger.entries()) == 0
    assert "release_" not in vars(estimator)
    return str(refusal.value)
