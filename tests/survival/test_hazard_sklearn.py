"""How the estimator behaves inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
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

    def test_times_without_events_are_scored(self, data):
        fitted = model().fit(data.X, data.y)
        survivors = np.array([(False, 1.0)] * 240, dtype=data.y.dtype)
        assert fitted.score(data.X, survivors) == 0.5


def test_every_fit_of_a_grid_search_is_charged(data, tmp_path):
    """Until the budget does not suffice."""
    step = "dpdiscretetimesurvival"
    grid = {f"{step}__alpha": [0.0, 0.01], f"{step}__n_knots": [1, 3]}
    for budget in (100.0, 2.0):
        path = tmp_path / f"ledger{budget}.db"
        accountant = PrivacyAccountant(budget, path=path, rehearsal=True)
        one = DPDiscreteTimeSurvival(0.5, max_time=1.0, accountant=accountant)
        pipeline = make_pipeline(PublicBoundsScaler(lower=-1, upper=1), one)
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise")
        if budget == 100.0:
            search.fit(data.X, data.y)
            assert accountant.spent() == pytest.approx((3 * 4 + 1) * 0.5)
            assert search.predict(data.X).shape == (240,)
            continue
        with pytest.raises(BudgetExceededError):
            search.fit(data.X, data.y)
        assert PrivacyAccountant(path=path).rehearsed() <= 2.0


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
