"""Evidence about other columns, bounds and codings, mapped to the features of a fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from skdpsurv.data.feature import Expression, Feature, require_same_units, same_features
from skdpsurv.dp.types import FloatArray
from skdpsurv.priors.evidence import Evidence
from skdpsurv.release import Release, check_parameters
from skdpsurv.release.card import Card
from skdpsurv.release.published_table import MODELS


class Terms(NamedTuple):
    """The features of coefficients, and the reference labels of categorical columns.

    Without ``whole``, references are incomplete, and categories are not compared between codings.
    """

    features: Sequence[Feature]
    references: Mapping[str, Any]
    whole: bool = True

    @classmethod
    def of(cls, features: Sequence[Feature], columns: Any) -> Terms:
        """Return the terms of features that a transformer makes: PublicColumns has references."""
        whole = hasattr(columns, "_kinds")
        kinds = columns._kinds() if whole else []
        references = {kind.column: kind.reference for kind in kinds if kind.reference is not None}
        return cls(features, references, whole)

    def mapped(self, theirs: Terms, evidence: Evidence) -> Evidence:
        """Return evidence of other terms as evidence of these.

        A number's coefficient is per unit of the raw column, whatever its bounds; a category's is
        the difference to the reference. Errors are infinite for terms that the others lack.
        """
        require_same_units("prior", self.features, theirs.features)
        alike = self.references == theirs.references or not (self.whole and theirs.whole)
        if alike and same_features(self.features, theirs.features):
            return evidence
        known = _Effects(theirs, evidence)
        shape = (*evidence.coef.shape[:-1], len(self.features))
        mapped = Evidence(np.zeros(shape), np.full(shape, np.inf))
        for j, feature in enumerate(self.features):
            effect = known.of(feature, self)
            if effect is not None:
                mapped.coef[..., j], variance = effect
                mapped.error[..., j] = np.sqrt(variance)
        if not np.isfinite(mapped.error).any():
            raise ValueError(
                "prior must have a column in common with these records, of the same name and unit."
            )
        return mapped

    def numbers(self, column: str) -> list[Feature]:
        """Return the features that are numbers of a column."""
        return [f for f in self.features if f.column == column and _is_number(f)]

    def products(self, column: str) -> list[Feature]:
        """Return products with other columns: beside them, an effect is at a value of those."""
        mixed = (f for f in self.features if f.column is None)
        return [f for f in mixed if column in _columns(f.expression)]

    def missing(self, theirs: Terms) -> list[str]:
        """Return columns of other terms that these do not have."""
        ours = {f.column for f in self.features}
        columns = [f.column for f in theirs.features if f.column is not None]
        return [column for column in dict.fromkeys(columns) if column not in ours]


Effect = tuple[FloatArray, FloatArray]


class _Effects:
    """Effects per unit of raw columns, and of labels against a reference, with variances."""

    def __init__(self, terms: Terms, evidence: Evidence) -> None:
        self.terms = terms
        self.labels: dict[str, dict[Any, Effect]] = defaultdict(dict)
        self.by_feature: list[tuple[Feature, Effect]] = [
            (feature, (evidence.coef[..., j], evidence.error[..., j] ** 2))
            for j, feature in enumerate(terms.features)
        ]
        for feature, effect in self.by_feature:
            if feature.column is not None and feature.per_unit is not None:
                self.labels[feature.column][_key(feature)] = _times(effect, feature.per_unit)
        zero = np.zeros(evidence.coef.shape[:-1])
        for column, label in terms.references.items():
            self.labels[column][_label(label)] = zero, zero

    def of(self, feature: Feature, terms: Terms) -> Effect | None:
        """Return the coefficient of a feature among other terms, or None."""
        column, step = feature.column, feature.per_unit
        if column is None or step is None:
            return self._same(feature)
        if not same_features(terms.products(column), self.terms.products(column)):
            return None
        numbers, others = terms.numbers(column), self.terms.numbers(column)
        if _is_number(feature) or numbers:  # a missing number is relative to the middle
            if not same_features(numbers, others):
                alone = len(numbers) == len(others) == 1 and _is_number(feature)
                return self._number(feature, others[0], column, step) if alone else None
            return self._same(feature)
        effect = self._against_reference(feature, column, terms)
        return None if effect is None else _times(effect, 1.0 / step)

    def _same(self, feature: Feature) -> Effect | None:
        found = (e for other, e in self.by_feature if same_features([feature], [other]))
        return next(found, None)

    def _number(self, feature: Feature, other: Feature, column: str, step: float) -> Effect | None:
        if _measure(feature.expression) != _measure(other.expression):
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
        (coef, variance), (base, base_variance) = known[own], known[reference]
        return coef - base, variance + base_variance


def _times(effect: Effect, factor: float) -> Effect:
    coef, variance = effect
    return coef * factor, variance * factor**2


def _is_number(feature: Feature) -> bool:
    return feature.level is None and feature.expression.kind != "missing"


def _measure(expression: Expression) -> list[Any]:
    """List the steps that make units of numbers differ: days of dates, logarithms, and powers."""
    kind, numbers = expression.kind, expression.numbers
    own = [kind, *numbers] if kind in ("log", "power") else ["days"] * (kind == "days")
    return own + [one for part in expression.of for one in _measure(part)]


def _columns(expression: Expression) -> set[str]:
    """Return the names of the raw columns in a formula."""
    own = {str(expression.numbers[0])} if expression.kind == "column" else set()
    return own.union(*map(_columns, expression.of))


def _key(feature: Feature) -> Any:
    """Return the label of a feature in its column; numbers and missing values have none."""
    if _is_number(feature):
        return ("number",)
    return ("missing",) if feature.expression.kind == "missing" else _label(feature.level)


def _label(label: Any) -> Any:
    return (type(label).__name__, label)


class PublishedCoefficients:
    """The estimator of ``Release.from_coefficients``: a table, which predicts nothing."""

    _card: ClassVar[Card] = Card(beyond_release="records of your own, for which it is the prior,")
    _is_evidence_of: ClassVar[tuple[str, ...]] = MODELS

    @classmethod
    def from_release(cls, release: Release, **parameters: Any) -> NoReturn:
        """Raise: a table of coefficients has no baseline."""
        raise ValueError(
            "a release of published coefficients is no model: pass it as prior= of an estimator."
        )

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence, Terms]:
        check_parameters(release, "model", "terms", "references")
        if release.parameters["model"] != model:
            raise ValueError(
                f"prior must hold log {'hazard' if model == 'hazard' else 'odds'} ratios, got "
                f"model={release.parameters['model']!r:.20}."
            )
        if outputs is not None and len(outputs) != 2:
            raise ValueError("prior must be of the same classes: published odds are of two.")
        terms = _read(release)
        evidence = Evidence.of(release, (len(terms.features),))
        if evidence is None:
            raise ValueError("values of the release must hold coefficients and their errors.")
        if outputs is not None:
            evidence = Evidence(evidence.coef[None], evidence.error[None])
        return evidence, terms


def _read(release: Release) -> Terms:
    """Return terms and references of a release; ValueError if it has none."""
    labels = str | int | bool | None
    with suppress(TypeError, ValueError, AttributeError):
        terms = [(column, level) for column, level in release.parameters["terms"]]
        references = dict(release.parameters["references"])
        pairs = [*terms, *references.items()]
        if all(isinstance(column, str) and isinstance(one, labels) for column, one in pairs):
            return Terms([_feature(column, level) for column, level in terms], references)
    raise ValueError("parameters of the release must hold terms, and references of categories.")


def _feature(column: str, level: Any) -> Feature:
    raw = Expression("column", numbers=(column,))
    if level is None:
        return Feature(column, raw, column=column, per_unit=1.0)
    indicated = Expression("is", (raw,), (level,))
    return Feature(f"{column}_{level}", indicated, 0.0, 1.0, column, level, per_unit=1.0)


Release.kinds.setdefault("PublishedCoefficients", PublishedCoefficients)
