"""Non-private reference fits, against hand-made expansions and other libraries."""

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
    time, event = tied.y["time"], tied.y["event"]
    efron, breslow = (
        sm.PHReg(time, tied.X, event, ties=ties).fit().params for ties in ("efron", "breslow")
    )
    # In any target of two fields.
    y = np.array([(t, e) for e, t in tied.y], dtype=[("days", "f8"), ("died", "?")])
    coef = cox_coefficients(tied.X, y)
    np.testing.assert_allclose(coef, efron, atol=1e-8)
    assert fit_cox(tied.X, tied.y).score(tied.X, tied.y) > 0.6
    assert np.abs(coef - breslow).max() > 0.01


def test_relative_error(tied):
    cox = cox_coefficients(tied.X, tied.y)
    assert relative_error_to_cox(cox, tied.X, tied.y) == 0.0
    assert relative_error_to_cox(3 * cox, tied.X, tied.y) == pytest.approx(2.0)
    assert relative_error([0.0, 0.0], [3.0, -4.0]) == 1.0
    assert relative_error([9.0, 4.0], [3.0, -4.0]) == pytest.approx(2.0)


def expand_by_hand(X, event, time, max_time, q, basis):
    design, response = [], []
    for x, d, t in zip(X, event, time, strict=True):
        last = max(math.ceil(q * min(t, max_time) / max_time), 1)
        for s in range(1, last + 1):
            design.append([*basis[s - 1], *x])
            response.append(float(d and t <= max_time and s == last))
    return np.array(design), np.array(response)


@pytest.mark.parametrize(("q", "max_time"), [(1, 3.0), (3, 3.0), (7, 2.5), (12, 4.0), (40, 100.0)])
def test_person_period_against_a_loop(q, max_time):
    rng = np.random.default_rng(q)
    X = rng.normal(size=(60, 2))
    event = rng.random(60) < 0.5
    time = np.concatenate([rng.uniform(0, 5, 38), np.arange(20) / 4, [1e308, 1.0001]])
    basis = rng.normal(size=(q, 3))
    design, response = person_period(
        X, Surv.from_arrays(event, time), max_time=max_time, n_intervals=q, basis=basis
    )
    expected, outcome = expand_by_hand(X, event, time, max_time, q, basis)
    np.testing.assert_array_equal(design, expected)
    np.testing.assert_array_equal(response, outcome)


def test_refusals():
    plain = {"X": np.ones((2, 1)), "y": np.array([1.0, 2.0]), "max_time": 2.0, "n_intervals": 2}
    for name, value in (
        ("max_time", 0),
        ("max_time", np.inf),
        ("n_intervals", 2.5),
        ("n_intervals", 0),
        ("basis", np.ones((3, 1))),
        ("basis", np.full((2, 1), np.nan)),
        ("X", np.ones((3, 1))),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{name} "):
            person_period(**plain | {"basis": np.ones((2, 1))} | {name: value})
    for estimate, reference, message in (
        ([[1.0, 2.0]], [1.0, 2.0], "must be 1-D and have the same shape"),
        ([1.0], [1.0, 2.0], "must be 1-D and have the same shape"),
        ([1.0, np.nan], [1.0, 2.0], "must be finite"),
        ([1.0, 1.0], [1.0, np.inf], "must be finite"),
        ([1.0, 1.0], [0.0, 0.0], "reference not zero"),
        ([], [], "reference not zero"),
    ):
        with pytest.raises(ValueError, match=message):
            relative_error(estimate, reference)


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
