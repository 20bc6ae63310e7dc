"""Data sets for Table 1: raw columns, what is public of them, and whose labels are the groups.

Bounds are those of `benchmarks.data`, stated without a look at the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from benchmarks.data.labelled import TABLE_BOUNDS
from benchmarks.data.survival import FLAG, SURVIVAL, Bounds
from benchmarks.harness import Setting
from skdpsurv import PublicColumns

#: Sets on which defaults were found; the others were kept apart.
FOUND_ON = ("flchain", "unemployment")
Raw = tuple[pd.DataFrame, dict[str, Any], str]


@dataclass(frozen=True)
class People:
    """Raw columns, their description, and the column of the groups."""

    frame: pd.DataFrame
    columns: PublicColumns
    by: str


def _described(frame: pd.DataFrame, bounds: Bounds) -> dict[str, Any]:
    """Return flags as booleans, other columns as numbers; those with gaps count them."""
    found: dict[str, Any] = {}
    for name, bound in bounds.items():
        missing = {"missing": "category"} if frame[name].isna().any() else {}
        found[name] = {"boolean": True} if tuple(bound) == FLAG else {"bounds": list(bound)}
        found[name] |= missing
    return found


def _survival(name: str, by: str) -> Callable[[Setting], Raw]:
    def load(setting: Setting) -> Raw:
        frame, _, _, _, bounds = SURVIVAL[name](setting)
        return frame, _described(frame, bounds), by

    return load


def _merged(frame: pd.DataFrame, flags: list[str]) -> pd.Series:
    """Return a label from flags of which at most one is set: its place, from 1; else 0."""
    return frame[flags].mul(range(1, len(flags) + 1)).sum(axis=1).astype(int)


def _hdfail(setting: Setting) -> Raw:
    frame, *_, bounds = SURVIVAL["hdfail"](setting)
    makers = [name for name in bounds if name.startswith("brand_")]
    frame = frame.assign(maker=_merged(frame, makers))
    kept = {name: bound for name, bound in bounds.items() if name not in makers}
    maker = {"categories": list(range(len(makers) + 1))}
    return frame, {**_described(frame, kept), "maker": maker}, "maker"


def _labelled(name: str, file: str, leave: tuple[str, ...]) -> Callable[[Setting], Raw]:
    """Return a loader of a table by its label; what has no bounds, and is not left, are flags."""

    def load(setting: Setting) -> Raw:
        frame = pd.read_csv(setting.file(file))
        bounds = TABLE_BOUNDS[name]
        rest = frame.columns.difference([*leave, *bounds], sort=False)
        return frame, _described(frame, {**bounds, **dict.fromkeys(rest, FLAG)}), "y"

    return load


def _gusto(setting: Setting) -> Raw:
    leave = ("region", "group", "small_group", "ant", "tx_sk_tpa", "tx_tpa")
    frame, columns, _ = _labelled("GUSTO-I", "gusto1_16regions.csv.gz", leave)(setting)
    columns |= {"killip": {"categories": [1, 2, 3, 4]}, "arm": {"categories": [0, 1, 2]}}
    return frame.assign(arm=_merged(frame, ["tx_sk_tpa", "tx_tpa"])), columns, "arm"


TABLES: dict[str, Callable[[Setting], Raw]] = {
    "flchain": _survival("flchain", "sex_male"),
    "unemployment": _survival("unemployment", "female"),
    "diabetes": _labelled("diabetes", "nhanes_diabetes.csv.gz", ("site", "survey_2011_12")),
    "GUSTO-I": _gusto,
    "readmission": _labelled(
        "readmission", "diabetes130_readmission.csv.gz", ("site_admission_source", "site_insurer")
    ),
    "hdfail": _hdfail,
}


@cache
def people(setting: Setting, name: str) -> People:
    """Return a data set; columns that nothing is said of are left out."""
    frame, columns, by = TABLES[name](setting)
    frame = frame[list(columns)]
    if "boolean" in columns[by]:
        frame = frame.assign(**{by: frame[by].astype(bool)})
    return People(frame, PublicColumns(columns), by)
