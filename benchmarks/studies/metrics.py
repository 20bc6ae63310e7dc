"""What a private evaluation of a survival model says, beside the values without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sksurv.linear_model import CoxPHSurvivalAnalysis

from benchmarks.data import split, survival
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.evaluation.evaluation_plan import TIMES, evaluation_plan
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting as PublicSetting
from skdpsurv.evaluation.predictions import predicted_survival
from skdpsurv.evaluation.released_values import (
    Measures,
    Reading,
    ReleasedSums,
    exact_measures,
    intervals,
)
from skdpsurv.evaluation.risk_table import EvaluationRecords

EPSILON, N_RECORDS = 1.0, 2000
COX, PRIVATE = "Cox", "private, ε = 1"
#: Horizons, as shares of each set's own. Hardly any third birth is awaited for nine tenths.
HORIZONS = {"flchain": (0.9,), "third births": (0.9, 0.5), "unemployment": (0.9,)}
HORIZONS |= {"child mortality": (0.9,)}
#: Slope, level and censoring; and factors by which the model says another slope and level.
SIMULATED = {
    "rare events": (1.5, 0.05, 0.3, 1.0, 1.0),
    "frequent events": (0.4, 0.8, 0.5, 1.0, 1.0),
    "wrong model": (1.0, 0.4, 0.3, 0.6, 1.5),
}
#: What shares of epsilon, numbers of groups and bands, and intervals were found on.
FOUND_ON = ("flchain", "unemployment", "rare events", "frequent events")
#: With some 200 events in a sample; the others have twice as many or more.
FEW_EVENTS = ("third births", "rare events")
#: Distances, and coverage.
NEAR = ("C", "Brier", "E/O", "predicted", "observed", "worst")
COVERED = ("C", "Brier", "E/O", "predicted", "observed")
#: Rows that stand for everybody.
POOL = 4000


@dataclass(frozen=True)
class Everybody:
    """What a model predicts for everybody, and what became of them."""

    records: EvaluationRecords
    horizon: float


def times_to(horizon: float) -> np.ndarray:
    return np.append(horizon * ((np.arange(TIMES) + 0.5) / TIMES), horizon)


@cache
def everybody(setting: Setting, name: str, model: str, share: float) -> Everybody:
    """Return half of a data set, which the model was not fitted to, or simulated records."""
    if name in SIMULATED:
        return _simulated(setting.of(20_000, 3000), *SIMULATED[name])
    data = survival(setting, name)
    train, test = split(len(data.y), 0, 0.5)
    test = test[: setting.of(POOL, 2500)]
    fitted = (
        CoxPHSurvivalAnalysis(alpha=1e-3)
        if model == COX
        else DPDiscreteTimeSurvival(max_time=data.max_time, random_state=0)
    ).fit(data.X[train], data.y[train])
    horizon = share * data.max_time
    predicted, _ = predicted_survival(fitted, data.X[test], times_to(horizon))
    return Everybody(
        EvaluationRecords(predicted, Histories(data.time[test], data.event[test])), horizon
    )


def _simulated(
    n: int, slope: float, base: float, censoring: float, said_slope: float, said_level: float
) -> Everybody:
    """Return exponential times."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    time = rng.exponential(np.exp(-slope * z) / base)
    censored = np.minimum(rng.exponential(1.0 / censoring, size=n), rng.uniform(0.5, 1.5, n))
    hazard = said_level * base * np.exp(said_slope * slope * z)
    predicted = np.exp(-hazard[:, None] * times_to(1.0))
    return Everybody(
        EvaluationRecords(predicted, Histories(np.minimum(time, censored), time <= censored)), 1.0
    )


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(HORIZONS, ("flchain",)):
        for share in HORIZONS[name]:
            for model in (COX, PRIVATE):
                yield {"data": name, "model": model, "share": share}
    for name in SIMULATED:
        yield {"data": name, "model": "simulated", "share": 1.0}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return distances from the values without noise, and whether everybody's are covered."""
    world = everybody(setting, case["data"], case["model"], case["share"])
    rng = np.random.default_rng(repetition)
    rows = rng.integers(0, world.records.histories.size, N_RECORDS)
    sample = EvaluationRecords(world.records.survival[rows], world.records.histories.take(rows))
    public = PublicSetting(EPSILON, N_RECORDS, world.horizon, 5, 3)
    noise = random_source(seed(*case.values(), repetition))
    released = evaluation_plan(public).run(InMemory([sample]), noise)
    reading, sums = Reading.of(public, released), ReleasedSums.of(released)
    found = reading.measures(sums)
    noiseless = exact_measures(sample, reading)
    both = zip(_looked_at(found), _looked_at(noiseless), strict=True)
    off = [np.abs(a - b) for a, b in both]
    off[2] = off[2] / noiseless.ratio
    distances = (off[0], off[1], off[2], off[3].mean(), off[4].mean(), off[4].max())
    covers = _covered(
        exact_measures(world.records, reading), *intervals(reading, sums, found, 0.95)
    )
    return dict(zip([f"near {name}" for name in NEAR], map(float, distances), strict=True)) | dict(
        zip([f"covered {name}" for name in COVERED], covers, strict=True)
    )


def _looked_at(one: Measures) -> tuple[np.ndarray, ...]:
    """Return the measures of the table; what was observed is so at the ends of all bands."""
    return one.c_index, one.brier, one.ratio, one.predicted, one.curves


def _covered(truth: Measures, lower: Measures, upper: Measures) -> list[float]:
    triples = zip(*map(_looked_at, (truth, lower, upper)), strict=True)
    return [float(np.mean((low <= true) & (true <= high))) for true, low, high in triples]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    near, covers = [], []
    keys = ["data", "model", "share"]
    groups = rows.assign(order=rows.data.map([*HORIZONS, *SIMULATED].index))
    for (_, name, model, share), here in groups.groupby(["order", *keys]):
        head = (name, model, f"{share:g}", "yes" if name in FOUND_ON else "no")
        parts = [here[f"near {one}"].dropna() for one in NEAR]
        near.append((*head, *(f"{x.median():.3f} / {x.quantile(0.9):.3f}" for x in parts)))
        covers.append((*head, *(f"{100 * here[f'covered {one}'].mean():.0f}" for one in COVERED)))
    note = (
        f"ε = {EPSILON:g}, n = {N_RECORDS:,}, default settings, {rows.repetition.max() + 1} "
        "samples with replacement of records that the model was not fitted to. Found on: whether "
        "defaults were found on the set. To: the horizon, as a share of the set's own. Observed: "
        "mean over risk groups."
    )
    head = ("data", "model", "to", "found on")
    late = (rows.data == "third births") & (rows.share > 0.5)
    pages.table(
        "private_metrics",
        (*head, "C", "Brier", "E/O, relative", "predicted", "observed", "observed, worst group"),
        near,
        _near(rows, late, keys, pages),
        "Distance from the values without noise of the same sample, median / 90 % of samples. "
        f"{note}",
    )
    pages.table(
        "private_metrics_coverage",
        (*head, "C", "Brier", "E/O", "predicted", "observed"),
        covers,
        _covers(rows, late, keys),
        f"Percent of 95 % intervals that hold the values of all records, not of the sample. {note}",
    )


def _near(rows: pd.DataFrame, late: pd.Series, keys: list[str], pages: Pages) -> str:
    """Say how far off C is, with many and with few events, and observed survival."""
    few = rows.data.isin(FEW_EVENTS)
    off = rows[~few].groupby(keys)["near C"]
    pages.fact("metrics_c", f"{off.median().max():.3f}")
    said = (
        f"C is within {off.median().max():.3f} of the value without noise in half of the samples "
        f"and within {off.quantile(0.9).max():.3f} in nine of ten"
    )
    if few.any():
        middle = rows[few].groupby(keys)["near C"].median()
        pages.fact("metrics_c_few_events", f"{middle.max():.3f}")
        said += f"; with some 200 events within {middle.max():.3f} in half of them"
    observed = rows[~late].groupby(keys)["near observed"].median()
    said += f". Observed survival is off by {observed.min():.3f} to {observed.max():.3f}"
    if late.any():
        said += (
            ", but for third births to nine tenths of the span, when hardly anybody is followed, "
            f"by {rows['near observed'][late].median():.2f}"
        )
    return f"{said}."


def _covers(rows: pd.DataFrame, late: pd.Series, keys: list[str]) -> str:
    """Say how often intervals hold everybody's values."""
    share = 100.0 * rows[~late].groupby(keys)[[f"covered {one}" for one in COVERED]].mean()
    said = (
        f"Intervals hold everybody's values in {share.to_numpy().mean():.0f} % on average, and in "
        f"{share.to_numpy().min():.0f} % at the least"
    )
    if late.any():
        said += (
            "; that is without third births to nine tenths, where weights of the Brier score are "
            f"capped and its interval holds the uncapped value in "
            f"{100.0 * rows['covered Brier'][late].mean():.0f} %"
        )
    return f"{said}."


EXPERIMENT = Experiment(cases, measure, report, repetitions=80, quick=2)
