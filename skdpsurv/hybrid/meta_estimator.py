"""What estimators share that fit another one with released weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdpsurv.checks import Check, by
from skdpsurv.lazy import lazily
from skdpsurv.tabular import TabularEstimator
from skdpsurv.types import FloatArray

__all__ = ["PrivateMetaEstimator"]


def delegated(name: str) -> Callable[[Any], bool]:
    """Say that a method is there if the estimator inside has it."""

    def check(outer: Any) -> bool:
        # Raises AttributeError, with the name of the estimator inside, if it has no such method.
        getattr(getattr(outer, "estimator_", None) or outer._estimator, name)
        return True

    return check


def _lazily(name: str) -> Any:
    """Have a method take collections of Dask; what the estimator inside says of a row shows how."""

    def said(outer: Any) -> NDArray[Any]:
        check_is_fitted(outer, "estimator_")
        inner = outer.estimator_
        return np.asarray(getattr(inner, name)(np.zeros((1, inner.n_features_in_))))

    def width(outer: Any) -> int | None:
        shape = said(outer).shape
        return int(shape[1]) if len(shape) > 1 else None

    return lazily(width, lambda outer: said(outer).dtype)


def _check_estimator(estimator: Any) -> None:
    """Refuse an estimator that cannot be fitted with weights, or again."""
    if estimator is None:
        return
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            "estimator must have a fit that takes sample_weight, and "
            f"{type(estimator).__name__} has none."
        )
    if clone(estimator) is estimator:
        # The one that is asked about private records would be the one that is released.
        raise TypeError(
            "estimator must be such that sklearn.base.clone makes another one, and "
            f"{type(estimator).__name__} returns itself."
        )


class PrivateMetaEstimator(TabularEstimator):
    """Base: a subclass releases weights, and says how rows become what the estimator sees."""

    _rules: ClassVar[dict[str, Check]] = {"estimator": by(_check_estimator)}

    estimator: Any
    estimator_: Any

    def _matrix(self, X: Any) -> FloatArray:
        """Return rows as the estimator inside sees them."""
        raise NotImplementedError

    @property
    def _estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels that a classifier knows."""
        return np.asarray(self.estimator_.classes_)

    @_lazily("predict")
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return what ``estimator_`` predicts.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            Of Dask, what is returned is an array of Dask.
        """
        rows = self._matrix(X)
        return np.asarray(self.estimator_.predict(rows))

    @available_if(delegated("predict_proba"))
    @_lazily("predict_proba")
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the class probabilities of ``estimator_``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            Of Dask, what is returned is an array of Dask.
        """
        rows = self._matrix(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @available_if(delegated("decision_function"))
    @_lazily("decision_function")
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision function of ``estimator_``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            Of Dask, what is returned is an array of Dask.
        """
        rows = self._matrix(X)
        return np.asarray(self.estimator_.decision_function(rows))

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
        raise ValueError(
            f"A {type(self).__name__} has no formula: the estimator that it fits is not in the "
            "release."
        )
