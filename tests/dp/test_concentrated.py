"""Prices of Gaussian noise, and what they are worth as epsilon and delta."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from skdpsurv.dp.privacy_cost import (
    Concentrated,
    as_laplace,
    compose_gaussian,
    epsilon_at,
    epsilon_or_mu,
    rho_for,
    share_of,
    split_gaussian,
    subtract,
)
from tests.support.combinations import thinned

PAIRS = [(0.1, 1e-10), (1.0, 4e-8), (1.0, 0.01), (3.0, 1e-6), (20.0, 1e-5), (1e-3, 1e-9)]


def exact_delta(mu, epsilon):
    """Of one Gaussian mechanism: Balle and Wang (2018), theorem 8."""
    first = stats.norm.cdf(mu / 2.0 - epsilon / mu)
    return first - math.exp(epsilon + stats.norm.logcdf(-mu / 2.0 - epsilon / mu))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_epsilon_holds_for_a_gaussian_and_is_near_the_best(epsilon, delta):
    mu = math.sqrt(2.0 * rho_for(epsilon, delta))
    assert exact_delta(mu, epsilon) <= delta
    # A tenth more noise than the best, where delta is small: what it costs to name one number.
    assert exact_delta(1.2 * mu, epsilon) > delta
    # It is the smallest over orders.
    rho, orders = rho_for(epsilon, delta), 1.0 + np.geomspace(1e-4, 1e7, 200_001)
    each = rho * orders + np.log1p(-1.0 / orders)
    each -= (math.log(delta) + np.log(orders)) / (orders - 1.0)
    assert epsilon_at(rho, delta) == pytest.approx(max(0.0, each.min()), rel=1e-6)
    assert epsilon_at(rho, delta) <= epsilon < epsilon_at(1.001 * rho, delta)


@pytest.mark.parametrize("order", [1.5, 2.0, 20.0])
def test_renyi_divergence_of_a_gaussian_is_rho_times_the_order(order):
    mu = 0.7
    density, other = stats.norm(0.0, 1.0).logpdf, stats.norm(mu, 1.0).logpdf

    def integrand(x):
        return math.exp(order * density(x) + (1.0 - order) * other(x))

    middle = (1.0 - order) * mu
    found, _ = integrate.quad(integrand, middle - 12.0, middle + 12.0)
    assert math.log(found) / (order - 1.0) == pytest.approx(Concentrated(mu).rho * order, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.3, 0.999])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4, 1e200])
def test_extremes(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert 0.0 < rho < math.inf
    assert epsilon_at(0.0, delta) == 0.0
    assert epsilon_at(rho, delta) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 0.999), (1e-9, 0.5), (1e-3, 1e-12)])
def test_rounding_does_not_raise_a_rho(epsilon, delta):
    """By the best order in 60 digits, at which terms of size 1 cancel."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        rho = mpmath.mpf(rho_for(epsilon, delta))

        def at(log_excess):
            order = 1 + mpmath.exp(log_excess)
            log = mpmath.log(delta) + mpmath.log(order)
            return rho * order + mpmath.log1p(-1 / order) - log / (order - 1)

        low, high = mpmath.mpf(-10), mpmath.mpf(60)
        for _ in range(300):
            thirds = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, thirds[1]) if at(thirds[0]) < at(thirds[1]) else (thirds[0], high)
        assert at(low) <= epsilon


@pytest.mark.parametrize("shares", [(1.0,), (0.8, 0.2, 0.2), (0.9, 0.1, 0.0, 0.3)])
def test_parts_are_worth_no_more_than_the_whole(shares):
    found = split_gaussian(1.0, 1e-6, shares)
    rho = sum(Fraction(price.mu) ** 2 / 2 for price in found)
    assert rho <= Fraction(rho_for(1.0, 1e-6))
    assert float(rho) == pytest.approx(rho_for(1.0, 1e-6), rel=1e-9)
    assert rho <= Fraction(compose_gaussian(*found).rho) <= Fraction(rho_for(1.0, 1e-6))
    np.testing.assert_allclose(
        [one.mu / found[0].mu for one in found], np.divide(shares, shares[0])
    )


@pytest.mark.parametrize("price", [0.7, Concentrated(0.7)])
def test_a_part_and_what_it_leaves_cost_no_more_than_the_price(price):
    one = share_of(price, 0.3)
    rest = subtract(price, one)
    assert type(one) is type(rest) is type(price)
    power = 2 if isinstance(price, Concentrated) else 1
    parts = [Fraction(epsilon_or_mu(part)) ** power for part in (one, rest)]
    assert sum(parts) <= Fraction(0.7) ** power
    assert epsilon_or_mu(rest) == pytest.approx(0.7 * (1.0 - 0.3**power) ** (1.0 / power))


def test_as_laplace_is_the_epsilon_of_noise_as_large():
    assert as_laplace(0.4, 9) == 0.4
    # Laplace noise of scale S / epsilon deviates by S sqrt(d + 1) / epsilon, Gaussian by S / mu.
    assert math.sqrt(10.0) / as_laplace(Concentrated(0.2), 9) == pytest.approx(1.0 / 0.2)


@pytest.mark.parametrize(("mu", "delta"), thinned([0.1, 1.0, 4.0], [1e-9, 1e-5]))
def test_dp_accounting_says_the_same(mu, delta):
    """Its Renyi accountant finds the same epsilon; its exact one, a smaller one."""
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting import pld, rdp

    event = accounting.GaussianDpEvent(1.0 / mu)
    ours = epsilon_at(0.5 * mu**2, delta)
    orders = 1.0 + np.geomspace(1e-3, 1e4, 20_000)
    theirs = rdp.RdpAccountant(orders.tolist()).compose(event).get_epsilon(delta)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours > pld.PLDAccountant().compose(event).get_epsilon(delta)
