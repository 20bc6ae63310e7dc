"""Survival estimators inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdpsurv import (
    BudgetExceededError,
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PublicBoundsScaler,
)
from skdpsurv.datasets import make_discrete_time_survival
from tests.support.weibull import model, records, target


@pytest.fixture(scope="module")
def data():
    time, event = records(240)
    return np.random.default_rng(0).uniform(0, 1, (240, 3)), target(event, time)


def test_scores_are_mean_log_likelihoods_of_the_folds(data):
    """Whatever is in X."""
    X, y = data
    folds = KFold(4)
    expected = [model().fit(None, y[train]).score(None, y[test]) for train, test in folds.split(X)]
    for args in (
        (X, y),
        (np.full((240, 2), "text"), y),
        (X[:, 0], y),
        (y["time"], y["event"]),  # durations and events, as lifelines has them
    ):
        scores = cross_val_score(model(), *args, cv=folds, error_score="raise")
        np.testing.assert_allclose(scores, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        one = model().set_fit_request(event_observed=True).set_score_request(event_observed=True)
        scores = cross_val_score(one, y["time"], cv=folds, params={"event_observed": y["event"]})
    np.testing.assert_allclose(scores, expected)


def test_pipelines(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, y)
    assert pipeline[-1].release_ == model().fit(X, y).release_
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


def test_weights_of_a_score():
    data = make_discrete_time_survival(240, 2, event_rate=0.6, random_state=0)
    fitted = DPDiscreteTimeSurvival(max_time=1.0, random_state=0).fit(data.X, data.y)
    weight = (np.arange(240) < 100).astype(float)
    expected = fitted.score(data.X[:100], data.y[:100])
    assert fitted.score(data.X, data.y, sample_weight=weight) == pytest.approx(expected)
    survivors = np.array([(False, 1.0)] * 240, dtype=data.y.dtype)
    assert fitted.score(data.X, survivors) == 0.5


@pytest.mark.parametrize("budget", [100.0, 2.0])
def test_every_fit_of_a_grid_search_is_charged(tmp_path, budget):
    """Until the budget does not suffice."""
    data = make_discrete_time_survival(240, 2, event_rate=0.6, random_state=0)
    step, path = "dpdiscretetimesurvival", tmp_path / "ledger.db"
    grid = {f"{step}__alpha": [0.0, 0.01], f"{step}__n_knots": [1, 3]}
    accountant = PrivacyAccountant(budget, path=path, rehearsal=True)
    one = DPDiscreteTimeSurvival(0.5, max_time=1.0, accountant=accountant)
    pipeline = make_pipeline(PublicBoundsScaler(lower=-1, upper=1), one)
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
    if budget == 100.0:
        search.fit(data.X, data.y)
        assert accountant.spent() == pytest.approx((3 * 4 + 1) * 0.5)
        assert search.predict(data.X).shape == (240,)
    else:
        with pytest.raises(BudgetExceededError):
            search.fit(data.X, data.y)
        assert PrivacyAccountant(path=path).rehearsed() <= 2.0
