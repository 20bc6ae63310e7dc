"""Centres and spreads of features by a released Table 1, with the errors that noise left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import Feature
from skdpsurv.data.known_columns import Moments
from skdpsurv.inference.uncertainty import half_width


def moments_of(table: Any) -> Iterator[tuple[Feature, Moments]]:
    """Yield the features of the columns of a fitted Table 1, with what it says of each."""
    frame = table.table_
    for kind in table.columns_._kinds():
        yield from _of_kind(kind, frame)


def features_of(columns: PublicColumns) -> list[Feature]:
    """Return the features of which a Table 1 of these columns says a mean and a spread.

    It has the mean of a column, and that says little of curves and products.
    """
    return [one for one in columns._features() if one.column is not None and not one.is_curved]


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
        if feature.is_curved:
            return
        low, high = kind.ends
        (mean, _), (spread, error) = found("", "mean"), found("", "sd")
        # Missing cells are in the middle of the bounds.
        unit, off = feature.per_unit or math.nan, mean - (low / 2 + high / 2)
        variance = here * (spread**2 + (1.0 - here) * off**2)
        # To the second order: else a spread that noise made 0 would seem to be exact.
        error = (2.0 * math.sqrt(variance) + error) * error
        yield feature, (unit * here * off, unit**2 * variance, unit**2 * error)
        return
    for feature in features:
        label = str(feature.level)
        share = found(label, "share")
        if np.isnan(share).any():  # the column of groups, of which sizes are released
            share = found("", "n", "n", label) / n
        yield feature, _of_share(share[0] * here, share[1])


def _of_share(share: float, error: float) -> Moments:
    share = min(max(share, 0.0), 1.0)
    return share, share * (1.0 - share), (abs(1.0 - 2.0 * share) + error) * error
