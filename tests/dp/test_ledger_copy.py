"""Tests of moving a ledger: one budget is in one place."""

import os

import pytest

from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.ledger_copy import copy_ledger
from skdpsurv.dp.ledger_storage import UnansweredCommitError, storage_at

from .conftest import edit, run
from .costs import cost, exceeds, refused


@pytest.fixture
def target(place):
    """The address of the place where a copy is to be."""
    return next(iter(place.values()))


@pytest.fixture
def source(path):
    """Return a ledger that spent 0.5 of 2, and a check that it is open."""
    accountant = PrivacyAccountant(2.0, path=path)
    accountant.charge(cost(0.5))

    def opens():
        for one in (accountant, PrivacyAccountant(path=path)):
            one.charge(cost(0.125))

    return str(path), opens


def named(place, one, other):
    """Give the ledger at a place another name."""
    if "path" in place:
        os.rename(place["path"] + one, place["path"] + other)
    else:
        run(place["url"], f"ALTER SCHEMA skdpsurv{one} RENAME TO skdpsurv{other}")


def test_all_goes_on_in_the_other_place(path, place, target):
    accountant = PrivacyAccountant(2.0, 1e-6, path=path, charge_refusals=True)
    receipts = [accountant.charge(cost(0.5), "trial", estimator="Fitter") for _ in range(3)]
    moved = copy_ledger(str(path), target)
    again = PrivacyAccountant(**place)
    assert again.entries().equals(PrivacyAccountant(**place).entries())
    assert (again.epsilon, again.delta, again.charge_refusals) == (2.0, 1e-6, True)
    assert again.for_dataset("trial").spent() == 1.5
    again.verify(*receipts)
    assert moved.identity == receipts[0].ledger
    exceeds(again.for_dataset("trial"), cost(1.0))
    refused(
        "was moved to",
        lambda: accountant.charge(cost(0.1)),
        accountant.spent,
        lambda: PrivacyAccountant(path=path),
        lambda: copy_ledger(str(path), f"{path}.third"),
    )
    assert again.entries()["status"].tolist() == ["proved"] * 3 + ["closed", "opened"]
    PrivacyAccountant(0.5, path=f"{path}.other")
    with pytest.raises(FileExistsError):
        copy_ledger(f"{path}.other", target)
    assert PrivacyAccountant(path=f"{path}.other").remaining() == 0.5


def test_one_budget_is_copied_once(source, place, target):
    """Also if the copy has another name since, which only whoever renamed it knows."""
    old, _ = source
    copy_ledger(old, target)
    first = PrivacyAccountant(**place)
    first.charge(cost(1.5))
    named(place, "", "_away")
    refused("was moved to", *[lambda: copy_ledger(old, target)] * 2)
    named(place, "_away", "")
    assert PrivacyAccountant(**place).remaining() == 0.0


def test_a_destination_that_was_not_made_leaves_the_source_open(source, place, target, monkeypatch):
    old, opens = source
    kind = type(storage_at(target))

    def fail(self, write):
        raise RuntimeError("the disk is full")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(kind, "make_if_missing", fail)
            refused("disk is full", lambda: copy_ledger(old, target), error=RuntimeError)
        opens()
    copy_ledger(old, f"{old}.third")  # elsewhere
    assert PrivacyAccountant(path=f"{old}.third").spent() == 1.0


@pytest.mark.parametrize("made", [True, False, "by another"])
def test_nobody_knows_whether_the_destination_was_made(source, place, target, monkeypatch, made):
    old, _ = source
    kind = type(storage_at(target))
    make = kind.make_if_missing

    def lost(self, write):
        if made is True:
            make(self, write)
        raise UnansweredCommitError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "make_if_missing", lost)
        refused("stays closed", lambda: copy_ledger(old, target), error=RuntimeError)
    moved = lambda: PrivacyAccountant(path=old), lambda: copy_ledger(old, f"{old}.third")
    refused("was moved to", *moved)
    with monkeypatch.context() as patch:  # a definite failure now says nothing of then
        patch.setattr(kind, "make_if_missing", lambda self, write: 1 / 0)
        patch.setattr(kind, "exists", lambda self: self.name == old)
        with pytest.raises(ZeroDivisionError):
            copy_ledger(old, target)
    refused("was moved to", *moved)
    if made == "by another":
        PrivacyAccountant(9.0, **place)
        with pytest.raises(FileExistsError, match="another ledger"):
            copy_ledger(old, target)
        refused("was moved to", *moved)
        return
    if made:
        PrivacyAccountant(**place).charge(cost(1.0))
    copy_ledger(old, target)
    assert PrivacyAccountant(**place).spent() == 0.5 + made
    refused("was moved to", lambda: copy_ledger(old, target))


def test_a_closed_ledger_is_not_opened_by_its_row(path, tmp_path):
    accountant = PrivacyAccountant(2.0, path=path)
    accountant.charge(cost(0.5))
    new = tmp_path / "new.sqlite"
    copy_ledger(str(path), str(new))
    edit({"path": path}, "UPDATE ledger SET moved_to = ''")
    refused("was moved to", lambda: PrivacyAccountant(path=path), accountant.spent)
    edit({"path": path}, "DELETE FROM entries WHERE id = 3")
    refused("was moved to", lambda: PrivacyAccountant(path=path))
    # Without the step itself it is the older copy that it was, as releases of the new place show.
    receipt = PrivacyAccountant(path=new).charge(cost(0.5))
    edit({"path": path}, "DELETE FROM entries WHERE id = 2")
    refused("cut off", lambda: PrivacyAccountant(path=path).verify(receipt))


def test_steps_of_a_move_cannot_be_charged(path):
    accountant = PrivacyAccountant(2.0, path=path)
    for status in ("closed", "moved", "opened"):
        with pytest.raises(ValueError, match="status must be"):
            accountant.charge(cost(0.5, status=status))


def test_an_altered_ledger_is_not_copied(path, tmp_path):
    PrivacyAccountant(2.0, path=path).charge(cost(0.5))
    edit({"path": path}, "UPDATE entries SET epsilon = 0.125")
    new = tmp_path / "new.sqlite"
    refused("never charged", lambda: copy_ledger(str(path), str(new)))
    with pytest.raises(FileNotFoundError):
        copy_ledger(str(tmp_path / "none.sqlite"), str(new))
    assert not new.exists()
