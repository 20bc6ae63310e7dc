"""scikit-learn's own checks of the search."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpsurv import DPLogisticRegression
from skdpsurv.model_selection import PrivateSearchCV

GRID = {"alpha": [0.01, 1.0]}
INSTANCES = [
    PrivateSearchCV(DPLogisticRegression(), GRID, strategy="split"),
    PrivateSearchCV(DPLogisticRegression(), GRID, expected_runs=3.0),
    PrivateSearchCV(
        DPLogisticRegression(), GRID, strategy="split", refit=0.5, scoring="brier", random_state=0
    ),
]
#: Check that is expected to fail -> reason. None is.
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(INSTANCES, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
