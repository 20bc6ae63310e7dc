"""skdpsurv ledger: what was spent on a data set, and how much may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skdpsurv.cli.failures import guarded
from skdpsurv.cli.options import AsJson, NewFile
from skdpsurv.cli.printing import Printed, rich_table, show
from skdpsurv.cli.saving import save
from skdpsurv.cli.spending import ledger_line, ledger_state, opened

__all__ = ["app"]

app = typer.Typer(help="Look at a ledger, make one, or export it.", no_args_is_help=True)

LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="SQLite file of the ledger.")]
DataSet = Annotated[str, typer.Option(help="Name of the data set whose sums are shown.")]


@app.command(name="show")
@guarded
def show_ledger(ledger: LedgerFile, dataset: DataSet = "default", as_json: AsJson = False) -> None:
    """Print the entries of a ledger, and what is left of its budget."""
    accountant = opened(ledger).for_dataset(dataset)
    entries = accountant.entries()
    content = {"ledger": ledger_state(accountant), "entries": entries.to_dict("records")}
    # What was done is in the export: a terminal is too narrow for it.
    table = rich_table(entries.drop(columns="mechanism"))
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
def export(ledger: LedgerFile, out: NewFile, as_json: AsJson = False) -> None:
    """Write the entries of a ledger to a CSV file."""
    entries = opened(ledger).entries()
    save(entries.to_csv(index=False), out)
    show(Printed({"export": str(out.resolve())}, [f"{len(entries)} entries: {out}"]), as_json)
