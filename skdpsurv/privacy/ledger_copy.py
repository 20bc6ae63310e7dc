"""Move a ledger to another place: from a file to a server, or out of an older file.

One budget must not be in two places. A move is three transactions: the source is closed, and says
where to; the destination is made; the source notes that it is there, after which nothing is copied
from it again. If the destination was certainly not made, the source is opened again. If nobody
knows, it stays closed, and the copy may be repeated to the same place alone, which must hold
nothing, or what was copied.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from skdpsurv.privacy.accountant import user_name
from skdpsurv.privacy.budget import CLOSED, MOVED, OPENED, Entry, Terms, seen_name
from skdpsurv.privacy.chain import Receipt, start
from skdpsurv.privacy.ledger_place import Place, UnansweredCommitError
from skdpsurv.privacy.postgresql_server import PostgreSQLServer
from skdpsurv.privacy.sql_ledger import (
    SQLLedger,
    linked_rows,
    moved_away,
    say_where,
    step,
    write_ledger,
)
from skdpsurv.privacy.sqlite_file import SQLiteFile

__all__ = ["copy_ledger"]

#: Of earlier files, which had no chain, and a random serial for each entry; and of those that were
#: closed, which earlier versions of this package do not read.
_OLDER, _CLOSED_VERSION = (2, 3), 0

Row = tuple[Any, ...]


class _Closed(NamedTuple):
    """What a closed ledger holds, and whether it was closed by an earlier call."""

    identity: str
    terms: Terms
    rows: list[Row]
    again: bool

    @property
    def head(self) -> Receipt:
        if not self.rows:
            return start(self.identity, self.terms)
        return Receipt(self.identity, self.rows[-1][0], self.rows[-1][-1])

    def next_row(self, status: str, place: str) -> list[Row]:
        """Return the row of a step that follows."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        entry = step(when, status, place, user_name())
        return linked_rows(self.head, [uuid.uuid4().hex], [entry])


def copy_ledger(source: str, destination: str) -> SQLLedger:
    """Copy a ledger to a place that has none, and close the one that was copied.

    The source says where it went, and refuses charges and further copies. If the destination fails
    and is certainly not there, the source is as open as before. If it is not known whether it is
    there, the source stays closed: copy again to the same destination.

    Parameters
    ----------
    source, destination : str
        Path of an SQLite file, or ``postgresql://user@host/database``.

    Returns
    -------
    SQLLedger
        At the destination: the same identity, terms, entries and hashes.

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
    old, new = _place(source), _place(destination)
    there = _is_there(new)
    try:
        closed = _close(old, new.name, there=there)
    except UnansweredCommitError as error:
        raise RuntimeError(
            f"The ledger at {old.name!r} may or may not have been closed ({error}): copy it again "
            "to the same place."
        ) from error
    if not there:
        rows = [*closed.rows, *closed.next_row(OPENED, new.name)]
        try:
            new.make_if_missing(lambda c: write_ledger(c, closed.identity, closed.terms, rows))
        except UnansweredCommitError as error:
            raise RuntimeError(
                f"{error} The ledger at {old.name!r} stays closed: copy it again to the same place."
            ) from error
        except Exception:
            if _was_not_made(new):
                _reopen(old, new.name, closed)
            raise
    moved = SQLLedger.open(new, {})
    with new.transaction() as connection:
        found = moved.rows(connection)[: len(closed.rows)]
    if (moved.identity, moved.terms, found) != (closed.identity, closed.terms, closed.rows):
        _reopen(old, new.name, closed)
        raise FileExistsError(f"There is another ledger at {new.name!r}: it is not replaced.")
    try:
        _note_move(old, new.name)
    except UnansweredCommitError as error:
        raise RuntimeError(
            f"The ledger is at {new.name!r}, and {old.name!r} may not say so ({error}): copy it "
            "again to the same place."
        ) from error
    return moved


def _place(text: str) -> Place:
    return PostgreSQLServer(text) if "://" in text else SQLiteFile(text)


def _is_there(place: Place) -> bool:
    try:
        place.require()
    except FileNotFoundError:
        return False
    return True


def _was_not_made(place: Place) -> bool:
    """Say whether a place that failed with an answer certainly holds nothing of ours.

    A server has not committed. A file may have been named before its lock was found removed.
    """
    return not (isinstance(place, SQLiteFile) and os.path.lexists(place.path))


def _close(old: Place, destination: str, *, there: bool) -> _Closed:
    with old.transaction(write=True) as connection:
        older = isinstance(old, SQLiteFile) and _is_older(connection, old)
        held = (
            _older(connection, old, destination) if older else _held(connection, old, destination)
        )
        if held.again:
            return held
        if there:
            raise FileExistsError(
                f"There is a ledger at {destination!r} already: it is not replaced."
            )
        if older:
            run = connection.exec_driver_sql
            run("CREATE TABLE moved(destination TEXT NOT NULL, done INTEGER NOT NULL)")
            run("INSERT INTO moved VALUES (?, 0)", (destination,))
            run(f"UPDATE ledger SET schema_version = {_CLOSED_VERSION}")
        else:
            row = held.next_row(CLOSED, destination)
            _append(connection, old, destination, row)
            say_where(connection, destination)
            held = held._replace(rows=held.rows + row)
        old.commit(connection)
    with old.transaction() as connection:  # what acts as it is committed is seen after it
        if not older and _held(connection, old, destination).rows != held.rows:
            raise ValueError(f"The ledger at {old.name!r} does not stay closed: it was altered.")
    return held


def _held(connection: sa.Connection, place: Place, destination: str) -> _Closed:
    """Return what a ledger holds that may be moved to a destination."""
    ledger = SQLLedger.on(connection, place, destination)
    rows = ledger.rows(connection)
    last = Entry._make(rows[-1][2:-1]) if rows else None
    again = last is not None and last.status == CLOSED
    if last is not None and (last.status == MOVED or (again and last.mechanism != destination)):
        raise moved_away(place, last.mechanism)
    return _Closed(ledger.identity, ledger.terms, rows, again)


def _append(connection: sa.Connection, place: Place, destination: str, rows: list[Row]) -> None:
    SQLLedger.on(connection, place, destination).append(connection, rows, None)


def _reopen(old: Place, destination: str, closed: _Closed) -> None:
    """Open a ledger that this call closed, and no call before, whose outcome is not known."""
    if closed.again:
        return
    with old.transaction(write=True) as connection:
        if isinstance(old, SQLiteFile) and _is_older(connection, old):
            version = 3 if ("ledger", "renyi_order") in old.columns(connection) else 2
            connection.exec_driver_sql(f"UPDATE ledger SET schema_version = {version}")
            connection.exec_driver_sql("DROP TABLE moved")
        elif _held(connection, old, destination).rows == closed.rows:
            _append(connection, old, destination, closed.next_row(OPENED, old.name))
            say_where(connection, "")
        old.commit(connection)


def _note_move(old: Place, destination: str) -> None:
    """Let nothing be copied from a ledger again: it is at its destination."""
    with old.transaction(write=True) as connection:
        if isinstance(old, SQLiteFile) and _is_older(connection, old):
            connection.exec_driver_sql("UPDATE moved SET done = 1")
        else:
            held = _held(connection, old, destination)
            _append(connection, old, destination, held.next_row(MOVED, destination))
        old.commit(connection)


def _is_older(connection: sa.Connection, place: SQLiteFile) -> bool:
    return ("entries", "serial") in place.columns(connection)


def _older(connection: sa.Connection, place: Place, destination: str) -> _Closed:
    """Return what an earlier file holds, its entries chained: its serials are the nonces."""
    run = connection.exec_driver_sql
    columns = place.columns(connection)
    version = run("SELECT schema_version FROM ledger").scalar()
    again = version == _CLOSED_VERSION and ("moved", "done") in columns
    if again:
        went, done = run("SELECT destination, done FROM moved").one()
        if done or went != destination:
            raise moved_away(place, went)
    elif version not in _OLDER:
        raise ValueError(
            f"The ledger at {place.name!r} has schema version {version}, which cannot be copied."
        )
    filters = ("ledger", "renyi_order") in columns
    beside = "composition, renyi_order" if filters else "'basic', 0.0"
    identity, epsilon, delta, rehearsal, refusals, composition, order = run(
        f"SELECT identity, epsilon, delta, rehearsal, charge_refusals, {beside} FROM ledger"
    ).one()
    terms = Terms(epsilon, delta, bool(rehearsal), bool(refusals), composition, order)
    found = run(
        'SELECT serial, "when", estimator, mechanism, epsilon, delta, status, dataset, '
        f"{'renyi' if filters else '9e999'} FROM entries ORDER BY id"
    ).fetchall()
    # Names that differed by what cannot be seen are one budget now.
    entries = [
        entry._replace(dataset=seen_name(entry.dataset))
        for entry in (Entry(*row[1:]) for row in found)
    ]
    rows = linked_rows(start(identity, terms), [row[0] for row in found], entries)
    return _Closed(identity, terms, rows, again)
