"""What every private estimator does around its mechanism, and in which order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from skdpsurv import (
    BudgetExceededError,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    Release,
)
from skdpsurv.base import PrivateEstimator


class Toy(PrivateEstimator):
    """The smallest estimator that keeps the order of the base class; logs its steps."""

    def __init__(self, epsilon=1.0, *, max_time=None, random_state=None, accountant=None):
        self.epsilon = epsilon
        self.max_time = max_time
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X, y=None):
        self._check_accountant()
        self._check_budget()
        X = validate_data(self, X)
        guarantee = PrivacyGuarantee(self.epsilon, mechanism="toy", status=self._status())
        with self._charged(guarantee):
            coef = [0.5] * X.shape[1]
        return self._publish(guarantee, {"max_time": self.max_time}, {"coef": coef})

    def _check_parameters(self):
        if self.max_time is not None and self.max_time <= 0:
            raise ValueError("max_time must be positive.")

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
        assert not hasattr(toy, "n_features_in_")

    def test_a_race_lost_between_check_and_charge_releases_nothing(self, monkeypatch):
        """Another fit may spend the budget after the check: the charge decides."""
        accountant = PrivacyAccountant(5.0)
        toy = Toy(3.0, accountant=accountant)
        monkeypatch.setattr(toy, "_check_budget", lambda: None)
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
        with pytest.raises(ValueError, match="max_time must be positive"):
            Toy.from_release(release)
