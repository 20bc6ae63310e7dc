"""Centres and spreads of features by a released Table 1, with the errors that noise left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import Feature, same_features
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference.uncertainty import half_width

#: Mean and standard deviation of a feature, on its scale, and the standard errors of both.
Moments = tuple[float, float, float, float]


def moments_of(
    kinds: Sequence[ColumnKind], table: pd.DataFrame, features: Sequence[Feature]
) -> FloatArray:
    """Return means, spreads and the errors of both, shape (4, n_features); NaN where unknown.

    ``table`` has 95 % intervals. A feature is known if columns of the table make the same one.
    """
    known = {one.name: (one, found) for kind in kinds for one, found in _of_kind(kind, table)}
    rows = np.full((4, len(features)), np.nan)
    for j, feature in enumerate(features):
        if feature.name in known and same_features([known[feature.name][0]], [feature]):
            rows[:, j] = known[feature.name][1]
    return rows


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
        (feature,) = features
        if feature.is_log:  # a table has the mean of its column, and that says little of logarithms
            return
        low, high = kind.ends
        (mean, mean_error), (spread, error) = found("", "mean"), found("", "sd")
        # Missing cells are in the middle of the bounds.
        unit, off = feature.per_unit or math.nan, mean - (low / 2 + high / 2)
        spread = math.sqrt(here * (spread**2 + (1.0 - here) * off**2))
        yield feature, (unit * here * off, unit * spread, unit * mean_error, unit * error)
        return
    for feature in features:
        label = str(feature.level)
        share = found(label, "share")
        if np.isnan(share).any():  # the column of groups, of which sizes are released
            share = found("", "n", "n", label) / n
        yield feature, _of_share(share[0] * here, share[1])


def _of_share(share: float, error: float) -> Moments:
    share = min(max(share, 0.0), 1.0)
    return share, math.sqrt(share * (1.0 - share)), error, error
