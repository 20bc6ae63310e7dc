"""Coefficients that somebody has published, as what a release holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdpsurv.dp.checks import choice, instance, optional
from skdpsurv.dp.guarantee import PrivacyGuarantee

#: Coefficients are logarithms of hazard ratios, or of odds ratios.
MODELS = ("hazard", "odds")
#: Half width of an interval of 95 %, in standard errors.
HALF_WIDTH = 1.959963984540054


def published_table(
    coef: Mapping[Any, float] | None,
    standard_errors: Mapping[Any, float] | None,
    ratios: Mapping[Any, Sequence[float]] | None,
    model: str,
    references: Mapping[str, Any] | None,
    source: str,
) -> dict[str, Any]:
    """Return the fields of the release that ``Release.from_coefficients`` makes."""
    choice(*MODELS)("model", model)
    if not isinstance(source, str) or not source.strip():
        raise ValueError("source must say where the coefficients are published, as text.")
    mapping = optional(instance(Mapping, "a mapping"))
    mapping("coef", coef)
    mapping("standard_errors", standard_errors)
    mapping("ratios", ratios)
    mapping("references", references)
    if (ratios is None) == (coef is None) or (coef is None) != (standard_errors is None):
        raise ValueError(
            "coef and standard_errors must be given, or ratios instead: {term: (ratio, low, high)}."
        )
    if ratios is not None:
        pairs = {term: _of_ratio(term, row) for term, row in ratios.items()}
    elif coef is not None and standard_errors is not None:
        if list(coef) != list(standard_errors):
            raise ValueError("standard_errors must have the terms of coef, in the same order.")
        pairs = {term: (coef[term], standard_errors[term]) for term in coef}
    terms = [_term(term) for term in pairs]
    if len(set(terms)) < len(terms):
        raise ValueError("coef must have each term once.")
    known = dict(references or {})
    if missing := sorted({c for c, level in terms if level not in (None, True)} - set(known)):
        raise ValueError(
            "references must say what categories are compared with, {column: label}: "
            f"{', '.join(missing)} has none."
        )
    for column, label in known.items():
        named = isinstance(column, str) and isinstance(label, str | int | bool)
        if not named or (column, label) in terms:
            raise ValueError(
                "references must be {column: label}, and must not be terms themselves."
            )
    try:
        numbers = np.array([[float(x) for x in pair] for pair in pairs.values()])
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.ndim != 2 or not np.isfinite(numbers).all() or not (numbers[:, 1] > 0.0).all():
        raise ValueError("coef must be finite numbers, and standard_errors positive ones.")
    words, inputs = "none: published before", {"source": source}
    guarantee = PrivacyGuarantee(math.inf, status="none", mechanism=words, public_inputs=inputs)
    return {
        "estimator": "PublishedCoefficients",
        "guarantee": guarantee,
        "parameters": {"model": model, "terms": terms, "references": known, "source": source},
        "values": {"evidence_coef": numbers[:, 0], "evidence_error": numbers[:, 1]},
        "n_features_in": len(terms),
    }


def _of_ratio(term: Any, row: Sequence[float]) -> tuple[float, float]:
    try:
        ratio, low, high = map(float, row)
    except (TypeError, ValueError, OverflowError):
        ratio = low = high = math.nan
    if not 0.0 < low < high < math.inf or not low <= ratio <= high:
        raise ValueError(
            f"ratios must be (ratio, low, high), 0 < low <= ratio <= high; {term!r:.60} has not."
        )
    return math.log(ratio), (math.log(high) - math.log(low)) / (2.0 * HALF_WIDTH)


def _term(term: Any) -> tuple[str, Any]:
    column, level = term if isinstance(term, tuple) and len(term) == 2 else (term, None)
    if not isinstance(column, str) or not isinstance(level, str | int | bool | None):
        raise ValueError(
            f"coef must be by column, or by (column, level) of a category, got {term!r:.60}."
        )
    return column, level
