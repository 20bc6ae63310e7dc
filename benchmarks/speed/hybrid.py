"""Time and memory of hybrid fits, and of ten nested searches against one for each candidate."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.harness import Case, Experiment, Row, Setting, in_new_process
from benchmarks.pages import Pages
from benchmarks.papers.hybrid_records import Candidates, Errors, two_tables
from skdpsurv import HybridMEstimator
from skdpsurv.hybrid.hybrid_plan import candidates
from skdpsurv.hybrid.hybrid_records import nested_counts

METHODS = ("subset", "all", "cells", "auto")
SEARCHES = {
    "nested": "ten searches, one pass over all pairs",
    "brute": "ten searches of scikit-learn, brute force",
    "kd_tree": "ten searches of scikit-learn, k-d tree",
}


def cases(setting: Setting) -> Iterator[Case]:
    for task in setting.of((*METHODS, *SEARCHES), ("auto", "nested")):
        yield {"task": task}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    n, p = setting.of((10_000, 100), (500, 10))
    printed = in_new_process("speed.hybrid", case["task"], str(n), str(p))
    seconds, added, peak, before = map(float, printed.split())
    return {"n": n, "p": p, "seconds": seconds, "added": added, "peak": peak, "before": before}


def worker(task: str, n: str, p: str) -> None:
    """Print seconds, MiB that a fit adds, and the peak of the process after and before."""
    with threadpool_limits(limits=1):
        call = _fit(task, int(n), int(p)) if task in METHODS else _search(task, int(n), int(p))
        before, added = _peak(), 0.0
        if task in METHODS:  # once to warm up
            call()
        peak = _peak()
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        if task in METHODS:
            tracemalloc.start()
            call()
            added = tracemalloc.get_traced_memory()[1] / 2**20
    print(seconds, added, peak, before)


def _fit(method: str, n: int, p: int) -> Callable[[], object]:
    data = two_tables(p, n, 0)
    model = HybridMEstimator(method=method, random_state=0)
    rows, outcomes, public = data.rows, data.outcomes, data.public
    return lambda: model.fit(rows, outcomes, public=public)


def _search(algorithm: str, n: int, p: int) -> Callable[[], object]:
    data = two_tables(p, n, 0)
    both = Candidates(data, Errors(data))
    private, points = both.private, both.points
    sizes = candidates(None, points.shape[0])
    if algorithm == "nested":
        return lambda: list(nested_counts(private, points, sizes))

    def search() -> None:
        for size in sizes:
            found = NearestNeighbors(n_neighbors=1, algorithm=algorithm).fit(points[:size])
            found.kneighbors(private, return_distance=False)

    return search


def _peak() -> float:
    """Return the largest memory of this process so far, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def report(rows: pd.DataFrame, pages: Pages) -> None:
    of = rows.groupby("task")[["seconds", "added", "peak", "before"]].median()
    cells = []
    for task in (task for task in (*METHODS, *SEARCHES) if task in of.index):
        one = of.loc[task]
        memory = [f"{one[k]:.0f} MiB" for k in ("added", "peak", "before")]
        if task in SEARCHES:
            memory = ["–"] * 3
        name = SEARCHES.get(task, f'`method="{task}"`')
        cells.append((name, f"{one.seconds:.2f} s", *memory))
    slower = [
        f"{of.seconds[task] / of.seconds['nested']:.1f} times ({task.replace('_', '-')})"
        for task in ("brute", "kd_tree")
        if {task, "nested"} <= set(of.index)
    ]
    fits = f"A fit by default takes {of.seconds.get('auto', np.nan):.2f} s"
    extra = f"; scikit-learn's searches take {' and '.join(slower)} as long" if slower else ""
    first = rows.iloc[0]
    pages.table(
        "hybrid_speed",
        ("task", "time", "added by a fit", "peak of the process", "of that, before the fit"),
        cells,
        f"{fits}{extra}.",
        f"{int(first.n):,} + {int(first.n):,} records of {int(first.p)} columns, ε = 1, logistic "
        f"regression; median of {rows.repetition.max() + 1} fresh processes on one thread. Added "
        "memory is what Python and NumPy allocate.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=3, timed=True)
