"""Tests of moving a ledger: one budget is in one place."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import pytest

from skdpsurv.privacy import BudgetExceededError, PrivacyAccountant
from skdpsurv.privacy.ledger_copy import copy_ledger
from skdpsurv.privacy.sqlite_file import SQLiteFile

from .costs import cost


def at(place):
    return {"url" if "://" in place else "path": place}


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    return (
        str(tmp_path / "new.sqlite") if request.param == "file" else request.getfixturevalue("url")
    )


def test_all_goes_on_in_the_other_place(path, place):
    accountant = PrivacyAccountant(2.0, 1e-6, path=path, charge_refusals=True)
    receipts = [accountant.charge(cost(0.5), "trial", estimator="Fitter") for _ in range(3)]
    moved = copy_ledger(str(path), place)
    again = PrivacyAccountant(**at(place))
    assert again.entries().equals(PrivacyAccountant(**at(place)).entries())
    assert (again.epsilon, again.delta, again.charge_refusals) == (2.0, 1e-6, True)
    assert again.for_dataset("trial").spent() == 1.5
    again.verify(*receipts)
    assert moved.identity == receipts[0].ledger
    with pytest.raises(BudgetExceededError):
        again.charge(cost(1.0), "trial")
    for call in (
        lambda: accountant.charge(cost(0.1)),
        accountant.spent,
        lambda: PrivacyAccountant(path=path),
        lambda: copy_ledger(str(path), f"{path}.third"),
    ):
        with pytest.raises(ValueError, match="was moved to"):
            call()
    with pytest.raises(FileExistsError):
        copy_ledger(str(path), place)


def test_a_destination_that_failed_is_copied_to_again(path, tmp_path, monkeypatch):
    PrivacyAccountant(2.0, path=path).charge(cost(0.5))
    new = str(tmp_path / "new.sqlite")
    make = SQLiteFile.make_if_missing

    def fail(self, write):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(SQLiteFile, "make_if_missing", fail)
    with pytest.raises(RuntimeError, match="disk is full"):
        copy_ledger(str(path), new)
    monkeypatch.setattr(SQLiteFile, "make_if_missing", make)
    with pytest.raises(ValueError, match="was moved to"):
        PrivacyAccountant(path=path)
    copy_ledger(str(path), new)
    assert PrivacyAccountant(path=new).spent() == 0.5


def test_an_altered_ledger_is_not_copied(path, tmp_path):
    PrivacyAccountant(2.0, path=path).charge(cost(0.5))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entries SET epsilon = 0.125")
    new = tmp_path / "new.sqlite"
    with pytest.raises(ValueError, match="never charged"):
        copy_ledger(str(path), str(new))
    assert not new.exists()


@pytest.mark.parametrize("version", [2, 3])
def test_files_of_earlier_versions(path, place, version):
    renyi = version == 3
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE ledger(schema_version INTEGER NOT NULL, identity TEXT NOT NULL, "
            "epsilon REAL NOT NULL, delta REAL NOT NULL, rehearsal INTEGER NOT NULL, "
            "charge_refusals INTEGER NOT NULL"
            + ", composition TEXT NOT NULL, renyi_order REAL NOT NULL" * renyi
            + ")"
        )
        connection.execute(
            'CREATE TABLE entries(id INTEGER PRIMARY KEY, serial TEXT NOT NULL, "when" TEXT NOT '
            "NULL, estimator TEXT NOT NULL, mechanism TEXT NOT NULL, epsilon REAL NOT NULL, "
            "delta REAL NOT NULL, status TEXT NOT NULL, dataset TEXT NOT NULL"
            + ", renyi REAL NOT NULL" * renyi
            + ")"
        )
        terms = (version, "a" * 32, 2.0, 0.0, 0, 0, *("basic", 0.0) * renyi)
        connection.execute(f"INSERT INTO ledger VALUES ({', '.join('?' * len(terms))})", terms)
        entry = (1, "b" * 32, "2026-01-01T00:00:00+00:00", "Fitter", "counts", 0.5, 0.0)
        entry = (*entry, "proved", "default", *(math.inf,) * renyi)
        connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(entry))})", entry)
    with pytest.raises(ValueError, match=f"schema version {version}"):
        PrivacyAccountant(path=path)
    copy_ledger(str(path), place)
    accountant = PrivacyAccountant(**at(place))
    assert (accountant.epsilon, accountant.spent()) == (2.0, 0.5)
    accountant.charge(cost(0.5))
    with pytest.raises(ValueError, match="schema version 0"):
        copy_ledger(str(path), f"{path}.third")


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        copy_ledger(str(tmp_path / "none.sqlite"), str(tmp_path / "new.sqlite"))
    assert not (tmp_path / "new.sqlite").exists()
