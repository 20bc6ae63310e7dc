"""What ends a command early: one line, its own exit code, nothing lost and no cell shown."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading

import pandas as pd
import pytest

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant, Release
from skdpsurv.cli import fitting
from skdpsurv.cli.failures import EXIT_CODES, in_terminal
from skdpsurv.data.target import event_and_time
from skdpsurv.dp import ledger_storage
from skdpsurv.dp.durable import locked
from skdpsurv.release import layout
from tests.cli.study import HORIZON, TARGET

SECRET = "JaneDoe1957"
NUMBER = 8_675_309.25
LEDGER = ("--ledger", "@study.sqlite", "--budget", "5")


def one_line(result, kind):
    """Check that a command ended as that kind does, and return what it said."""
    assert result.exit_code == EXIT_CODES[kind], result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"skdpsurv: {kind}: ")
    assert "Traceback" not in line
    return line


def meanwhile(monkeypatch, act):
    """Do something as the file is read, which is once a charge is known to be possible."""
    real = fitting.read_table

    def late(*arguments):
        act()
        return real(*arguments)

    monkeypatch.setattr(fitting, "read_table", late)


WRONG = (SECRET, NUMBER, "1957-03-02", -43.5, "", float("inf"))


@pytest.mark.parametrize("column", ["age", "stage", "diagnosed", "treated", "days", "died"])
def test_no_cell_is_ever_shown(study, column):
    given = [*((value, ()) for value in WRONG), *((one, ("--dask", "--json")) for one in WRONG[:2])]
    spent = 0.0
    for place, (value, more) in enumerate(given):
        frame = study.frame.astype({column: object})
        frame.loc[7, column] = value
        study.write(frame)
        ledger = (*LEDGER[:3], "9")
        result = study.survival(*ledger, *more, out=f"@{place}.json")
        shown = result.stdout + result.stderr
        for cell in (SECRET, "8675309", "8,675,309", "1957", "43.5"):
            assert cell not in shown
        assert result.exception is None or isinstance(result.exception, SystemExit)
        if result.exit_code:
            assert result.exit_code == EXIT_CODES["data"], shown
            assert len(result.stderr.splitlines()) == 1
        spent += (study.folder / f"{place}.json").exists()
        assert study.spent() == spent


def test_other_commands_show_no_cell_either(study):
    study.survival(code=0)
    for column in ("age", "stage", "treated", "days", "died"):
        frame = study.frame.astype({column: object})
        frame.loc[3, column] = SECRET
        study.write(frame, "new.csv")
        results = [
            study.run(
                *("predict", "@model.json", "@new.csv", "--drop", "id", "--out", f"@{column}.csv")
            ),
            study.run("schema", "@new.csv", "--out", f"@{column}.toml"),
            study.evaluate("--out", f"@{column}.json", data="@new.csv"),
        ]
        for result in results:
            assert SECRET not in result.stdout + result.stderr
            assert result.exit_code in (0, EXIT_CODES["data"]), result.output
        assert SECRET not in (study.folder / f"{column}.toml").read_text()


def test_a_file_without_a_header_shows_none_of_its_first_record(study):
    study.frame.to_csv(study.folder / "bare.csv", index=False, header=False)
    assert "line of names" in one_line(study.survival(data="@bare.csv"), "data")
    (study.folder / "texts.csv").write_text(f"{SECRET},male,a\nKari Zed,male,b\n")
    schema = study.run("schema", "@texts.csv", "--out", "@bare.toml")
    for result in (study.km(data="@texts.csv"), schema):
        assert SECRET not in one_line(result, "data")
    assert not (study.folder / "bare.toml").exists()


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_broken_file_is_refused_without_showing_it(study, more):
    for content in [
        b"",
        b"days,died\n1,1,Secret\n2,0\n",
        b"days,died\n1,1\n2,0,Secret\n",
        b"days,died\n1,1,Secret,Secret\n2,0\n",
        b'days,died\n"Secret,1\n',
        b"days,died\n\xff\xfeSecret,1\n",
        b"\x00\x01Secret",
        b"days,died,days\n1,1,2\n",
        b"days,,died\n1,1,2\n",
    ]:
        (study.folder / "broken.csv").write_bytes(content)
        assert "Secret" not in one_line(study.km(*LEDGER, *more, data="@broken.csv"), "data")
    assert study.spent() == 0.0


def test_a_missing_file_a_folder_without_files_and_times_that_are_dates(study):
    error = json.loads(study.km("--json", data="@nothing.csv", code=3).stderr)
    assert (error["error"], error["exit_code"]) == ("data", 3)
    (study.folder / "empty").mkdir()
    one_line(study.km(*LEDGER, data="@empty"), "data")
    target = ("--time", "diagnosed", "--event", "died")
    assert "not dates" in one_line(study.km(*LEDGER, target=target), "data")
    assert study.spent() == 0.0


# ---- Places.


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(study, monkeypatch):
    (study.folder / "km.json").write_text("mine")
    one_line(study.km(*LEDGER), "output")
    assert (study.folder / "km.json").read_text() == "mine"
    (study.folder / "km.json").unlink()
    said = one_line(study.km(*LEDGER, out="@nowhere/km.json"), "output")
    assert "there is no folder" in said
    assert "nowhere for km.json." in said

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = one_line(study.km(*LEDGER), "output")
    assert "km.json cannot be written: No space left on device." in said
    assert "/." not in said  # the name of a temporary file
    assert study.spent() == 0.0
    assert sorted(path.name for path in study.folder.iterdir()) == ["columns.toml", "study.csv"]


def test_what_was_paid_for_is_never_lost(study, monkeypatch):
    real, failing = layout.save, ["km.json"]

    def save(text, path):
        if path.name in failing or "*" in failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(text, path)

    monkeypatch.setattr(layout, "save", save)
    result = study.km(*LEDGER, code=EXIT_CODES["output"])
    (beside,) = study.folder.glob("km-*.json")
    assert beside.name in result.stderr
    assert Release.load(beside).estimator == "DPKaplanMeierFitter"
    failing.append("*")
    result = study.km(*LEDGER, out="@other.json", code=EXIT_CODES["output"])
    assert Release.from_json(result.stdout).estimator == "DPKaplanMeierFitter"
    assert study.spent() == 2.0
    monkeypatch.setattr(layout, "save", real)
    meanwhile(monkeypatch, lambda: (study.folder / "third.json").write_text("mine"))
    study.km(*LEDGER, out="@third.json", code=EXIT_CODES["output"])
    assert (study.folder / "third.json").read_text() == "mine"
    (beside,) = study.folder.glob("third-*.json")
    assert Release.load(beside).guarantee.epsilon == 1.0
    assert study.spent() == 3.0


# ---- Ledgers.


def test_ledgers_that_are_none_or_that_somebody_holds(study, monkeypatch):
    for content in (b"no ledger", b""):
        (study.folder / "study.sqlite").write_bytes(content)
        one_line(study.km(*LEDGER), "ledger")
    (study.folder / "study.sqlite").unlink()
    monkeypatch.setattr(ledger_storage, "BUSY_SECONDS", 0.2)
    PrivacyAccountant(5.0, path=study.folder / "study.sqlite")
    with locked(study.path("study.sqlite.lock"), 1.0):
        one_line(study.km(*LEDGER), "ledger")
    assert study.spent() == 0.0
    assert not (study.folder / "km.json").exists()


@pytest.mark.parametrize("how", ["lost", "replaced", "restored", "full"])
def test_a_ledger_that_changes_while_the_file_is_read(study, monkeypatch, how):
    study.km(*LEDGER, code=0)
    path = study.folder / "study.sqlite"
    shutil.copy(path, study.folder / "older")
    PrivacyAccountant(5.0, path=study.folder / "another")
    study.km(*LEDGER, out="@second.json", code=0)

    def act():
        if how == "lost":
            path.unlink()
        elif how == "full":
            with sqlite3.connect(path) as connection:
                connection.execute(
                    "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN "
                    "SELECT RAISE(ABORT, 'database or disk is full'); END"
                )
            connection.close()
        else:
            shutil.copy(study.folder / ("older" if how == "restored" else "another"), path)

    meanwhile(monkeypatch, act)
    one_line(study.km(*LEDGER, out="@third.json"), "ledger")
    assert not (study.folder / "third.json").exists()


@pytest.mark.slow
def test_commands_at_once_never_overspend(study):
    """Eight of them want 1 each of a budget of 3."""
    study.run("ledger", "create", "@study.sqlite", "--budget", "3")
    codes = []

    def fit(place):
        command = [
            *(sys.executable, "-m", "skdpsurv", "fit", "km", study.path("study.csv")),
            *(*TARGET, *HORIZON, "--epsilon", "1", "--ledger", study.path("study.sqlite")),
            *("--out", study.path(f"{place}.json")),
        ]
        codes.append(subprocess.run(command, capture_output=True, check=False).returncode)

    threads = [threading.Thread(target=fit, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0] * 3 + [EXIT_CODES["budget"]] * 5
    assert study.spent() == 3.0
    assert len(list(study.folder.glob("?.json"))) == 3


def test_an_error_that_nobody_expects_says_nothing_of_itself(study, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    def broken(*arguments):
        raise RuntimeError(f"{SECRET} is in here")

    monkeypatch.setattr(fitting, "read_table", interrupted)
    assert "the ledger holds its charge" in one_line(study.km(*LEDGER), "interrupted")
    # float has no frame of its own, and quotes what it is given.
    for fails in (broken, lambda *arguments: float(SECRET)):
        monkeypatch.setattr(fitting, "read_table", fails)
        assert SECRET not in one_line(study.km(*LEDGER), "internal")


# ---- Budgets before files.


@pytest.mark.slow
def test_a_budget_that_does_not_do_ends_a_command_before_the_file_is_read(study):
    study.survival(code=0)
    PrivacyAccountant(0.5, path=study.path("study.sqlite"))
    # A row that is too long, which whoever reads finds.
    with open(study.folder / "study.csv", "a") as file:
        file.write(f"{SECRET},1,2,3,4,5,6,7,8,9\n")
    for more in ((), ("--dry-run",)):
        one_line(study.km(*LEDGER[:2], *more), "budget")
        one_line(study.evaluate(*LEDGER[:2], *more), "budget")


@pytest.mark.parametrize("how", ["long", "text", "parquet"])
def test_a_file_that_its_records_make_unreadable_is_charged_where_refusals_are(study, how):
    study.survival(code=0)
    data = "@study.csv"
    if how == "parquet":
        pytest.importorskip("pyarrow")
        data = "@study.parquet"
        study.frame.to_parquet(study.folder / "study.parquet")
        cells = bytearray((study.folder / "study.parquet").read_bytes())
        names = int.from_bytes(cells[-8:-4], "little")  # which stand at the end
        cells[4 : -8 - names] = bytes(len(cells) - names - 12)
        (study.folder / "study.parquet").write_bytes(cells)
    else:
        row = b"a,1,2,3,4,5,6,7,8,9\n" if how == "long" else b"\xff,1,I,now,2001-01-01,1,1,1\n"
        with open(study.folder / "study.csv", "ab") as file:
            file.write(row)
    ledger = ("--ledger", "@study.sqlite")
    PrivacyAccountant(9.0, path=study.path("study.sqlite"), charge_refusals=True)

    def refused(spent, *more, data=data):
        one_line(study.survival(*ledger, *more, data=data, out="@again.json"), "data")
        assert study.spent() == spent

    for command in (study.survival, study.evaluate):
        command(*ledger, "--dry-run", data=data, code=2, says="that do not charge refusals")
    refused(1.0)
    one_line(study.evaluate(*ledger, data=data), "data")
    refused(2.0, data="@nothing.csv")  # what is public costs nothing


# ---- Words.


def test_words_of_other_programs_lead_to_those_of_this_one(study):
    for word, says in [
        ("cox", "survival --link cloglog"),
        ("CoxPH", "survival --link cloglog"),
        ("kaplan-meier", "called km"),
        ("logit", "called logistic"),
    ]:
        said = one_line(study.run("fit", word, "@study.csv", "--out", "@x.json"), "parameter")
        assert says in said
    said = one_line(study.run("plan", "cox", "--records", "100"), "parameter")
    assert "Value error" not in said
    assert "0.05, not 5%" in one_line(study.km("--epsilon", "5%"), "parameter")


def test_words_of_python_become_those_of_the_terminal():
    for event, time, says in [
        ([1, 2], [1.0, 2.0], "the column of --event must be boolean, or 0 and 1."),
        (["a", "b"], [1.0, 2.0], "as in --event-is dead --censored-is alive."),
        ([0, 1], ["1", "2"], "the column of --time must be numbers, which truth values are not."),
    ]:
        with pytest.raises(ValueError, match="must be") as error:
            event_and_time(pd.DataFrame({"died": event, "days": time}))
        assert in_terminal(str(error.value)).endswith(says)
    with pytest.raises(ValueError, match="max_time must") as error:
        DPKaplanMeierFitter(max_time=-1).fit([1.0], [1])
    assert in_terminal(str(error.value)).startswith("--max-time must be")
    assert in_terminal("--set max_time: use --max-time.") == "--set max_time: use --max-time."
