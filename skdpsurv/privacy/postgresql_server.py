"""A PostgreSQL server that keeps a ledger for people on many machines."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from skdpsurv.privacy import ledger_place

__all__ = ["SCHEMA", "PostgreSQLServer"]

#: Schema of the database that holds the ledger's tables. One database keeps one ledger.
SCHEMA = "skdpsurv"
#: Of the advisory lock that each transaction takes: "skdpsurv" in ASCII.
_LOCK = int.from_bytes(b"skdpsurv", "big")
_CONNECT_SECONDS = 10
#: Settings of libpq that may stand in an address: none of them is a secret, or may hold one.
_SETTINGS = frozenset(
    [
        "application_name",
        "channel_binding",
        "connect_timeout",
        "gssencmode",
        "gsslib",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "load_balance_hosts",
        "passfile",
        "port",
        "require_auth",
        "requirepeer",
        "service",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcertmode",
        "sslcompression",
        "sslcrl",
        "sslcrldir",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslrootcert",
        "sslsni",
        "target_session_attrs",
        "tcp_user_timeout",
        "user",
    ]
)


class PostgreSQLServer:
    """A ledger's database.

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/database``; ``?sslmode=verify-full`` and the like as libpq
        has them. It is kept in models and shown in messages, so it may hold no password.

    Raises
    ------
    ValueError
        If it is not such an address, or holds a password or a setting that may be one.
    ImportError
        Without psycopg: ``pip install "skdpsurv[server]"``.
    """

    def __init__(self, url: str) -> None:
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
            or {"password", "sslpassword"} & set(map(str.lower, parsed.query))
            or any("=" in name for name in names)
        ):
            raise ValueError(
                "url must hold no password: it is kept in models and shown in messages. Put the "
                "password into ~/.pgpass (or the file that PGPASSFILE names), or into PGPASSWORD."
            )
        if not _SETTINGS.issuperset(parsed.query):
            raise ValueError(
                "url must hold no settings but sslmode and the like, as it is kept in models and "
                f"shown in messages: {', '.join(sorted(_SETTINGS))}."
            )
        if importlib.util.find_spec("psycopg") is None:
            raise ImportError('a ledger on a server needs psycopg: pip install "skdpsurv[server]"')
        self.url = parsed.set(drivername="postgresql").render_as_string()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.url

    def require(self) -> None:
        """Raise FileNotFoundError if the database keeps no ledger."""
        with self.transaction() as connection:
            if not self._found(connection):
                raise FileNotFoundError(
                    f"There is no privacy ledger at {self.url!r}. To make one, state its budget: "
                    "PrivacyAccountant(epsilon=..., url=...)."
                )

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        """Make the ledger where there is none: whole, or not at all."""
        try:
            with self.transaction() as connection:
                if self._found(connection):  # also who may only write entries may ask
                    return
            with self.transaction(write=True) as connection:
                if self._found(connection):
                    return
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
                if encoding != "UTF8":
                    raise ValueError(
                        f"The database at {self.url!r} has encoding {encoding}: a ledger needs "
                        "UTF8, for the names of data sets."
                    )
                connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
                write(connection)
                self.commit(connection)
        except ledger_place.UnansweredCommitError as error:
            raise ledger_place.UnansweredCommitError(
                f"The privacy ledger {self.url!r} may not have been made ({error})."
            ) from error

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Connect for one transaction that nobody else can get between.

        A writer is alone, readers share the lock: what they see is a whole history, and none that
        somebody is about to add to. A lost connection undoes what was not committed.
        """
        shared = "" if write else "_shared"
        milliseconds = int(1000 * ledger_place.BUSY_SECONDS)
        try:
            with _engine(self.url).connect() as connection:
                # Texts and floats as they are, whatever the server, the role or the environment
                # says; and a charge that was acknowledged must be on disk.
                connection.execute(
                    sa.text(
                        "SELECT set_config('client_encoding', 'UTF8', true), "
                        "set_config('extra_float_digits', '3', true), "
                        "set_config('statement_timeout', :wait, true), "
                        "set_config('lock_timeout', :wait, true), "
                        "CASE WHEN current_setting('synchronous_commit') = 'off' "
                        "THEN set_config('synchronous_commit', 'on', true) END"
                    ),
                    {"wait": str(milliseconds)},
                )
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock{shared}({_LOCK})")
                yield connection
        except sa.exc.DBAPIError as error:
            raise RuntimeError(
                f"The privacy ledger {self.url!r} could not be used ({_first_line(error)}). "
                "Nothing was charged."
            ) from error

    def commit(self, connection: sa.Connection) -> None:
        """Commit, or raise UnansweredCommitError."""
        try:
            connection.commit()
        except sa.exc.DBAPIError as error:
            raise ledger_place.UnansweredCommitError(_first_line(error)) from error

    def mark(self, connection: sa.Connection, number: int) -> Any:
        """Return how many of these rows there are, and which transactions wrote them."""
        return tuple(
            connection.execute(
                sa.text(
                    "SELECT count(*), coalesce(sum(xmin::text::bigint), 0)::text "
                    f"FROM {SCHEMA}.entries WHERE id <= :number"
                ),
                {"number": number},
            ).one()
        )

    def mark_of_commit(self, before: Any) -> Any:
        """Return the mark after a commit: rows know their transaction before it."""
        return before

    def has_only_added(self, connection: sa.Connection, mark: Any, number: int, added: int) -> bool:
        """Say whether the rows of a mark are what they were, and the others so many."""
        count = connection.exec_driver_sql(f"SELECT count(*) FROM {SCHEMA}.entries").scalar()
        return count == number + added and self.mark(connection, number) == mark

    def columns(self, connection: sa.Connection) -> set[tuple[str, str]]:
        """Return the tables that are there, and their columns."""
        found = self._found(connection)
        if not found:
            raise FileNotFoundError(
                f"The privacy ledger {self.url!r} does not exist (any more, or not for this user)."
            )
        return found

    def _found(self, connection: sa.Connection) -> set[tuple[str, str]]:
        found = connection.execute(
            sa.text(
                "SELECT c.relname, a.attname FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
                "WHERE n.nspname = :schema AND c.relkind = 'r' AND NOT a.attisdropped"
            ),
            {"schema": SCHEMA},
        ).fetchall()
        return {(table, column) for table, column in found}


@lru_cache(maxsize=16)  # it keeps compiled statements, and no connection
def _engine(url: str) -> sa.Engine:
    return sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=sa.NullPool,
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": _CONNECT_SECONDS},
        execution_options={"schema_translate_map": {None: SCHEMA}},
    )


def _first_line(error: sa.exc.DBAPIError) -> str:
    return (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
