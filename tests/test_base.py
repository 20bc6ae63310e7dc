"""What every private estimator does around its mechanism, and in which order."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.utils.validation import validate_data

from skdpsurv import (
    BudgetExceededError,
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    Release,
)
from skdpsurv.base import PrivateEstimator
from skdpsurv.data.shape import public_shape
from skdpsurv.dp.checks import optional, positive
from skdpsurv.dp.plan import Mechanism, Plan
from skdpsurv.model_selection import PrivateSearchCV


@dataclass(frozen=True, eq=False)
class Halves(Mechanism):
    n_features: int
    scale: float
    price: float

    name = "toy"
    proof = ""

    def scales(self):
        return [self.scale]

    def run(self, known, records, source):
        return {"coef": [0.5] * self.n_features}


class Toy(PrivateEstimator):
    """The smallest estimator that keeps the order of the base class."""

    _rules: ClassVar = {"max_time": optional(positive()), "scale": positive()}

    def __init__(
        self, epsilon=1.0, *, max_time=None, scale=1.0, random_state=None, accountant=None
    ):
        self.epsilon = epsilon
        self.max_time = max_time
        self.scale = scale
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X, y=None):
        return self._fit(X, y)

    def _shape(self, X, y):
        return public_shape(self, X)

    def _plan(self, shape):
        epsilon = float(self.epsilon)
        return Plan(Halves(shape.n_features, self.scale, epsilon), epsilon)

    def _read(self, shape, X, y):
        return validate_data(self, X, reset=False)

    def _release_parameters(self, shape):
        return {"max_time": self.max_time}

    def _set_fitted(self, release):
        self.coef_ = np.array(release.values["coef"])


class Other(Toy):
    pass


X = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("epsilon", "seed", "status"),
    [(1.0, None, "proved"), (1.0, 0, "seeded"), (np.inf, None, "none"), (np.inf, 0, "none")],
)
def test_status(epsilon, seed, status):
    assert Toy(epsilon, random_state=seed).fit(X).guarantee_.status == status


def test_one_warning_of_a_seed_and_none_otherwise():
    for seed, expected in ((0, [PrivacyLeakWarning]), (None, [])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Toy(random_state=seed).fit(X)
        assert [w.category for w in caught] == expected
        assert all(w.filename == __file__ for w in caught)  # it points at the caller's line


class TestLedger:
    def test_a_fit_is_charged_once(self):
        accountant = PrivacyAccountant(5.0)
        Toy(accountant=accountant).fit(X)
        assert accountant.spent() == 1.0
        entry = accountant.entries().iloc[0]
        assert (entry["estimator"], entry["mechanism"]) == ("Toy", "toy")

    def test_refused_data_cost_nothing(self):
        accountant = PrivacyAccountant(5.0)
        with pytest.raises(ValueError, match="NaN"):
            Toy(accountant=accountant).fit(np.full((3, 2), np.nan))
        assert accountant.spent() == 0

    def test_budget_is_asked_before_the_data(self):
        toy = Toy(6.0, accountant=PrivacyAccountant(5.0))
        with pytest.raises(BudgetExceededError):
            toy.fit(np.full((3, 2), np.nan))
        assert not hasattr(toy, "release_")

    def test_a_race_lost_between_check_and_charge_releases_nothing(self, monkeypatch):
        """Another fit may spend the budget after the check: the charge decides."""
        accountant = PrivacyAccountant(5.0)
        toy = Toy(3.0, accountant=accountant)
        monkeypatch.setattr(accountant, "check", lambda guarantee: None)
        accountant.charge(PrivacyGuarantee(4.0))
        with pytest.raises(BudgetExceededError):
            toy.fit(X)
        assert accountant.spent() == 4.0
        assert not hasattr(toy, "release_")

    def test_a_failure_after_the_charge_stays_charged(self, monkeypatch):
        accountant = PrivacyAccountant(5.0)
        toy = Toy(accountant=accountant)
        monkeypatch.setattr(toy, "_set_fitted", lambda release: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            toy.fit(X)
        assert accountant.spent() == 1.0

    @pytest.mark.parametrize("filler", [0.0, np.nan])
    def test_a_plan_that_cannot_be_fails_whatever_the_records_hold(self, filler):
        """Else a plan that always fails asks what the records hold, as often as it likes."""
        with pytest.raises(ValueError, match="too extreme for double precision"):
            Toy(scale=1e300).fit(np.full((3, 2), filler))

    def test_refusals_are_charged_where_the_ledger_says_so(self):
        accountant = PrivacyAccountant(5.0, charge_refusals=True)
        toy = Toy(accountant=accountant)
        with pytest.raises(ValueError, match="NaN"):
            toy.fit(np.full((3, 2), np.nan))
        assert accountant.spent() == 1.0
        toy.fit(X)
        assert accountant.spent() == 2.0

    def test_what_is_public_costs_nothing_even_there(self):
        accountant = PrivacyAccountant(5.0, charge_refusals=True)
        for toy, rows in ((Toy(scale=1e300), X), (Toy(max_time=-1.0), X), (Toy(), X[:0])):
            with pytest.raises(ValueError, match=r"precision|positive|sample\(s\)"):
                toy.set_params(accountant=accountant).fit(rows)
        assert accountant.spent() == 0

    @pytest.mark.parametrize("labels", [[0.5, 1.0, 2.0], [0.0, np.nan, 1.0]])
    def test_labels_that_are_read_and_refused_are_charged_there(self, labels):
        """Classes that nobody stated are read before all else is known."""
        accountant = PrivacyAccountant(9.0, charge_refusals=True, rehearsal=True)
        logistic = DPLogisticRegression(1.0, accountant=accountant)
        search = PrivateSearchCV(
            DPLogisticRegression(), {"alpha": [0.1, 1.0]}, epsilon=1.0, accountant=accountant
        )
        rows = np.zeros((30, 1))
        for spent, refused in enumerate(
            (lambda: logistic.fit(rows, labels * 10), lambda: search.fit(rows, labels * 10))
        ):
            with pytest.raises(ValueError, match="label"):
                refused()
            assert accountant.rehearsed() == spent + 1

    @pytest.mark.parametrize("accountant", [5.0, "ledger", PrivacyAccountant])
    def test_type(self, accountant):
        with pytest.raises(TypeError, match="accountant must be None or a PrivacyAccountant"):
            Toy(accountant=accountant).fit(X)


class TestFromRelease:
    def test_rebuilds(self):
        release = Toy(2.0, max_time=3.0).fit(X).release_
        toy = Toy.from_release(Release.from_json(release.to_json()))
        assert (toy.epsilon, toy.max_time) == (2.0, 3.0)
        assert toy.n_features_in_ == 2
        assert toy.guarantee_ == release.guarantee
        assert toy.release_ == release
        np.testing.assert_array_equal(toy.coef_, [0.5, 0.5])
        assert toy.accountant is None
        assert not hasattr(toy, "feature_names_in_")

    def test_costs_nothing_and_does_not_warn(self):
        release = Toy(random_state=0).fit(X).release_
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Toy.from_release(release).guarantee_.status == "seeded"

    def test_refuses_the_release_of_another_class(self):
        with pytest.raises(ValueError, match="release must come from a Other, got one from Toy"):
            Other.from_release(Toy().fit(X).release_)

    def test_a_subclass_must_say_how_to_predict(self):
        class Bare(PrivateEstimator):
            def __init__(self, epsilon=1.0):
                self.epsilon = epsilon

        release = Release("Bare", PrivacyGuarantee(1.0), {}, {}, 1)
        with pytest.raises(NotImplementedError):
            Bare.from_release(release)

    @pytest.mark.parametrize("name", ["epsilon", "random_state", "accountant", "surprise"])
    def test_refuses_parameters_that_no_release_has(self, name):
        release = Release("Toy", PrivacyGuarantee(1.0), {name: 1}, {"coef": [0.5]}, 1)
        with pytest.raises(ValueError, match="parameters of the release must be among"):
            Toy.from_release(release)

    def test_refuses_parameters_that_break_a_rule(self):
        release = Release("Toy", PrivacyGuarantee(1.0), {"max_time": -1.0}, {"coef": [0.5]}, 1)
        with pytest.raises(ValueError, match="max_time must be None or a positive"):
            Toy.from_release(release)


class TestWhatIsAroundAFit:
    def test_nan_is_refused_whatever_scikit_learn_was_told(self):
        accountant = PrivacyAccountant(5.0)
        with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
            Toy(accountant=accountant).fit(np.full((3, 2), np.nan))
        assert accountant.spent() == 0.0

    def test_a_refused_fit_leaves_an_earlier_one_whole(self):
        toy = Toy().fit(X)
        with pytest.raises(ValueError, match="NaN"):
            toy.fit(pd.DataFrame(np.full((3, 4), np.nan), columns=list("abcd")))
        assert toy.n_features_in_ == 2
        assert not hasattr(toy, "feature_names_in_")
        toy.fit(pd.DataFrame(X, columns=["a", "b"]))
        with pytest.raises(ValueError, match="NaN"):
            toy.fit(np.full((3, 4), np.nan))
        assert toy.feature_names_in_.tolist() == ["a", "b"]

    def test_records_that_are_not_as_many_as_they_said(self):
        class Boasts:
            shape = (1000, 2)

            def __array__(self, dtype=None, copy=None):
                return X

        accountant = PrivacyAccountant(5.0)
        for model in (
            DPLogisticRegression(classes=[0, 1], accountant=accountant),
            DPDiscreteTimeSurvival(max_time=1.0, accountant=accountant),
        ):
            with pytest.raises(ValueError, match="records that it had"):
                model.fit(Boasts(), np.array([0, 1, 1]))
        assert accountant.spent() == 0.0

    def test_narrow_numbers_are_what_they_print_as(self):
        y = np.array([0.1, 0.5, 0.9])
        scales = [
            DPDiscreteTimeSurvival(epsilon, max_time=1.0).fit(X, y).guarantee_.public_inputs
            for epsilon in (np.float16(2.35), float(np.float16(2.35)))
        ]
        assert scales[0] == scales[1]


class TestParametersThatChangeMeanwhile:
    """By another thread, or where a warning is shown: the fit is of those that it began with."""

    def changed(self, monkeypatch, **parameters):
        accountant = PrivacyAccountant(5.0, rehearsal=True)
        model = DPLogisticRegression(1.0, accountant=accountant)  # classes from y: it warns

        def show(*arguments, **named):
            model.set_params(**parameters)

        rng = np.random.default_rng(0)
        rows = rng.uniform(-1.0, 1.0, (50, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(warnings, "showwarning", show)
            model.fit(rows, (rows[:, 0] > 0).astype(int))
        return model, accountant

    def test_the_ledger_is_charged(self, monkeypatch):
        model, accountant = self.changed(monkeypatch, accountant=None)
        assert len(accountant.entries()) == 1
        assert model.release_.receipt is not None
        assert model.accountant is None

    def test_noise_is_drawn_as_the_guarantee_says(self, monkeypatch):
        found = [self.changed(monkeypatch, random_state=0)[0].coef_ for _ in range(2)]
        assert not np.array_equal(*found)

    def test_a_release_states_what_was_fitted(self, monkeypatch):
        model, _ = self.changed(monkeypatch, fit_intercept=False)
        assert model.release_.parameters["fit_intercept"] is True
        assert model.fit_intercept is False
