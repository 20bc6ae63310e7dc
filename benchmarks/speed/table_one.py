"""Time and memory of Table 1 of a million records, beside the package tableone without privacy."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environments import Environment
from benchmarks.harness import ROOT, Case, Experiment, Row, Setting, in_new_process
from benchmarks.pages import Pages
from skdpsurv import DPTableOne, PublicColumns

VERSION = "0.9.6"
SCRIPT = ROOT / "benchmarks" / "rivals" / "tableone_fits.py"
ENVIRONMENT = Environment("tableone", [f"tableone=={VERSION}"], SCRIPT)
SIZES = (10_000, 100_000, 1_000_000)
#: Of each kind: numbers, flags, and categories of four labels.
EACH = 10
OURS, RIVAL = "skdpsurv", "tableone"
LABELS = (0, 1, 2, 3)


def columns(n: int) -> dict[str, np.ndarray]:
    """Return columns by name; the last has the group."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for j in range(EACH):
        found[f"number{j}"] = rng.normal(50.0, 10.0, n)
        found[f"flag{j}"] = rng.random(n) < 0.3
        found[f"label{j}"] = rng.integers(len(LABELS), size=n)
    return found | {"group": rng.integers(2, size=n)}


def described() -> PublicColumns:
    """Return what is public of them."""
    kinds: dict[str, Any] = {}
    for j in range(EACH):
        kinds |= {f"number{j}": (0, 100), f"flag{j}": bool, f"label{j}": {"categories": [*LABELS]}}
    return PublicColumns(kinds | {"group": {"categories": [0, 1]}})


def cases(setting: Setting) -> Iterator[Case]:
    for n in setting.of(SIZES, SIZES[:1]):
        for name in (OURS, RIVAL):
            yield {"records": n, "package": name}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the seconds and the added memory of a table with its text, in a new process."""
    n = int(case["records"])
    if case["package"] == OURS:
        return dict(json.loads(in_new_process("speed.table_one", str(n))))
    given = columns(n)
    labels = [name for name in given if not name.startswith("number") and name != "group"]
    numbers = [name for name in given if name.startswith("number")]
    options = {"labels": labels, "by": "group", "nonnormal": numbers[::2], "more": {}}
    return dict(ENVIRONMENT.run(setting, "table", given, **options))


def worker(records: str) -> None:
    """Print time and memory of a private table."""
    sys.path.insert(0, str(SCRIPT.parent))
    from tableone_fits import measured  # type: ignore[import-not-found, unused-ignore]

    frame = pd.DataFrame(columns(int(records)))

    def make(rows: pd.DataFrame) -> Any:
        table = DPTableOne(1.0, columns=described(), by="group").fit(rows)
        return table.table_, table.to_markdown(nonnormal=[f"number{j}" for j in range(0, EACH, 2)])

    make(frame.head(1000))
    print(json.dumps(measured(lambda: make(frame))))


def report(rows: pd.DataFrame, pages: Pages) -> None:
    median = rows.groupby(["package", "records"])[["seconds", "MiB"]].median()
    table = []
    for n in sorted(set(rows.records)):
        cells = [median.loc[(name, n)] for name in (OURS, RIVAL) if (name, n) in median.index]
        shown = [f"{one.seconds:.2f} s, {one.MiB:.0f} MiB" for one in cells]
        table.append((f"{n:,}", *shown, *[""] * (2 - len(shown))))
    largest = int(rows.records.max())
    ours = median.loc[(OURS, largest)]
    said = f"{largest:,} records take {ours.seconds:.1f} s and {ours.MiB:,.0f} MiB"
    if (RIVAL, largest) in median.index:
        theirs = median.loc[(RIVAL, largest)]
        said += f"; tableone takes {theirs.seconds:.1f} s and {theirs.MiB:,.0f} MiB"
    pages.table(
        "table_one_speed",
        ("records", OURS, RIVAL),
        table,
        f"{said}.",
        f"Processor time of one thread and memory on top of the data, median of "
        f"{rows.repetition.max() + 1} new processes. {3 * EACH} columns, a third each numbers, "
        f"flags and categories of {len(LABELS)} labels, by a group of two; with its text. tableone "
        f"{VERSION}, with standardised differences, without privacy and p-values.",
    )


SPEED = Experiment(cases, measure, report, repetitions=3, timed=True)
