"""scikit-learn's own checks, and how the classifiers behave inside its tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpsurv import (
    BudgetExceededError,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivateStackingClassifier,
    Release,
)

# Checks fit a single column and a single row too, which is one group and one part.
ONE = {"n_partitions": 1}
INSTANCES = [
    DPLogisticRegression(),
    DPLogisticRegression(method="out_pert", random_state=0),
    DPLogisticRegression(np.inf),
    DPLogisticRegression(calibration="published", fit_intercept=False),
    PrivateStackingClassifier(**ONE),
    PrivateStackingClassifier(np.inf, combiner="vote", **ONE),
    PrivateStackingClassifier(partition="samples", calibration="published", **ONE),
    PrivateStackingClassifier(random_state=0, combiner="logistic", **ONE),
]
#: Check that is expected to fail -> reason. None is.
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(INSTANCES, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(200, 4))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0, "ill", "well")


def logistic(epsilon=1.0, **parameters):
    options = {"classes": ["ill", "well"], "random_state": 0, **parameters}
    return DPLogisticRegression(epsilon, **options)


def stack(epsilon=1.0, **parameters):
    options = {"classes": ["ill", "well"], "random_state": 0, "n_partitions": 2, **parameters}
    return PrivateStackingClassifier(epsilon, **options)


both = pytest.mark.parametrize("make", [logistic, stack])


GRIDS = {
    logistic: {"alpha": [1e-2, 1.0], "max_residual": [0.5, 1.0]},
    stack: {"combiner": ["vote", "logistic"], "n_partitions": [1, 2]},
}


class TestGridSearch:
    def search(self, make, path, budget, n_jobs=None):
        accountant = PrivacyAccountant(budget, path=path)
        pipeline = make_pipeline(Normalizer(), make(0.5, accountant=accountant, random_state=None))
        step = pipeline.steps[-1][0]
        grid = {f"{step}__{name}": values for name, values in GRIDS[make].items()}
        return accountant, GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs, error_score="raise")

    @both
    def test_every_fit_is_charged(self, data, tmp_path, make):
        accountant, search = self.search(make, tmp_path / "ledger.db", 100.0)
        search.fit(*data)
        assert accountant.spent() == pytest.approx((3 * 4 + 1) * 0.5)
        assert set(search.predict(data[0])) <= {"ill", "well"}
        assert search.score(*data) > 0

    @pytest.mark.slow
    def test_an_exhausted_budget_stops_the_search_in_parallel(self, data, tmp_path):
        accountant, search = self.search(stack, tmp_path / "ledger.db", 2.0, n_jobs=2)
        with pytest.raises(BudgetExceededError):
            search.fit(*data)
        assert accountant.spent() <= 2.0

    @both
    def test_scorers_find_scores_and_probabilities(self, data, make):
        for scoring in ("roc_auc", "neg_log_loss", "accuracy"):
            scores = cross_val_score(make(50.0, data_norm=5.0), *data, scoring=scoring, cv=2)
            assert np.isfinite(scores).all()
            assert scores.mean() > {"roc_auc": 0.7, "neg_log_loss": -1.0, "accuracy": 0.6}[scoring]

    @both
    def test_inside_one_vs_rest(self, data, make):
        """A model of each class is fitted, and charged, by itself."""
        accountant = PrivacyAccountant(rehearsal=True)
        y = np.digitize(data[0][:, 0], [-1.0, 1.0])
        OneVsRestClassifier(make(classes=[0, 1], accountant=accountant)).fit(data[0], y)
        assert accountant.rehearsed() == 3.0


class TestParameters:
    @both
    def test_clone_keeps_parameters_and_the_ledger(self, make):
        accountant = PrivacyAccountant(3.0, rehearsal=True)
        one = make(0.3, alpha=0.1, max_residual=0.7, accountant=accountant)
        other = clone(one)
        assert other.get_params() == one.get_params()
        assert other.accountant is accountant

    @both
    def test_fit_writes_no_parameter(self, data, make):
        one = make(alpha=0)
        before = dict(one.get_params())
        one.fit(*data)
        assert one.get_params() == before

    @pytest.mark.parametrize("estimator", [DPLogisticRegression, PrivateStackingClassifier])
    def test_only_epsilon_is_positional(self, estimator):
        with pytest.raises(TypeError):
            estimator(1.0, "obj_pert")

    @both
    def test_numpy_numbers_are_numbers(self, data, make):
        parameters = {
            "alpha": np.float32(0.5),
            "data_norm": np.int64(2),
            "fit_intercept": np.True_,
            "intercept_scaling": np.float64(0.25),
            "classes": np.array(["ill", "well"]),
            "max_residual": np.float64(0.75),
            "random_state": np.int64(0),
        }
        plain = {
            "alpha": 0.5,
            "data_norm": 2,
            "fit_intercept": True,
            "intercept_scaling": 0.25,
            "max_residual": 0.75,
        }
        if make is stack:
            parameters |= {
                "n_partitions": np.int32(2),
                "holdout": np.float64(0.25),
                "combiner": "logistic",
                "group_norms": np.array([1, 2]),
                "importances": np.array([1, 2, 3, 4]),
            }
            plain |= {
                "holdout": 0.25,
                "combiner": "logistic",
                "group_norms": [1, 2],
                "importances": [1, 2, 3, 4],
            }
        one = make(np.float64(1.0), **parameters).fit(*data)
        assert one.release_ == make(1.0, **plain).fit(*data).release_
        assert one.from_release(Release.from_json(one.release_.to_json())).release_ == one.release_


class TestNames:
    @both
    def test_are_kept_and_checked(self, data, make):
        frame = pd.DataFrame(data[0], columns=["age", "bmi", "dose", "sex"])
        one = make().fit(frame, data[1])
        assert list(one.feature_names_in_) == ["age", "bmi", "dose", "sex"]
        with pytest.raises(ValueError, match="feature names"):
            one.predict(frame[["bmi", "age", "dose", "sex"]])
        rebuilt = type(one).from_release(one.release_)
        np.testing.assert_array_equal(rebuilt.predict_proba(frame), one.predict_proba(frame))

    def test_groups_by_name_in_a_pipeline(self, data):
        frame = pd.DataFrame(data[0], columns=["age", "bmi", "dose", "sex"])
        groups = [["dose", "age"], ["bmi", "sex"]]
        pipeline = make_pipeline(Normalizer(), stack(feature_groups=groups))
        pipeline.set_output(transform="pandas").fit(frame, data[1])
        assert pipeline[-1].feature_groups_ == ((2, 0), (1, 3))
        assert set(pipeline.predict(frame)) <= {"ill", "well"}


@both
def test_repr_and_html_show_no_private_number(data, make):
    one = make().fit(*data)
    for text in (repr(one), one._repr_html_()):
        assert not any(f"{number:.4f}" in text for number in data[0].ravel())
