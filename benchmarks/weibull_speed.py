"""Time and memory of a Weibull fit, against lifelines in the same run.

python -m benchmarks.weibull_speed
"""

from __future__ import annotations

import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from lifelines import WeibullFitter
from threadpoolctl import threadpool_limits

from benchmarks._common import table
from benchmarks._run import arguments, in_new_process, number, run, setting
from skdpsurv import DPWeibullFitter
from skdpsurv.published import PublishedWeibullFitter
from skdpsurv.survival.weibull.fitter import WeibullCurve

MAX_TIME = 10.0
SIZES = setting((10_000, 100_000, 1_000_000, 10_000_000), quick=(10_000,))
ROUNDS, SMALL = setting((9, 50), quick=(1, 3))
FITS: dict[str, Callable[..., WeibullCurve]] = {
    "ladder, tight": partial(DPWeibullFitter, 1.0),
    "ladder, exact": partial(PublishedWeibullFitter, 1.0, ladder="exact"),
    "ladder, published": partial(PublishedWeibullFitter, 1.0),
    "maximum likelihood": partial(DPWeibullFitter, math.inf),
}


def records(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Weibull times of shape 1.5 with about 40 % events, and which are events."""
    rng = np.random.default_rng(0)
    durations = rng.weibull(1.5, n)
    durations *= 12.0
    last = rng.uniform(2.0, 2.0 * MAX_TIME, n)
    np.minimum(last, MAX_TIME, out=last)
    events = durations <= last
    np.minimum(durations, last, out=durations)
    return durations, events


def seconds(call: Callable[[], object], repetitions: int) -> float:
    """Return the median time of a call."""
    times = []
    gc.collect()
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def against_lifelines(n: int) -> None:
    """Table: the same records, fitted in turn."""
    durations, events = records(n)
    fits = {"lifelines": WeibullFitter()}
    fits |= {name: make(max_time=MAX_TIME) for name, make in FITS.items()}
    times: dict[str, list[float]] = {name: [] for name in fits}
    for fit in fits.values():
        fit.fit(durations, events)
    # In turn, so that a machine that slows down slows all.
    for _ in range(ROUNDS):
        for name, fit in fits.items():
            call = lambda fit=fit: fit.fit(durations, events)  # noqa: E731
            times[name].append(seconds(call, 3))
    median = {name: float(np.median(each)) for name, each in times.items()}
    rows = []
    for name, fit in fits.items():
        quotient = f"{median['lifelines'] / median[name]:.1f}"
        label = name if name == "lifelines" else f"skdpsurv, {name}"
        rows.append(
            (
                label,
                f"{1e3 * median[name]:.1f} ms",
                quotient,
                f"{fit.rho_:.4f}",
                f"{fit.lambda_:.3f}",
            )
        )
    table(
        "weibull_speed",
        ("fit", "time", "lifelines' time / time", "shape", "scale"),
        rows,
        f"{n:,} simulated records, {100 * events.mean():.0f} % events; ladders at epsilon = 1; "
        f"median of {3 * ROUNDS} fits each, in turn, one thread.",
    )


def worker(n: str, epsilon: str) -> None:
    """Print seconds, MiB added to the peak, and MiB of the input."""
    durations, events = records(int(n))
    fitter = DPWeibullFitter(float(epsilon), max_time=MAX_TIME)
    fitter.fit(durations[:300], events[:300])
    elapsed = seconds(lambda: fitter.fit(durations, events), 3)
    tracemalloc.start()
    fitter.fit(durations, events)
    added = tracemalloc.get_traced_memory()[1] / 2**20
    print(elapsed, added, (durations.nbytes + events.nbytes) / 2**20)


def scaling() -> None:
    """Table: a private fit as records grow, each in a process of its own."""
    rows = []
    for n in SIZES:
        elapsed, added, size = map(float, in_new_process("weibull_speed", str(n), "1.0").split())
        rows.append(
            (
                f"{n:,}",
                f"{1e3 * elapsed:,.0f} ms" if elapsed > 0.1 else f"{1e3 * elapsed:.1f} ms",
                f"{1e9 * elapsed / n:,.0f} ns",
                f"{size:.1f} MiB",
                f"{added:.1f} MiB",
                f"{added / size:.2f}",
            )
        )
    table(
        "weibull_scaling",
        ("records", "private fit", "per record", "input", "added memory", "of the input"),
        rows,
        "Simulated; float64 durations and Boolean events, epsilon = 1, default ladder; median of "
        "3 fits in a fresh process each, one thread.",
    )


def small_fits() -> None:
    """Table: six records, as an audit fits them thousands of times."""
    durations, events = records(6)
    rows = []
    for name, make in FITS.items():
        fitter = make(max_time=MAX_TIME)
        fitter.fit(durations, events)
        elapsed = seconds(lambda fitter=fitter: fitter.fit(durations, events), SMALL)
        rows.append((name, f"{1e3 * elapsed:.1f} ms"))
    table("weibull_speed_small", ("fit", "six records"), rows, f"epsilon = 1; median of {SMALL}.")


def main() -> None:
    """Three tables."""
    args = arguments(__doc__ or "", records=number(50_000, quick=5_000))
    against_lifelines(args.records)
    scaling()
    small_fits()


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        run(main, worker)
