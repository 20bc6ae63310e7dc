"""Fits of Parquet files on a cluster of Dask: time, passes, memory, one process against two.

Each is in a fresh process with a fresh cluster, and has its files written before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environments import Environment
from benchmarks.harness import Case, Experiment, Row, Setting, in_new_process
from benchmarks.pages import Pages
from benchmarks.speed import cluster_fit

DASK_ML = "2025.1.0"
#: Records of a file, which is one row group and one partition: 47 MB; and in a quick run.
FILE, QUICK = 500_000, 10_000
SIZES = (1_000_000, 5_000_000, 20_000_000)
#: What fits into memory; and what one process is compared with two on.
SMALL, PAIR = SIZES[0], SIZES[1]
MEMORY, TWO, THREADS, LOCAL = "2GB", "two processes", "two threads", "in memory"
#: One process against two, so that both hold all blocks: memory of a process, and bytes that they
#: have written to before, together. Else the system's fresh memory is timed.
PAIR_MEMORY, TOUCHED = "6GB", 2e9
ALONE, TOGETHER = "one process, warm", "two processes, warm"
#: Engine of a fit -> (engine, processes or threads, memory of each, bytes touched).
ENGINES: dict[str, tuple[str, int, str, float]] = {
    LOCAL: ("memory", 1, MEMORY, 0.0),
    THREADS: ("threads", 2, MEMORY, 0.0),
    TWO: ("cluster", 2, MEMORY, 0.0),
    ALONE: ("cluster", 1, PAIR_MEMORY, TOUCHED),
    TOGETHER: ("cluster", 2, PAIR_MEMORY, TOUCHED),
}
SOLVERS = ("lbfgs", "admm")
NAMES = {
    "hazards": "DPDiscreteTimeSurvival",
    "weibull": "DPWeibullFitter",
    "logistic": "DPLogisticRegression",
}


def cases(setting: Setting) -> Iterator[Case]:
    small = setting.of(SMALL, 2 * QUICK)
    if setting.quick:
        fits = [("hazards", small, TWO)]
        rivals = [("logistic", "dask-ml, lbfgs", math.inf)]
    else:
        both = ("hazards", "weibull")
        fits = [(kind, n, TWO) for kind in both for n in SIZES]
        fits += [(kind, PAIR, engine) for kind in both for engine in (ALONE, TOGETHER)]
        fits += [(kind, SMALL, engine) for kind in both for engine in (LOCAL, THREADS)]
        fits += [("logistic", SMALL, engine) for engine in (LOCAL, THREADS, TWO)]
        rivals = [("logistic", TWO, math.inf)]
        rivals += [("logistic", f"dask-ml, {solver}", math.inf) for solver in SOLVERS]
    for kind, n, engine in fits:
        yield {"model": kind, "records": n, "engine": engine, "epsilon": 1.0}
    for kind, engine, epsilon in rivals:
        yield {"model": kind, "records": small, "engine": engine, "epsilon": epsilon}


def repetitions(case: Case) -> int:
    """Return 3 where times are compared."""
    return 1 if case["engine"] == TWO and case["records"] > SMALL else 3


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return time and passes of a fit; of a classifier its accuracy on other records."""
    rows = setting.of(FILE, QUICK)
    paths = cluster_fit.files(int(case["records"]) // rows, rows)
    apart = cluster_fit.files(1, rows, first=200)
    if case["engine"].startswith("dask-ml"):
        return _dask_ml(setting, paths, apart, case["engine"].split(", ")[1])
    engine, n_workers, memory, touched = ENGINES[case["engine"]]
    task = {"kind": case["model"], "engine": engine, "paths": paths, "n_workers": n_workers}
    task |= {"memory": memory, "epsilon": float(case["epsilon"]), "touched": touched}
    printed = in_new_process("speed.cluster_fit", json.dumps(task))
    found = json.loads(printed.splitlines()[-1])
    row = {"seconds": found["seconds"], **_passes(found["passes"])}
    row |= {"client": found["client"], "worker": max(found.get("workers", [math.nan]))}
    row |= {"sent": found.get("sent", math.nan), "accuracy": math.nan}
    if case["model"] == "logistic":
        test = pd.read_parquet(apart[0])
        scores = test[cluster_fit.COLUMNS].to_numpy() @ found["coef"][:-1] + found["coef"][-1]
        row["accuracy"] = float(((scores > 0) == test["event"].to_numpy()).mean())
    return row


def _passes(passes: list[dict[str, Any]]) -> Row:
    """Sum up passes: how many, the median seconds of one for derivatives, or of any, and bytes."""
    full = [each for each in passes if not each["sample"]]
    steps = [each["seconds"] for each in full if "derivatives" in each["what"]]
    return {
        "full": len(full),
        "samples": len(passes) - len(full),
        "pass": float(np.median(steps or [each["seconds"] for each in full] or [math.nan])),
        "largest": max([each["bytes"] for each in passes], default=0),
    }


def _dask_ml(setting: Setting, train: list[str], test: list[str], solver: str) -> Row:
    """Fit without privacy, with the Dask of this process."""
    same = [f"{name}=={version(name)}" for name in ("dask", "distributed", "pyarrow", "numpy")]
    script = Path(__file__).with_name("dask_ml_fit.py")
    environment = Environment("dask-ml", [f"dask-ml=={DASK_ML}", *same], script)
    found = environment.run(
        setting,
        "fit",
        {},
        train=train,
        test=test,
        columns=[*cluster_fit.COLUMNS, "event"],
        solver=solver,
        cluster=cluster_fit.cluster(2, MEMORY),
        environment=cluster_fit.ENVIRONMENT,
    )
    return dict(found)


def report(rows: pd.DataFrame, pages: Pages) -> None:
    rounds = rows.repetition.max() + 1
    private = rows[rows.epsilon == 1.0]
    median = private.groupby(["model", "records", "engine"]).median(numeric_only=True)
    _growth(median, pages)
    _engines(median, rounds, pages)
    logistic = rows[(rows.model == "logistic") & ~rows.engine.isin([LOCAL, THREADS])]
    if len(logistic):
        _rival(logistic, rounds, pages)


def _growth(median: pd.DataFrame, pages: Pages) -> None:
    grown = median.xs(TWO, level="engine").drop("logistic", errors="ignore")
    hazards = grown.loc["hazards"].sort_index()
    first, last = hazards.iloc[0], hazards.iloc[-1]
    pages.table(
        "clusters",
        (
            "model",
            "records",
            "time",
            "core-time per record",
            "passes: all records + samples",
            "a pass over all",
            "peak of a worker",
            "largest sum",
            "all that workers sent",
        ),
        [
            (
                NAMES[kind],
                f"{n:,}",
                f"{row.seconds:.1f} s",
                f"{2e6 * row.seconds / n:.2f} us",
                f"{row.full:.0f} + {row.samples:.0f}",
                f"{row['pass']:.2f} s",
                f"{row.worker:.0f} MiB",
                f"{row.largest / 1e3:.1f} kB",
                f"{row.sent / 1e6:.1f} MB",
            )
            for (kind, n), row in grown.iterrows()  # type: ignore[misc]
        ],
        f"A hazard fit of {hazards.index[-1]:,} records takes {last.seconds / first.seconds:.1f} "
        f"times as long as one of {hazards.index[0]:,}, and {last.full + last.samples:.0f} passes "
        f"instead of {first.full + first.samples:.0f}. The largest sum that a pass brings back has "
        f"{grown.largest.max() / 1e3:.1f} kB.",
        f"Simulated, 10 columns, epsilon = 1, q = 200, from Parquet files of {FILE:,} records, "
        f"with reading; two processes of one thread and {MEMORY} on this machine. A pass over all "
        "is the median one for a gradient, of the Weibull model the median one.",
    )


def _engines(median: pd.DataFrame, rounds: int, pages: Pages) -> None:
    table, small, faster = [], [], []
    for engines in ((LOCAL, THREADS, TWO), (ALONE, TOGETHER)):
        for kind, n in dict.fromkeys((kind, n) for kind, n, e in median.index if e == engines[0]):
            times = median.seconds[kind, n].reindex(engines).dropna()
            for engine, seconds in times.items():
                cells = (NAMES[kind], f"{n:,}", engine, f"{seconds:.2f} s")
                table.append((*cells, f"{seconds / times.iloc[0]:.2f}"))
            ratio = times.iloc[-1] / times.iloc[0]
            if len(times) == len(engines):
                (small if engines[0] == LOCAL else faster).append(ratio)
    if not small or not faster:
        return
    said = f"On {SMALL:,} records two processes take {_range(small)} times as long as a fit of "
    said += f"records that are in memory, reading included. On {PAIR:,} two are "
    said += f"{_range([1.0 / ratio for ratio in faster])} times as fast as one."
    pages.table(
        "clusters_engines",
        ("model", "records", "how", "time", "over the first's"),
        table,
        said,
        f"As above, medians of {rounds} rounds, in turn; of records in memory on one thread, "
        f"without reading. Warm processes have {PAIR_MEMORY} each, and had written to "
        f"{TOUCHED / 1e9:g} GB together.",
    )


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _rival(logistic: pd.DataFrame, rounds: int, pages: Pages) -> None:
    median = logistic.groupby(["engine", "epsilon"])[["seconds", "accuracy"]].median()
    theirs = median[median.index.get_level_values("engine") != TWO]
    ours = {epsilon: median.loc[TWO, epsilon] for engine, epsilon in median.index if engine == TWO}
    said = "dask-ml was not there."
    if len(theirs) and math.inf in ours and 1.0 in ours:
        best = theirs.seconds.min()
        said = (
            f"Without privacy a fit takes {ours[math.inf].seconds / best:.2f} times as long as by "
            f"the faster solver of dask-ml, and with epsilon = 1 {ours[1.0].seconds / best:.2f} "
            f"times. Accuracy is {ours[math.inf].accuracy:.4f} against {theirs.accuracy.max():.4f},"
            f" and {ours[1.0].accuracy:.4f} with privacy."
        )
    pages.table(
        "clusters_rival",
        ("fit", "epsilon", "time", "accuracy"),
        [
            (
                "skdpsurv" if engine == TWO else engine,
                "none" if math.isinf(epsilon) else f"{epsilon:g}",
                f"{row.seconds:.2f} s",
                f"{row.accuracy:.4f}",
            )
            for (engine, epsilon), row in median.iterrows()  # type: ignore[misc]
        ],
        said,
        f"Logistic regression of {SMALL:,} records, as above, with reading; medians of {rounds} "
        f"rounds, in turn; accuracy on {FILE:,} other records. dask-ml {DASK_ML}, defaults but the "
        "solver; it takes arrays only, so making them is part of its fit.",
    )


CLUSTERS = Experiment(cases, measure, report, repetitions=repetitions, timed=True)
