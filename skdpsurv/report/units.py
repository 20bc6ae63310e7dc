"""Coefficients per unit of the raw columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skdpsurv.preprocessing.feature import Feature


def units(release: Any) -> pd.DataFrame:
    """Return coefficients per unit of the raw columns, and of categories against the reference.

    They hold within the public bounds: beyond, columns are clipped.

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
        If the model has no coefficients of columns, or a feature mixes columns.
    """
    return units_of(release._model, release.features)


def units_of(estimator: Any, features: Sequence[Feature]) -> pd.DataFrame:
    """Return coefficients per unit of the raw columns, and of levels against their reference.

    They hold within the public bounds: beyond, columns are clipped.

    Parameters
    ----------
    estimator : PrivateEstimator
        Fitted, or built from a release.
    features : sequence of Feature
        What its coefficients belong to.

    Returns
    -------
    pandas.DataFrame
        Indexed by column and level ("" of what is measured), and by class before these if there
        are several. Columns: ``coef``; ``exp(coef)``, the ratio of odds or hazards if the model is
        one of these (of odds of classes, if ``max_residual_`` is 1); ``unit``, that of the column.

    Raises
    ------
    ValueError
        If the model has no coefficients of columns, if there is not one feature for each of them,
        or if a feature is no multiple of a column.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivacyGuarantee, Release
    >>> from skdpsurv.preprocessing.feature import Expression, Feature
    >>> from skdpsurv.report.units import units_of
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
    if bad := [feature.name for feature in features if feature.per_unit is None]:
        raise ValueError(
            "Coefficients per unit need features that each are a multiple of one column, and "
            f"these are none: {', '.join(map(repr, bad))}."
        )
    measured = Counter(f.column for f in features if level_of(f) is None and f.column is not None)
    if several := sorted(column for column, n in measured.items() if n > 1):
        raise ValueError(
            f"Coefficients per unit need one feature of each column, and {', '.join(several)} has "
            "several."
        )
    steps = np.array([feature.per_unit for feature in features], dtype=np.float64)
    places: list[tuple[Any, ...]] = [
        (f.name if f.column is None else f.column, "" if level_of(f) is None else level_of(f))
        for f in features
    ]
    names = ["column", "level"]
    if len(table) > 1:
        places = [(label, *place) for label in estimator.classes_.tolist() for place in places]
        names = ["class", *names]
    per_unit = (table * steps).ravel()
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.exp(per_unit)
    units = ["against reference" if f.level is not None else f.unit for f in features]
    columns = {"coef": per_unit, "exp(coef)": ratio, "unit": units * len(table)}
    return pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(places, names=names))


def level_of(feature: Feature) -> Any:
    """Return the level; an indicator of missing values must not pass for the column itself."""
    missing = feature.level is None and feature.expression.kind == "missing"
    return "missing" if missing else feature.level
