"""Predictions for private records: each by itself, without failing, without a word.

A sensitivity holds for a record only if what is predicted for it depends on it alone. Estimators
that are known to predict row by row are asked for a whole table at once; of others, a copy sees one
record and is thrown away, so that nothing it may remember is released. A record for which there is
no prediction has NaN: a failure must not show.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble, linear_model, tree

from skdpsurv.privacy import silence

__all__ = ["ROW_WISE", "predicted_numbers", "predicted_probabilities"]

FloatArray = NDArray[np.float64]

#: Their predictions are sums over columns, or walks down trees, of each row.
ROW_WISE: frozenset[type] = frozenset(
    {
        linear_model.ElasticNet,
        linear_model.GammaRegressor,
        linear_model.HuberRegressor,
        linear_model.Lasso,
        linear_model.LinearRegression,
        linear_model.LogisticRegression,
        linear_model.PoissonRegressor,
        linear_model.QuantileRegressor,
        linear_model.Ridge,
        linear_model.RidgeClassifier,
        linear_model.SGDClassifier,
        linear_model.SGDRegressor,
        linear_model.TweedieRegressor,
        tree.DecisionTreeClassifier,
        tree.DecisionTreeRegressor,
        ensemble.ExtraTreesClassifier,
        ensemble.ExtraTreesRegressor,
        ensemble.RandomForestClassifier,
        ensemble.RandomForestRegressor,
    }
)


def predicted_numbers(fitted: Any, X: FloatArray) -> FloatArray:
    """Return predicted outcomes, of shape (n_records,); NaN where there is none."""
    return _row_by_row(fitted, X, _numbers, 1)[:, 0]


def predicted_probabilities(fitted: Any, X: FloatArray) -> FloatArray:
    """Return class probabilities in [0, 1], of shape (n_records, n_classes).

    Of a classifier without probabilities, 1 for the class that it predicts. NaN where there is no
    prediction.
    """
    return np.clip(_row_by_row(fitted, X, _likely, len(fitted.classes_)), 0.0, 1.0)


def _numbers(fitted: Any, rows: FloatArray) -> FloatArray:
    return np.asarray(fitted.predict(rows), dtype=np.float64).reshape(-1, 1)


def _likely(fitted: Any, rows: FloatArray) -> FloatArray:
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(rows), dtype=np.float64)
    said, classes = np.asarray(fitted.predict(rows)).tolist(), fitted.classes_.tolist()
    return np.array([[float(label == one) for one in classes] for label in said])


def _row_by_row(
    fitted: Any, X: FloatArray, predict: Callable[[Any, FloatArray], FloatArray], width: int
) -> FloatArray:
    def asked(rows: FloatArray) -> FloatArray | None:
        one = fitted if type(fitted) in ROW_WISE else copy.deepcopy(fitted)
        try:
            found = predict(one, rows)
        except Exception:  # whatever it is, it may speak of a private record
            return None
        return found if found.shape == (rows.shape[0], width) else None

    with silence():
        if type(fitted) in ROW_WISE:
            found = asked(X)
            if found is not None:
                return found
        missing = np.full((1, width), np.nan)
        rows = [asked(row[None, :]) for row in X]
    return np.vstack([missing if row is None else row for row in rows])
