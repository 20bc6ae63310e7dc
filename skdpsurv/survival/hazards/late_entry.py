"""Hazard models of people who enter late: seen from a time of their own (left truncation)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from skdpsurv.data.shape import Shape, require_in_memory
from skdpsurv.data.target import paired
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.hazards.estimand import EstimandModel
from skdpsurv.survival.hazards.regression import SurvivalRegression
from skdpsurv.survival.hazards.strata import stratum_of


class WithEntries(SurvivalRegression, late_entry=True):
    """Base of hazard models whose ``fit`` takes the time from which each record was seen."""

    _one_of_each = ("entry",)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        person: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Covariates, finite; raw, if ``columns`` describes them. Private.
        y : structured array of shape (n_samples,), or array-like of times
            Event indicator (bool) and time of event or censoring, in this order unless names say
            otherwise (days, status), as in scikit-survival; a data frame of these two columns, or
            a tuple of two arrays. A 1-D array of numbers holds times, all observed. Private.
        person : array-like of shape (n_samples,), or None
            Identifier of the person of each record, whole numbers or text. The first record of
            each person is used, with its entry, and the guarantee is about people. Private. None:
            each person has one record.
        entry : array-like of shape (n_samples,), or None
            Time from which each record was seen (delayed entry, left truncation), from the same
            start as the times of ``y``: a person is at risk in the intervals after that of the
            entry. Who enters in the interval of the exit, or later, or beyond ``max_time``, counts
            for nothing, and is not refused. Private; that there are entries is public. Needs a
            method without a chain. None: all people are seen from 0.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person, **({} if entry is None else {"entry": entry}))

    def _shape(self, X: Any, y: Any = None, entry: Any = None) -> Shape:
        return replace(super()._shape(X), has_entry=entry is not None)


class LateEntryModel(EstimandModel, WithEntries, late_entry=True):
    """Base of hazard models of one kind of event, of people who may enter late."""

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> float:
        """Return Harrell's concordance index, in O(n log² n). This score is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or array-like of times
        sample_weight : array-like of shape (n_samples,) or None
            Each pair counts with the product of its weights.
        entry : array-like of shape (n_samples,) or None
            As for ``fit``: a pair counts only if both are at risk at the time of the event.

        Pairs of different strata do not count.

        Returns
        -------
        c_index : float
            0.5 if no pair can be compared.
        """
        require_in_memory(X, y, sample_weight, entry)
        risk, others = (
            self.predict(X),
            {"entry": entry, "strata": stratum_of(self, X, self.columns_)},
        )
        return concordance_index(paired(y), risk, sample_weight=sample_weight, **others)

    def _refuse_with_entry(self) -> None:
        """Refuse settings that are not provided for with entries."""
        if self._sampling is not None:
            raise ValueError("entry must be None with method='psgld'.")
