r"""Renyi differential privacy of one order: the currency in which a filter adds up.

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

from scipy import optimize

from skdpsurv.privacy.concentrated import MARGIN

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
    >>> from skdpsurv.privacy.renyi import of_pure
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
