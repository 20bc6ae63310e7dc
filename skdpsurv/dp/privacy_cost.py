r"""Prices of measurements: shares of an epsilon, zCDP, Renyi divergences, and how they compose.

Parts of an epsilon, as floats whose exact sum is never more than it.

Concentrated differential privacy: what Gaussian noise costs, and what that is worth.

A mechanism is :math:`\rho`-zCDP if for neighbours D, D' and every order :math:`\alpha > 1` the
Renyi divergence is

.. math:: D_\alpha(M(D) \,\|\, M(D')) \le \rho\,\alpha.

Noise :math:`N(0, \sigma^2 I)` on a vector that one record moves by at most S costs :math:`\rho =
\mu^2/2` with :math:`\mu = S/\sigma`, and so does the discrete Gaussian law on integers; what is
:math:`\epsilon`-differentially private is :math:`\tfrac12\epsilon^2`-zCDP; and rhos add up, also
where each mechanism is chosen in view of the earlier results (Bun and Steinke 2016, lemma 2.3 and
propositions 1.4, 1.6). For every order,

.. math::
    \epsilon = \rho\alpha + \log\Big(1 - \frac1\alpha\Big)
        - \frac{\log\delta + \log\alpha}{\alpha - 1}

is an epsilon that holds at delta (Canonne, Kamath and Steinke 2020, proposition 12). Proofs and
slack: docs/proofs/gaussian.

Renyi differential privacy of one order: the currency in which a filter adds up.

M has Renyi divergence at most r of order :math:`\alpha > 1` if for neighbours D, D'

.. math:: D_\alpha(M(D) \,\|\, M(D')) = \frac{1}{\alpha - 1} \log
    E_{M(D')}\Big(\frac{dM(D)}{dM(D')}\Big)^\alpha \le r .

What is :math:`\epsilon`-differentially private has at most that of randomised response (of all such
pairs of laws that pair is the most informative: Kairouz, Oh and Viswanath 2015),

.. math:: r = \frac{1}{\alpha - 1}
    \log\frac{e^{\alpha\epsilon} + e^{(1 - \alpha)\epsilon}}{1 + e^\epsilon}
    \le \min(\epsilon, \tfrac12\alpha\epsilon^2) ;

what is :math:`\rho`-zCDP has :math:`r = \alpha\rho`. Of one fixed order, rs add up whoever chooses
them in view of the earlier results, as long as their sum is held below a bound R that was fixed
before (Feldman and Zrnic 2021, theorem 3.1), and R is worth

.. math:: \epsilon = R + \log\Big(1 - \frac1\alpha\Big)
        - \frac{\log\delta + \log\alpha}{\alpha - 1}

at :math:`\delta` (Canonne, Kamath and Steinke 2020, proposition 12).

What one run of a search may cost when its noise is Gaussian: Renyi divergences.

The best of K runs, each of them :math:`\rho`-zCDP, K of the truncated negative binomial law with
parameters :math:`\eta, \gamma` (:class:`~skdpsurv.dp.selection.RunCount`), has for all
orders :math:`\alpha > 1` and :math:`\beta \ge 1` a Renyi divergence of order :math:`\alpha` of at
most

.. math::
    \alpha\rho + (1 + \eta)\Big[(\beta - 1)\rho + \frac{\log(1/\gamma)}{\beta}\Big]
    + \frac{\log E[K]}{\alpha - 1}

(Papernot and Steinke 2022, theorem 2, with :math:`\beta\rho` for the divergence of order
:math:`\beta`; docs/proofs/private_search). The bracket is least at :math:`\beta =
\sqrt{\log(1/\gamma)/\rho}`. A last fit to all records adds its own :math:`\alpha\rho'`.

What measurements of private records cost together.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from scipy import optimize

from skdpsurv.dp.selection import RunCount


def divide_budget(budget: float, parts: Fraction) -> float:
    """Return the largest float of which ``parts`` do not exceed the budget, exactly."""
    if math.isinf(budget):
        return budget
    part = float(Fraction(budget) / parts)
    while Fraction(part) * parts > Fraction(budget):
        part = math.nextafter(part, 0.0)
    return part


def remaining_budget(budget: float, *spent: float) -> float:
    """Return the largest float that with what was spent does not exceed the budget, exactly."""
    rest = Fraction(budget) - sum(map(Fraction, spent))
    nearest = float(rest)
    return nearest if Fraction(nearest) <= rest else math.nextafter(nearest, 0.0)


#: What the rounding of a few public numbers can take, many times over.
MARGIN = 1.0 + 2.0**-40
#: What the terms of an epsilon, which may be far larger than their sum, can be rounded by.
SLACK = 1e-12
#: No rho is larger: an epsilon beyond any use.
LARGEST_RHO = 1e12


@dataclass(frozen=True)
class Concentrated:
    r"""The price of Gaussian noise: :math:`\tfrac12\mu^2`-zCDP.

    Parameters
    ----------
    mu : float
        Sensitivity over the standard deviation of the noise. It takes the place that epsilon has
        for Laplace noise, where it is sensitivity over scale.
    """

    mu: float

    @property
    def rho(self) -> float:
        """The price in zCDP, rounded upwards."""
        return math.nextafter(0.5 * self.mu * self.mu, math.inf)


#: An epsilon, or what Gaussian noise costs.
Price = float | Concentrated


def epsilon_or_mu(price: Price) -> float:
    """Return the number that noise is in inverse proportion to: epsilon, or mu."""
    return price.mu if isinstance(price, Concentrated) else price


def stated_price(name: str, price: Price) -> dict[str, float]:
    """Return a price as guarantees state it: ``epsilon_name``, or ``mu_name``."""
    unit = "mu" if isinstance(price, Concentrated) else "epsilon"
    return {f"{unit}_{name}": epsilon_or_mu(price)}


def share_of(price: Price, share: float) -> Price:
    """Return a part of a price, as a share of its epsilon or of its mu.

    Parts whose shares add up to 1 cost no more than the whole: epsilons add up, and of mus the
    squares do.
    """
    if isinstance(price, Concentrated):
        return Concentrated(share * price.mu)
    return share * price


def subtract(price: Price, *spent: Price) -> Price:
    """Return what parts that were spent leave of a price, rounded downwards."""
    if not isinstance(price, Concentrated):
        return remaining_budget(price, *map(epsilon_or_mu, spent))
    square = remaining_budget(*(epsilon_or_mu(one) ** 2 for one in (price, *spent)))
    return Concentrated(math.sqrt(square) / MARGIN)


def as_laplace(price: Price, dimension: int) -> float:
    """Return the epsilon at which L2-Laplace noise on a vector deviates by as much.

    Rules that know how much noise there is from n, epsilon and a number of columns ask for it.
    """
    return price.mu * math.sqrt(dimension + 1.0) if isinstance(price, Concentrated) else price


def compose_gaussian(*prices: Concentrated) -> Concentrated:
    """Return the price of several mechanisms, rounded upwards."""
    return Concentrated(math.hypot(*(price.mu for price in prices)) * MARGIN)


def split_gaussian(epsilon: float, delta: float, shares: Sequence[float]) -> list[Concentrated]:
    """Return prices in the proportion of shares that are worth epsilon at delta together.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).
    shares : sequence of float
        Not negative, one of them positive.

    Returns
    -------
    list of Concentrated
    """
    whole = math.sqrt(2.0 * rho_for(epsilon, delta))
    unit = whole / (math.hypot(*shares) * MARGIN**2)
    return [Concentrated(share * unit) for share in shares]


def epsilon_at(rho: float, delta: float) -> float:
    """Return an epsilon that a zCDP mechanism has at delta.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        At least 0; the best order that a search found, rounded upwards.

    Examples
    --------
    >>> from skdpsurv.dp.privacy_cost import epsilon_at
    >>> round(epsilon_at(0.02, 1e-6), 2)
    0.9
    """
    if rho == 0.0:
        return 0.0

    def at(log_excess: float) -> float:
        order = 1.0 + math.exp(log_excess)
        return (
            rho * order
            + math.log1p(-1.0 / order)
            - (math.log(delta) + math.log(order)) / (order - 1.0)
        )

    # The best order is near 1 + sqrt(log(1/delta) / rho); any order's epsilon holds.
    guess = 0.5 * math.log(-math.log(delta) / rho)
    bounds = (min(guess - 4.0, -4.0), guess + 4.0)
    found = optimize.minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun) * MARGIN + SLACK)


def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho that is worth no more than an epsilon at delta.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        :func:`epsilon_at` of it is at most ``epsilon``.

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


#: What rounding can take from a sum of a few public numbers, relative to the largest of them.
ROUNDING = 1e-13
#: Where hyperbolic functions would underflow, and the parabola is what they are.
TINY = 1e-140


def pure_to_rdp(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of an order that pure differential privacy allows.

    Parameters
    ----------
    epsilon : float
        At least 0; may be infinite.
    order : float
        Above 1.

    Returns
    -------
    float
        Rounded upwards, at most epsilon.

    Examples
    --------
    >>> from skdpsurv.dp.privacy_cost import pure_to_rdp
    >>> round(pure_to_rdp(0.1, 10.0), 3), round(pure_to_rdp(3.0, 10.0), 2)
    (0.044, 2.99)
    """
    if epsilon == 0.0 or math.isinf(epsilon):
        return epsilon
    if epsilon < TINY:
        return min(epsilon, math.nextafter(0.5 * order * epsilon * epsilon, math.inf) * MARGIN)
    # The fraction is 1 + 2 sinh(a e / 2) sinh((a - 1) e / 2) / cosh(e / 2): nothing cancels here.
    half, longer, shorter = (0.5 * epsilon * times for times in (1.0, order, order - 1.0))
    log_excess = _log_sinh(longer) + _log_sinh(shorter) - _log_cosh(half) + math.log(2.0)
    above = max(log_excess, 0.0) + math.log1p(math.exp(-abs(log_excess)))
    return min(epsilon, above / (order - 1.0) * MARGIN)


def rdp_conversion_term(order: float, delta: float) -> float:
    """Return what epsilon at delta is above the divergence of an order."""
    return math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)


def best_order(epsilon: float, delta: float) -> float:
    """Return the order at which the largest rho is worth epsilon at delta.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Above 1.
    """

    def lacking(log_excess: float) -> float:
        order = 1.0 + math.exp(log_excess)
        return -(epsilon - rdp_conversion_term(order, delta)) / order

    # With rho about e**2 / (4 log(1/d)) the best order is about 1 + 2 log(1/d) / e.
    guess = math.log(-2.0 * math.log(delta) / epsilon)
    found = optimize.minimize_scalar(
        lacking,
        bounds=(min(guess - 5.0, -4.0), guess + 5.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1.0 + math.exp(float(found.x))


def epsilon_to_rdp(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that is worth epsilon at delta, rounded downwards."""
    extra = rdp_conversion_term(order, delta)
    return max(0.0, epsilon - extra - ROUNDING * (1.0 + epsilon + abs(extra)))


def rdp_to_epsilon(divergence: float, delta: float, order: float) -> float:
    """Return the epsilon at delta that a divergence of an order is worth, rounded upwards."""
    extra = rdp_conversion_term(order, delta)
    raised = divergence + extra + ROUNDING * (1.0 + divergence + abs(extra))
    return max(0.0, math.nextafter(raised, math.inf))


def _log_sinh(x: float) -> float:
    return x + math.log(-math.expm1(-2.0 * x)) - math.log(2.0)


def _log_cosh(x: float) -> float:
    return x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)


#: Orders at which the divergences of a search are stated, and at which its epsilon is looked for.
ORDERS = tuple(1.0 + 2.0 ** (step / 8.0) for step in range(-24, 81))
#: Halvings of the interval in which a rho is looked for.
BISECTIONS = 100


class Spend(NamedTuple):
    """What an estimator is given to spend."""

    epsilon: float
    delta: float = 0.0


def spend_of(rho: float, delta: float) -> Spend:
    """Return an epsilon whose fits at delta are rho-zCDP: a little less than what rho is worth."""
    worth = epsilon_at(rho / MARGIN**3, delta) / MARGIN**2 - 2.0 * SLACK
    if worth <= 0.0:
        raise ValueError("epsilon must be larger: nothing is left of it for a fit with a delta.")
    return Spend(worth, delta)


def gaussian_price(rho: float) -> Concentrated:
    """Return the price of Gaussian noise that is rho-zCDP, rounded downwards."""
    return Concentrated(math.sqrt(2.0 * rho) / MARGIN)


def search_divergence(rho: float, order: float, count: RunCount) -> float:
    """Return what the Renyi divergence of the best of K runs is at most, rounded upwards.

    Parameters
    ----------
    rho : float
        Of each run.
    order : float
        Above 1.
    count : RunCount
        The law of K.
    """
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
    """Return the largest rho of one run with which a search is worth no more than epsilon at delta.

    Parameters
    ----------
    epsilon, delta : float
        Of the whole.
    count : RunCount
    refit_rho : float, default=0.0
        Of a last fit to all records.

    Returns
    -------
    float
        0 if there is none.

    Examples
    --------
    >>> from skdpsurv.dp.selection import RunCount
    >>> from skdpsurv.dp.privacy_cost import epsilon_at, run_rho
    >>> ten = RunCount.with_mean(0.0, 10.0)
    >>> round(1.0 / epsilon_at(run_rho(1.0, 1e-6, ten), 1e-6), 2)  # epsilons of one run
    1.71
    """
    low, high = 0.0, epsilon
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fits = search_epsilon(middle, delta, count, refit_rho) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def search_curve(
    rho: float, count: RunCount, refit_rho: float = 0.0
) -> tuple[tuple[float, float], ...]:
    """Return orders, and what the divergence of the whole is at most at each.

    Divergences do not fall with the order: where a bound does, that of a higher order holds.
    """
    found: list[tuple[float, float]] = []
    least = math.inf
    for order in reversed(ORDERS):
        value = search_divergence(rho, order, count) + order * refit_rho * MARGIN
        least = min(least, value)
        found.append((order, least))
    return tuple(reversed(found))


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
        return search_curve(best.rho, best.count, _beside(best, self.each[0]))

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
            return search_epsilon(best.rho, delta, best.count, _beside(best, one)) <= epsilon
        return epsilon_at(_mu_of(one).rho, delta) <= epsilon


def cost_of(price: Price) -> Cost:
    """Return the cost of one measurement.

    Raises
    ------
    ValueError
        If the price is negative: it would pay for others.
    """
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
        epsilon = one.epsilon
        infinite = math.isinf(epsilon)
        return Cost(((math.inf if infinite else (2 + Fraction(count.eta)) * Fraction(epsilon),),))
    return Cost(((BestOfRuns(max(map(_rho_of, one.each)), count),),))


def _number(price: AnyPrice) -> float | Fraction:
    """Return an epsilon, or mu."""
    assert not isinstance(price, BestOfRuns)
    return price if isinstance(price, Fraction) else epsilon_or_mu(price)


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
    return compose_gaussian(*(Concentrated(float(_number(price))) for price in prices))
