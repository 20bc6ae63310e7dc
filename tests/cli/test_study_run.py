"""skdpsurv study run and check: one charge, by the hash that was signed, and what belongs to it."""

import json

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.study import Protocol

TOML = """
title = "Stage and survival"
dataset = "registry"
owner = "A. Curie"
purpose = "protocol 7"
schema = "columns.toml"
[outcome]
time = "days"
event = "died"
person = "id"
max_time = 3650
[budget]
epsilon = 3
ledger = "{ledger}"
[[analyses]]
kind = "curves"
by = "stage"
"""


@pytest.fixture
def signed(study):
    """A folder with a protocol, and the command that runs it."""
    (study.folder / "protocol.toml").write_text(TOML.format(ledger=study.path("l.sqlite")))
    protocol = Protocol.from_toml(study.folder / "protocol.toml")

    def run(*more, data="@study.csv", sha256=protocol.sha256, **expected):
        given = ("study", "run", "@protocol.toml", data, "--hash", sha256, "--out", "@out")
        return study.run(*given, *more, **expected)

    study.run_study = run
    return study


def test_a_study_of_made_up_people_is_refused(signed):
    PrivacyAccountant(5.0, path=signed.path("l.sqlite"))
    signed.write(signed.frame.assign(made_up=True), "made.csv")
    signed.run_study(data="@made.csv", code=3, says="made-up people, as its column made_up says")
    assert spent(signed) == 0.0


@pytest.mark.slow
def test_a_study_from_the_command_line(signed):
    signed.run_study(code=6, says="no privacy ledger")
    PrivacyAccountant(5.0, path=signed.path("l.sqlite"))
    signed.run_study(sha256="0" * 64, code=4, says="--hash must be that of the signed protocol")
    signed.write(signed.frame.assign(days=-7654.0), "bad.csv")
    assert "7654" not in signed.run_study(data="@bad.csv", code=3).output
    assert spent(signed) == 0.0
    found = json.loads(signed.run_study("--json", code=0).stdout)
    assert (found["released"], found["lost"], found["ledger"]["spent"]) == (["curves"], [], 3.0)
    assert (signed.folder / "out" / "report.html").exists()
    kept = (signed.folder / "out" / "releases" / "curves.json").read_bytes()
    says = "released before: nothing was charged or drawn. Report:"
    signed.run_study(data="@nothing.csv", code=0, says=says)  # which nobody opens
    assert (signed.folder / "out" / "releases" / "curves.json").read_bytes() == kept
    assert spent(signed) == 3.0
    signed.run("study", "check", "@out", code=0, says="belong together")
    verify = ("ledger", "verify", "@l.sqlite", "--release", "@out/releases/curves.json")
    signed.run(*verify, code=6, says="skdpsurv study check says whether the releases in its folder")
    (signed.folder / "l.sqlite").rename(signed.folder / "moved.sqlite")
    signed.run("study", "check", "@out", code=6, says="no privacy ledger")
    signed.run("study", "check", "@out", "--ledger", "@moved.sqlite", code=0, says="belong")
    PrivacyAccountant(5.0, path=signed.path("l.sqlite"))
    signed.run("study", "check", "@out", code=9, says="charged to another ledger")
    (signed.folder / "l.sqlite").unlink()
    (signed.folder / "moved.sqlite").rename(signed.folder / "l.sqlite")
    (signed.folder / "out" / "releases" / "curves.json").write_bytes(kept + b"\n")
    signed.run("study", "check", "@out", code=9, says="curves.json is not the file")
    signed.run("study", "check", "@", code=3, says="there is no study")
    (signed.folder / "taken").mkdir()
    (signed.folder / "taken" / "file").touch()
    given = ("@protocol.toml", "@study.csv", "--hash", found_hash(signed), "--out", "@taken")
    signed.run("study", "run", *given, code=7, says="must be a new folder")
    [entry] = signed.json("ledger", "show", "@l.sqlite")["entries"]
    assert (entry["purpose"], entry["dataset"]) == ("protocol 7", "registry")


def spent(signed):
    return PrivacyAccountant(path=signed.path("l.sqlite")).for_dataset("registry").spent()


def found_hash(signed):
    return Protocol.from_toml(signed.folder / "protocol.toml").sha256


def test_no_room_in_the_ledger(signed):
    PrivacyAccountant(2.0, path=signed.path("l.sqlite"))
    signed.run_study(code=5)
    assert spent(signed) == 0.0
