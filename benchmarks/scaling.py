"""Time and memory of a private fit as the number of records grows.

python -m benchmarks.scaling
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from benchmarks._common import table
from benchmarks._run import arguments, in_new_process, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.datasets import make_discrete_time_survival

SIZES = setting((1_000, 10_000, 100_000, 1_000_000), quick=(1_000,))


def worker(n: str, epsilon: str) -> None:
    """Print seconds, MiB added to the peak, and MiB of the input."""
    data = make_discrete_time_survival(int(n), 8, random_state=0)
    model = DPDiscreteTimeSurvival(float(epsilon), max_time=data.max_time)
    model.fit(data.X[:300], data.y[:300])
    start = time.perf_counter()
    model.fit(data.X, data.y)
    elapsed = time.perf_counter() - start
    tracemalloc.start()
    model.fit(data.X, data.y)
    added = tracemalloc.get_traced_memory()[1] / 2**20
    print(elapsed, added, (data.X.nbytes + data.y.nbytes) / 2**20)


def main() -> None:
    """Table: one fit a row, each in a process of its own."""
    arguments(__doc__ or "")
    rows = []
    for n in SIZES:
        private = np.array(in_new_process("scaling", str(n), "1.0").split(), dtype=float)
        reference = np.array(in_new_process("scaling", str(n), "inf").split(), dtype=float)
        rows.append(
            (
                f"{n:,}",
                f"{1e3 * private[0]:,.0f} ms",
                f"{1e6 * private[0] / n:.2f} us",
                f"{1e3 * reference[0]:,.0f} ms",
                f"{private[2]:.1f} MiB",
                f"{private[1]:.0f} MiB",
            )
        )
    table(
        "scaling",
        ("records", "private fit", "per record", "non-private fit", "input", "added memory"),
        rows,
        "Simulated, 8 covariates, q = 200, epsilon = 1, one fit in a fresh process each.",
    )


if __name__ == "__main__":
    run(main, worker)
