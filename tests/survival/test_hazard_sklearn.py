"""How the estimator behaves inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    BudgetExceededError,
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PublicBoundsScaler,
)
from skdpsurv.datasets import make_discrete_time_survival


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(240, 2, event_rate=0.6, random_state=0)


def model(**parameters):
    return DPDiscreteTimeSurvival(**{"max_time": 1.0, "random_state": 0, **parameters})


class TestScore:
    def test_weights_of_one_change_nothing(self, data):
        fitted = model().fit(data.X, data.y)
        weighted = fitted.score(data.X, data.y, sample_weight=np.ones(240))
        assert weighted == pytest.approx(fitted.score(data.X, data.y))

    def test_weight_zero_leaves_a_record_out(self, data):
        fitted = model().fit(data.X, data.y)
        weight = (np.arange(240) < 100).astype(float)
        expected = fitted.score(data.X[:100], data.y[:100])
        assert fitted.score(data.X, data.y, sample_weight=weight) == pytest.approx(expected)

    def test_weights_pass_through_a_pipeline(self, data):
        pipeline = make_pipeline(PublicBoundsScaler(lower=-1, upper=1), model())
        pipeline.fit(data.X, data.y)
        weight = np.random.default_rng(0).uniform(0, 2, 240)
        weighted = pipeline.score(data.X, data.y, sample_weight=weight)
        assert weighted != pipeline.score(data.X, data.y)
        assert weighted == pipeline[-1].score(data.X, data.y, sample_weight=weight)

    def test_metadata_routing(self, data):
        weight = np.random.default_rng(0).uniform(0, 2, 240)
        with sklearn.config_context(enable_metadata_routing=True):
            asks = model().set_score_request(sample_weight=True)
            pipeline = make_pipeline(PublicBoundsScaler(lower=-1, upper=1), asks)
            pipeline.fit(data.X, data.y)
            routed = pipeline.score(data.X, data.y, sample_weight=weight)
        assert routed == pipeline[-1].score(data.X, data.y, sample_weight=weight)

    def test_times_without_events_are_scored(self, data):
        fitted = model().fit(data.X, data.y)
        survivors = np.array([(False, 1.0)] * 240, dtype=data.y.dtype)
        assert fitted.score(data.X, survivors) == 0.5


class TestGridSearch:
    def search(self, path, budget, epsilon=0.5):
        accountant = PrivacyAccountant(budget, path=path, rehearsal=True)
        step = "dpdiscretetimesurvival"
        grid = {f"{step}__alpha": [0.0, 0.01], f"{step}__n_knots": [1, 3]}
        pipeline = make_pipeline(
            PublicBoundsScaler(lower=-1, upper=1),
            DPDiscreteTimeSurvival(epsilon, max_time=1.0, accountant=accountant),
        )
        return accountant, GridSearchCV(pipeline, grid, cv=3, error_score="raise")

    def test_every_fit_is_charged(self, data, tmp_path):
        accountant, search = self.search(tmp_path / "ledger.db", 100.0)
        search.fit(data.X, data.y)
        assert accountant.spent() == pytest.approx((3 * 4 + 1) * 0.5)
        assert (accountant.entries()["estimator"] == "DPDiscreteTimeSurvival").all()
        assert search.predict(data.X).shape == (240,)

    def test_an_exhausted_budget_stops_the_search(self, data, tmp_path):
        accountant, search = self.search(tmp_path / "ledger.db", 2.0)
        with pytest.raises(BudgetExceededError):
            search.fit(data.X, data.y)
        assert accountant.rehearsed() <= 2.0
        assert PrivacyAccountant(path=tmp_path / "ledger.db").rehearsed() <= 2.0


class TestParameters:
    def test_numpy_numbers_are_numbers(self, data):
        one = model(
            epsilon=np.float64(1.0),
            max_time=np.float32(1.0),
            n_intervals=np.int64(20),
            n_knots=np.int32(2),
            data_norm=np.int64(1),
            random_state=np.int64(0),
        ).fit(data.X, data.y)
        assert type(one).from_release(type(one.release_).from_json(one.release_.to_json()))
