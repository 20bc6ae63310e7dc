r"""Prices of measurements, what they are worth, and how they compose. Neighbours: replace-one.

A price is an epsilon, or that of Gaussian noise. Noise :math:`N(0, \sigma^2 I)` on a vector that
one record moves by at most S is :math:`\rho`-zCDP, as on integers, with :math:`\rho = \mu^2/2` and
:math:`\mu = S/\sigma`: :math:`D_\alpha(M(D) \,\|\, M(D')) \le \rho\,\alpha` for :math:`\alpha > 1`.

Sequence: epsilons add up exactly, and so do rhos, also where a mechanism is chosen in view of
earlier results (Dwork and Roth 2014, theorem 3.16; Bun and Steinke 2016, lemma 2.3). An
:math:`\epsilon`-private mechanism is :math:`\tfrac12\epsilon^2`-zCDP (ibid., proposition 1.4), or
its epsilon is added to what the others are worth, whichever is less (docs/proofs/composition).
Disjoint people: the largest counts (ibid.).

zCDP to epsilon at delta, for any order (Canonne, Kamath and Steinke 2020, proposition 12;
docs/proofs/gaussian):

.. math:: \epsilon = \rho\alpha + \log(1 - 1/\alpha) - (\log\delta + \log\alpha)/(\alpha - 1) .

Renyi divergences of one order add up within a bound that was fixed before, whoever chooses them
(Feldman and Zrnic 2021, theorem 3.1); the same proposition with r for :math:`\rho\alpha` converts
them. Pure mechanisms have at most the divergence of randomised response (Kairouz, Oh and Viswanath
2015),

.. math:: r = \frac{1}{\alpha - 1}
    \log\frac{e^{\alpha\epsilon} + e^{(1 - \alpha)\epsilon}}{1 + e^\epsilon}
    \le \min(\epsilon, \tfrac12\alpha\epsilon^2) .

The best of K runs, each :math:`\rho`-zCDP, K truncated negative binomial
(:class:`~skdpsurv.dp.selection.RunCount`), has for all :math:`\beta \ge 1` a divergence of at most

.. math::
    \alpha\rho + (1 + \eta)\Big[(\beta - 1)\rho + \frac{\log(1/\gamma)}{\beta}\Big]
    + \frac{\log E[K]}{\alpha - 1}

(Papernot and Steinke 2022, theorem 2; docs/proofs/private_search). The bracket is least at
:math:`\beta = \sqrt{\log(1/\gamma)/\rho}`. A last fit to all records adds :math:`\alpha\rho'`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, product
from typing import Any, NamedTuple

from scipy import optimize

from skdpsurv.dp.selection import RunCount


def divide_budget(budget: float, parts: Fraction) -> float:
    """Return the largest float that, times ``parts``, does not exceed the budget, exactly."""
    if math.isinf(budget):
        return budget
    part = float(Fraction(budget) / parts)
    while Fraction(part) * parts > Fraction(budget):
        part = math.nextafter(part, 0.0)
    return part


def remaining_budget(budget: float, *spent: float) -> float:
    """Return the budget less what was spent, rounded downwards, exactly."""
    rest = Fraction(budget) - sum(map(Fraction, spent))
    nearest = float(rest)
    return nearest if Fraction(nearest) <= rest else math.nextafter(nearest, 0.0)


#: Relative allowance, ample, for the rounding of a few public numbers.
MARGIN = 1.0 + 2.0**-40
#: Absolute allowance for the terms of an epsilon, which may be far larger than their sum.
SLACK = 1e-12
#: Largest rho that searches for one return; it is worth a finite epsilon.
LARGEST_RHO = 1e12


@dataclass(frozen=True)
class Concentrated:
    """The price of Gaussian noise: ``mu`` is sensitivity over standard deviation."""

    mu: float

    @property
    def rho(self) -> float:
        """The price in zCDP, rounded upwards."""
        return math.nextafter(0.5 * self.mu * self.mu, math.inf)


#: Price of one measurement: an epsilon, or the mu of Gaussian noise.
Price = float | Concentrated


def epsilon_or_mu(price: Price) -> float:
    """Return epsilon or mu, to which noise is in inverse proportion."""
    return price.mu if isinstance(price, Concentrated) else price


def stated_price(name: str, price: Price) -> dict[str, float]:
    """Return a price as guarantees state it: ``epsilon_name``, or ``mu_name``."""
    unit = "mu" if isinstance(price, Concentrated) else "epsilon"
    return {f"{unit}_{name}": epsilon_or_mu(price)}


def share_of(price: Price, share: float) -> Price:
    """Return a share of the epsilon or the mu of a price; shares that add up to 1 cost no more."""
    return Concentrated(share * price.mu) if isinstance(price, Concentrated) else share * price


def subtract(price: Price, *spent: Price) -> Price:
    """Return the price less the prices spent, rounded downwards."""
    if not isinstance(price, Concentrated):
        return remaining_budget(price, *map(epsilon_or_mu, spent))
    square = remaining_budget(*(epsilon_or_mu(one) ** 2 for one in (price, *spent)))
    return Concentrated(math.sqrt(square) / MARGIN)


def as_laplace(price: Price, dimension: int) -> float:
    """Return the epsilon at which L2-Laplace noise on a vector has the same deviation."""
    return price.mu * math.sqrt(dimension + 1.0) if isinstance(price, Concentrated) else price


def compose_gaussian(*prices: Concentrated) -> Concentrated:
    """Return the price of several mechanisms together, rounded upwards."""
    return Concentrated(math.hypot(*(price.mu for price in prices)) * MARGIN)


def split_gaussian(epsilon: float, delta: float, shares: Sequence[float]) -> list[Concentrated]:
    """Return prices in proportion to shares, together worth at most epsilon at delta."""
    whole = math.sqrt(2.0 * rho_for(epsilon, delta))
    unit = whole / (math.hypot(*shares) * MARGIN**2)
    return [Concentrated(share * unit) for share in shares]


def epsilon_at(rho: float, delta: float) -> float:
    """Return an epsilon that a zCDP mechanism has at delta, rounded upwards.

    Examples
    --------
    >>> from skdpsurv.dp.privacy_cost import epsilon_at
    >>> round(epsilon_at(0.02, 1e-6), 2)
    0.9
    """
    if rho == 0.0:
        return 0.0
    if rho > LARGEST_RHO:  # beyond any use: the best order would round to 1
        return math.inf

    def at(log_excess: float) -> float:
        order = 1.0 + math.exp(log_excess)
        excess = (math.log(delta) + math.log(order)) / (order - 1.0)
        return rho * order + math.log1p(-1.0 / order) - excess

    # The best order is near 1 + sqrt(log(1/delta) / rho); any order's epsilon holds.
    guess = 0.5 * math.log(-math.log(delta) / rho)
    return max(0.0, float(_minimum(at, guess, 4.0).fun) * MARGIN + SLACK)


def _minimum(function: Callable[[float], float], guess: float, width: float) -> Any:
    settings: Any = {"bounds": (min(guess - width, -4.0), guess + width), "method": "bounded"}
    return optimize.minimize_scalar(function, **settings, options={"xatol": 1e-10})


@lru_cache
def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho with :func:`epsilon_at` at most epsilon.

    Examples
    --------
    >>> from skdpsurv.dp.privacy_cost import epsilon_at, rho_for
    >>> epsilon_at(rho_for(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    low, high = 0.0, 0.5
    while epsilon_at(high, delta) <= epsilon:
        low, high = high, 2.0 * high
        if low > LARGEST_RHO:
            return low
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_at(middle, delta) <= epsilon else (low, middle)
    return low


#: Allowance for the rounding of a sum of a few public numbers, relative to the largest.
ROUNDING = 1e-13
#: Below this epsilon hyperbolic functions would underflow, and equal the parabola.
TINY = 1e-140


def pure_to_rdp(epsilon: float, order: float) -> float:
    """Return the largest Renyi divergence of an order under pure differential privacy.

    It is rounded upwards, and at most epsilon.

    Examples
    --------
    >>> from skdpsurv.dp.privacy_cost import pure_to_rdp
    >>> round(pure_to_rdp(0.1, 10.0), 3), round(pure_to_rdp(3.0, 10.0), 2)
    (0.044, 2.99)
    """
    if math.isinf(epsilon):
        return epsilon
    if epsilon < TINY:
        return min(epsilon, math.nextafter(0.5 * order * epsilon * epsilon, math.inf) * MARGIN)
    # The fraction is 1 + 2 sinh(a e / 2) sinh((a - 1) e / 2) / cosh(e / 2): nothing cancels here.
    half, longer, shorter = (0.5 * epsilon * times for times in (1.0, order, order - 1.0))
    log_excess = _log_sinh(longer) + _log_sinh(shorter) - _log_cosh(half) + math.log(2.0)
    above = max(log_excess, 0.0) + math.log1p(math.exp(-abs(log_excess)))
    return min(epsilon, above / (order - 1.0) * MARGIN)


def rdp_conversion_term(order: float, delta: float) -> float:
    """Return epsilon at delta minus the divergence of an order."""
    return math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)


def best_order(epsilon: float, delta: float) -> float:
    """Return the order at which the largest rho is worth epsilon at delta."""

    def shortfall(log_excess: float) -> float:
        order = 1.0 + math.exp(log_excess)
        return -(epsilon - rdp_conversion_term(order, delta)) / order

    # With rho about e**2 / (4 log(1/d)) the best order is about 1 + 2 log(1/d) / e.
    guess = math.log(-2.0 * math.log(delta) / epsilon)
    return 1.0 + math.exp(float(_minimum(shortfall, guess, 5.0).x))


def epsilon_to_rdp(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that gives epsilon at delta, rounded downwards."""
    extra = rdp_conversion_term(order, delta)
    return max(0.0, epsilon - extra - ROUNDING * (1.0 + epsilon + abs(extra)))


def rdp_to_epsilon(divergence: float, delta: float, order: float) -> float:
    """Return the epsilon at delta for a divergence of an order, rounded upwards."""
    extra = rdp_conversion_term(order, delta)
    raised = divergence + extra + ROUNDING * (1.0 + divergence + abs(extra))
    return max(0.0, math.nextafter(raised, math.inf))


def _log_sinh(x: float) -> float:
    return x + math.log(-math.expm1(-2.0 * x)) - math.log(2.0)


def _log_cosh(x: float) -> float:
    return x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)


#: Orders at which the divergences of a search are stated and converted.
ORDERS = tuple(1.0 + 2.0 ** (step / 8.0) for step in range(-24, 81))


class Spend(NamedTuple):
    """Budget of one estimator."""

    epsilon: float
    delta: float = 0.0


def spend_of(rho: float, delta: float) -> Spend:
    """Return an epsilon whose fits at delta are rho-zCDP, slightly below that of rho."""
    worth = epsilon_at(rho / MARGIN**3, delta) / MARGIN**2 - 2.0 * SLACK
    if worth <= 0.0:
        raise ValueError("epsilon must be larger: nothing is left of it for a fit with a delta.")
    return Spend(worth, delta)


def gaussian_price(rho: float) -> Concentrated:
    """Return the price of Gaussian noise that is rho-zCDP, rounded downwards."""
    return Concentrated(math.sqrt(2.0 * rho) / MARGIN)


def search_divergence(rho: float, order: float, count: RunCount) -> float:
    """Return an upper bound on the Renyi divergence of the best of K runs, each rho-zCDP."""
    log_odds = -math.log(count.gamma)
    other = max(1.0, math.sqrt(log_odds / rho)) if rho else math.inf
    hidden = (other - 1.0) * rho + log_odds / other if rho else 0.0
    mean = math.log(count.mean * MARGIN)
    return (order * rho + (1.0 + count.eta) * hidden + mean / (order - 1.0)) * MARGIN


def search_epsilon(rho: float, delta: float, count: RunCount, refit_rho: float = 0.0) -> float:
    """Return the epsilon at delta of a search, and a last fit to all records."""
    each: Iterator[float] = (
        search_divergence(rho, order, count)
        + order * refit_rho * MARGIN
        + rdp_conversion_term(order, delta)
        + SLACK
        for order in ORDERS
    )
    return min(each)


def run_rho(epsilon: float, delta: float, count: RunCount, refit_rho: float = 0.0) -> float:
    """Return the largest rho of one run for a search within epsilon at delta; 0 if there is none.

    ``refit_rho`` is that of a last fit to all records.

    Examples
    --------
    >>> from skdpsurv.dp.selection import RunCount
    >>> from skdpsurv.dp.privacy_cost import epsilon_at, run_rho
    >>> ten = RunCount.with_mean(0.0, 10.0)
    >>> round(1.0 / epsilon_at(run_rho(1.0, 1e-6, ten), 1e-6), 2)  # epsilons of one run
    1.71
    """
    low, high = 0.0, epsilon
    for _ in range(100):
        middle = 0.5 * (low + high)
        fits = search_epsilon(middle, delta, count, refit_rho) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def search_curve(
    rho: float, count: RunCount, refit_rho: float = 0.0
) -> tuple[tuple[float, float], ...]:
    """Return orders, and upper bounds on the divergence of a search at each.

    Divergences do not fall with the order, so a smaller bound of a higher order holds.
    """
    values = [search_divergence(rho, a, count) + a * refit_rho * MARGIN for a in ORDERS]
    least = list(accumulate(reversed(values), min))
    return tuple(zip(ORDERS, reversed(least), strict=True))


@dataclass(frozen=True)
class BestOfRuns:
    """The price of the best of a random number of runs, each rho-zCDP."""

    rho: float
    count: RunCount


#: Prices of one set of records; a Fraction is the exact price of runs without a delta.
AnyPrice = Price | Fraction | BestOfRuns
Prices = tuple[AnyPrice, ...]


@dataclass(frozen=True)
class Cost:
    """Prices, one after another, on each of several sets of records that share nobody."""

    each: tuple[Prices, ...]

    @property
    def is_pure(self) -> bool:
        """Whether no delta is needed."""
        return not any(map(_needs_delta, self.each))

    @property
    def epsilon(self) -> Fraction | float:
        """Largest exact sum of epsilons of a set; infinite where some noise is Gaussian."""
        if not self.is_pure or any(math.isinf(_number(p)) for one in self.each for p in one):
            return math.inf
        sums = (sum((Fraction(_number(price)) for price in one), Fraction()) for one in self.each)
        return max(sums, default=Fraction())

    @property
    def rho(self) -> float | None:
        """Cost in zCDP, rounded upwards; None unless all sets have Gaussian noise."""
        if not self.each or not all(map(_needs_delta, self.each)) or any(map(_runs, self.each)):
            return None
        return max(_mu_of(one).rho for one in self.each)

    @property
    def renyi(self) -> tuple[tuple[float, float], ...]:
        """Orders and divergences of a search with Gaussian noise, on one set of records."""
        if len(self.each) != 1 or (best := _runs(self.each[0])) is None:
            return ()
        return search_curve(best.rho, best.count, _refit_rho(best, self.each[0]))

    def within(self, epsilon: float, delta: float) -> bool:
        """Return whether this costs at most epsilon at delta, in each set."""
        return math.isinf(epsilon) or all(_epsilon_of(one, delta) <= epsilon for one in self.each)


def _epsilon_of(prices: Prices, delta: float) -> float | Fraction:
    if not _needs_delta(prices):
        return Cost((prices,)).epsilon
    if delta <= 0.0:
        return math.inf
    if (best := _runs(prices)) is not None:
        return search_epsilon(best.rho, delta, best.count, _refit_rho(best, prices))
    pure = Cost((tuple(price for price in prices if not _needs_delta((price,))),)).epsilon
    beside = epsilon_at(_mu_of(tuple(p for p in prices if _needs_delta((p,)))).rho, delta)
    added = math.inf if math.inf in (pure, beside) else pure + Fraction(beside)
    return min(epsilon_at(_mu_of(prices).rho, delta), added)


def cost_of(price: Price) -> Cost:
    """Return the cost of one measurement, or refuse a negative price."""
    if not epsilon_or_mu(price) >= 0.0:
        raise ValueError(f"a price must not be negative, got {price}.")
    return Cost(((price,),))


def sequential_cost(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of the same records, one after another."""
    whole: list[Prices] = [()]
    for cost in costs:
        whole = list(dict.fromkeys(a + b for a, b in product(whole, cost.each)))
    return Cost(tuple(whole))


def disjoint_cost(costs: Iterable[Cost]) -> Cost:
    """Return the cost of measurements of records that share nobody."""
    return Cost(tuple(dict.fromkeys(one for cost in costs for one in cost.each)))


def random_runs_cost(runs: Iterable[Cost], count: RunCount) -> Cost:
    """Return the cost of the best of a random number of runs, each of a kind drawn at random."""
    one = disjoint_cost(runs)
    if one.is_pure:
        infinite = math.isinf(one.epsilon)
        return Cost(((math.inf if infinite else (2 + Fraction(count.eta)) * one.epsilon,),))
    return Cost(((BestOfRuns(max(map(_rho_of, one.each)), count),),))


def _number(price: AnyPrice) -> float | Fraction:
    assert not isinstance(price, BestOfRuns)
    return price if isinstance(price, Fraction) else epsilon_or_mu(price)


def _needs_delta(prices: Prices) -> bool:
    return any(isinstance(price, Concentrated | BestOfRuns) for price in prices)


def _runs(prices: Prices) -> BestOfRuns | None:
    """Return the price of random runs among these, if there is one."""
    found = [price for price in prices if isinstance(price, BestOfRuns)]
    if len(found) > 1:
        raise ValueError("of one set of records there may be one random number of runs.")
    return found[0] if found else None


def _rho_of(prices: Prices) -> float:
    """Return the cost in zCDP; a single price is not rounded."""
    if len(prices) == 1 and isinstance(prices[0], Concentrated):
        return prices[0].rho
    return _mu_of(prices).rho if prices else 0.0


def _refit_rho(best: BestOfRuns, prices: Prices) -> float:
    return _rho_of(tuple(price for price in prices if price is not best))


def _mu_of(prices: Prices) -> Concentrated:
    """Return the price of all in zCDP; an epsilon counts as a mu."""
    return compose_gaussian(*(Concentrated(float(_number(price))) for price in prices))
