r"""What measurements of private records cost together.

A price is an epsilon, of a mechanism that is :math:`\epsilon`-differentially private, or that of
Gaussian noise, :math:`\tfrac12\mu^2`-zCDP. Neighbours: replace-one. Theorems: one after another, on
the same records and each in view of what came before, epsilons add up exactly, and so do the
:math:`\tfrac12\mu^2` (Dwork and Roth 2014, theorem 3.16; Bun and Steinke 2016, lemma 2.3); what is
:math:`\epsilon`-private is :math:`\tfrac12\epsilon^2`-zCDP (ibid., proposition 1.4); of sets of
records that share nobody the dearest counts, as a replaced record is in one of them
(docs/proofs/composition).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from skdpsurv.privacy.concentrated import Concentrated, Price, amount, epsilon_at, together

__all__ = ["Cost", "at_once", "in_turn", "price_of"]


@dataclass(frozen=True)
class Cost:
    """What is paid of each of several sets of records that share nobody.

    Parameters
    ----------
    each : tuple of tuple
        Of each set: prices, one after another.
    """

    each: tuple[tuple[Price, ...], ...]

    @property
    def is_pure(self) -> bool:
        """Whether no delta is needed."""
        return not any(isinstance(price, Concentrated) for one in self.each for price in one)

    @property
    def epsilon(self) -> Fraction | float:
        """The exact sum of epsilons, of the dearest set; infinite where some noise is Gaussian."""
        if not self.is_pure or any(math.isinf(amount(p)) for one in self.each for p in one):
            return math.inf
        sums = (sum((Fraction(amount(price)) for price in one), Fraction()) for one in self.each)
        return max(sums, default=Fraction())

    @property
    def rho(self) -> float | None:
        """The price in zCDP, rounded upwards; None unless all sets have Gaussian noise."""
        if not self.each or not all(map(_is_gaussian, self.each)):
            return None
        return max(_mu_of(one).rho for one in self.each)

    def within(self, epsilon: float, delta: float) -> bool:
        """Say whether this is no more than an epsilon at delta, in each set."""
        return all(self._is_within(one, epsilon, delta) for one in self.each)

    def _is_within(self, one: tuple[Price, ...], epsilon: float, delta: float) -> bool:
        if math.isinf(epsilon):
            return True
        if not _is_gaussian(one):
            return Cost((one,)).epsilon <= epsilon
        return delta > 0.0 and epsilon_at(_mu_of(one).rho, delta) <= epsilon


def price_of(price: Price) -> Cost:
    """Return the cost of one measurement."""
    return Cost(((price,),))


def in_turn(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of the same records, one after another."""
    whole: list[tuple[Price, ...]] = [()]
    for cost in costs:
        whole = list(dict.fromkeys(a + b for a, b in product(whole, cost.each)))
    return Cost(tuple(whole))


def at_once(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of records that share nobody."""
    return Cost(tuple(dict.fromkeys(one for cost in costs for one in cost.each)))


def _is_gaussian(prices: tuple[Price, ...]) -> bool:
    return any(isinstance(price, Concentrated) for price in prices)


def _mu_of(prices: tuple[Price, ...]) -> Concentrated:
    return together(*(Concentrated(amount(price)) for price in prices))
