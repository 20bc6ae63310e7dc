"""A hazard regression beside what a user would take instead, on the same records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, in_new_process
from benchmarks.pages import Pages
from benchmarks.speed.fits import MAXIMUM_LIKELIHOOD, PEERS, PRIVATE, hazard_call, in_turn, problem

STATSMODELS = "person-period, statsmodels"
METHODS = (MAXIMUM_LIKELIHOOD, PRIVATE, *PEERS)
#: Data, number of intervals, link, and who is left out.
PROBLEMS = (
    ("flchain", 200, "logit", ("pydts",)),
    ("flchain", 200, "cloglog", tuple(name for name in PEERS if name != STATSMODELS)),
    ("flchain", 200, "probit", tuple(name for name in PEERS if name != STATSMODELS)),
    ("support2", 200, "logit", ("pydts",)),
    ("simulated", 20, "logit", ()),
)


def cases(setting: Setting) -> Iterator[Case]:
    for data, q, link, _ in PROBLEMS if not setting.quick else PROBLEMS[4:]:
        yield {"data": data, "q": q, "link": link}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the time of each method, in turn."""
    tried = problem(setting, case["data"], int(case["q"]), case["link"])
    left_out = next(p[3] for p in PROBLEMS if p[:3] == tuple(case.values()))
    names = [name for name in METHODS if name not in left_out]
    return in_turn({name: hazard_call(name, tried) for name in names}, "method")


def report(rows: pd.DataFrame, pages: Pages) -> None:
    median = rows.groupby(["data", "q", "link", "method"]).seconds.median()
    problems = list(dict.fromkeys(zip(rows.data, rows.q, rows.link, strict=True)))
    table, faster = [], {}
    for problem_ in sorted(problems):
        times = median[problem_]
        ours = times[MAXIMUM_LIKELIHOOD]
        faster[problem_] = times.get(STATSMODELS, float("nan")) / ours
        name = f"{problem_[0]}, q = {problem_[1]}, {problem_[2]}"
        table += [
            (name, method, _seconds(times[method]), f"{times[method] / ours:.1f}")
            for method in METHODS
            if method in times
        ]
    said = ", ".join(
        f"{ratio:.0f} times ({data}, {link})" for (data, _, link), ratio in faster.items()
    )
    slower = median.xs(PRIVATE, level="method") / median.xs(MAXIMUM_LIKELIHOOD, level="method")
    pages.table(
        "speed_peers",
        ("data", "fit", "time", "time / maximum likelihood here"),
        table,
        f"Maximum likelihood is faster than person-period rows with statsmodels by {said}. A "
        f"private fit takes {slower.min():.1f} to {slower.max():.1f} times as long as one without "
        "privacy.",
        f"Median of {rows.repetition.max() + 1} rounds of processor time, in turn, one thread. "
        "Person-period rows are made within it. pydts has a coefficient for each interval.",
    )
    for (data, _, link), ratio in faster.items():
        pages.fact(f"speed_{data}_{link}", f"{ratio:.0f}")


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1.0 else f"{1e3 * value:.1f} ms"


def worker(folder: str, quick: str, data: str, q: str, method: str) -> None:
    """Print the peak of what a fit allocates, in MiB, when data and imports are there."""
    setting = Setting(quick == "True", Path(folder) if folder else None)
    call = hazard_call(method, problem(setting, data, int(q)))
    small = hazard_call(method, problem(Setting(quick=True), "simulated", 20))
    small()
    tracemalloc.start()
    call()
    print(tracemalloc.get_traced_memory()[1] / 2**20)


def memory_cases(setting: Setting) -> Iterator[Case]:
    data, q = setting.of(("flchain", 200), ("simulated", 20))
    for method in setting.of(METHODS, (MAXIMUM_LIKELIHOOD, STATSMODELS)):
        if method != "pydts":
            yield {"data": data, "q": q, "method": method}


def memory(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the peak of what a fit allocates, in a process of its own."""
    folder = str(setting.folder or "")
    words = (folder, str(setting.quick), case["data"], str(case["q"]), case["method"])
    return {"MiB": float(in_new_process("speed.peers", *words))}


def memory_report(rows: pd.DataFrame, pages: Pages) -> None:
    peak = rows.groupby("method").MiB.median()
    ours = peak[MAXIMUM_LIKELIHOOD]
    most = peak[STATSMODELS] / ours
    pages.table(
        "speed_memory",
        ("fit", "added memory", "times"),
        [(m, f"{peak[m]:.1f} MiB", f"{peak[m] / ours:.1f}") for m in METHODS if m in peak],
        f"Person-period rows with statsmodels take {most:.0f} times the memory.",
        f"Peak of what a fit allocates on top of the data: {rows.data.iloc[0]}, q = "
        f"{rows.q.iloc[0]}, logit; each in a process of its own.",
    )


PEER_SPEED = Experiment(cases, measure, report, repetitions=5, timed=True)
PEER_MEMORY = Experiment(memory_cases, memory, memory_report, timed=True)
