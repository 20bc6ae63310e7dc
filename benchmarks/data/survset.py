"""Data sets of the package SurvSet, all columns, with bounds that somebody could have stated.

``survset(name)`` has round bounds, wide enough for all but 1 % of each column. Nobody stated them:
good for comparing fits with and without privacy, and not private.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from benchmarks.data.survival import Survival, survset_frame

#: Of a column with more categories nothing is used.
MOST_CATEGORIES = 30


@cache
def survset(name: str) -> Survival:
    """Return a data set, scaled; times beyond a round horizon are censored there."""
    frame = survset_frame(name)
    columns: dict[str, np.ndarray] = {}
    flags = []
    for column in frame.columns.difference(["pid", "event", "time"], sort=False):
        values = frame[column]
        if column.startswith("fac_"):
            levels = sorted(values.dropna().astype(str).unique())
            if len(levels) <= MOST_CATEGORIES:
                for one in levels[1:]:
                    columns[f"{column}={one}"] = np.where(values.astype(str) == one, 1.0, -1.0)
                    flags.append(True)
        else:
            low, high = _round_bounds(*np.nanquantile(values, [0.005, 0.995]))
            scaled = np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)
            columns[column] = scaled.fillna(0.0).to_numpy()
            flags.append(False)
    horizon = _round_bounds(0.0, float(frame.time.quantile(0.98)))[1]
    time = np.maximum(frame.time.to_numpy(dtype=float), 1e-9 * horizon)
    event = frame.event.to_numpy().astype(bool) & (time <= horizon)
    X = np.column_stack(list(columns.values()))
    time = np.minimum(time, horizon)
    return Survival(name, X, event, time, horizon, tuple(columns), tuple(flags))


def _round_bounds(low: float, high: float) -> tuple[float, float]:
    if high <= low:
        return low - 1.0, high + 1.0
    unit = 10.0 ** math.floor(math.log10(high - low)) / 2.0
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit
