"""Hybrid estimators at the edge of what they accept."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skdpsurv import HybridMEstimator, PrivacyAccountant
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.hybrid.hybrid_plan import METHODS
from skdpsurv.hybrid.meta_estimator import (
    fit_weighted,
    is_minimum,
    predicted_numbers,
    predicted_probabilities,
    row_wise,
)
from skdpsurv.published import PerturbedHistogramMEstimator

N = 200


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int), np.arange(N) < 100


def spent_by(one, X, y, mask=None):
    """Fit, and return what was spent, and whether it failed."""
    options = {} if mask is None else {"public": mask}
    accountant = PrivacyAccountant(rehearsal=True)
    one.set_params(accountant=accountant, random_state=0)
    try:
        one.fit(X, y, **options)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        return accountant.rehearsed(), True
    return accountant.rehearsed(), False


class TestNothingFailsAfterTheCharge:
    """Either all is well or nothing is spent: a failure by the data would show a record."""

    @pytest.mark.parametrize("strange", [[1, 2], {1}, {"a": 1}], ids=["list", "set", "dict"])
    @pytest.mark.parametrize("where", ["label", "category"])
    def test_private_values_that_cannot_be_hashed(self, data, where, strange):
        X, y, mask = data[0].astype(object), data[1].astype(object), data[2]
        X[:, 1] = np.where(data[0][:, 1] > 0, "a", "b")
        if where == "label":
            y[-1] = strange
        else:
            X[-1, 1] = strange
        one = HybridMEstimator(categorical_features=[1])
        spent, failed = spent_by(one, X, y, mask)
        assert spent == (0.0 if failed else 1.0)

    @pytest.mark.parametrize("method", ["cells", "residuals", "auto", "all", "subset"])
    @pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 1e300])
    def test_epsilon_from_least_to_largest(self, data, method, epsilon):
        spent, failed = spent_by(HybridMEstimator(None, epsilon, method=method), *data)
        assert spent == (0.0 if failed else epsilon)

    def test_candidates_of_one_class(self, data):
        """One record has one class, and no classifier can be fitted to it."""
        one = HybridMEstimator(method=SubsetSelection(candidate_sizes=[1, 60]))
        spent, failed = spent_by(one, *data)
        assert spent == (0.0 if failed else 1.0)

    def test_bounds_whose_width_is_beyond_the_largest_double(self, data):
        X, y, _ = data
        one = PerturbedHistogramMEstimator(bounds=[(-1.7e308, 1.7e308)] * 2, outcome=[0, 1])
        for far in (0.0, 1e308):
            X = X.copy()
            X[0, 0] = far
            spent, failed = spent_by(one, X, y)
            assert spent == (0.0 if failed else 1.0)


def test_bounds_as_an_array(data):
    X, y, _ = data
    options = {"outcome": [0, 1], "random_state": 0}
    weights = [
        PerturbedHistogramMEstimator(bounds=bounds, **options).fit(X, y).weights_
        for bounds in ([(-3, 3), (-3, 3)], np.array([[-3, 3], [-3, 3]]))
    ]
    np.testing.assert_array_equal(*weights)


def test_a_fold_without_public_rows_is_scored(data):
    """All of its rows are private."""
    X, y, mask = data
    one = HybridMEstimator(random_state=0).fit(X, y, public=mask)
    assert one.score(X, y, public=np.zeros(N, dtype=bool)) == one.score(X, y)


@pytest.mark.parametrize("labels", [int, bool, float, str, object], ids=lambda kind: kind.__name__)
def test_scores_of_labels_of_any_type(data, labels):
    X, y, mask = data
    y = y.astype(labels)
    one = HybridMEstimator(epsilon=10.0, random_state=0)
    one.fit(X, y, public=mask)
    right = np.mean(one.predict(X).astype(str) == y.astype(str))
    assert one.score(X, y) == pytest.approx(right)


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_a_subset_are_those_of_public_records(data, seed):
    """Whatever subset is chosen, as the documentation says of classes_."""
    X, _, mask = data
    y = np.where(np.arange(N) % 50 == 7, 2, (X[:, 0] > 0).astype(int))
    one = HybridMEstimator(method=SubsetSelection(candidate_sizes=[12]), random_state=seed)
    assert one.fit(X, y, public=mask).classes_.tolist() == [0, 1, 2]


class TestSignedWeights:
    def test_a_negative_total_is_not_turned_around(self, data):
        """Poisson regression divides by the total, which must not swap more for less."""
        X, _, _ = data
        y = np.where(np.arange(N) < 100, 1.0, 5.0)
        weights = np.where(np.arange(N) < 100, 0.5, -3.0)
        found = fit_weighted(PoissonRegressor(), X, y, weights, True, lambda: None)
        expected = fit_weighted(PoissonRegressor(), X, y, weights, False, lambda: None)
        np.testing.assert_allclose(found.coef_, expected.coef_)
        np.testing.assert_allclose(found.intercept_, expected.intercept_)

    def test_unpenalised_fits_have_no_ridge(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = LogisticRegression(penalty=None, fit_intercept=False)
            fitted.fit(np.array([[1.0], [-1.0], [1.0]]), [0, 1, 1])
        fitted.coef_ = np.zeros((1, 1))
        assert not is_minimum(fitted, np.array([[1.0], [1.0]]), np.array([1.0, -2.0]))


def test_several_outcomes_at_once_are_not_claimed():
    """A tree can learn several outcomes; a hybrid fit takes one."""
    tags = get_tags(HybridMEstimator(DecisionTreeClassifier()))
    assert not tags.classifier_tags.multi_label
    assert not tags.target_tags.multi_output


class Remembers(RegressorMixin, BaseEstimator):
    """Keeps what it was asked about; fits equal weights only, so that it is its own fallback."""

    def fit(self, X, y, sample_weight=None):
        if np.ptp(sample_weight) > 0:
            raise ValueError("equal weights only")
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        self.last_ = X
        return np.zeros(len(X))


class KeepsItself(Remembers):
    """A copy of it is the same object."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = []
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        # All rows at once are public; private ones are shown one by one.
        self.seen_ += X.tolist()
        return np.zeros(len(X))

    def __deepcopy__(self, memo):
        return self


class Memory(list):
    def __deepcopy__(self, memo):
        return self


class SharesItsMemory(KeepsItself):
    """Copies of it are others, which hold the same list."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.seen_ = Memory()
        return self

    def __deepcopy__(self, memo):
        other = copy.copy(self)
        other.seen_ = copy.deepcopy(self.seen_, memo)
        return other


class Mine(LogisticRegression):
    """Of which nothing is known."""


class SameAgain(LogisticRegression):
    def __sklearn_clone__(self):
        return self


class LooksAround(RegressorMixin, BaseEstimator):
    """Predicts the mean of the table that it is asked about."""

    def fit(self, X, y, sample_weight=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), X[:, 0].mean())


class TestEstimatorsThatAreNotToBeTrusted:
    @pytest.mark.parametrize("method", ["residuals", "subset", "auto"])
    def test_what_one_remembers_is_not_released(self, data, method):
        X, _, mask = data
        one = HybridMEstimator(Remembers(), method=method).fit(X, X[:, 0], public=mask)
        assert not hasattr(one.estimator_, "last_")

    @pytest.mark.parametrize("method", ["residuals", "subset", "auto"])
    @pytest.mark.parametrize("kind", [KeepsItself, SharesItsMemory])
    def test_what_copies_share_is_not_released(self, data, kind, method):
        X, _, mask = data
        one = HybridMEstimator(kind(), method=method).fit(X, X[:, 0], public=mask)
        assert one.estimator_.seen_ == []

    @pytest.mark.parametrize("method", METHODS)
    def test_what_is_asked_of_one_is_said(self, data, method):
        X, y, mask = data
        predicts = method not in ("cells", "all")
        for inner, unknown in ((LogisticRegression(), False), (Mine(), True)):
            how = SubsetSelection(candidate_sizes=[50, 90]) if method == "subset" else method
            one = HybridMEstimator(inner, method=how, epsilon=100.0)
            said = one.fit(X, y, public=mask).guarantee_.assumptions
            found = [text for text in said if "depends on that record alone" in text]
            assert len(found) == (predicts and unknown)
            assert all("Mine" in text and "state" in text for text in found)

    @pytest.mark.parametrize("kind", [HybridMEstimator, PerturbedHistogramMEstimator])
    def test_one_that_cannot_be_cloned_is_refused(self, data, kind):
        X, y, mask = data
        bounds = {"bounds": [(-3, 3)] * 2, "outcome": [0, 1]}
        accountant = PrivacyAccountant()
        inner = SameAgain().fit(X, y)
        if kind is HybridMEstimator:
            one, options = kind(inner, accountant=accountant), {"public": mask}
        else:
            one, options = kind(inner, accountant=accountant, **bounds), {}
        with pytest.raises(TypeError, match=r"estimator must .* SameAgain returns itself"):
            one.fit(X, y, **options)
        assert accountant.spent() == 0.0

    def test_one_that_looks_around_sees_one_record(self, data):
        X, y, _ = data
        alone = predicted_numbers(LooksAround().fit(X, y), X)
        np.testing.assert_array_equal(alone, X[:, 0])

    def test_boosting_may_hide_one_that_looks_around(self, data):
        X, _y, _ = data
        boosted = GradientBoostingRegressor(init=LooksAround(), n_estimators=1, learning_rate=1e-9)
        found = predicted_numbers(boosted.fit(X, X[:, 0]), X[:20])
        np.testing.assert_allclose(found, X[:20, 0], atol=1e-6)

    def test_a_failure_is_of_one_record(self, data):
        X, y, mask = data
        X = np.abs(X)
        X[~mask, 0] = np.minimum(X[~mask, 0], 1.0)
        fitted = IsotonicRegression(out_of_bounds="raise").fit(X[~mask, :1], y[~mask])
        rows = np.array([[0.5], [100.0], [0.5]])
        found = predicted_numbers(fitted, rows)
        assert np.isnan(found).tolist() == [False, True, False]


class TestTables:
    """Of estimators that are known to predict row by row."""

    @pytest.mark.parametrize("kind", sorted(row_wise(), key=lambda kind: kind.__name__))
    def test_no_row_moves_another_one(self, data, kind):
        """To the last bit, with rows at the ends of a wide public range."""
        X, y, _ = data
        X = X.copy()
        X[:2] = [[1e3, -1e3], [-1e3, 1e3]]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fitted = kind().fit(X, y + is_regressor(kind()))
            ask = predicted_numbers if is_regressor(fitted) else predicted_probabilities
            rows = np.repeat(X[None], 4, axis=0)
            rows[:, 7] = [[0.0, 0.0], [1e3, 1e3], [-1e3, 1e3], [5e-324, -1e3]]
            found = [np.delete(ask(fitted, table), 7, axis=0) for table in rows]
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])

    def test_a_table_is_asked_about_once(self, data, monkeypatch):
        """No record has all others asked about in another way."""
        X, y, _ = data
        fitted, asked = LinearRegression().fit(X, y), []

        def predict(self, rows):
            asked.append(len(rows))
            raise ValueError

        monkeypatch.setattr(LinearRegression, "predict", predict)
        assert np.isnan(predicted_numbers(fitted, X)).all()
        assert asked == [N]

    def test_trees_are_added_up_in_one_order(self, data, monkeypatch):
        X, y, _ = data
        fitted, workers = RandomForestRegressor(5, n_jobs=2).fit(X, y), []
        honest = RandomForestRegressor.predict

        def predict(self, rows):
            workers.append(effective_n_jobs(self.n_jobs))
            return honest(self, rows)

        monkeypatch.setattr(RandomForestRegressor, "predict", predict)
        predicted_numbers(fitted, X)
        assert workers == [1]


class TestTypesOfColumns:
    """What a column is, is decided by public values."""

    def table(self, last):
        X = pd.DataFrame({"a": np.arange(N, dtype=float), "b": np.arange(N) % 7}).astype(str)
        X.loc[N - 1, "a"] = last
        return X

    def test_numbers_written_as_text_are_numbers(self, data):
        one = HybridMEstimator().fit(self.table("3"), data[1], public=data[2])
        assert one.estimator_.coef_.shape == (1, 2)

    def test_a_private_text_among_numbers_is_refused(self, data):
        accountant = PrivacyAccountant()
        with pytest.raises(ValueError, match="X contains NaN"):
            HybridMEstimator(accountant=accountant).fit(
                self.table("unknown"), data[1], public=data[2]
            )
        assert len(accountant.entries()) == 0

    def test_a_public_text_makes_categories(self, data):
        X = self.table("3")
        X.loc[0, "b"] = "none"
        one = HybridMEstimator().fit(X, data[1], public=data[2])
        assert one.estimator_.coef_.shape == (1, 1 + 7)


@pytest.mark.parametrize("kind", ["X", "estimator"])
def test_what_a_histogram_cannot_be_fitted_with_costs_nothing(data, kind):
    accountant = PrivacyAccountant()
    bounds = [(-1e308, 1e308)] * 2 if kind == "X" else [(-3, 3)] * 2
    inner = LogisticRegression(C=-1.0) if kind == "estimator" else None
    one = PerturbedHistogramMEstimator(inner, bounds=bounds, outcome=[0, 1], accountant=accountant)
    with pytest.raises(
        ValueError, match=r"bounds must|InvalidParameterError|parameter of Logistic"
    ):
        one.fit(data[0], data[1])
    assert len(accountant.entries()) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"public_index": [0.0] * 100},
        {"public_index": [1e300] * 100},
        {"n_cells": -1.0},
        {"signed": 2.0},
        {"weights": [1.0]},
    ],
)
def test_crafted_releases_are_refused(data, change):
    X, y, mask = data
    release = HybridMEstimator().fit(X, y, public=mask).release_
    crafted = replace(release, values={**release.values, **change})
    with pytest.raises(ValueError, match="release"):
        HybridMEstimator.from_release(crafted, X=X[mask], y=y[mask])
