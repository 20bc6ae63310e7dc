"""From a CSV file to a model, as a whole process: time and peak memory, against lifelines.

python -m benchmarks.command_line
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._common import table
from benchmarks._run import arguments, run, setting

SIZES = setting((100_000, 1_000_000), quick=(2_000,))
ROUNDS = setting(3, quick=1)
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


def measured(command: list[str]) -> tuple[float, float]:
    """Return seconds and peak memory in MB of a process, from its start to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command} failed.")
    return seconds, usage.ru_maxrss / 1024.0


def main() -> None:
    arguments(__doc__ or "")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, schema = folder / "study.csv", folder / "columns.toml"
        schema.write_text(SCHEMA)
        for n in SIZES:
            write(data, n)
            fit = [sys.executable, "-m", "skdpsurv", "fit"]
            options = [*OPTIONS.split(), "--out"]
            regression = [*fit, "survival", str(data), "--schema", str(schema), *options]
            commands = {
                "skdpsurv fit survival": regression,
                "skdpsurv fit survival --dask": [*regression[:-1], "--dask", "--out"],
                "lifelines, Cox regression": [sys.executable, "-c", COX, str(data)],
                "skdpsurv fit km": [*fit, "km", str(data), *options],
                "lifelines, Kaplan-Meier": [sys.executable, "-c", KAPLAN_MEIER, str(data)],
            }
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
            # In turn, so that a machine that slows down slows all.
            for k in range(ROUNDS):
                for what, command in commands.items():
                    found[what].append(measured([*command, str(folder / f"{n}-{k}-{what}")]))
            medians = {what: np.median(each, axis=0) for what, each in found.items()}
            for what, (seconds, memory) in medians.items():
                rival = "Cox regression" if "survival" in what else "Kaplan-Meier"
                against = medians[f"lifelines, {rival}"] if "skdpsurv" in what else None
                quotient = ["", ""]
                if against is not None:
                    ratios = against / (seconds, memory)
                    quotient = [f"{ratio:.2f}" for ratio in ratios]
                cells = (f"{n:,}", what, f"{seconds:.1f} s", quotient[0])
                rows.append((*cells, f"{memory:.0f} MB", quotient[1]))
    table(
        "command_line",
        ("records", "program", "time", "lifelines' / its", "memory", "lifelines' / its"),
        rows,
        note=f"Median of {ROUNDS} runs, whole processes: imports, reading, fitting, writing.",
    )


if __name__ == "__main__":
    run(main)
