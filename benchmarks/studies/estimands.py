"""Intervals of real people's hazard ratios: how often they hold what a release says they are about.

People are drawn with replacement from a data set. The truth is ``estimand`` of the whole set: the
coefficients of the loss without noise and ridge, with the centre, scales, radius and cap of that
very release. In other cases rows are put to people at random, and all coefficients are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data.survset import Described, described
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.spreads import APART, MOST_RECORDS, kind
from skdpsurv import DPDiscreteTimeSurvival, PublicColumns

SHARE, DELTA = 0.3, 1e-7
#: Fits of one measurement.
FITS = 10
#: Of fewer finite intervals of a column the share that holds the truth is not told.
FEWEST = 40
#: Columns that are used, of data sets with columns that say the same or what came after.
COLUMNS: dict[str, tuple[str, ...] | None] = {
    "flchain": (
        *("num_age", "num_kappa", "num_lambda", "num_creatinine", "num_sample_yr"),
        *("fac_sex", "fac_mgus"),
    ),
    "rott2": None,
    "UnempDur": None,
    "grace": None,
    "prostateSurvival": None,
    "nwtco": ("fac_stage", "fac_study", "fac_instit", "fac_histol", "num_age"),
    "TRACE": None,
    "scania": None,
    "divorce": None,
}
#: Epsilon, delta, and the data sets.
BUDGETS = (
    (1.0, DELTA, tuple(COLUMNS)),
    (3.0, DELTA, tuple(COLUMNS)),
    (3.0, 0.0, ("flchain", "rott2")),
)
PERMUTED = ("flchain", "nwtco", "TRACE")
KEYS = ["data", "epsilon", "delta", "permuted"]


def cases(setting: Setting) -> Iterator[Case]:
    for epsilon, delta, names in setting.of(BUDGETS, BUDGETS[1:2]):
        for name in setting.of(names, ("grace",)):
            yield {"data": name, "epsilon": epsilon, "delta": delta, "permuted": 0}
    for name in setting.of(PERMUTED, ("grace",)):
        yield {"data": name, "epsilon": 3.0, "delta": DELTA, "permuted": 1}


@cache
def people(name: str) -> Described:
    """Return the data set that is drawn from, with its columns."""
    data = described(name, MOST_RECORDS)
    columns = COLUMNS[name]
    if columns is None:
        return data
    stated = {column: data.stated[column] for column in columns}
    return data._replace(X=data.X[list(columns)], stated=stated)


@cache
def without_privacy(name: str) -> np.ndarray:
    """Return standard errors of Cox regression, in the order of a fit's features."""
    from lifelines import CoxPHFitter

    data = people(name)
    rows = PublicColumns(data.stated).fit(data.X).transform(data.X)
    frame = pd.DataFrame(np.asarray(rows)).assign(time=data.y["time"], event=data.y["event"])
    return CoxPHFitter().fit(frame, "time", "event").standard_errors_.to_numpy()


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each coefficient how many intervals are finite, and how many hold the truth."""
    data, found = people(case["data"]), []
    n = len(data.X)
    for number in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, number)
        draw = np.random.default_rng(key)
        places = draw.integers(0, n, n)
        rows = draw.permutation(places) if case["permuted"] else places
        model = DPDiscreteTimeSurvival(
            case["epsilon"],
            delta=case["delta"],
            link="cloglog",
            max_time=data.max_time,
            columns=PublicColumns(data.stated),
            inference_share=SHARE,
            random_state=key + 1,
        ).fit(data.X.iloc[rows], data.y[places])
        about = 0.0 if case["permuted"] else model.estimand(data.X, data.y).to_numpy()
        table = model.summary
        se = table["se(coef)"].to_numpy()
        held = np.abs(table["coef"].to_numpy() - about) <= 1.959964 * se
        found.append((np.isfinite(se), np.isfinite(se) & held, se))
    finite, held, se = map(np.array, zip(*found, strict=True))
    width = np.median(se, axis=0) / _in_units(case["data"], model)
    return [
        {
            "column": f"x{j}",
            "size": n,
            "events": data.y["event"].mean(),
            "fits": len(se),
            "finite": finite[:, j].sum(),
            "held": held[:, j].sum(),
            "width": width[j],
        }
        for j in range(se.shape[1])
    ]


def _in_units(name: str, model: Any) -> np.ndarray:
    """Return Cox's standard errors in the units of a summary."""
    per_unit = [feature.per_unit or 1.0 for feature in model.release_.features]
    return without_privacy(name) * np.abs(per_unit)


def report(rows: pd.DataFrame, pages: Pages) -> None:
    counts = rows.groupby([*KEYS, "column"], sort=False)
    sums = counts[["fits", "finite", "held"]].sum()
    columns = sums.join(counts[["size", "events", "width"]].median()).reset_index()
    whole, nulls = columns[columns.permuted == 0], columns[columns.permuted == 1]
    told = [_told(key, own) for key, own in whole.groupby(KEYS[:3], sort=False)]
    hold = [row["hold"] for row in told if np.isfinite(row["hold"])]
    least = min(told, key=lambda row: np.nan_to_num(row["least"], nan=1.0))
    false = 1.0 - nulls.held.sum() / nulls.finite.sum()
    worst = (1.0 - nulls.held / nulls.finite).max()
    pages.fact("estimands_hold_least", _percent(min(hold)))
    pages.fact("estimands_hold_most", _percent(max(hold)))
    pages.fact("estimands_false", _percent(false))
    pages.table(
        "estimands",
        ("people", "events", "n", "ε", "δ", "finite", "hold", "least", "with ∞", "width"),
        [
            (
                *(row["label"], f"{100 * row['events']:.0f} %", f"{row['size']:,.0f}"),
                *(f"{row['epsilon']:g}", f"{row['delta']:g}", _percent(row["finite"])),
                *(_percent(row[key]) for key in ("hold", "least", "all")),
                row["width"],
            )
            for row in told
        ],
        f"Finite intervals hold the estimand in {_percent(min(hold))} to {_percent(max(hold))} % "
        f"of fits; in the worst column in {_percent(least['least'])} % ({least['label']}, "
        f"ε = {least['epsilon']:g}). Of tests at level 0.05, {_percent(false)} % reject a "
        f"coefficient of rows put to people at random, of one column {_percent(worst)} %.",
        f"Per cent of {_range(columns.fits)} fits with inference_share={SHARE:g} and people drawn "
        "anew: of intervals that are finite; of finite 95 % intervals that hold the estimand; the "
        f"same for the column where it is least, of those with {FEWEST} finite ones; of all "
        "intervals, infinite ones counted as holding it. Width: median standard error over Cox's, "
        f"median and range over columns. Rows at random: {_range(nulls.fits)} fits each to "
        f"{', '.join(PERMUTED)}, ε = 3, δ = {DELTA:g}. *Kept apart while constants were found.",
    )


def _told(key: tuple[Any, ...], own: pd.DataFrame) -> dict[str, Any]:
    enough = own[own.finite >= FEWEST]
    finite, first = own.finite.sum(), own.iloc[0]
    middle = own.width.median()
    star = "*" if kind(key[0]) == APART else ""
    return {
        "label": f"{key[0]}{star}, {len(own)} columns",
        "epsilon": key[1],
        "delta": key[2],
        "size": first["size"],
        "events": first.events,
        "finite": finite / own.fits.sum(),
        "hold": own.held.sum() / finite if finite else np.nan,
        "least": (enough.held / enough.finite).min(),
        "all": (own.held + own.fits - own.finite).sum() / own.fits.sum(),
        "width": f"{_width(middle)} ({_width(own.width.min())} to {_width(own.width.max())})",
    }


def _width(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else "∞"


def _range(counts: pd.Series[int]) -> str:
    fewest, most = counts.min(), counts.max()
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}" if np.isfinite(share) else ""


EXPERIMENT = Experiment(cases, measure, report, repetitions=30)
