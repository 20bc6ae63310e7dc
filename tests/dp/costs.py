"""What the tests of the ledger charge, and that it is refused."""

import math

import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyGuarantee


def cost(epsilon, delta=0.0, **fields):
    if math.isinf(epsilon):
        fields.setdefault("status", "none")
    return PrivacyGuarantee(epsilon, delta, **fields)


def refused(match, *calls, error=ValueError):
    """Check that each call raises this error."""
    for call in calls:
        with pytest.raises(error, match=match):
            call()


def exceeds(accountant, *guarantees, match=None):
    """Check that a budget has no room for any of these."""
    for guarantee in guarantees:
        with pytest.raises(BudgetExceededError, match=match):
            accountant.charge(guarantee)
