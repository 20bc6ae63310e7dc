"""What a fitted hazard model predicts, as scikit-survival has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data
from sksurv.functions import StepFunction

from skdpsurv.likelihoods.links import LINKS
from skdpsurv.metrics import concordance_index
from skdpsurv.privacy import call_without_data
from skdpsurv.release import Release
from skdpsurv.survival.spline import published_basis
from skdpsurv.types import FloatArray


class HazardPredictions:
    """Predictions from ``coef_``, ``baseline_coef_`` and the parameters of the release."""

    coef_: FloatArray
    baseline_coef_: FloatArray
    unique_times_: FloatArray
    release_: Release

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return risk scores: the covariates' part of the linear predictor, higher is riskier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        risk : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows: FloatArray = call_without_data(validate_data, self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_)

    def predict_cumulative_hazard_function(
        self, X: ArrayLike, return_array: bool = False
    ) -> NDArray[Any]:
        r"""Return cumulative hazards, :math:`-\log S(t)`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        cumulative_hazard : ndarray
            Of StepFunction, shape (n_samples,): 0 before the first of ``unique_times_``, defined on
            [0, max_time]; or of float, shape (n_samples, n_intervals).
        """
        values = self._cumulative_hazard(X)
        return values if return_array else self._step_functions(values, 0.0)

    def predict_survival_function(self, X: ArrayLike, return_array: bool = False) -> NDArray[Any]:
        """Return survival functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        survival : ndarray
            Of StepFunction, shape (n_samples,): 1 before the first of ``unique_times_``, defined on
            [0, max_time]; or of float, shape (n_samples, n_intervals).
        """
        values = np.exp(-self._cumulative_hazard(X))
        return values if return_array else self._step_functions(values, 1.0)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Harrell's concordance index, in O(n log n), which is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or array-like of times
        sample_weight : array-like of shape (n_samples,) or None
            Pairs count with the product of their weights.

        Returns
        -------
        c_index : float
            0.5 where no pair can be compared.
        """
        return concordance_index(y, self.predict(X), sample_weight=sample_weight)

    def _cumulative_hazard(self, X: ArrayLike) -> FloatArray:
        risk = self.predict(X)
        parameters = self.release_.parameters
        basis = published_basis(parameters["n_intervals"], parameters["n_knots"])
        eta = basis @ self.baseline_coef_ + risk[:, None]
        return np.cumsum(LINKS[parameters["link"]].survival(eta).value, axis=1)

    def _step_functions(self, values: FloatArray, at_zero: float) -> NDArray[Any]:
        times = np.concatenate([[0.0], self.unique_times_])
        functions = np.empty(values.shape[0], dtype=object)
        for i, row in enumerate(values):
            functions[i] = StepFunction(times, np.concatenate([[at_zero], row]))
        return functions
