"""scikit-learn's own checks of the hybrid estimators."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpsurv import HybridMEstimator


class TwoOfThreeArePublic(HybridMEstimator):
    """The mask is required, and the checks know of none: here the row's number says it."""

    def fit(self, X, y, public=None):
        if public is None:
            rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            public = np.arange(rows.shape[0]) % 3 > 0
        return super().fit(X, y, public=public)


INSTANCES = [
    TwoOfThreeArePublic(),
    TwoOfThreeArePublic(LinearRegression(), 50.0, method="all"),
    TwoOfThreeArePublic(DecisionTreeClassifier(random_state=0), np.inf, method="cells"),
]
#: Check that is expected to fail -> reason. None is.
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(INSTANCES, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
