"""Open a ledger, and move it: from a file to a server, say.

One budget must not be in two places. A move is three transactions: the source is closed, and says
where to; the destination is made; the source notes that it is there. If the destination was
certainly not made, the source is opened again. If nobody knows, it stays closed, and may be copied
again to the same place alone.
"""

from __future__ import annotations

import os

from skdpsurv.dp.budget import CLOSED, MOVED, OPENED, Entry
from skdpsurv.dp.checks import instance
from skdpsurv.dp.ledger import entry_of, linked_rows, now, user_name
from skdpsurv.dp.ledger_storage import (
    PostgreSQLServer,
    SQLiteFile,
    Storage,
    UnansweredCommitError,
    storage_at,
)
from skdpsurv.dp.sql_ledger import SQLLedger, write_ledger


def ledger_at(
    path: str | os.PathLike[str] | None, url: str | None, given: dict[str, object]
) -> SQLLedger:
    """Open the ledger at a path or a url, or make it if the settings given have epsilon."""
    if path is not None and url is not None:
        raise ValueError("path and url must not be given together: a ledger is in one place.")
    if url is not None:
        instance(str, "a str or None")("url", url)
        return SQLLedger.open(PostgreSQLServer(url), given)
    name = os.fspath(path) if path is not None else ""
    instance(str, "a str or an os.PathLike of str")("path", name)
    return SQLLedger.open(SQLiteFile(name), given)


def copy_ledger(source: str, destination: str) -> SQLLedger:
    """Copy a ledger to a place that has none, and close the one that was copied.

    The source says where it went, and refuses charges and further copies. If the destination was
    certainly not made, the source stays open. If nobody knows, the source stays closed: copy again
    to the same destination.

    Parameters
    ----------
    source, destination : str
        Path of an SQLite file, or ``postgresql://user@host/database``.

    Returns
    -------
    SQLLedger
        At the destination: the same identity, settings, entries and hashes.

    Raises
    ------
    FileExistsError
        If the destination has a ledger.
    FileNotFoundError
        If the source has none.
    ValueError
        If the source is none, was altered, or was moved.
    RuntimeError
        If one of them does not work.
    """
    old, new = storage_at(source), storage_at(destination)
    ledger = SQLLedger.open(old, {}, new.name)
    rows = ledger.rows()
    last = entry_of(rows[-1]).status if rows else ""
    if last == MOVED:
        raise ValueError(f"The ledger at {old.name!r} was moved to {new.name!r}: use it there.")
    there = new.exists()
    if last != CLOSED:
        if there:
            raise FileExistsError(f"There is a ledger at {new.name!r} already: it is not replaced.")
        ledger.charge(_step(CLOSED, new), moved_to=new.name)
        rows = ledger.rows()
    if not there:
        opened = linked_rows(ledger.receipts()[-1], [_step(OPENED, new)])
        try:
            new.make_if_missing(
                lambda made: write_ledger(made, ledger.identity, ledger.settings, rows + opened)
            )
        except UnansweredCommitError as error:
            raise RuntimeError(
                f"{error} The ledger at {old.name!r} stays closed: copy it again to the same place."
            ) from error
        except Exception:
            # A server has not committed; a file may have its name before its lock is found removed.
            if last != CLOSED and not (isinstance(new, SQLiteFile) and new.exists()):
                ledger.charge(_step(OPENED, old), moved_to="")
            raise
    moved = SQLLedger.open(new, {})
    found = moved.identity, moved.settings, moved.rows()[: len(rows)]
    if found != (ledger.identity, ledger.settings, rows):
        if last != CLOSED:
            ledger.charge(_step(OPENED, old), moved_to="")
        raise FileExistsError(f"There is another ledger at {new.name!r}: it is not replaced.")
    ledger.charge(_step(MOVED, new), moved_to=new.name)
    return moved


def _step(status: str, storage: Storage) -> Entry:
    return Entry(now(), "", storage.name, 0.0, 0.0, status, "", renyi=0.0, who=user_name())
