"""A ledger in a database: an SQLite file, or a PostgreSQL server.

A ledger that lost an entry would let it be spent again. So whatever is not plainly the ledger that
was made, with all that it held, is refused.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.budget import (
    CLOSED,
    COMPOSITIONS,
    MOVED,
    Entry,
    LedgerSettings,
    added_up,
    dataset_name,
)
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import Ledger, Receipt, Row, entry_of, linked, linked_rows
from skdpsurv.dp.ledger_storage import Storage, UnansweredCommitError, unusable

#: How long a server that went away during a commit is waited for, to ask whether it committed.
_RETURN_SECONDS = 60.0
_SCHEMA_VERSION = 4

_TABLES = sa.MetaData()
_INTEGERS = {"id", "schema_version", "rehearsal", "charge_refusals"}
_DOUBLES = {"epsilon", "delta", "renyi", "renyi_order"}


def _column(name: str) -> sa.Column[Any]:
    kind = sa.Integer if name in _INTEGERS else sa.Double if name in _DOUBLES else sa.Text
    # id: 1, 2, 3, ..., given here: two charges that did not see each other are one too many.
    return sa.Column(name, kind, nullable=False, primary_key=name == "id", autoincrement=False)


# moved_to: where it went, for who may edit the table; the last entry says so as well.
_SETTINGS = (*LedgerSettings._fields[:-1], "renyi_order")
_LEDGER = sa.Table(
    "ledger", _TABLES, *map(_column, ("schema_version", "identity", *_SETTINGS, "moved_to"))
)
_ENTRIES = sa.Table("entries", _TABLES, *map(_column, ("id", "nonce", *Entry._fields, "link")))


class SQLLedger(Ledger):
    """Entries in a database.

    It remembers which ledger it is and how far it had come; a pickle carries that, and no entry.
    """

    def __init__(
        self, storage: Storage, identity: str, settings: LedgerSettings, destination: str = ""
    ) -> None:
        super().__init__(identity, settings)
        self.storage, self.path, self.url = storage, storage.path, storage.url
        self._seen = self._receipt([])
        self._destination = destination

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": ([], {})}

    @classmethod
    def open(cls, storage: Storage, given: Mapping[str, Any], destination: str = "") -> SQLLedger:
        """Open a ledger, or make it where there is none and epsilon is given.

        Parameters
        ----------
        storage : Storage
        given : mapping
            Those of the :class:`LedgerSettings` that the caller has stated. An existing ledger must
            have been made with them.
        destination : str, default=""
            Where it is to be moved; one that was closed for that can be read.

        Raises
        ------
        FileNotFoundError
            If there is no ledger and ``given`` has no epsilon.
        ValueError
            If the ledger was made with other settings, or there is something else.
        RuntimeError
            If the storage does not work.
        """
        if "epsilon" in given:
            settings = LedgerSettings(**{"delta": 0.0, **given}).completed()
            identity = uuid.uuid4().hex
            storage.make_if_missing(lambda made: write_ledger(made, identity, settings, []))
        elif not storage.exists():
            raise FileNotFoundError(
                f"There is no privacy ledger at {storage.name!r}. To make one, state its budget: "
                "PrivacyAccountant(epsilon=..., ...)."
            )
        with storage.transaction() as connection:
            identity, stored, _ = _stored(connection, storage)
            for name, value in given.items():
                if value != getattr(stored, name):
                    made_with = ", ".join(f"{key}={v!r}" for key, v in stored._asdict().items())
                    raise ValueError(
                        f"The ledger at {storage.name!r} was made with {made_with}; it cannot be "
                        f"reopened with {name}={value!r}. Omit {name} to use what is stored."
                    )
            ledger = cls(storage, identity, stored, destination)
            ledger._read(connection)
        return ledger

    def charge(
        self, *requests: Entry, appetite: RiskAppetite | None = None, moved_to: str | None = None
    ) -> Receipt:
        """Check and record charges, or a step of a move, in one transaction.

        What was recorded is read in another transaction: a deferred trigger, say, acts as it is
        committed.
        """
        unanswered: UnansweredCommitError | None = None
        try:
            with self.storage.transaction(write=True) as connection:
                self._read(connection)
                known, totals = self._known
                self._require_room(totals, requests, appetite)
                rows = linked_rows(self._seen, requests)
                connection.execute(_ENTRIES.insert(), _named(rows))
                if moved_to is not None:
                    connection.execute(_LEDGER.update().values(moved_to=moved_to))
                if _fetched(connection) != known + rows:  # a trigger, say, wrote something
                    raise self._fault("does not keep what is written to it: it was altered")
                self.storage.commit(connection)
                if self._seen.entries < rows[-1][0]:  # else another thread has seen more
                    self._seen = self._receipt(rows)
        except UnansweredCommitError as error:
            unanswered = error
        return self._read_back(rows[-1][1], unanswered)

    def _read_back(self, nonce: str, unanswered: UnansweredCommitError | None) -> Receipt:
        """Find out whether a charge was recorded: once there, it stays."""
        deadline = time.monotonic() + _RETURN_SECONDS
        while True:
            try:
                rows = self.rows()
                break
            except RuntimeError as failure:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"The privacy ledger {self.storage.name!r} went away during a charge, and "
                        "does not say whether it was recorded. If it was, it stays; nothing was "
                        "fitted."
                    ) from (unanswered or failure)
                time.sleep(0.5)
        for row in reversed(rows):
            if row[1] == nonce:
                return self._receipt([row])
        raise unusable(self.storage.name, unanswered) from unanswered

    def _refresh(self) -> None:
        with self.storage.transaction() as connection:
            self._read(connection)

    def _read(self, connection: sa.Connection) -> None:
        """Read all entries; ValueError unless this is the ledger that was opened, not shorter."""
        identity, settings, moved_to = _stored(connection, self.storage)
        if (identity, settings) != (self.identity, self.settings):
            raise self._fault(
                "is not the one this accountant was made with: it was replaced by another ledger, "
                "or its settings were changed"
            )
        # Threads that read share the ledger's lock: each goes on from what it finds here.
        rows, seen, (before, totals) = _fetched(connection), self._seen, self._known
        if len(rows) < seen.entries or self._receipt(rows[: seen.entries]) != seen:
            raise self._fault(
                "has lost or changed entries that this accountant has seen: it was restored from "
                "an older copy, or altered"
            )
        if rows[: len(before)] != before:
            before, totals = [], {}
        head, new = self._receipt(before), rows[len(before) :]
        for row in new:
            head = self._checked(head, row)
        if rows and entry_of(rows[-1]).status in (CLOSED, MOVED):
            moved_to = entry_of(rows[-1]).mechanism
        if moved_to and moved_to != self._destination:
            raise self._fault(f"was moved to {moved_to!r}: use it there. Nothing was charged")
        charges = [entry for entry in map(entry_of, new) if entry.is_charge]
        self._known = rows, added_up(charges, self.settings, totals)
        self._seen = head

    def _checked(self, head: Receipt, row: Row) -> Receipt:
        """Return how far a ledger has come with a row, checked as if it were charged now."""
        number, nonce, *fields, link = row
        entry = entry_of(row)
        unproved = not (self.settings.rehearsal or entry.proved)
        try:
            if (number, link) != (head.entries + 1, linked(head.hash, nonce, fields)):
                raise ValueError("it does not fit its hash, those before it, or the settings")
            if entry.is_charge:
                nominal = 0.0 if unproved else entry.epsilon
                PrivacyGuarantee(nominal, entry.delta, status=entry.status)
                if unproved and entry.epsilon != math.inf:
                    raise ValueError("what is not proved costs infinity")
                if not (isinstance(entry.renyi, float) and entry.renyi >= 0.0):
                    raise ValueError("a Renyi divergence is a number that is not negative")
                if entry.dataset != dataset_name(entry.dataset):
                    raise ValueError("the data set is not named in its only form")
        except (TypeError, ValueError) as error:
            raise self._fault(
                f"holds an entry that was never charged ({error}): it was altered"
            ) from error
        return self._receipt([row])

    def _fault(self, fault: str) -> ValueError:
        return ValueError(f"The ledger at {self.storage.name!r} {fault}.")


def write_ledger(
    connection: sa.Connection, identity: str, settings: LedgerSettings, rows: Sequence[Row]
) -> None:
    """Make a ledger's tables and fill them."""
    _TABLES.create_all(connection)
    connection.execute(_LEDGER.insert().values((_SCHEMA_VERSION, identity, *settings, "")))
    if rows:
        connection.execute(_ENTRIES.insert(), _named(rows))


def _named(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(_ENTRIES.columns.keys(), row, strict=True)) for row in rows]


def _fetched(connection: sa.Connection) -> list[Row]:
    return list(map(tuple, connection.execute(sa.select(_ENTRIES).order_by("id"))))


def _stored(connection: sa.Connection, storage: Storage) -> tuple[str, LedgerSettings, str]:
    """Return identity, settings and where it was moved, or raise ValueError if it is no ledger."""
    inspected = sa.inspect(connection)
    found = [inspected.has_table(name, schema=storage.schema) for name in ("ledger", "entries")]
    if storage.schema and not any(found):
        raise FileNotFoundError(
            f"The privacy ledger {storage.name!r} does not exist (any more, or not for this user)."
        )
    if not all(found):
        raise ValueError(f"What is at {storage.name!r} is not a privacy ledger, or was cut off.")
    versions = connection.scalars(sa.select(_LEDGER.c.schema_version)).all()
    if versions != [_SCHEMA_VERSION]:
        stated = ", ".join(map(str, versions))
        raise ValueError(
            f"The ledger at {storage.name!r} has schema version {stated}; this version of the "
            f"package reads version {_SCHEMA_VERSION}."
        )
    _, identity, epsilon, delta, rehearsal, refusals, composition, order, moved_to = (
        connection.execute(sa.select(_LEDGER)).one()
    )
    if not (
        all(isinstance(number, float) for number in (epsilon, delta, order))
        and epsilon > 0
        and 0 <= delta < 1
        and composition in COMPOSITIONS
        and (order > 1 if composition == "renyi" else order == 0)
    ):
        raise ValueError(
            f"The ledger at {storage.name!r} has settings that no ledger is made with."
        )
    flags = bool(rehearsal), bool(refusals)
    return identity, LedgerSettings(epsilon, delta, *flags, composition, order), moved_to
