"""Non-private reference fits, against hand-made expansions and other libraries."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from lifelines import WeibullFitter
from sksurv.util import Surv

import skdpsurv.reference
from skdpsurv import DPWeibullFitter
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.reference import (
    cox_coefficients,
    fit_cox,
    fit_weibull,
    person_period,
    relative_error,
    relative_error_to_cox,
)


@pytest.fixture(scope="module")
def tied():
    """Data with many tied times, so that the handling of ties matters."""
    data = make_discrete_time_survival(400, 2, event_rate=0.6, random_state=3)
    data.y["time"] = np.ceil(12 * data.y["time"])
    return data


def test_cox_is_efron_without_penalty(tied):
    efron, breslow = (
        sm.PHReg(tied.y["time"], tied.X, tied.y["event"], ties=ties).fit().params
        for ties in ("efron", "breslow")
    )
    coef = cox_coefficients(tied.X, tied.y)
    np.testing.assert_allclose(coef, efron, atol=1e-8)
    assert np.abs(coef - breslow).max() > 0.01


def test_cox_takes_any_survival_target(tied):
    other = np.empty(len(tied.y), dtype=[("days", "f8"), ("died", "?")])
    other["days"], other["died"] = tied.y["time"], tied.y["event"]
    model = fit_cox(tied.X, other)
    np.testing.assert_array_equal(model.coef_, cox_coefficients(tied.X, tied.y))
    assert model.score(tied.X, tied.y) > 0.6


def test_relative_error_to_cox(tied):
    cox = cox_coefficients(tied.X, tied.y)
    assert relative_error_to_cox(cox, tied.X, tied.y) == 0.0
    assert relative_error_to_cox(3 * cox, tied.X, tied.y) == pytest.approx(2.0)


def test_relative_error_by_hand():
    reference = [3.0, -4.0]
    assert relative_error(reference, reference) == 0.0
    assert relative_error([0.0, 0.0], reference) == 1.0
    assert relative_error([9.0, 4.0], reference) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("estimate", "reference", "message"),
    [
        ([[1.0, 2.0]], [1.0, 2.0], "must be 1-D and have the same shape"),
        ([1.0], [1.0, 2.0], "must be 1-D and have the same shape"),
        (1.0, [1.0, 2.0], "must be 1-D and have the same shape"),
        ([1.0, np.nan], [1.0, 2.0], "must be finite"),
        ([1.0, 1.0], [1.0, np.inf], "must be finite"),
        ([1.0, 1.0], [0.0, 0.0], "reference not zero"),
        ([], [], "reference not zero"),
    ],
)
def test_relative_error_refuses(estimate, reference, message):
    with pytest.raises(ValueError, match=message):
        relative_error(estimate, reference)


def expand_by_hand(X, event, time, max_time, q, basis):
    design, response = [], []
    for x, d, t in zip(X, event, time, strict=True):
        last = min(max(math.ceil(q * t / max_time), 1), q)
        for s in range(1, last + 1):
            design.append([*basis[s - 1], *x])
            response.append(float(d and t <= max_time and s == last))
    return np.array(design), np.array(response)


@pytest.mark.parametrize(("q", "max_time"), [(1, 3.0), (7, 2.5), (12, 4.0), (40, 100.0)])
def test_person_period_against_a_loop(q, max_time):
    rng = np.random.default_rng(q)
    X = rng.normal(size=(60, 2))
    event = rng.random(60) < 0.5
    time = np.concatenate([rng.uniform(0, 5, 40), np.arange(20) / 4])
    basis = rng.normal(size=(q, 3))
    design, response = person_period(
        X, Surv.from_arrays(event, time), max_time=max_time, n_intervals=q, basis=basis
    )
    expected, outcome = expand_by_hand(X, event, time, max_time, q, basis)
    np.testing.assert_array_equal(design, expected)
    np.testing.assert_array_equal(response, outcome)


@pytest.mark.parametrize(
    ("time", "event", "expected"),
    [
        (0.0, True, [1]),
        (1.0, True, [1]),
        (1.0001, True, [0, 1]),
        (1.0001, False, [0, 0]),
        (3.0, True, [0, 0, 1]),
        (3.0001, True, [0, 0, 0]),
        (1e308, True, [0, 0, 0]),
    ],
)
def test_person_period_at_the_edges_of_the_grid(time, event, expected):
    y = Surv.from_arrays([event], [time])
    design, response = person_period(
        [[9.0]], y, max_time=3, n_intervals=3, basis=[[1.0], [2.0], [3.0]]
    )
    np.testing.assert_array_equal(response, expected)
    np.testing.assert_array_equal(design, [[s + 1, 9] for s in range(len(expected))])


def test_grouped_proportional_hazards_are_the_cloglog_model():
    """Without dropout the cloglog fit estimates the true coefficients and baseline exactly.

    Each of 8 estimates is within 5.7 standard errors of the truth: false alarm < 1e-7 for normal
    estimates.
    """
    q = 5
    data = make_discrete_time_survival(
        3000, 3, baseline="rising", event_rate=0.6, censoring_rate=0.0, random_state=5
    )
    design, response = person_period(
        data.X, data.y, max_time=data.max_time, n_intervals=q, basis=np.eye(q)
    )
    link = sm.families.links.CLogLog()
    fit = sm.GLM(response, design, family=sm.families.Binomial(link=link)).fit()
    edges = data.cumulative_hazard * np.linspace(0, 1, q + 1) ** data.shape
    truth = np.concatenate([np.log(np.diff(edges)), data.coef])
    np.testing.assert_array_less(np.abs(fit.params - truth), 5.7 * fit.bse)
    assert fit.bse[q:].max() < 0.06


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_time": 0}, "max_time must be a positive finite number, got 0"),
        ({"max_time": np.inf}, "max_time must be a positive finite number, got inf"),
        ({"n_intervals": 2.5}, "n_intervals must be a positive integer, got float"),
        ({"n_intervals": 0}, "n_intervals must be a positive integer, got 0"),
        ({"basis": np.ones((3, 1))}, r"basis must be finite and of shape \(2, n_basis\)"),
        ({"basis": np.full((2, 1), np.nan)}, "basis must be finite"),
        ({"X": np.ones((3, 1))}, "X and y must have the same number of records"),
    ],
)
def test_person_period_refuses(change, message):
    arguments = {
        "X": np.ones((2, 1)),
        "y": np.array([1.0, 2.0]),
        "max_time": 2.0,
        "n_intervals": 2,
        "basis": np.ones((2, 1)),
    }
    with pytest.raises((TypeError, ValueError), match=message):
        person_period(**arguments | change)


def test_every_docstring_says_non_private_first():
    module = skdpsurv.reference
    for one in (module, *(getattr(module, name) for name in module.__all__)):
        assert "NON-PRIVATE" in one.__doc__.splitlines()[0], one


def test_weibull_is_that_of_the_clipped_times():
    rng = np.random.default_rng(0)
    y = Surv.from_arrays(rng.random(300) < 0.7, rng.weibull(1.5, 300))
    fitter = fit_weibull(y, max_time=2.0, omega=20.0)
    time = np.minimum(y["time"], 2.0)
    expected = WeibullFitter().fit(time, y["event"] & (y["time"] <= 2.0))
    assert fitter.rho_ == expected.rho_
    assert fitter.lambda_ == expected.lambda_
    # With events before the least time, the fit without privacy, which has its own way to it.
    y["time"][:9], y["event"][:9] = 0.0, [True, False, True] * 3
    fitter = fit_weibull(y, max_time=2.0)
    ours = DPWeibullFitter(np.inf, max_time=2.0).fit(y["time"], y["event"])
    assert fitter.rho_ == pytest.approx(ours.rho_, rel=1e-4)
    assert fitter.lambda_ == pytest.approx(ours.lambda_, rel=1e-4)
