"""How the classifiers behave inside scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdpsurv import BudgetExceededError, PrivacyAccountant, Release
from skdpsurv.classification import Perturbation
from tests.support.estimators import logistic as perturbed
from tests.support.estimators import stack_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(100, 4))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=100) > 0, "ill", "well")


def logistic(epsilon=1.0, **parameters):
    options = {"classes": ["ill", "well"], "random_state": 0, **parameters}
    return perturbed(epsilon, **options)


def stack(epsilon=1.0, **parameters):
    options = {"classes": ["ill", "well"], "random_state": 0, "n_partitions": 2, **parameters}
    return stack_of(epsilon, **options)


GRIDS = [
    (logistic, {"method": [Perturbation(max_residual=c) for c in (0.5, 1.0)]}),
    (stack, {"combiner": ["vote", "logistic"]}),
]


def search_of(make, values, path, budget, n_jobs=None):
    accountant = PrivacyAccountant(budget, path=path)
    pipeline = make_pipeline(Normalizer(), make(0.5, accountant=accountant, random_state=None))
    step = pipeline.steps[-1][0]
    grid = {f"{step}__{name}": chosen for name, chosen in values.items()}
    return accountant, GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs, error_score="raise")


@pytest.mark.parametrize(("make", "values"), GRIDS)
def test_every_fit_of_a_grid_search_is_charged(data, tmp_path, make, values):
    accountant, search = search_of(make, values, tmp_path / "ledger.db", 100.0)
    search.fit(*data)
    assert accountant.spent() == pytest.approx((2 * 2 + 1) * 0.5)
    assert set(search.predict(data[0])) <= {"ill", "well"}
    assert search.score(*data) > 0


@pytest.mark.slow
def test_an_exhausted_budget_stops_a_search_in_parallel(data, tmp_path):
    accountant, search = search_of(*GRIDS[1], tmp_path / "ledger.db", 2.0, n_jobs=2)
    with pytest.raises(BudgetExceededError):
        search.fit(*data)
    assert accountant.spent() <= 2.0


OF_BOTH = {
    "alpha": (np.float32(0.5), 0.5),
    "data_norm": (np.int64(2), 2),
    "fit_intercept": (np.True_, True),
    "intercept_scaling": (np.float64(0.25), 0.25),
    "classes": (np.array(["ill", "well"]), ["ill", "well"]),
    "max_residual": (np.float64(0.75), 0.75),
    "random_state": (np.int64(0), 0),
}
OF_STACKS = {
    "n_partitions": (np.int32(2), 2),
    "holdout": (np.float64(0.25), 0.25),
    "combiner": ("logistic", "logistic"),
    "group_norms": (np.array([1, 2]), [1, 2]),
    "importances": (np.array([1, 2, 3, 4]), [1, 2, 3, 4]),
}


@pytest.mark.parametrize(("make", "given"), [(logistic, OF_BOTH), (stack, OF_BOTH | OF_STACKS)])
def test_numpy_numbers_are_numbers(data, make, given):
    one, other = (
        make(epsilon, **{name: pair[k] for name, pair in given.items()}).fit(*data)
        for k, epsilon in enumerate((np.float64(1.0), 1.0))
    )
    assert one.release_ == other.release_
    assert one.from_release(Release.from_json(one.release_.to_json())).release_ == one.release_
