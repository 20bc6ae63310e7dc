"""Centres and spreads of features by a released Table 1, with the errors that noise left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import Feature
from skdpsurv.data.interaction import Interaction, kept_features
from skdpsurv.data.known_columns import Moments
from skdpsurv.data.number_kinds import Spline
from skdpsurv.inference.uncertainty import half_width


def moments_of(table: Any) -> Iterator[tuple[Feature, Moments]]:
    """Yield the features of the columns of a fitted Table 1, with what it says of each.

    Of curves it is what a normal number of that mean and spread has, and of products what
    independent columns have.
    """
    frame, known = table.table_, {}
    kinds, interactions = table.columns_._terms()
    for kind in kinds:
        for feature, found in _of_kind(kind, frame):
            known[feature.name] = found
            yield feature, found
    for one in interactions:
        for feature, names in _with_factors(one):
            if known.keys() >= set(names):
                yield feature, _of_product(*(known[name] for name in names))


def features_of(columns: PublicColumns) -> list[Feature]:
    """Return the features of which a Table 1 of these columns says a mean and a spread.

    It has the mean of a column, and that says little of its logarithm or power.
    """
    kinds, interactions = columns._terms()
    splines = {kind.column for kind in kinds if isinstance(kind, Spline)}
    own = [one for kind in kinds for one in kind.features()]
    found = [one for one in own if not one.is_curved or one.column in splines]
    names = {one.name for one in found}
    products = [(one, *pair) for term in interactions for one, pair in _with_factors(term)]
    return found + [feature for feature, *pair in products if names.issuperset(pair)]


def _with_factors(term: Interaction) -> Iterator[tuple[Feature, tuple[str, str]]]:
    """Yield the products of two columns with the names of their factors."""
    one, other = ([f.name for f in kept_features(kind)] for kind in term.factors)
    yield from zip(term.features(), product(one, other), strict=True)


def _of_kind(kind: ColumnKind, table: pd.DataFrame) -> Iterator[tuple[Feature, Moments]]:
    """Yield the features of a column, with what a table says of each."""

    def found(level: str, statistic: str, name: str = kind.column, part: str = "Overall") -> Any:
        place = (name, level, statistic, part)
        if place not in table.index:
            return np.array([math.nan, math.nan])
        row = table.loc[place]
        error = (row.people_high - row.people_low) / (2.0 * half_width(0.95))
        return np.array([row.estimate, error])

    n, gaps = float(found("", "n", "n")[0]), found("", "missing")
    gaps = np.zeros(2) if np.isnan(gaps).any() else gaps / n
    here, features = min(max(1.0 - gaps[0], 0.0), 1.0), kind.features()
    if kind.missing == "category":
        yield features.pop(), _of_share(*gaps)
    if kind.bounded:
        feature = features[0]
        if feature.is_curved and not isinstance(kind, Spline):
            return
        low, high = kind.ends
        (mean, _), (spread, error) = found("", "mean"), found("", "sd")
        # Missing cells are in the middle of the bounds.
        middle = low / 2 + high / 2
        off = mean - middle
        variance = here * (spread**2 + (1.0 - here) * off**2)
        # To the second order: else a spread that noise made 0 would seem to be exact.
        error = (2.0 * math.sqrt(variance) + error) * error
        if isinstance(kind, Spline):
            typical = min(max(middle + here * off, low), high)
            part = error / max(variance, 1e-300)
            for one in replace(kind, typical=typical, spread=math.sqrt(variance)).features():
                if one.center is not None and one.spread is not None:
                    square = one.spread**2
                    yield one, (one.center, square, part * square)
            return
        unit = feature.per_unit or math.nan
        yield feature, (unit * here * off, unit**2 * variance, unit**2 * error)
        return
    for feature in features:
        label = str(feature.level)
        share = found(label, "share")
        if np.isnan(share).any():  # the column of groups, of which sizes are released
            share = found("", "n", "n", label) / n
        yield feature, _of_share(share[0] * here, share[1])


def _of_product(one: Moments, other: Moments) -> Moments:
    """Return mean, variance and its error for a product of independent features."""
    mean, square = one[0] * other[0], (one[1] + one[0] ** 2) * (other[1] + other[0] ** 2)
    variance = max(square - mean**2, 0.0)
    parts = (error / max(own, 1e-300) for _, own, error in (one, other))
    return mean, variance, variance * math.hypot(*parts)


def _of_share(share: float, error: float) -> Moments:
    share = min(max(share, 0.0), 1.0)
    return share, share * (1.0 - share), (abs(1.0 - 2.0 * share) + error) * error
