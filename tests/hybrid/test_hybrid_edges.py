"""Hybrid estimators at the edge of what they accept."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skdpsurv import HybridMEstimator, PrivacyAccountant
from skdpsurv.hybrid import SubsetSelection, meta_estimator
from skdpsurv.hybrid.hybrid_plan import METHODS
from skdpsurv.hybrid.meta_estimator import (
    SCALERS,
    predicted_numbers,
    predicted_probabilities,
    prediction_assumptions,
    row_wise,
)
from skdpsurv.published import PerturbedHistogramMEstimator

N = 200


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int), np.arange(N) < 100


#: One record has one class, and no classifier can be fitted to it.
ONE_CLASS = SubsetSelection(candidate_sizes=[1, 60])


@pytest.mark.parametrize("method", [*METHODS, ONE_CLASS])
def test_nothing_fails_after_the_charge(data, method):
    """Either all is well or nothing is spent: a failure by the data would show a record."""
    X, y, mask = data
    for epsilon in [5e-324, 1e-300, 1e-9, 1.0, 1e300]:
        accountant, failed = PrivacyAccountant(rehearsal=True), False
        one = HybridMEstimator(None, epsilon, method=method, accountant=accountant, random_state=0)
        try:
            one.fit(X, y, public=mask)
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):
            failed = True
        assert accountant.rehearsed() == (0.0 if failed else epsilon)


def test_scores_of_labels_of_any_type(data):
    X, y, mask = data
    for labels in (int, bool, float, str, object):
        typed = y.astype(labels)
        one = HybridMEstimator(epsilon=10.0, random_state=0).fit(X, typed, public=mask)
        right = np.mean(one.predict(X).astype(str) == typed.astype(str))
        assert one.score(X, typed) == pytest.approx(right)


def test_classes_of_a_subset_are_those_of_public_records(data):
    """Whatever subset is chosen, as the documentation says of classes_."""
    X, _, mask = data
    y = np.where(np.arange(N) % 50 == 7, 2, (X[:, 0] > 0).astype(int))
    for seed in range(3):
        one = HybridMEstimator(method=SubsetSelection(candidate_sizes=[12]), random_state=seed)
        assert one.fit(X, y, public=mask).classes_.tolist() == [0, 1, 2]


def test_several_outcomes_at_once_are_not_claimed():
    """A tree can learn several outcomes; a hybrid fit takes one."""
    tags = get_tags(HybridMEstimator(DecisionTreeClassifier()))
    assert not tags.classifier_tags.multi_label
    assert not tags.target_tags.multi_output


class Remembers(RegressorMixin, BaseEstimator):
    """Keeps what it was asked about; fits equal weights only, so that it is its own fallback."""

    memory = list

    def fit(self, X, y, sample_weight=None):
        if np.ptp(sample_weight) > 0:
            raise ValueError("equal weights only")
        self.n_features_in_, self.seen_ = X.shape[1], self.memory()
        return self

    def predict(self, X):
        self.seen_ += X.tolist()
        return np.zeros(len(X))


class KeepsItself(Remembers):
    """A copy of it is the same object."""

    def __deepcopy__(self, memo):
        return self


class Memory(list):
    def __deepcopy__(self, memo):
        return self


class SharesItsMemory(Remembers):
    """Copies of it are others, which hold the same list."""

    memory = Memory


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
    @pytest.mark.parametrize("kind", [Remembers, KeepsItself, SharesItsMemory])
    def test_what_one_remembers_is_not_released(self, data, kind, method):
        X, _, mask = data
        one = HybridMEstimator(kind(), method=method).fit(X, X[:, 0], public=mask)
        assert one.estimator_.seen_ == []

    def test_one_that_cannot_be_cloned_is_refused(self, data):
        X, y, mask = data
        inner, accountant = SameAgain().fit(X, y), PrivacyAccountant()
        hybrid = HybridMEstimator(inner, accountant=accountant)
        histogram = PerturbedHistogramMEstimator(
            inner, bounds=[(-3, 3)] * 2, outcome=[0, 1], accountant=accountant
        )
        for one, options in ((hybrid, {"public": mask}), (histogram, {})):
            with pytest.raises(TypeError, match=r"estimator must .* SameAgain returns itself"):
                one.fit(X, y, **options)
        assert accountant.spent() == 0.0

    def test_one_that_looks_around_sees_one_record(self, data):
        X, y, _ = data
        alone = predicted_numbers(LooksAround().fit(X, y), X)
        np.testing.assert_array_equal(alone, X[:, 0])
        # Boosting may hide such a one.
        boosted = GradientBoostingRegressor(init=LooksAround(), n_estimators=1, learning_rate=1e-9)
        found = predicted_numbers(boosted.fit(X, X[:, 0]), X[:20])
        np.testing.assert_allclose(found, X[:20, 0], atol=1e-6)

    def test_a_failure_is_of_one_record(self, data):
        x, y = np.clip(data[0][:, :1], 0.0, 1.0), data[1]
        fitted = IsotonicRegression(out_of_bounds="raise").fit(x, y)
        found = predicted_numbers(fitted, np.array([[0.5], [100.0], [0.5]]))
        assert np.isnan(found).tolist() == [False, True, False]


class TestTables:
    """Of estimators that are known to predict row by row."""

    @pytest.mark.parametrize(
        ("kind", "scaler"),
        [
            *((kind, None) for kind in sorted(row_wise(), key=lambda kind: kind.__name__)),
            *product((LinearRegression, LogisticRegression), SCALERS),
        ],
    )
    def test_no_row_moves_another_one(self, data, kind, scaler):
        """To the last bit, with rows at the ends of a wide public range."""
        X, y, _ = data
        X[:2] = [[1e3, -1e3], [-1e3, 1e3]]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # In place: no row may be changed for others.
            steps = [] if scaler is None else [scaler(copy=False)]
            estimator = make_pipeline(*steps, kind()) if steps else kind()
            fitted = estimator.fit(X.copy(), y + is_regressor(kind()))
            assert not prediction_assumptions(fitted)
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


def test_what_a_column_is_is_decided_by_public_values(data):
    _, y, mask = data
    X = pd.DataFrame({"a": np.arange(N, dtype=float), "b": np.arange(N) % 7}).astype(str)
    one = HybridMEstimator().fit(X, y, public=mask)
    assert one.estimator_.coef_.shape == (1, 2)  # numbers, although they are text
    refused, accountant = X.copy(), PrivacyAccountant()
    refused.loc[N - 1, "a"] = "unknown"
    with pytest.raises(ValueError, match="X contains NaN"):
        HybridMEstimator(accountant=accountant).fit(refused, y, public=mask)
    assert len(accountant.entries()) == 0
    X.loc[0, "b"] = "none"
    one = HybridMEstimator().fit(X, y, public=mask)
    assert one.estimator_.coef_.shape == (1, 1 + 7)


def test_what_a_histogram_cannot_be_fitted_with_costs_nothing(data):
    accountant, far = PrivacyAccountant(), [(-1e308, 1e308)] * 2
    options = {"outcome": [0, 1], "accountant": accountant}
    for inner, bounds, said in (
        (None, far, "bounds must"),
        (LogisticRegression(C=-1.0), np.full((2, 2), [-3.0, 3.0]), "parameter of Logistic"),
    ):
        with pytest.raises(ValueError, match=said):
            PerturbedHistogramMEstimator(inner, bounds=bounds, **options).fit(*data[:2])
    assert len(accountant.entries()) == 0


def test_crafted_releases_are_refused(data):
    X, y, mask = data
    release = HybridMEstimator().fit(X, y, public=mask).release_
    for change in (
        {"public_index": [0.0] * 100},
        {"public_index": [1e300] * 100},
        {"n_cells": -1.0},
        {"signed": 2.0},
        {"weights": [1.0]},
    ):
        crafted = replace(release, values={**release.values, **change})
        with pytest.raises(ValueError, match="release"):
            HybridMEstimator.from_release(crafted, X=X[mask], y=y[mask])


# ---- Fits with released weights.


def fit_weighted(estimator, X, y, weights, signed):
    return meta_estimator.fit_weighted(estimator, X, y, weights, signed, lambda: None)


def coef(fitted):
    return np.r_[np.ravel(fitted.coef_), np.ravel(fitted.intercept_)]


class Mine(LogisticRegression):
    """Of which nothing is known."""


def test_stated_list():
    sound = [LogisticRegression(), LogisticRegression(solver="newton-cholesky"), PoissonRegressor()]
    solvers = [LogisticRegression(solver=name) for name in ("liblinear", "saga")]
    balanced = LogisticRegression(class_weight="balanced")
    sound.append(make_pipeline("passthrough", StandardScaler(), LogisticRegression()))
    solvers.append(make_pipeline(PolynomialFeatures(), LogisticRegression()))
    assert all(map(meta_estimator.takes_signed_weights, sound))
    assert not any(map(meta_estimator.takes_signed_weights, [*solvers, balanced, Mine(), Ridge()]))


@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-10), PoissonRegressor(tol=1e-10)])
class TestSigned:
    """Negative weights are kept only where a minimum was found."""

    def test_a_record_and_its_negative_cancel(self, data, estimator):
        """Weights 1 and -1 of the same record are as if it were not there."""
        X, y, _ = data
        more = np.vstack([X, X[:40], X[:40]])
        outcomes = np.r_[y, y[:40], y[:40]]
        weights = np.r_[np.ones(N), np.ones(40), -np.ones(40)]
        signed = fit_weighted(estimator, more, outcomes, weights, True)
        plain = fit_weighted(estimator, X, y, np.ones(N), True)
        np.testing.assert_allclose(coef(signed), coef(plain), atol=1e-4)
        clipped = fit_weighted(estimator, more, outcomes, weights, False)
        assert np.abs(coef(clipped) - coef(plain)).max() > 1e-3

    def test_what_is_not_convex_is_clipped(self, data, estimator):
        X, y, _ = data
        weights = 30.0 * np.random.default_rng(2).normal(size=N)
        weights += 1.0 - weights.mean()
        signed = fit_weighted(estimator, X, y, weights, True)
        clipped = fit_weighted(estimator, X, y, np.maximum(weights, 0.0), False)
        np.testing.assert_array_equal(coef(signed), coef(clipped))

    def test_all_negative_is_equal(self, data, estimator):
        X, y, _ = data
        equal = fit_weighted(estimator, X, y, np.ones(N), False)
        for signed in (True, False):
            found = fit_weighted(estimator, X, y, np.full(N, -3.0), signed)
            np.testing.assert_allclose(coef(found), coef(equal), atol=1e-5)


def test_signed_weights_of_a_pipeline_are_those_of_its_last_step(data):
    X, y, _ = data
    weights = np.r_[np.ones(N - 20), -np.full(20, 0.5)]
    whole = fit_weighted(
        make_pipeline(StandardScaler(copy=False), LogisticRegression()), X, y, weights, True
    )
    rows = StandardScaler().fit_transform(X)
    signed, clipped = (
        fit_weighted(LogisticRegression(), rows, y, weights, kept) for kept in (True, False)
    )
    np.testing.assert_array_equal(coef(whole[-1]), coef(signed))
    assert not np.array_equal(coef(signed), coef(clipped))


def test_three_classes_and_a_negative_total_are_clipped(data):
    """Poisson regression divides by the total, which must not swap more for less."""
    X, _, _ = data
    three = np.digitize(X[:, 0], [-0.5, 0.5]), np.random.default_rng(2).normal(size=N) + 2.0
    assert (three[1] < 0).any()
    half = np.arange(N) < 100
    negative = np.where(half, 1.0, 5.0), np.where(half, 0.5, -3.0)
    for estimator, case in ((LogisticRegression(), three), (PoissonRegressor(), negative)):
        signed, clipped = (fit_weighted(estimator, X, *case, kept) for kept in (True, False))
        np.testing.assert_array_equal(coef(signed), coef(clipped))


def test_unpenalised_fits_have_no_ridge():
    X = np.array([[1.0], [-1.0], [1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LogisticRegression(penalty=None, fit_intercept=False).fit(X, [0, 1, 1])
    fitted.coef_ = np.zeros((1, 1))
    assert not meta_estimator.is_minimum(fitted, X[[0, 2]], np.array([1.0, -2.0]))


def test_a_class_without_weight_and_what_cannot_be_fitted(data):
    X, y, _ = data
    weights = np.where(y == 1, -1.0, 1.0)
    for estimator in (LogisticRegression(), LogisticRegression(solver="liblinear"), Ridge()):
        for signed in (True, False):
            fitted = fit_weighted(estimator, X, y, weights, signed) or estimator.fit(X, y)
            assert np.isfinite(coef(fitted)).all()
    equal = LogisticRegression().fit(X, y)
    one = meta_estimator.fit_weighted(equal, X[:1], y[:1], np.ones(1), False, lambda: equal)
    assert one is equal
