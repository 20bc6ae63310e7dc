r"""Concentrated differential privacy: what Gaussian noise costs, and what that is worth.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import optimize

from skdpsurv.privacy.shares import what_is_left

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
        return what_is_left(price, *map(amount, spent))
    square = what_is_left(*(amount(one) ** 2 for one in (price, *spent)))
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
    >>> from skdpsurv.privacy.concentrated import epsilon_at
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
    >>> from skdpsurv.privacy.concentrated import epsilon_at, rho_for
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
