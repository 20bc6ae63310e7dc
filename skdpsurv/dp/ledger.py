"""What an accountant asks of a ledger, and the ledger that lives in this process.

Every ledger does one thing: check that a charge fits the budget of its data set and record it, as
one step that nobody can get between. :class:`~skdpsurv.dp.PrivacyAccountant` is the public
face.

Entries are chained by hashes, so that one that was edited, removed or cut off shows. The hash of an
entry covers the entry, a random nonce and the hash before it; that of the first covers the ledger's
identity and its terms. Whoever holds one hash, and its place, can check all history up to it, and
the budget that it was charged to.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import os
import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from skdpsurv.dp.budget import (
    NOTHING,
    Entry,
    Held,
    Sums,
    Terms,
    added_up,
    budget_of,
    require_room,
    text,
)
from skdpsurv.dp.checks import instance
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status


class Receipt(NamedTuple):
    """How far a ledger had come: public, and enough to check its history up to there.

    Parameters
    ----------
    ledger : str
        Identity of the ledger, made at random with it.
    entries : int
        How many entries it held.
    hash : str
        Of the last of them, 64 hexadecimal digits.
    """

    ledger: str
    entries: int
    hash: str

    @classmethod
    def checked(cls, ledger: object, entries: object, hash: object) -> Receipt:
        """Return a receipt, or raise ValueError if it cannot be one."""
        if not (
            isinstance(ledger, str)
            and 0 < len(ledger) <= 64
            and type(entries) is int
            and entries >= 0
            and isinstance(hash, str)
            and len(hash) == 64
            and set(hash) <= set("0123456789abcdef")
        ):
            raise ValueError("a receipt holds a ledger's identity, a number of entries and a hash.")
        return cls(ledger, entries, hash)


def digest(content: object) -> str:
    """Return the hash of what JSON can hold; whatever order keys were given in."""
    canonical = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def start(identity: str, terms: Sequence[object]) -> Receipt:
    """Return the receipt of a ledger without entries.

    Parameters
    ----------
    identity : str
    terms : sequence
        All that the ledger was made with: floats, booleans and texts. Every later hash depends on
        them, so that another budget is another ledger.
    """
    return Receipt(identity, 0, digest(["skdpsurv ledger", 4, identity, *terms]))


def linked(before: str, nonce: str, entry: Sequence[object]) -> str:
    """Return the hash of an entry that follows another.

    Parameters
    ----------
    before : str
        Hash of the entry before it.
    nonce : str
        Random: two histories of one ledger differ although the charges are alike, and nobody can
        guess from a hash what was charged.
    entry : sequence
        Texts and floats.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    return digest([before, nonce, *entry])


#: Number, nonce, the fields of an entry, and its hash.
Row = tuple[Any, ...]


def linked_rows(head: Receipt, entries: Iterable[Entry], nonces: Iterable[str]) -> list[Row]:
    """Return rows that go on with a ledger."""
    rows: list[Row] = []
    before = head.hash
    for number, (entry, nonce) in enumerate(zip(entries, nonces, strict=False), head.entries + 1):
        before = linked(before, nonce, entry)
        rows.append((number, nonce, *entry, before))
    return rows


def entry_of(row: Row) -> Entry:
    """Return the entry in a row."""
    return Entry._make(row[2:-1])


class Ledger(ABC):
    """Entries chained by hashes, and what they add up to, as far as they were looked at."""

    #: Where it is kept, if it is in a file or on a server.
    path: str | None = None
    url: str | None = None

    def __init__(self, identity: str, terms: Terms) -> None:
        self.identity = identity
        self.terms = terms
        # One attribute, so that no thread finds rows and sums that do not belong together.
        self._known: tuple[list[Row], Held] = ([], {})

    @property
    def _rows(self) -> list[Row]:
        return self._known[0]

    @property
    def _held(self) -> Held:
        return self._known[1]

    @abstractmethod
    def _look(self) -> None:
        """See what there is now, or raise if that cannot be known."""

    @abstractmethod
    def charge(self, *requests: Entry) -> Receipt:
        """Check and record in one step: all of them, or nothing."""

    def check(self, *requests: Entry) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""
        self._look()
        require_room(self._held, requests, self.terms)

    def rows(self) -> list[Row]:
        """All rows, oldest first."""
        self._look()
        return list(self._rows)

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return list(map(entry_of, self.rows()))

    def sums(self, dataset: str, *, proved: bool = True) -> Sums:
        """Return what was charged to a data set; in rehearsals, of what is proved or is not."""
        self._look()
        return self._held.get(budget_of(self.terms, dataset, proved=proved), NOTHING)

    def receipts(self) -> list[Receipt]:
        """Return the receipt of the ledger as it was made, and of each entry, oldest first."""
        made = start(self.identity, self.terms)
        return [made, *(Receipt(self.identity, row[0], row[-1]) for row in self.rows())]


class MemoryLedger(Ledger):
    """Entries in the memory of one process.

    A copy in another process, unpickled or forked, cannot see later charges made here, nor be
    seen; it is *detached*: neither read nor charged. A pickle holds no entry, since it travels
    with a model to people who may not know what else was fitted.
    """

    # Ledgers alive in this process, so that unpickling finds the original again.
    _alive: ClassVar[weakref.WeakValueDictionary[str, MemoryLedger]] = weakref.WeakValueDictionary()

    def __init__(self, terms: Terms, entries: Iterable[Entry] = ()) -> None:
        super().__init__(uuid.uuid4().hex, terms)
        self._lock = threading.Lock()
        self._pid: int | None = os.getpid()
        self._alive[self.identity] = self
        self._add(entries)

    @property
    def detached(self) -> bool:
        """Whether this is a copy in another process than the one that made the ledger."""
        return self._pid != os.getpid()

    def charge(self, *requests: Entry) -> Receipt:
        """Check and record in one step: all of them, or nothing."""
        self._look()  # in a forked child nobody gives back a lock
        with self._lock:
            self.check(*requests)
            self._add(requests)
            return self._head()

    def _head(self) -> Receipt:
        if not self._rows:
            return start(self.identity, self.terms)
        return Receipt(self.identity, self._rows[-1][0], self._rows[-1][-1])

    def _look(self) -> None:
        if self.detached:
            raise RuntimeError(
                "This PrivacyAccountant is a copy in another process than the one that made it, "
                "does not know what was charged there, and a charge here would not be seen there. "
                "Make it with a path, PrivacyAccountant(epsilon=..., path='ledger.sqlite'), to "
                "share one ledger between processes, or with the url of a server, to share it "
                "between machines."
            )

    def _add(self, entries: Iterable[Entry]) -> None:
        added = list(entries)
        rows = linked_rows(self._head(), added, (uuid.uuid4().hex for _ in added))
        self._known = self._rows + rows, added_up(added, self.terms, self._held)

    def __reduce__(self) -> tuple[object, tuple[str, Terms]]:
        return _original, (self.identity, self.terms)


def _original(identity: str, terms: Terms) -> MemoryLedger:
    """Return the ledger of this process, or a detached copy: once it is gone nobody knows it."""
    original = MemoryLedger._alive.get(identity)
    if original is not None and not original.detached:
        return original
    copy = MemoryLedger(terms)
    copy.identity, copy._pid = identity, None
    return copy


def verify(ledger: Ledger, releases: Sequence[object]) -> None:
    """Raise ValueError if a release does not fit the ledger, or two have one receipt."""
    receipts, entries = ledger.receipts(), ledger.entries()
    witnessed: dict[int, object] = {}
    for number, release in enumerate(releases):
        receipt = getattr(release, "receipt", release)
        if not isinstance(receipt, Receipt):
            raise ValueError(f"release {number} was charged to no ledger: it has no receipt.")
        if receipt.ledger != ledger.identity:
            raise ValueError(f"release {number} was charged to another ledger.")
        if receipt.entries >= len(receipts):
            raise ValueError(
                f"release {number} is entry {receipt.entries} of this ledger, which has "
                f"{len(receipts) - 1} now: it was cut off, or restored from an older copy."
            )
        if receipt != receipts[receipt.entries]:
            raise ValueError(
                f"release {number} was charged to another history of this ledger: it was "
                "edited, or restored from an older copy and charged again."
            )
        guarantee = getattr(release, "guarantee", None)
        if guarantee is None:
            continue
        stated = digest(guarantee.to_dict())
        if not receipt.entries or entries[receipt.entries - 1].guarantee != stated:
            raise ValueError(
                f"release {number} states another guarantee than the one that was charged for it."
            )
        values = json.loads(release.to_json())["values"]  # type: ignore[attr-defined]
        if witnessed.setdefault(receipt.entries, values) != values:
            raise ValueError(
                f"release {number} has the receipt of another release with other values: one "
                "charge was made, which pays for one of them."
            )


def charge_of(
    guarantee: PrivacyGuarantee, terms: Terms, parts: Sequence[PrivacyGuarantee], **names: str
) -> Entry:
    """Return the entry of a guarantee, or of the disjoint parts that it is the largest of."""
    instance(PrivacyGuarantee)("guarantee", guarantee)
    counts = terms.rehearsal or guarantee.status == "proved"
    known = terms.order and counts
    return Entry(
        when=now(),
        mechanism=text("mechanism", guarantee.mechanism),
        epsilon=guarantee.epsilon if counts else math.inf,
        delta=guarantee.delta,
        status=guarantee.status,
        renyi=max(part.renyi_at(terms.order) for part in parts) if known else math.inf,
        neighbours=text("neighbours", guarantee.neighbours),
        guarantee=digest(guarantee.to_dict()),
        **names,
    )


def in_parallel(parts: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Return what mechanisms on disjoint parts promise together."""
    mechanisms = ", ".join(dict.fromkeys(g.mechanism for g in parts if g.mechanism))
    return PrivacyGuarantee(
        epsilon=max(g.epsilon for g in parts),
        delta=max(g.delta for g in parts),
        neighbours=parts[0].neighbours,
        mechanism=f"{len(parts)} disjoint parts: {mechanisms or 'unnamed'}",
        status=weakest_status(g.status for g in parts),
    )


def user_name() -> str:
    """Return the name of the operating system's user, if there is one."""
    try:
        return text("who", getpass.getuser())
    except (ImportError, KeyError, OSError, ValueError):
        return ""


def now() -> str:
    """Return the time, as entries have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
