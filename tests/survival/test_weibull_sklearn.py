"""DPWeibullFitter inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdpsurv import DPWeibullFitter


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    time, last = 0.8 * rng.weibull(1.3, 240), rng.exponential(1.0, 240)
    y = np.empty(240, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return rng.uniform(0, 1, (240, 3)), y


def model(**parameters):
    return DPWeibullFitter(**{"max_time": 1.0, "random_state": 0, **parameters})


def test_scores_are_mean_log_likelihoods_of_the_folds(data):
    """Whatever is in X."""
    X, y = data
    folds = KFold(4)
    expected = [model().fit(None, y[train]).score(None, y[test]) for train, test in folds.split(X)]
    for other in (
        X,
        pd.DataFrame(X),
        np.full((240, 2), "text"),
        np.full((240, 1), np.nan),
        X[:, 0],
    ):
        scores = cross_val_score(model(), other, y, cv=folds, error_score="raise")
        np.testing.assert_allclose(scores, expected)
    # Durations for X, events for y, as lifelines has them.
    scores = cross_val_score(model(), y["time"], y["event"], cv=folds, error_score="raise")
    np.testing.assert_allclose(scores, expected)


def test_pipelines(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, y)
    assert pipeline[-1].release_ == model().fit(X, y).release_
    assert pipeline.score(X, y) == model().fit(X, y).score(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), np.zeros(240))
    # One-dimensional X passes a transformer that leaves it alone.
    pipeline = make_pipeline(FunctionTransformer(), model()).fit(y["time"], y["event"])
    assert pipeline[-1].release_ == model().fit(y["time"], y["event"]).release_


def test_columns_are_counted_where_there_were_some_in_fit(data):
    X, y = data
    one = model().fit(X, y)
    for call in (lambda: one.predict(X[:, :2]), lambda: one.score(X[:, :2], y)):
        with pytest.raises(ValueError, match="X has 2 features"):
            call()
    one = model().fit(y["time"], y["event"])
    assert one.score(X, y) == one.score(y["time"], y["event"])


def test_events_are_routed_fold_by_fold(data):
    y, folds = data[1], KFold(3)
    one = model().set_fit_request(event_observed=True).set_score_request(event_observed=True)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_val_score(
            one, y["time"], cv=folds, params={"event_observed": y["event"]}, error_score="raise"
        )
    np.testing.assert_array_equal(routed, cross_val_score(model(), data[0], y, cv=folds))
