"""Tests of ledgers in files and on servers: what either keeps, and whom it lets charge."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from skdpsurv import DPKaplanMeierFitter
from skdpsurv.dp import PrivacyAccountant, PrivacyGuarantee, sql_ledger
from skdpsurv.dp.budget import Entry, LedgerSettings
from skdpsurv.dp.ledger import Receipt, digest, linked, linked_rows, start
from skdpsurv.dp.ledger_storage import UnansweredCommitError

from .conftest import edit, lose
from .costs import cost, exceeds, refused

NAMES = ", ".join(f'"{name}"' for name in Entry._fields)


def inserted(row):
    values = ", ".join(f"'{value}'" for value in row)
    return f"INSERT INTO entries VALUES ({values})"


def curve(accountant=None):
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant)
    return fitter.fit(np.arange(9.0) / 2, np.ones(9, dtype=bool))


class TestOpening:
    def test_a_new_session_goes_on(self, place):
        made = PrivacyAccountant(1.0, 0.1, **place, who="anna", purpose="protocol 7")
        made.charge(cost(0.75), estimator="Fitter")
        again = PrivacyAccountant(1, **place)
        assert (again.epsilon, again.delta, again.spent()) == (1.0, 0.1, 0.75)
        assert (again.path, again.url) == (made.path, made.url)
        said = again.entries()[["estimator", "who", "purpose"]].values.tolist()
        assert said == [["Fitter", "anna", "protocol 7"]]
        exceeds(again, cost(0.5))

    def test_another_budget_is_refused(self, place):
        for given in ({}, {"delta": 0.1}, {"rehearsal": True}):
            with pytest.raises(FileNotFoundError, match="There is no privacy ledger"):
                PrivacyAccountant(**place, **given)  # only a stated epsilon makes one
        PrivacyAccountant(1.0, 0.1, **place)
        for budget in ((2.0,), (math.inf,), (1.0, 0.5), (1.0, 0.0)):
            with pytest.raises(ValueError, match=r"made with epsilon=1\.0, delta=0\.1"):
                PrivacyAccountant(*budget, **place)
        assert PrivacyAccountant(delta=0.1, **place).epsilon == 1.0
        lose(place)
        PrivacyAccountant(math.inf, **place)
        assert PrivacyAccountant(**place)._ledger.settings[:2] == (math.inf, 0.0)

    @pytest.mark.parametrize("flag", ["rehearsal", "charge_refusals"])
    def test_flags_are_stored(self, place, flag):
        made = PrivacyAccountant(1.0, **place, **{flag: True})
        assert f"{flag}=True" in repr(made)
        again = PrivacyAccountant(1.0, **place, **{flag: True})
        for one in (again, PrivacyAccountant(**place), made.for_dataset("trial")):
            assert getattr(pickle.loads(pickle.dumps(one)), flag) is getattr(one, flag) is True
        refused(f"reopened with {flag}=False", lambda: PrivacyAccountant(**place, **{flag: False}))
        lose(place)
        PrivacyAccountant(1.0, **place)
        with pytest.raises(ValueError, match=f"reopened with {flag}=True"):
            PrivacyAccountant(1.0, **place, **{flag: True})

    def test_no_database_numbers_entries(self):
        """Of two charges that did not see each other, one is too many."""
        made = CreateTable(sql_ledger._ENTRIES).compile(dialect=postgresql.dialect())
        assert "id INTEGER NOT NULL" in str(made)

    def test_pickles_go_on_and_hold_no_entry(self, make):
        accountant = make(9.0)
        accountant.charge(cost(1.0, mechanism="counted"), "hiv-clinic-2019", estimator="Fitter")
        content = pickle.dumps(accountant.for_dataset("trial"))
        for word in (b"hiv-clinic", b"counted", b"Fitter"):
            assert word not in content
        other = pickle.loads(content)
        other.charge(cost(2.0))
        assert accountant.for_dataset("trial").spent() == 2.0
        assert other.for_dataset("hiv-clinic-2019").spent() == 1.0

    @pytest.mark.parametrize("anew", [True, False])
    def test_a_ledger_that_is_gone_or_another(self, place, anew):
        accountant = PrivacyAccountant(1.0, **place)
        accountant.charge(cost(0.25))
        carried = pickle.dumps(accountant)
        lose(place)
        if anew:
            PrivacyAccountant(1.0, **place)
        error, said = (ValueError, "is not the one") if anew else (FileNotFoundError, "not exist")
        for one in (accountant, pickle.loads(carried)):
            assert one.epsilon == 1.0
            assert "ledger unavailable" in repr(one)
            assert "ledger unavailable" in one._repr_html_()
            pickle.dumps(one)
            for call in (one.charge, one.check):
                with pytest.raises(error, match=said):
                    call(cost(0.5))
            refused(said, one.spent, lambda one=one: curve(one), error=error)


class TestAltered:
    @pytest.mark.parametrize(
        "statement",
        [
            *(f"UPDATE ledger SET {one} = 1" for one in ("rehearsal", "charge_refusals")),
            *("UPDATE ledger SET epsilon = 100.0", "UPDATE ledger SET schema_version = 5"),
            "INSERT INTO ledger SELECT * FROM ledger",
            "DELETE FROM ledger",
            "DELETE FROM entries",
            *(f"DELETE FROM entries WHERE id = {one}" for one in (1, 2)),
            *("UPDATE entries SET epsilon = 0.25", "UPDATE entries SET renyi = 0.0"),
            "UPDATE entries SET dataset = 'other' WHERE id = 2",
            "UPDATE entries SET purpose = 'x' WHERE id = 1",
            f"INSERT INTO entries SELECT 0, nonce, {NAMES}, link FROM entries WHERE id = 1",
            "DROP TABLE entries",
        ],
    )
    def test_under_an_accountant(self, place, statement):
        accountant = PrivacyAccountant(1.0, **place)
        for _ in range(2):
            accountant.charge(cost(0.125))
        edit(place, statement)
        refused("ledger", accountant.spent, lambda: accountant.charge(cost(0.125)))

    @pytest.mark.parametrize(
        "change",
        [
            *({"epsilon": -5.0}, {"delta": 1.0}, {"status": "certain"}, {"status": "seeded"}),
            *({"renyi": -1.0}, {"dataset": "default "}),
        ],
    )
    def test_an_entry_that_fits_its_hash_and_no_charge(self, place, change):
        """Whoever may add entries can chain what they like."""
        accountant = PrivacyAccountant(1.0, **place)
        receipt = accountant.charge(cost(0.5))
        entry = accountant._ledger.entries()[0]._replace(**change)
        edit(place, *map(inserted, linked_rows(receipt, [entry])))
        said = r"never charged \((?!it does not fit)"
        refused(said, accountant.spent, lambda: PrivacyAccountant(**place))

    @pytest.mark.parametrize("altered", ["edited", "shorter", "another charge"])
    def test_a_chain_made_anew_does_not_fit_releases(self, place, altered):
        """Whoever may write all can make a whole chain, and not one that releases fit."""
        accountant = PrivacyAccountant(4.0, **place)
        receipts = [accountant.charge(cost(1.0)) for _ in range(3)]
        rows = [list(row[1:-1]) for row in accountant._ledger.rows()]
        if altered == "edited":
            rows[0][4] = 0.5
        elif altered == "shorter":
            rows.pop()
        else:
            rows[2][0] = "0" * 32
        hash_ = start(receipts[0].ledger, LedgerSettings(4.0, 0.0)).hash
        statements = ["DELETE FROM entries"]
        for number, row in enumerate(rows, 1):
            hash_ = linked(hash_, row[0], row[1:])
            statements.append(inserted((number, *row, hash_)))
        edit(place, *statements)
        fresh = PrivacyAccountant(**place)
        fresh.verify()
        refused(r"cut off|another history", lambda: fresh.verify(receipts[-1]))
        refused("lost or changed", accountant.spent)


class TestCommit:
    """A connection may be lost while the database is asked to commit."""

    @pytest.mark.parametrize("committed", [True, False])
    def test_nobody_said_whether(self, place, monkeypatch, committed):
        accountant = PrivacyAccountant(1.0, **place)

        def lost(self, connection):
            if committed:
                connection.commit()
            raise UnansweredCommitError("the connection was lost")

        monkeypatch.setattr(type(accountant._ledger.storage), "commit", lost)
        if committed:
            accountant.verify(accountant.charge(cost(0.5)))
        else:
            refused("Nothing was charged", lambda: accountant.charge(cost(0.5)), error=RuntimeError)
        assert accountant.spent() == 0.5 * committed
        assert len(accountant.entries()) == committed

    def test_it_does_not_come_back(self, place, monkeypatch):
        accountant = PrivacyAccountant(1.0, **place)
        kind = type(accountant._ledger.storage)
        transaction = kind.transaction

        def lost(self, connection):
            monkeypatch.setattr(kind, "transaction", gone)
            raise UnansweredCommitError("the connection was lost")

        def gone(self, **how):
            raise RuntimeError("away")

        monkeypatch.setattr(kind, "commit", lost)
        monkeypatch.setattr(sql_ledger, "_RETURN_SECONDS", -1.0)
        monkeypatch.setattr(sql_ledger.time, "sleep", lambda seconds: pytest.fail("it waits"))
        with pytest.raises(RuntimeError, match="does not say whether it was recorded"):
            accountant.charge(cost(0.5))
        monkeypatch.setattr(kind, "transaction", transaction)
        assert accountant.spent() == 0.0


class TestReceipts:
    def test_settings_begin_the_chain(self):
        settings = LedgerSettings(1.0, 0.1, charge_refusals=True)
        changes = {"epsilon": 2.0, "delta": 0.2, "rehearsal": True, "charge_refusals": False}
        changes |= {"composition": "renyi", "order": 2.0}
        others = [settings._replace(**{name: value}) for name, value in changes.items()]
        heads = {start("a", one).hash for one in (settings, *others)}
        assert len({*heads, start("b", settings).hash}) == 8

    def test_another_budget_is_another_history(self, place):
        """Whoever opens the ledger for the first time sees it, with a release or without."""
        accountant = PrivacyAccountant(1.0, 0.1, charge_refusals=True, **place)
        made = accountant._ledger.receipts()[0]
        accountant.verify(made)
        accountant.charge(cost(0.5))
        accountant.verify(made)
        refused("another history", lambda: accountant.verify(made._replace(hash="0" * 64)))
        for change, back in (
            ("epsilon = 1000.0", "epsilon = 1.0"),
            ("delta = 0.5", "delta = 0.1"),
            ("rehearsal = 1", "rehearsal = 0"),
            ("charge_refusals = 0", "charge_refusals = 1"),
            ("composition = 'renyi', renyi_order = 9.0", "composition = 'basic', renyi_order = 0"),
            ("identity = 'another'", f"identity = '{made.ledger}'"),
        ):
            edit(place, f"UPDATE ledger SET {change}")
            refused("or the settings", lambda: PrivacyAccountant(**place))
            edit(place, f"UPDATE ledger SET {back}")
            PrivacyAccountant(**place).verify()

    def test_another_guarantee_is_not_the_one_that_was_charged(self, make):
        accountant = make(2.0, 1e-6)
        release = curve(accountant).release_
        assert accountant.entries()["guarantee"].tolist() == [digest(release.guarantee.to_dict())]
        accountant.verify(release, type(release).from_json(release.to_json()))
        stated = PrivacyGuarantee(1.0, 1e-6, rho=0.01)
        with_rho = replace(release, guarantee=stated, receipt=accountant.charge(stated))
        accountant.verify(with_rho)
        for one, change in (
            *((release, {name: ("all",)}) for name in ("assumptions", "not_covered")),
            *((release, {name: "elsewhere"}) for name in ("neighbours", "source")),
            *((release, {"public_inputs": {}}), (release, {"epsilon": 0.25})),
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

    def test_each_is_for_one_result_of_one_ledger(self, make):
        accountant = make(2.0)
        first, second = (curve(accountant).release_ for _ in range(2))
        assert [first.receipt.entries, second.receipt.entries] == [1, 2]
        again = type(first).from_json(second.to_json())
        assert again == second
        accountant.verify(first, again, first.receipt, first)
        bare = curve().release_
        refused("charged to no ledger", lambda: accountant.verify(bare))
        uncharged = replace(bare, receipt=first.receipt)
        said = "release 1 has the receipt of another release"
        refused(said, lambda: accountant.verify(first, uncharged))
        refused("another ledger", lambda: PrivacyAccountant(2.0).verify(first))
