"""Where the entries of a privacy ledger live: in this process, or in an SQLite file.

Both kinds do one thing: check that a charge fits the budget of its data set and record it, as one
step that nobody can get between. :class:`~skdpsurv.privacy.PrivacyAccountant` is the public face.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

_SCHEMA_VERSION = 1
# A charge takes milliseconds; a queue of workers must never turn into an error.
_BUSY_SECONDS = 120.0
# Ten charges of 0.1 fill a budget of 1: sums of decimal fractions are not exact in floats.
_RELATIVE_TOLERANCE = 1e-9


class Budget(NamedTuple):
    """What each data set may spend."""

    epsilon: float
    delta: float


class Entry(NamedTuple):
    """One charge. Every field is public."""

    when: str
    estimator: str
    mechanism: str
    epsilon: float
    delta: float
    status: str
    dataset: str


class BudgetExceededError(RuntimeError):
    """A charge does not fit what is left of the privacy budget. Nothing was recorded.

    Parameters
    ----------
    requested : float
        What the charge asked for.
    remaining : float
        What is left.
    dataset : str
        Name of the data set whose budget it is.
    quantity : {"epsilon", "delta"}, default="epsilon"
        Which of the two budgets is exceeded.

    Attributes
    ----------
    requested, remaining, dataset, quantity
        As above.
    """

    def __init__(
        self, requested: float, remaining: float, dataset: str, quantity: str = "epsilon"
    ) -> None:
        super().__init__(
            f"The privacy budget of data set {dataset!r} does not allow this: it asks for "
            f"{quantity}={requested:g}, but only {remaining:g} is left. Nothing was charged."
        )
        self.requested = requested
        self.remaining = remaining
        self.dataset = dataset
        self.quantity = quantity

    def __reduce__(self) -> tuple[type[BudgetExceededError], tuple[float, float, str, str]]:
        # The default would call the class with the message: the error must reach the parent
        # process from a worker.
        return type(self), (self.requested, self.remaining, self.dataset, self.quantity)


def remaining(spent: float, budget: float) -> float:
    """Return what is left of a budget; an infinite budget always leaves infinity."""
    return math.inf if math.isinf(budget) else max(0.0, budget - spent)


def require_room(spent: Iterable[tuple[float, float]], request: Entry, budget: Budget) -> None:
    """Raise BudgetExceededError unless (epsilon, delta) of the request fits, by basic composition.

    Basic composition: mechanisms that are (e_i, d_i)-DP are together (sum e_i, sum d_i)-DP, also
    when each is chosen in view of the earlier results (Dwork and Roth, 2014, theorem 3.16 and
    section 3.5).
    """
    epsilons, deltas = [], []
    for epsilon, delta in spent:
        epsilons.append(epsilon)
        deltas.append(delta)
    for quantity, used, requested, limit in (
        ("epsilon", epsilons, request.epsilon, budget.epsilon),
        ("delta", deltas, request.delta, budget.delta),
    ):
        if math.fsum([*used, requested]) > limit * (1.0 + _RELATIVE_TOLERANCE):
            left = remaining(math.fsum(used), limit)
            raise BudgetExceededError(requested, left, request.dataset, quantity)


class Ledger(Protocol):
    """What an accountant asks of a ledger."""

    @property
    def budget(self) -> Budget:
        """The budget of each data set."""

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""

    def check(self, request: Entry) -> None:
        """Raise BudgetExceededError if the request does not fit now."""

    def charge(self, request: Entry) -> None:
        """Check and record in one step."""


class MemoryLedger:
    """Entries in the memory of one process.

    A copy in another process, unpickled or forked, cannot see later charges made here, nor be
    seen; it is *detached*: it can be read, and refuses to charge.

    Parameters
    ----------
    budget : Budget
    """

    # Ledgers alive in this process, so that unpickling finds the original again.
    _alive: ClassVar[weakref.WeakValueDictionary[str, MemoryLedger]] = weakref.WeakValueDictionary()

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._id = uuid.uuid4().hex
        self._pid: int | None = os.getpid()
        self._alive[self._id] = self

    @property
    def budget(self) -> Budget:
        """The budget of each data set."""
        return self._budget

    @property
    def detached(self) -> bool:
        """Whether this is a copy in another process than the one that made the ledger."""
        return self._pid != os.getpid()

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        # No lock: copying a list is atomic, and a fork may have copied the lock while held.
        return list(self._entries)

    def check(self, request: Entry) -> None:
        """Raise BudgetExceededError if the request does not fit now."""
        self._refuse_detached()
        self._require_room(request)

    def charge(self, request: Entry) -> None:
        """Check and record in one step."""
        self._refuse_detached()
        with self._lock:
            self._require_room(request)
            self._entries.append(request)

    def _require_room(self, request: Entry) -> None:
        spent = ((e.epsilon, e.delta) for e in self.entries() if e.dataset == request.dataset)
        require_room(spent, request, self._budget)

    def _refuse_detached(self) -> None:
        if self.detached:
            raise RuntimeError(
                "This PrivacyAccountant is a copy in another process than the one that made it, "
                "and a charge here would not be seen there. Make it with a path, "
                "PrivacyAccountant(epsilon=..., path='ledger.sqlite'), to share one budget "
                "between processes."
            )

    def __reduce__(self) -> tuple[object, tuple[str, Budget, list[Entry]]]:
        return MemoryLedger._find_or_detach, (self._id, self._budget, self.entries())

    @classmethod
    def _find_or_detach(cls, key: str, budget: Budget, entries: list[Entry]) -> MemoryLedger:
        original = cls._alive.get(key)
        if original is not None and not original.detached:
            return original
        # Not registered: also in the process that made it, once the original is gone, a copy may
        # be older than the last charge, and charging it would forget what was spent since.
        copy = cls.__new__(cls)
        copy._budget = budget
        copy._entries = list(entries)
        copy._lock = threading.Lock()
        copy._id = key
        copy._pid = None
        return copy


class SQLiteLedger:
    """Entries in an SQLite file, shared by all processes that can lock it.

    Holds no connection: each operation opens its own, so that a ledger can be pickled and forked.

    Parameters
    ----------
    path : str
        Absolute path.
    budget : Budget
        As stored in the file.
    """

    def __init__(self, path: str, budget: Budget) -> None:
        self.path = path
        self._budget = budget

    @classmethod
    def open(cls, path: str, epsilon: float | None, delta: float | None) -> SQLiteLedger:
        """Make the ledger, or open an existing one.

        Parameters
        ----------
        path : str
            Absolute path.
        epsilon, delta : float or None
            Budget of a new ledger; for an existing one it must be the stored budget, or None for
            whatever is stored.

        Returns
        -------
        SQLiteLedger

        Raises
        ------
        ValueError
            If the ledger was made with another budget, or the file is something else.
        """
        if not os.path.isdir(os.path.dirname(path)):
            raise FileNotFoundError(f"The directory of path does not exist: {path!r}.")
        asked = Budget(math.inf if epsilon is None else epsilon, 0.0 if delta is None else delta)
        with _transaction(path, mode="rwc") as connection:
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
                _create(connection, asked)
            stored = _stored_budget(connection, path)
        for name, given, kept in (
            ("epsilon", epsilon, stored.epsilon),
            ("delta", delta, stored.delta),
        ):
            if given is not None and given != kept:
                raise ValueError(
                    f"The ledger at {path!r} was made with epsilon={stored.epsilon:g} and "
                    f"delta={stored.delta:g}; its budget is fixed and cannot be reopened with "
                    f"{name}={given:g}. Omit {name} to use the stored budget."
                )
        return cls(path, stored)

    @property
    def budget(self) -> Budget:
        """The budget of each data set."""
        return self._budget

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        self._require_file()
        with _connection(self.path, mode="rw") as connection:
            self._verify(connection)
            rows = connection.execute(
                'SELECT "when", estimator, mechanism, epsilon, delta, status, dataset '
                "FROM entries ORDER BY id"
            )
            return [Entry(*row) for row in rows]

    def check(self, request: Entry) -> None:
        """Raise BudgetExceededError if the request does not fit now."""
        self._require_file()
        with _connection(self.path, mode="rw") as connection:
            self._verify(connection)
            self._require_room(connection, request)

    def charge(self, request: Entry) -> None:
        """Check and record in one transaction."""
        self._require_file()
        with _transaction(self.path, mode="rw") as connection:
            self._verify(connection)
            self._require_room(connection, request)
            connection.execute(
                'INSERT INTO entries("when", estimator, mechanism, epsilon, delta, status, '
                "dataset) VALUES (?, ?, ?, ?, ?, ?, ?)",
                request,
            )

    def _require_room(self, connection: sqlite3.Connection, request: Entry) -> None:
        spent = connection.execute(
            "SELECT epsilon, delta FROM entries WHERE dataset = ?", (request.dataset,)
        )
        require_room(spent, request, self._budget)

    def _require_file(self) -> None:
        # Said before SQLite says it: its message names neither the file nor the reason.
        if not os.path.exists(self.path):
            raise FileNotFoundError(
                f"The privacy ledger {self.path!r} does not exist (any more, or on this machine)."
            )

    def _verify(self, connection: sqlite3.Connection) -> None:
        if _stored_budget(connection, self.path) != self._budget:
            raise ValueError(
                f"The ledger at {self.path!r} is not the one this accountant was made with: its "
                "budget differs."
            )


def _create(connection: sqlite3.Connection, budget: Budget) -> None:
    connection.execute(
        "CREATE TABLE ledger(schema_version INTEGER NOT NULL, epsilon REAL NOT NULL, "
        "delta REAL NOT NULL)"
    )
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", (_SCHEMA_VERSION, *budget))
    connection.execute(
        'CREATE TABLE entries(id INTEGER PRIMARY KEY, "when" TEXT NOT NULL, '
        "estimator TEXT NOT NULL, mechanism TEXT NOT NULL, epsilon REAL NOT NULL, "
        "delta REAL NOT NULL, status TEXT NOT NULL, dataset TEXT NOT NULL)"
    )


def _stored_budget(connection: sqlite3.Connection, path: str) -> Budget:
    try:
        row = connection.execute("SELECT schema_version, epsilon, delta FROM ledger").fetchone()
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):  # locked, say: not a statement about what the file is
            raise
        row = None
    if row is None:
        raise ValueError(f"{path!r} is an SQLite file, but not a privacy ledger.")
    version, epsilon, delta = row
    if version != _SCHEMA_VERSION:
        raise ValueError(
            f"The ledger at {path!r} has schema version {version}; this version of the package "
            f"reads version {_SCHEMA_VERSION}."
        )
    return Budget(epsilon, delta)


@contextmanager
def _connection(path: str, *, mode: str) -> Iterator[sqlite3.Connection]:
    # mode=rw never makes a file: a deleted ledger must not come back empty.
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


@contextmanager
def _transaction(path: str, *, mode: str) -> Iterator[sqlite3.Connection]:
    with _connection(path, mode=mode) as connection:
        # IMMEDIATE takes the write lock before anything is read: no other process can charge
        # between the check and the charge. On an exception, closing the connection rolls back.
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
