"""A file that keeps a ledger: SQLite, with a lock of its own beside it.

SQLite locks its file by POSIX record locks, which a process loses as soon as any of its threads
closes any descriptor of that file: somebody who only reads the ledger, or copies it, opens it to
all. ``flock`` belongs to one opening of a file instead. Only closing that opening ends it, so it
holds whatever else the process opens and closes; and as each holder opens the file for itself, it
excludes the threads of one process as well. There is no lock in memory besides, which a fork could
copy while it is held. Locks of Windows belong to a handle: there SQLite's own are enough.

The locked file is not the ledger but one beside it: over NFS a ``flock`` is a record lock of the
whole file and would meet SQLite's own.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa

from skdpsurv.dp import sql_ledger

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


# A turn takes milliseconds: look again soon.
_WAIT = 0.002


class SQLiteFile(sql_ledger.Place):
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
        self.name = self.path = os.path.realpath(path)
        self.lock = f"{self.name}.lock"
        if not os.path.isdir(os.path.dirname(self.name)):
            raise FileNotFoundError(f"The directory of path does not exist: {self.name!r}.")

    def exists(self) -> bool:
        """Say whether there is a file."""
        return os.path.lexists(self.name)

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        """Make the ledger where there is no file: whole, or not at all."""
        with locked(self.lock, sql_ledger.BUSY_SECONDS):
            if self.exists():
                return
            for ending in ("-journal", "-wal"):
                if os.path.exists(self.name + ending):
                    raise ValueError(
                        f"{self.name + ending!r} belongs to a ledger that is gone. Bring the "
                        "ledger back, or remove what is left of it."
                    )
            draft = f"{self.name}.{uuid.uuid4().hex}"
            try:
                with self._connection(draft, "rwc", "BEGIN IMMEDIATE") as connection:
                    write(connection)
                    connection.commit()
                os.rename(draft, self.name)
                with suppress(OSError):  # a system that does not sync the names in a folder
                    folder = os.open(os.path.dirname(self.name), os.O_RDONLY)
                    try:
                        os.fsync(folder)
                    finally:
                        os.close(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Open the file for one transaction that nobody else can get between.

        Readers too: one that finds the journal of somebody's charge unlocked would undo the charge.
        """
        self._require_whole()  # before a lock is left where there is no ledger
        begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        # mode=rw never makes a file: a deleted ledger must not come back empty.
        with (
            locked(self.lock, sql_ledger.BUSY_SECONDS),
            self._connection(self.name, "rw", begin) as connection,
        ):
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            if mode != "delete":
                raise ValueError(
                    f"The ledger at {self.name!r} keeps a journal in mode {mode!r}, beside the "
                    "file that holds it: a copy would lack the last charges. Set PRAGMA "
                    "journal_mode=delete."
                )
            yield connection

    def _require_whole(self) -> None:
        # Said before SQLite says it: its message names neither the file nor the reason.
        try:
            links = os.stat(self.name).st_nlink
        except FileNotFoundError:
            raise FileNotFoundError(
                f"The privacy ledger {self.name!r} does not exist (any more, or on this machine)."
            ) from None
        if links > 1:
            raise ValueError(
                f"The privacy ledger {self.name!r} has {links} names (hard links). Each name has a "
                "lock of its own, so that two users might spend one budget twice; keep one of the "
                "names, or use symbolic links."
            )

    @contextmanager
    def _connection(self, path: str, mode: str, begin: str) -> Iterator[sa.Connection]:
        try:
            with _engine(path, mode).connect() as connection:
                # The folder is synced, too: a journal that came back after a power cut would undo
                # a charge that was acknowledged.
                connection.exec_driver_sql("PRAGMA synchronous=EXTRA")
                connection.exec_driver_sql(begin)
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
    def connect() -> sqlite3.Connection:
        # isolation_level=None: transactions begin where this file says so, and not at the first
        # statement that writes.
        return sqlite3.connect(
            f"{Path(path).as_uri()}?mode={mode}",
            uri=True,
            timeout=sql_ledger.BUSY_SECONDS,
            isolation_level=None,
        )

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)


@contextmanager
def locked(path: str, seconds: float) -> Iterator[None]:
    """Hold the lock at ``path``, which nobody else holds then, other threads included.

    Parameters
    ----------
    path : str
        File to lock; made if missing, and left there, since removing a lock that somebody waits
        for would make two of it.
    seconds : float
        How long to wait for others.

    Raises
    ------
    RuntimeError
        If somebody else holds it for longer, the file cannot be made, or its file system has no
        locks; or if it was removed while it was held.
    """
    if fcntl is None:
        yield
        return
    try:
        descriptor = _acquired(path, time.monotonic() + seconds)
    except OSError as error:
        raise RuntimeError(
            f"{path!r} could not be locked ({error}). Nothing was charged."
        ) from error
    try:
        yield
        if not _is_named(path, descriptor):
            raise RuntimeError(
                f"The lock {path!r} was removed while it was held: somebody may have undone what "
                "was just written. Leave the file there."
            )
    finally:
        # Not by closing alone: a child forked meanwhile has inherited the opening.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _acquired(path: str, deadline: float) -> int:
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(path, descriptor):  # else it was removed, and guards nothing
                return descriptor
        except BlockingIOError:
            pass
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise TimeoutError("by another process")
        time.sleep(_WAIT)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # somebody else's lock file can be locked
        return os.open(path, os.O_RDONLY)


def _is_named(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
