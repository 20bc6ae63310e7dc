r"""What the records of a fit say of its coefficients by themselves, and how sure they are of it.

A perturbed minimiser f of rows that carry the information h in each direction is, nearly,

.. math:: f = \frac{h\,\theta + b + \sqrt h\,\xi}{h + \kappa} + e,

with :math:`\xi` what sampling does, b the noise in the objective and e that on the minimiser. So

.. math::
    y = \frac{h + \kappa}{h} f, \qquad
    v = \frac{\operatorname{Var} b + h + (h + \kappa)^2 \operatorname{Var} e}{h^2}

are an estimate of :math:`\theta` and its variance. h is not known; a guess from public and released
numbers will do where y is compared with estimates that were made alike. Whoever needs errors to
act on asks for them (``inference_share``).

Coefficients of other columns, bounds and codings are read as coefficients of these, as far as that
goes. All of this is computed from what was released: it costs nothing (docs/proofs/priors).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from skdpsurv.data.column_kinds import Category
from skdpsurv.data.feature import Expression, Feature, require_same_units, same_features
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.perturbation import Calibrated
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.release.published_table import MODELS

_NAMES = ("evidence_coef", "evidence_error")
#: Records agree with a prior if their estimate's part along it is at least so many of its standard
#: errors, and at least such a part of it (docs/benchmarks/priors).
LEAST_ERRORS, LEAST_PART = 0.5, 0.25


@dataclass(frozen=True, eq=False)
class Evidence:
    """Unshrunk estimates of coefficients, each with a standard error of its own.

    Parameters
    ----------
    coef, error : ndarray of one shape
        Errors are positive; infinite where nothing is known, and ``coef`` is 0 there.
    """

    coef: FloatArray
    error: FloatArray

    @classmethod
    def of_minimiser(
        cls, minimiser: FloatArray, information: FloatArray | float, calibration: Calibrated
    ) -> Self:
        """Return what a perturbed minimiser says."""
        h = np.full(minimiser.shape, information, dtype=np.float64)
        linear, output = (
            0.0 if law is None else law.deviation**2
            for law in (calibration.linear, calibration.output)
        )
        steep = h + calibration.kappa
        variance = (linear + h + steep**2 * output) / h**2
        return cls(minimiser * steep / h, np.sqrt(variance))

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers of a release."""
        return dict(zip(_NAMES, (self.coef, self.error), strict=True))

    @classmethod
    def of(cls, release: Release, shape: tuple[int, ...]) -> Self | None:
        """Return that of a release, or None if it has none."""
        if not any(name in release.values for name in _NAMES):
            return None
        coef, error = (released_array(release, name, shape) for name in _NAMES)
        if not (error > 0.0).all():
            raise ValueError(f"values of the release must hold {_NAMES[1]!r} that are positive.")
        return cls(coef, error)

    def scaled(self, factor: FloatArray | float) -> Evidence:
        """Return the same of coefficients times a factor, which is positive."""
        return Evidence(self.coef * factor, self.error * factor)

    def agrees(self, prior: Evidence) -> bool:
        r"""Say whether the estimate lies along a prior c, by one number.

        Of all that a prior may be wrong in, its direction does the harm. The part of it that the
        estimate shows is :math:`\rho = \sum c y / v \big/ \sum c^2 / v`, with the standard error
        :math:`(\sum c^2 / v)^{-1/2}`.
        """
        length, along = self._along(prior)
        return along > LEAST_ERRORS * math.sqrt(length) and along > LEAST_PART * length

    def with_prior(self, prior: Evidence) -> FloatArray:
        r"""Return the mean of both, weighed by their precisions.

        Where they differ by more than their errors have it, populations differ: with q the mean of
        :math:`(y - \rho c)^2 / (v + t^2)`, the prior's variance :math:`t^2` grows by
        :math:`(q - 1)(v + t^2)`. How long both are does not count: h is a guess.
        """
        known = np.isfinite(prior.error)
        length, along = self._along(prior)
        share = along / length if length > 0.0 else 0.0
        variance = self.error**2 + np.where(known, prior.error, 0.0) ** 2
        rest = (self.coef - share * prior.coef)[known] ** 2 / variance[known]
        excess = max(float(np.mean(rest)) - 1.0, 0.0) if known.any() else 0.0
        own = self.error**-2.0
        theirs = np.where(known, 1.0 / (prior.error**2 + excess * variance), 0.0)
        return np.asarray((own * self.coef + theirs * prior.coef) / (own + theirs))

    def _along(self, prior: Evidence) -> tuple[float, float]:
        """Return the squared length of a prior, and the estimate's part along it, by precision."""
        known = np.isfinite(prior.error)
        c, weight = prior.coef[known], self.error[known] ** -2.0
        return float(np.sum(c * weight * c)), float(np.sum(c * weight * self.coef[known]))

    def posterior_mean(self, fitted: FloatArray, prior: Evidence | None) -> FloatArray:
        """Return coefficients as fitted, or together with a prior that these records agree with."""
        if prior is None or not self.agrees(prior):
            return fitted
        return self.with_prior(prior)


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
        whole = hasattr(columns, "_kinds")
        kinds = [kind for kind in columns._kinds() if isinstance(kind, Category)] if whole else []
        found = {kind.column: kind.reference for kind in kinds if kind.reference is not None}
        return cls(features, found, whole)

    def mapped(self, theirs: Terms, evidence: Evidence) -> Evidence:
        """Return what evidence of other terms says of these.

        A number's coefficient is that of one unit of the raw column, whatever its bounds; a
        category's is the difference to the reference, whichever that is. Nothing is known of terms
        that the others lack, or have in a form that this cannot be told from.
        """
        require_same_units("prior", self.features, theirs.features)
        alike = self.references == theirs.references or not (self.whole and theirs.whole)
        if alike and same_features(self.features, theirs.features):
            return evidence
        known = _Effects(theirs, evidence)
        shape = (*evidence.coef.shape[:-1], len(self.features))
        found = Evidence(np.zeros(shape), np.full(shape, np.inf))
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
        columns = [f.column for f in theirs.features if f.column is not None]
        return [column for column in dict.fromkeys(columns) if column not in ours]


Effect = tuple[FloatArray, FloatArray]


class _Effects:
    """Effects per unit of raw columns, and of labels against a reference, with variances."""

    def __init__(self, terms: Terms, evidence: Evidence) -> None:
        self.terms = terms
        self.labels: dict[str, dict[Any, Effect]] = defaultdict(dict)
        #: With each of their features, on its own scale.
        self.made: list[tuple[Feature, Effect]] = [
            (feature, (evidence.coef[..., j], evidence.error[..., j] ** 2))
            for j, feature in enumerate(terms.features)
        ]
        for feature, effect in self.made:
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


class PublishedCoefficients:
    """What ``Release.from_coefficients`` returns a release of: a table, which predicts nothing."""

    _beyond_release: ClassVar[str] = "records of your own, for which it is the prior,"
    _is_evidence_of: ClassVar[tuple[str, ...]] = MODELS

    @classmethod
    def from_release(cls, release: Release, **parameters: Any) -> NoReturn:
        """Refuse: a table of coefficients has no baseline."""
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
    """Return terms and references of a release, as far as they are such."""
    labels = str | int | bool | None
    try:
        terms = [(column, level) for column, level in release.parameters["terms"]]
        references = dict(release.parameters["references"])
        pairs = [*terms, *references.items()]
        if all(isinstance(column, str) and isinstance(one, labels) for column, one in pairs):
            return Terms([_feature(column, level) for column, level in terms], references)
    except (TypeError, ValueError, AttributeError):
        pass
    raise ValueError("parameters of the release must hold terms, and references of categories.")


def _feature(column: str, level: Any) -> Feature:
    raw = Expression("column", numbers=(column,))
    if level is None:
        return Feature(column, raw, column=column, per_unit=1.0)
    indicated = Expression("is", (raw,), (level,))
    return Feature(f"{column}_{level}", indicated, 0.0, 1.0, column, level, per_unit=1.0)


Release.kinds.setdefault("PublishedCoefficients", PublishedCoefficients)
