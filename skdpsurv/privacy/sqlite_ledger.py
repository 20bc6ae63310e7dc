"""A ledger in an SQLite file, shared by all processes that can lock it.

A ledger that lost an entry would let it be spent again, so whatever is not plainly the ledger that
was made, with all that it held, is refused: a missing, empty or foreign file, another ledger under
the same name, an older copy, an entry that no accountant would have written.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from skdpsurv.privacy.budget import COMPOSITIONS, Entry, Terms, dataset_name, require_room
from skdpsurv.privacy.file_lock import acquire, is_named, release
from skdpsurv.privacy.guarantee import PrivacyGuarantee

_SCHEMA_VERSION = 3
# A charge takes milliseconds; a queue of workers must never turn into an error.
_BUSY_SECONDS = 120.0

_SCHEMA = (
    "CREATE TABLE ledger(schema_version INTEGER NOT NULL, identity TEXT NOT NULL, "
    "epsilon REAL NOT NULL, delta REAL NOT NULL, rehearsal INTEGER NOT NULL, "
    "charge_refusals INTEGER NOT NULL, composition TEXT NOT NULL, "
    "renyi_order REAL NOT NULL)",
    # serial: random, so that two histories of one ledger differ although the charges are alike.
    'CREATE TABLE entries(id INTEGER PRIMARY KEY, serial TEXT NOT NULL, "when" TEXT NOT NULL, '
    "estimator TEXT NOT NULL, mechanism TEXT NOT NULL, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, status TEXT NOT NULL, dataset TEXT NOT NULL, "
    "renyi REAL NOT NULL)",
)
_COLUMNS = ", ".join(f'"{name}"' for name in ("serial", *Entry._fields))


class _Seen(NamedTuple):
    """How much of a ledger's history an accountant has seen: so many entries, with this digest."""

    entries: int
    digest: str


class SQLiteLedger:
    """Entries in an SQLite file.

    Holds no connection: each operation opens its own, so that a ledger can be pickled and forked.
    It remembers which ledger it is and how far it had come; a pickle carries that, and no entry.

    Parameters
    ----------
    path : str
        Absolute path, without symbolic links: the lock beside it must be one for all its names.
    identity : str
        As stored in the file.
    terms : Terms
        As stored in the file.
    """

    def __init__(self, path: str, identity: str, terms: Terms) -> None:
        self.path = path
        self._identity = identity
        self._terms = terms
        self._seen = _Seen(0, _history(identity).hexdigest())

    @classmethod
    def open(cls, path: str, given: Mapping[str, Any]) -> SQLiteLedger:
        """Open the ledger at a path, or make it where there is nothing and epsilon is given.

        Parameters
        ----------
        path : str
        given : mapping
            Those of the :class:`Terms` that the caller has stated. An existing ledger must have
            been made with them.

        Returns
        -------
        SQLiteLedger

        Raises
        ------
        FileNotFoundError
            If there is no file and ``given`` has no epsilon, or no directory.
        ValueError
            If the ledger was made with other terms, or the file is something else.
        """
        path = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(path)):
            raise FileNotFoundError(f"The directory of path does not exist: {path!r}.")
        if "epsilon" in given:
            _make_if_missing(path, Terms(**{"delta": 0.0, **given}).settled())
        elif not os.path.exists(path):
            raise FileNotFoundError(
                f"There is no privacy ledger at {path!r}. To make one, state its budget: "
                "PrivacyAccountant(epsilon=..., path=...)."
            )
        with _ledger_file(path) as connection:
            identity, stored = _stored_terms(connection, path)
            for name, value in given.items():
                if value != getattr(stored, name):
                    raise ValueError(
                        f"The ledger at {path!r} was made with {_said(stored)}; this is fixed and "
                        f"it cannot be reopened with {name}={_shown(value)}. Omit {name} to use "
                        "what is stored."
                    )
            ledger = cls(path, identity, stored)
            ledger._read(connection)
        return ledger

    @property
    def terms(self) -> Terms:
        """What it was made with."""
        return self._terms

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        with _ledger_file(self.path) as connection:
            return self._read(connection)

    def check(self, *requests: Entry) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""
        require_room(self.entries(), requests, self._terms)

    def charge(self, *requests: Entry) -> None:
        """Check and record in one transaction: all of them, or nothing."""
        rows = [(uuid.uuid4().hex, *request) for request in requests]
        with _ledger_file(self.path, begin="BEGIN IMMEDIATE") as connection:
            held = self._read(connection)
            require_room(held, requests, self._terms)
            places = ", ".join("?" * (1 + len(Entry._fields)))
            connection.executemany(f"INSERT INTO entries({_COLUMNS}) VALUES ({places})", rows)
            written, seen = self._history(connection)
            if written[len(held) :] != rows:  # a trigger, say
                raise ValueError(
                    f"The ledger at {self.path!r} does not keep what is written to it: it was "
                    "altered."
                )
            connection.execute("COMMIT")
            self._seen = seen

    def _read(self, connection: sqlite3.Connection) -> list[Entry]:
        """Return all entries of the ledger that this was made with, or raise ValueError.

        Under the lock: otherwise a slower thread might set back what was seen.
        """
        if _stored_terms(connection, self.path) != (self._identity, self._terms):
            raise ValueError(
                f"The ledger at {self.path!r} is not the one this accountant was made with: it was "
                "replaced by another ledger, or its terms were changed."
            )
        rows, seen = self._history(connection)
        entries = [self._entry(row) for row in rows]
        self._seen = seen
        return entries

    def _history(self, connection: sqlite3.Connection) -> tuple[list[tuple[Any, ...]], _Seen]:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id").fetchall()
        history = _history(self._identity)
        for row in rows[: self._seen.entries]:
            history.update(repr(row).encode())
        if len(rows) < self._seen.entries or history.hexdigest() != self._seen.digest:
            raise ValueError(
                f"The ledger at {self.path!r} has lost or changed entries that this accountant has "
                "seen: it was restored from an older copy, or altered."
            )
        for row in rows[self._seen.entries :]:
            history.update(repr(row).encode())
        return rows, _Seen(len(rows), history.hexdigest())

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        """Return an entry, checked as if it were charged now."""
        entry = Entry._make(row[1:])
        try:
            if not all(isinstance(value, str) for value in (*entry[:3], *entry[5:7])):
                raise ValueError("a text is none")
            nominal = entry.epsilon
            if not (self._terms.rehearsal or entry.proved):
                if nominal != math.inf:
                    raise ValueError("what is not proved costs infinity")
                nominal = 0.0
            PrivacyGuarantee(nominal, entry.delta, status=entry.status)
            if not (isinstance(entry.renyi, float) and entry.renyi >= 0.0):
                raise ValueError("a Renyi divergence is a number that is not negative")
            if entry.dataset != dataset_name(entry.dataset):
                raise ValueError("the data set is not named in its only form")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The ledger at {self.path!r} holds an entry that was never charged ({error}): "
                "it was altered."
            ) from error
        return entry


def _history(identity: str) -> hashlib._Hash:
    return hashlib.sha256(identity.encode())


def _make_if_missing(path: str, terms: Terms) -> None:
    """Make a ledger where there is no file: whole, or not at all."""
    with _locked(path):
        if os.path.lexists(path):
            return
        for ending in ("-journal", "-wal"):
            if os.path.exists(path + ending):
                raise ValueError(
                    f"{path + ending!r} belongs to a ledger that is gone. Bring the ledger back, "
                    "or remove what is left of it."
                )
        draft = f"{path}.{uuid.uuid4().hex}"
        try:
            with _connection(draft, mode="rwc") as connection:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (_SCHEMA_VERSION, uuid.uuid4().hex, *terms),
                )
                connection.execute("COMMIT")
            os.rename(draft, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)


def _stored_terms(connection: sqlite3.Connection, path: str) -> tuple[str, Terms]:
    """Return the ledger's identity and terms, or raise ValueError if this is no ledger."""
    [mode] = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "delete":
        raise ValueError(
            f"The ledger at {path!r} keeps a journal in mode {mode!r}, beside the file that holds "
            "it: a copy would lack the last charges. Set PRAGMA journal_mode=delete."
        )
    [empty] = connection.execute("SELECT count(*) = 0 FROM sqlite_master").fetchone()
    if empty:
        raise ValueError(f"{path!r} is empty, and not a privacy ledger: it was cut off, perhaps.")
    try:
        [version] = connection.execute("SELECT schema_version FROM ledger").fetchone()
        if version == _SCHEMA_VERSION:
            [row] = connection.execute(
                "SELECT identity, epsilon, delta, rehearsal, charge_refusals, composition, "
                "renyi_order FROM ledger"
            ).fetchall()
    except (sqlite3.OperationalError, TypeError, ValueError) as error:
        if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
            raise  # locked, say: not a statement about what the file is
        raise ValueError(f"{path!r} is an SQLite file, but not a privacy ledger.") from error
    if version != _SCHEMA_VERSION:
        raise ValueError(
            f"The ledger at {path!r} has schema version {version}; this version of the package "
            f"reads version {_SCHEMA_VERSION}."
        )
    identity, epsilon, delta, rehearsal, charge_refusals, composition, order = row
    if not (
        isinstance(identity, str)
        and isinstance(epsilon, float)
        and isinstance(delta, float)
        and epsilon > 0
        and 0 <= delta < 1
        and {rehearsal, charge_refusals} <= {0, 1}
        and composition in COMPOSITIONS
        and isinstance(order, float)
        and (order > 1 if composition == "renyi" else order == 0)
    ):
        raise ValueError(f"The ledger at {path!r} has terms that no ledger is made with.")
    flags = bool(rehearsal), bool(charge_refusals)
    return identity, Terms(epsilon, delta, *flags, composition, order)


@contextmanager
def _ledger_file(path: str, *, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
    """Open an existing ledger for one transaction that nobody else can get between.

    Readers too: one that finds the journal of somebody's charge unlocked would undo the charge.
    """
    _require_file(path)  # before a lock is left where there is no ledger
    with _locked(path):
        _require_file(path)
        # mode=rw never makes a file: a deleted ledger must not come back empty.
        with _connection(path, mode="rw") as connection:
            # On an exception, closing the connection rolls back.
            connection.execute(begin)
            yield connection


def _require_file(path: str) -> None:
    # Said before SQLite says it: its message names neither the file nor the reason.
    try:
        links = os.stat(path).st_nlink
    except FileNotFoundError:
        raise FileNotFoundError(
            f"The privacy ledger {path!r} does not exist (any more, or on this machine)."
        ) from None
    if links > 1:
        raise ValueError(
            f"The privacy ledger {path!r} has {links} names (hard links). Each name has a lock of "
            "its own, so that two users might spend one budget twice; keep one of the names, or "
            "use symbolic links."
        )


@contextmanager
def _locked(path: str) -> Iterator[None]:
    try:
        lock = acquire(f"{path}.lock", _BUSY_SECONDS)
    except OSError as error:
        raise RuntimeError(
            f"The privacy ledger {path!r} could not be locked ({error}). Nothing was charged."
        ) from error
    try:
        yield
        if not is_named(f"{path}.lock", lock):
            raise RuntimeError(
                f"The lock of the privacy ledger {path!r} was removed while it was held: somebody "
                "may have undone what was just written. Leave the file there."
            )
    finally:
        release(lock)


@contextmanager
def _connection(path: str, *, mode: str) -> Iterator[sqlite3.Connection]:
    address = f"{Path(path).as_uri()}?mode={mode}"
    try:
        with closing(
            # isolation_level=None: transactions begin and end where this file says so.
            sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        ) as connection:
            yield connection
    except sqlite3.OperationalError as error:
        raise RuntimeError(
            f"The privacy ledger {path!r} could not be used ({error}). Nothing was charged."
        ) from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path!r} is not a privacy ledger ({error}).") from error


def _said(terms: Terms) -> str:
    said = [f"epsilon={_shown(terms.epsilon)} and delta={_shown(terms.delta)}"]
    said += [f"{name}=True" for name in Terms._fields[2:4] if getattr(terms, name)]
    said += [f"composition={terms.composition!r}"] * (terms.composition != "basic")
    return ", ".join(said)


def _shown(value: float | bool | str) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)
