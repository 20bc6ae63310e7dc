"""What an accountant asks of a ledger, and the ledger that lives in this process.

Every ledger does one thing: check that a charge fits the budget of its data set and record it, as
one step that nobody can get between. :class:`~skdpsurv.privacy.PrivacyAccountant` is the public
face.
"""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections.abc import Iterable
from typing import ClassVar, Protocol

from skdpsurv.privacy.budget import (
    NOTHING,
    Entry,
    Held,
    Sums,
    Terms,
    added_up,
    budget_of,
    require_room,
)
from skdpsurv.privacy.chain import Receipt, linked, start

_ADVICE = (
    "Make it with a path, PrivacyAccountant(epsilon=..., path='ledger.sqlite'), to share one "
    "ledger between processes, or with the url of a server, to share it between machines."
)


class Ledger(Protocol):
    """What an accountant asks of a ledger."""

    @property
    def terms(self) -> Terms:
        """What it was made with."""

    @property
    def identity(self) -> str:
        """Made at random with it."""

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""

    def sums(self, dataset: str, *, proved: bool = True) -> Sums:
        """Return what was charged to a data set; in rehearsals, of what is proved or is not."""

    def check(self, *requests: Entry) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""

    def receipts(self) -> list[Receipt]:
        """Return the receipt of the ledger as it was made, and of each entry, oldest first."""

    def charge(self, *requests: Entry) -> Receipt:
        """Check and record in one step: all of them, or nothing."""


class MemoryLedger:
    """Entries in the memory of one process.

    A copy in another process, unpickled or forked, cannot see later charges made here, nor be
    seen; it is *detached*: neither read nor charged. A pickle holds no entry, since it travels
    with a model to people who may not know what else was fitted.

    Parameters
    ----------
    terms : Terms
    entries : iterable of Entry, default=()
        What was charged before, to another ledger.
    """

    # Ledgers alive in this process, so that unpickling finds the original again.
    _alive: ClassVar[weakref.WeakValueDictionary[str, MemoryLedger]] = weakref.WeakValueDictionary()

    def __init__(self, terms: Terms, entries: Iterable[Entry] = ()) -> None:
        self._terms = terms
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._id = uuid.uuid4().hex
        self._receipts = [start(self._id, terms)]
        self._held: Held = {}
        self._pid: int | None = os.getpid()
        self._alive[self._id] = self
        for entry in entries:
            self._append(entry)

    @property
    def terms(self) -> Terms:
        """What it was made with."""
        return self._terms

    @property
    def identity(self) -> str:
        """Made at random with it."""
        return self._id

    @property
    def detached(self) -> bool:
        """Whether this is a copy in another process than the one that made the ledger."""
        return self._pid != os.getpid()

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        self._refuse_unknown()
        # No lock: copying a list is atomic.
        return list(self._entries)

    def sums(self, dataset: str, *, proved: bool = True) -> Sums:
        """Return what was charged to a data set; in rehearsals, of what is proved or is not."""
        self._refuse_unknown()
        return self._held.get(budget_of(self._terms, dataset, proved=proved), NOTHING)

    def check(self, *requests: Entry) -> None:
        """Raise BudgetExceededError if the requests do not fit now."""
        self._refuse_detached()
        require_room(self._held, requests, self._terms)

    def receipts(self) -> list[Receipt]:
        """Return the receipt of the ledger as it was made, and of each entry, oldest first."""
        self._refuse_detached()
        return list(self._receipts)

    def charge(self, *requests: Entry) -> Receipt:
        """Check and record in one step: all of them, or nothing."""
        self._refuse_detached()
        with self._lock:
            require_room(self._held, requests, self._terms)
            for request in requests:
                self._append(request)
            return self._receipts[-1]

    def _append(self, entry: Entry) -> None:
        head = self._receipts[-1]
        link = linked(head.hash, uuid.uuid4().hex, entry)
        self._receipts.append(Receipt(self._id, head.entries + 1, link))
        self._entries.append(entry)
        self._held = added_up([entry], self._terms, self._held)

    def _refuse_unknown(self) -> None:
        if self.detached:
            raise RuntimeError(
                "This PrivacyAccountant is a copy in another process than the one that made it, "
                f"and does not know what was charged there. {_ADVICE}"
            )

    def _refuse_detached(self) -> None:
        if self.detached:
            raise RuntimeError(
                "This PrivacyAccountant is a copy in another process than the one that made it, "
                f"and a charge here would not be seen there. {_ADVICE}"
            )

    def __reduce__(self) -> tuple[object, tuple[str, Terms]]:
        return MemoryLedger._find_or_detach, (self._id, self._terms)

    @classmethod
    def _find_or_detach(cls, key: str, terms: Terms) -> MemoryLedger:
        original = cls._alive.get(key)
        if original is not None and not original.detached:
            return original
        # Not registered: also in the process that made it, once the original is gone, nobody
        # knows what was spent.
        copy = cls.__new__(cls)
        copy._terms = terms
        copy._entries = []
        copy._receipts = []
        copy._held = {}
        copy._lock = threading.Lock()
        copy._id = key
        copy._pid = None
        return copy
