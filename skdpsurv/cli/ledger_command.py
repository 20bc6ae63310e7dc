"""Opens and describes the ledger that a command charges; the commands of skdpsurv ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.options import NONE, Spending, command
from skdpsurv.cli.printing import rich_table, save, show
from skdpsurv.cli.releases import load_release, read_appetite

if TYPE_CHECKING:
    from skdpsurv.dp.accountant import PrivacyAccountant

app = typer.Typer(help="Look at a ledger, make one, or export it.", no_args_is_help=True)


def opened(place: str | None, *dataset: str, **settings: Any) -> PrivacyAccountant:
    """Open a ledger whose errors end a command: its class takes long to import."""
    from skdpsurv.cli.subclasses import CommandLedger

    return CommandLedger(place, *dataset, **settings)


def open_ledger(spending: Spending) -> PrivacyAccountant | None:
    """Return the ledger that a command charges, or None without ``--ledger``.

    A dry run creates no ledger: one in memory takes the place of a missing file. It reads records
    and is not charged, which a ledger that charges refusals does not allow.
    """
    place, budget = spending.ledger, spending.budget
    settings: dict[str, Any] = {"purpose": spending.purpose, "who": spending.who}
    if place is None:
        for name, given in {"budget": budget, "appetite": spending.appetite, **settings}.items():
            require(given in (None, ""), f"--{name} needs --ledger, which keeps it.")
        return None
    appetite = read_appetite(spending.appetite)
    if budget is not None:
        require(budget > 0, "--budget must be a positive number.")
        if not spending.dry_run or "://" not in place:
            settings["epsilon"] = budget
            place = None if spending.dry_run and not os.path.lexists(place) else place
    ledger = opened(place, spending.dataset, **settings)
    message = "--dry-run reads records: it is for ledgers that do not charge refusals."
    require(not (spending.dry_run and ledger.charge_refusals), message)
    return ledger if appetite is None else ledger.within(appetite)


def ledger_state(accountant: PrivacyAccountant | None) -> dict[str, Any] | None:
    """Return the sums and the budget of a ledger for JSON; None without a ledger."""
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
    """Return the sums and the budget of a ledger in a line."""
    if accountant is None:
        return "no ledger: nothing adds up the epsilons of several fits to the same people"
    from skdpsurv.report.text import exact

    delta, spent_delta = "", accountant.spent_delta()
    if accountant.delta or spent_delta:
        limit = exact(accountant.delta) if accountant.delta else "no limit"
        delta = f"; delta {exact(spent_delta)} of {limit}"
    own = [one for one in accountant._ledger.entries() if one.dataset == accountant.dataset]
    relations = sorted({one.neighbours for one in own if one.neighbours})
    several = f"; it holds for whoever are neighbours by all of {', '.join(relations)}"
    return (
        f"spent {exact(accountant.spent())} of {exact(accountant.epsilon)}, "
        f"{exact(accountant.remaining())} left{delta} (data set {accountant.dataset})"
        f"{several if len(relations) > 1 else ''}"
    )


@app.command(name="show")
@command
def show_ledger(ledger: str, /, *, dataset: str | None = None) -> None:
    """Print the entries of a ledger and its remaining budget.

    Parameters
    ----------
    dataset : str or None
        Data set whose sums are shown; else those of each data set are, and the first one's in JSON.
    """
    accountant = opened(ledger, dataset or "default")
    entries = accountant.entries()
    named = [] if dataset else dict.fromkeys(filter(None, entries["dataset"]))
    accountants = [accountant.for_dataset(one) for one in named] or [accountant]
    content = {"ledger": ledger_state(accountants[0]), "entries": entries.to_dict("records")}
    # A terminal is too narrow for the mechanisms, which are in the export.
    table = rich_table(entries.drop(columns=["mechanism", "neighbours", "guarantee"]))
    show(content, [table, *map(ledger_line, accountants)])


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
) -> None:
    """Create a ledger, or open an existing one that was created with the same settings.

    Parameters
    ----------
    budget : float
        Epsilon of each data set, fixed for ever.
    delta : float, default=0.0
        Budget of each data set for delta.
    rehearsal : bool, default=False
        Add up fits without a guarantee (with a seed) separately.
    charge_refusals : bool, default=False
        Charge a fit that is refused because of its records.
    composition : str, default="basic"
        basic: epsilons and deltas add up. renyi: Renyi divergences add up, for many fits with a
        delta.
    """
    settings: dict[str, Any] = {"rehearsal": rehearsal, "charge_refusals": charge_refusals}
    settings |= {"epsilon": budget, "delta": delta, "composition": composition}
    accountant = opened(ledger, **settings)
    line = f"{ledger}: a budget of epsilon = {accountant.epsilon:g} for each data set"
    show({"ledger": ledger_state(accountant)}, [line])


@app.command()
@command
def copy(ledger: str, to: str, /) -> None:
    """Move a ledger, for example from a file to a server. The old one is closed.

    Parameters
    ----------
    to : str
        The new place: a file or a database, too.
    """
    from skdpsurv.dp.ledger_copy import copy_ledger

    with refusals("ledger"):
        copy_ledger(ledger, to)
    moved = opened(to)
    n_entries = len(moved.entries())
    content = {"ledger": ledger_state(moved), "entries": n_entries}
    show(content, [f"{n_entries} entries: {to}. {ledger} is closed."])


@app.command()
@command
def verify(ledger: str, /, *, release: list[Path] = NONE) -> None:
    """Check that no entry of a ledger was changed or removed since releases were charged to it.

    Parameters
    ----------
    release : list of Path
        A release that was charged to it. May be given several times.
    """
    accountant = opened(ledger)
    paths = dict(enumerate(map(str, release)))
    releases = [load_release(path) for path in release]
    with refusals("ledger", after=f" Releases are counted from 0: {paths}." if paths else ""):
        accountant.verify(*releases)
    n_entries = len(accountant.entries())
    line = f"{ledger}: {n_entries} entries fit their hashes, and {len(releases)} releases fit them"
    content = {"entries": n_entries, "releases": list(paths.values())}
    show({"ledger": ledger_state(accountant), "verified": content}, [line])


@app.command()
@command
def export(ledger: str, /, *, out: Path) -> None:
    """Write the entries of a ledger to a CSV file."""
    from skdpsurv.report.numbers import csv_text

    entries = opened(ledger).entries()
    save(csv_text(entries), out)
    show({"export": str(out.resolve())}, [f"{len(entries)} entries: {out}"])
