r"""Prices of measurements: shares of an epsilon, zCDP, and Renyi divergences.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scipy import optimize


def at_most(budget: float, parts: Fraction) -> float:
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


def amount(price: Price) -> float:
    """Return the number that noise is in inverse proportion to: epsilon, or mu."""
    return price.mu if isinstance(price, Concentrated) else price


def stated_price(name: str, price: Price) -> dict[str, float]:
    """Return a price as guarantees state it: ``epsilon_name``, or ``mu_name``."""
    unit = "mu" if isinstance(price, Concentrated) else "epsilon"
    return {f"{unit}_{name}": amount(price)}


def part(price: Price, share: float) -> Price:
    """Return a part of a price, as a share of its epsilon or of its mu.

    Parts whose shares add up to 1 cost no more than the whole: epsilons add up, and of mus the
    squares do.
    """
    if isinstance(price, Concentrated):
        return Concentrated(share * price.mu)
    return share * price


def left(price: Price, *spent: Price) -> Price:
    """Return what parts that were spent leave of a price, rounded downwards."""
    if not isinstance(price, Concentrated):
        return remaining_budget(price, *map(amount, spent))
    square = remaining_budget(*(amount(one) ** 2 for one in (price, *spent)))
    return Concentrated(math.sqrt(square) / MARGIN)


def as_laplace(price: Price, dimension: int) -> float:
    """Return the epsilon at which L2-Laplace noise on a vector deviates by as much.

    Rules that know how much noise there is from n, epsilon and a number of columns ask for it.
    """
    return price.mu * math.sqrt(dimension + 1.0) if isinstance(price, Concentrated) else price


def together(*prices: Concentrated) -> Concentrated:
    """Return the price of several mechanisms, rounded upwards."""
    return Concentrated(math.hypot(*(price.mu for price in prices)) * MARGIN)


def parts(epsilon: float, delta: float, shares: Sequence[float]) -> list[Concentrated]:
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


def of_pure(epsilon: float, order: float) -> float:
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
    >>> from skdpsurv.dp.privacy_cost import of_pure
    >>> round(of_pure(0.1, 10.0), 3), round(of_pure(3.0, 10.0), 2)
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


def overhead(order: float, delta: float) -> float:
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
        return -(epsilon - overhead(order, delta)) / order

    # With rho about e**2 / (4 log(1/d)) the best order is about 1 + 2 log(1/d) / e.
    guess = math.log(-2.0 * math.log(delta) / epsilon)
    found = optimize.minimize_scalar(
        lacking,
        bounds=(min(guess - 5.0, -4.0), guess + 5.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1.0 + math.exp(float(found.x))


def room(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that is worth epsilon at delta, rounded downwards."""
    extra = overhead(order, delta)
    return max(0.0, epsilon - extra - ROUNDING * (1.0 + epsilon + abs(extra)))


def worth(divergence: float, delta: float, order: float) -> float:
    """Return the epsilon at delta that a divergence of an order is worth, rounded upwards."""
    extra = overhead(order, delta)
    raised = divergence + extra + ROUNDING * (1.0 + divergence + abs(extra))
    return max(0.0, math.nextafter(raised, math.inf))


def _log_sinh(x: float) -> float:
    return x + math.log(-math.expm1(-2.0 * x)) - math.log(2.0)


def _log_cosh(x: float) -> float:
    return x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)
