"""A PostgreSQL server that keeps a ledger for people on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import sqlalchemy as sa

from skdpsurv.dp import sql_ledger

#: Schema of the database that holds the ledger's tables. One database keeps one ledger.
SCHEMA = "skdpsurv"
#: Of the advisory lock that each transaction takes: "skdpsurv" in ASCII.
_LOCK = int.from_bytes(b"skdpsurv", "big")
_CONNECT_SECONDS = 10
#: Settings of libpq that may stand in an address: none of them is a secret, or may hold one.
_SETTINGS = (
    "application_name channel_binding connect_timeout gssencmode gsslib host hostaddr keepalives "
    "keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts passfile "
    "port require_auth requirepeer service ssl_max_protocol_version ssl_min_protocol_version "
    "sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslmode sslnegotiation sslrootcert "
    "sslsni target_session_attrs tcp_user_timeout user"
)


class PostgreSQLServer(sql_ledger.Place):
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

    schema = SCHEMA

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
            or any("=" in name for name in names)
            or not set(_SETTINGS.split()).issuperset(parsed.query)
        ):
            raise ValueError(
                "url must hold no password, as it is kept in models and shown in messages, and no "
                f"settings but sslmode and the like: {_SETTINGS}. Put the password into ~/.pgpass "
                "(or the file that PGPASSFILE names), or into PGPASSWORD."
            )
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise ImportError(
                'a ledger on a server needs psycopg: pip install "skdpsurv[server]"'
            ) from error
        self.name = self.url = parsed.set(drivername="postgresql").render_as_string()

    def exists(self) -> bool:
        """Say whether the database has a ledger."""
        with self.transaction() as connection:
            return sa.inspect(connection).has_table("ledger", schema=SCHEMA)

    def make_if_missing(self, write: Callable[[sa.Connection], None]) -> None:
        """Make the ledger where there is none: whole, or not at all."""
        if self.exists():  # also who may only write entries may ask
            return
        with self.transaction(write=True) as connection:
            if not sa.inspect(connection).has_table("ledger", schema=SCHEMA):
                connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
                write(connection)
                self.commit(connection)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Connect for one transaction that nobody else can get between.

        A writer is alone, readers share the lock: what they see is a whole history, and none that
        somebody is about to add to. A lost connection undoes what was not committed.
        """
        shared = "" if write else "_shared"
        milliseconds = int(1000 * sql_ledger.BUSY_SECONDS)
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
            raise sql_ledger.UnansweredCommitError(
                f"The privacy ledger {self.url!r} did not say whether it committed "
                f"({_first_line(error)})."
            ) from error


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
