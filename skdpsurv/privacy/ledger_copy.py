"""Move a ledger to another place: from a file to a server, or out of an older file."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from skdpsurv.privacy.budget import Entry, Terms
from skdpsurv.privacy.chain import start
from skdpsurv.privacy.ledger_place import Place, UnansweredCommitError
from skdpsurv.privacy.postgresql_server import PostgreSQLServer
from skdpsurv.privacy.sql_ledger import SQLLedger, close_ledger, linked_rows, write_ledger
from skdpsurv.privacy.sqlite_file import SQLiteFile

__all__ = ["copy_ledger"]

#: Of earlier files, which had no chain, and a random serial for each entry.
_OLDER = (2, 3)


def copy_ledger(source: str, destination: str) -> SQLLedger:
    """Copy a ledger to a place that has none, and close the one that was copied.

    One budget must not be in two places: the source says where it went, and refuses charges.
    Should the destination fail after that, copy again to the same destination.

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
        If the source is none, was altered, or was moved elsewhere.
    RuntimeError
        If one of them does not work.
    """
    old, new = _place(source), _place(destination)
    try:
        new.require()
    except FileNotFoundError:
        pass
    else:
        raise FileExistsError(f"There is a ledger at {new.name!r} already: it is not replaced.")
    try:
        with old.transaction(write=True) as connection:
            if isinstance(old, SQLiteFile) and _is_older(connection, old):
                identity, terms, rows = _older(connection, old)
                # Earlier versions of this package do not read such a file.
                connection.exec_driver_sql("UPDATE ledger SET schema_version = 0")
            else:
                ledger = SQLLedger.on(connection, old, new.name)
                identity, terms, rows = ledger.identity, ledger.terms, ledger.rows(connection)
                close_ledger(connection, new.name)
            old.commit(connection)
        new.make_if_missing(lambda there: write_ledger(there, identity, terms, rows))
    except UnansweredCommitError as error:
        raise RuntimeError(
            f"The ledger at {old.name!r} may or may not have been closed ({error}): copy it again "
            "to the same place."
        ) from error
    return SQLLedger.open(new, {})


def _place(text: str) -> Place:
    return PostgreSQLServer(text) if "://" in text else SQLiteFile(text)


def _is_older(connection: sa.Connection, place: SQLiteFile) -> bool:
    return ("entries", "serial") in place.columns(connection)


def _older(
    connection: sa.Connection, place: SQLiteFile
) -> tuple[str, Terms, list[tuple[Any, ...]]]:
    """Return what an earlier file holds, its entries chained: its serials are the nonces."""
    run = connection.exec_driver_sql
    version = run("SELECT schema_version FROM ledger").scalar()
    if version not in _OLDER:
        raise ValueError(
            f"The ledger at {place.name!r} has schema version {version}, which cannot be copied: "
            "it was copied before, perhaps."
        )
    filters = ("ledger", "renyi_order") in place.columns(connection)
    beside = "composition, renyi_order" if filters else "'basic', 0.0"
    identity, epsilon, delta, rehearsal, refusals, composition, order = run(
        f"SELECT identity, epsilon, delta, rehearsal, charge_refusals, {beside} FROM ledger"
    ).one()
    terms = Terms(epsilon, delta, bool(rehearsal), bool(refusals), composition, order)
    found = run(
        'SELECT serial, "when", estimator, mechanism, epsilon, delta, status, dataset, '
        f"{'renyi' if filters else '9e999'} FROM entries ORDER BY id"
    ).fetchall()
    entries = [Entry(*row[1:]) for row in found]
    return identity, terms, linked_rows(start(identity), [row[0] for row in found], entries)
