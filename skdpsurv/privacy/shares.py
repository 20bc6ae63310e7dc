"""Parts of an epsilon, as floats whose exact sum is never more than it."""

from __future__ import annotations

import math
from fractions import Fraction


def at_most(budget: float, parts: Fraction) -> float:
    """Return the largest float of which ``parts`` do not exceed the budget, exactly."""
    if math.isinf(budget):
        return budget
    part = float(Fraction(budget) / parts)
    while Fraction(part) * parts > Fraction(budget):
        part = math.nextafter(part, 0.0)
    return part


def what_is_left(budget: float, *spent: float) -> float:
    """Return the largest float that with what was spent does not exceed the budget, exactly."""
    rest = Fraction(budget) - sum(map(Fraction, spent))
    nearest = float(rest)
    return nearest if Fraction(nearest) <= rest else math.nextafter(nearest, 0.0)
