"""What every private estimator does around its mechanism, and in which order."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from skdpsurv import (
    BudgetExceededError,
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PublicInputWarning,
    Release,
)
from skdpsurv.base import PrivateEstimator
from skdpsurv.data.shape import public_shape
from skdpsurv.dp.checks import optional, positive
from skdpsurv.dp.plan import Mechanism, Plan
from skdpsurv.dp.proofs import PROOFS, name_of
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

    def run(self, context, records, source):
        return {"coef": [0.5] * self.n_features}


PROOFS[name_of(Halves)] = "noise.md#laplace-on-a-lattice"


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
NAN = np.full((3, 2), np.nan)


@pytest.mark.parametrize(
    ("epsilon", "seed", "status"),
    [(1.0, None, "proved"), (1.0, 0, "seeded"), (np.inf, None, "none"), (np.inf, 0, "none")],
)
def test_status_and_one_warning_of_a_seed(epsilon, seed, status):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert Toy(epsilon, random_state=seed).fit(X).guarantee_.status == status
    assert [w.category for w in caught] == [PrivacyLeakWarning] * (status == "seeded")
    assert all(w.filename == __file__ for w in caught)  # it points at the caller's line


class TestLedger:
    @pytest.mark.parametrize("charged", [False, True])
    def test_a_fit_is_charged_once_and_a_refusal_where_the_ledger_says_so(self, charged):
        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        toy = Toy(accountant=accountant)
        with pytest.raises(ValueError, match="NaN"):
            toy.fit(NAN)
        assert accountant.spent() == float(charged)
        toy.fit(X)
        assert accountant.spent() == 1.0 + charged
        entry = accountant.entries().iloc[-1]
        assert (entry["estimator"], entry["mechanism"]) == ("Toy", "toy")

    def test_budget_is_asked_before_the_data(self):
        toy = Toy(6.0, accountant=PrivacyAccountant(5.0))
        with pytest.raises(BudgetExceededError):
            toy.fit(NAN)
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

    def test_what_is_public_costs_nothing_even_there(self):
        accountant = PrivacyAccountant(5.0, charge_refusals=True)
        for toy, rows, why in (
            (Toy(scale=1e300), X, "too extreme for double precision"),
            # Else a plan that always fails asks what the records hold, as often as it likes.
            (Toy(scale=1e300), NAN, "too extreme for double precision"),
            (Toy(max_time=-1.0), X, "positive"),
            (Toy(), X[:0], r"sample\(s\)"),
        ):
            with pytest.raises(ValueError, match=why):
                toy.set_params(accountant=accountant).fit(rows)
        assert accountant.spent() == 0

    @pytest.mark.parametrize("labels", [[0.5, 1.0, 2.0], [0.0, np.nan, 1.0]])
    def test_labels_that_are_read_and_refused_are_charged_there(self, labels):
        """Classes that nobody stated are read before all else is known."""
        accountant = PrivacyAccountant(9.0, charge_refusals=True, rehearsal=True)
        one = DPLogisticRegression(1.0)
        search = PrivateSearchCV(DPLogisticRegression(), {"alpha": [0.1, 1.0]}, epsilon=1.0)
        for n_refused, model in enumerate((one, search), 1):
            with pytest.raises(ValueError, match="label"):
                model.set_params(accountant=accountant).fit(np.zeros((30, 1)), labels * 10)
            assert accountant.rehearsed() == n_refused

    def test_what_depends_on_how_many_people_there_are_is_charged_there(self):
        """Any column may be named as person: its values could be counted by bisection."""
        accountant = PrivacyAccountant(9.0, charge_refusals=True)
        model = DPLogisticRegression(1.0, classes=[0, 1], accountant=accountant)
        rows, labels, whose = np.zeros((60, 1)), [0, 1] * 30, np.repeat([1, 2, 3], 20)
        with pytest.raises(ValueError, match="double precision"):
            clone(model).set_params(alpha=1e300).fit(rows, labels, person=whose)
        assert accountant.spent() == 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it may state the number
            with pytest.raises(PublicInputWarning):
                model.fit(rows, labels, person=whose)
        assert accountant.spent() == 2.0
        with pytest.raises(ValueError, match="same length"):
            model.fit(rows, labels, person=whose[:-1])
        assert accountant.spent() == 3.0
        model.fit(rows, labels, person=whose)
        assert accountant.spent() == 4.0
        refused = accountant.entries()["mechanism"] == "none: refused"
        assert refused.tolist() == [True, True, True, False]

    def test_type(self):
        for accountant in (5.0, "ledger", PrivacyAccountant):
            with pytest.raises(TypeError, match="accountant must be None or a PrivacyAccountant"):
                Toy(accountant=accountant).fit(X)


class TestFromRelease:
    def test_rebuilds_at_no_cost_and_without_a_warning(self):
        release = Toy(2.0, max_time=3.0, random_state=0).fit(X).release_
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            toy = Toy.from_release(Release.from_json(release.to_json()))
        assert (toy.epsilon, toy.max_time, toy.n_features_in_) == (2.0, 3.0, 2)
        assert toy.guarantee_ == release.guarantee
        assert toy.release_ == release
        np.testing.assert_array_equal(toy.coef_, [0.5, 0.5])
        assert toy.accountant is None
        assert not hasattr(toy, "feature_names_in_")

    def test_refuses_other_classes_and_parameters(self):
        with pytest.raises(ValueError, match="release must come from a Other, got one from Toy"):
            Other.from_release(Toy().fit(X).release_)
        for name in ("epsilon", "random_state", "accountant", "surprise", "max_time"):
            release = Release("Toy", PrivacyGuarantee(1.0), {name: -1.0}, {"coef": [0.5]}, 1)
            why = "None or a positive" if name == "max_time" else "of the release must be among"
            with pytest.raises(ValueError, match=why):
                Toy.from_release(release)


class TestWhatIsAroundAFit:
    def test_nan_is_refused_whatever_scikit_learn_was_told(self):
        with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
            Toy().fit(NAN)

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

        class BoastsToo:
            shape = (1000,)

            def __array__(self, dtype=None, copy=None):
                return np.array([0, 1, 1])

        accountant = PrivacyAccountant(5.0)
        for model in (
            DPLogisticRegression(classes=[0, 1], accountant=accountant),
            DPDiscreteTimeSurvival(max_time=1.0, accountant=accountant),
        ):
            with pytest.raises(ValueError, match="records that it had"):
                model.fit(Boasts(), BoastsToo())
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
        rows = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(
                warnings, "showwarning", lambda *args, **named: model.set_params(**parameters)
            )
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
