"""Inputs that once got past the refusals, or failed after the charge."""

from decimal import Decimal

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, PoissonRegressor

from skdpsurv import DPLogisticRegression, DPWeibullFitter, HybridMEstimator, PrivacyAccountant
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.published import PerturbedHistogramMEstimator
from tests.support import checks
from tests.support.faults import Tongue
from tests.support.registry import LARGEST, NAME, SURVIVAL


def labels() -> tuple[np.ndarray, np.ndarray]:
    return np.eye(6), np.arange(6) % 2


def raises_in_its_own_words():
    """A cell whose conversion raises RuntimeError with a text of its own."""
    X = np.zeros((6, 1), dtype=object)
    X[0, 0] = Tongue()
    return checks.fit(DPLogisticRegression(classes=[0, 1]), X, labels()[1])


def long_doubles():
    """Times that overflow where they become doubles."""
    time = np.array([1.0, np.longdouble("1e4000")], dtype=np.longdouble)
    return checks.fit(DPWeibullFitter(max_time=1.0), time, None)


def signalling_decimals():
    """A label that raises where it is compared."""
    y = np.array([0, 1, 0, 1, 0, Decimal("sNaN")], dtype=object)
    public = np.arange(6) < 4
    return checks.fit(HybridMEstimator(), np.eye(6), y, {"public": public})


def labels_with_fields():
    """Labels that sort but cannot be listed in a release."""
    y = np.array([(True, 1.0), (False, 2.0)] * 3, dtype=SURVIVAL)
    return checks.fit(DPLogisticRegression(), np.eye(6), y)


def huge_columns():
    """With epsilon=inf no row is clipped."""
    X, y = labels()
    return checks.fit(DPLogisticRegression(np.inf, classes=[0, 1]), LARGEST * X, y)


def more_jobs():
    """More workers than joblib can count."""
    one = PrivateSearchCV(
        DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, n_jobs=10**30
    )
    X, y = labels()
    return checks.fit(one, np.vstack([X] * 4), np.tile(y, 4))


def impossible_counts():
    """A score that fails inside of scikit-learn."""
    X, public = np.linspace(-1.0, 1.0, 20)[:, None], np.arange(20) % 2 == 0
    model = HybridMEstimator(PoissonRegressor()).fit(X, np.arange(20) % 3, public=public)
    return checks.called(model.score, X, -np.ones(20))


def without_dimensions():
    """An X with neither rows nor columns."""
    y = np.array([(True, 0.5)] * 6, dtype=SURVIVAL)
    return checks.fit(DPWeibullFitter(max_time=1.0), np.array(0.5), y)


def too_few_columns():
    """Fewer columns than the one with categories."""
    X = pd.DataFrame({"a": np.arange(6.0), "b": ["x", "y"] * 3})
    model = HybridMEstimator().fit(X, [0, 1, 1] * 2, public=np.arange(6) < 4)
    return checks.called(model.predict, X[["a"]])


def quoted_labels():
    """Labels that accuracy_score would quote."""
    X, y = labels()
    model = DPLogisticRegression(classes=[0, 1]).fit(X, y)
    return checks.called(model.score, X, [NAME] * 6)


FITS = {
    "cells that raise in their own words": raises_in_its_own_words,
    "long doubles": long_doubles,
    "signalling decimals": signalling_decimals,
    "labels with fields": labels_with_fields,
    "huge columns without privacy": huge_columns,
    "more jobs than an int has": more_jobs,
    "X without dimensions": without_dimensions,
}
CALLS = {
    "too few columns": too_few_columns,
    "scores that quote labels": quoted_labels,
    "scores of impossible counts": impossible_counts,
}


def test_fits_and_calls():
    for fault in FITS.values():
        checks.check_outcome(fault())
    for fault in CALLS.values():
        checks.check_refusal(fault())


def test_a_histogram_of_numbers_is_rebuilt_from_its_release():
    X = np.linspace(0.0, 1.0, 20)[:, None]
    model = PerturbedHistogramMEstimator(LinearRegression(), bounds=[(0, 1)], outcome=(0, 1))
    release = model.fit(X, X[:, 0]).release_
    built = PerturbedHistogramMEstimator.from_release(release, estimator=LinearRegression())
    np.testing.assert_array_equal(built.predict(X), model.predict(X))


def test_a_refusal_is_not_taken_for_a_fault():
    accountant = PrivacyAccountant()
    model = DPLogisticRegression(classes=[0, 1], accountant=accountant)
    outcome = checks.fit(model, np.full((6, 1), np.nan), labels()[1])
    checks.check_outcome(outcome)
