"""Hybrid estimators at the edge of what they accept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skdpsurv import HybridMEstimator, PerturbedHistogramMEstimator, PrivacyAccountant
from skdpsurv.hybrid.weighted_fit import fit_weighted, is_minimum

N = 200


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int), np.arange(N) < 100


def spent_by(one, X, y, mask=None):
    """Fit, and return what was spent, and whether it failed."""
    options = {} if mask is None else {"public": mask}
    accountant = PrivacyAccountant()
    one.set_params(accountant=accountant, random_state=0)
    try:
        one.fit(X, y, **options)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        return accountant.spent(), True
    return accountant.spent(), False


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
        one = HybridMEstimator(method="subset", candidate_sizes=[1, 60])
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
    one = HybridMEstimator(method="subset", candidate_sizes=[12], random_state=seed)
    assert one.fit(X, y, public=mask).classes_.tolist() == [0, 1, 2]


class TestSignedWeights:
    def test_a_negative_total_is_not_turned_around(self, data):
        """Poisson regression divides by the total, which must not swap more for less."""
        X, _, _ = data
        y = np.where(np.arange(N) < 100, 1.0, 5.0)
        weights = np.where(np.arange(N) < 100, 0.5, -3.0)
        found = fit_weighted(PoissonRegressor(), X, y, weights, True, None)
        expected = fit_weighted(PoissonRegressor(), X, y, weights, False, None)
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
