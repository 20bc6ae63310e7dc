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

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.cli import fitting
from skdpsurv.cli.failures import EXIT_CODES
from skdpsurv.dp import ledger_storage
from skdpsurv.dp.ledger_storage import locked
from skdpsurv.release import layout
from tests.cli.study import HORIZON, TARGET

SECRET = "JaneDoe1957"
NUMBER = 8_675_309.25
LEDGER = ("--ledger", "@study.sqlite", "--budget", "5")


def spent(study):
    path = study.folder / "study.sqlite"
    return PrivacyAccountant(path=path).spent() if path.exists() else 0.0


def one_line(result, kind):
    """Check that a command ended as that kind does, and return what it said."""
    assert result.exit_code == EXIT_CODES[kind], result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"skdpsurv: {kind}: ")
    assert "Traceback" not in line
    return line


WRONG = (SECRET, NUMBER, "1957-03-02", -43.5, "", float("inf"))
COLUMNS = ("age", "stage", "diagnosed", "treated", "days", "died")


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    ("value", "more"),
    [*((value, ()) for value in WRONG), *((value, ("--dask", "--json")) for value in WRONG[:2])],
)
def test_no_cell_is_ever_shown(study, column, value, more):
    frame = study.frame.astype({column: object})
    frame.loc[7, column] = value
    study.write(frame)
    result = study.survival(*LEDGER, *more)
    shown = result.stdout + result.stderr
    for cell in (SECRET, "8675309", "8,675,309", "1957", "43.5"):
        assert cell not in shown
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code:
        assert result.exit_code == EXIT_CODES["data"], shown
        assert len(result.stderr.splitlines()) == 1
    assert spent(study) == (study.folder / "model.json").exists()


def test_other_commands_show_no_cell_either(study):
    assert study.survival().exit_code == 0
    for column in ("age", "stage", "treated", "days", "died"):
        frame = study.frame.astype({column: object})
        frame.loc[3, column] = SECRET
        study.write(frame, "new.csv")
        commands = [
            ("predict", "@model.json", "@new.csv", "--drop", "id", "--out", f"@{column}.csv"),
            ("schema", "@new.csv", "--out", f"@{column}.toml"),
            (
                *("evaluate", "@model.json", "@new.csv", *TARGET, "--drop", "id"),
                *("--epsilon", "1", "--out", f"@{column}.json"),
            ),
        ]
        for command in commands:
            result = study.run(*command)
            assert SECRET not in result.stdout + result.stderr
            assert result.exit_code in (0, EXIT_CODES["data"]), result.output
        assert SECRET not in (study.folder / f"{column}.toml").read_text()


def test_a_file_without_a_header_shows_none_of_its_first_record(study):
    study.frame.to_csv(study.folder / "bare.csv", index=False, header=False)
    assert "line of names" in one_line(study.survival(data="@bare.csv"), "data")
    texts = study.frame[["stage", "smoking"]].assign(who=SECRET)
    texts.to_csv(study.folder / "texts.csv", index=False, header=False)
    assert SECRET not in one_line(study.km(data="@texts.csv"), "data")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"days,died\n1,1,Secret\n2,0\n",
        b"days,died\n1,1\n2,0,Secret\n",
        b"days,died\n1,1,Secret,Secret\n2,0\n",
        b'days,died\n"Secret,1\n',
        b"days,died\n\xff\xfeSecret,1\n",
        b"\x00\x01Secret",
        b"days,died,days\n1,1,2\n",
        b"days,,died\n1,1,2\n",
    ],
)
@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_broken_file_is_refused_without_showing_it(study, content, more):
    (study.folder / "broken.csv").write_bytes(content)
    line = one_line(study.km(*LEDGER, *more, data="@broken.csv"), "data")
    assert "Secret" not in line
    assert spent(study) == 0.0


def test_a_missing_file_and_a_folder_without_files(study):
    assert "there is no file" in one_line(study.km(data="@nothing.csv"), "data")
    (study.folder / "empty").mkdir()
    one_line(study.km(data="@empty"), "data")


def test_dates_in_a_time_column_are_refused(study):
    target = ("--time", "diagnosed", "--event", "died")
    assert "not dates" in one_line(study.km(*LEDGER, target=target), "data")
    assert spent(study) == 0.0


def test_json_errors_are_json(study):
    result = study.km("--json", data="@nothing.csv")
    error = json.loads(result.stderr)
    assert (error["error"], error["exit_code"]) == ("data", 3)
    assert result.stdout == ""


# ---- Places.


def test_nothing_is_written_over(study):
    (study.folder / "km.json").write_text("mine")
    assert "exists" in one_line(study.km(*LEDGER), "output")
    assert (study.folder / "km.json").read_text() == "mine"
    assert spent(study) == 0.0


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(study, monkeypatch):
    one_line(study.km(*LEDGER, out="@nowhere/km.json"), "output")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in one_line(study.km(*LEDGER), "output")
    assert spent(study) == 0.0
    assert sorted(path.name for path in study.folder.iterdir()) == ["columns.toml", "study.csv"]


def test_what_was_paid_for_is_never_lost(study, monkeypatch):
    real, failing = layout.save, ["km.json"]

    def save(text, path):
        if path.name in failing or "*" in failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(text, path)

    monkeypatch.setattr(layout, "save", save)
    result = study.km(*LEDGER)
    assert result.exit_code == EXIT_CODES["output"]
    (beside,) = study.folder.glob("km-*.json")
    assert beside.name in result.stderr
    assert Release.load(beside).estimator == "DPKaplanMeierFitter"
    failing.append("*")
    result = study.km(*LEDGER, out="@other.json")
    assert result.exit_code == EXIT_CODES["output"]
    assert "printed to standard output" in result.stderr
    assert Release.from_json(result.stdout).estimator == "DPKaplanMeierFitter"
    assert spent(study) == 2.0


def test_a_file_that_appears_meanwhile_is_not_written_over(study, monkeypatch):
    real = fitting.read_table

    def late(*arguments):
        (study.folder / "km.json").write_text("mine")
        return real(*arguments)

    monkeypatch.setattr(fitting, "read_table", late)
    result = study.km(*LEDGER)
    assert result.exit_code == EXIT_CODES["output"]
    assert (study.folder / "km.json").read_text() == "mine"
    (beside,) = study.folder.glob("km-*.json")
    assert Release.load(beside).guarantee.epsilon == 1.0
    assert spent(study) == 1.0


# ---- Ledgers.


def test_ledgers_that_are_none(study):
    (study.folder / "study.sqlite").write_text("no ledger")
    one_line(study.km(*LEDGER), "ledger")
    (study.folder / "study.sqlite").write_bytes(b"")
    one_line(study.km(*LEDGER), "ledger")
    assert not (study.folder / "km.json").exists()


def test_a_ledger_that_somebody_holds(study, monkeypatch):
    assert study.km(*LEDGER).exit_code == 0
    monkeypatch.setattr(ledger_storage, "BUSY_SECONDS", 0.2)
    with locked(study.path("study.sqlite.lock"), 1.0):
        line = one_line(study.km(*LEDGER, out="@second.json"), "ledger")
    assert "Nothing was charged" in line
    assert spent(study) == 1.0


@pytest.mark.parametrize("how", ["lost", "replaced", "restored", "full"])
def test_a_ledger_that_changes_while_the_file_is_read(study, monkeypatch, how):
    assert study.km(*LEDGER).exit_code == 0
    path = study.folder / "study.sqlite"
    shutil.copy(path, study.folder / "older")
    PrivacyAccountant(5.0, path=study.folder / "another")
    assert study.km(*LEDGER, out="@second.json").exit_code == 0
    real = fitting.read_table

    def late(*arguments):
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
        return real(*arguments)

    monkeypatch.setattr(fitting, "read_table", late)
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
    assert spent(study) == 3.0
    assert len(list(study.folder.glob("?.json"))) == 3


def test_an_interrupted_command_says_what_may_have_been_charged(study, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "read_table", interrupted)
    assert "the ledger holds its charge" in one_line(study.km(*LEDGER), "interrupted")


def test_an_unexpected_error_says_nothing_of_itself(study, monkeypatch):
    def broken(*arguments):
        raise RuntimeError(f"{SECRET} is in here")

    monkeypatch.setattr(fitting, "read_table", broken)
    assert SECRET not in one_line(study.km(*LEDGER), "internal")
    # float has no frame of its own, and quotes what it is given.
    monkeypatch.setattr(fitting, "read_table", lambda *arguments: float(SECRET))
    assert SECRET not in one_line(study.km(*LEDGER), "internal")


def test_a_missing_package_is_named(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    pd.DataFrame().to_csv(study.folder / "study.parquet")
    assert "skdpsurv[distributed]" in one_line(study.km(data="@study.parquet"), "missing package")


def test_every_kind_has_a_code_of_its_own():
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)
    assert 0 not in EXIT_CODES.values()


def test_what_others_call_a_command_or_a_setting_is_answered(study):
    for words, says in (
        (("fit", "cox", "@study.csv"), "survival"),
        (("predct",), "Did you mean 'predict'?"),
    ):
        result = study.run(*words)
        assert result.exit_code == 2
        assert says in result.stderr
    result = study.survival("--set", "penalizer=0.1")
    assert "In its place: alpha." in result.stderr


# ---- Budgets before files.


def test_a_budget_that_does_not_do_ends_a_command_before_the_file_is_read(study, monkeypatch):
    assert study.survival(out="@model.json").exit_code == 0
    PrivacyAccountant(0.5, path=study.path("study.sqlite"))
    # A row that is too long, which whoever reads finds.
    text = (study.folder / "study.csv").read_text()
    (study.folder / "study.csv").write_text(f"{text}{SECRET},1,2,3,4,5,6,7,8,9\n")
    one_line(study.km("--ledger", "@study.sqlite"), "budget")
    one_line(study.km("--ledger", "@study.sqlite", "--dry-run", out="@dry.json"), "budget")
    evaluated = ("evaluate", "@model.json", "@study.csv", *TARGET, "--drop", "id", "--epsilon", "1")
    ledger = ("--ledger", "@study.sqlite", "--out", "@e.json")
    one_line(study.run(*evaluated, *ledger), "budget")
    one_line(study.run(*evaluated, *ledger, "--dry-run"), "budget")


@pytest.mark.parametrize("how", ["long", "text", "parquet"])
def test_a_file_that_its_records_make_unreadable_is_charged_where_refusals_are(study, how):
    assert study.survival(out="@model.json").exit_code == 0
    data, text = "@study.csv", (study.folder / "study.csv").read_bytes()
    if how == "long":
        (study.folder / "study.csv").write_bytes(text + b"a,1,2,3,4,5,6,7,8,9\n")
    elif how == "text":
        (study.folder / "study.csv").write_bytes(text + b"\xff,1,I,now,2001-01-01,1,1,1\n")
    else:
        pytest.importorskip("pyarrow")
        data = "@study.parquet"
        study.frame.to_parquet(study.folder / "study.parquet")
        cells = bytearray((study.folder / "study.parquet").read_bytes())
        names = int.from_bytes(cells[-8:-4], "little")  # which stand at the end
        cells[4 : -8 - names] = bytes(len(cells) - names - 12)
        (study.folder / "study.parquet").write_bytes(cells)
    ledger = ("--ledger", "@study.sqlite")
    accountant = PrivacyAccountant(9.0, path=study.path("study.sqlite"), charge_refusals=True)
    evaluated = ("evaluate", "@model.json", data, *TARGET, "--drop", "id", "--epsilon", "1")
    out = ("--out", "@e.json")
    one_line(study.survival(*ledger, "--dry-run", data=data), "data")
    one_line(study.run(*evaluated, *ledger, *out, "--dry-run"), "data")
    assert accountant.spent() == 0.0
    one_line(study.survival(*ledger, data=data, out="@again.json"), "data")
    assert accountant.spent() == 1.0
    one_line(study.run(*evaluated, *ledger, *out), "data")
    assert accountant.spent() == 2.0
    # What is public costs nothing.
    one_line(study.survival(*ledger, data="@nothing.csv", out="@again.json"), "data")
    assert accountant.spent() == 2.0
