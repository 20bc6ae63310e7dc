"""What an experiment is, and how it runs: cases times repetitions make the rows of a CSV.

An experiment states its cases, measures one repetition of one, and reports: it turns all rows into
tables, figures and verdicts. Rows are written as they come, so a run that is cut goes on where it
was. Reports read rows alone, so pages can be made anew without measuring; of a run that is not
complete they say so.
"""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
import time
import tomllib
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from benchmarks.pages import Pages

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = Path(__file__).resolve().parent / "manifest.toml"
RESULTS = Path(__file__).resolve().parent / "results"
#: Where quick runs write.
OUTPUT = Path(__file__).resolve().parent / "output"
#: What a line that says what was skipped starts with.
SKIPPED = "skipped: "
#: Packages that only some cases need.
OPTIONAL = ("matplotlib", "statsmodels", "SurvSet", "glum", "pydts", "dask", "distributed")

Case = dict[str, Any]
Row = dict[str, Any]


class Missing(Exception):  # noqa: N818  a reason to skip, not to fail
    """Data, a package or an environment that is not there."""


@dataclass(frozen=True)
class Setting:
    """How this run is done.

    Parameters
    ----------
    quick : bool
        Whether it is only to show that the experiment runs.
    folder : Path or None
        Where data sets are that no package brings.
    """

    quick: bool = False
    folder: Path | None = None

    def of(self, full: Any, quick: Any) -> Any:
        """Return the first, or in a quick run the second."""
        return quick if self.quick else full

    def file(self, name: str) -> Path:
        """Return where a data file is, if it is there."""
        if self.folder is None:
            raise Missing(f"needs --data-dir, with {name}")
        if not (self.folder / name).exists():
            raise Missing(f"{name} is not in --data-dir")
        return self.folder / name


@dataclass(frozen=True)
class Experiment:
    """Cases, one measurement of a case, and the report of all.

    Parameters
    ----------
    cases : callable
        ``cases(setting)`` yields mappings from column to text or number, which tell cases apart.
    measure : callable
        ``measure(setting, case, repetition)`` returns a row of numbers, or several that have a
        text column each to tell them apart. It depends on its arguments alone.
    report : callable
        ``report(rows, pages)``, with all rows as a frame.
    repetitions : int or callable
        Repetitions of a case, ``repetitions(case)`` if they differ.
    quick : int
        Those of a quick run.
    timed : bool
        Whether it measures time or memory: one case at a time, in one process.
    """

    cases: Callable[[Setting], Iterable[Case]]
    measure: Callable[[Setting, Case, int], Row | list[Row]]
    report: Callable[[pd.DataFrame, Pages], None]
    repetitions: int | Callable[[Case], int] = 1
    quick: int = 1
    timed: bool = False

    def tasks(self, setting: Setting) -> list[tuple[Case, int]]:
        """Return what is to be measured, all cases once before any twice."""
        found = []
        for case in self.cases(setting):
            full = self.repetitions if isinstance(self.repetitions, int) else self.repetitions(case)
            found += [(case, repetition) for repetition in range(setting.of(full, self.quick))]
        return sorted(found, key=lambda task: task[1])


@dataclass(frozen=True)
class Entry:
    """An experiment's line of the manifest."""

    name: str
    experiment: str
    claim: str
    source: str
    data: tuple[str, ...]
    minutes: float

    def load(self) -> Experiment:
        """Import the experiment."""
        module, _, name = self.experiment.partition(":")
        return getattr(importlib.import_module(f"benchmarks.{module}"), name)  # type: ignore[no-any-return]


def manifest() -> dict[str, Entry]:
    """Return all experiments, in the order of the manifest."""
    with MANIFEST.open("rb") as file:
        content = tomllib.load(file)
    return {
        name: Entry(name, **line | {"data": tuple(line["data"])}) for name, line in content.items()
    }


def seed(*key: object) -> int:
    """Return a seed of this key's own: no two fits share their noise."""
    return zlib.crc32(repr(key).encode())


def machine() -> str:
    """Say what was run on, without naming the computer."""
    import os

    import numpy as np
    import sklearn

    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}; {os.cpu_count()} cores, {platform.machine()}"
    )


def one(measure: Callable[..., Row | list[Row]], setting: Setting, case: Case, r: int) -> list[Row]:
    """Measure once; return full rows, or the reason for none."""
    with warnings.catch_warnings():
        # Seeds make runs repeatable; data are public, and nothing is released.
        warnings.simplefilter("ignore")
        try:
            found = measure(setting, case, r)
        except Missing as error:
            return [{"skipped": str(error)}]
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            if package not in OPTIONAL:
                raise
            return [{"skipped": f"{package} is not installed"}]
    rows = found if isinstance(found, list) else [found]
    return [{**case, "repetition": r, **row} for row in rows]


@dataclass
class Results:
    """The rows of an experiment, in a CSV whose first line says how they were made.

    ``left`` there is how many measurements a run that was cut has not made.
    """

    path: Path
    head: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = self._time()
        if self.seen:
            with self.path.open() as file:
                self.head = json.loads(file.readline().removeprefix("# "))
            self.rows = self.frame.to_dict("records")  # type: ignore[assignment]
        else:
            self.head = {"machine": machine(), "date": date.today().isoformat(), "minutes": 0.0}

    @property
    def frame(self) -> pd.DataFrame:
        """Return the rows of the file."""
        return pd.read_csv(self.path, skiprows=1, keep_default_na=False, na_values=["nan"])

    def done(self, keys: Sequence[str]) -> set[tuple[str, ...]]:
        """Return which cases and repetitions there are."""
        return {self.key(row, row["repetition"], keys) for row in self.rows}

    @staticmethod
    def key(case: Mapping[str, Any], repetition: int, keys: Sequence[str]) -> tuple[str, ...]:
        """Return what tells a measurement apart, as it reads in the file."""
        return (*(_text(case.get(key, "")) for key in keys), str(repetition))

    def _time(self) -> int:
        """Return when the file was written, 0 if there is none."""
        return self.path.stat().st_mtime_ns if self.path.exists() else 0

    def save(self, keys: Sequence[str], minutes: float, left: int) -> None:
        """Write all rows by case and repetition; say where and when the last were added."""
        self.rows.sort(key=lambda row: (*(_text(row.get(k, "")) for k in keys), row["repetition"]))
        first, today = self.head["date"].partition(" ")[0], date.today().isoformat()
        if machine() not in self.head["machine"]:
            self.head["machine"] += f"; then {machine()}"
        self.head["date"] = first if first == today else f"{first} to {today}"
        self.head |= {"minutes": round(minutes, 1), "left": left}
        self.write()

    def write(self) -> None:
        """Write all rows, unless another run has written since."""
        if self._time() != self.seen:
            raise RuntimeError(f"another run has changed {self.path.name}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        with part.open("w", newline="") as file:
            file.write(f"# {json.dumps(self.head)}\n")
            pd.DataFrame(self.rows).to_csv(
                file, index=False, float_format="%.4g", lineterminator="\n", na_rep="nan"
            )
        part.replace(self.path)
        self.seen = self._time()


def _text(value: Any) -> str:
    """Return a value as text, which is the same however a CSV writes and reads it."""
    if isinstance(value, bool):
        return str(value)
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)


class Skips:
    """Reasons, each said once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reasons: list[str] = []

    def add(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)
            print(f"{SKIPPED}{self.name}: {reason}", flush=True)


def measure_all(
    entry: Entry, setting: Setting, jobs: int, until: float, fresh: bool = False
) -> bool:
    """Measure what is not measured yet; return whether all is there.

    ``until`` is a time of ``time.monotonic``, after which no measurement begins.
    """
    experiment = entry.load()
    path = (OUTPUT / "results" if setting.quick else RESULTS) / f"{entry.name}.csv"
    if fresh and time.monotonic() < until:
        path.unlink(missing_ok=True)
    results, skips = Results(path), Skips(entry.name)
    tasks = experiment.tasks(setting)
    keys = sorted({key for case, _ in tasks for key in case})
    done = results.done(keys)
    todo = [task for task in tasks if results.key(*task, keys) not in done]
    before = results.head["minutes"]
    start = last = time.monotonic()

    def save() -> None:
        minutes = before + (time.monotonic() - start) / 60.0
        results.save(keys, minutes, len(todo) - measured)

    calls = _until(until, (delayed(one)(experiment.measure, setting, *task) for task in todo))
    workers = Parallel(
        n_jobs=1 if experiment.timed else jobs,
        return_as="generator_unordered",
        pre_dispatch="n_jobs" if experiment.timed else "2*n_jobs",
    )
    measured = added = 0
    try:
        for rows in workers(calls):
            measured += 1
            if "skipped" in rows[0]:
                skips.add(rows[0]["skipped"])
            else:
                results.rows += rows
                added += 1
            if time.monotonic() - last > 20.0 and added:
                last = time.monotonic()
                save()
                print(f"{entry.name}: {measured} of {len(todo)}", flush=True)
    finally:
        if added:
            save()
    return measured == len(todo) and not skips.reasons


def _until(until: float, calls: Iterator[Any]) -> Iterator[Any]:
    for call in calls:
        if time.monotonic() > until:
            return
        yield call


def report(entry: Entry, pages: Pages, folder: Path = RESULTS) -> bool:
    """Make the tables and figures of an experiment from its rows, if there are enough."""
    path = folder / f"{entry.name}.csv"
    if not path.exists():
        return False
    results = Results(path)
    pages.begin(entry, results.head)
    try:
        entry.load().report(results.frame, pages)
    except Exception:
        if not results.head.get("left"):
            raise
        pages.abandon()
        print(f"{entry.name}: too few rows yet for a report", flush=True)
        return False
    return True


def in_new_process(module: str, *args: str) -> str:
    """Run ``worker(*args)`` of a module in a process of its own, for its peak memory."""
    code = f"import sys; from benchmarks.{module} import worker; worker(*sys.argv[1:])"
    command = [sys.executable, "-W", "ignore", "-c", code, *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
