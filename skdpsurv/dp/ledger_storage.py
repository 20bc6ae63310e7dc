"""Where a ledger is kept: an SQLite file with a lock of its own, or a PostgreSQL server.

SQLite's own POSIX locks end as soon as any thread of the process closes any descriptor of the file,
so a mere reader opens it to all. Windows' locks belong to a handle; there SQLite's own are enough.
The lock is on a file beside the ledger, since over NFS it would meet SQLite's own.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

import sqlalchemy as sa

from skdpsurv.dp.durable import locked, sync_folder
from skdpsurv.dp.references import extra

#: Longest wait for a lock: a queue of workers must never turn into an error.
BUSY_SECONDS = 120.0
#: Schema of a PostgreSQL database that holds the tables. One database keeps one ledger.
SCHEMA = "skdpsurv"
#: Number of the advisory lock that each transaction takes: "skdpsurv" in ASCII.
_ADVISORY_LOCK = int.from_bytes(b"skdpsurv", "big")
_CONNECT_SECONDS = 10
#: Settings of libpq that may stand in an address: none of them is a secret, or may hold one.
_URL_SETTINGS = (
    "application_name channel_binding connect_timeout gssencmode gsslib host hostaddr keepalives "
    "keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts passfile "
    "port require_auth requirepeer service ssl_max_protocol_version ssl_min_protocol_version "
    "sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslmode sslnegotiation sslrootcert "
    "sslsni target_session_attrs tcp_user_timeout user"
)
#: Settings of a transaction: exact texts and floats, whatever the server or environment says, and
#: a charge that was acknowledged is on disk.
_SESSION = sa.text(
    "SELECT set_config('client_encoding', 'UTF8', true), "
    "set_config('extra_float_digits', '3', true), "
    "set_config('statement_timeout', :wait, true), "
    "set_config('lock_timeout', :wait, true), "
    "CASE WHEN current_setting('synchronous_commit') = 'off' "
    "THEN set_config('synchronous_commit', 'on', true) END"
)


class UnansweredCommitError(RuntimeError):
    """A commit was sent, and it is not known whether it was done."""


def unusable(name: str, reason: object) -> RuntimeError:
    """Return the error of a ledger that could not be used."""
    return RuntimeError(
        f"The privacy ledger {name!r} could not be used ({reason}). Nothing was charged."
    )


class Storage(ABC):
    """A file or a server that keeps one ledger.

    It holds no connection, so that it can be pickled and forked, and a server may be restarted
    between two charges.
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

        Raises RuntimeError where the storage does not work. What is not committed is rolled back.
        """

    def commit(self, connection: sa.Connection) -> None:
        """Commit, or raise UnansweredCommitError."""
        connection.commit()


class SQLiteFile(Storage):
    """A ledger's file, shared by all processes that can lock it.

    Symbolic links in its path are resolved: the lock must be one for all names of the file.
    """

    def __init__(self, path: str) -> None:
        self.name = self.path = os.path.realpath(path)
        self.lock = f"{self.name}.lock"
        if not os.path.isdir(os.path.dirname(self.name)):
            raise FileNotFoundError(f"The directory of path does not exist: {self.name!r}.")

    def exists(self) -> bool:
        return os.path.lexists(self.name)

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        with locked(self.lock, BUSY_SECONDS):
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
                sync_folder(os.path.dirname(self.name))
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Lock for readers, too: one that finds the journal of a charge would undo it."""
        self._require_whole()  # before a lock is left where there is no ledger
        begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        # mode=rw never makes a file: a deleted ledger must not come back empty.
        with (
            locked(self.lock, BUSY_SECONDS),
            self._connection(self.name, "rw", begin) as connection,
        ):
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            if mode != "delete":
                raise ValueError(
                    f"The ledger at {self.name!r} keeps a journal in mode {mode!r}: a copy of the "
                    "file would lack the last charges. Set PRAGMA journal_mode=delete."
                )
            yield connection

    def _require_whole(self) -> None:
        # SQLite's own message names neither the file nor the reason.
        try:
            links = os.stat(self.name).st_nlink
        except FileNotFoundError:
            raise FileNotFoundError(
                f"The privacy ledger {self.name!r} does not exist (any more, or on this machine)."
            ) from None
        if links > 1:
            raise ValueError(
                f"The privacy ledger {self.name!r} has {links} names (hard links), each with a "
                "lock of its own: two users might spend one budget twice. Keep one of the names, "
                "or use symbolic links."
            )

    @contextmanager
    def _connection(self, path: str, mode: str, begin: str) -> Iterator[sa.Connection]:
        try:
            with _sqlite_engine(path, mode).connect() as connection:
                # The folder is synced, too: a journal that came back after a power cut would undo
                # a charge that was acknowledged.
                connection.exec_driver_sql("PRAGMA synchronous=EXTRA")
                connection.exec_driver_sql(begin)
                # What the block does not commit is rolled back as the connection is closed.
                yield connection
        except sa.exc.OperationalError as error:
            raise unusable(path, error.orig) from error
        except sa.exc.DBAPIError as error:
            raise ValueError(f"{path!r} is not a privacy ledger ({error.orig}).") from error


@lru_cache(maxsize=16)  # it keeps compiled statements, and no connection
def _sqlite_engine(path: str, mode: str) -> sa.Engine:
    # isolation_level=None: transactions begin where this file says so, and not at the first
    # statement that writes.
    address = f"{Path(path).as_uri()}?mode={mode}"
    connect = partial(
        sqlite3.connect, address, uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)


def database_url(url: str) -> sa.URL:
    """Return an address, which is kept and shown, or refuse one that may hold a password."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    # What cannot be read is not shown: it may hold a password.
    if parsed is None or parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise ValueError("url must be that of a database, postgresql://user@host/database.")
    # A name with "=" in it may be a whole list of settings.
    names = (parsed.username or "", parsed.host or "", parsed.database or "")
    if (
        parsed.password is not None
        or any("=" in name for name in names)
        or not set(_URL_SETTINGS.split()).issuperset(parsed.query)
    ):
        raise ValueError(
            "url must hold no password, as it is kept in models and shown in messages, and no "
            f"settings but sslmode and the like: {_URL_SETTINGS}. Put the password into "
            "~/.pgpass (or the file that PGPASSFILE names), or into PGPASSWORD."
        )
    return parsed


class PostgreSQLServer(Storage):
    """A ledger's database, ``postgresql://user@host:port/database?sslmode=verify-full``."""

    schema = SCHEMA

    def __init__(self, url: str) -> None:
        parsed = database_url(url)
        with extra("server", "psycopg", "a ledger on a server"):
            import psycopg  # noqa: F401
        self.name = self.url = parsed.set(drivername="postgresql").render_as_string()

    def exists(self) -> bool:
        with self.transaction() as connection:
            return sa.inspect(connection).has_table("ledger", schema=SCHEMA)

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        if self.exists():  # also who may only write entries may ask
            return
        with self.transaction(write=True) as connection:
            if not sa.inspect(connection).has_table("ledger", schema=SCHEMA):
                connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
                write(connection)
                self.commit(connection)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Connect; a writer is alone, readers share the lock."""
        lock = "pg_advisory_xact_lock" if write else "pg_advisory_xact_lock_shared"
        try:
            with _server_engine(self.name).connect() as connection:
                connection.execute(_SESSION, {"wait": str(int(1000 * BUSY_SECONDS))})
                connection.exec_driver_sql(f"SELECT {lock}({_ADVISORY_LOCK})")
                yield connection
        except sa.exc.DBAPIError as error:
            raise unusable(self.name, _first_line(error)) from error

    def commit(self, connection: sa.Connection) -> None:
        try:
            connection.commit()
        except sa.exc.DBAPIError as error:
            raise UnansweredCommitError(
                f"The privacy ledger {self.name!r} did not say whether it committed "
                f"({_first_line(error)})."
            ) from error


@lru_cache(maxsize=16)  # it keeps compiled statements, and no connection
def _server_engine(url: str) -> sa.Engine:
    return sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=sa.NullPool,
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": _CONNECT_SECONDS},
        execution_options={"schema_translate_map": {None: SCHEMA}},
    )


def _first_line(error: sa.exc.DBAPIError) -> str:
    return (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]


def storage_at(address: str) -> Storage:
    """Return the storage at a path or a url."""
    return PostgreSQLServer(address) if "://" in address else SQLiteFile(address)
