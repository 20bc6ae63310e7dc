"""Tests of what a search with Gaussian noise costs."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.privacy_cost import (
    ORDERS,
    Spend,
    gaussian_price,
    rdp_conversion_term,
    rho_for,
    run_rho,
    search_curve,
    search_divergence,
    search_epsilon,
    spend_of,
)
from skdpsurv.dp.selection import RunCount
from tests.support.combinations import thinned

COUNTS = [(eta, mean) for eta in (-0.5, 0.0, 0.5, 1.0) for mean in (1.0, 1.5, 10.0, 100.0)]


def generating(q, count):
    """Return E[q**K]."""
    base = 1.0 - (1.0 - count.gamma) * q
    if count.gamma > 1.0 - 1e-9:
        return q
    if count.eta == 0.0:
        return np.log(base) / math.log(count.gamma)
    return (base**-count.eta - 1.0) / (count.gamma**-count.eta - 1.0)


def best_of(law, count):
    """Return the law of the best of K outcomes, the first being best."""
    worse = generating(np.append(1.0, 1.0 - np.cumsum(law)[:-1]), count)
    return worse - np.append(worse[1:], 0.0)


def renyi(p, q, order):
    return logsumexp(order * np.log(p) + (1.0 - order) * np.log(q)) / (order - 1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("eta", "mean"), COUNTS)
def test_small_searches_are_below_the_bound(eta, mean, seed):
    rng = np.random.default_rng(seed)
    one = rng.dirichlet(np.ones(4)) + 0.02
    other = one * np.exp(rng.uniform(-0.6, 0.6, 4))
    one, other = one / one.sum(), other / other.sum()
    pairs = [(one, other), (other, one)]
    # The rho of this pair: the largest D_a / a, from orders next to 1 on.
    orders = [1.0 + 1e-6, *ORDERS]
    rho = max(renyi(p, q, order) / order for p, q in pairs for order in orders) * (1.0 + 1e-6)
    count = RunCount.with_mean(eta, mean)
    near = sum(count.probability(k) * 0.3**k for k in range(1, 60))
    assert generating(0.3, count) == pytest.approx(near, rel=1e-9)
    laws = best_of(one, count), best_of(other, count)
    for order in (1.125, 2.0, 9.0, 33.0):
        largest = max(renyi(*laws, order), renyi(*laws[::-1], order))
        assert 0.0 < largest <= search_divergence(rho, order, count) + 1e-6


def test_the_best_second_order_is_the_best():
    count = RunCount.with_mean(0.5, 20.0)
    for rho in (1e-4, 0.01, 1.0, 30.0):
        others = np.geomspace(1.0, 1e4, 20_001)
        hidden = (others - 1.0) * rho - math.log(count.gamma) / others
        by_hand = 7.0 * rho + 1.5 * hidden.min() + math.log(count.mean) / 6.0
        assert search_divergence(rho, 7.0, count) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize(
    ("law", "budget", "refit"), thinned(COUNTS, [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)], [0.0, 0.3])
)
def test_the_price_of_a_run_fills_the_budget(law, budget, refit):
    (eta, mean), (epsilon, delta) = law, budget
    count, refit_rho = RunCount.with_mean(eta, mean), refit**2 * rho_for(epsilon, delta)
    rho = run_rho(epsilon, delta, count, refit_rho)
    assert 0.0 < rho < rho_for(epsilon, delta)
    assert search_epsilon(rho, delta, count, refit_rho) <= epsilon
    assert search_epsilon(rho * 1.001, delta, count, refit_rho) > epsilon
    # What a guarantee states is checked against its epsilon.
    guarantee = PrivacyGuarantee(epsilon, delta, renyi=search_curve(rho, count, refit_rho))
    assert all(
        guarantee.renyi_at(a) <= search_divergence(rho, a, count) + a * refit_rho * 1.1
        for a in ORDERS
    )
    assert min(v + rdp_conversion_term(a, delta) for a, v in guarantee.renyi) <= epsilon


def test_one_run_is_one_run():
    """Without a choice a search costs what its only run does."""
    rho = run_rho(1.0, 1e-6, RunCount(0.0, 1.0))
    assert rho == pytest.approx(rho_for(1.0, 1e-6), rel=1e-3)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_what_a_run_is_given_is_worth_its_price(rho, delta):
    assert Spend(1.0).delta == 0.0
    spend = spend_of(rho, delta)
    assert rho * 0.999 <= rho_for(*spend) <= rho
    assert rho * 0.999 <= gaussian_price(rho).rho <= rho
    with pytest.raises(ValueError, match="epsilon"):
        spend_of(1e-40, 0.9)
