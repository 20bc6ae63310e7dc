"""What a private evaluation of a survival model says, beside the values without noise.

python -m benchmarks.private_metrics --data-dir FOLDER
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sksurv.linear_model import CoxPHSurvivalAnalysis

from benchmarks._common import split, survival_sets, table
from benchmarks._run import arguments, number, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.target import event_and_time
from skdpsurv.dp import random_source
from skdpsurv.evaluation.plan import TIMES, Setting, evaluation_plan
from skdpsurv.evaluation.predictions import predicted_survival
from skdpsurv.evaluation.released_values import Measures, Reading, Sums, exact_measures, intervals
from skdpsurv.evaluation.risk_table import EvaluationRecords

EPSILON = 1.0
N_RECORDS = 2000
#: What shares of epsilon, numbers of groups and bands, and intervals were found on.
FOUND_ON = ("flchain", "unemployment", "rare events", "frequent events")
#: Horizons, in units of each set's own. Hardly any third birth is awaited for nine years.
HORIZONS = {"third births": (0.9, 0.5)}
#: Rows that stand for everybody.
N_POOL = setting(4000, 2500)


@dataclass(frozen=True)
class Task:
    """Everybody: what a model predicts for them, and what became of them."""

    name: str
    model: str
    everybody: EvaluationRecords
    horizon: float


def times_to(horizon: float) -> np.ndarray:
    return np.append(horizon * ((np.arange(TIMES) + 0.5) / TIMES), horizon)


def tasks(folder: Path | None) -> Iterator[Task]:
    for data in survival_sets(folder):
        train, test = split(len(data.y), 0, 0.5)
        test = test[:N_POOL]
        models = {
            "Cox": CoxPHSurvivalAnalysis(alpha=1e-3),
            "private, ε = 1": DPDiscreteTimeSurvival(max_time=data.max_time, random_state=0),
        }
        for name, model in models.items():
            model.fit(data.X[train], data.y[train])
            for share in HORIZONS.get(data.name, (0.9,)):
                horizon = share * data.max_time
                survival = predicted_survival(model, data.X[test], times_to(horizon))
                everybody = EvaluationRecords(survival, *event_and_time(data.y[test]))
                yield Task(f"{data.name}, to {share:g}", name, everybody, horizon)
    yield simulated("rare events", slope=1.5, base=0.05, censoring=0.3)
    yield simulated("frequent events", slope=0.4, base=0.8, censoring=0.5)
    yield simulated("wrong model", slope=1.0, base=0.4, censoring=0.3, said=(0.6, 1.5))


def simulated(
    name: str, slope: float, base: float, censoring: float, said: tuple[float, float] = (1.0, 1.0)
) -> Task:
    """Exponential times; the model says another slope and another level, by two factors."""
    rng = np.random.default_rng(0)
    n = setting(20_000, 3000)
    z = rng.normal(size=n)
    time = rng.exponential(np.exp(-slope * z) / base)
    censored = np.minimum(rng.exponential(1.0 / censoring, size=n), rng.uniform(0.5, 1.5, n))
    hazard = said[1] * base * np.exp(said[0] * slope * z)
    survival = np.exp(-hazard[:, None] * times_to(1.0))
    records = EvaluationRecords(survival, time <= censored, np.minimum(time, censored))
    return Task(
        name, "the true one" if said == (1.0, 1.0) else "wrong slope and level", records, 1.0
    )


def taken(records: EvaluationRecords, rows: np.ndarray) -> EvaluationRecords:
    return EvaluationRecords(*(part[rows] for part in records))


def covered(truth: Measures, lower: Measures, upper: Measures) -> list[float]:
    pairs = zip(truth, lower, upper, strict=True)
    return [float(np.mean((low <= true) & (true <= high))) for true, low, high in pairs]


def results(task: Task, repetitions: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return distances from the values without noise, and how often everybody's are covered."""
    errors, covers = [], []
    for r in range(repetitions):
        rng = np.random.default_rng(r)
        rows = rng.integers(0, task.everybody.time.size, N_RECORDS)
        sample = taken(task.everybody, rows)
        public = Setting(epsilon, N_RECORDS, task.horizon, 5, 3)
        released = evaluation_plan(public).run(InMemory([sample]), random_source(None))
        reading = Reading.of(public, released)
        sums = Sums.of(released)
        found = reading.measures(sums)
        lower, upper = intervals(reading, sums, found, 0.95)
        noiseless = exact_measures(sample, reading)
        off = [np.abs(a - b) for a, b in zip(found, noiseless, strict=True)]
        off[2] = off[2] / noiseless.ratio
        errors.append([off[0], off[1], off[2], off[3].mean(), off[4].mean(), off[4].max()])
        covers.append(covered(exact_measures(task.everybody, reading), lower, upper))
    return np.array(errors, dtype=float), np.array(covers)


def main() -> None:
    """Two tables: distances, and coverage."""
    args = arguments(__doc__ or "", repetitions=number(80, quick=3))
    near, covers = [], []
    for task in tasks(args.data_dir):
        errors, cover = results(task, args.repetitions, EPSILON)
        head = (task.name, task.model, "yes" if task.name.startswith(FOUND_ON) else "no")
        middle, most = np.nanquantile(errors, [0.5, 0.9], axis=0)
        near.append((*head, *(f"{a:.3f} / {b:.3f}" for a, b in zip(middle, most, strict=True))))
        covers.append((*head, *(f"{100 * share:.0f}" for share in np.nanmean(cover, axis=0))))
        print(near[-1], covers[-1], flush=True)
    head = ("data", "model", "found on")
    note = (
        f"ε = {EPSILON:g}, n = {N_RECORDS:,}, default settings, {args.repetitions} samples with "
        "replacement of records that the model was not fitted to. Found on: whether the defaults "
        "were found on the set. To: the horizon, as a share of the set's own. Observed: mean "
        "over risk groups."
    )
    table(
        "private_metrics",
        (*head, "C", "Brier", "E/O, relative", "predicted", "observed", "observed, worst group"),
        near,
        "Distance from the values without noise of the same sample, median / 90 % of samples. "
        f"{note}",
    )
    table(
        "private_metrics_coverage",
        (*head, "C", "Brier", "E/O", "predicted", "observed"),
        covers,
        f"Percent of 95 % intervals that hold the values of all records, not of the sample. {note}",
    )


if __name__ == "__main__":
    run(main)
