"""Rivals in private survival regression are what their algorithms say, and guarantees compare."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sksurv.linear_model import CoxPHSurvivalAnalysis

from benchmarks.data import simulated
from benchmarks.rivals.functional import (
    LINEAR,
    LOG_LOGISTIC,
    SQUARE,
    WEIBULL,
    LogLocationScale,
    Polynomial,
    log_time,
    sensitivity,
)
from benchmarks.rivals.neighbours import ADD_OR_REMOVE, REPLACE, native, replace_one
from benchmarks.rivals.private_cox import NoisyCox

FAMILIES = (WEIBULL, LOG_LOGISTIC)


@pytest.fixture(scope="module")
def data():
    return simulated(400, 3, seed=1)


def tied(data):
    """Return rows of norm at most 1, events, and times with ties."""
    return data.X / math.sqrt(3.0), data.event, np.ceil(data.time * 20.0)


def test_a_replacement_is_a_removal_and_an_addition():
    assert replace_one(1.0, 1e-5, REPLACE) == (1.0, 1e-5)
    assert replace_one(0.5, 0.01, ADD_OR_REMOVE) == (1.0, 0.01 * (1.0 + math.exp(0.5)))
    asked = native(1.0, 1e-5, ADD_OR_REMOVE)
    assert replace_one(*asked, ADD_OR_REMOVE) == pytest.approx((1.0, 1e-5))
    assert native(1.0, 1e-5, REPLACE) == (1.0, 1e-5)


def test_the_conversion_is_reached():
    """A mechanism that says yes with chances of its own for 0, 1 and 2 records of a kind."""
    epsilon, delta = 0.7, 0.01
    yes = [0.05]
    for _ in range(2):
        yes.append(math.exp(epsilon) * yes[-1] + delta)
    for less, more in itertools.pairwise(yes):
        assert 1.0 - less <= math.exp(epsilon) * (1.0 - more) + delta
    twice, both = replace_one(epsilon, delta, ADD_OR_REMOVE)
    assert yes[2] == pytest.approx(math.exp(twice) * yes[0] + both)


def test_the_gradient_is_that_of_the_partial_likelihood(data):
    cox, coef = NoisyCox(*tied(data)), np.array([0.4, -0.7, 0.2])
    numerical = approx_fprime(coef, lambda at: cox.likelihood(at)[0], 1e-7)
    np.testing.assert_allclose(cox.likelihood(coef)[1], numerical, atol=1e-6)


def test_its_maximum_is_that_of_scikit_survival(data):
    X, event, time = tied(data)
    y = np.array(list(zip(event, time, strict=True)), dtype="?,f8")
    exact = CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).coef_
    np.testing.assert_allclose(NoisyCox(X, event, time).maximum(), exact, atol=1e-4)


def test_without_noise_it_climbs_to_the_maximum(data):
    cox = NoisyCox(*tied(data))
    coef = cox.fit(math.inf, 1e-5, np.random.default_rng(0), steps=4000, radius=10.0)
    np.testing.assert_allclose(coef, cox.maximum(), atol=1e-4)
    near = cox.fit(math.inf, 1e-5, np.random.default_rng(0), steps=4000, radius=0.1)
    assert np.linalg.norm(near) == pytest.approx(0.1)


def test_the_stated_sensitivity_holds_and_that_of_the_first_step_does_not():
    """One long record with a heavy weight moves the mean of every risk set; within radius 1."""
    n, coef = 500, np.array([1.0])
    event, time = np.arange(n) < n - 1, np.arange(n, dtype=float)
    rows = -np.ones((n, 1))
    other = rows.copy()
    other[-1] = 1.0
    cox, neighbour = NoisyCox(rows, event, time), NoisyCox(other, event, time)
    apart = np.linalg.norm(cox.likelihood(coef)[1] - neighbour.likelihood(coef)[1])
    assert cox.sensitivity(0.0 * coef) < apart < cox.sensitivity(coef)


def test_the_noise_is_that_of_a_renyi_guarantee(data):
    """One step from 0: what is added to half of the gradient."""
    cox, epsilon, delta = NoisyCox(*tied(data)), 2.0, 1e-4
    rng = np.random.default_rng(0)
    steps = [cox.fit(epsilon, delta, rng, 1, radius=1e9) for _ in range(2000)]
    spread = np.std(steps, ddof=1, axis=0) / 0.5
    # alpha S² / (2 sigma²) + log(1 / delta) / (alpha - 1), at its best alpha of two equal halves.
    alpha = 1.0 + 2.0 * math.log(1.0 / delta) / epsilon
    sigma = spread.mean()
    loss = alpha * cox.sensitivity(np.zeros(3)) ** 2 / (2.0 * sigma**2)
    assert loss + math.log(1.0 / delta) / (alpha - 1.0) == pytest.approx(epsilon, rel=0.05)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_polynomial_is_the_second_order_expansion_of_the_loss(family):
    def loss(z, d):
        grows = np.exp(z) if family == WEIBULL else (1 + d) * np.log1p(np.exp(z))
        return grows - d * z

    for d in (0, 1):
        for z in (-0.02, 0.02):
            expanded = loss(0.0, d) + LINEAR[family][d] * z + SQUARE[family][d] * z**2
            assert expanded == pytest.approx(loss(z, d), abs=2e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_the_minimiser_is_that_of_the_polynomial(family, data):
    w = np.column_stack([log_time(data.time, 1.0), np.ones(400), data.X / math.sqrt(3.0)])
    polynomial = Polynomial.of(family, w, data.event)
    theta = polynomial.minimum()
    fitted = LogLocationScale.fit(
        family, math.inf, data.X, data.event, data.time, 1.0, np.random.default_rng(0)
    )
    np.testing.assert_allclose(fitted.theta, theta)
    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    bounds = [(1e-3, None)] + [(None, None)] * 4
    found = minimize(polynomial, start, bounds=bounds, options={"ftol": 1e-13})
    np.testing.assert_allclose(theta, found.x, atol=2e-3)
    assert polynomial(theta) <= found.fun + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_risk_and_survival_agree(family, data):
    rng = np.random.default_rng(0)
    fitted = LogLocationScale.fit(family, 5.0, data.X, data.event, data.time, 1.0, rng)
    times = np.array([0.2, 0.5, 0.9])
    curves = fitted.survival(data.X, times)
    assert (np.diff(curves, axis=1) <= 0.0).all()
    order = np.argsort(fitted.risk(data.X))
    assert (np.diff(curves[order], axis=0) <= 1e-12).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_records_are_further_apart_than_the_sensitivity(family):
    p, largest = 2, 0.0
    corners = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (0.3, 0.0)])
    records = [(y, x, d) for y in (-1.0, 0.2, 1.0) for x in corners for d in (False, True)]
    found = []
    for y, x, d in records:
        w = np.array([[y, 1.0, *x / math.sqrt(p)]])
        one = Polynomial.of(family, w, np.array([d]))
        upper = np.triu(one.square + one.square.T)
        upper[np.diag_indices(2 + p)] = np.diag(one.square)
        found.append(np.concatenate([[one.events], one.linear, upper.ravel()]))
    for a in found:
        largest = max(largest, *(np.abs(a - b).sum() for b in found))
    assert largest <= sensitivity(family, p)
    assert max(np.abs(a).sum() for a in found) == pytest.approx(sensitivity(family, p) / 2.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_noise_that_drowns_the_records_leaves_a_model(family, data):
    for number in range(20):
        rng = np.random.default_rng(number)
        fitted = LogLocationScale.fit(family, 1e-3, data.X, data.event, data.time, 1.0, rng)
        assert np.isfinite(fitted.theta).all()
        assert fitted.theta[0] > 0.0


def test_exact_noise_is_less_than_that_by_renyi_divergence(data):
    """One step from 0 without a gradient: the noise alone, by the same draw."""
    X, event, time = tied(data)
    cox = NoisyCox(X, np.zeros_like(event), time)
    authors, least = (
        np.linalg.norm(
            cox.fit(1.0, 1e-6, np.random.default_rng(0), steps=1, radius=9.0, exact=exact)
        )
        for exact in (False, True)
    )
    assert 0.7 < least / authors < 0.9
