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
from skdpsurv.privacy.run_count import RunCount
from skdpsurv.privacy.run_price import curve, worth


@dataclass(frozen=True)
class BestOfRuns:
    """The price of the best of a random number of runs, where noise is Gaussian.

    Parameters
    ----------
    rho : float
        Of each run, in zCDP.
    count : RunCount
        The law of their number.
    """

    rho: float
    count: RunCount


#: An exact price, too: of runs without a delta.
AnyPrice = Price | Fraction | BestOfRuns
Prices = tuple[AnyPrice, ...]


@dataclass(frozen=True)
class Cost:
    """What is paid of each of several sets of records that share nobody.

    Parameters
    ----------
    each : tuple of tuple
        Of each set: prices, one after another.
    """

    each: tuple[Prices, ...]

    @property
    def is_pure(self) -> bool:
        """Whether no delta is needed."""
        return not any(map(_needs_delta, self.each))

    @property
    def epsilon(self) -> Fraction | float:
        """The exact sum of epsilons, of the dearest set; infinite where some noise is Gaussian."""
        if not self.is_pure or any(math.isinf(_number(p)) for one in self.each for p in one):
            return math.inf
        sums = (sum((Fraction(_number(price)) for price in one), Fraction()) for one in self.each)
        return max(sums, default=Fraction())

    @property
    def rho(self) -> float | None:
        """The price in zCDP, rounded upwards; None unless all sets have Gaussian noise."""
        if not self.each or not all(map(_needs_delta, self.each)) or any(map(_runs, self.each)):
            return None
        return max(_mu_of(one).rho for one in self.each)

    @property
    def renyi(self) -> tuple[tuple[float, float], ...]:
        """Orders, and what the divergence of each is at most; nothing for what has no such curve.

        What has one is asked of one set of records.
        """
        if len(self.each) != 1 or (best := _runs(self.each[0])) is None:
            return ()
        return curve(best.rho, best.count, _beside(best, self.each[0]))

    def within(self, epsilon: float, delta: float) -> bool:
        """Say whether this is no more than an epsilon at delta, in each set."""
        return all(self._is_within(one, epsilon, delta) for one in self.each)

    def _is_within(self, one: Prices, epsilon: float, delta: float) -> bool:
        if math.isinf(epsilon):
            return True
        if not _needs_delta(one):
            return Cost((one,)).epsilon <= epsilon
        if delta <= 0.0:
            return False
        if (best := _runs(one)) is not None:
            return worth(best.rho, delta, best.count, _beside(best, one)) <= epsilon
        return epsilon_at(_mu_of(one).rho, delta) <= epsilon


def price_of(price: Price) -> Cost:
    """Return the cost of one measurement.

    Raises
    ------
    ValueError
        If the price is negative: it would pay for others.
    """
    if not amount(price) >= 0.0:
        raise ValueError(f"a price must not be negative, got {price}.")
    return Cost(((price,),))


def in_turn(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of the same records, one after another."""
    whole: list[Prices] = [()]
    for cost in costs:
        whole = list(dict.fromkeys(a + b for a, b in product(whole, cost.each)))
    return Cost(tuple(whole))


def at_once(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of records that share nobody."""
    return Cost(tuple(dict.fromkeys(one for cost in costs for one in cost.each)))


def at_random(runs: Iterable[Cost], count: RunCount) -> Cost:
    """Return the cost of the best of a random number of runs, each of a kind drawn at random."""
    one = at_once(runs)
    if one.is_pure:
        epsilon = one.epsilon
        infinite = math.isinf(epsilon)
        return Cost(((math.inf if infinite else (2 + Fraction(count.eta)) * Fraction(epsilon),),))
    return Cost(((BestOfRuns(max(map(_rho_of, one.each)), count),),))


def _number(price: AnyPrice) -> float | Fraction:
    """Return an epsilon, or mu."""
    assert not isinstance(price, BestOfRuns)
    return price if isinstance(price, Fraction) else amount(price)


def _needs_delta(prices: Prices) -> bool:
    return any(isinstance(price, Concentrated | BestOfRuns) for price in prices)


def _runs(prices: Prices) -> BestOfRuns | None:
    """Return the price of runs, if one of these is such a price; no two are."""
    found = [price for price in prices if isinstance(price, BestOfRuns)]
    if len(found) > 1:
        raise ValueError("of one set of records there may be one random number of runs.")
    return found[0] if found else None


def _beside(best: BestOfRuns, prices: Prices) -> float:
    """Return what else there is, in zCDP."""
    others = tuple(price for price in prices if price is not best)
    return _rho_of(others) if others else 0.0


def _rho_of(prices: Prices) -> float:
    """Return what all cost in zCDP; one price costs no more than itself."""
    first = prices[0]
    if len(prices) == 1 and isinstance(first, Concentrated):
        return first.rho
    return _mu_of(prices).rho


def _mu_of(prices: Prices) -> Concentrated:
    """Return the price of all in zCDP, as mu: an epsilon counts for that much."""
    return together(*(Concentrated(float(_number(price))) for price in prices))
