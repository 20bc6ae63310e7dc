"""From a CSV file to a model, as a whole process: time and peak memory, beside lifelines."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages

SCHEMA = """
[columns]
age = [18, 100]
marker = [0, 10]
stage = ["I", "II", "III"]
smoking = ["never", "past", "now"]
entry = { dates = ["2001-01-01", "2010-12-31"] }
treated = { boolean = true }
"""
OPTIONS = "--time days --event died --max-time 3650 --epsilon 1"
#: What a user would write instead: the same columns and the same coding.
COX = """
import sys, pandas as pd
from lifelines import CoxPHFitter
frame = pd.read_csv(sys.argv[1])
days = pd.to_datetime(frame.pop("entry")) - pd.Timestamp("2001-01-01")
frame = pd.get_dummies(frame.assign(entry=days.dt.days), drop_first=True, dtype=float)
CoxPHFitter().fit(frame.astype(float), "days", "died").summary.to_csv(sys.argv[2])
"""
KAPLAN_MEIER = """
import sys, pandas as pd
from lifelines import KaplanMeierFitter
frame = pd.read_csv(sys.argv[1])
fitter = KaplanMeierFitter().fit(frame["days"], frame["died"])
fitter.confidence_interval_.to_csv(sys.argv[2])
"""
FIT = [sys.executable, "-m", "skdpsurv", "fit"]
#: What runs, with places for the data, the schema and the result, and what it is compared with.
COX_FIT, CURVE = "lifelines, Cox regression", "lifelines, Kaplan-Meier"
SURVIVAL = [*FIT, "survival", "DATA", "--schema", "SCHEMA", *OPTIONS.split()]
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "skdpsurv fit survival": ([*SURVIVAL, "--out", "RESULT"], COX_FIT),
    "skdpsurv fit survival --dask": ([*SURVIVAL, "--dask", "--out", "RESULT"], COX_FIT),
    COX_FIT: ([sys.executable, "-c", COX, "DATA", "RESULT"], ""),
    "skdpsurv fit km": ([*FIT, "km", "DATA", *OPTIONS.split(), "--out", "RESULT"], CURVE),
    CURVE: ([sys.executable, "-c", KAPLAN_MEIER, "DATA", "RESULT"], ""),
}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return where files are, until this process ends."""
    return tempfile.TemporaryDirectory()


def write(path: Path, n: int) -> None:
    """Write records with about 40 % events, in eight columns."""
    rng = np.random.default_rng(0)
    age, stage = rng.normal(62.0, 10.0, n).round(1), rng.integers(0, 3, n)
    risk = 0.05 * (age - 62.0) + 0.4 * (stage - 1)
    event, last = rng.exponential(4000.0 * np.exp(-risk)), rng.uniform(100.0, 5000.0, n)
    entry = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3600, n), "D")
    frame = pd.DataFrame(
        {
            "age": age,
            "marker": rng.gamma(2.0, 1.0, n).round(2),
            "stage": np.array(["I", "II", "III"])[stage],
            "smoking": rng.choice(["never", "past", "now"], n),
            "entry": entry.strftime("%Y-%m-%d"),
            "treated": rng.random(n) < 0.4,
            "days": np.minimum(event, last).round(1),
            "died": (event <= last).astype(int),
        }
    )
    frame.to_csv(path, index=False)


#: A process counts the memory of the one that started it until then, so a small one starts it.
STARTER = """
import os, sys, time
start = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(process, 0)
print(time.perf_counter() - start, usage.ru_maxrss / 1024.0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measured(command: list[str]) -> tuple[float, float]:
    """Return seconds and peak memory in MB of a process, from its start to its end."""
    starter = [sys.executable, "-S", "-c", STARTER, *command]
    found = subprocess.run(starter, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, memory = map(float, found.split())
    return seconds, memory


def cases(setting: Setting) -> Iterator[Case]:
    for n in setting.of((100_000, 1_000_000), (2_000,)):
        for program in setting.of(list(PROGRAMS), ["skdpsurv fit km", CURVE]):
            yield {"records": n, "program": program}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return what a program takes from its start to its end."""
    folder = Path(_folder().name)
    data, schema = folder / f"{case['records']}.csv", folder / "columns.toml"
    schema.write_text(SCHEMA)
    if not data.exists():
        write(data, int(case["records"]))
    result = folder / f"{case['records']}-{repetition}-{case['program']}"
    places = {"DATA": data, "SCHEMA": schema, "RESULT": result}
    command, _ = PROGRAMS[case["program"]]
    seconds, memory = measured([str(places.get(word, word)) for word in command])
    return {"seconds": seconds, "MB": memory}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    median = rows.groupby(["records", "program"])[["seconds", "MB"]].median()
    ratios = {
        (n, program): median.loc[n, PROGRAMS[program][1]] / median.loc[n, program]
        for n, program in median.index
        if PROGRAMS[program][1]
    }
    table = []
    for n in dict.fromkeys(median.index.get_level_values("records")):
        for program in PROGRAMS:
            if (n, program) in median.index:
                found, ratio = median.loc[n, program], ratios.get((n, program))
                times, less = ("", "") if ratio is None else (f"{r:.2f}" for r in ratio)
                cells = (f"{n:,}", program, f"{found.seconds:.1f} s", times)
                table.append((*cells, f"{found.MB:.0f} MB", less))
    most = max(n for n, _ in ratios)
    said = ", ".join(
        f"`{program}` takes {1.0 / ratio.seconds:.2f} times the time and {1.0 / ratio.MB:.2f} "
        "times the memory"
        for (n, program), ratio in ratios.items()
        if n == most
    )
    pages.table(
        "speed_command_line",
        ("records", "program", "time", "lifelines' / its", "memory", "lifelines' / its"),
        table,
        f"From a file of {most:,} records to a model, beside lifelines: {said}.",
        f"Median of {rows.repetition.max() + 1} runs, in turn, of whole processes: imports, "
        "reading, fitting, writing.",
    )


COMMAND_LINE = Experiment(cases, measure, report, repetitions=3, timed=True)
