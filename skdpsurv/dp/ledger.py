"""The interface of ledgers, and the ledger that is in the memory of this process.

Entries are chained by hashes, so that an edited, removed or lost one shows. An entry's hash covers
the entry, a random nonce and the hash before it; the first covers the ledger's identity and
settings. Whoever holds a hash and its place can check all history up to it.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import os
import re
import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.budget import (
    NOTHING,
    Entry,
    LedgerSettings,
    SpentSums,
    Totals,
    added_up,
    budget_of,
    require_room,
    text,
)
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status

#: How the name of what is charged begins if it is a study (skdpsurv.study).
STUDY = "Study "
#: The mechanism of a refusal that is charged.
REFUSED = "none: refused"


@dataclass
class Look:
    """A look at records that a charge of at least its price pays for."""

    ledger: str
    price: Entry
    paid: bool = False


#: Looks at records that this thread has begun and not ended.
LOOKS: ContextVar[tuple[Look, ...]] = ContextVar("looks", default=())


class Receipt(NamedTuple):
    """State of a ledger after an entry: public, and enough to check its history up to there.

    Parameters
    ----------
    ledger : str
        Identity of the ledger, made at random with it.
    entries : int
        Number of entries.
    hash : str
        Hash of the last of them, 64 hexadecimal digits.
    """

    ledger: str
    entries: int
    hash: str

    @classmethod
    def checked(cls, ledger: object, entries: object, hash: object) -> Receipt:
        """Return a receipt, or raise ValueError if it cannot be one."""
        is_receipt = (
            isinstance(ledger, str)
            and 0 < len(ledger) <= 64
            and type(entries) is int
            and entries >= 0
            and isinstance(hash, str)
            and re.fullmatch("[0-9a-f]{64}", hash)
        )
        if not is_receipt:
            raise ValueError("a receipt holds a ledger's identity, a number of entries and a hash.")
        return cls(ledger, entries, hash)  # type: ignore[arg-type]


def digest(content: object) -> str:
    """Return the hash of what JSON can hold; the order of keys does not count."""
    canonical = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def start(identity: str, settings: Sequence[object]) -> Receipt:
    """Return the receipt of a ledger without entries, whose hash covers all its settings."""
    return Receipt(identity, 0, digest(["skdpsurv ledger", 4, identity, *settings]))


def linked(before: str, nonce: str, entry: Sequence[object]) -> str:
    """Return the hash of an entry that follows another; the nonce keeps it from being guessed."""
    return digest([before, nonce, *entry])


#: Number, nonce, the fields of an entry, and its hash.
Row = tuple[Any, ...]


def linked_rows(head: Receipt, entries: Iterable[Entry]) -> list[Row]:
    """Return rows of entries that continue a ledger's chain of hashes."""
    rows: list[Row] = []
    before = head.hash
    for number, entry in enumerate(entries, head.entries + 1):
        nonce = uuid.uuid4().hex
        before = linked(before, nonce, entry)
        rows.append((number, nonce, *entry, before))
    return rows


def entry_of(row: Row) -> Entry:
    """Return the entry in a row."""
    return Entry._make(row[2:-1])


class Ledger(ABC):
    """Entries chained by hashes, and their totals, as they were when last read."""

    #: Path of the ledger's file, or url of its server; both None in memory.
    path: str | None = None
    url: str | None = None

    def __init__(self, identity: str, settings: LedgerSettings) -> None:
        self.identity = identity
        self.settings = settings
        # One attribute, so that no thread finds rows and totals that do not belong together.
        self._known: tuple[list[Row], Totals] = ([], {})

    @abstractmethod
    def _refresh(self) -> None:
        """Read entries that were added meanwhile; raise if they cannot be read."""

    @abstractmethod
    def charge(self, *requests: Entry, appetite: RiskAppetite | None = None) -> Receipt:
        """Check and record in one step: all of them, or nothing."""

    def pay(self, *requests: Entry, appetite: RiskAppetite | None = None) -> Receipt:
        """Charge; a look at records in this thread is paid for by as much as it costs."""
        receipt = self.charge(*requests, appetite=appetite)
        for look in LOOKS.get():
            same = [one for one in requests if one.dataset == look.price.dataset]
            enough = any(one.epsilon >= look.price.epsilon for one in same)
            look.paid |= enough and look.ledger == self.identity
        return receipt

    def check(self, *requests: Entry, appetite: RiskAppetite | None = None) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""
        self._refresh()
        self._require_room(self._known[1], requests, appetite)

    def _require_room(
        self, totals: Totals, requests: Sequence[Entry], appetite: RiskAppetite | None
    ) -> None:
        require_room(totals, requests, self.settings)
        if appetite is not None:
            appetite.require_room(totals, requests, self.settings)

    def rows(self) -> list[Row]:
        """Return all rows, oldest first."""
        self._refresh()
        return list(self._known[0])

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        return list(map(entry_of, self.rows()))

    def sums(self, dataset: str, *, proved: bool = True) -> SpentSums:
        """Return the sums of charges to a data set; in rehearsals, of what is proved or is not."""
        self._refresh()
        return self._known[1].get(budget_of(self.settings, dataset, proved=proved), NOTHING)

    def receipts(self) -> list[Receipt]:
        """Return the receipt of the ledger as it was made, and of each entry, oldest first."""
        return [self._receipt([]), *(self._receipt([row]) for row in self.rows())]

    def _receipt(self, rows: Sequence[Row]) -> Receipt:
        """Return the receipt of a ledger with these rows."""
        if not rows:
            return start(self.identity, self.settings)
        return Receipt(self.identity, rows[-1][0], rows[-1][-1])


class MemoryLedger(Ledger):
    """Entries in the memory of one process.

    A copy in another process, unpickled or forked, is *detached*: neither read nor charged, since
    neither process would see the other's charges. A pickle holds no entry.
    """

    # Ledgers alive in this process, so that unpickling finds the original again.
    _alive: ClassVar[weakref.WeakValueDictionary[str, MemoryLedger]] = weakref.WeakValueDictionary()

    def __init__(self, settings: LedgerSettings, entries: Sequence[Entry] = ()) -> None:
        super().__init__(uuid.uuid4().hex, settings)
        self._lock = threading.Lock()
        self._pid: int | None = os.getpid()
        self._alive[self.identity] = self
        self._add(entries)

    @property
    def detached(self) -> bool:
        """Whether this is a copy in another process than the one that made the ledger."""
        return self._pid != os.getpid()

    def charge(self, *requests: Entry, appetite: RiskAppetite | None = None) -> Receipt:
        """Check and record in one step: all of them, or nothing."""
        self._refresh()  # in a forked child nobody gives back a lock
        with self._lock:
            self.check(*requests, appetite=appetite)
            self._add(requests)
            return self._receipt(self._known[0])

    def _refresh(self) -> None:
        if self.detached:
            raise RuntimeError(
                "This PrivacyAccountant is a copy in another process than the one that made it, "
                "and does not know what was charged there. Make it with a path, "
                "PrivacyAccountant(epsilon=..., path='ledger.sqlite'), to share one ledger between "
                "processes, or with the url of a server, to share it between machines."
            )

    def _add(self, entries: Sequence[Entry]) -> None:
        rows, totals = self._known
        new = linked_rows(self._receipt(rows), entries)
        self._known = rows + new, added_up(entries, self.settings, totals)

    def __reduce__(self) -> tuple[object, tuple[str, LedgerSettings]]:
        return _original, (self.identity, self.settings)


def _original(identity: str, settings: LedgerSettings) -> MemoryLedger:
    """Return the ledger of this process, or a detached copy."""
    original = MemoryLedger._alive.get(identity)
    if original is not None and not original.detached:
        return original
    copy = MemoryLedger(settings)
    copy.identity, copy._pid = identity, None
    return copy


def verify(ledger: Ledger, releases: Sequence[object]) -> None:
    """Raise ValueError if a release does not fit the ledger, or two have one receipt."""
    receipts, entries = ledger.receipts(), ledger.entries()
    witnessed: dict[int, object] = {}
    for number, release in enumerate(releases):
        receipt = getattr(release, "receipt", release)
        guarantee = getattr(release, "guarantee", None)
        fault = ""
        if not isinstance(receipt, Receipt):
            fault = "was charged to no ledger: it has no receipt"
        elif receipt.ledger != ledger.identity:
            fault = "was charged to another ledger"
        elif receipt.entries >= len(receipts):
            fault = (
                f"is entry {receipt.entries} of this ledger, which has {len(entries)} now: it was "
                "cut off, or restored from an older copy"
            )
        elif receipt != receipts[receipt.entries]:
            fault = (
                "was charged to another history of this ledger: it was edited, or restored from an "
                "older copy and charged again"
            )
        elif guarantee is not None:
            stated = digest(guarantee.to_dict())
            values = json.loads(release.to_json())["values"]  # type: ignore[attr-defined]
            charge = entries[receipt.entries - 1] if receipt.entries else None
            if charge is not None and charge.estimator.startswith(STUDY):
                fault = (
                    "has the receipt of a study, which is charged as a whole: skdpsurv study check "
                    "says whether the releases in its folder belong to that charge"
                )
            elif charge is None or charge.guarantee != stated:
                fault = "states another guarantee than the one that was charged for it"
            elif witnessed.setdefault(receipt.entries, values) != values:
                fault = "has the receipt of another release with other values: one charge pays once"
        if fault:
            raise ValueError(f"release {number} {fault}.")


def charge_of(
    parts: Sequence[PrivacyGuarantee],
    settings: LedgerSettings,
    appetite: RiskAppetite | None,
    **names: str,
) -> Entry:
    """Return the entry of a guarantee, or of mechanisms on disjoint parts of the data.

    An appetite must allow each part by itself.
    """
    if appetite is not None:
        for part in parts:
            appetite.require(part)
    guarantee = parts[0] if len(parts) == 1 else _in_parallel(parts)
    counts = settings.rehearsal or guarantee.status == "proved"
    divergences = [part.renyi_at(settings.order) for part in parts if settings.order and counts]
    return Entry(
        when=now(),
        mechanism=text("mechanism", guarantee.mechanism),
        epsilon=guarantee.epsilon if counts else math.inf,
        delta=guarantee.delta,
        status=guarantee.status,
        renyi=max(divergences, default=math.inf),
        neighbours=text("neighbours", guarantee.neighbours),
        guarantee=digest(guarantee.to_dict()),
        **names,
    )


def _in_parallel(parts: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
    mechanisms = ", ".join(dict.fromkeys(g.mechanism for g in parts if g.mechanism))
    return PrivacyGuarantee(
        epsilon=max(g.epsilon for g in parts),
        delta=max(g.delta for g in parts),
        neighbours=parts[0].neighbours,
        mechanism=f"{len(parts)} disjoint parts: {mechanisms or 'unnamed'}",
        status=weakest_status(g.status for g in parts),
    )


def user_name() -> str:
    """Return the name of the operating system's user, or nothing."""
    try:
        return text("who", getpass.getuser())
    except (ImportError, KeyError, OSError, ValueError):
        return ""


def now() -> str:
    """Return the time, as entries have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
