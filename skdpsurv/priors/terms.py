"""Coefficients of other columns, bounds and codings, as coefficients of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.preprocessing.column_kinds import Category
from skdpsurv.preprocessing.feature import (
    Expression,
    Feature,
    require_same_units,
    same_features,
)
from skdpsurv.priors.evidence import Evidence, unknown
from skdpsurv.types import FloatArray


class Terms(NamedTuple):
    """What coefficients belong to.

    Parameters
    ----------
    features : sequence of Feature
    references : mapping of str to label
        Of categorical columns, what the others are compared with.
    whole : bool
        Whether ``references`` names that of every column that has one; else categories are not
        compared with those of other codings.
    """

    features: Sequence[Feature]
    references: Mapping[str, Any]
    whole: bool = True

    @classmethod
    def of(cls, features: Sequence[Feature], columns: Any) -> Terms:
        """Return those of features that a public transformer makes; None: of columns as they are.

        References are known of a PublicColumns.
        """
        kinds = columns._kinds() if hasattr(columns, "_kinds") else ()
        found = {
            kind.column: kind.reference
            for kind in kinds
            if isinstance(kind, Category) and kind.reference is not None
        }
        return cls(features, found, hasattr(columns, "_kinds"))

    def mapped(self, theirs: Terms, evidence: Evidence) -> Evidence:
        """Return what evidence of other terms says of these.

        A number's coefficient is that of one unit of the raw column, whatever its bounds; a
        category's is the difference to the reference, whichever that is. Nothing is known of terms
        that the others lack, or have in a form that this cannot be told from.

        Parameters
        ----------
        theirs : Terms
        evidence : Evidence
            Of shape (..., n_features).

        Raises
        ------
        ValueError
            If a column has another unit, or no term is common.
        """
        require_same_units("prior", self.features, theirs.features)
        alike = self.references == theirs.references or not (self.whole and theirs.whole)
        if alike and same_features(self.features, theirs.features):
            return evidence
        known = _Effects(theirs, evidence)
        found = unknown((*evidence.coef.shape[:-1], len(self.features)))
        for j, feature in enumerate(self.features):
            effect = known.of(feature, self)
            if effect is not None:
                found.coef[..., j], variance = effect
                found.error[..., j] = np.sqrt(variance)
        if not np.isfinite(found.error).any():
            raise ValueError(
                "prior must have a column in common with these records, of the same name and unit."
            )
        return found

    def numbers(self, column: str) -> list[Feature]:
        """Return the features that measure a column."""
        return [f for f in self.features if f.column == column and _is_number(f)]

    def lacking(self, theirs: Terms) -> list[str]:
        """Return columns of other terms that these do not have."""
        ours = {f.column for f in self.features}
        return list(
            dict.fromkeys(
                f.column for f in theirs.features if f.column is not None and f.column not in ours
            )
        )


Effect = tuple[FloatArray, FloatArray]


class _Effects:
    """Effects per unit of raw columns, and of labels against a reference, with variances."""

    def __init__(self, terms: Terms, evidence: Evidence) -> None:
        self.terms = terms
        #: With each of their features, on its own scale.
        self.made: list[tuple[Feature, Effect]] = []
        self.labels: dict[str, dict[Any, Effect]] = defaultdict(dict)
        for j, feature in enumerate(terms.features):
            effect = evidence.coef[..., j], evidence.error[..., j] ** 2
            self.made.append((feature, effect))
            if feature.column is not None and feature.per_unit is not None:
                self.labels[feature.column][_key(feature)] = _times(effect, feature.per_unit)
        nought = np.zeros(evidence.coef.shape[:-1])
        for column, label in terms.references.items():
            self.labels[column][_label(label)] = nought, nought

    def of(self, feature: Feature, terms: Terms) -> Effect | None:
        """Return the coefficient of a feature among other terms, or None."""
        column, step = feature.column, feature.per_unit
        if column is None or step is None:
            return self._same(feature)
        numbers, others = terms.numbers(column), self.terms.numbers(column)
        if _is_number(feature) or numbers:  # of a number, a missing one is relative to the middle
            if not same_features(numbers, others):
                alone = len(numbers) == len(others) == 1 and _is_number(feature)
                return self._number(feature, others[0], column, step) if alone else None
            return self._same(feature)
        effect = self._against_reference(feature, column, terms)
        return None if effect is None else _times(effect, 1.0 / step)

    def _same(self, feature: Feature) -> Effect | None:
        found = (e for other, e in self.made if same_features([feature], [other]))
        return next(found, None)

    def _number(self, feature: Feature, other: Feature, column: str, step: float) -> Effect | None:
        if _is_date(feature.expression) != _is_date(other.expression):
            raise ValueError(
                f"prior must measure column {column!r} in the same unit, "
                f"{feature.unit or 'not stated'}, got {other.unit or 'not stated'}."
            )
        return _times(self.labels[column][_key(other)], 1.0 / step)

    def _against_reference(self, feature: Feature, column: str, terms: Terms) -> Effect | None:
        known, own = self.labels.get(column, {}), _key(feature)
        if own not in known:
            return None
        if feature.level is True:  # against False
            return known[own]
        if not (terms.whole and self.terms.whole):
            return None
        if column not in terms.references:  # all labels have a coefficient
            ours = {_key(f) for f in terms.features if f.column == column}
            theirs = {_key(f) for f in self.terms.features if f.column == column}
            return known[own] if ours == theirs else None
        reference = _label(terms.references[column])
        if reference not in known:
            return None
        (coef, variance), (base, more) = known[own], known[reference]
        return coef - base, variance + more


def _times(effect: Effect, factor: float) -> Effect:
    coef, variance = effect
    return coef * factor, variance * factor**2


def _is_number(feature: Feature) -> bool:
    return feature.level is None and feature.expression.kind != "missing"


def _is_date(expression: Expression) -> bool:
    return expression.kind == "days" or any(map(_is_date, expression.of))


def _key(feature: Feature) -> Any:
    """Return what a feature tells of its column; of missing values there is no label."""
    if _is_number(feature):
        return ("number",)
    return ("missing",) if feature.expression.kind == "missing" else _label(feature.level)


def _label(label: Any) -> Any:
    return (type(label).__name__, label)
