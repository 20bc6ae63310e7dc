"""Tests of moving a ledger: one budget is in one place."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant
from skdpsurv.dp.ledger_copy import copy_ledger
from skdpsurv.dp.ledger_storage import UnansweredCommitError, storage_at

from .conftest import run
from .costs import cost


def at(place):
    return {"url" if "://" in place else "path": place}


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    return (
        str(tmp_path / "new.sqlite") if request.param == "file" else request.getfixturevalue("url")
    )


@pytest.fixture
def source(path):
    """Return a ledger that spent 0.5 of 2, and a check that it is open."""
    accountant = PrivacyAccountant(2.0, path=path)
    accountant.charge(cost(0.5))

    def opens():
        for one in (accountant, PrivacyAccountant(path=path)):
            one.charge(cost(0.125))

    return str(path), opens


def away(place, tmp_path):
    """Give what is at a place another name; return what brings it back."""
    if "://" not in place:
        os.rename(place, f"{place}.away")
        return lambda: os.rename(f"{place}.away", place)
    run(place, "ALTER SCHEMA skdpsurv RENAME TO away")
    return lambda: run(place, "ALTER SCHEMA away RENAME TO skdpsurv")


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
    assert again.entries()["status"].tolist() == ["proved"] * 3 + ["closed", "opened"]
    PrivacyAccountant(0.5, path=f"{path}.other")
    with pytest.raises(FileExistsError):
        copy_ledger(f"{path}.other", place)
    assert PrivacyAccountant(path=f"{path}.other").remaining() == 0.5


def test_one_budget_is_copied_once(source, place, tmp_path):
    """Also if the copy has another name since, which only whoever renamed it knows."""
    old, _ = source
    copy_ledger(old, place)
    first = PrivacyAccountant(**at(place))
    first.charge(cost(1.5))
    gone = away(place, tmp_path)
    for _ in range(2):
        with pytest.raises(ValueError, match="was moved to"):
            copy_ledger(old, place)
    gone()
    assert PrivacyAccountant(**at(place)).remaining() == 0.0


def test_a_destination_that_was_not_made_leaves_the_source_open(source, place, monkeypatch):
    old, opens = source
    kind = type(storage_at(place))

    def fail(self, write):
        raise RuntimeError("the disk is full")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(kind, "make_if_missing", fail)
            with pytest.raises(RuntimeError, match="disk is full"):
                copy_ledger(old, place)
        opens()
    third = f"{old}.third"
    copy_ledger(old, third)  # elsewhere
    accountant = PrivacyAccountant(path=third)
    assert accountant.spent() >= 0.5
    accountant.verify()


@pytest.mark.parametrize("made", [True, False])
def test_nobody_knows_whether_the_destination_was_made(source, place, monkeypatch, made):
    old, _ = source
    kind = type(storage_at(place))
    make = kind.make_if_missing

    def lost(self, write):
        if made:
            make(self, write)
        raise UnansweredCommitError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "make_if_missing", lost)
        with pytest.raises(RuntimeError, match="stays closed"):
            copy_ledger(old, place)
    with pytest.raises(ValueError, match="was moved to"):
        PrivacyAccountant(path=old)
    with pytest.raises(ValueError, match="was moved to"):
        copy_ledger(old, f"{old}.third")
    with monkeypatch.context() as patch:  # a definite failure now says nothing of then
        patch.setattr(kind, "make_if_missing", lambda self, write: 1 / 0)
        patch.setattr(kind, "exists", lambda self: self.name == old)
        with pytest.raises(ZeroDivisionError):
            copy_ledger(old, place)
    with pytest.raises(ValueError, match="was moved to"):
        PrivacyAccountant(path=old)
    if made:
        PrivacyAccountant(**at(place)).charge(cost(1.0))
    copy_ledger(old, place)
    assert PrivacyAccountant(**at(place)).spent() == 0.5 + made
    with pytest.raises(ValueError, match="was moved to"):
        copy_ledger(old, place)


def test_another_ledger_where_the_copy_should_be(path, place, monkeypatch):
    """Of a copy whose outcome is not known, the destination holds what was copied, or nothing."""
    PrivacyAccountant(2.0, path=path).charge(cost(0.5))
    kind = type(storage_at(place))

    def lost(self, write):
        raise UnansweredCommitError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "make_if_missing", lost)
        with pytest.raises(RuntimeError, match="stays closed"):
            copy_ledger(str(path), place)
    PrivacyAccountant(9.0, **at(place))
    with pytest.raises(FileExistsError, match="another ledger"):
        copy_ledger(str(path), place)
    with pytest.raises(ValueError, match="was moved to"):
        PrivacyAccountant(path=path)


def test_a_closed_ledger_is_not_opened_by_its_row(path, tmp_path):
    accountant = PrivacyAccountant(2.0, path=path)
    accountant.charge(cost(0.5))
    copy_ledger(str(path), str(tmp_path / "new.sqlite"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE ledger SET moved_to = ''")
    for call in (lambda: PrivacyAccountant(path=path), accountant.spent):
        with pytest.raises(ValueError, match="was moved to"):
            call()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE id = 3")
    with pytest.raises(ValueError, match="was moved to"):
        PrivacyAccountant(path=path)
    # Without the step itself it is the older copy that it was, as releases of the new place show.
    receipt = PrivacyAccountant(path=tmp_path / "new.sqlite").charge(cost(0.5))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE id = 2")
    with pytest.raises(ValueError, match="cut off"):
        PrivacyAccountant(path=path).verify(receipt)


def test_steps_of_a_move_cannot_be_charged(path):
    accountant = PrivacyAccountant(2.0, path=path)
    for status in ("closed", "moved", "opened"):
        with pytest.raises(ValueError, match="status must be"):
            accountant.charge(cost(0.5, status=status))


def test_an_altered_ledger_is_not_copied(path, tmp_path):
    PrivacyAccountant(2.0, path=path).charge(cost(0.5))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entries SET epsilon = 0.125")
    new = tmp_path / "new.sqlite"
    with pytest.raises(ValueError, match="never charged"):
        copy_ledger(str(path), str(new))
    with pytest.raises(FileNotFoundError):
        copy_ledger(str(tmp_path / "none.sqlite"), str(new))
    assert not new.exists()
