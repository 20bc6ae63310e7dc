"""What runs in dask-ml's own environment: a fit without privacy, of Parquet files on a cluster.

python dask_ml_fit.py fit IN.npz OPTIONS.json OUT.json

Imports nothing of skdpsurv.
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


def measured(train: list[str], test: list[str], columns: list[str], solver: str) -> dict[str, Any]:
    """Return seconds of a fit, on workers that have imported what they need, and its accuracy."""
    from dask_ml.linear_model import LogisticRegression

    *covariates, label = columns
    other = dd.read_parquet(test, columns=columns).compute()
    start = time.perf_counter()
    # Frames are refused; and of files Dask puts partitions together, and then counts them wrong.
    held = dd.read_parquet(train, columns=columns).persist()
    X = held[covariates].to_dask_array(lengths=True).persist()
    y = held[label].to_dask_array(lengths=True).persist()
    model = LogisticRegression(solver=solver).fit(X, y)
    seconds = time.perf_counter() - start
    scores = other[covariates].to_numpy() @ model.coef_ + model.intercept_
    accuracy = float(((scores > 0) == other[label].to_numpy()).mean())
    return {"seconds": seconds, "accuracy": accuracy}


def warm() -> None:
    """Import on a worker."""
    import dask_ml.linear_model  # noqa: F401
    import pyarrow.parquet  # noqa: F401


def main() -> None:
    """Start the cluster that the options describe."""
    _, _, wishes, target = sys.argv[1:]
    options = json.loads(Path(wishes).read_text())
    dask.config.set({"distributed.nanny.pre-spawn-environ": options.pop("environment")})
    with LocalCluster(**options.pop("cluster")) as cluster, Client(cluster) as client:
        client.run(warm)
        Path(target).write_text(json.dumps(measured(**options)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
