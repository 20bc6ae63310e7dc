"""skdpsurv study: one protocol, one charge, one report."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdpsurv.cli.failures import AS_JSON, CommandError, refusals, require
from skdpsurv.cli.ledger_command import ledger_line, ledger_state, opened
from skdpsurv.cli.options import NONE, FileFormat, command, parse
from skdpsurv.cli.printing import guarantee_line, reserve, rich_table, save, show, working
from skdpsurv.cli.record_files import MADE_UP, RecordFile, read_table
from skdpsurv.cli.releases import read_appetite, read_protocol, write_acro
from skdpsurv.cli.survival_columns import other_columns, table_of

if TYPE_CHECKING:
    from skdpsurv.dp.accountant import PrivacyAccountant
    from skdpsurv.dp.guarantee import PrivacyGuarantee
    from skdpsurv.study.protocol import Protocol

app = typer.Typer(help="One protocol, one charge, one report.", no_args_is_help=True)


@app.command()
@command
def plan(
    protocol: Path,
    /,
    *,
    form: FileFormat,
    n_people: int | None = None,
    data: Path | None = None,
    out: Path | None = None,
    event_rate: float = 0.3,
    concordance: float = 0.7,
    censoring: float = 0.5,
    baseline: str = "flat",
    shares: list[str] = NONE,
    repeats: int = 5,
) -> None:
    """Print what a study costs and what it will get, with advice. Nothing is spent.

    Parameters
    ----------
    protocol : Path
        TOML file: docs/user_guide/study has one.
    n_people : int or None
        Number of people, which is public. None: that of the protocol.
    data : Path or None
        In place of --n-people: CSV or Parquet file, in which people are counted. No other value of
        it is used. Not for ledgers that charge refusals: the number is an answer about records.
    out : Path or None
        Write the protocol as a page to sign, in HTML, with its hash. It must not exist yet.
    event_rate : float, default=0.3
        Guess: share of people with an event before the horizon.
    concordance : float, default=0.7
        Guess: C-index of the best model.
    censoring : float, default=0.5
        Guess: share of the others who are censored before the horizon.
    baseline : str, default="flat"
        Guess: course of the hazard, front-loaded, flat or rising.
    shares : list of str
        Guess: how people divide into the labels of a column, such as unequal arms, as arm=2,1 in
        the order of its labels; or events into event_is. May be given several times.
    repeats : int, default=5
        Number of studies to simulate; 0 for no forecast and no advice.
    """
    from skdpsurv.study.study_forecast import Scenario
    from skdpsurv.study.study_plan import StudyPlan

    if out is not None:
        reserve(out)
    stated = read_protocol(protocol)
    require(n_people is None or data is None, "give either --n-people or --data.")
    n_people = stated.n_people if n_people is None else n_people
    if data is not None:
        n_people = _count(stated, data, form)
    require(n_people is not None, "give --n-people or --data, or n_people in the protocol.")
    with refusals("parameter"):
        planned = StudyPlan.of(stated, n_people)  # type: ignore[arg-type]
        guarantee = planned.guarantee()
    lines: list[Any] = [f"{stated.title}: {guarantee_line(guarantee)}", rich_table(planned.table)]
    content: dict[str, Any] = {"sha256": stated.sha256, "guarantee": guarantee.to_dict()}
    content["analyses"] = planned.table.reset_index().to_dict("records")
    scenario = None
    if repeats:
        guessed = (event_rate, censoring, baseline, concordance, repeats)
        with working("Simulating"), refusals("parameter"):
            parted = (text.rpartition("=") for text in shares)
            named = {name: list(map(parse, numbers.split(","))) for name, _, numbers in parted}
            scenario = Scenario(*guessed, shares=named)
            advice, forecast = planned.advice(scenario), planned.forecast(scenario)
        lines += [rich_table(forecast.drop(columns="times").round(3)), scenario.words, *advice]
        content["forecast"] = forecast.reset_index().replace({math.nan: None}).to_dict("records")
        content |= {"advice": advice, "best_shares": planned.best_shares(scenario)}
    lines += [*_room(stated, guarantee), f"Protocol: SHA-256 {stated.sha256}"]
    if out is not None:
        save(planned.page(scenario), out)
        lines.append(f"To sign: {out}")
    lines.append("Nothing was spent.")
    show(content, lines, out)


@app.command()
@command
def run(protocol: Path, data: Path, /, *, form: FileFormat, hash: str, out: Path) -> None:
    """Run a study: charge the ledger once, and write releases and a report. Or go on with it.

    If a run was ended, the same command goes on where it stopped, under the same charge. If all was
    released, DATA is not opened.

    Parameters
    ----------
    protocol : Path
        TOML file, as in plan.
    data : Path
        CSV or Parquet file. Private.
    hash : str
        Hash of the protocol that was signed, as plan prints it.
    out : Path
        New folder, or that of the study. Its folder "private" must never be published.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    from skdpsurv.study.folder import Folder
    from skdpsurv.study.journal import Journal
    from skdpsurv.study.study import Study

    stated = read_protocol(protocol)
    message = f"--hash must be that of the signed protocol; {protocol} has {stated.sha256}."
    require(hash.lower() == stated.sha256, message, "description")
    with refusals("data"):
        journal = Journal(Folder(out).journal)
        was_whole = None not in (journal.released(one.name) for one in stated.analyses)
    table: Any = None if was_whole else table_of_study(stated, data, form)
    ledger = _ledger(stated)
    order = [one.name for one in stated.in_order]
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    terminal = Console(stderr=True, quiet=AS_JSON.get())
    with Progress(*columns, console=terminal, transient=True) as shown:
        task = shown.add_task("Reading", total=len(order))

        def begin() -> Any:
            frame = read_table(table, form)
            shown.update(task, description="Checking all records")
            return frame

        def advance(name: str, found: Any) -> None:
            place = order.index(name) + 1
            following = order[place] if place < len(order) else "Report"
            shown.update(task, completed=place, description=following)

        with refusals("data", private=True):
            report = Study(stated).run(begin, out, show=advance, accountant=ledger)
    lost = [name for name in order if name not in report.found]
    lines = [f"{stated.title}: {guarantee_line(report.spent)}", f"Ledger: {ledger_line(ledger)}"]
    if lost:
        lines.append(f"Lost by a run that was ended, or for want of it: {', '.join(lost)}.")
    if was_whole:
        lines.append("All of it had been released before: nothing was charged or drawn.")
    lines.append(f"Report: {out / 'report.html'}")
    if (private := Folder(out).private).exists():
        lines.append(f"Keep to yourself: {private}")
    content = {"folder": str(out.resolve()), "released": list(report.found), "lost": lost}
    show({**content, "ledger": ledger_state(ledger)}, lines, out)


@app.command()
@command
def check(folder: Path, /, *, ledger: str | None = None) -> None:
    """Check that the releases of a study, its ledger and its protocol belong together.

    A fault ends with exit code 9.

    Parameters
    ----------
    folder : Path
        Folder that run wrote.
    ledger : str or None
        Where the ledger is, if it is not where the protocol says.
    """
    from skdpsurv.study.folder import Folder
    from skdpsurv.study.study import Study

    place = Folder(folder)
    require(place.protocol.is_file(), f"there is no study in {folder}.", "data")
    with refusals("data"):
        stated = place.read_protocol()
        faults = Study(stated).check(folder, _ledger(stated, ledger))
    again = " The same run writes the report anew." * any("report that" in one for one in faults)
    require(not faults, f"{'; '.join(faults)}.{again}", "refuted")
    line = f"{folder}: releases, ledger and protocol belong together. SHA-256 {stated.sha256}"
    show({"folder": str(folder.resolve()), "sha256": stated.sha256}, [line])


@app.command()
@command
def acro(folder: Path, /, *, out: Path | None = None, appetite: Path | None = None) -> None:
    """Write what output checkers of ACRO read about a study, to a new folder.

    Parameters
    ----------
    folder : Path
        Folder that run wrote.
    out : Path or None
        New folder; by default acro, in that of the study.
    appetite : Path or None
        TOML file of the risk appetite of the environment; by default that of the protocol.
    """
    from skdpsurv.study.folder import Folder
    from skdpsurv.study.study import Study

    place, new = Folder(folder), folder / "acro" if out is None else out
    require(place.protocol.is_file(), f"there is no study in {folder}.", "data")
    reserve(new)
    with refusals("data"):
        stated = place.read_protocol()
        outputs, when = Study(stated).outputs(folder)
    write_acro(outputs, when, read_appetite(appetite) or stated.appetite, new)
    show({"acro": str(new.resolve())}, [f"For output checkers: {new}"], new)


def _room(protocol: Protocol, guarantee: PrivacyGuarantee) -> list[str]:
    """Say how much of its budget a protocol's ledger has left, and if that is too little."""
    from skdpsurv.dp.budget import BudgetExceededError

    try:
        ledger = _ledger(protocol)
        if ledger is None:
            return []
        ledger.check(guarantee)
    except CommandError:
        return [f"Ledger: {protocol.ledger} is not there, or cannot be asked now."]
    except BudgetExceededError as error:
        return [f"Ledger: the study would be refused. {error}"]
    return [f"Ledger: {ledger_line(ledger)}"]


def _ledger(protocol: Protocol, moved: str | None = None) -> PrivacyAccountant | None:
    if (place := moved or protocol.ledger) is None:
        return None
    from skdpsurv.study.charges import ledger_of

    hint = f" skdpsurv ledger create {place} --budget {protocol.epsilon:g} makes it."
    return ledger_of(protocol, opened(place, hint=hint), moved=moved is not None)


def table_of_study(protocol: Protocol, data: Path, form: FileFormat) -> RecordFile:
    """Return the part of a file that a study reads; columns that it does not name are left out."""
    require(not form.dask, "--dask is for fit: a study reads rows in memory.")
    message = "--missing-value is for fit: for a study it stands in its schema, and is signed."
    require(not form.missing_value, message)
    columns = protocol.columns
    labels = (*protocol.event_is, *protocol.censored_is)
    time, entry, dates = protocol.time, protocol.entry, list[str]()
    if protocol.dates is not None:
        time, entry, dates = None, None, protocol.dates.columns
    others = other_columns(time, protocol.event, protocol.person, labels, entry, dates)
    table = table_of(data, form, columns._names(), columns, others, (), None, protocol)
    message = f"{data} has made-up people, as its column {MADE_UP} says: rehearse with fit."
    require(not table.made_up, message, "data")
    return table


def _count(protocol: Protocol, data: Path, form: FileFormat) -> int:
    """Return the number of people in a file, from the column that names them alone."""
    from skdpsurv.study.people import People

    place = protocol.ledger
    if place is not None and ("://" in place or os.path.lexists(place)):
        message = "--data is for ledgers that do not charge refusals: state --n-people."
        require(not opened(place).charge_refusals, message)
    table = table_of_study(protocol, data, form)
    times = protocol.time if protocol.dates is None else protocol.dates.exit
    named = (str(times) if protocol.person is None else protocol.person,)
    frame = read_table(replace(table, columns=named), form)
    with refusals("data", private=True):
        return int(People.of(protocol, frame).held_out.size)
