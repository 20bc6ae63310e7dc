r"""Guarantees of rivals in the sense of this package: neighbours differ by replacing a record.

Let a mechanism be (epsilon, delta)-private if neighbours differ by one record that is added or
removed. To replace a record is to remove it and to add another. With D' between D and D'',

.. math:: P_D(E) \le e^\epsilon P_{D'}(E) + \delta
    \le e^{2\epsilon} P_{D''}(E) + (1 + e^\epsilon)\,\delta

(group privacy for two), so that it is :math:`(2\epsilon, (1 + e^\epsilon)\delta)`-private if a
record is replaced. D' has one record less, which a mechanism must allow.
"""

from __future__ import annotations

import math

REPLACE, ADD_OR_REMOVE = "replace one", "add or remove one"


def replace_one(epsilon: float, delta: float, neighbours: str) -> tuple[float, float]:
    """Return what a guarantee is if a record is replaced."""
    if neighbours == REPLACE:
        return epsilon, delta
    return 2.0 * epsilon, (1.0 + math.exp(epsilon)) * delta


def native(epsilon: float, delta: float, neighbours: str) -> tuple[float, float]:
    """Return the guarantee to ask of a rival for this one if a record is replaced."""
    if neighbours == REPLACE:
        return epsilon, delta
    return epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))
