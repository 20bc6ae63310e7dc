"""What the tests of the ledger charge."""

from __future__ import annotations

import math

from skdpsurv.dp import PrivacyGuarantee


def cost(epsilon, delta=0.0, **fields):
    if math.isinf(epsilon):
        fields.setdefault("status", "none")
    return PrivacyGuarantee(epsilon, delta, **fields)
