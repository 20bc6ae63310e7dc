"""What was spent on a data set, and how much may be: of each command, and skdpsurv ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.options import NONE, Spending, command
from skdpsurv.cli.output import csv_text, rich_table, save, show
from skdpsurv.cli.releases import load_release
from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.budget import dataset_name
from skdpsurv.report.text import exact

app = typer.Typer(help="Look at a ledger, make one, or export it.", no_args_is_help=True)


class CommandLedger(PrivacyAccountant):
    """A ledger whose failures end a command as failures of a ledger do."""

    def __init__(self, place: str | None, dataset: str = "default", **terms: Any) -> None:
        terms["url" if "://" in (place or "") else "path"] = place
        with refusals("ledger", after=" --budget makes a ledger, and is fixed for ever."):
            super().__init__(**terms)
            self._dataset = dataset_name(dataset)

    check = refusals("ledger")(PrivacyAccountant.check)
    charge = refusals("ledger")(PrivacyAccountant.charge)


def open_ledger(spending: Spending) -> PrivacyAccountant | None:
    """Return the accountant that a command charges; None if it is told of none.

    A dry run makes no ledger: in place of a file that is not there it has one in memory.
    """
    place, budget = spending.ledger, spending.budget
    terms: dict[str, Any] = {"purpose": spending.purpose, "who": spending.who}
    if place is None:
        for name, said in {"budget": budget, **terms}.items():
            require(said in (None, ""), f"--{name} needs --ledger, which keeps it.")
        return None
    if budget is not None:
        require(budget > 0, "--budget must be a positive number.")
        terms["epsilon"] = budget
        if spending.dry_run and "://" in place:
            del terms["epsilon"]
        elif spending.dry_run and not os.path.lexists(place):
            place = None
    return CommandLedger(place, spending.dataset, **terms)


def ledger_state(accountant: PrivacyAccountant | None) -> dict[str, Any] | None:
    """Return what a ledger holds, as JSON has it; None without a ledger."""
    if accountant is None:
        return None
    return {
        "path": accountant.path or accountant.url,
        "dataset": accountant.dataset,
        "budget": accountant.epsilon,
        "spent": accountant.spent(),
        "remaining": accountant.remaining(),
        "budget_delta": accountant.delta,
        "spent_delta": accountant.spent_delta(),
        "composition": accountant.composition,
    }


def ledger_line(accountant: PrivacyAccountant | None) -> str:
    """Return what a ledger holds, in a line."""
    if accountant is None:
        return "no ledger: epsilons of several fits to the same people add up, and nobody counts"
    slips, slipped = "", accountant.spent_delta()
    if accountant.delta or slipped:
        limit = exact(accountant.delta) if accountant.delta else "no limit"
        slips = f"; delta {exact(slipped)} of {limit}"
    return (
        f"spent {exact(accountant.spent())} of {exact(accountant.epsilon)}, "
        f"{exact(accountant.remaining())} left{slips} (data set {accountant.dataset})"
    )


@app.command(name="show")
@command
def show_ledger(ledger: str, /, *, dataset: str = "default", as_json: bool = False) -> None:
    """Print the entries of a ledger, and what is left of its budget.

    Parameters
    ----------
    dataset : str, default="default"
        Name of the data set whose sums are shown.
    """
    accountant = CommandLedger(ledger, dataset)
    entries = accountant.entries()
    content = {"ledger": ledger_state(accountant), "entries": entries.to_dict("records")}
    # What was done is in the export: a terminal is too narrow for it.
    table = rich_table(entries.drop(columns=["mechanism", "neighbours", "guarantee"]))
    show(content, [table, ledger_line(accountant)], as_json)


@app.command()
@command
def create(
    ledger: str,
    /,
    *,
    budget: float,
    delta: float = 0.0,
    rehearsal: bool = False,
    charge_refusals: bool = False,
    composition: str = "basic",
    as_json: bool = False,
) -> None:
    """Make a ledger. One that is there already is opened, if it was made with the same terms.

    Parameters
    ----------
    budget : float
        Epsilon of each data set. It is fixed for ever.
    delta : float, default=0.0
        Budget of each data set for delta.
    rehearsal : bool, default=False
        Keep what promises nothing (seeded fits) in a sum of its own.
    charge_refusals : bool, default=False
        Charge fits that are refused for what their records hold.
    composition : str, default="basic"
        basic: epsilons add up, and deltas. renyi: Renyi divergences, up to what epsilon at delta is
        worth; for many fits with a delta.
    """
    kinds: dict[str, Any] = {"rehearsal": rehearsal, "charge_refusals": charge_refusals}
    kinds["composition"] = composition
    accountant = CommandLedger(ledger, epsilon=budget, delta=delta, **kinds)
    line = f"{ledger}: a budget of epsilon = {accountant.epsilon:g} for each data set"
    show({"ledger": ledger_state(accountant)}, [line], as_json)


@app.command()
@command
def copy(ledger: str, to: str, /, *, as_json: bool = False) -> None:
    """Move a ledger, from a file to a server, say. Where it was, it is closed.

    Parameters
    ----------
    to : str
        Where it shall be: such a place, too.
    """
    # Databases take a while to import.
    from skdpsurv.dp.ledger_copy import copy_ledger

    with refusals("ledger"):
        copy_ledger(ledger, to)
    moved = CommandLedger(to)
    n_entries = len(moved.entries())
    content = {"ledger": ledger_state(moved), "entries": n_entries}
    show(content, [f"{n_entries} entries: {to}. {ledger} is closed."], as_json)


@app.command()
@command
def verify(ledger: str, /, *, release: list[Path] = NONE, as_json: bool = False) -> None:
    """Check that a ledger holds what it held when releases were charged to it.

    Parameters
    ----------
    release : list of Path
        A release that was charged to it. May be given several times.
    """
    accountant = CommandLedger(ledger)
    paths = dict(enumerate(map(str, release)))
    read = [load_release(path) for path in release]
    with refusals("ledger", after=f" Releases are counted from 0: {paths}." if paths else ""):
        accountant.verify(*read)
    n_entries = len(accountant.entries())
    line = f"{ledger}: {n_entries} entries fit their hashes, and {len(read)} releases fit them"
    content = {"entries": n_entries, "releases": list(paths.values())}
    show({"ledger": ledger_state(accountant), "verified": content}, [line], as_json)


@app.command()
@command
def export(ledger: str, /, *, out: Path, as_json: bool = False) -> None:
    """Write the entries of a ledger to a CSV file."""
    entries = CommandLedger(ledger).entries()
    save(csv_text(entries), out)
    show({"export": str(out.resolve())}, [f"{len(entries)} entries: {out}"], as_json)
