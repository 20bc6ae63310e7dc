"""Methods that a search delegates to its chosen model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base import PrivateEstimator
from skdpsurv.base.pipelines import private_step
from skdpsurv.dp.types import FloatArray
from skdpsurv.model_selection.losses import through_pipeline

#: Methods that scikit-learn's Pipeline does not delegate.
CURVES = ("predict_survival_function", "predict_cumulative_hazard_function")


def _delegated(name: str) -> Callable[[Any], bool]:
    """Return the check that the inner estimator has a method."""

    def check(search: Any) -> bool:
        model = getattr(search, "best_estimator_", search.estimator)
        # An AttributeError names the inner estimator.
        getattr(private_step(model)[1] if name in CURVES else model, name)
        return True

    return check


class BestModel(MetaEstimatorMixin, PrivateEstimator, released=False):
    """Base of a search, with the predictions of ``best_estimator_``."""

    estimator: Any
    best_estimator_: Any

    @available_if(_delegated("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return np.asarray(self._fitted.predict(X))

    @available_if(_delegated("predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return np.asarray(self._fitted.predict_proba(X))

    @available_if(_delegated("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of class probabilities of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return np.asarray(self._fitted.predict_log_proba(X))

    @available_if(_delegated("decision_function"))
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision function of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return np.asarray(self._fitted.decision_function(X))

    @available_if(_delegated("predict_survival_function"))
    def predict_survival_function(self, X: Any, return_array: bool = False) -> NDArray[Any]:
        """Return the survival functions of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.
        """
        final, rows = through_pipeline(self._fitted, X)
        return np.asarray(final.predict_survival_function(rows, return_array=return_array))

    @available_if(_delegated("predict_cumulative_hazard_function"))
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> NDArray[Any]:
        """Return the cumulative hazard functions of ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.
        """
        final, rows = through_pipeline(self._fitted, X)
        return np.asarray(final.predict_cumulative_hazard_function(rows, return_array=return_array))

    @available_if(_delegated("score"))
    def score(self, X: Any, y: Any = None, **options: Any) -> float:
        """Return the score of ``best_estimator_``, which is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **options : object
            Passed on.

        Returns
        -------
        float
        """
        return float(self._fitted.score(X, y, **options))

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels of a classifier."""
        return np.asarray(self._fitted.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._fitted.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns."""
        return np.asarray(self._fitted.feature_names_in_)

    @property
    def unique_times_(self) -> FloatArray:
        """Public grid of a model of survival."""
        return np.asarray(private_step(self._fitted)[1].unique_times_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
