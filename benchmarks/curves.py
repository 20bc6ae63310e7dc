"""Private Kaplan-Meier curves: error beside other methods, coverage, log-rank tests, speed.

python -m benchmarks.curves --data-dir FOLDER [--parts error coverage logrank speed]
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from lifelines import KaplanMeierFitter
from sksurv.nonparametric import kaplan_meier_estimator

from benchmarks import _curve_baselines as baselines
from benchmarks import _curve_inference as inference
from benchmarks._common import save, sheet, table
from benchmarks._curve_data import (
    LEAST_AT_RISK,
    Curve,
    People,
    Records,
    fit,
    kaplan_meier,
    real_sets,
    weibull,
)
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import DPKaplanMeierFitter

SIZES = setting((200, 2_000, 20_000), quick=(200,))
EPSILONS = setting((0.1, 0.3, 1.0, 3.0), quick=(1.0,))
OURS, BEST_GW, GW, BEST_VN, SAMPLING = METHODS = (
    "ours",
    "Gondara and Wang, best grid",
    "Gondara and Wang, as published",
    "Veeraragavan and Nygård, best",
    "sampling",
)
Rows = list[tuple[str, ...]]


def estimates(
    records: Records, epsilon: float, max_time: float, seed: int
) -> Iterator[tuple[str, str, Curve]]:
    """Yield method, setting and curve of one release each."""
    durations, events = records
    yield OURS, "", fit(records, epsilon, max_time, seed).predict
    rng = np.random.default_rng([seed, 1])
    units = np.arange(0.0, np.ceil(max_time) + 1.0)
    by_unit = baselines.gondara_wang(durations, events, units, epsilon, rng)
    yield GW, "", lambda times: baselines.step(times, units, by_unit)
    kinds = {"steps": baselines.step, "log-linear": baselines.log_linear}
    for q in baselines.N_BANDS:
        ends = max_time * np.arange(1, q + 1) / q
        values = baselines.gondara_wang(durations, events, ends, epsilon, rng)
        for kind, between in kinds.items():
            yield BEST_GW, f"{q} bands, {kind}", curve_of(between, ends, values)
    for m in baselines.GRIDS:
        grid = max_time * np.arange(1, m + 1) / m
        exact = kaplan_meier(*records)(grid)
        for weight, values in baselines.veeraragavan_nygard(exact, events.size, epsilon, rng):
            for kind, between in kinds.items():
                yield BEST_VN, f"{m} times, {weight:g}, {kind}", curve_of(between, grid, values)


def curve_of(between: Callable[..., np.ndarray], ends: np.ndarray, values: np.ndarray) -> Curve:
    return lambda times: between(times, ends, values)


def compared_at(durations: np.ndarray) -> np.ndarray:
    """Return times up to where a tenth of the records is at risk, many of them early."""
    end = float(np.quantile(durations, 1.0 - LEAST_AT_RISK, method="lower"))
    even = np.linspace(0.0, 1.0, 400)
    return end * np.union1d(even, even**3)


def errors(data: People, n: int, epsilon: float, repetitions: int) -> dict[str, tuple[float, str]]:
    """Return the mean sup distance of each method in its best setting, and that setting."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    whole = kaplan_meier(data.durations, data.events)
    for seed in range(repetitions):
        records = data.drawn(n, seed, replace=False)
        times = compared_at(records[0])
        exact = kaplan_meier(*records)(times)
        for method, kind, curve in estimates(records, epsilon, data.max_time, seed):
            found[method, kind].append(float(np.abs(curve(times) - exact).max()))
        if 2 * n <= data.durations.size:
            found[SAMPLING, ""].append(float(np.abs(whole(times) - exact).max()))
    best: dict[str, tuple[float, str]] = {}
    for (method, kind), off in found.items():
        best[method] = min(best.get(method, (np.inf, "")), (float(np.mean(off)), kind))
    return best


def error(folder: Path | None, repetitions: int) -> None:
    """Tables: distance of private curves from those without privacy."""
    sets = real_sets(folder)
    rows: Rows = []
    by_set: Rows = []
    for n in SIZES:
        large = [data for data in sets if data.durations.size >= n]
        if not large:
            continue
        for epsilon in EPSILONS:
            found = {data.name: errors(data, n, epsilon, repetitions) for data in large}
            cells = []
            for method in METHODS:
                there = [each[method][0] for each in found.values() if method in each]
                cells.append(f"{np.mean(there):.3f}" if there else "–")
            rows.append((f"{n:,}", f"{epsilon:g}", str(len(large)), *cells))
            print(rows[-1], flush=True)
            for name, each in found.items():
                print(name, n, epsilon, each, flush=True)
                # Smaller sets have their own row, of 200 records.
                smaller = n == SIZES[0] and not any(
                    data.name == name and data.durations.size >= 2_000 for data in sets
                )
                if epsilon == 1.0 and (n == 2_000 or smaller):
                    shown = (f"{each[m][0]:.3f}" if m in each else "–" for m in METHODS)
                    by_set.append((name, f"{n:,}", *shown, each[BEST_GW][1], each[BEST_VN][1]))
    note = (
        "Mean over {} of the largest distance to the Kaplan-Meier estimate of the same records, "
        "at times at which a tenth of them is at risk; “sampling” is the distance of that "
        "estimate to the one of the whole set, for at most half of its records."
    )
    note = note.format(f"{repetitions} subsamples")
    table("curves_error", ("records", "ε", "sets", *METHODS), rows, note)
    header = ("data", "records", *METHODS, "bands", "times, weight")
    table("curves_error_by_set", header, by_set, f"ε = 1. {note}")
    figure(sets[0], setting(2_000, quick=200), 1.0)


@part("figure")
def figure(data: People, n: int, epsilon: float) -> None:
    """Draw one release of each method beside the estimate without privacy."""
    best = {method: kind for method, (_, kind) in errors(data, n, epsilon, 5).items()}
    records = data.drawn(n, 0, replace=False)
    times = np.linspace(0.0, float(compared_at(records[0])[-1]), 800)
    drawn = sheet(9.6, 4.1)
    panels = drawn.subplots(1, 2, sharey=True)
    ours, theirs = panels
    styles = {BEST_GW: ("#D55E00", "-"), BEST_VN: ("#009E73", "-"), GW: ("0.65", "-")}
    for ax in panels:
        ax.step(times, kaplan_meier(*records)(times), color="black", lw=1.2, label="Kaplan-Meier")
    for method, kind, curve in estimates(records, epsilon, data.max_time, 0):
        if method == OURS:
            band = fit(records, epsilon, data.max_time, 0).survival_band(times)
            ours.plot(times, curve(times), color="#0072B2", lw=1.8, label="ours, 95 % band")
            ours.fill_between(times, band["lower"], band["upper"], color="#0072B2", alpha=0.2, lw=0)
        elif best[method] == kind:
            color, line = styles[method]
            theirs.plot(times, curve(times), color=color, linestyle=line, lw=1.5, label=method)
    for ax in panels:
        ax.set_xlabel("Time (days)")
        ax.grid(color="0.92", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower left", fontsize=8)
    ours.set_ylabel("Survival")
    ours.set_title(f"{data.name}, n = {n:,}, ε = {epsilon:g}", loc="left", fontsize=10)
    save(drawn, "curves")


def speed() -> None:
    """Table: time of a fit beside others, on the same records in the same run."""
    n = setting(1_000_000, quick=10_000)
    durations, events = weibull(n, np.random.default_rng(0), 1.0, 0.8)
    ours = DPKaplanMeierFitter(1.0, max_time=1.0)
    calls: dict[str, Callable[[], object]] = {
        "lifelines": lambda: KaplanMeierFitter().fit(durations, events),
        "scikit-survival": lambda: kaplan_meier_estimator(events, durations),
        "scikit-survival, with intervals": lambda: kaplan_meier_estimator(
            events, durations, conf_type="log-log"
        ),
        "skdpsurv, ε = 1": lambda: ours.fit(durations, events),
    }
    taken = dict.fromkeys(calls, np.inf)
    for _ in range(3):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name] = min(taken[name], time.perf_counter() - start)
    mine = taken["skdpsurv, ε = 1"]
    rows = [(name, f"{1e3 * t:.0f} ms", f"{t / mine:.1f}") for name, t in taken.items()]
    note = f"{n:,} records, {100 * events.mean():.0f} % events; best of 3, in turn, one thread."
    table("curves_speed", ("fit", "time", "time / skdpsurv's"), rows, note)


def main() -> None:
    """All parts, or those that are named."""
    parts = ("error", "coverage", "logrank", "speed")
    args = arguments(
        __doc__ or "",
        parts={"nargs": "+", "choices": parts, "default": parts},
        error_repetitions=number(20, quick=2),
        coverage_repetitions=number(200, quick=2),
        test_repetitions=number(1_000, quick=2),
    )
    if "speed" in args.parts:
        speed()
    if "error" in args.parts:
        error(args.data_dir, args.error_repetitions)
    if "coverage" in args.parts:
        inference.coverage(args.data_dir, args.coverage_repetitions)
    if "logrank" in args.parts:
        inference.tests(args.test_repetitions)


if __name__ == "__main__":
    run(main)
