"""A ledger in a database: an SQLite file, or a PostgreSQL server.

A ledger that lost an entry would let it be spent again, so whatever is not plainly the ledger that
was made, with all that it held, is refused: a missing, empty or foreign one, another ledger under
the same name, an older copy, an entry that no accountant would have written.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from skdpsurv.privacy.budget import (
    CLOSED,
    COMPOSITIONS,
    MOVED,
    NOTHING,
    Entry,
    Held,
    Sums,
    Terms,
    added_up,
    budget_of,
    dataset_name,
    require_room,
)
from skdpsurv.privacy.chain import Receipt, linked, start
from skdpsurv.privacy.guarantee import PrivacyGuarantee
from skdpsurv.privacy.ledger_place import Place, UnansweredCommitError

__all__ = ["SQLLedger", "linked_rows", "moved_away", "say_where", "step", "write_ledger"]

_SCHEMA_VERSION = 4
# How long a server that went away during a commit is waited for, to ask whether it committed.
_RETURN_SECONDS = 60.0

_TABLES = sa.MetaData()
_NUMBERS = ("epsilon", "delta", "renyi")


def _column(name: str, kind: type[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


_LEDGER = sa.Table(
    "ledger",
    _TABLES,
    _column("schema_version", sa.Integer),
    _column("identity", sa.Text),
    _column("epsilon", sa.Double),
    _column("delta", sa.Double),
    _column("rehearsal", sa.Integer),
    _column("charge_refusals", sa.Integer),
    _column("composition", sa.Text),
    _column("renyi_order", sa.Double),
    # Where it went, if it was moved; its last entry says so, too.
    _column("moved_to", sa.Text),
)
# id: 1, 2, 3, ..., given here, so that two charges that did not see each other are one too many.
_ENTRIES = sa.Table(
    "entries",
    _TABLES,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _column("nonce", sa.Text),
    *(_column(name, sa.Double if name in _NUMBERS else sa.Text) for name in Entry._fields),
    _column("link", sa.Text),
)
_OWN = {(table.name, column.name) for table in (_LEDGER, _ENTRIES) for column in table.columns}


class _Known(NamedTuple):
    """What was read and checked: what has not changed is not checked again."""

    rows: list[tuple[Any, ...]]
    entries: list[Entry]
    held: Held
    #: Of the place: another one, once somebody may have written to these rows.
    mark: Any


_UNKNOWN = _Known([], [], {}, None)


class SQLLedger:
    """Entries in a database.

    It remembers which ledger it is and how far it had come; a pickle carries that, and no entry.

    Parameters
    ----------
    place : Place
        The file or server.
    identity : str
        As stored.
    terms : Terms
        As stored.
    """

    def __init__(self, place: Place, identity: str, terms: Terms) -> None:
        self.place = place
        self._identity = identity
        self._terms = terms
        self._seen = start(identity, terms)
        self._known = _UNKNOWN

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": _UNKNOWN}

    @classmethod
    def open(cls, place: Place, given: Mapping[str, Any]) -> SQLLedger:
        """Open the ledger at a place, or make it where there is none and epsilon is given.

        Parameters
        ----------
        place : Place
        given : mapping
            Those of the :class:`Terms` that the caller has stated. An existing ledger must have
            been made with them.

        Returns
        -------
        SQLLedger

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
        else:
            place.require()
        with place.transaction() as connection:
            identity, stored = _stored_terms(connection, place)
            for name, value in given.items():
                if value != getattr(stored, name):
                    raise ValueError(
                        f"The ledger at {place.name!r} was made with {_said(stored)}; this is "
                        f"fixed and it cannot be reopened with {name}={_shown(value)}. Omit "
                        f"{name} to use what is stored."
                    )
            ledger = cls(place, identity, stored)
            ledger._read(connection)
        return ledger

    @classmethod
    def on(cls, connection: sa.Connection, place: Place, destination: str) -> SQLLedger:
        """Return the ledger that a transaction looks at, to be moved to a destination."""
        return cls(place, *_stored_terms(connection, place, destination))

    @property
    def terms(self) -> Terms:
        """What it was made with."""
        return self._terms

    @property
    def identity(self) -> str:
        """Made at random with it."""
        return self._identity

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        with self.place.transaction() as connection:
            return list(self._read(connection, whole=True).entries)

    def rows(self, connection: sa.Connection) -> list[tuple[Any, ...]]:
        """Return the rows that hold the entries, checked, also of a ledger that is closed."""
        rows = self._fetched(connection)
        self._chained(rows, 0)
        for row in rows:
            self._entry(row)
        return rows

    def sums(self, dataset: str, *, proved: bool = True) -> Sums:
        """Return what was charged to a data set; in rehearsals, of what is proved or is not."""
        with self.place.transaction() as connection:
            held = self._read(connection).held
        return held.get(budget_of(self._terms, dataset, proved=proved), NOTHING)

    def receipts(self) -> list[Receipt]:
        """Return the receipt of the ledger as it was made, and of each entry, oldest first."""
        with self.place.transaction() as connection:
            rows = self._read(connection, whole=True).rows
        made = start(self._identity, self._terms)
        return [made, *(Receipt(self._identity, row[0], row[-1]) for row in rows)]

    def check(self, *requests: Entry) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""
        with self.place.transaction() as connection:
            held = self._read(connection).held
        require_room(held, requests, self._terms)

    def charge(self, *requests: Entry) -> Receipt:
        """Check and record in one transaction: all of them, or nothing.

        What was recorded is read in another transaction: a deferred trigger, say, acts as it is
        committed.
        """
        unanswered: UnansweredCommitError | None = None
        nonces = [uuid.uuid4().hex for _ in requests]
        try:
            with self.place.transaction(write=True) as connection:
                known = self._read(connection)
                require_room(known.held, requests, self._terms)
                rows = linked_rows(self._seen, nonces, requests)
                self.append(connection, rows, known)
                mark = self.place.mark(connection, len(known.rows) + len(rows))
                self.place.commit(connection)
                self._seen = Receipt(self._identity, rows[-1][0], rows[-1][-1])
                self._known = _Known(
                    known.rows + rows,
                    known.entries + list(requests),
                    added_up(requests, self._terms, known.held),
                    self.place.mark_of_commit(mark),
                )
        except UnansweredCommitError as error:
            unanswered = error
        return self._read_back(nonces[-1], unanswered)

    def append(
        self, connection: sa.Connection, rows: Sequence[tuple[Any, ...]], known: _Known | None
    ) -> None:
        """Write rows behind those that are known, and see that this is what was done.

        A trigger, say, could write something else.
        """
        held = self._fetched(connection) if known is None else known.rows
        mark = self.place.mark(connection, len(held)) if known is None else known.mark
        connection.execute(_ENTRIES.insert(), _named(rows))
        if not (
            self._fetched(connection, after=len(held)) == list(rows)
            and self.place.has_only_added(connection, mark, len(held), len(rows))
        ):
            raise ValueError(
                f"The ledger at {self.place.name!r} does not keep what is written to it: "
                "it was altered."
            )

    def _read_back(self, nonce: str, unanswered: UnansweredCommitError | None) -> Receipt:
        """Find out whether a charge was recorded: once there, it stays.

        Whoever reads waits for the lock that a transaction under way still holds.
        """
        deadline = time.monotonic() + _RETURN_SECONDS
        while True:
            try:
                with self.place.transaction() as connection:
                    rows = self._read(connection).rows
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
        return Receipt(self._identity, row[0], row[-1])

    def _read(self, connection: sa.Connection, *, whole: bool = False) -> _Known:
        """Return all that the ledger holds that this was made with, or raise ValueError.

        What was checked before is not read again, unless the whole is asked for, or somebody may
        have written to it. In the transaction: otherwise a slower thread might set back what was
        seen.
        """
        if _stored_terms(connection, self.place) != (self._identity, self._terms):
            raise ValueError(
                f"The ledger at {self.place.name!r} is not the one this accountant was made with: "
                "it was replaced by another ledger, or its terms were changed."
            )
        known = self._known
        n_known = len(known.rows)
        rows: list[tuple[Any, ...]] = []
        if n_known and not whole and self.place.mark(connection, n_known) == known.mark:
            last, *later = self._fetched(connection, after=n_known - 1) or [None]
            if last == known.rows[-1]:  # with its hash, all before it
                rows = known.rows + later
        if not rows:
            rows = self._fetched(connection)
            if rows[:n_known] != known.rows:
                known, n_known = _UNKNOWN, 0
        seen = self._chained(rows, n_known)
        new = [self._entry(row) for row in rows[n_known:]]
        entries = known.entries + new
        if entries and entries[-1].status in (CLOSED, MOVED):
            raise moved_away(self.place, entries[-1].mechanism)
        held = added_up((one for one in new if one.is_charge), self._terms, known.held)
        mark = self.place.mark(connection, len(rows))
        self._seen, self._known = seen, _Known(rows, entries, held, mark)
        return self._known

    def _fetched(self, connection: sa.Connection, after: int | None = None) -> list[Any]:
        rows = sa.select(_ENTRIES).order_by("id")
        if after is not None:
            rows = rows.where(_ENTRIES.c.id > after)
        return [tuple(row) for row in connection.execute(rows)]

    def _chained(self, rows: Sequence[tuple[Any, ...]], n_checked: int) -> Receipt:
        """Return how far the ledger has come, or raise ValueError if this is not its history."""
        seen = self._seen
        if len(rows) < seen.entries or (seen.entries and rows[seen.entries - 1][-1] != seen.hash):
            raise ValueError(
                f"The ledger at {self.place.name!r} has lost or changed entries that this "
                "accountant has seen: it was restored from an older copy, or altered."
            )
        head = start(self._identity, self._terms)
        if n_checked:
            head = Receipt(self._identity, n_checked, rows[n_checked - 1][-1])
        for row in rows[n_checked:]:
            number, nonce, *entry, link = row
            try:
                fits = (number, link) == (head.entries + 1, linked(head.hash, nonce, entry))
            except TypeError:  # no text and no number
                fits = False
            if not fits:
                raise ValueError(
                    f"The ledger at {self.place.name!r} holds an entry that was never charged (it "
                    "does not fit its hash, those before it, and the ledger's terms): it was "
                    "altered."
                )
            head = Receipt(self._identity, number, link)
        return head

    def _entry(self, row: Sequence[Any]) -> Entry:
        """Return an entry, checked as if it were charged now."""
        entry = Entry._make(row[2:-1])
        try:
            texts = [value for name, value in entry._asdict().items() if name not in _NUMBERS]
            if not all(isinstance(value, str) for value in texts):
                raise ValueError("a text is none")
            if not entry.is_charge:
                if entry != step(entry.when, entry.status, entry.mechanism, entry.who):
                    raise ValueError("a step of a move costs nothing")
                return entry
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
                f"The ledger at {self.place.name!r} holds an entry that was never charged "
                f"({error}): it was altered."
            ) from error
        return entry


def linked_rows(
    head: Receipt, nonces: Sequence[str], entries: Sequence[Entry]
) -> list[tuple[Any, ...]]:
    """Return rows that go on with a ledger."""
    rows: list[tuple[Any, ...]] = []
    for number, (nonce, entry) in enumerate(zip(nonces, entries, strict=True), head.entries + 1):
        before = rows[-1][-1] if rows else head.hash
        rows.append((number, nonce, *entry, linked(before, nonce, entry)))
    return rows


def write_ledger(
    connection: sa.Connection, identity: str, terms: Terms, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Make a ledger's tables and fill them."""
    _TABLES.create_all(connection)
    values = (_SCHEMA_VERSION, identity, *terms, "")
    connection.execute(_LEDGER.insert(), dict(zip(_LEDGER.columns.keys(), values, strict=True)))
    if rows:
        connection.execute(_ENTRIES.insert(), _named(rows))


def say_where(connection: sa.Connection, destination: str) -> None:
    """Write into a ledger's row where it is moved to; that is not for who may only add entries."""
    connection.execute(_LEDGER.update().values(moved_to=destination))


def step(when: str, status: str, place: str, who: str) -> Entry:
    """Return the entry that a step of a move makes: to or at a place."""
    return Entry(when, "", place, 0.0, 0.0, status, "", renyi=0.0, who=who)


def moved_away(place: Place, destination: str) -> ValueError:
    """Return what is raised where a ledger was moved to a destination."""
    return ValueError(
        f"The ledger at {place.name!r} was moved to {destination!r}: use it there. Nothing was "
        "charged."
    )


def _named(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(_ENTRIES.columns.keys(), row, strict=True)) for row in rows]


def _stored_terms(
    connection: sa.Connection, place: Place, destination: str = ""
) -> tuple[str, Terms]:
    """Return the ledger's identity and terms, or raise ValueError if this is no ledger.

    One that was moved is none, but for whoever moves it to the same destination again.
    """
    columns = place.columns(connection)
    if ("ledger", "schema_version") not in columns:
        raise ValueError(f"What is at {place.name!r} is a database, but not a privacy ledger.")
    versions = connection.scalars(sa.select(_LEDGER.c.schema_version)).all()
    if len(versions) != 1:
        raise ValueError(f"What is at {place.name!r} is a database, but not a privacy ledger.")
    if versions[0] != _SCHEMA_VERSION:
        raise ValueError(
            f"The ledger at {place.name!r} has schema version {versions[0]}; this version of the "
            f"package reads version {_SCHEMA_VERSION}."
        )
    if not columns >= _OWN:
        raise ValueError(f"What is at {place.name!r} lacks columns of a privacy ledger.")
    _, identity, epsilon, delta, *flags, composition, order, moved_to = connection.execute(
        sa.select(_LEDGER)
    ).one()
    if not (
        isinstance(identity, str)
        and isinstance(epsilon, float)
        and isinstance(delta, float)
        and epsilon > 0
        and 0 <= delta < 1
        and set(flags) <= {0, 1}
        and composition in COMPOSITIONS
        and isinstance(order, float)
        and (order > 1 if composition == "renyi" else order == 0)
    ):
        raise ValueError(f"The ledger at {place.name!r} has terms that no ledger is made with.")
    if moved_to not in ("", destination):
        raise moved_away(place, moved_to)
    rehearsal, charge_refusals = map(bool, flags)
    return identity, Terms(epsilon, delta, rehearsal, charge_refusals, composition, order)


def _said(terms: Terms) -> str:
    said = [f"epsilon={_shown(terms.epsilon)} and delta={_shown(terms.delta)}"]
    said += [f"{name}=True" for name in Terms._fields[2:4] if getattr(terms, name)]
    said += [f"composition={terms.composition!r}"] * (terms.composition != "basic")
    return ", ".join(said)


def _shown(value: float | bool | str) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)
