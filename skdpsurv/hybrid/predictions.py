"""Predictions for private records: each by itself, without failing, without a word.

A sensitivity holds for a record only if what is predicted for it depends on it alone. Estimators
that are known to predict row by row are asked for a whole table at once; of others, a copy sees one
record and is thrown away. Whether copies share something (a cache, a running statistic, a service)
cannot be seen from here, and is said in the guarantee: :func:`prediction_assumptions`. What leaves
is fitted afresh: no estimator that was asked about a private record. A record for which there is no
prediction has NaN: a failure must not show.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import parallel_config

from skdpsurv.dp import suppressed_float_errors, suppressed_warnings
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.types import FloatArray


@functools.cache
def row_wise() -> frozenset[type]:
    """Return the types that are known to predict row by row; subclasses may do anything.

    Their predictions are sums over columns, or walks down trees, of each row. A table of finite
    numbers within the public range makes none of them fail: what they check is that numbers are
    finite (trees: as single precision, too), which the public rows, with the same range, have
    passed in fit; an overflow stays in its row.
    """
    from sklearn import ensemble, linear_model, tree

    known = {
        linear_model: "ElasticNet GammaRegressor HuberRegressor Lasso LinearRegression "
        "LogisticRegression PoissonRegressor QuantileRegressor Ridge RidgeClassifier "
        "SGDClassifier SGDRegressor TweedieRegressor",
        tree: "DecisionTreeClassifier DecisionTreeRegressor",
        ensemble: "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
        "RandomForestRegressor",
    }
    return frozenset(
        getattr(where, name) for where, names in known.items() for name in names.split()
    )


def prediction_assumptions(estimator: Any) -> tuple[str, ...]:
    """Return what must be true of an estimator that is asked for predictions of private records."""
    if type(estimator) in row_wise():
        return ()
    return (
        f"what {type(estimator).__name__} predicts for a record depends on that record alone, and "
        "is remembered nowhere: copies of it share no state that predictions change, be it of an "
        "object in it, its class, its module or a service",
    )


def asked_alone(
    model: Any,
    ask: Callable[[Any, int], Any],
    n_times: int,
    shape: tuple[int, ...],
    *,
    copies: bool = True,
) -> FloatArray:
    """Return numbers that a model is asked for once for each record, and in one thread.

    Threads add up the trees of a forest in the order in which they end, to all rows alike: in one
    thread no record moves the last bits of another one.
    """

    def asked(i: int) -> FloatArray:
        return np.asarray(ask(copy.deepcopy(model) if copies else model, i), dtype=np.float64)

    answers = np.full((n_times, *shape), np.nan)
    with suppressed_warnings(), suppressed_float_errors(), parallel_config("sequential"):
        for i in range(n_times):
            found = call_or_none(asked, i)
            if found is not None and found.shape == shape:
                answers[i] = found
    return answers


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
    # Which way is taken is decided by the type: no record decides for another one.
    if type(fitted) in row_wise():
        return asked_alone(
            fitted, lambda one, _: predict(one, X), 1, (len(X), width), copies=False
        )[0]
    return asked_alone(
        fitted, lambda one, i: predict(one, X[i : i + 1].copy()), len(X), (1, width)
    )[:, 0]
