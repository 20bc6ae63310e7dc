"""Intervals of a private Weibull shape and scale: how often they hold the truth, and their width.

Beside intervals of lifelines on the same records, without privacy. Times are in units of the
horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from unittest.mock import patch

import numpy as np
import pandas as pd

import skdpsurv.survival.weibull.plausible as simulation
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPWeibullFitter
from skdpsurv.dp import RandomSource, random_source

EPSILONS = (0.3, 1.0, math.inf)
#: Law of times, shape, scale, censoring, records.
EASY = (
    ("Weibull", 1.3, 0.8, "horizon only", 500),
    ("Weibull", 1.3, 0.8, "horizon only", 5_000),
    ("Weibull", 1.3, 0.8, "uniform", 500),
    ("Weibull", 1.3, 0.8, "uniform", 5_000),
    ("log-logistic", 2.0, 0.5, "horizon only", 5_000),
)
#: Where many events are before the least time, where errors grow with the shape, or where it is
#: not known how many events there are. No default was found on those with 2,500 records.
HARD = (
    ("Weibull", 0.4, 0.8, "horizon only", 5_000, 1.0),
    ("Weibull", 0.5, 1.5, "uniform", 5_000, 1.0),
    ("Weibull", 3.0, 0.3, "horizon only", 1_000, 1.0),
    ("Weibull", 3.0, 2.5, "uniform", 1_000, 1.0),
    ("Weibull", 1.5, 0.8, "uniform", 5_000, 0.3),
    ("Weibull", 3.0, 2.5, "horizon only", 5_000, 1.0),
    ("Weibull", 0.7, 0.5, "exponential", 2_500, 0.5),
    ("Weibull", 2.2, 0.4, "horizon only", 2_500, 0.5),
    ("Weibull", 2.2, 1.5, "uniform", 2_500, 0.5),
)
NAMES = ("times", "shape", "scale", "censoring", "n", "epsilon")
PARAMETERS = ("scale", "shape")
#: Data sets of one measurement.
SETS = 20
#: Of 79 draws from the right distribution, the second smallest and the second largest hold 95 %.
#: ``confidence_interval`` takes quantiles p at the ranks 1 + p (79 - 1).
N_RESAMPLES = 79

Draw = Callable[[np.random.Generator, int], np.ndarray]
CENSORING: dict[str, Draw] = {
    "horizon only": lambda rng, n: np.full(n, np.inf),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.exponential(0.7, n),
}


def cases(setting: Setting) -> Iterator[Case]:
    for law in setting.of(EASY, EASY[:1]):
        for epsilon in setting.of(EPSILONS, (1.0, math.inf)):
            yield {"kind": "easy", **dict(zip(NAMES, (*law, epsilon), strict=True))}
    for law in setting.of(HARD, HARD[2:3]):
        yield {"kind": "hard", **dict(zip(NAMES, law, strict=True))}


def quantile(case: Case, p: np.ndarray) -> np.ndarray:
    """Return times by which a part of the records have their events."""
    odds = -np.log1p(-p) if case["times"] == "Weibull" else p / (1.0 - p)
    return case["scale"] * odds ** (1.0 / case["shape"])  # type: ignore[no-any-return]


def records(case: Case, p: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return durations and events; times are censored at random, and at the horizon."""
    time = quantile(case, p)
    last = np.minimum(CENSORING[case["censoring"]](rng, p.size), 1.0)
    return np.minimum(time, last), time <= last


@cache
def nearest(shape: float, scale: float, censoring: str) -> tuple[float, float]:
    """Return lambda and rho that are nearest in likelihood to log-logistic times."""
    case = {"times": "log-logistic", "shape": shape, "scale": scale, "censoring": censoring}
    n = 2_000_000
    times = records(case, (np.arange(n) + 0.5) / n, np.random.default_rng(0))
    fit = DPWeibullFitter(math.inf, max_time=1.0).fit(*times)
    return fit.lambda_, fit.rho_


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return how many intervals hold the truth, and their median width over lifelines'."""
    from lifelines import WeibullFitter

    truth = case["scale"], case["shape"]
    if case["times"] != "Weibull":
        truth = nearest(case["shape"], case["scale"], case["censoring"])
    n_resamples = setting.of(N_RESAMPLES, 9)
    ours, theirs, share = [], [], []
    for number in range(setting.of(SETS, 2)):
        # The same data sets for every epsilon.
        key = seed(*(case[name] for name in NAMES[:-1]), repetition, number)
        rng = np.random.default_rng(key)
        durations, events = records(case, rng.random(case["n"]), rng)
        fit = DPWeibullFitter(
            case["epsilon"], max_time=1.0, random_state=seed(key, case["epsilon"])
        ).fit(durations, events)
        # An interval's simulation has a fixed seed. With few resamples its luck would show in all
        # intervals alike, so that here each data set has its own.
        with patch.object(simulation, "random_source", partial(_seeded, key)):
            ours.append(fit.confidence_interval(1.0 - 2.0 / (n_resamples - 1), n_resamples))
        known = WeibullFitter().fit(durations, events).summary
        theirs.append(known.loc[["lambda_", "rho_"], ["coef lower 95%", "coef upper 95%"]])
        share.append(events.mean())
    low, high = np.moveaxis(np.array(ours, dtype=float), -1, 0)
    their_low, their_high = np.moveaxis(np.array(theirs, dtype=float), -1, 0)
    held = ((low <= truth) & (truth <= high)).sum(axis=0)
    their = ((their_low <= truth) & (truth <= their_high)).sum(axis=0)
    width = np.median((high - low) / (their_high - their_low), axis=0)
    row: Row = {"sets": len(share), "events": np.mean(share)}
    for j, name in enumerate(PARAMETERS):
        row |= {f"{name}_held": held[j], f"{name}_lifelines": their[j], f"{name}_width": width[j]}
    return row


def _seeded(key: int, random_state: int, *, purpose: str) -> RandomSource:
    return random_source(key, purpose=purpose)


def report(rows: pd.DataFrame, pages: Pages) -> None:
    groups = rows.groupby(["kind", *NAMES], sort=False)
    found = groups.sum(numeric_only=True)
    for name in PARAMETERS:
        for which in ("held", "lifelines"):
            found[f"{name}_{which}"] *= 100.0 / found.sets
        found[f"{name}_width"] = groups[f"{name}_width"].median()
    found["events"] = groups["events"].mean()
    order = [tuple(case.values()) for case in cases(Setting())]
    found = found.reindex([case for case in order if case in found.index]).reset_index()
    for kind, group in found.groupby("kind"):
        _table(str(kind), group, pages)


def _table(kind: str, found: pd.DataFrame, pages: Pages) -> None:
    table = [
        (
            *(row.times, f"{row.shape:g}", f"{row.scale:g}", row.censoring, f"{row.n:,}"),
            *(f"{100 * row.events:.0f} %", "∞" if np.isinf(row.epsilon) else f"{row.epsilon:g}"),
            *(f"{row.shape_held:.0f} / {row.scale_held:.0f}",),
            *(f"{row.shape_lifelines:.0f} / {row.scale_lifelines:.0f}",),
            *(f"{_ratio(row.shape_width)} / {_ratio(row.scale_width)}",),
        )
        for row in found.itertuples()
    ]
    held = {which: found[[f"{p}_{which}" for p in PARAMETERS]] for which in ("held", "lifelines")}
    means, least = ({w: f(x.to_numpy()) for w, x in held.items()} for f in (np.mean, np.min))
    sets = found.sets.min()
    pages.table(
        f"weibull_intervals_{kind}",
        (
            *("times", "shape", "scale", "censoring", "records", "events", "ε", "hold"),
            *("lifelines", "width"),
        ),
        table,
        f"Intervals hold the truth in {means['held']:.1f} % of data sets, and in "
        f"{least['held']:.0f} % in the worst row; lifelines' in {means['lifelines']:.1f} % and "
        f"{least['lifelines']:.0f} %.",
        f"Per cent of 95 % intervals that hold the true shape / scale, of {sets} data sets "
        f"(standard error {100.0 * math.sqrt(0.95 * 0.05 / sets):.1f} points), and median width "
        f"over that of lifelines on the same records; {N_RESAMPLES} simulated fits an interval, at "
        "ranks that make up for their small number. Of log-logistic times the Weibull parameters "
        "nearest in likelihood count as true.",
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100.0 else "> 100"


INTERVALS = Experiment(cases, measure, report, repetitions=8)
