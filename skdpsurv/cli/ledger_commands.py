"""skdpsurv ledger: what was spent on a data set, and how much may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.options import AsJson, NewFile
from skdpsurv.cli.printing import Printed, rich_table, show
from skdpsurv.cli.releases import load_release
from skdpsurv.cli.saving import save
from skdpsurv.cli.spending import ledger_line, ledger_state, opened
from skdpsurv.cli.spreadsheet import csv_text

__all__ = ["app"]

app = typer.Typer(help="Look at a ledger, make one, or export it.", no_args_is_help=True)

LedgerFile = Annotated[
    str,
    typer.Argument(metavar="LEDGER", help="An SQLite file, or postgresql://user@host/database."),
]
DataSet = Annotated[str, typer.Option(help="Name of the data set whose sums are shown.")]


@app.command(name="show")
@guarded
def show_ledger(ledger: LedgerFile, dataset: DataSet = "default", as_json: AsJson = False) -> None:
    """Print the entries of a ledger, and what is left of its budget."""
    accountant = opened(ledger).for_dataset(dataset)
    entries = accountant.entries()
    content = {"ledger": ledger_state(accountant), "entries": entries.to_dict("records")}
    # What was done is in the export: a terminal is too narrow for it.
    table = rich_table(entries.drop(columns=["mechanism", "neighbours", "guarantee"]))
    show(Printed(content, [table, ledger_line(accountant)]), as_json)


@app.command()
@guarded
def create(
    ledger: LedgerFile,
    budget: Annotated[float, typer.Option(help="Epsilon of each data set. It is fixed for ever.")],
    delta: Annotated[float, typer.Option(help="Budget of each data set for delta.")] = 0.0,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearsal", help="Keep what promises nothing (seeded fits) in a sum of its own."
        ),
    ] = False,
    charge_refusals: Annotated[
        bool,
        typer.Option(
            "--charge-refusals", help="Charge fits that are refused for what their records hold."
        ),
    ] = False,
    composition: Annotated[
        str,
        typer.Option(
            help="basic: epsilons add up, and deltas. renyi: Renyi divergences, up to what epsilon "
            "at delta is worth; for many fits with a delta."
        ),
    ] = "basic",
    as_json: AsJson = False,
) -> None:
    """Make a ledger. One that is there already is opened, if it was made with the same terms."""
    accountant = opened(
        ledger,
        epsilon=budget,
        delta=delta,
        rehearsal=rehearsal,
        charge_refusals=charge_refusals,
        composition=composition,
    )
    line = f"{ledger}: a budget of epsilon = {accountant.epsilon:g} for each data set"
    show(Printed({"ledger": ledger_state(accountant)}, [line]), as_json)


@app.command()
@guarded
def copy(
    ledger: LedgerFile,
    to: Annotated[str, typer.Argument(metavar="TO", help="Where it shall be: such a place, too.")],
    as_json: AsJson = False,
) -> None:
    """Move a ledger, from a file to a server, say. Where it was, it is closed."""
    from skdpsurv.privacy.ledger_copy import copy_ledger

    try:
        moved = copy_ledger(ledger, to)
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        raise CommandError("ledger", str(error)) from error
    n_entries = len(moved.entries())
    content = {"ledger": ledger_state(opened(to)), "entries": n_entries}
    show(Printed(content, [f"{n_entries} entries: {to}. {ledger} is closed."]), as_json)


@app.command()
@guarded
def verify(
    ledger: LedgerFile,
    release: Annotated[
        list[Path],
        typer.Option(help="A release that was charged to it. May be given several times."),
    ] = [],  # noqa: B006, typer copies it
    as_json: AsJson = False,
) -> None:
    """Check that a ledger holds what it held when releases were charged to it."""
    accountant = opened(ledger)
    read = [load_release(path) for path in release]
    try:
        accountant.verify(*read)
    except ValueError as error:
        message = str(error)
        for number, path in enumerate(release):
            if message.startswith(f"release {number} "):
                message = f"{path}: {message}"
        raise CommandError("ledger", message) from error
    n_entries = len(accountant.entries())
    line = f"{ledger}: {n_entries} entries fit their hashes, and {len(read)} releases fit them"
    content = {"entries": n_entries, "releases": [str(path) for path in release]}
    show(Printed({"ledger": ledger_state(accountant), "verified": content}, [line]), as_json)


@app.command()
@guarded
def export(ledger: LedgerFile, out: NewFile, as_json: AsJson = False) -> None:
    """Write the entries of a ledger to a CSV file."""
    entries = opened(ledger).entries()
    save(csv_text(entries), out)
    show(Printed({"export": str(out.resolve())}, [f"{len(entries)} entries: {out}"]), as_json)
