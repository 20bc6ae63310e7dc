"""Data sets of the package SurvSet, all columns, with bounds that somebody could have stated.

``survset(name)`` has round bounds, wide enough for all but 1 % of each column. Nobody stated them:
good for comparing fits with and without privacy, and not private.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

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


class Described(NamedTuple):
    """Raw columns with what is stated of each, outcomes, and a horizon."""

    X: pd.DataFrame
    y: np.ndarray
    max_time: float
    stated: dict[str, dict[str, Any]]


@cache
def described(name: str, most_records: int, careless: bool = False) -> Described:
    """Return raw columns of a data set, or of the first records of a large one in a random order.

    Careless bounds of numbers are three times as wide, on a random side.
    """
    frame = survset_frame(name)
    rows = np.random.default_rng(0).permutation(len(frame))[:most_records]
    frame = frame.iloc[rows].reset_index(drop=True)
    side = np.random.default_rng(1)
    stated: dict[str, dict[str, Any]] = {}
    X = {}
    for column in frame.columns.difference(["pid", "event", "time"], sort=False):
        values = frame[column]
        if column.startswith("fac_"):
            labels = sorted(values.dropna().astype(str).unique())
            if 1 < len(labels) <= MOST_CATEGORIES:
                X[column] = values.astype(str).where(values.notna(), labels[0]).astype(object)
                stated[column] = {"categories": labels}
            continue
        low, high = _round_bounds(*np.nanquantile(values, [0.005, 0.995]))
        if careless:
            width = 2.0 * (high - low)
            low, high = (low - width, high) if side.random() < 0.5 else (low, high + width)
        X[column] = values.astype(float)
        stated[column] = {"bounds": (low, high), "missing": "midpoint"}
    horizon = _round_bounds(0.0, float(frame.time.quantile(0.98)))[1]
    y = np.empty(len(frame), [("event", "?"), ("time", "f8")])
    time = np.maximum(frame.time.to_numpy(dtype=float), 1e-9 * horizon)
    y["event"] = frame.event.to_numpy().astype(bool) & (time <= horizon)
    y["time"] = np.minimum(time, horizon)
    return Described(pd.DataFrame(X), y, horizon, stated)


def with_spreads(stated: dict[str, dict[str, Any]], X: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return descriptions that also state means, spreads and shares, in one digit."""
    found = {}
    for name, one in stated.items():
        if "bounds" in one:
            low, high = one["bounds"]
            values = np.clip(X[name].fillna(low / 2 + high / 2), low, high)
            spread = float(np.clip(_one_digit(values.std()), 1e-3 * (high - low), high - low))
            typical = float(np.clip(_one_digit(values.mean()), low, high))
            found[name] = {**one, "spread": spread, "typical": typical}
        else:
            share_of = X[name].value_counts(normalize=True)
            each = (float(share_of.get(label, 0.0)) for label in one["categories"])
            shares = [max(_one_digit(share), 1e-3) for share in each]
            found[name] = {**one, "prevalence": [share / sum(shares) for share in shares]}
    return found


def _one_digit(value: float) -> float:
    return float(f"{value:.0e}")
