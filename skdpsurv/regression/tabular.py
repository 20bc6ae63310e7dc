"""Estimators of tables: raw rows go in, if ``columns`` says what the columns hold."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base import PrivateEstimator, Weakness
from skdpsurv.data.encoding import encoded, made_of_one
from skdpsurv.data.feature import (
    Feature,
    missing_from_prior,
    same_features,
    small_budget,
    unstated_norm,
    wide_bounds,
)
from skdpsurv.data.public_steps import features_in, public_transformer, rebuild
from skdpsurv.data.shape import Shape, is_frame, refuse_moments, require_in_memory, seen_shape
from skdpsurv.dp import call_without_data
from skdpsurv.dp.checks import Check
from skdpsurv.dp.guarantee import frozen
from skdpsurv.dp.refusals import refuse_foreign_cells
from skdpsurv.dp.types import FloatArray
from skdpsurv.priors import Prior, of_the_same_ledger
from skdpsurv.release import Release


def _transformer(name: str, columns: Any) -> None:
    if columns is not None:
        public_transformer(name, columns)


class TabularEstimator(PrivateEstimator):
    """Base of private estimators whose X is a table.

    A subclass has the parameter ``columns``, and sees rows of numbers: those of
    :meth:`_fitting_rows` in ``fit``, and of :meth:`_asked_rows` later. With ``columns`` these are
    features, which a public transformer makes of raw rows. It is cloned, and applied to each block
    of rows by itself: as it learns nothing, what it makes of a row depends on that row alone, and
    neighbours stay neighbours (docs/proofs/columns).
    """

    columns: Any = None
    #: The transformer of the fit, or None. Public.
    columns_: Any
    n_features_in_: int

    _rules: ClassVar[dict[str, Check]] = {"columns": _transformer}

    def _shape(self, X: Any, *args: Any, **kwargs: Any) -> Shape:
        """Return how many records there are, and how many features their columns make."""
        seen = seen_shape(self, X)
        if self.columns is None:
            return seen
        features = self._features(self.columns)
        # What a release will say of the columns must be what they are: else predictions would fail.
        names, description = self._described()
        again = rebuild(frozen("columns", description))
        n_columns = self.n_features_in_
        made, remade = (made_of_one(step, n_columns, names) for step in (self.columns, again))
        same = same_features(features, features_in(again, n_columns, names))
        if not (same and np.array_equal(made, remade)):
            raise ValueError("columns must be steps that a release can describe.")
        return replace(seen, n_features=len(features))

    def _doubts(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        doubts = super()._doubts(shape, X, y, **options)
        if self.columns is not None:
            doubts += wide_bounds(self._features(self.columns))
        # Noise on coefficients is measured by a norm of rows; other noise has other rules.
        if hasattr(self, "data_norm") and math.isfinite(self.epsilon):
            number = shape.n_features * getattr(shape, "n_outputs", 1)
            doubts += small_budget(shape.n_records, float(self.epsilon), number)
            of_groups = getattr(getattr(self, "partition", None), "norms", None)
            norms = [self.data_norm, self.columns, of_groups]
            if all(norm is None or isinstance(norm, str) for norm in norms):
                doubts += unstated_norm()
        return doubts + self._doubts_of_prior(shape)

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        known = of_the_same_ledger(getattr(self, "prior", None), self.accountant)
        return [*super()._weaknesses(shape), *(Weakness("proved", text) for text in known)]

    #: What a prior is asked for; "" where it is read in another way.
    _is_evidence_of: ClassVar[tuple[str, ...]] = ()

    def _doubts_of_prior(self, shape: Shape) -> list[str]:
        """Ask about columns that a prior speaks of, and these records do not have."""
        if not self._is_evidence_of or self.columns is None or math.isinf(self.epsilon):
            return []
        classes = getattr(shape, "classes", None)
        outputs = None if classes is None else classes.tolist()
        (model,) = self._is_evidence_of
        found = self._read_prior(model, shape.n_features, outputs)
        return [] if found is None else missing_from_prior(found.lacking)

    def _features(self, columns: Any) -> list[Feature]:
        """Return what columns make, once their number and names were seen."""
        return features_in(columns, self.n_features_in_, self._raw_names())

    def _raw_names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _feature_names(self) -> list[str] | None:
        """Return the names of the features of a fit, or None if there are none."""
        if self.columns is None:
            return self._raw_names()
        return [feature.name for feature in self._features(self.columns)]

    def _read_prior(self, model: str, n_features: int, outputs: Any = None) -> Prior | None:
        """Return what ``prior`` says of the coefficients of a fit; None without one."""
        prior: Release | None = getattr(self, "prior", None)
        features = None if self.columns is None else self._features(self.columns)
        names = self._feature_names()
        return Prior.read(prior, model, n_features, names, self.columns, features, outputs)

    def _fitting_rows(self, X: Any) -> FloatArray:
        """Return the features of records, after refusing what has no place in the public domain."""
        return self._rows(X, self.columns)

    def _growth(self, shape: Shape) -> float:
        """Return how much more memory features take than the columns that they are made of."""
        return (shape.n_features + 2) / (self.n_features_in_ + 2)

    def _asked_rows(self, X: Any) -> FloatArray:
        """Return the features of rows that somebody asks about."""
        check_is_fitted(self)
        # A product has other last bits in another layout of memory.
        return np.ascontiguousarray(self._rows(X, self.columns_))

    def _of_features(self) -> Self:
        """Return the same model, of rows that are features already."""
        plain = copy.copy(self)
        plain.columns_ = None
        plain.n_features_in_ = self.release_.n_features
        plain.__dict__.pop("feature_names_in_", None)
        return plain

    def _rows(self, X: Any, columns: Any) -> FloatArray:
        require_in_memory(X)
        if columns is None:
            refuse_moments(X)
            refuse_foreign_cells(X)
            options = {"dtype": np.float64, "reset": False}
            return np.asarray(call_without_data(validate_data, self, X, **options))
        if is_frame(X):  # others have no names that could be wrong
            call_without_data(validate_data, self, X, skip_check_array=True, reset=False)
        return encoded(columns, X, self.n_features_in_, self._raw_names())
