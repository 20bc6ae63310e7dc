"""Tests of the ledger on a server, where these differ from those of a file."""

from functools import partial

import pytest

from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.ledger_copy import copy_ledger
from skdpsurv.dp.ledger_storage import SCHEMA, PostgreSQLServer

from .conftest import run
from .costs import cost, refused

KINDS = "postgresql", "postgresql+psycopg"


class TestAddress:
    @pytest.mark.parametrize(
        ("end", "said"),
        [
            *((f"/ledger?{name}=secret", "no password") for name in ("password", "PASSWORD")),
            ("/ledger?sslkey=/k&sslpassword=secret", "no password"),
            ("/dbname=ledger password=secret", "no password"),
            *((f"/ledger?{name}=secret", "no settings but") for name in ("sslpass", "Host")),
            ("/ledger?options=-c%20a%3Dsecret", "no settings but sslmode"),
        ],
    )
    def test_settings_that_may_hold_a_password(self, end, said):
        with pytest.raises(ValueError, match=said) as error:
            PrivacyAccountant(1.0, url=f"postgresql://anna@host{end}")
        assert "secret" not in str(error.value)

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            *((f"{kind}://anna:secret@host/ledger", "no password") for kind in KINDS),
            *((url, "url") for url in ("mysql://host/ledger", "anna:secret@host", "", 7)),
            ("sqlite://", "url"),
        ],
    )
    def test_a_password_is_refused_and_not_repeated(self, url, said):
        with pytest.raises((ValueError, TypeError), match=said) as error:
            PrivacyAccountant(1.0, url=url)
        assert "secret" not in str(error.value)

    def test_settings_of_the_list(self):
        pytest.importorskip("psycopg")
        url = "postgresql://anna@host/ledger?connect_timeout=3&sslmode=verify-full"
        assert PostgreSQLServer(url).url == url
        refused("path and url", lambda: PrivacyAccountant(1.0, path="a.sqlite", url=url))

    def test_a_server_that_is_away(self):
        pytest.importorskip("psycopg")
        with pytest.raises(RuntimeError, match=r"could not be used .* Nothing was charged"):
            PrivacyAccountant(1.0, url="postgresql://nobody@127.0.0.1:9/ledger")


class TestServer:
    @pytest.mark.parametrize(
        ("when", "does"),
        [
            ("BEFORE", "NEW.epsilon = 0.001"),
            ("AFTER", "UPDATE skdpsurv.entries SET epsilon = 0.001 WHERE id = 1"),
        ],
    )
    def test_a_trigger(self, url, when, does):
        accountant = PrivacyAccountant(1.0, url=url)
        accountant.charge(cost(0.25))
        run(
            url,
            f"CREATE FUNCTION skdpsurv.less() RETURNS trigger AS 'BEGIN {does}; RETURN NEW; END' "
            "LANGUAGE plpgsql",
            f"CREATE TRIGGER less {when} INSERT ON skdpsurv.entries "
            "FOR EACH ROW EXECUTE FUNCTION skdpsurv.less()",
        )
        refused("does not keep what is written", lambda: accountant.charge(cost(0.5)))
        assert accountant.spent() == 0.25

    @pytest.mark.parametrize(
        "setting", ["extra_float_digits = -15", "client_encoding = 'LATIN1'", None]
    )
    def test_settings_of_either_side_do_not_matter(self, url, setting, monkeypatch):
        if setting is None:  # of the client
            monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
            monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=-15")
        else:
            run(url, f"ALTER DATABASE postgres SET {setting}")
        try:
            accountant = PrivacyAccountant(1.0, url=url, purpose="étude №7 ☃")
            accountant.charge(cost(0.1 + 0.2), "données")
            accountant.charge(cost(1 / 3))
            again = PrivacyAccountant(url=url)
            assert again.entries()["epsilon"].tolist() == [0.1 + 0.2, 1 / 3]
            assert again.entries()["purpose"].tolist() == ["étude №7 ☃"] * 2
        finally:
            run(url, "ALTER DATABASE postgres RESET ALL")

    def test_a_lock_that_somebody_holds(self, url, monkeypatch):
        accountant = PrivacyAccountant(1.0, url=url)
        monkeypatch.setattr("skdpsurv.dp.ledger_storage.BUSY_SECONDS", 0.2)
        held = PostgreSQLServer(url).transaction(write=True)
        with held, pytest.raises(RuntimeError, match=r"timeout.*Nothing was charged"):
            accountant.charge(cost(0.5))
        accountant.charge(cost(0.5))
        assert accountant.spent() == 0.5

    def test_a_database_that_is_read_only(self, url):
        accountant = PrivacyAccountant(1.0, url=url)
        run(url, "ALTER DATABASE postgres SET default_transaction_read_only = on")
        try:
            with pytest.raises(RuntimeError, match=r"read-only.*Nothing was charged"):
                accountant.charge(cost(0.5))
            assert accountant.spent() == 0.0
        finally:
            run(url, "SET default_transaction_read_only = off", "ALTER DATABASE postgres RESET ALL")
        accountant.charge(cost(0.5))

    def test_who_may_only_add_entries(self, url):
        """What the page for custodians grants is enough to charge, and not enough to edit."""
        PrivacyAccountant(1.0, url=url)
        run(
            url,
            "DO $$ BEGIN CREATE ROLE analyst LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
            "GRANT USAGE ON SCHEMA skdpsurv TO analyst",
            "GRANT SELECT ON ALL TABLES IN SCHEMA skdpsurv TO analyst",
            "GRANT INSERT ON skdpsurv.entries TO analyst",
        )
        own = url.replace("postgres@", "analyst@")
        accountant = PrivacyAccountant(1.0, url=own)
        accountant.charge(cost(0.5))
        assert accountant.spent() == 0.5
        tables = "entries", "ledger"
        for forbidden in ("DELETE FROM skdpsurv.{}", "UPDATE skdpsurv.{} SET epsilon = 9"):
            for statement in map(forbidden.format, tables):
                with pytest.raises(Exception, match="permission denied"):
                    run(own, statement)


def test_a_charge_is_read_back_after_the_commit(url, tmp_path):
    """So is the end of a ledger that is copied. The server deletes what is committed."""
    accountant = PrivacyAccountant(1.0, url=url)
    run(
        url,
        f"""CREATE FUNCTION {SCHEMA}.f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN DELETE FROM {SCHEMA}.entries WHERE id = NEW.id; RETURN NULL; END$$""",
        f"""CREATE CONSTRAINT TRIGGER t AFTER INSERT ON {SCHEMA}.entries DEFERRABLE
        INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.f()""",
    )
    new = tmp_path / "copy.sqlite"
    copy = partial(copy_ledger, url, str(new))
    refused("has lost or changed entries", lambda: accountant.charge(cost(0.5)), copy)
    assert not new.exists()
