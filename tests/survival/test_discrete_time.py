"""DPDiscreteTimeSurvival: predictions, degenerate data, and what a fit may read, keep and say."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from skdpsurv import PrivacyAccountant, PrivacyLeakWarning, PublicInputWarning
from skdpsurv.datasets import make_discrete_time_survival
from tests.support.combinations import thinned
from tests.support.estimators import hazard

Y = np.dtype([("event", "?"), ("time", "f8")])
LINKS = ("logit", "cloglog", "probit")
METHODS = ("obj_pert", "out_pert")


def model(epsilon=1.0, **parameters):
    return hazard(epsilon, **{"max_time": 1.0, "n_intervals": 20, "random_state": 0, **parameters})


def target(event, time):
    y = np.empty(len(time), dtype=Y)
    y["event"], y["time"] = event, time
    return y


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(400, 2, event_rate=0.6, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(data.X, data.y)


class TestPredictions:
    def test_arrays_are_over_the_public_grid(self, data, fitted):
        np.testing.assert_allclose(fitted.predict(data.X), data.X @ fitted.coef_)
        np.testing.assert_allclose(fitted.unique_times_, np.arange(1, 21) / 20)
        survival = fitted.predict_survival_function(data.X, return_array=True)
        hazard = fitted.predict_cumulative_hazard_function(data.X, return_array=True)
        assert survival.shape == hazard.shape == (400, 20)
        np.testing.assert_allclose(hazard, -np.log(survival), atol=1e-10)
        assert (np.diff(survival, axis=1) <= 0).all()
        assert ((survival > 0) & (survival <= 1)).all()

    def test_step_functions_agree_with_arrays(self, data, fitted):
        """And start at zero, and end at the horizon."""
        for name, first in (("survival", 1.0), ("cumulative_hazard", 0.0)):
            predict = getattr(fitted, f"predict_{name}_function")
            array, functions = predict(data.X[:7], return_array=True), predict(data.X[:7])
            assert functions.shape == (7,)
            for row, function in zip(array, functions, strict=True):
                np.testing.assert_array_equal(function(fitted.unique_times_), row)
                assert [function(t) for t in (0.0, 0.0499)] == [first, first]
                assert function(0.05) != first
                assert function.domain == (0, 1.0)
                with pytest.raises(ValueError, match="within"):
                    function(1.01)

    def test_hazard_of_one_interval_is_the_inverse_link(self, data):
        for link, inverse in (
            ("logit", lambda eta: 1 / (1 + np.exp(-eta))),
            ("cloglog", lambda eta: 1 - np.exp(-np.exp(eta))),
        ):
            one = model(link=link, n_intervals=1, n_knots=1).fit(data.X, data.y)
            slope, shift = one.recalibration_.slope, one.recalibration_.at(1.0)
            assert (slope, shift) != (1.0, 0.0)
            eta = one.baseline_coef_[0] + shift + slope * one.predict(data.X)
            survival = one.predict_survival_function(data.X, return_array=True)[:, 0]
            np.testing.assert_allclose(survival, 1 - inverse(eta), rtol=1e-9)


class TestTargets:
    def test_the_unit_of_time_is_free(self, data, fitted):
        days = target(data.y["event"], 365.25 * data.y["time"])
        scaled = model(max_time=365.25).fit(data.X, days)
        np.testing.assert_allclose(scaled.coef_, fitted.coef_, atol=1e-6)
        np.testing.assert_allclose(scaled.unique_times_, 365.25 * fitted.unique_times_)

    def test_beyond_the_horizon_is_censored_at_it(self, data):
        late = data.y.copy()
        late["time"] *= 3.0
        cut = target(late["event"] & (late["time"] <= 1), np.minimum(late["time"], 1.0))
        one, other = model().fit(data.X, late), model().fit(data.X, cut)
        assert one.release_ == other.release_


X400 = np.random.default_rng(0).uniform(-1, 1, (400, 1))
#: Covariates, events and times.
AWKWARD = {
    "no events": (X400, False, np.linspace(0, 1, 400)),
    "only events": (X400, True, np.linspace(0, 1, 400)),
    "equal columns": (np.hstack([X400 * 0 + 1, X400 * 0, X400, X400]), True, np.full(400, 0.4)),
    "all at zero": (X400, True, np.zeros(400)),
    "all at the horizon": (X400, True, np.ones(400)),
    "all beyond": (X400, True, np.full(400, 7.0)),
    "separated": (X400, X400[:, 0] > 0, np.full(400, 0.5)),
    "one event": (np.full((1, 3), 0.5), True, np.full(1, 0.3)),
    "two censored": (np.full((2, 3), 0.5), False, np.full(2, 0.3)),
    "enormous": (1e300 * X400, X400[:, 0] < 0, np.linspace(0, 1e300, 400)),
}


@pytest.mark.parametrize(
    ("case", "way", "epsilon"),
    thinned(AWKWARD, itertools.product(METHODS, LINKS), [0.01, 1.0, 50.0, np.inf]),
    ids=str,
)
def test_every_data_set_gets_a_fit(case, way, epsilon):
    """What depends on data must neither raise nor warn: it would tell about the records."""
    if case == "enormous" and math.isinf(epsilon):
        return  # maximum likelihood takes columns as they are
    (X, event, time), (method, link) = AWKWARD[case], way
    one = model(epsilon, link=link, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        one.fit(X, target(event, time))
    with np.errstate(over="ignore"):
        survival = one.predict_survival_function(X[:5], return_array=True)
    assert np.isfinite(one.coef_).all()
    assert np.isfinite(one.baseline_coef_).all()
    assert ((survival >= 0) & (survival <= 1)).all()


GOOD_X, GOOD_Y = np.full((6, 2), 0.5), target([True, False] * 3, np.linspace(0.1, 0.9, 6))


BAD_PARAMETERS = [
    ("epsilon", [{"epsilon": value} for value in (0.0, -1.0, np.nan, "1", True)]),
    ("max_time", [{"max_time": value} for value in (None, 0.0, np.inf)]),
    ("method", [{"method": "sgld"}]),
    ("link", [{"link": "log"}, {"published": True, "link": "probit"}]),
    ("n_intervals", [{"n_intervals": value} for value in (0, 20.0)]),
    ("n_knots", [{"n_knots": value} for value in (0, 21, "3")]),
    ("n_knots", [{"published": True, "n_knots": 60, "n_intervals": 60, "epsilon": 0.1}]),
    ("data_norm", [{"data_norm": value} for value in (0.0, np.inf, "max")]),
    ("alpha", [{"alpha": value} for value in (-0.1, np.inf)]),
    ("max_cumulative_hazard", [{"max_cumulative_hazard": value} for value in (0.0, "max")]),
    ("max_cumulative_hazard", [{"max_cumulative_hazard": None, "link": "cloglog"}]),
    ("prior_event_rate", [{"prior_event_rate": value} for value in (0.0, 1.0)]),
    ("pilot_share", [{"pilot_share": value} for value in (1.0, -0.1)]),
    ("recalibration_share", [{"recalibration_share": value} for value in (1.0, -0.1)]),
    ("pilot_share, recal", [{"recalibration_share": 0.5, "pilot_share": 0.5}]),
    ("random_state", [{"random_state": value} for value in (-1, np.random.RandomState(0))]),
]
#: Public numbers that doubles cannot work with, whatever the records are. n times epsilon allows a
#: first look where its share of epsilon is tiny.
EXTREMES = [
    {"epsilon": 1e-300},
    {"epsilon": 5e-324},
    {"epsilon": 1e300},
    {"alpha": 1e300},
    {"alpha": 1e308},
    {"data_norm": 1e-320},
    {"data_norm": 1e-300},
    {"data_norm": 1e300},
    {"max_cumulative_hazard": 1e300, "link": "cloglog"},
    {"max_cumulative_hazard": 1e300, "link": "probit"},
    {"pilot_share": 1e-300, "epsilon": 1e3},
    {"pilot_share": 1e-17, "epsilon": 1e3},
    {"epsilon": 1e-300, "published": True},
    {"alpha": 1e300, "published": True},
]


class TestRefusals:
    def check(self, X, y, parameters, message, budget=10.0):
        accountant = PrivacyAccountant(budget, rehearsal=True)
        one = model(**parameters, accountant=accountant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((ValueError, TypeError), match=message) as caught:
                one.fit(X, y)
        assert len(accountant.entries()) == 0
        assert not hasattr(one, "release_")
        return str(caught.value)

    @pytest.mark.parametrize(("name", "cases"), BAD_PARAMETERS)
    def test_parameters(self, name, cases):
        """Before any record is read."""
        for parameters in cases:
            self.check(np.full((6, 2), np.nan), None, parameters, f"^{name}")

    @pytest.mark.parametrize("parameters", EXTREMES)
    def test_extreme_numbers(self, parameters):
        """Before the charge, not as an overflow somewhere, and the same whatever the records."""
        worst = 1e200 * GOOD_X, target(True, np.full(6, 1e9))
        for method in METHODS:
            given = {**parameters, "method": method}
            text = self.check(GOOD_X, GOOD_Y, given, "too extreme", math.inf)
            assert text == self.check(*worst, given, "", math.inf)
            others = () if "published" in parameters else ("max_cumulative_hazard", "pilot_share")
            for name in ("epsilon", "alpha", "data_norm", *others):
                assert name in text


class TestMuchEpsilon:
    """Little noise, not a division by a ridge that has vanished."""

    @pytest.mark.parametrize(
        ("epsilon", "link", "method"), thinned([500.0, 3e4, 1e6], LINKS, METHODS)
    )
    def test_fit_is_finite_and_near_the_one_without_privacy(self, data, epsilon, link, method):
        accountant = PrivacyAccountant(rehearsal=True)
        parameters = {"link": link, "method": method, "data_norm": 1.5}
        one = model(epsilon, accountant=accountant, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PublicInputWarning)
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            one.fit(data.X, data.y)
        assert np.isfinite(one.baseline_coef_).all()
        exact = model(np.inf, **parameters).fit(data.X, data.y)
        # The ridge of output perturbation falls with the root of epsilon only.
        atol = 0.25 if method == "out_pert" and epsilon < 1e3 else 0.05
        np.testing.assert_allclose(one.coef_, exact.coef_, atol=atol)
        assert accountant.rehearsed() == epsilon


class TestStatus:
    def test_the_parts_of_epsilon_add_up(self):
        """Whether there was a first look or not."""
        for n, method in itertools.product([50, 5000], METHODS):
            X, time = np.zeros((n, 2)), np.full(n, 0.5)
            one = model(2.0, method=method, pilot_share=0.15)
            inputs = one.fit(X, time).guarantee_.public_inputs
            parts = [inputs[f"epsilon_{part}"] for part in ("center", "fit", "recalibration")]
            assert sum(parts) == pytest.approx(2.0, rel=1e-12)
            looks = n * 2.0 >= 200
            assert parts[0] == (pytest.approx(0.3) if looks else 0.0)
            assert parts[2] == (pytest.approx(0.1 * 2.0) if looks else 0.0)


@pytest.mark.parametrize(("method", "rows"), thinned(METHODS, [37, 1000]))
def test_blocks_do_not_change_the_release(monkeypatch, method, rows):
    """More records than fit a block, also with the solver's pilot on a thinned sample."""
    data = make_discrete_time_survival(2500, 2, random_state=3)
    whole = model(method=method).fit(data.X, data.y)
    monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", rows)
    parts = model(method=method).fit(data.X, data.y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(parts.baseline_coef_, whole.baseline_coef_, atol=1e-5)
