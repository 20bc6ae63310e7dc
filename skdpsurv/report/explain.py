"""A release in words, as a formula, and as coefficients per unit of the raw columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data import PublicBoundsScaler, PublicColumns, public_steps
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import Expression, Feature, known_names, raw_features
from skdpsurv.descriptive import DPTableOne
from skdpsurv.release.script import formula_of
from skdpsurv.report.text import TEMPLATES, WORDS, how_many, listed


def units(release: Any) -> pd.DataFrame:
    """Return coefficients per unit of the raw columns, and of categories against the reference.

    That of a ``log`` column is per doubling of its sum with the offset, as ``unit`` says.

    They hold within the public bounds: beyond, columns are clipped. A column whose slope changes
    has a level for each range of one slope. Beside products of columns
    (interactions, powers), the coefficient of a column holds where all others are in the middle of
    their bounds, or at their reference. That of a product is per unit of each factor. Splines, and
    their products, have no coefficient per unit and are left out: ``effect`` of a model has them.

    Parameters
    ----------
    release : Release

    Returns
    -------
    pandas.DataFrame
        Indexed by column and level. Columns: coef, exp(coef), unit.

    Raises
    ------
    ValueError
        If the model has no coefficients of columns, or of splines alone, or a feature mixes columns
        but as a product.
    """
    return units_of(release._model, release.features)


def units_of(estimator: Any, features: Sequence[Feature]) -> pd.DataFrame:
    """Return coefficients per unit of the raw columns, for the estimator of :func:`units`.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivacyGuarantee, Release
    >>> from skdpsurv.data.feature import Expression, Feature
    >>> from skdpsurv.report.explain import units_of
    >>> age, sex = (Expression("column", numbers=(name,)) for name in ("age", "sex"))
    >>> scaled, female = Expression("scale", (age,), (50, 25)), Expression("is", (sex,), ("f",))
    >>> features = [
    ...     Feature("age", scaled, column="age", per_unit=1 / 25, unit="years"),
    ...     Feature("sex_f", female, column="sex", level="f", per_unit=1.0),
    ... ]
    >>> values = {"coef": [[1.5, -0.25]], "intercept": [0.125], "max_residual": 1.0}
    >>> release = Release(
    ...     "DPLogisticRegression", PrivacyGuarantee(1.0), {"classes": ["no", "yes"]}, values, 2
    ... )
    >>> units_of(DPLogisticRegression.from_release(release), features).round(3)
                  coef  exp(coef)               unit
    column level
    age            0.06      1.062              years
    sex    f      -0.25      0.779  against reference
    """
    check_is_fitted(estimator, "release_")
    coef = getattr(estimator, "coef_", None)
    if coef is None:
        raise ValueError(
            f"A {type(estimator).__name__} has no coefficients of columns: regressions of survival "
            "times, logistic regressions and linear models have."
        )
    table = np.atleast_2d(coef)
    if table.shape[1] != len(features):
        raise ValueError("features must be as many as the estimator has coefficients.")
    linear = [
        j
        for j, one in enumerate(features)
        if one.per_unit is not None or not _has_spline(one.expression)
    ]
    if linear:
        table, features = table[:, linear], [features[j] for j in linear]
    if bad := [feature.name for feature in features if feature.per_unit is None]:
        raise ValueError(
            "Coefficients per unit need features that each are a multiple of one column, or of a "
            f"product of columns, and these are none: {', '.join(map(repr, bad))}. A model's "
            "effect(column) has the effect of a spline."
        )
    labels = [(column_of(feature), level_of(feature)) for feature in features]
    measured = Counter(column for column, level in labels if level is None)
    for several in sorted(column for column, n in measured.items() if n > 1):
        places = [j for j, label in enumerate(labels) if label == (several, None)]
        ends = sorted(filter(None, (features[j].raw_bounds for j in places)))
        if len(ends) < len(places) or any(a[1] > b[0] for a, b in pairwise(ends)):
            raise ValueError(
                f"Coefficients per unit need one feature of each column; {several} has several."
            )
        for j in places:
            labels[j] = several, "{:.12g} to {:.12g}".format(*features[j].raw_bounds or ())
    rows: list[tuple[Any, ...]] = [(c, "" if level is None else level) for c, level in labels]
    names = ["column", "level"]
    if len(table) > 1:
        what, stated = outputs_of(estimator)
        rows = [(label, *row) for label in stated for row in rows]
        names = [what, *names]
    per_unit = (table * np.array([feature.per_unit for feature in features])).ravel()
    units = ["against reference" if f.level is not None else f.unit for f in features]
    columns = {"coef": per_unit, "exp(coef)": ratios_of(per_unit), "unit": units * len(table)}
    return pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(rows, names=names))


def outputs_of(model: Any) -> tuple[str, list[Any]]:
    """Say of what rows of coefficients are, a class or a cause; and return all labels."""
    if hasattr(model, "causes_"):
        return "cause", list(model.causes_)
    return "class", model.classes_.tolist()


def _has_spline(step: Expression) -> bool:
    steps = step.of if step.kind in ("fill", "scale", "product") else ()
    return step.kind == "spline" or any(map(_has_spline, steps))


def ratios_of(coef: Any) -> Any:
    """Return exp(coef), which may overflow."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(coef)


def column_of(feature: Feature) -> str:
    """Return the name of the column of a feature, or its own if it has none."""
    return feature.name if feature.column is None else feature.column


def level_of(feature: Feature) -> Any:
    """Return the level that a feature indicates, "missing" for an indicator of missing values."""
    missing = feature.level is None and feature.expression.kind == "missing"
    return "missing" if missing else feature.level


def explain(release: Any) -> str:
    """Say in plain words what was released, of what columns, and what is promised.

    Parameters
    ----------
    release : Release

    Returns
    -------
    str
    """
    return TEMPLATES.get_template("explain.txt.jinja").render(
        release=release, described=described(release), many=how_many(release.made_by, "")
    )


def formula(release: Any) -> str:
    """Return the model as a formula of raw columns.

    Parameters
    ----------
    release : Release

    Returns
    -------
    str
        A formula that needs no package; its numbers have all their digits.

    Raises
    ------
    ValueError
        If the model has no formula.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.report import formula
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=10.0, n_intervals=2)
    >>> text = formula(fitter.fit([2.0, 5.0, 9.5], [1, 0, 1]).release_)
    >>> "survival(time) = exp(-hazard(time)), hazard linear between" in text
    True
    """
    return formula_of(release._model, release.features)


def described(release: Any) -> list[tuple[str, str]]:
    """Return the columns of a release, and what they hold, as far as it says."""
    names = known_names(release.feature_names_in, release.n_features_in)
    if release.columns is None:
        return []
    words = dict(WORDS["missing"])
    if release.estimator == DPTableOne.__name__:
        words |= dict.fromkeys(("midpoint", "category"), words["counted"])
    return list(_column_words(release.transformer(), names, words))


def _column_words(
    step: Any, names: Sequence[str], missing: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield columns, and what they hold or what is done to them, in words."""
    if public_steps.is_nothing(step):
        yield listed(names), "taken as given"
    elif isinstance(step, Pipeline):
        for _, inner in step.steps:
            yield from _column_words(inner, names, missing)
            features = public_steps.features_of(inner, raw_features(names))
            names = [feature.name for feature in features]
    elif isinstance(step, ColumnTransformer):
        parts = [(inner, indices) for _, inner, indices in public_steps.branches(step, names)]
        parts = [part for part in parts if not public_steps.is_dropped(part[0])]
        used = {j for _, indices in parts for j in indices}
        if unused := [name for j, name in enumerate(names) if j not in used]:
            yield listed(unused), "not used"
        for inner, indices in parts:
            yield from _column_words(inner, [names[j] for j in indices], missing)
    elif isinstance(step, PublicColumns | PublicBoundsScaler):
        kinds, strata = public_steps.kinds_of(step, names), getattr(step, "strata", None)
        told: dict[str, Any] = {"missing": "stratum", "reference": None}
        kinds = [replace(kind, **told) if kind.column == strata else kind for kind in kinds]
        yield from described_kinds(kinds, missing)
    else:
        description = public_steps.describe(step, names) or {}
        parameters = ", ".join(f"{k}={v!r}" for k, v in description["parameters"].items())
        yield listed(names), f"{description['step']} of scikit-learn ({parameters})"


def described_kinds(
    kinds: Sequence[ColumnKind], missing: Mapping[str, str] = WORDS["missing"]
) -> list[tuple[str, str]]:
    """Return columns, their contents, what is stated of these, and the meaning of missing ones."""
    found = []
    for kind in kinds:
        typical = str(kind.typical).lower() if isinstance(kind.typical, bool) else kind.typical
        text = f"{typical:.12g}" if isinstance(typical, float) else typical
        told = "" if typical is None else f"typical is {text}; "
        if kind.spread is not None:
            told += f"spread of {kind.spread:.12g}, as stated; "
        if kind.prevalence is not None:
            shares = zip(kind.labels, kind.prevalence, strict=True)
            told += f"shares, as stated: {', '.join(f'{name} {p:.12g}' for name, p in shares)}; "
        if kind.over_time is not None:
            told += f"its effect changes over time ({', '.join(kind.over_time.names)}); "
        found.append((kind.column, f"{kind.words()}; {told}{missing[kind.missing]}"))
    return found
