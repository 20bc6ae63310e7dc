"""What runs in dask-ml's own environment: a fit without privacy, of Parquet files on a cluster.

python _dask_ml_worker.py TASK.json

Imports nothing of skdpsurv. Prints seconds, accuracy on other files, and what a frame is told.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
from distributed import Client, LocalCluster


def measured(task: dict[str, Any]) -> dict[str, Any]:
    """Fit each solver, on workers that have imported what they need."""
    from dask_ml.linear_model import LogisticRegression

    frame, other = (
        dd.read_parquet(task[name], columns=task["columns"]) for name in ("train", "test")
    )
    label = task["columns"][-1]
    try:
        LogisticRegression().fit(frame.drop(columns=label), frame[label])
        refusal = ""
    except TypeError as error:
        refusal = str(error)
    held_out = other.compute()
    found: dict[str, Any] = {"refusal": refusal}
    for solver in task["solvers"]:
        start = time.perf_counter()
        # Of files, Dask puts partitions together, and then counts them wrong.
        held = frame.persist()
        X = held.drop(columns=label).to_dask_array(lengths=True).persist()
        y = held[label].to_dask_array(lengths=True).persist()
        model = LogisticRegression(solver=solver).fit(X, y)
        seconds = time.perf_counter() - start
        scores = held_out.drop(columns=label).to_numpy() @ model.coef_ + model.intercept_
        found[solver] = [seconds, float(((scores > 0) == held_out[label].to_numpy()).mean())]
    return found


def warm() -> None:
    """Import on a worker."""
    import dask_ml.linear_model  # noqa: F401
    import pyarrow.parquet  # noqa: F401


def main() -> None:
    """Start the cluster that the task describes."""
    task = json.loads(Path(sys.argv[1]).read_text())
    dask.config.set({"distributed.nanny.pre-spawn-environ": task["environment"]})
    with LocalCluster(**task["cluster"]) as cluster, Client(cluster) as client:
        client.run(warm)
        print(json.dumps(measured(task)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
