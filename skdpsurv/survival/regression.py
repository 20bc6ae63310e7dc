"""A released regression of survival times: what it predicts, as scikit-survival has it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.feature import short_horizon
from skdpsurv.data.shape import Shape, refuse_no_target, require_in_memory, require_one_each
from skdpsurv.data.target import event_and_time, no_events, paired
from skdpsurv.dp import check_unclipped
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.regression.tabular import TabularEstimator
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.step_function import StepFunction


def _n_times(model: Any, return_array: bool = False) -> int | None:
    return model.unique_times_.size if return_array else None


def _curves(model: Any, return_array: bool = False) -> Any:
    return np.float64 if return_array else object


class SurvivalRegression(TabularEstimator, ABC):
    """Base of private regressions with survival curves on a public grid of times.

    A subclass says how it spends epsilon and reads its records, as every
    :class:`~skdpsurv.base.PrivateEstimator` does. From a release it sets ``coef_`` and
    ``unique_times_``, and ``_cumulative_hazard(risk)`` says what they mean: the cumulative hazard
    at each of these times, of shape (n_samples, n_times), for risk scores of shape (n_samples,).
    """

    max_time: float | None
    coef_: FloatArray
    unique_times_: FloatArray

    @abstractmethod
    def _cumulative_hazard(self, risk: FloatArray) -> FloatArray:
        """Return cumulative hazards at ``unique_times_`` for each risk score."""

    def fit(self, X: ArrayLike, y: ArrayLike, *, person: ArrayLike | None = None) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Covariates, finite; raw, if ``columns`` says what they hold. Private.
        y : structured array of shape (n_samples,), or array-like of times
            Event indicator (bool) and time of event or censoring, in this order unless names say
            otherwise (days, status), as scikit-survival has them; a data frame of these two
            columns, or a tuple of the two arrays. A 1-D array of numbers holds times, all
            observed. Private.
        person : array-like of shape (n_samples,), or None
            Whose each record is, as whole numbers or text: of each person the first record is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, paired(y), person=person)

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> Blocks[Any]:
        """Return blocks of rows, events and times."""
        records = in_blocks(X, y).map(self._without_ledger()._rows_and_target)
        records = records.held(self._growth(shape))
        shape.require(records.map_reduce(lambda block: block[0].shape[0]))
        return records

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        doubts = super()._input_warnings(shape, X, y, **options) + no_events(y)
        if self.columns is not None and self.max_time is not None:
            doubts += short_horizon(self._features(self.columns), float(self.max_time))
        return doubts

    def _rows_and_target(self, block: tuple[Any, ...]) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return some of the records, after refusing what has no place in the public domain."""
        X, y = block
        rows = self._fitting_rows(X)
        if math.isinf(self.epsilon):
            check_unclipped(rows, "X")
        refuse_no_target(y)
        event, time = event_and_time(y)
        require_one_each(time.shape[0], rows.shape[0])
        return rows, event, time

    @supports_lazy_input(lambda self: None)
    def predict(self, X: ArrayLike) -> FloatArray:
        """Return risk scores: the covariates' part of the linear predictor, higher is riskier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        risk : ndarray of shape (n_samples,)
        """
        return np.asarray(self._prediction_rows(X) @ self.coef_)

    @supports_lazy_input(_n_times, _curves)
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
        values = self._cumulative_hazard(self.predict(X))
        return values if return_array else self._step_functions(values, 0.0)

    @supports_lazy_input(_n_times, _curves)
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
        values = np.exp(-self._cumulative_hazard(self.predict(X)))
        return values if return_array else self._step_functions(values, 1.0)

    @supports_lazy_input(lambda self: None)
    def predict_median(self, X: ArrayLike) -> FloatArray:
        """Return the time by which the event has come with probability 1/2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        median : ndarray of shape (n_samples,)
            One of ``unique_times_``; infinite where the median is beyond the horizon.
        """
        survival = self.predict_survival_function(X, return_array=True)
        has_come = survival <= 0.5
        median = self.unique_times_[has_come.argmax(axis=1)]
        return np.where(has_come.any(axis=1), median, np.inf)

    @supports_lazy_input(lambda self: None)
    def predict_expectation(self, X: ArrayLike) -> FloatArray:
        r"""Return the mean time until the event or the horizon, whichever is first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            :math:`\int_0^{t_m} S(t)\,dt` of the step functions, up to the last of
            ``unique_times_``: what is beyond the horizon is not known.
        """
        survival = self.predict_survival_function(X, return_array=True)
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        mean: FloatArray = before @ np.diff(self.unique_times_, prepend=0.0)
        return mean

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Harrell's concordance index, in O(n log² n), which is not private.

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
        require_in_memory(X, y, sample_weight)
        return concordance_index(paired(y), self.predict(X), sample_weight=sample_weight)

    def _step_functions(self, values: FloatArray, at_zero: float) -> NDArray[Any]:
        times = np.concatenate([[0.0], self.unique_times_])
        functions = np.empty(values.shape[0], dtype=object)
        for i, row in enumerate(values):
            functions[i] = StepFunction(times, np.concatenate([[at_zero], row]))
        return functions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
