"""DPDiscreteTimeSurvival: predictions, degenerate data, and what a fit may read, keep and say."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skdpsurv import BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, PublicInputWarning
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.mechanisms import perturbation
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
    def test_risk_is_the_covariates_part(self, data, fitted):
        risk = fitted.predict(data.X)
        assert risk.shape == (400,)
        np.testing.assert_allclose(risk, data.X @ fitted.coef_)

    def test_higher_risk_is_lower_survival(self, data, fitted):
        survival = fitted.predict_survival_function(data.X, return_array=True)
        order = np.argsort(fitted.predict(data.X))
        assert (np.diff(survival[order], axis=0) <= 1e-12).all()

    def test_arrays_are_over_the_public_grid(self, data, fitted):
        np.testing.assert_allclose(fitted.unique_times_, np.arange(1, 21) / 20)
        survival = fitted.predict_survival_function(data.X, return_array=True)
        hazard = fitted.predict_cumulative_hazard_function(data.X, return_array=True)
        assert survival.shape == hazard.shape == (400, 20)
        np.testing.assert_allclose(hazard, -np.log(survival), atol=1e-10)
        assert (np.diff(survival, axis=1) <= 0).all()
        assert ((survival > 0) & (survival <= 1)).all()

    @pytest.mark.parametrize("name", ["survival", "cumulative_hazard"])
    def test_step_functions_agree_with_arrays(self, data, fitted, name):
        predict = getattr(fitted, f"predict_{name}_function")
        array, functions = predict(data.X[:7], return_array=True), predict(data.X[:7])
        assert functions.shape == (7,)
        for row, function in zip(array, functions, strict=True):
            np.testing.assert_array_equal(function(fitted.unique_times_), row)

    def test_step_functions_start_at_zero_and_end_at_the_horizon(self, data, fitted):
        survival = fitted.predict_survival_function(data.X[:1])[0]
        hazard = fitted.predict_cumulative_hazard_function(data.X[:1])[0]
        for t in (0.0, 0.01, 0.0499):
            assert survival(t) == 1.0
            assert hazard(t) == 0.0
        assert survival(0.05) < 1.0
        assert survival.domain == (0, 1.0)
        assert (
            survival(1.0) == fitted.predict_survival_function(data.X[:1], return_array=True)[0, -1]
        )
        with pytest.raises(ValueError, match="within"):
            survival(1.01)

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

    def test_before_fit(self, data):
        for name in ("predict", "predict_survival_function", "predict_cumulative_hazard_function"):
            with pytest.raises(NotFittedError):
                getattr(model(), name)(data.X)

    def test_extreme_rows_give_probabilities(self, fitted):
        X = np.array([[1e6, 0.0], [-1e6, 0.0], [1e300, -1e300]])
        with np.errstate(over="ignore", invalid="ignore"):
            survival = fitted.predict_survival_function(X[:2], return_array=True)
        assert ((survival >= 0) & (survival <= 1)).all()


class TestTargets:
    def test_field_names_and_order_are_free(self, data, fitted):
        other = np.empty(400, dtype=[("weeks", "f8"), ("relapse", "?")])
        other["weeks"], other["relapse"] = data.y["time"], data.y["event"]
        np.testing.assert_array_equal(model().fit(data.X, other).coef_, fitted.coef_)

    def test_plain_times_are_all_events(self, data):
        plain = model().fit(data.X, data.y["time"])
        events = model().fit(data.X, target(True, data.y["time"]))
        np.testing.assert_array_equal(plain.coef_, events.coef_)

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

    def test_long_rows_are_scaled_to_the_public_norm(self, data):
        long = 10.0 * data.X / np.linalg.norm(data.X, axis=1)[:, None]
        kwargs = {"data_norm": 1.0, "pilot_share": 0.0}
        one, other = model(**kwargs).fit(long, data.y), model(**kwargs).fit(10 * long, data.y)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


@pytest.mark.parametrize(
    ("way", "epsilon"),
    thinned(itertools.product(METHODS, LINKS), [0.01, 1.0, 50.0, np.inf]),
    ids=str,
)
class TestEveryDataSetGetsAFit:
    """What depends on data must not raise: a failure would tell about the records."""

    def fits(self, X, event, time, way, epsilon):
        X = np.asarray(X, dtype=float)
        method, link = way
        one = model(epsilon, link=link, method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning would tell as much as an error
            warnings.simplefilter("ignore", PublicInputWarning)
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            one.fit(X, target(event, np.asarray(time)))
        with np.errstate(over="ignore"):
            survival = one.predict_survival_function(X[:5], return_array=True)
        assert np.isfinite(one.coef_).all()
        assert np.isfinite(one.baseline_coef_).all()
        assert ((survival >= 0) & (survival <= 1)).all()

    @pytest.mark.parametrize("event", [False, True])
    def test_no_events_or_only_events(self, data, event, way, epsilon):
        self.fits(data.X, event, data.y["time"], way, epsilon)

    def test_constant_and_equal_columns(self, data, way, epsilon):
        x = data.X[:, :1]
        X = np.hstack([np.ones((400, 1)), np.zeros((400, 1)), x, x])
        self.fits(X, data.y["event"], data.y["time"], way, epsilon)

    @pytest.mark.parametrize("time", [0.0, 1.0, 7.0])
    def test_all_exits_at_once(self, data, time, way, epsilon):
        self.fits(data.X, True, np.full(400, time), way, epsilon)

    def test_separated_records(self, data, way, epsilon):
        self.fits(data.X, data.X[:, 0] > 0, np.full(400, 0.5), way, epsilon)

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.parametrize("event", [False, True])
    def test_one_or_two_records(self, n, event, way, epsilon):
        self.fits(np.full((n, 3), 0.5), event, np.full(n, 0.3), way, epsilon)

    def test_enormous_values(self, data, way, epsilon):
        if math.isinf(epsilon):
            return  # maximum likelihood takes columns as they are
        self.fits(1e300 * data.X, data.y["event"], 1e300 * data.y["time"], way, epsilon)


#: Rows of which nothing but their shape can be looked at without a refusal.
UNREADABLE = np.full((6, 2), np.nan)

GOOD_X, GOOD_Y = np.full((6, 2), 0.5), target([True, False] * 3, np.linspace(0.1, 0.9, 6))
SWAPPED = np.array([(0.3, 1.0), (2.5, 0.0)] * 3, dtype=[("event", "f8"), ("time", "f8")])


def changed(array, value):
    array = array.copy()
    array.flat[1] = value
    return array


def time_of(value):
    y = GOOD_Y.copy()
    y["time"][2] = value
    return y


BAD_PARAMETERS = [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"max_time": None}, "max_time"),
    ({"max_time": 0.0}, "max_time"),
    ({"max_time": np.inf}, "max_time"),
    ({"method": "sgld"}, "method"),
    ({"method": "svm"}, "method"),
    ({"link": "log"}, "link"),
    ({"published": True, "link": "probit"}, "link"),
    ({"published": True, "n_knots": 60, "n_intervals": 60, "epsilon": 0.1}, "n_knots"),
    ({"n_intervals": 0}, "n_intervals"),
    ({"n_knots": 0}, "n_knots"),
    ({"n_knots": 21}, "n_knots"),
    ({"data_norm": 0.0}, "data_norm"),
    ({"data_norm": np.inf}, "data_norm"),
    ({"data_norm": "max"}, "data_norm"),
    ({"alpha": -0.1}, "alpha"),
    ({"alpha": np.inf}, "alpha"),
    ({"max_cumulative_hazard": 0.0}, "max_cumulative_hazard"),
    ({"max_cumulative_hazard": "max"}, "max_cumulative_hazard"),
    ({"max_cumulative_hazard": None, "link": "cloglog"}, "max_cumulative_hazard"),
    ({"prior_event_rate": 0.0}, "prior_event_rate"),
    ({"prior_event_rate": 1.0}, "prior_event_rate"),
    ({"pilot_share": 1.0}, "pilot_share"),
    ({"pilot_share": -0.1}, "pilot_share"),
    ({"recalibration_share": 1.0}, "recalibration_share"),
    ({"recalibration_share": -0.1}, "recalibration_share"),
    ({"recalibration_share": 0.5, "pilot_share": 0.5}, "pilot_share, recalibration_share and"),
    ({"random_state": -1}, "random_state"),
]
BAD_TYPES = [
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"n_intervals": 20.0}, "n_intervals"),
    ({"n_knots": "3"}, "n_knots"),
    ({"random_state": np.random.RandomState(0)}, "random_state"),
]
BAD_DATA = [
    (changed(GOOD_X, np.nan), GOOD_Y, "X"),
    (changed(GOOD_X, np.inf), GOOD_Y, "X"),
    (GOOD_X[:5], GOOD_Y, "X and y"),
    (GOOD_X[:0], GOOD_Y[:0], "sample"),
    (GOOD_X[:, :0], GOOD_Y, "feature"),
    (GOOD_X[0], GOOD_Y, "X"),
    (GOOD_X[None], GOOD_Y, "2D"),
    (GOOD_X.astype(complex), GOOD_Y, "X"),
    (np.ma.MaskedArray(GOOD_X, mask=GOOD_X > 0.5), GOOD_Y, "X must not be a masked array"),
    (np.full((6, 2), "a"), GOOD_Y, "X"),
    (GOOD_X, None, "y"),
    (GOOD_X, GOOD_Y[:, None], "y"),
    (GOOD_X, GOOD_Y["time"][:, None], "y"),
    (GOOD_X, np.column_stack([GOOD_Y["event"], GOOD_Y["time"]]), "y"),
    (GOOD_X, SWAPPED, "event field of y"),
    (GOOD_X, np.array([("a", 1.0)] * 6, dtype=[("event", "U1"), ("time", "f8")]), "y"),
    (GOOD_X, np.array([(1, 1, 1)] * 6, dtype=[("a", "?"), ("b", "f8"), ("c", "f8")]), "y"),
    (GOOD_X, time_of(-1.0), "times of y"),
    (GOOD_X, time_of(np.nan), "times of y"),
    (GOOD_X, time_of(np.inf), "times of y"),
    (GOOD_X, np.array(["a"] * 6), "y"),
    (GOOD_X, np.ma.array(GOOD_Y), "y must not be a masked array"),
    (GOOD_X, np.ma.array(GOOD_Y, mask=[False] * 5 + [True]), "y must not be a masked array"),
    (GOOD_X, np.ma.array(GOOD_Y["time"], mask=[True] * 6), "y must not be a masked array"),
    (GOOD_X, np.zeros(6, dtype=[("event", "?"), ("time", "f8", 2)]), "y must be 1-D"),
    (GOOD_X, np.zeros(6, dtype=[("event", "?"), ("time", "f8", (1,))]), "y must be 1-D"),
    (GOOD_X, np.zeros(6, dtype=[("event", "?", 2), ("time", "f8")]), "y must be 1-D"),
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
    """A refused input costs nothing, and the message shows no value of a record."""

    def check(self, X, y, parameters, error, message, budget=10.0):
        accountant = PrivacyAccountant(budget, rehearsal=True)
        one = model(**parameters, accountant=accountant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(error, match=message) as caught:
                one.fit(X, y)
        assert len(accountant.entries()) == 0
        assert len(accountant.entries()) == 0
        assert not hasattr(one, "release_")
        return str(caught.value)

    def test_the_good_input_is_good(self):
        accountant = PrivacyAccountant(10.0, rehearsal=True)
        model(accountant=accountant).fit(GOOD_X, GOOD_Y)
        assert accountant.rehearsed() == 1.0

    @pytest.mark.parametrize(("parameters", "name"), BAD_PARAMETERS)
    def test_values_of_parameters(self, parameters, name):
        assert self.check(GOOD_X, GOOD_Y, parameters, ValueError, name).startswith(name)

    @pytest.mark.parametrize(("parameters", "name"), BAD_TYPES)
    def test_types_of_parameters(self, parameters, name):
        assert self.check(GOOD_X, GOOD_Y, parameters, TypeError, name).startswith(name)

    @pytest.mark.parametrize("parameters", EXTREMES)
    @pytest.mark.parametrize("method", METHODS)
    def test_extreme_numbers(self, parameters, method):
        """Before the charge, and not as an overflow somewhere."""
        parameters = {**parameters, "method": method}
        text = self.check(GOOD_X, GOOD_Y, parameters, ValueError, "too extreme", math.inf)
        others = () if "published" in parameters else ("max_cumulative_hazard", "pilot_share")
        for name in ("epsilon", "alpha", "data_norm", *others):
            assert name in text

    @pytest.mark.parametrize("parameters", EXTREMES)
    def test_extreme_numbers_are_refused_whatever_the_records(self, parameters):
        """The refusal is made of public numbers: worst-case records meet the same one."""
        X, y = 1e200 * GOOD_X, target(True, np.full(6, 1e9))
        text = self.check(X, y, parameters, ValueError, "too extreme", math.inf)
        assert text == self.check(GOOD_X, GOOD_Y, parameters, ValueError, "", math.inf)

    @pytest.mark.parametrize("link", ["logit", "cloglog"])
    def test_an_extreme_prior(self, link):
        """Its hazard per interval is 0 in doubles, and the centre of the fit infinite."""
        parameters = {"prior_event_rate": 5e-324, "epsilon": 100.0, "link": link}
        self.check(GOOD_X, GOOD_Y, parameters, ValueError, "prior_event_rate", math.inf)

    def test_type_of_accountant(self):
        with pytest.raises(TypeError, match="accountant"):
            model(accountant=10.0).fit(GOOD_X, GOOD_Y)

    @pytest.mark.parametrize(("X", "y", "message"), BAD_DATA)
    def test_data(self, X, y, message):
        self.check(X, y, {}, ValueError, message)

    @pytest.mark.parametrize(("parameters", "name"), BAD_PARAMETERS[:-1])
    def test_parameters_are_refused_before_any_record_is_read(self, parameters, name):
        if "published" in parameters:
            return  # needs n
        with pytest.raises(ValueError, match=name):
            model(**parameters).fit(UNREADABLE, None)

    def test_messages_show_no_value_of_a_record(self):
        secret = 0.73123456
        for X, y in (
            (changed(changed(GOOD_X, np.nan) * 0 + secret, np.nan), GOOD_Y),
            (np.full(6, secret), GOOD_Y),
            (GOOD_X + secret * 1j, GOOD_Y),
            (np.full((6, 2), "0.73123456x"), GOOD_Y),
            (pd.DataFrame({"a": ["0.73123456x"] * 6}), GOOD_Y),
            (GOOD_X, time_of(-secret)),
            (GOOD_X, np.array([(secret, 1.0)] * 6, dtype=[("event", "f8"), ("time", "f8")])),
        ):
            text = self.check(X, y, {}, ValueError, "")
            assert "0.7312" not in text
            assert "1.7312" not in text


class TestMuchEpsilon:
    """Little noise, not a division by a ridge that has vanished."""

    @pytest.mark.parametrize("epsilon", [500.0, 3e4, 1e6])
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("method", METHODS)
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

    def test_the_degenerate_data_sets_too(self):
        for epsilon in (500.0, 3e4, 1e6):
            for event in (True, False):
                one = model(epsilon).fit(np.ones((300, 2)), target(event, np.full(300, 0.5)))
                assert np.isfinite(one.coef_).all()
                assert np.isfinite(one.baseline_coef_).all()


class TestBudget:
    def test_no_record_is_read_when_the_budget_is_spent(self):
        accountant = PrivacyAccountant(1.0, rehearsal=True)
        one = model(0.8, accountant=accountant)
        one.fit(GOOD_X, GOOD_Y)
        with pytest.raises(BudgetExceededError):
            one.fit(UNREADABLE, None)
        assert accountant.rehearsed() == pytest.approx(0.8)

    def test_the_stand_in_cannot_be_read(self):
        """Else the test above would test nothing."""
        with pytest.raises(ValueError, match="NaN"):
            model().fit(UNREADABLE, GOOD_Y)

    def test_a_failure_after_the_charge_stays_charged(self, monkeypatch):
        accountant = PrivacyAccountant(10.0, rehearsal=True)

        def fail(*args):
            raise MemoryError

        monkeypatch.setattr(perturbation, "perturb", fail)
        with pytest.raises(MemoryError):
            model(accountant=accountant).fit(GOOD_X, GOOD_Y)
        assert accountant.rehearsed() == 1.0

    def test_the_ledger_names_estimator_and_mechanism(self):
        accountant = PrivacyAccountant(10.0, rehearsal=True)
        model(accountant=accountant).fit(GOOD_X, GOOD_Y)
        entry = accountant.entries().iloc[0]
        assert entry["estimator"] == "DPDiscreteTimeSurvival"
        assert "objective perturbation" in entry["mechanism"]
        assert entry["status"] == "seeded"


class TestStatus:
    def test_guarantee_lists_what_it_takes_as_public(self, fitted):
        inputs = fitted.guarantee_.public_inputs
        assert fitted.guarantee_.delta == 0
        assert fitted.guarantee_.neighbours == "replace-one"
        for name in ("n_records", "max_time", "data_norm", "max_cumulative_hazard"):
            assert name in inputs
        assert inputs["n_records"] == 400
        assert inputs["data_norm"] == pytest.approx(math.sqrt(2) / 2)

    @pytest.mark.parametrize("n", [50, 5000])
    @pytest.mark.parametrize("method", METHODS)
    def test_the_parts_of_epsilon_add_up(self, method, n):
        """Whether there was a first look or not."""
        X, time = np.zeros((n, 2)), np.full(n, 0.5)
        one = model(2.0, method=method, pilot_share=0.15)
        inputs = one.fit(X, time).guarantee_.public_inputs
        parts = [inputs[f"epsilon_{part}"] for part in ("center", "fit", "recalibration")]
        assert sum(parts) == pytest.approx(2.0, rel=1e-12)
        looks = n * 2.0 >= 200
        assert parts[0] == (pytest.approx(0.3) if looks else 0.0)
        assert parts[2] == (pytest.approx(0.1 * 2.0) if looks else 0.0)


class TestWhatLeaves:
    def test_a_release_is_not_changed_through_the_model(self, data):
        one = model().fit(data.X, data.y)
        before = one.release_.to_json()
        one.coef_[:] = 0
        assert one.release_.to_json() == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [37, 1000])
def test_blocks_do_not_change_the_release(monkeypatch, method, rows):
    """More records than fit a block, also with the solver's pilot on a thinned sample."""
    data = make_discrete_time_survival(2500, 2, random_state=3)
    whole = model(method=method).fit(data.X, data.y)
    monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", rows)
    parts = model(method=method).fit(data.X, data.y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(parts.baseline_coef_, whole.baseline_coef_, atol=1e-5)


def test_order_of_records_does_not_matter(data):
    order = np.random.default_rng(0).permutation(400)
    one, other = model().fit(data.X, data.y), model().fit(data.X[order], data.y[order])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_fit_does_not_change_its_input(data):
    X, y = 5 * data.X, data.y.copy()
    before = X.copy(), y.copy()
    model().fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_noise_falls_with_epsilon(data):
    def spread(epsilon):
        one = model(epsilon, method="out_pert")
        fits = [one.set_params(random_state=i).fit(data.X, data.y).coef_ for i in range(20)]
        return np.std(fits, axis=0).mean()

    assert 2 * spread(10.0) < spread(0.3)


def test_refitting_forgets_the_first_fit(data):
    one = model().fit(np.hstack([data.X, data.X]), data.y)
    one.fit(data.X, data.y)
    assert one.n_features_in_ == 2
    assert one.release_ == model().fit(data.X, data.y).release_
