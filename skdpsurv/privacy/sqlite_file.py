"""A file that keeps a ledger: SQLite, with a lock of its own beside it."""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from skdpsurv.privacy import ledger_place
from skdpsurv.privacy.file_lock import acquire, is_named, release

__all__ = ["SQLiteFile"]


class SQLiteFile:
    """A ledger's file, shared by all processes that can lock it.

    Parameters
    ----------
    path : str
        Symbolic links are resolved: the lock beside the file must be one for all its names.

    Raises
    ------
    FileNotFoundError
        If its directory does not exist.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(self.path)):
            raise FileNotFoundError(f"The directory of path does not exist: {self.path!r}.")

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path

    def require(self) -> None:
        """Raise FileNotFoundError if there is no file."""
        if not os.path.exists(self.path):
            raise FileNotFoundError(
                f"There is no privacy ledger at {self.path!r}. To make one, state its budget: "
                "PrivacyAccountant(epsilon=..., path=...)."
            )

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        """Make the ledger where there is no file: whole, or not at all."""
        with self._locked():
            if os.path.lexists(self.path):
                return
            for ending in ("-journal", "-wal"):
                if os.path.exists(self.path + ending):
                    raise ValueError(
                        f"{self.path + ending!r} belongs to a ledger that is gone. Bring the "
                        "ledger back, or remove what is left of it."
                    )
            draft = f"{self.path}.{uuid.uuid4().hex}"
            try:
                with self._connection(draft, mode="rwc", begin="BEGIN IMMEDIATE") as connection:
                    write(connection)
                    connection.commit()
                os.rename(draft, self.path)
                _sync_folder(os.path.dirname(self.path))
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Open the file for one transaction that nobody else can get between.

        Readers too: one that finds the journal of somebody's charge unlocked would undo the charge.
        """
        self._require_whole()  # before a lock is left where there is no ledger
        with self._locked():
            self._require_whole()
            begin = "BEGIN IMMEDIATE" if write else "BEGIN"
            # mode=rw never makes a file: a deleted ledger must not come back empty.
            with self._connection(self.path, mode="rw", begin=begin) as connection:
                yield connection

    def commit(self, connection: sa.Connection) -> None:
        """Commit: what SQLite does not commit it rolls back."""
        connection.commit()

    def mark(self, connection: sa.Connection, number: int) -> Any:
        """Return how often SQLite has written to the file, but for adding one later entry each."""
        later = connection.exec_driver_sql("SELECT count(*) FROM entries WHERE id > ?", (number,))
        return _change_counter(self.path) - int(later.scalar_one())

    def mark_of_commit(self, before: Any) -> Any:
        """Return the mark after a commit, which is one more writing."""
        return before + 1

    def has_only_added(self, connection: sa.Connection, mark: Any, number: int, added: int) -> bool:
        """Say whether so many rows were changed in all, by triggers, too."""
        driver = connection.connection.dbapi_connection
        return isinstance(driver, sqlite3.Connection) and driver.total_changes == added

    def columns(self, connection: sa.Connection) -> set[tuple[str, str]]:
        """Return the tables that are there, and their columns."""
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        if mode != "delete":
            raise ValueError(
                f"The ledger at {self.path!r} keeps a journal in mode {mode!r}, beside the file "
                "that holds it: a copy would lack the last charges. Set PRAGMA "
                "journal_mode=delete."
            )
        found = connection.exec_driver_sql(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c"
        ).fetchall()
        if not found:
            raise ValueError(
                f"{self.path!r} is empty, and not a privacy ledger: it was cut off, perhaps."
            )
        return {(table, column) for table, column in found}

    def _require_whole(self) -> None:
        # Said before SQLite says it: its message names neither the file nor the reason.
        try:
            links = os.stat(self.path).st_nlink
        except FileNotFoundError:
            raise FileNotFoundError(
                f"The privacy ledger {self.path!r} does not exist (any more, or on this machine)."
            ) from None
        if links > 1:
            raise ValueError(
                f"The privacy ledger {self.path!r} has {links} names (hard links). Each name has a "
                "lock of its own, so that two users might spend one budget twice; keep one of the "
                "names, or use symbolic links."
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        beside = f"{self.path}.lock"
        try:
            lock = acquire(beside, ledger_place.BUSY_SECONDS)
        except OSError as error:
            raise RuntimeError(
                f"The privacy ledger {self.path!r} could not be locked ({error}). Nothing was "
                "charged."
            ) from error
        try:
            yield
            if not is_named(beside, lock):
                raise RuntimeError(
                    f"The lock of the privacy ledger {self.path!r} was removed while it was held: "
                    "somebody may have undone what was just written. Leave the file there."
                )
        finally:
            release(lock)

    @contextmanager
    def _connection(self, path: str, *, mode: str, begin: str) -> Iterator[sa.Connection]:
        try:
            with _engine(path, mode).connect() as connection:
                connection.execution_options(begin=begin)
                # What the block does not commit is rolled back as the connection is closed.
                yield connection
        except sa.exc.OperationalError as error:
            raise RuntimeError(
                f"The privacy ledger {path!r} could not be used ({error.orig}). Nothing was "
                "charged."
            ) from error
        except sa.exc.DBAPIError as error:
            raise ValueError(f"{path!r} is not a privacy ledger ({error.orig}).") from error


@lru_cache(maxsize=16)  # it keeps compiled statements, and no connection
def _engine(path: str, mode: str) -> sa.Engine:
    address = f"{Path(path).as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # isolation_level=None: transactions begin where this file says so, and not at the first
        # statement that writes.
        connection = sqlite3.connect(
            address, uri=True, timeout=ledger_place.BUSY_SECONDS, isolation_level=None
        )
        # The folder is synced, too: a journal that came back after a power cut would undo a charge
        # that was acknowledged.
        connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)
    sa.event.listen(engine, "begin", _begin)
    return engine


#: Files whose headers were read. They stay open: to close one ends all locks that SQLite has on it
#: in this process.
_HEADERS: dict[str, int] = {}
_READING = threading.Lock()


def _change_counter(path: str) -> int:
    """Return how often SQLite has written to a file: the number in bytes 24 to 27 of its header."""
    if os.name != "posix":  # no such locks, and no file can be removed that is open
        with open(path, "rb", buffering=0) as file:
            return int.from_bytes(file.read(28)[24:], "big")
    with _READING:
        held = _HEADERS.get(path)
        if held is not None and not os.path.samestat(os.fstat(held), os.stat(path)):
            os.close(_HEADERS.pop(path))  # another file has this name now
            held = None
        if held is None:
            held = _HEADERS[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        while len(_HEADERS) > 64:
            os.close(_HEADERS.pop(next(iter(_HEADERS))))
        return int.from_bytes(os.pread(held, 4, 24), "big")


def _sync_folder(path: str) -> None:
    """Let a new name in a folder outlast a power cut, where folders can be opened."""
    if os.name != "posix":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError:  # a file system that does not do it
        pass
    finally:
        os.close(folder)


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options()["begin"])
