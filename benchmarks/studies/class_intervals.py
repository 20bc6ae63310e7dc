"""Intervals where covariates differ between strata, or go with the entry.

The truth is the estimand of many people, with the centre, scales, radius and cap of that very
release.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.curved_terms import counts_of
from skdpsurv import DPDiscreteTimeSurvival, PublicColumns

SHARE = 0.3
#: Fits of one measurement, and people whose estimand is the truth.
FITS, EVERYBODY = 10, 40_000
#: People, records, epsilon, delta.
TRIED = (
    ("three sites", 5_000, 3.0, 0.0),
    ("three sites", 5_000, 1.0, 1e-7),
    ("age as time", 5_000, 3.0, 0.0),
    ("age as time", 5_000, 1.0, 1e-7),
    ("half enter late", 5_000, 3.0, 0.0),
    ("short follow-up", 5_000, 3.0, 0.0),
)
KEYS = ["people", "n", "epsilon", "delta"]
SITES = ["A", "B", "C"]
#: Means of x and hazards of the sites; share of people who enter late.
MEANS, RATES = np.array([-1.1, 0.0, 1.1]), np.array([0.15, 0.5, 0.3])
LATE = {"age as time": 1.0, "half enter late": 0.5, "short follow-up": 1.0}
#: Of the last, all enter in a quarter of the horizon, and are followed for an eighth of it.
UNTIL, FOLLOWED = 0.25, 0.12
#: Coefficients of x, of z, which is correlated with x, and of b; the correlation with the entry.
COEF, CORRELATION = np.array([0.5, -0.4, 0.6]), 0.7


class Sample(NamedTuple):
    """People, from when on they are seen, and what a fit is told of them."""

    X: pd.DataFrame
    y: np.ndarray
    entry: np.ndarray | None
    told: dict[str, Any]


def cases(setting: Setting) -> Iterator[Case]:
    for case in setting.of(TRIED, TRIED[:1]):
        yield dict(zip(KEYS, case, strict=True))


def _columns(x: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    z, b = 0.5 * x + rng.normal(size=x.size), rng.random(x.size) < 0.4
    return pd.DataFrame({"x": x, "z": z, "b": b})


def _outcomes(time: np.ndarray, last: np.ndarray) -> np.ndarray:
    y = np.empty(time.size, [("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return y


def sample(people: str, n: int, rng: np.random.Generator) -> Sample:
    """Return new people."""
    described: dict[str, Any] = {"x": (-5, 5), "z": (-5, 5), "b": bool}
    if people == "three sites":
        site = rng.integers(0, 3, n)
        X = _columns(rng.normal(size=n) + MEANS[site], rng)
        rate = RATES[site] * np.exp(X.to_numpy(float) @ COEF)
        last = np.minimum(rng.uniform(0.0, 3.0, n) * (1.0 + 0.5 * site), 2.0)
        y = _outcomes(rng.exponential(1.0 / rate), last)
        told = {"columns": PublicColumns({**described, "site": SITES}), "strata": "site"}
        return Sample(X.assign(site=np.array(SITES)[site]), y, None, {**told, "max_time": 2.0})
    whole = 8 * n
    both = rng.multivariate_normal([0.0, 0.0], [[1.0, CORRELATION], [CORRELATION, 1.0]], whole)
    short = people == "short follow-up"
    entry = (UNTIL if short else 0.8) * special.ndtr(both[:, 0])
    entry = entry * (rng.random(whole) < LATE[people])
    X = _columns(both[:, 1], rng)
    time = np.sqrt(rng.exponential(1.0 / (0.8 * np.exp(X.to_numpy(float) @ COEF))))
    kept = np.flatnonzero(time > entry)[:n]
    followed = rng.exponential(FOLLOWED, whole) if short else rng.uniform(0.1, 0.7, whole)
    last = np.minimum(entry + followed, 1.0)
    told = {"columns": PublicColumns(described), "max_time": 1.0}
    own = X.iloc[kept].reset_index(drop=True)
    return Sample(own, _outcomes(time[kept], last[kept]), entry[kept], told)


@cache
def everybody(people: str) -> Sample:
    """Return the people whose estimand is the truth."""
    return sample(people, EVERYBODY, np.random.default_rng(seed(people, EVERYBODY)))


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each column how many intervals are finite and hold the truth, and errors."""
    found = []
    whole = everybody(case["people"])
    for number in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, number)
        X, y, entry, told = sample(case["people"], case["n"], np.random.default_rng(key))
        model = DPDiscreteTimeSurvival(
            case["epsilon"],
            delta=case["delta"],
            link="cloglog",
            inference_share=SHARE,
            recalibration_share=0.0,
            random_state=key + 1,
            **told,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, entry=entry)
        truth = model.estimand(whole.X, whole.y, entry=whole.entry)
        found.append(model.summary[["coef", "se(coef)"]].assign(truth=truth))
    return counts_by_column(found)


def counts_by_column(found: list[pd.DataFrame]) -> list[Row]:
    """Return counts for each column, of fits with estimates, truths and standard errors."""
    rows = []
    for name in found[0].index:
        each = np.array([one.loc[name, ["coef", "truth", "se(coef)"]] for one in found])
        error = (each[:, 0] - each[:, 1]).astype(float)
        named = name if isinstance(name, str) else ": ".join(map(str, name))
        rows.append({"column": named, **counts_of(np.column_stack([error, each[:, 2]]))})
    return rows


def report(rows: pd.DataFrame, pages: Pages) -> None:
    write(rows, pages, "class_intervals", "With strata and late entry")


def write(rows: pd.DataFrame, pages: Pages, name: str, whose: str) -> None:
    """Write a table of how many intervals of columns hold the truth."""
    groups = rows.groupby([*KEYS, "column"], sort=False)
    found = groups[["fits", "finite", "held", "error", "squares"]].sum()
    found = found.join(groups["se"].median()).reset_index()
    found["hold"] = found.held / found.finite
    table = []
    for row in found.to_dict("records"):
        n, hold = row["finite"] or 1, row["hold"]
        bias = row["error"] / n
        spread = np.sqrt(max(row["squares"] / n - bias**2, 0.0))
        table.append(
            (
                *(row["people"], f"{row['epsilon']:g}", f"{row['delta']:g}", row["column"]),
                *(f"{row['fits']:,.0f}", f"{100.0 * row['finite'] / row['fits']:.0f}"),
                f"{100.0 * hold:.1f} ± {100.0 * np.sqrt(hold * (1.0 - hold) / n):.1f}",
                *(f"{bias:.3f}", f"{spread:.3f}", f"{row['se']:.3f}"),
            )
        )
    least, most = (f"{100.0 * one:.1f}" for one in (found.hold.min(), found.hold.max()))
    pages.fact(f"{name}_least", least)
    pages.fact(f"{name}_most", most)
    pages.table(
        name,
        ("people", "ε", "δ", "column", "fits", "finite", "hold", "bias", "spread", "error"),
        table,
        f"{whose}, intervals hold the truth in {least} to {most} % of fits.",
        f"Fits with inference_share={SHARE:g}, each to 5,000 new people: per cent of intervals "
        "that are finite, and of finite 95 % intervals that hold the truth, with the standard "
        "error; mean and standard deviation of the error of the coefficient, and median "
        "standard error.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=15)
