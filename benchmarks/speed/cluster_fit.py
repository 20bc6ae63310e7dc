"""A fit of Parquet files in a process of its own: its time, its passes, what it took and sent."""

from __future__ import annotations

import json
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, DPWeibullFitter, split_target
from skdpsurv.data.blocks import InMemory
from skdpsurv.mechanisms.newton import Objective

COLUMNS = [f"x{j}" for j in range(10)]
MAX_TIME = 4.0
MODELS: dict[str, Callable[[float], Any]] = {
    "hazards": lambda epsilon: DPDiscreteTimeSurvival(epsilon, max_time=MAX_TIME, n_intervals=200),
    "weibull": lambda epsilon: DPWeibullFitter(epsilon, max_time=MAX_TIME),
    "logistic": lambda epsilon: DPLogisticRegression(epsilon, classes=[False, True]),
}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return where files are, until this process ends."""
    return tempfile.TemporaryDirectory()


def files(n_files: int, rows: int, first: int = 0) -> list[str]:
    """Return files of so many records, written if they are not there, one after the other."""
    folder = Path(_folder().name)
    paths = [folder / f"{rows}_{k:03}.parquet" for k in range(first, first + n_files)]
    for k, path in enumerate(paths, first):
        if not path.exists():
            records(k, rows).to_parquet(path)
    return [str(path) for path in paths]


def records(k: int, rows: int) -> pd.DataFrame:
    """Return the records of a file."""
    rng = np.random.default_rng([0, k])
    X = rng.uniform(-1.0, 1.0, (rows, len(COLUMNS)))
    times = rng.exponential(3.0 * np.exp(-X[:, 0] - 0.5 * X[:, 1]))
    left = rng.uniform(0.0, 8.0, rows)
    frame = pd.DataFrame(X, columns=COLUMNS)
    return frame.assign(time=np.minimum(times, left), event=times <= left)


#: Of workers: Dask's, without what has them give back freed memory at once.
ENVIRONMENT = {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}
#: Besides, for workers that keep what memory they were given: no array has a mapping of its own.
KEEPING = {
    "MALLOC_MMAP_MAX_": 0,
    "MALLOC_TRIM_THRESHOLD_": 2**40,
    "MALLOC_ARENA_MAX": 1,
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def cluster(n_workers: int, memory: str = "2GB") -> dict[str, Any]:
    """Return what a cluster of this machine is started with."""
    return {
        "n_workers": n_workers,
        "threads_per_worker": 1,
        "processes": True,
        "memory_limit": memory,
        "dashboard_address": None,
    }


def arguments_of(kind: str, frame: Any) -> tuple[Any, Any]:
    """Return X and y for a model."""
    if kind == "logistic":
        return frame[COLUMNS], frame["event"]
    X, y = split_target(frame, time="time", event="event")
    return (None, y) if kind == "weibull" else (X, y)


@contextmanager
def watched() -> Iterator[list[dict[str, Any]]]:
    """List the passes over records: over how many of them, seconds, and bytes of the sum."""
    from skdpsurv.data.dask import DaskBlocks

    passes: list[dict[str, Any]] = []

    def noted(kind: type, name: str) -> Callable[[], None]:
        original = getattr(kind, name)

        def method(self: Any, *args: Any) -> Any:
            start = time.perf_counter()
            found = original(self, *args)
            passes.append(
                {
                    "what": getattr(args[0], "__qualname__", name),
                    "sample": self.__dict__.get("sample", False),
                    "seconds": time.perf_counter() - start,
                    "bytes": len(pickle.dumps(found)),
                }
            )
            return found

        setattr(kind, name, method)
        return lambda: setattr(kind, name, original)

    def thinned(self: Objective, step: int) -> Objective:
        sample = thin(self, step)
        sample.blocks.__dict__["sample"] = True
        return sample

    thin = Objective.thinned
    undo = [noted(kind, "map_reduce") for kind in (DaskBlocks, InMemory)]
    undo.append(noted(DaskBlocks, "sizes"))
    Objective.thinned = thinned  # type: ignore[method-assign]
    try:
        yield passes
    finally:
        Objective.thinned = thin  # type: ignore[method-assign]
        for back in undo:
            back()


def peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10


def sent(dask_worker: Any) -> int:
    """Return how many bytes a worker has sent to others and to the client."""
    return int(getattr(dask_worker, "transfer_outgoing_bytes_total", 0))


def warm() -> None:
    """Import on a worker."""
    import dask.dataframe  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import skdpsurv.data.sources  # noqa: F401


def touch(n_bytes: float) -> None:
    """Write to memory, and give it back to the process."""
    pieces = [np.ones(2**22) for _ in range(int(n_bytes) // 2**25)]
    del pieces


def measure(
    kind: str,
    engine: str,
    paths: Sequence[str],
    n_workers: int,
    memory: str,
    epsilon: float,
    touched: float = 0.0,
) -> dict[str, Any]:
    """Fit once.

    Parameters
    ----------
    kind : {"hazards", "weibull", "logistic"}
    engine : {"memory", "threads", "cluster"}
    touched : float, default=0.0
        Bytes of memory that workers together have written to before, and keep.
    """
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        client = None
        if engine == "memory":
            frame = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
        else:
            import dask
            import dask.dataframe as dd

            warm()
            if engine == "cluster":
                from distributed import Client, LocalCluster

                environment = ENVIRONMENT | KEEPING if touched else ENVIRONMENT
                dask.config.set({"distributed.nanny.pre-spawn-environ": environment})
                local = stack.enter_context(LocalCluster(**cluster(n_workers, memory)))
                client = stack.enter_context(Client(local))
                client.run(warm)
                client.run(touch, touched / n_workers)
            else:
                stack.enter_context(dask.config.set(scheduler="threads", num_workers=n_workers))
            frame = dd.read_parquet(list(paths))
        passes = stack.enter_context(watched())
        start = time.perf_counter()
        model = MODELS[kind](epsilon).fit(*arguments_of(kind, frame))
        found |= {"seconds": time.perf_counter() - start, "passes": passes, "client": peak()}
        if client is not None:
            found["workers"] = list(client.run(peak).values())
            found["sent"] = sum(client.run(sent).values())
        if kind == "logistic":
            found["coef"] = [*model.coef_.ravel().tolist(), float(np.ravel(model.intercept_)[0])]
    return found


def worker(task: str) -> None:
    """Print what was measured; ``task`` is JSON with the arguments of :func:`measure`."""
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        print(json.dumps(measure(**json.loads(task))))
