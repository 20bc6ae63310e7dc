r"""What one run of a search may cost when its noise is Gaussian: Renyi divergences.

The best of K runs, each of them :math:`\rho`-zCDP, K of the truncated negative binomial law with
parameters :math:`\eta, \gamma` (:class:`~skdpsurv.privacy.run_count.RunCount`), has for all
orders :math:`\alpha > 1` and :math:`\beta \ge 1` a Renyi divergence of order :math:`\alpha` of at
most

.. math::
    \alpha\rho + (1 + \eta)\Big[(\beta - 1)\rho + \frac{\log(1/\gamma)}{\beta}\Big]
    + \frac{\log E[K]}{\alpha - 1}

(Papernot and Steinke 2022, theorem 2, with :math:`\beta\rho` for the divergence of order
:math:`\beta`; docs/proofs/private_search). The bracket is least at :math:`\beta =
\sqrt{\log(1/\gamma)/\rho}`. A last fit to all records adds its own :math:`\alpha\rho'`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from skdpsurv.privacy.concentrated import MARGIN, SLACK, Concentrated, epsilon_at
from skdpsurv.privacy.renyi import overhead
from skdpsurv.privacy.run_count import RunCount

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


def concentrated(rho: float) -> Concentrated:
    """Return the price of Gaussian noise that is rho-zCDP, rounded downwards."""
    return Concentrated(math.sqrt(2.0 * rho) / MARGIN)


def divergence(rho: float, order: float, count: RunCount) -> float:
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


def worth(rho: float, delta: float, count: RunCount, refit_rho: float = 0.0) -> float:
    """Return the epsilon at delta of a search, and a last fit to all records."""
    each: Iterator[float] = (
        divergence(rho, order, count) + order * refit_rho * MARGIN + overhead(order, delta) + SLACK
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
    >>> from skdpsurv.privacy.run_count import RunCount
    >>> from skdpsurv.privacy.run_price import run_rho
    >>> from skdpsurv.privacy.concentrated import epsilon_at
    >>> ten = RunCount.with_mean(0.0, 10.0)
    >>> round(1.0 / epsilon_at(run_rho(1.0, 1e-6, ten), 1e-6), 2)  # epsilons of one run
    1.71
    """
    low, high = 0.0, epsilon
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fits = worth(middle, delta, count, refit_rho) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def curve(rho: float, count: RunCount, refit_rho: float = 0.0) -> tuple[tuple[float, float], ...]:
    """Return orders, and what the divergence of the whole is at most at each.

    Divergences do not fall with the order: where a bound does, that of a higher order holds.
    """
    found: list[tuple[float, float]] = []
    least = math.inf
    for order in reversed(ORDERS):
        value = divergence(rho, order, count) + order * refit_rho * MARGIN
        least = min(least, value)
        found.append((order, least))
    return tuple(reversed(found))
