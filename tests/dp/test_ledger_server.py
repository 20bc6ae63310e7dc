"""Tests of the ledger on a server: what a file keeps, a PostgreSQL database keeps, too."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from skdpsurv import DPKaplanMeierFitter
from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee
from skdpsurv.dp.budget import LedgerSettings
from skdpsurv.dp.ledger import Receipt, digest, linked, start
from skdpsurv.dp.ledger_copy import copy_ledger
from skdpsurv.dp.ledger_storage import SCHEMA, PostgreSQLServer, UnansweredCommitError

from .conftest import run
from .costs import cost

AWAY = "postgresql://nobody@127.0.0.1:9/ledger"


def edited(accountant, statement):
    """Run a statement on a ledger, as its owner can."""
    if accountant.url is not None:
        run(accountant.url, statement.replace(" ledger ", f" {SCHEMA}.ledger "))
        return
    with closing(sqlite3.connect(accountant.path)) as connection, connection:
        connection.execute(statement)


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("postgresql://anna:secret@host/ledger", "no password"),
            ("postgresql+psycopg://anna:secret@host/ledger", "no password"),
            ("postgresql://anna@host/ledger?password=secret", "no password"),
            ("postgresql://anna@host/ledger?PASSWORD=secret", "no password"),
            ("postgresql://anna@host/ledger?sslkey=/k&sslpassword=secret", "no password"),
            ("postgresql://anna@host/dbname=ledger password=secret", "no password"),
            ("postgresql://anna@host/ledger?options=-c%20a%3Dsecret", "no settings but sslmode"),
            ("postgresql://anna@host/ledger?sslpass=secret", "no settings but sslmode"),
            ("postgresql://anna@host/ledger?Host=secret", "no settings but sslmode"),
            ("mysql://host/ledger", "url"),
            ("anna:secret@host", "url"),
            ("", "url"),
            ("sqlite://", "url"),
            (7, "url"),
        ],
    )
    def test_a_password_is_refused_and_not_repeated(self, url, said):
        with pytest.raises((ValueError, TypeError), match=said) as error:
            PrivacyAccountant(1.0, url=url)
        assert "secret" not in str(error.value)
        with pytest.raises(ValueError, match="path and url"):
            PrivacyAccountant(1.0, path="a.sqlite", url=AWAY)

    def test_settings_of_the_list(self):
        pytest.importorskip("psycopg")
        url = "postgresql://anna@host/ledger?connect_timeout=3&sslmode=verify-full"
        assert PostgreSQLServer(url).url == url

    def test_a_server_that_is_away(self):
        pytest.importorskip("psycopg")
        with pytest.raises(RuntimeError, match=r"could not be used .* Nothing was charged"):
            PrivacyAccountant(1.0, url=AWAY)


class TestServer:
    def test_a_new_session_goes_on(self, url):
        with pytest.raises(FileNotFoundError, match="There is no privacy ledger"):
            PrivacyAccountant(url=url)
        made = PrivacyAccountant(1.0, url=url, who="anna", purpose="protocol 7")
        made.charge(cost(0.75), estimator="Fitter")
        again = PrivacyAccountant(url=url)
        assert (again.epsilon, again.spent(), again.path) == (1.0, 0.75, None)
        assert again.url == made.url == sa.make_url(url).render_as_string()
        entry = again.entries().iloc[0]
        assert (entry["who"], entry["purpose"]) == ("anna", "protocol 7")
        with pytest.raises(BudgetExceededError):
            again.charge(cost(0.5))
        with pytest.raises(ValueError, match="made with epsilon=1"):
            PrivacyAccountant(2.0, url=url)

    def test_pickles_go_on_and_hold_no_entry(self, url):
        accountant = PrivacyAccountant(9.0, url=url)
        accountant.charge(cost(1.0), "hiv-clinic-2019")
        content = pickle.dumps(accountant)
        assert b"hiv-clinic" not in content
        pickle.loads(content).charge(cost(2.0))
        assert accountant.spent() == 2.0

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE skdpsurv.ledger SET epsilon = 100.0",
            "UPDATE skdpsurv.ledger SET rehearsal = 1",
            "UPDATE skdpsurv.ledger SET schema_version = 5",
            "DELETE FROM skdpsurv.entries",
            "DELETE FROM skdpsurv.entries WHERE id = 1",
            "DELETE FROM skdpsurv.entries WHERE id = 2",
            "UPDATE skdpsurv.entries SET epsilon = 0.125 WHERE id = 1",
            "UPDATE skdpsurv.entries SET dataset = 'other' WHERE id = 2",
            'INSERT INTO skdpsurv.entries SELECT 0, nonce, "when", estimator, mechanism, epsilon, '
            "delta, status, dataset, renyi, neighbours, who, purpose, guarantee, link "
            "FROM skdpsurv.entries WHERE id = 1",
            "TRUNCATE skdpsurv.ledger",
            "DROP TABLE skdpsurv.entries",
            "DROP SCHEMA skdpsurv CASCADE",
        ],
    )
    def test_altered_under_an_accountant(self, url, statement):
        accountant = PrivacyAccountant(1.0, url=url)
        for _ in range(2):
            accountant.charge(cost(0.25))
        run(url, statement)
        for call in (lambda: accountant.charge(cost(0.125)), accountant.spent):
            with pytest.raises((ValueError, FileNotFoundError), match=r"ledger"):
                call()

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
        with pytest.raises(ValueError, match="does not keep what is written"):
            accountant.charge(cost(0.5))
        assert accountant.spent() == 0.25

    @pytest.mark.parametrize(
        "setting",
        ["extra_float_digits = -15", "client_encoding = 'LATIN1'", "extra_float_digits = 0"],
    )
    def test_settings_of_the_server_do_not_matter(self, url, setting):
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

    def test_settings_of_the_client_do_not_matter(self, url, monkeypatch):
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=-15")
        PrivacyAccountant(1.0, url=url, who="☃").charge(cost(1 / 3))
        assert PrivacyAccountant(url=url).spent() == 1 / 3

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
        for statement in (
            "DELETE FROM skdpsurv.entries",
            "UPDATE skdpsurv.entries SET epsilon = 0",
            "UPDATE skdpsurv.ledger SET epsilon = 9",
        ):
            with pytest.raises(Exception, match="permission denied"):
                run(own, statement)

    def test_a_fit_is_not_run_without_its_ledger(self, url):
        accountant = PrivacyAccountant(1.0, url=url)
        run(url, "DROP SCHEMA skdpsurv CASCADE")
        PrivacyAccountant(1.0, url=url)
        with pytest.raises(ValueError, match="is not the one"):
            accountant.charge(cost(0.5))
        run(url, "DROP SCHEMA skdpsurv CASCADE")
        fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant)
        with pytest.raises(FileNotFoundError):
            fitter.fit(np.arange(9.0) / 2, np.ones(9, dtype=bool))
        assert not hasattr(fitter, "release_")


class TestCommit:
    """A connection may be lost while the server is asked to commit."""

    @pytest.mark.parametrize("committed", [True, False])
    def test_nobody_said_whether(self, url, monkeypatch, committed):
        accountant = PrivacyAccountant(1.0, url=url)

        def lost(self, connection):
            if committed:
                connection.commit()
            raise UnansweredCommitError("the connection was lost")

        monkeypatch.setattr(PostgreSQLServer, "commit", lost)
        if committed:
            receipt = accountant.charge(cost(0.5))
            accountant.verify(receipt)
        else:
            with pytest.raises(RuntimeError, match="Nothing was charged"):
                accountant.charge(cost(0.5))
        assert accountant.spent() == 0.5 * committed
        assert len(accountant.entries()) == committed

    @pytest.fixture
    def forgetful(self, url):
        """Make an accountant whose server deletes each entry as it is committed."""
        accountant = PrivacyAccountant(1.0, url=url)
        run(
            url,
            f"""CREATE FUNCTION {SCHEMA}.f() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN DELETE FROM {SCHEMA}.entries WHERE id = NEW.id; RETURN NULL; END$$""",
            f"""CREATE CONSTRAINT TRIGGER t AFTER INSERT ON {SCHEMA}.entries DEFERRABLE
            INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.f()""",
        )
        return accountant

    def test_a_charge_is_read_back_after_the_commit(self, forgetful):
        with pytest.raises(ValueError, match="has lost or changed entries"):
            forgetful.charge(cost(0.5))

    def test_so_is_the_end_of_a_ledger_that_is_copied(self, forgetful, tmp_path):
        destination = str(tmp_path / "copy.sqlite")
        with pytest.raises(ValueError, match="has lost or changed entries"):
            copy_ledger(forgetful.url, destination)
        assert not (tmp_path / "copy.sqlite").exists()

    def test_the_server_does_not_come_back(self, url, monkeypatch):
        accountant = PrivacyAccountant(1.0, url=url)
        transaction = PostgreSQLServer.transaction

        def lost(self, connection):
            monkeypatch.setattr(PostgreSQLServer, "transaction", gone)
            raise UnansweredCommitError("the connection was lost")

        def gone(self, **how):
            raise RuntimeError("away")

        monkeypatch.setattr(PostgreSQLServer, "commit", lost)
        monkeypatch.setattr("skdpsurv.dp.sql_ledger._RETURN_SECONDS", 0.0)
        with pytest.raises(RuntimeError, match="does not say whether it was recorded"):
            accountant.charge(cost(0.5))
        monkeypatch.setattr(PostgreSQLServer, "transaction", transaction)
        assert accountant.spent() == 0.0


class TestReceipts:
    def test_another_budget_is_another_history(self, make, tmp_path, request):
        """Whoever opens the ledger for the first time sees it, with a release or without."""
        accountant = make(1.0, 0.1, charge_refusals=True)
        made = accountant._ledger.receipts()[0]
        accountant.verify(made)
        accountant.charge(cost(0.5))
        accountant.verify(made)
        with pytest.raises(ValueError, match="another history"):
            accountant.verify(made._replace(hash="0" * 64))
        if accountant.path is None and accountant.url is None:
            settings = LedgerSettings(1.0, 0.1, charge_refusals=True)
            heads = {
                start("a", one).hash
                for one in (
                    settings,
                    settings._replace(epsilon=2.0),
                    settings._replace(delta=0.2),
                    settings._replace(rehearsal=True),
                    settings._replace(charge_refusals=False),
                    settings._replace(composition="renyi"),
                    settings._replace(order=2.0),
                )
            }
            assert len({*heads, start("b", settings).hash}) == 8
            return
        for change in (
            "epsilon = 1000.0",
            "delta = 0.5",
            "rehearsal = 1",
            "charge_refusals = 0",
            "composition = 'renyi', renyi_order = 9.0",
            "identity = 'another'",
        ):
            edited(accountant, f"UPDATE ledger SET {change}")
            with pytest.raises(ValueError, match="or the settings"):
                make()
            edited(
                accountant,
                "UPDATE ledger SET epsilon = 1.0, delta = 0.1, rehearsal = 0, "
                "charge_refusals = 1, composition = 'basic', renyi_order = 0.0, identity = "
                f"'{accountant._ledger.identity}'",
            )
            make().verify()

    def test_another_guarantee_is_not_the_one_that_was_charged(self, make):
        accountant = make(2.0, 1e-6)
        times, events = np.arange(9.0) / 2, np.ones(9, dtype=bool)
        fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant)
        release = fitter.fit(times, events).release_
        assert accountant.entries()["guarantee"].tolist() == [digest(release.guarantee.to_dict())]
        accountant.verify(release, type(release).from_json(release.to_json()))
        stated = PrivacyGuarantee(1.0, 1e-6, rho=0.01)
        with_rho = replace(release, guarantee=stated, receipt=accountant.charge(stated))
        accountant.verify(with_rho)
        for one, change in (
            (release, {"neighbours": "replace-one-person"}),
            (release, {"assumptions": ()}),
            (release, {"public_inputs": {}}),
            (release, {"source": "elsewhere"}),
            (release, {"not_covered": ("all",)}),
            (release, {"epsilon": 0.25}),
            (with_rho, {"rho": 0.001}),
        ):
            other = replace(one, guarantee=replace(one.guarantee, **change))
            with pytest.raises(ValueError, match="another guarantee"):
                accountant.verify(other)

    def test_what_is_no_receipt(self):
        hash_ = "0" * 64
        assert Receipt.checked("a" * 64, 0, hash_).entries == 0
        for wrong in (
            *((3, 1, hash_), ("", 1, hash_), ("a" * 65, 1, hash_), ("a", -1, hash_)),
            *(("a", True, hash_), ("a", 1.0, hash_), ("a", 1, 7), ("a", 1, "0" * 63)),
            *(("a", 1, "G" * 64), ("a", 1, hash_ + "0")),
        ):
            with pytest.raises(ValueError, match="receipt"):
                Receipt.checked(*wrong)

    def test_one_receipt_is_for_one_result(self, make):
        accountant = make(2.0)
        times, events = np.arange(9.0) / 2, np.ones(9, dtype=bool)
        fit = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant).fit
        release = fit(times, events).release_
        uncharged = replace(
            DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(times, events).release_,
            receipt=release.receipt,
        )
        accountant.verify(release, release.receipt, release)
        with pytest.raises(ValueError, match="release 1 has the receipt of another release"):
            accountant.verify(release, uncharged)

    def test_a_release_says_where_it_stands(self, make):
        accountant = make(2.0)
        times, events = np.arange(9.0) / 2, np.ones(9, dtype=bool)
        fitters = [
            DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant).fit(times, events)
            for _ in range(2)
        ]
        first, second = (fitter.release_ for fitter in fitters)
        assert [first.receipt.entries, second.receipt.entries] == [1, 2]
        again = type(first).from_json(second.to_json())
        assert again == second
        accountant.verify(first, again)
        other = PrivacyAccountant(2.0)
        with pytest.raises(ValueError, match="another ledger"):
            other.verify(first)
        bare = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(times, events).release_
        with pytest.raises(ValueError, match="charged to no ledger"):
            accountant.verify(bare)

    @pytest.mark.parametrize("altered", ["edited", "shorter", "another charge"])
    def test_a_chain_made_anew_does_not_fit_releases(self, url, altered):
        """Whoever may write all can make a whole chain, and not one that releases fit."""
        accountant = PrivacyAccountant(4.0, url=url)
        receipts = [accountant.charge(cost(1.0)) for _ in range(3)]
        names = 'nonce, "when", estimator, mechanism, epsilon, delta, status, dataset, renyi, '
        names += "neighbours, who, purpose, "
        rows = [
            list(row)
            for row in run(url, f"SELECT {names} guarantee FROM skdpsurv.entries ORDER BY id")
        ]
        if altered == "edited":
            rows[0][4] = 0.5
        elif altered == "shorter":
            rows.pop()
        else:
            rows[2][0] = "0" * 32
        hash_ = start(receipts[0].ledger, LedgerSettings(4.0, 0.0)).hash
        statements = ["DELETE FROM skdpsurv.entries"]
        for number, row in enumerate(rows, 1):
            hash_ = linked(hash_, row[0], row[1:])
            values = ", ".join(f"'{value}'" for value in (number, *row, hash_))
            statements.append(f"INSERT INTO skdpsurv.entries VALUES ({values})")
        run(url, *statements)
        fresh = PrivacyAccountant(url=url)
        fresh.verify()
        with pytest.raises(ValueError, match=r"cut off|another history"):
            fresh.verify(receipts[-1])
        with pytest.raises(ValueError, match="lost or changed"):
            accountant.spent()
