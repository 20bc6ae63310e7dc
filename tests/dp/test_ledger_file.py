"""Tests of the ledger in a file: nobody spends twice, whatever happens to the file."""

import multiprocessing
import os
import pickle
import shutil
import sqlite3
import threading
import time
from functools import partial

import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, sql_ledger
from skdpsurv.dp import ledger as ledgers
from skdpsurv.dp.durable import locked
from skdpsurv.dp.ledger_storage import SQLiteFile

from .conftest import edit
from .costs import cost, refused


class TestFile:
    def test_path_is_absolute(self, tmp_path, monkeypatch):
        with pytest.raises(FileNotFoundError, match="path"):
            PrivacyAccountant(1.0, path=tmp_path / "no" / "ledger.sqlite")
        refused("path", lambda: PrivacyAccountant(1.0, path=b"ledger.sqlite"), error=TypeError)
        monkeypatch.chdir(tmp_path)
        accountant = PrivacyAccountant(1.0, path="my ledger #1?.sqlite")
        assert accountant.path == str(tmp_path / "my ledger #1?.sqlite")
        monkeypatch.chdir("/")
        accountant.charge(cost(0.5))
        assert (tmp_path / "my ledger #1?.sqlite").exists()
        assert PrivacyAccountant(path=tmp_path / "my ledger #1?.sqlite").spent() == 0.5

    @pytest.mark.parametrize("table", ["patients(age)", "ledger(age)", None])
    def test_what_is_no_ledger_is_not_overwritten(self, path, table):
        if table is None:
            path.write_text("records of patients, not to be overwritten" * 100)
        else:
            edit({"path": path}, f"CREATE TABLE {table}")
        before = path.read_bytes()
        refused("is not a privacy ledger", lambda: PrivacyAccountant(1.0, path=path))
        assert path.read_bytes() == before

    def test_failed_charge_leaves_no_lock(self, path):
        with pytest.raises(BudgetExceededError) as error:
            PrivacyAccountant(1.0, path=path).charge(cost(2.0))
        # The error's traceback keeps the frames, and a forgotten connection, alive.
        PrivacyAccountant(path=path).charge(cost(1.0))
        assert error.value.remaining == 1.0

    def test_lock_held_by_somebody_else_is_waited_for(self, path):
        accountant = PrivacyAccountant(1.0, path=path)
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: blocker.execute("COMMIT"))
        timer.start()
        accountant.charge(cost(1.0))
        timer.join()
        blocker.close()
        assert accountant.spent() == 1.0


class TestIdentity:
    @pytest.mark.parametrize("again", [0, 1, 2])
    def test_an_older_copy(self, path, again):
        """Also where as much was charged to it again as it had lost."""
        accountant = PrivacyAccountant(4.0, path=path)
        accountant.charge(cost(1.0))
        backup = shutil.copy(path, f"{path}.backup")
        accountant.charge(cost(1.0))
        carried = pickle.dumps(accountant)
        shutil.copy(backup, path)
        for _ in range(again):
            PrivacyAccountant(path=path).charge(cost(1.0))
        for one in (accountant, pickle.loads(carried)):
            calls = one.remaining, partial(one.charge, cost(1.0))
            refused("restored from an older copy", *calls)

    def test_a_file_cut_off(self, path):
        accountant = PrivacyAccountant(1.0, path=path)
        accountant.charge(cost(1.0))
        path.write_bytes(b"")
        opened = lambda: PrivacyAccountant(1.0, path=path), lambda: PrivacyAccountant(path=path)
        used = accountant.spent, lambda: accountant.charge(cost(0.5))
        refused("is not a privacy ledger", *used, *opened)
        assert path.read_bytes() == b""

    def test_what_is_left_of_a_ledger_is_not_overwritten(self, path):
        path.with_name("ledger.sqlite-journal").write_bytes(b"pages of a charge")
        refused("belongs to a ledger that is gone", lambda: PrivacyAccountant(1.0, path=path))
        path.with_name("ledger.sqlite-journal").unlink()
        assert {one.name for one in path.parent.iterdir()} == {"ledger.sqlite.lock"}
        PrivacyAccountant(1.0, path=path)  # without a draft
        assert {one.name for one in path.parent.iterdir()} == {path.name, "ledger.sqlite.lock"}

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            *(("epsilon", "-5.0"), ("epsilon", "'much'"), ("delta", "1.0")),
            *(("status", "'certain'"), ("dataset", "'default '"), ("mechanism", "x'00'")),
        ],
    )
    def test_an_entry_that_was_never_charged(self, path, column, value):
        PrivacyAccountant(1.0, path=path).charge(cost(0.5))
        accountant = PrivacyAccountant(path=path)
        PrivacyAccountant(path=path).charge(cost(0.25))
        edit({"path": path}, f"UPDATE entries SET {column} = {value} WHERE id = 2")
        calls = lambda: accountant.charge(cost(0.125)), lambda: PrivacyAccountant(path=path)
        refused("never charged", accountant.spent, *calls)

    @pytest.mark.parametrize(
        ("terms", "said"),
        [
            *((f"epsilon = {wrong}", "settings") for wrong in (-1.0, 0.0, "'much'")),
            *((wrong, "settings") for wrong in ("composition = 'renyi'", "renyi_order = 9.0")),
            ("schema_version = 5", "schema version 5"),
        ],
    )
    def test_terms_that_no_ledger_has(self, path, terms, said):
        PrivacyAccountant(1.0, path=path)
        edit({"path": path}, f"UPDATE ledger SET {terms}")
        refused(said, lambda: PrivacyAccountant(path=path))

    def test_links(self, path):
        """Symbolic links are one ledger with one lock; hard links would have two locks."""
        accountant = PrivacyAccountant(1.0, path=path)
        (path.parent / "elsewhere").mkdir()
        link = path.parent / "elsewhere" / "link.sqlite"
        link.symlink_to(path)
        other = PrivacyAccountant(path=link)
        assert other.path == accountant.path
        other.charge(cost(0.75))
        assert accountant.spent() == 0.75
        assert not link.with_name("link.sqlite.lock").exists()
        hard = path.with_name("hard.sqlite")
        os.link(path, hard)
        refused("has 2 names", accountant.spent, lambda: PrivacyAccountant(path=hard))


def spend_under_a_reader(path, reading, answers):
    """Charge as often as fits, while another thread opens and closes the file all the time."""
    accountant = PrivacyAccountant(path=path)
    stop, charged = threading.Event(), 0

    def read():
        while not stop.is_set():
            path.read_bytes()
            time.sleep(0.0002)

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()
    for _ in range(25):
        try:
            accountant.charge(cost(0.1))
            charged += 1
        except Exception:  # refused; without a lock, also a ledger that lost entries
            time.sleep(0.002)
    stop.set()
    thread.join()
    answers.put(charged)


class TestLock:
    @pytest.mark.slow
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads
    def test_readers_of_the_file_let_nobody_in(self, tmp_path):
        """Of SQLite's own locks, such a reader leaves none: half of the ledgers were overspent."""
        context = multiprocessing.get_context("fork")
        for turn in range(8):
            path = tmp_path / f"{turn}.sqlite"
            accountant = PrivacyAccountant(1.0, path=path)
            answers, reading = context.SimpleQueue(), context.Barrier(4)
            spend = partial(spend_under_a_reader, path, reading, answers)
            processes = [context.Process(target=spend) for _ in range(4)]
            for process in processes:
                process.start()
            charged = [answers.get() for _ in processes]
            for process in processes:
                process.join()
            assert sum(charged) == len(accountant.entries()) == 10

    def test_charges_and_reads_wait_for_it(self, path, monkeypatch):
        monkeypatch.setattr("skdpsurv.dp.ledger_storage.BUSY_SECONDS", 0.05)
        accountant = PrivacyAccountant(1.0, path=path)
        with locked(f"{path}.lock", 1.0):
            path.read_bytes()
            path.with_name(f"{path.name}.lock").read_bytes()  # another opening does not end it
            calls = lambda: accountant.charge(cost(0.5)), accountant.entries
            refused("could not be locked", *calls, error=RuntimeError)
        accountant.charge(cost(0.5))
        assert accountant.spent() == 0.5

    def test_a_lock_removed_while_waited_for_is_none(self, path):
        """Who waited for the removed file would be alone with it."""
        entered, leave = threading.Event(), threading.Event()

        def wait():
            with locked(str(path), 30.0):
                entered.set()
                leave.wait(30.0)

        def remove():
            waiting.start()
            time.sleep(0.05)
            path.unlink()

        waiting = threading.Thread(target=wait)
        with pytest.raises(RuntimeError, match="removed while it was held"), locked(str(path), 1.0):
            remove()
        assert entered.wait(30.0)
        with pytest.raises(RuntimeError, match="by another process"), locked(str(path), 0.0):
            pass
        leave.set()
        waiting.join()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_child_forked_meanwhile_does_not_keep_it(self, path):
        end, other_end = os.pipe()
        with locked(str(path), 1.0):
            child = os.fork()
            if child == 0:
                os.close(other_end)
                os.read(end, 1)  # until the parent closes the pipe
                os._exit(0)
        with locked(str(path), 0.0):
            pass
        os.close(other_end)
        os.waitpid(child, 0)
        os.close(end)


class TestFilesThatDoNotKeepWhatIsWritten:
    @pytest.mark.parametrize(
        ("when", "does"),
        [
            ("AFTER", "DELETE FROM entries WHERE id = NEW.id"),
            ("BEFORE", "SELECT RAISE(IGNORE)"),
            ("AFTER", "UPDATE entries SET dataset = 'x' WHERE id = NEW.id"),
            ("AFTER", "UPDATE entries SET epsilon = 0.001 WHERE id = 1"),
        ],
    )
    def test_a_trigger(self, path, when, does):
        accountant = PrivacyAccountant(1.0, path=path)
        accountant.charge(cost(0.125))
        trigger = f"CREATE TRIGGER other {when} INSERT ON entries BEGIN {does}; END"
        edit({"path": path}, trigger)
        refused("does not keep what is written", lambda: accountant.charge(cost(0.75)))
        assert accountant.spent() == 0.125

    def test_a_charge_outlasts_a_power_cut(self, path):
        """SQLite syncs the folder too, once the journal is gone: a journal undoes a charge."""
        PrivacyAccountant(1.0, path=path)
        with SQLiteFile(str(path)).transaction(write=True) as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3  # EXTRA
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"

    def test_a_journal_of_another_kind(self, path):
        accountant = PrivacyAccountant(1.0, path=path)
        edit({"path": path}, "PRAGMA journal_mode=WAL")
        refused("journal_mode=delete", lambda: accountant.charge(cost(0.75)))

    def test_a_lock_that_is_removed_while_it_is_held(self, path, monkeypatch):
        """What was written may be undone by somebody with a lock of another file."""
        accountant = PrivacyAccountant(1.0, path=path)
        original = ledgers.require_room

        def remove(*args):
            os.unlink(f"{path}.lock")
            original(*args)

        monkeypatch.setattr(ledgers, "require_room", remove)
        with pytest.raises(RuntimeError, match="removed while it was held"):
            accountant.charge(cost(0.75))


def test_readers_at_once_add_an_entry_up_once(path, monkeypatch):
    """Threads share the lock to read: another may read between what one finds and what it keeps."""
    writer = PrivacyAccountant(10.0, path=path)
    writer.charge(cost(1.0))
    reader = PrivacyAccountant(path=path)
    writer.charge(cost(1.0))
    ledger, rows = reader._ledger, writer._ledger.rows()
    real, stored = ledger._checked, (ledger.identity, ledger.settings, "")
    monkeypatch.setattr(sql_ledger, "_stored", lambda connection, storage: stored)
    monkeypatch.setattr(sql_ledger, "_fetched", lambda connection: rows)

    def interrupted(*arguments):
        monkeypatch.setattr(ledger, "_checked", real)
        ledger._read(None)
        return real(*arguments)

    monkeypatch.setattr(ledger, "_checked", interrupted)
    ledger._read(None)
    monkeypatch.undo()
    assert reader.spent() == 2.0
