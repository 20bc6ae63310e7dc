"""Intervals of curves and products: how often a spline's effect holds what a release is about.

Real people are drawn with replacement. The truth is then the effect by ``estimand`` of the whole
data set: with the centre, scales, radius and cap of that very release. Simulated people have a
skewed age, a marker that is correlated with it, and known coefficients of the fitted terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.data.survset import described
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.spreads import MOST_RECORDS
from skdpsurv import DPDiscreteTimeSurvival, PublicColumns

SHARE = 0.3
#: Fits of one measurement.
FITS = 20
#: Data, records, epsilon, delta.
TRIED = (
    ("flchain", 7_000, 3.0, 0.0),
    ("flchain", 7_000, 1.0, 1e-7),
    ("rott2", 5_000, 3.0, 1e-7),
    ("TRACE", 5_000, 3.0, 1e-7),
    ("simulated", 5_000, 3.0, 0.0),
    ("simulated, symmetric", 5_000, 3.0, 1e-7),
)
KEYS = ["data", "n", "epsilon", "delta"]
#: The column with a spline, the reference, and the places of its effect, both labels' others.
AGE, REFERENCE, PLACES = "age", 60.0, (50.0, 70.0, 80.0, 90.0)
#: Names of the columns of real data sets here.
COLUMNS = {
    "flchain": {"num_age": AGE, "fac_sex": "group", "num_creatinine": "marker"},
    "rott2": {"num_age": AGE, "fac_grade": "group", "num_nodes": "marker"},
    "TRACE": {"num_age": AGE, "fac_chf": "group", "num_wmi": "marker"},
}
BOUNDS = {"flchain": (50, 100), "rott2": (25, 95), "TRACE": (30, 100)}
MARKERS: dict[str, Any] = {
    "flchain": {"log": (0.3, 5), "missing": "midpoint"},
    "rott2": {"log": (0, 35), "offset": 1},
    "TRACE": {"bounds": (0, 2.5), "missing": "midpoint"},
}
#: Simulated people: coefficients of line, bend, group, marker and the products of age and group.
COEF = np.array([1.6, 0.5, 0.4, 0.8, -0.4, 0.2])
CORRELATION, RATE, LOSS = 0.7, 0.25, 0.3


class Sample(NamedTuple):
    """People, the horizon, the columns, and perhaps the true coefficients of features."""

    X: pd.DataFrame
    y: np.ndarray
    max_time: float
    columns: PublicColumns
    coef: np.ndarray | None = None


def cases(setting: Setting) -> Iterator[Case]:
    for case in setting.of(TRIED, TRIED[-1:]):
        yield dict(zip(KEYS, case, strict=True))


def columns_of(bounds: tuple[float, float], labels: list[Any], marker: Any) -> PublicColumns:
    return PublicColumns(
        {
            AGE: {"spline": bounds, "df": 2, "missing": "midpoint"},
            "group": labels,
            "marker": marker,
            "age:group": {"interaction": [AGE, "group"]},
        }
    )


@cache
def whole(name: str) -> Sample:
    """Return a real data set."""
    data, names = described(name, MOST_RECORDS), COLUMNS[name]
    X = data.X[list(names)].rename(columns=names)
    labels = data.stated[next(one for one in names if names[one] == "group")]["categories"]
    return Sample(X, data.y, data.max_time, columns_of(BOUNDS[name], labels, MARKERS[name]))


def simulated(n: int, rng: np.random.Generator, skewed: bool) -> Sample:
    """Return new people; ages from 45 to 100, most of them young if skewed."""
    z = rng.multivariate_normal([0.0, 0.0], [[1.0, CORRELATION], [CORRELATION, 1.0]], n)
    law = stats.gamma(1.2, scale=9.0) if skewed else stats.norm(27.0, 9.0)
    age = np.clip(45.0 + law.ppf(special.ndtr(z[:, 0])), 45.0, 100.0)
    X = pd.DataFrame(
        {AGE: age, "group": np.where(rng.random(n) < 0.3, "b", "a"), "marker": z[:, 1]}
    )
    columns = columns_of((45, 100), ["a", "b"], (-3, 3))
    score = np.asarray(columns.fit(X).transform(X)) @ COEF
    time, last = rng.exponential(np.exp(-score) / RATE), rng.exponential(1.0 / LOSS, n)
    y = np.empty(n, [("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= np.minimum(last, 1.0), np.minimum(time, np.minimum(last, 1.0))
    return Sample(X, y, 1.0, columns, COEF)


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each place, and the product's coefficients, what intervals hold, and errors."""
    found = []
    for number in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, number)
        draw = np.random.default_rng(key)
        if case["data"].startswith("simulated"):
            everybody = people = simulated(case["n"], draw, "symmetric" not in case["data"])
        else:
            everybody = whole(case["data"])
            at = draw.integers(0, len(everybody.X), case["n"])
            people = everybody._replace(X=everybody.X.iloc[at], y=everybody.y[at])
        model = DPDiscreteTimeSurvival(
            case["epsilon"],
            delta=case["delta"],
            link="cloglog",
            max_time=people.max_time,
            columns=people.columns,
            inference_share=SHARE,
            random_state=key + 1,
        ).fit(people.X, people.y)
        truth = everybody.coef
        if truth is None:
            per_unit = [one.per_unit or 1.0 for one in model.release_.features]
            truth = model.estimand(everybody.X, everybody.y).to_numpy() / per_unit
        found.append([*_effects(model, truth), *_products(model, truth)])
    names = [f"{AGE} {place:g}" for place in PLACES] + ["products"]
    return [
        {"term": name, **counts_of(np.array([one[j] for one in found]))}
        for j, name in enumerate(names)
    ]


def _effects(model: DPDiscreteTimeSurvival, truth: np.ndarray) -> list[tuple[float, float]]:
    """Return error and standard error of the effect of each place."""
    columns = model.release_.transformer()
    (person,) = columns.example().to_dict("records")
    rows = [person | {AGE: place} for place in (*PLACES, REFERENCE)]
    Z = np.asarray(columns.transform(pd.DataFrame(rows)))
    return [_of(model, change, truth) for change in Z[:-1] - Z[-1]]


def _products(model: DPDiscreteTimeSurvival, truth: np.ndarray) -> list[tuple[float, float]]:
    """Return the same of how the effect of age 80 differs between groups."""
    columns = model.release_.transformer()
    (person,) = columns.example().to_dict("records")
    (labels,) = (kind.labels for kind in columns._kinds() if kind.column == "group")
    rows = [
        person | {AGE: age, "group": label} for age in (80.0, REFERENCE) for label in labels[::-1]
    ]
    one, other, low_one, low_other = np.asarray(columns.transform(pd.DataFrame(rows)))
    return [_of(model, one - other - low_one + low_other, truth)]


def _of(
    model: DPDiscreteTimeSurvival, change: np.ndarray, truth: np.ndarray
) -> tuple[float, float]:
    inference, d = model.inference_, change.size
    if (change[~inference.known[-d:]] != 0.0).any():
        return np.nan, np.inf
    variance = change @ inference.covariance[-d:, -d:] @ change
    return float(change @ (inference.estimate[-d:] - truth)), float(np.sqrt(variance))


def counts_of(found: np.ndarray) -> Row:
    """Return what intervals hold, and errors, of rows of errors and standard errors."""
    error, se = found.T
    finite = np.isfinite(se)
    error, se = error[finite], se[finite]
    return {
        "fits": len(found),
        "finite": int(finite.sum()),
        "held": int((np.abs(error) <= 1.959964 * se).sum()),
        "error": float(error.sum()),
        "squares": float(np.square(error).sum()),
        "se": float(np.median(se)) if se.size else np.nan,
    }


def report(rows: pd.DataFrame, pages: Pages) -> None:
    groups = rows.groupby([*KEYS, "term"], sort=False)
    found = groups[["fits", "finite", "held", "error", "squares"]].sum()
    found = found.join(groups["se"].median()).reset_index()
    found["hold"] = found.held / found.finite
    table = []
    for row in found.to_dict("records"):
        n = row["finite"] or 1
        bias, hold = row["error"] / n, row["held"] / n
        spread = np.sqrt(max(row["squares"] / n - bias**2, 0.0))
        table.append(
            (
                *(f"{row['data']}, {row['n']:,.0f}", f"{row['epsilon']:g}", f"{row['delta']:g}"),
                *(row["term"], f"{row['fits']:,.0f}", f"{100.0 * row['finite'] / row['fits']:.0f}"),
                f"{100.0 * hold:.1f} ± {100.0 * np.sqrt(hold * (1.0 - hold) / n):.1f}",
                f"{bias:.2f} ± {spread / np.sqrt(n):.2f}",
                *(f"{spread:.2f}", f"{row['se']:.2f}"),
            )
        )
    enough = found[found.finite >= 40]
    least, most = (f"{100.0 * one:.1f}" for one in (enough.hold.min(), enough.hold.max()))
    pages.fact("curved_terms_least", least)
    pages.table(
        "curved_terms",
        ("people, n", "ε", "δ", "effect", "fits", "finite", "hold", "bias", "spread", "error"),
        table,
        f"Intervals of effects of curves and products hold the truth in {least} to {most} % of "
        "fits.",
        f"Fits with inference_share={SHARE:g}, each to new people: per cent of intervals that are "
        "finite, and of finite 95 % intervals that hold the truth, with the standard error; mean "
        "and standard deviation of the error of the log hazard ratio of an age against "
        f"{REFERENCE:g}, with 2 degrees of freedom; median standard error. Products: how that of "
        "age 80 differs between two groups.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=50)
