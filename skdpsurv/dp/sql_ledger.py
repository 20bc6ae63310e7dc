"""A ledger in a database: an SQLite file, or a PostgreSQL server.

A ledger that lost an entry would let it be spent again, so whatever is not plainly the ledger that
was made, with all that it held, is refused: a missing, empty or foreign one, another ledger under
the same name, an older copy, an entry that no accountant would have written.
"""

from __future__ import annotations

import math
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import sqlalchemy as sa

from skdpsurv.dp.budget import (
    CLOSED,
    COMPOSITIONS,
    MOVED,
    Entry,
    Terms,
    added_up,
    dataset_name,
    require_room,
)
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import Ledger, Receipt, Row, entry_of, linked, linked_rows, start

#: A charge takes milliseconds; a queue of workers must never turn into an error.
BUSY_SECONDS = 120.0
#: How long a server that went away during a commit is waited for, to ask whether it committed.
_RETURN_SECONDS = 60.0
_SCHEMA_VERSION = 4

_TABLES = sa.MetaData()


_KINDS = {
    "schema_version": sa.Integer,
    "identity": sa.Text,
    "epsilon": sa.Double,
    "delta": sa.Double,
    "rehearsal": sa.Integer,
    "charge_refusals": sa.Integer,
    "composition": sa.Text,
    "renyi_order": sa.Double,
    # Where it went, if it was moved, which is not for who may only add entries; its last says so.
    "moved_to": sa.Text,
}


def _columns(kinds: Mapping[str, Any]) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name, kind in kinds.items()]


_LEDGER = sa.Table("ledger", _TABLES, *_columns(_KINDS))
# id: 1, 2, 3, ..., given here, so that two charges that did not see each other are one too many.
_ENTRIES = sa.Table(
    "entries",
    _TABLES,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *_columns(
        dict.fromkeys(("nonce", *Entry._fields, "link"), sa.Text)
        | dict.fromkeys(("epsilon", "delta", "renyi"), sa.Double)
    ),
)


class UnansweredCommitError(RuntimeError):
    """A transaction was to be committed, and nobody said whether it was."""


class Place(ABC):
    """A file or a server that keeps one ledger.

    Places hold no connection: each transaction opens its own, so that they can be pickled and
    forked, and a server may be restarted between two charges.
    """

    #: What messages call it; it holds no password.
    name: str
    path: str | None = None
    url: str | None = None
    schema: ClassVar[str | None] = None

    @abstractmethod
    def exists(self) -> bool:
        """Say whether there is something that could be a ledger."""

    @abstractmethod
    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        """Make the ledger where there is none: whole, or not at all.

        Raises UnansweredCommitError if nobody knows which.
        """

    @abstractmethod
    def transaction(self, *, write: bool = False) -> AbstractContextManager[sa.Connection]:
        """Return a connection in a transaction that nobody else can get between.

        Raises RuntimeError where the place does not work. What is not committed is rolled back.
        """

    def commit(self, connection: sa.Connection) -> None:
        """Commit, or raise UnansweredCommitError."""
        connection.commit()


class SQLLedger(Ledger):
    """Entries in a database.

    It remembers which ledger it is and how far it had come; a pickle carries that, and no entry.
    """

    def __init__(self, place: Place, identity: str, terms: Terms, destination: str = "") -> None:
        super().__init__(identity, terms)
        self.place, self.path, self.url = place, place.path, place.url
        self._seen = start(identity, terms)
        self._destination = destination

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": ([], {})}

    @classmethod
    def open(cls, place: Place, given: Mapping[str, Any], destination: str = "") -> SQLLedger:
        """Open the ledger at a place, or make it where there is none and epsilon is given.

        Parameters
        ----------
        place : Place
        given : mapping
            Those of the :class:`Terms` that the caller has stated. An existing ledger must have
            been made with them.
        destination : str, default=""
            Where it is to be moved; one that was closed for that can be read.

        Raises
        ------
        FileNotFoundError
            If there is no ledger and ``given`` has no epsilon.
        ValueError
            If the ledger was made with other terms, or the place holds something else.
        RuntimeError
            If the place does not work.
        """
        if "epsilon" in given:
            terms = Terms(**{"delta": 0.0, **given}).settled()
            identity = uuid.uuid4().hex
            place.make_if_missing(lambda there: write_ledger(there, identity, terms, []))
        elif not place.exists():
            raise FileNotFoundError(
                f"There is no privacy ledger at {place.name!r}. To make one, state its budget: "
                "PrivacyAccountant(epsilon=..., ...)."
            )
        with place.transaction() as connection:
            identity, stored, _ = _stored(connection, place)
            for name, value in given.items():
                if value != getattr(stored, name):
                    said = ", ".join(f"{term}={kept!r}" for term, kept in stored._asdict().items())
                    raise ValueError(
                        f"The ledger at {place.name!r} was made with {said}; this is fixed and it "
                        f"cannot be reopened with {name}={value!r}. Omit {name} to use what is "
                        "stored."
                    )
            ledger = cls(place, identity, stored, destination)
            ledger._read(connection)
        return ledger

    def charge(self, *requests: Entry, moved_to: str | None = None) -> Receipt:
        """Check and record charges, or a step of a move, in one transaction.

        What was recorded is read in another transaction: a deferred trigger, say, acts as it is
        committed.
        """
        unanswered: UnansweredCommitError | None = None
        nonces = [uuid.uuid4().hex for _ in requests]
        try:
            with self.place.transaction(write=True) as connection:
                self._read(connection)
                require_room(self._held, requests, self.terms)
                rows = linked_rows(self._seen, requests, nonces)
                connection.execute(_ENTRIES.insert(), _named(rows))
                if moved_to is not None:
                    connection.execute(_LEDGER.update().values(moved_to=moved_to))
                if _fetched(connection) != self._rows + rows:  # a trigger, say, wrote something
                    raise ValueError(
                        f"The ledger at {self.place.name!r} does not keep what is written to it: "
                        "it was altered."
                    )
                self.place.commit(connection)
                if self._seen.entries < rows[-1][0]:  # else another thread has seen more
                    self._seen = Receipt(self.identity, rows[-1][0], rows[-1][-1])
        except UnansweredCommitError as error:
            unanswered = error
        return self._read_back(nonces[-1], unanswered)

    def _read_back(self, nonce: str, unanswered: UnansweredCommitError | None) -> Receipt:
        """Find out whether a charge was recorded: once there, it stays."""
        deadline = time.monotonic() + _RETURN_SECONDS
        while True:
            try:
                rows = self.rows()
                break
            except RuntimeError as failure:
                error = unanswered or failure
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"The privacy ledger {self.place.name!r} went away during a charge "
                        f"({error}), and does not say whether it was recorded. If it was, it "
                        "stays; nothing was fitted."
                    ) from error
                time.sleep(0.5)
        row = next((row for row in reversed(rows) if row[1] == nonce), None)
        if row is None:
            raise RuntimeError(
                f"The privacy ledger {self.place.name!r} could not be used ({unanswered}). Nothing "
                "was charged."
            ) from unanswered
        return Receipt(self.identity, row[0], row[-1])

    def _look(self) -> None:
        with self.place.transaction() as connection:
            self._read(connection)

    def _read(self, connection: sa.Connection) -> None:
        """Read all that the ledger holds that this was made with, or raise ValueError."""
        identity, terms, moved_to = _stored(connection, self.place)
        if (identity, terms) != (self.identity, self.terms):
            raise ValueError(
                f"The ledger at {self.place.name!r} is not the one this accountant was made with: "
                "it was replaced by another ledger, or its terms were changed."
            )
        # Threads that read share the ledger's lock: each goes on from what it finds here.
        rows, seen, (before, held) = _fetched(connection), self._seen, self._known
        if len(rows) < seen.entries or (seen.entries and rows[seen.entries - 1][-1] != seen.hash):
            raise ValueError(
                f"The ledger at {self.place.name!r} has lost or changed entries that this "
                "accountant has seen: it was restored from an older copy, or altered."
            )
        n_checked = len(before) if rows[: len(before)] == before else 0
        head = start(identity, terms)
        if n_checked:
            head = Receipt(identity, n_checked, rows[n_checked - 1][-1])
        for row in rows[n_checked:]:
            head = self._checked(head, row)
        if rows and entry_of(rows[-1]).status in (CLOSED, MOVED):
            moved_to = entry_of(rows[-1]).mechanism
        if moved_to and moved_to != self._destination:
            raise ValueError(
                f"The ledger at {self.place.name!r} was moved to {moved_to!r}: use it there. "
                "Nothing was charged."
            )
        new = filter(lambda entry: entry.is_charge, map(entry_of, rows[n_checked:]))
        self._known = rows, added_up(new, terms, held if n_checked else {})
        self._seen = head

    def _checked(self, head: Receipt, row: Row) -> Receipt:
        """Return how far a ledger has come with a row, checked as if it were charged now."""
        number, nonce, *fields, link = row
        entry = entry_of(row)
        unproved = not (self.terms.rehearsal or entry.proved)
        try:
            if (number, link) != (head.entries + 1, linked(head.hash, nonce, fields)):
                raise ValueError(
                    "it does not fit its hash, those before it, and the ledger's terms"
                )
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
            raise ValueError(
                f"The ledger at {self.place.name!r} holds an entry that was never charged "
                f"({error}): it was altered."
            ) from error
        return Receipt(self.identity, number, link)


def write_ledger(
    connection: sa.Connection, identity: str, terms: Terms, rows: Sequence[Row]
) -> None:
    """Make a ledger's tables and fill them."""
    _TABLES.create_all(connection)
    values = (_SCHEMA_VERSION, identity, *terms, "")
    connection.execute(_LEDGER.insert(), dict(zip(_LEDGER.columns.keys(), values, strict=True)))
    if rows:
        connection.execute(_ENTRIES.insert(), _named(rows))


def _named(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(_ENTRIES.columns.keys(), row, strict=True)) for row in rows]


def _fetched(connection: sa.Connection) -> list[Row]:
    return list(map(tuple, connection.execute(sa.select(_ENTRIES).order_by("id"))))


def _stored(connection: sa.Connection, place: Place) -> tuple[str, Terms, str]:
    """Return identity, terms and where it was moved, or raise ValueError if this is no ledger."""
    inspected = sa.inspect(connection)
    found = [inspected.has_table(one.name, schema=place.schema) for one in (_LEDGER, _ENTRIES)]
    if place.schema and not any(found):
        raise FileNotFoundError(
            f"The privacy ledger {place.name!r} does not exist (any more, or not for this user)."
        )
    if not all(found):
        raise ValueError(
            f"What is at {place.name!r} is not a privacy ledger: it was cut off, or is another "
            "database."
        )
    versions = connection.scalars(sa.select(_LEDGER.c.schema_version)).all()
    if versions != [_SCHEMA_VERSION]:
        raise ValueError(
            f"The ledger at {place.name!r} has schema version {', '.join(map(str, versions))}; "
            f"this version of the package reads version {_SCHEMA_VERSION}."
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
        raise ValueError(f"The ledger at {place.name!r} has terms that no ledger is made with.")
    terms = Terms(epsilon, delta, bool(rehearsal), bool(refusals), composition, order)
    return identity, terms, moved_to
