"""DPWeibullFitter inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags

from skdpsurv import BudgetExceededError, DPWeibullFitter, PrivacyAccountant


def test_one_dimensional_arguments_of_predict_are_times(data):
    """Which is why one of scikit-learn's checks is expected to fail."""
    X, y = data
    one = model().fit(X, y)
    np.testing.assert_array_equal(one.predict(X[:, 0]), model().fit(None, y).predict(X[:, 0]))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    time, last = 0.8 * rng.weibull(1.3, 240), rng.exponential(1.0, 240)
    y = np.empty(240, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return rng.uniform(0, 1, (240, 3)), y


def model(**parameters):
    return DPWeibullFitter(**{"max_time": 1.0, "random_state": 0, **parameters})


class TestCrossValidation:
    def test_scores_are_mean_log_likelihoods_of_the_folds(self, data):
        X, y = data
        folds = KFold(4)
        scores = cross_val_score(model(), X, y, cv=folds)
        expected = [
            model().fit(None, y[train]).score(None, y[test]) for train, test in folds.split(X)
        ]
        np.testing.assert_allclose(scores, expected)

    @pytest.mark.parametrize(
        "change",
        [
            lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
            lambda X: np.full((240, 2), "text"),
            lambda X: np.full((240, 1), np.nan),
            lambda X: X[:, 0],
        ],
        ids=["frame", "text", "missing", "one column"],
    )
    def test_what_is_in_x_does_not_matter(self, data, change):
        X, y = data
        scores = cross_val_score(model(), change(X), y, cv=3, error_score="raise")
        np.testing.assert_array_equal(scores, cross_val_score(model(), X, y, cv=3))

    def test_lifelines_style(self, data):
        """Durations for X, events for y: folds are then of events, as for a classifier's y."""
        y = data[1]
        folds = KFold(3)
        scores = cross_val_score(model(), y["time"], y["event"], cv=folds, error_score="raise")
        np.testing.assert_array_equal(scores, cross_val_score(model(), data[0], y, cv=folds))

    def test_every_fold_is_charged(self, data):
        accountant = PrivacyAccountant(100.0, rehearsal=True)
        result = cross_validate(
            model(epsilon=0.5, accountant=accountant), *data, cv=5, return_estimator=True
        )
        assert accountant.rehearsed() == pytest.approx(2.5)
        assert all(one.accountant is accountant for one in result["estimator"])

    def test_predictions_are_equal_risks(self, data):
        np.testing.assert_array_equal(cross_val_predict(model(), *data, cv=3), np.zeros(240))


class TestGridSearch:
    def search(self, budget):
        accountant = PrivacyAccountant(budget, rehearsal=True)
        grid = {"omega": [4.0, 6.0], "shape_fraction": [0.4, "auto"]}
        one = DPWeibullFitter(0.5, max_time=1.0, accountant=accountant)
        return accountant, GridSearchCV(one, grid, cv=3, error_score="raise")

    def test_every_fit_is_charged(self, data):
        accountant, search = self.search(100.0)
        search.fit(*data)
        assert accountant.spent() == pytest.approx((3 * 4 + 1) * 0.5)
        assert (accountant.entries()["estimator"] == "DPWeibullFitter").all()
        np.testing.assert_array_equal(search.predict(data[0]), np.zeros(240))

    def test_an_exhausted_budget_stops_the_search(self, data):
        accountant, search = self.search(2.0)
        with pytest.raises(BudgetExceededError):
            search.fit(*data)
        assert accountant.spent() == pytest.approx(2.0)

    def test_the_best_is_the_most_likely(self, data):
        X, y = data
        search = GridSearchCV(model(epsilon=np.inf), {"max_shape": [0.1, 5.0]}, cv=3)
        search.fit(X, y)
        assert search.best_params_ == {"max_shape": 5.0}
        assert search.best_estimator_.score(X, y) == search.score(X, y)

    @pytest.mark.parametrize("values", [np.array([4.0, 6.0]), np.float32([4, 6]), np.arange(4, 6)])
    def test_grids_of_numpy_numbers(self, data, values):
        search = GridSearchCV(model(), {"omega": values}, cv=2, error_score="raise").fit(*data)
        assert search.best_estimator_.release_.to_json()


class TestPipeline:
    def test_with_a_structured_y(self, data):
        X, y = data
        pipeline = make_pipeline(StandardScaler(), model()).fit(X, y)
        alone = model().fit(X, y)
        assert pipeline[-1].release_ == alone.release_
        assert pipeline.score(X, y) == alone.score(X, y)
        np.testing.assert_array_equal(pipeline.predict(X), np.zeros(240))

    def test_in_a_search(self, data):
        pipeline = make_pipeline(StandardScaler(), model())
        search = GridSearchCV(pipeline, {"dpweibullfitter__omega": [4.0, 6.0]}, cv=2)
        search.fit(*data)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_with_durations_through_it(self, data):
        """One-dimensional X passes a transformer that leaves it alone."""
        y = data[1]
        pipeline = make_pipeline(FunctionTransformer(), model()).fit(y["time"], y["event"])
        assert pipeline[-1].release_ == model().fit(y["time"], y["event"]).release_


class TestMetadata:
    @pytest.fixture(autouse=True)
    @classmethod
    def routing(cls):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_requests(self):
        one = model().set_fit_request(event_observed=True).set_score_request(event_observed=True)
        shown = dict.fromkeys(["person", "timeline", "label", "alpha"])
        for name, more in (("fit", shown), ("score", {})):
            requests = getattr(one.get_metadata_routing(), name).requests
            assert requests == {"durations": None, "event_observed": True} | more
            assert getattr(clone(one).get_metadata_routing(), name).requests == requests

    def test_events_are_routed_fold_by_fold(self, data):
        y = data[1]
        folds = KFold(3)
        one = model().set_fit_request(event_observed=True).set_score_request(event_observed=True)
        routed = cross_val_score(
            one, y["time"], cv=folds, params={"event_observed": y["event"]}, error_score="raise"
        )
        np.testing.assert_array_equal(routed, cross_val_score(model(), data[0], y, cv=folds))

    def test_events_that_were_not_asked_for_are_refused(self, data):
        y = data[1]
        with pytest.raises(UnsetMetadataPassedError):
            cross_val_score(model(), y["time"], params={"event_observed": y["event"]})


class TestColumns:
    def test_names_are_kept_and_checked(self, data):
        X, y = data
        frame = pd.DataFrame(X, columns=["age", "dose", "sex"])
        one = model().fit(frame, y)
        assert list(one.feature_names_in_) == ["age", "dose", "sex"]
        for fit in (one, DPWeibullFitter.from_release(one.release_)):
            np.testing.assert_array_equal(fit.predict(frame), np.zeros(240))
            with pytest.raises(ValueError, match="feature names"):
                fit.predict(frame[["dose", "age", "sex"]])

    @pytest.mark.parametrize("method", ["predict", "score"])
    def test_another_number_of_columns_is_refused(self, data, method):
        X, y = data
        one = model().fit(X, y)
        args = (X[:, :2],) if method == "predict" else (X[:, :2], y)
        with pytest.raises(ValueError, match="X has 2 features"):
            getattr(one, method)(*args)

    def test_columns_in_a_score_after_a_fit_without_any(self, data):
        X, y = data
        one = model().fit(y["time"], y["event"])
        assert one.score(X, y) == one.score(y["time"], y["event"])


def test_tags_say_what_is_taken():
    tags = get_tags(model())
    assert tags.target_tags.required
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert tags.input_tags.string
    assert tags.estimator_type is None


def test_set_params_after_a_fit_does_not_change_what_was_fitted(data):
    X, y = data
    one = model().fit(X, y)
    before = one.score(X, y), one.predict(0.5), one.percentile(0.1)
    one.set_params(epsilon=9.0, omega=2.0, max_time=7.0, shape_fraction=0.1)
    assert (one.score(X, y), one.predict(0.5), one.percentile(0.1)) == before
