"""Inputs that once got past the refusals, or failed after the charge."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, PoissonRegressor

from skdpsurv import DPLogisticRegression, DPWeibullFitter, HybridMEstimator
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.published import PerturbedHistogramMEstimator
from tests.support import checks
from tests.support.faults import Tongue
from tests.support.registry import LARGEST, NAME, SURVIVAL

X, Y = np.eye(6), np.arange(6) % 2
PUBLIC = {"public": np.arange(6) < 4}
speaking = np.zeros((6, 1), dtype=object)
speaking[0, 0] = Tongue()
logistic = DPLogisticRegression(classes=[0, 1])
many_jobs = PrivateSearchCV(logistic, {"alpha": [0.1, 1.0]}, n_jobs=10**30)
weibull = DPWeibullFitter(max_time=1.0)
FITS = {
    "a cell that raises in its own words": (logistic, speaking, Y),
    "long doubles that overflow as doubles": (
        *(weibull, np.array([1.0, np.longdouble("1e4000")], dtype=np.longdouble), None),
    ),
    "a label that raises where it is compared": (
        *(HybridMEstimator(), X, np.array([0, 1, 0, 1, 0, Decimal("sNaN")], dtype=object), PUBLIC),
    ),
    "labels that sort but cannot be listed in a release": (
        *(DPLogisticRegression(), X, np.array([(True, 1.0), (False, 2.0)] * 3, dtype=SURVIVAL)),
    ),
    "huge columns, of which none is clipped": (
        *(DPLogisticRegression(np.inf, classes=[0, 1]), LARGEST * X, Y),
    ),
    "more workers than joblib can count": (many_jobs, np.vstack([X] * 4), np.tile(Y, 4)),
    "neither rows nor columns": (
        *(weibull, np.array(0.5), np.array([(True, 0.5)] * 6, dtype=SURVIVAL)),
    ),
    "a refusal, which is no fault": (logistic, np.full((6, 1), np.nan), Y),
}


@pytest.mark.parametrize("what", FITS)
def test_fits(what):
    model, *records = FITS[what]
    checks.check_outcome(checks.fit(clone(model), *records))


def test_calls():
    """With a column too few; and scores that quote labels, or fail inside of scikit-learn."""
    frame = pd.DataFrame({"a": np.arange(6.0), "b": ["x", "y"] * 3})
    hybrid = HybridMEstimator().fit(frame, [0, 1, 1] * 2, **PUBLIC)
    checks.check_refusal(checks.called(hybrid.predict, frame[["a"]]))
    fitted = DPLogisticRegression(classes=[0, 1]).fit(X, Y)
    checks.check_refusal(checks.called(fitted.score, X, [NAME] * 6))
    rows, public = np.linspace(-1.0, 1.0, 20)[:, None], np.arange(20) % 2 == 0
    counts = HybridMEstimator(PoissonRegressor()).fit(rows, np.arange(20) % 3, public=public)
    checks.check_refusal(checks.called(counts.score, rows, -np.ones(20)))


def test_a_histogram_of_numbers_is_rebuilt_from_its_release():
    rows = np.linspace(0.0, 1.0, 20)[:, None]
    model = PerturbedHistogramMEstimator(LinearRegression(), bounds=[(0, 1)], outcome=(0, 1))
    release = model.fit(rows, rows[:, 0]).release_
    built = PerturbedHistogramMEstimator.from_release(release, estimator=LinearRegression())
    np.testing.assert_array_equal(built.predict(rows), model.predict(rows))
