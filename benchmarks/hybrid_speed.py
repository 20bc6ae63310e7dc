"""Time and memory of ten candidate subsets, against a nearest-neighbour search for each of them.

python -m benchmarks.hybrid_speed
"""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks._common import table
from benchmarks._hybrid import simulated
from benchmarks._run import arguments, in_new_process, number, run, setting
from skdpsurv import HybridMEstimator
from skdpsurv.hybrid.hybrid_plan import candidates
from skdpsurv.hybrid.hybrid_records import PointMap, distinct, nested_counts, read_table

ROUNDS = setting(3, quick=1)


def seconds(call: object) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    call()  # type: ignore[operator]
    return perf_counter() - start


def peak() -> float:
    """Return the largest memory of this process so far, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def worker(task: str, n: str, p: str) -> None:
    """Print the numbers of one row, in a process of its own."""
    data = simulated(int(p), int(n), int(n), 0)
    if task in ("subset", "all", "auto", "cells"):
        before = peak()
        model = HybridMEstimator(method=task, random_state=0)
        elapsed = [
            seconds(lambda: model.fit(data.rows, data.outcomes, public=data.public))
            for _ in range(ROUNDS)
        ]
        most = peak()
        tracemalloc.start()
        model.fit(data.rows, data.outcomes, public=data.public)
        added = tracemalloc.get_traced_memory()[1] / 2**20
        print(np.median(elapsed), before, most, added)
        return
    public = read_table(data.X_public, ()), data.y_public
    point_map = PointMap.of(*public, True)
    theirs = point_map.points(*public)
    ours = point_map.points(read_table(data.X_private, ()), data.y_private)
    theirs = theirs[distinct(theirs)]
    sizes = candidates(None, theirs.shape[0])

    def search(algorithm: str) -> None:
        for size in sizes:
            found = NearestNeighbors(n_neighbors=1, algorithm=algorithm).fit(theirs[:size])
            found.kneighbors(ours, return_distance=False)

    # Longer searches take one round.
    nested = [seconds(lambda: list(nested_counts(ours, theirs, sizes))) for _ in range(ROUNDS)]
    brute = [seconds(lambda: search("brute")) for _ in range(ROUNDS)]
    tree = seconds(lambda: search("kd_tree"))
    print(np.median(nested), np.median(brute), tree)


def main() -> None:
    """Two tables."""
    args = arguments(
        __doc__ or "", records=number(10_000, quick=500), columns=number(100, quick=10)
    )
    n, p = str(args.records), str(args.columns)
    rows = []
    for task in ("subset", "all", "cells", "auto"):
        elapsed, before, most, added = map(
            float, in_new_process("hybrid_speed", task, n, p).split()
        )
        rows.append(
            (task, f"{elapsed:.2f} s", f"{added:.0f} MiB", f"{most:.0f} MiB", f"{before:.0f} MiB")
        )
    size = f"{args.records:,} + {args.records:,} records of {p} columns"
    table(
        "hybrid_speed",
        ("method", "fit", "added by a fit", "peak of the process", "of that, before the fit"),
        rows,
        f"{size}, ε = 1, logistic regression; ten candidate sizes for the subset; median of "
        f"{ROUNDS} fits on one thread, each method in a fresh process. Added memory "
        "is what Python and NumPy allocate.",
    )
    nested, brute, tree = map(float, in_new_process("hybrid_speed", "search", n, p).split())
    table(
        "hybrid_neighbours",
        ("nearest neighbours of ten nested subsets", "time", "ratio"),
        [
            ("one pass over all pairs", f"{nested:.2f} s", "1"),
            (
                "scikit-learn for each subset, brute force",
                f"{brute:.2f} s",
                f"{brute / nested:.1f}",
            ),
            ("scikit-learn for each subset, k-d tree", f"{tree:.2f} s", f"{tree / nested:.0f}"),
        ],
        f"{size}, in one process, on one thread; median of {ROUNDS} (of one, for the tree).",
    )


if __name__ == "__main__":
    run(main, threadpool_limits.wrap(limits=1)(worker))
