"""Fits of Parquet files on a cluster of Dask: time, passes, memory, and one process against two.

python -m benchmarks.distributed [--parts slope workers engines rival]

Records are written by the program, into a temporary folder or into --data-dir, where they stay and
are used again: 94 bytes each, 4.7 GB for the largest size. dask-ml gets an environment of its own,
which takes a network.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import _distributed_fit as fits
from benchmarks._common import table
from benchmarks._dask_ml_env import OPTION, VERSION, dask_ml
from benchmarks._run import arguments, in_new_process, part, run, setting

PARTS = ("slope", "workers", "engines", "rival")
SIZES = setting((1_000_000, 5_000_000, 20_000_000, 50_000_000), quick=(20_000, 50_000))
#: One process against two, engines, and dask-ml.
PAIR, ENGINES, RIVAL = setting((10_000_000, 1_000_000, 1_000_000), quick=(50_000, 20_000, 50_000))
ROUNDS = setting(3, quick=1)
MEMORY = "2GB"
#: The same for one process as for each of two, so that both hold the blocks in memory; and what
#: they have written to before, together, in bytes.
PAIR_MEMORY, PAIR_TOUCHED = "10GB", setting(4e9, quick=1e8)
#: Models of the comparisons of one process with two, and of engines.
PAIR_KINDS = setting(("hazards", "weibull"), quick=("hazards",))
KINDS = setting(("hazards", "logistic", "weibull"), quick=("hazards",))
SOLVERS = setting(("lbfgs", "admm"), quick=("lbfgs",))
NAMES = {
    "hazards": "DPDiscreteTimeSurvival",
    "weibull": "DPWeibullFitter",
    "logistic": "DPLogisticRegression",
}

#: Of the extrapolation: the scheduler's time for a task in seconds (taken, not measured), tasks for
#: a partition in a pass (its sum, and its share of the tree), and records of a partition.
TASK_SECONDS, TASKS, PARTITION = 1e-3, 1.0 + 1.0 / 7.0, 500_000
CLUSTERS = ((1e9, 64), (1e9, 512), (1e10, 512), (1e10, 4096))


def fit(
    kind: str,
    engine: str,
    paths: Sequence[str],
    n_workers: int = 2,
    memory: str = MEMORY,
    epsilon: float = 1.0,
    touched: float = 0.0,
) -> dict[str, Any]:
    """Fit once, in a fresh process."""
    task = {"kind": kind, "engine": engine, "paths": paths, "n_workers": n_workers}
    task |= {"memory": memory, "epsilon": epsilon, "touched": touched}
    printed = in_new_process("distributed", json.dumps(task))
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    print(
        f"{kind}, {engine}, {len(paths)} files, {n_workers}: {found['seconds']:.1f} s", flush=True
    )
    return found


def full(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the passes over all records, without those over samples."""
    return [each for each in found["passes"] if not each["sample"]]


def newton_pass(found: dict[str, Any]) -> float:
    """Return the median seconds of a pass for gradient and Hessian, or of any pass."""
    passes = full(found)
    steps = [each["seconds"] for each in passes if "derivatives" in each["what"]]
    return float(np.median(steps or [each["seconds"] for each in passes]))


def slope(folder: Path) -> None:
    """Table: sizes; and what they say about larger ones, by the formula in :func:`beyond`."""
    rows, largest = [], {}
    for kind in ("hazards", "weibull"):
        for n in setting(SIZES, quick=SIZES[-1:] if kind == "weibull" else SIZES):
            paths = fits.files(folder, n)
            largest = fit(kind, "cluster", paths) | {"n": n}
            passes = largest["passes"]
            biggest = max(each["bytes"] for each in passes)
            rows.append(
                (
                    NAMES[kind],
                    f"{n:,}",
                    f"{largest['seconds']:.1f} s",
                    f"{2e6 * largest['seconds'] / n:.2f} us",
                    f"{len(full(largest))} + {len(passes) - len(full(largest))}",
                    f"{newton_pass(largest):.2f} s",
                    f"{max(largest['workers']):.0f} MiB",
                    f"{largest['client']:.0f} MiB",
                    f"{biggest / 1e3:.1f} kB",
                    f"{sum(each['bytes'] for each in passes) / 1e3:.0f} kB",
                    f"{largest['sent'] / 1e6:.1f} MB",
                )
            )
        if kind == "hazards":
            beyond(largest)
    table(
        "distributed",
        (
            "model",
            "records",
            "fit",
            "core-time per record",
            "passes: all records + samples",
            "a pass over all",
            "peak of a worker",
            "peak of the client",
            "largest sum",
            "sums, all passes",
            "all that workers sent",
        ),
        rows,
        f"Simulated, 10 columns, epsilon = 1, q = 200, from Parquet files of {fits.ROWS:,} "
        f"records; two processes of one thread and {MEMORY} on this machine; a fit in a fresh "
        "process each. A pass over all is the median one for a gradient, of the Weibull model the "
        "median one.",
    )


def beyond(largest: dict[str, Any]) -> None:
    r"""Table: what the largest fit that was measured says about larger ones. Nothing is measured.

    .. math:: T = n c / C + P \cdot 1.14 \cdot (n / 500000) \cdot o

    with c the core-seconds per record of the largest fit, C cores, P its passes, and two more for
    each factor of 4 in n; o = 1 ms, a scheduler's time for a task.
    """
    per_record = 2.0 * largest["seconds"] / largest["n"]
    b = max(each["bytes"] for each in largest["passes"])
    rows = []
    for n, cores in CLUSTERS:
        passes = len(largest["passes"]) + 2 * math.ceil(math.log(n / largest["n"], 4.0))
        partitions = n / PARTITION
        work, scheduling = (n * per_record / cores, passes * TASKS * partitions * TASK_SECONDS)
        rows.append(
            (
                f"{n:.0e}",
                f"{cores:,}",
                f"{passes}",
                f"{partitions:,.0f}",
                f"{work / 60:.1f} min",
                f"{scheduling / 60:.1f} min",
                f"{passes * b / 1e6:.2f} MB",
                f"{passes * partitions * b / 1e9:.2f} GB",
            )
        )
    table(
        "distributed_beyond",
        (
            "records",
            "cores",
            "passes",
            "partitions",
            "work",
            "scheduler, 1 ms a task",
            "to the client, at most",
            "among workers, at most",
        ),
        rows,
        f"**Not measured.** Computed from the fit of {largest['n']:,} records above: "
        f"{1e6 * per_record:.2f} us of a core per record, {len(largest['passes'])} passes, sums of "
        f"at most {b / 1e3:.1f} kB.",
    )


def workers(folder: Path) -> None:
    """Table: one process against two, in turn."""
    paths = fits.files(folder, PAIR)
    rows = []
    for kind in PAIR_KINDS:
        times = np.array(
            [
                [
                    fit(kind, "cluster", paths, k, PAIR_MEMORY, touched=PAIR_TOUCHED)["seconds"]
                    for k in (1, 2)
                ]
                for _ in range(ROUNDS)
            ]
        )
        one, two = np.median(times, axis=0)
        ratios = times[:, 0] / times[:, 1]
        rows.append(
            (
                NAMES[kind],
                f"{one:.1f} s",
                f"{two:.1f} s",
                f"**{np.median(ratios):.2f}**",
                f"{ratios.min():.2f} to {ratios.max():.2f}",
            )
        )
    table(
        "distributed_workers",
        ("model", "one process", "two", "ratio", "over rounds"),
        rows,
        f"{PAIR:,} records, as above, {PAIR_MEMORY} a process; median of {ROUNDS} rounds, in turn. "
        f"Workers had written to {PAIR_TOUCHED / 1e9:g} GB of memory together, and kept it.",
    )


def engines(folder: Path) -> None:
    """Table: records in this process, threads of Dask, and processes of Dask."""
    paths = fits.files(folder, ENGINES)
    rows = []
    for kind in KINDS:
        found = [
            [fit(kind, engine, paths) for engine in ("memory", "threads", "cluster")]
            for _ in range(ROUNDS)
        ]
        times = np.median([[one["seconds"] for one in each] for each in found], axis=0)
        reading = float(np.median([each[0]["reading"] for each in found]))
        rows.append(
            (
                NAMES[kind],
                f"{reading:.2f} s",
                *(f"{each:.2f} s" for each in times),
                *(f"{each / times[0]:.2f}" for each in times[1:]),
            )
        )
    table(
        "distributed_engines",
        (
            "model",
            "reading all columns",
            "fit in memory",
            "two threads, with reading",
            "two processes, with reading",
            "threads / memory",
            "processes / memory",
        ),
        rows,
        f"{ENGINES:,} records, as above; a fit in memory has one thread, and its records have been "
        f"read; median of {ROUNDS} rounds, in turn.",
    )


@part("dask-ml")
def rival(folder: Path, home: Path) -> None:
    """Table: logistic regression, without privacy by dask-ml."""
    paths = fits.files(folder, RIVAL)
    apart = fits.files(folder, fits.ROWS, first=200)
    test = pd.concat([pd.read_parquet(path) for path in apart])
    found: dict[str, list[Any]] = {}
    for _ in range(ROUNDS):
        theirs = dask_ml(
            home,
            SOLVERS,
            train=paths,
            test=apart,
            columns=[*fits.COLUMNS, "event"],
            cluster=fits.cluster(2, MEMORY),
            environment=fits.ENVIRONMENT,
        )
        print(f"dask-ml: {theirs}", flush=True)
        assert "does not support dask dataframes" in theirs["refusal"]
        for solver in SOLVERS:
            found.setdefault(f"dask-ml, {solver}, no privacy", []).append(theirs[solver])
        for epsilon in (math.inf, 1.0):
            ours = fit("logistic", "cluster", paths, epsilon=epsilon)
            scores = test[fits.COLUMNS].to_numpy() @ ours["coef"][:-1] + ours["coef"][-1]
            accuracy = float(((scores > 0) == test["event"].to_numpy()).mean())
            name = "no privacy" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"
            found.setdefault(f"skdpsurv, {name}", []).append([ours["seconds"], accuracy])
    rows = []
    for name, each in found.items():
        seconds, accuracy = np.median(each, axis=0)
        rows.append((name, f"{seconds:.2f} s", f"{accuracy:.4f}"))
    table(
        "distributed_rival",
        ("fit", "time", "accuracy"),
        rows,
        f"{RIVAL:,} records, with reading, two processes of {MEMORY}; median of {ROUNDS} rounds, "
        f"in turn; accuracy on {fits.ROWS:,} other records. dask-ml {VERSION}, defaults but the "
        "solver, arrays held in memory.",
    )


def main() -> None:
    """Five tables."""
    parts = {"nargs": "+", "choices": PARTS, "default": PARTS, "help": "some of the tables"}
    args = arguments(__doc__ or "", rival_env=OPTION, parts=parts)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.data_dir or Path(temporary)
        for name in args.parts:
            rest = [args.rival_env] if name == "rival" else []
            {"slope": slope, "workers": workers, "engines": engines, "rival": rival}[name](
                folder, *rest
            )


if __name__ == "__main__":
    run(main, fits.worker)
