"""Estimators around another one: the public mask, the outcome, weighted fits and predictions.

**Weighted fits** are post-processing of released weights, so that their failures may show. Weights
are noisy counts and may be negative. Clipped to 0 they suit any estimator, and are biased upwards.
Unclipped they are unbiased, and suit a loss that stays convex with them: the solution found is
checked, and if it is no minimum the clipped weights are used.

**Predictions for private records** are made for each record by itself, as a sensitivity holds for a
record only if its prediction depends on it alone. Estimators that are known to predict row by row
get a whole table at once; of others, a copy sees one record and is thrown away. Copies may share
something (a cache, a running statistic, a service), which the guarantee says:
:func:`prediction_assumptions`. No estimator that was asked about a private record is released. A
record without a prediction has NaN: a failure must not show.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdpsurv.base import tabular
from skdpsurv.base.pipelines import last_step
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.public_steps import is_nothing
from skdpsurv.data.shape import length, refuse_no_target, require_one_each, size, take
from skdpsurv.dp.checks import Check, custom
from skdpsurv.dp.containers import shape_of, unlabelled
from skdpsurv.dp.input_errors import call_or_none, refuse_masked
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.thread_warnings import warnings_as_errors
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.likelihoods.loss import gram


def boolean_mask(public: ArrayLike | None, n_records: int) -> BoolArray:
    """Return a mask that may be all True or all False."""
    if public is None:
        raise ValueError("public must be given: a boolean for each record.")
    refuse_masked(public, "public")
    found: Any = call_or_none(np.asarray, public)
    mask: NDArray[Any] = np.empty(0) if found is None else found
    if mask.dtype.kind == "O" and all(isinstance(one, bool | np.bool_) for one in mask.ravel()):
        mask = mask.astype(bool)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError("public must be a one-dimensional array of booleans.")
    if mask.size != n_records:
        raise ValueError(f"public must have {n_records} booleans, got {mask.size}.")
    return mask


def public_part(classifies: bool, block: tuple[Any, ...]) -> tuple[Any, NDArray[Any]]:
    """Return the public records of a block, and their outcomes, without a look at private ones."""
    X, y, public = block
    mask = boolean_mask(public, size(X)[0])
    refuse_no_target(y)
    refuse_masked(y, "y")
    listed = isinstance(y, list | tuple) or shape_of(y) is not None
    values = y if listed else call_or_none(partial(np.asarray, dtype=object), y)
    n_records = call_or_none(length, values)
    if n_records is None:
        raise ValueError(tabular.NO_OUTCOME)
    require_one_each(n_records, mask.size)
    theirs = take(values, np.flatnonzero(mask))
    with warnings.catch_warnings():  # the private records warn, once
        warnings.simplefilter("ignore", DataConversionWarning)
        outcome = checked_outcome(theirs, int(mask.sum()), classifies)
    return take(X, np.flatnonzero(mask)), outcome


def checked_outcome(y: Any, n_records: int, classifies: bool) -> NDArray[Any]:
    """Return labels, as Python's own objects, or numbers."""
    if not classifies:
        return tabular.checked_numbers(y, n_records)
    # Objects: one private label must not change the type of the public ones.
    outcome = tabular.one_column(y, n_records, object)
    # None: an object compares with nothing.
    if call_or_none(lambda: bool(pd.isna(outcome).any())) is not False:
        raise ValueError("y contains NaN or missing labels; every record must have a label.")
    return outcome


def fit_clone(estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray) -> Any:
    """Fit a clone to public records; of a pipeline, the last step takes the weights."""
    given = {f"{last_step(estimator)[0]}sample_weight": weights}
    # A step may change rows in place, and the way of weights is known without requests.
    with config_context(enable_metadata_routing=False):
        return clone(estimator).fit(X.copy(), y, **given)


def takes_signed_weights(estimator: Any) -> bool:
    """Return whether signed weights are sound for this estimator."""
    if type(estimator) is Pipeline and predicts_row_by_row(estimator):
        estimator = estimator.steps[-1][1]
    if type(estimator) is LogisticRegression:
        smooth = estimator.solver in ("lbfgs", "newton-cg", "newton-cholesky")
        return smooth and estimator.class_weight is None
    return type(estimator) is PoissonRegressor


def fit_weighted(
    estimator: Any,
    X: FloatArray,
    y: NDArray[Any],
    weights: FloatArray,
    signed: bool,
    fit_equally: Callable[[], Any],
) -> Any:
    """Return a new clone of the estimator, fitted to weighted records."""
    if signed:
        # Not convex with these weights, or no minimum.
        with suppress(ValueError, ArithmeticError, Warning):
            with warnings_as_errors():
                fitted = fit_clone(estimator, X, y, weights)
            *scalers, final = scaled_steps(fitted)
            rows = X
            for scaler in scalers:
                rows = scaler.transform(rows.copy())
            if is_minimum(final, rows, weights):
                return fitted
    clipped = np.maximum(weights, 0.0)
    if not clipped.any():
        clipped = np.ones_like(weights)
    fitted = call_or_none(lambda: fit_clone(estimator, X, y, clipped))
    # It may fail, say, for a class without weight, or a subset of one class.
    return fit_equally() if fitted is None else fitted


def is_minimum(fitted: Any, X: FloatArray, weights: FloatArray) -> bool:
    """Return whether a fit with signed weights is at a minimum: its Hessian is positive there."""
    coef = np.asarray(fitted.coef_)
    if not np.isfinite(coef).all() or (coef.ndim == 2 and coef.shape[0] > 1):
        return False
    predictor = X @ coef.ravel() + float(np.ravel(fitted.intercept_)[0])
    if isinstance(fitted, LogisticRegression):
        likely = 0.5 * (1.0 + np.tanh(0.5 * predictor))
        curvature = likely * (1.0 - likely)
        ridge = 0.0 if getattr(fitted, "penalty", "l2") is None else 1.0 / fitted.C
    else:
        if weights.sum() <= 0.0:  # by which its losses are divided
            return False
        with np.errstate(over="ignore"):
            curvature = np.exp(predictor) / weights.sum()
        ridge = fitted.alpha
    rows = np.column_stack([X, np.ones(X.shape[0])]) if fitted.fit_intercept else X
    hessian = gram(rows, curvature * weights)
    columns = np.arange(X.shape[1])
    hessian[columns, columns] += ridge if np.isfinite(ridge) else 0.0
    return bool(np.isfinite(hessian).all() and np.linalg.eigvalsh(hessian)[0] > 0.0)


@functools.cache
def row_wise() -> frozenset[type]:
    """Return the types that are known to predict row by row; subclasses may do anything.

    Their predictions are sums over columns, or walks down trees, of each row. A table of finite
    numbers within the public range makes none of them fail: they check that numbers are finite
    (trees: in single precision, too), and the public rows, of the same range, have passed that in
    fit. An overflow stays in its row.
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


#: Transformers of each cell by an increasing map: a number within the public range cannot overflow
#: where the ends of that range, which public records have, did not in fit.
SCALERS = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)


def scaled_steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline but those that do nothing, or an estimator alone."""
    if type(estimator) is not Pipeline:
        return [estimator]
    return [step for _, step in estimator.steps if not is_nothing(step)]


def predicts_row_by_row(estimator: Any) -> bool:
    """Return whether an estimator predicts each row by itself; pipelines may scale first."""
    *scalers, final = scaled_steps(estimator)
    return type(final) in row_wise() and all(type(one) in SCALERS for one in scalers)


def prediction_assumptions(estimator: Any) -> tuple[str, ...]:
    """Return the assumptions on an estimator that predicts for private records."""
    if predicts_row_by_row(estimator):
        return ()
    return (WORDS["assumptions"]["predictor"].format(name=type(estimator).__name__),)


def predicted_numbers(fitted: Any, X: FloatArray) -> FloatArray:
    """Return predicted outcomes, of shape (n_records,); NaN for none."""
    return _row_by_row(fitted, X, _numbers, 1)[:, 0]


def predicted_probabilities(fitted: Any, X: FloatArray) -> FloatArray:
    """Return class probabilities in [0, 1], of shape (n_records, n_classes); NaN for none.

    A classifier without probabilities has 1 for the class that it predicts.
    """
    return np.clip(_row_by_row(fitted, X, _likely, len(fitted.classes_)), 0.0, 1.0)


def _numbers(fitted: Any, rows: FloatArray) -> FloatArray:
    return np.asarray(fitted.predict(rows), dtype=np.float64).reshape(-1, 1)


def _likely(fitted: Any, rows: FloatArray) -> FloatArray:
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(rows), dtype=np.float64)
    labels, classes = np.asarray(fitted.predict(rows)).tolist(), fitted.classes_.tolist()
    return np.array([[float(label == one) for one in classes] for label in labels])


def _row_by_row(
    fitted: Any, X: FloatArray, predict: Callable[[Any, FloatArray], FloatArray], width: int
) -> FloatArray:
    # The type alone decides: no record decides for another one.
    if predicts_row_by_row(fitted):
        whole = 1, (len(X), width)
        return tabular.ask_alone(fitted, lambda m, _: predict(m, X.copy()), *whole, copies=False)[0]
    each = len(X), (1, width)
    return tabular.ask_alone(fitted, lambda one, i: predict(one, X[i : i + 1].copy()), *each)[:, 0]


def delegated(name: str) -> Callable[[Any], bool]:
    """Say that a method is there if the estimator inside has it."""

    def check(outer: Any) -> bool:
        # Raises AttributeError, with the name of the estimator inside, if it has no such method.
        getattr(getattr(outer, "estimator_", None) or outer._estimator, name)
        return True

    return check


def _lazily(name: str) -> Any:
    """Have a method take collections of Dask; one placeholder row shows its shape and type."""

    def width(outer: Any) -> int | None:
        row = outer._example(name)
        return row.shape[1] if row.ndim > 1 else None

    return supports_lazy_input(width, lambda outer: outer._example(name).dtype)


def _check_estimator(estimator: Any) -> None:
    """Refuse an estimator that cannot be fitted with weights, or again."""
    if estimator is None:
        return
    name, (prefix, final) = type(estimator).__name__, last_step(estimator)
    if not (hasattr(final, "fit") and has_fit_parameter(final, "sample_weight")):
        name = f"the last step of a pipeline, {prefix.removesuffix('__')}," if prefix else name
        raise TypeError(f"estimator must have a fit that takes sample_weight, and {name} has none.")
    # One estimator would be asked about private records and released.
    if clone(estimator) is estimator:
        raise TypeError(f"estimator must be copied by sklearn.base.clone: {name} returns itself.")


class PrivateMetaEstimator(tabular.TabularEstimator):
    """Base: a subclass releases weights, and says how rows become what the estimator sees."""

    _rules: ClassVar[dict[str, Check]] = {"estimator": custom(_check_estimator)}

    estimator: Any
    estimator_: Any

    def _matrix(self, X: Any) -> FloatArray:
        """Return rows as the estimator inside sees them."""
        raise NotImplementedError

    @property
    def _estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    @property
    def _classifies(self) -> bool:
        return bool(is_classifier(self._estimator))

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels that a classifier knows."""
        return np.asarray(self.estimator_.classes_)

    @_lazily("predict")
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predictions of ``estimator_``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            For a collection of Dask, an array of Dask is returned.
        """
        return self._delegate("predict", X)

    @available_if(delegated("predict_proba"))
    @_lazily("predict_proba")
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the class probabilities of ``estimator_``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            For a collection of Dask, an array of Dask is returned.
        """
        return self._delegate("predict_proba", X)

    @available_if(delegated("decision_function"))
    @_lazily("decision_function")
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision function of ``estimator_``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            For a collection of Dask, an array of Dask is returned.
        """
        return self._delegate("decision_function", X)

    def _delegate(self, name: str, X: Any) -> NDArray[Any]:
        rows = self._matrix(X)  # before the estimator inside is asked for
        if not len(rows):
            return self._example(name)[:0]
        return np.asarray(getattr(self.estimator_, name)(rows))

    def _example(self, name: str) -> NDArray[Any]:
        """Return the result of a method for a placeholder row."""
        check_is_fitted(self, "estimator_")
        row = np.zeros((1, self.estimator_.n_features_in_))
        return np.asarray(getattr(self.estimator_, name)(row))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of ``estimator_``, which is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        float
        """
        return self._score(X, y, sample_weight, None)

    def _score(self, X: Any, y: Any, sample_weight: Any, public: Any) -> float:
        """Return the score on all records, or on those that are not public."""
        rows = self._matrix(X)
        outcome = checked_outcome(unlabelled(y, "y"), rows.shape[0], self._classifies)
        scored: Any = slice(None) if public is None else ~boolean_mask(public, rows.shape[0])
        options = {}
        if sample_weight is not None:
            options["sample_weight"] = np.asarray(sample_weight)[scored]

        def score() -> float:
            target = np.asarray(outcome[scored].tolist())  # labels in a type of their own
            return float(self.estimator_.score(rows[scored], target, **options))

        found = call_or_none(score)  # its own message may quote labels
        if found is None:
            raise ValueError("y must hold labels, or numbers, of the same type as those of fit.")
        return float(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags = replace(tags.classifier_tags, multi_label=False)
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags.required = True
        return tags

    def _formula(self, script: Any) -> str:
        raise ValueError(f"{type(self).__name__} has no formula: its release lacks the estimator.")
