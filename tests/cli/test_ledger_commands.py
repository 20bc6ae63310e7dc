"""Tests of skdpsurv ledger: verify and copy, and a server's address in place of a file."""

import json
import math

import numpy as np
import pandas as pd

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.dp import PrivacyGuarantee
from tests.dp.conftest import server, url  # noqa: F401, fixtures

TIMES, EVENTS = np.arange(9.0) / 2, np.ones(9, dtype=bool)


def charged(study, ledger, name):
    """Fit, charge a ledger and save the release; return its name for a command."""
    accountant = PrivacyAccountant(2.0, path=study.path(f"{ledger}.sqlite"))
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant)
    fitter.fit(TIMES, EVENTS).release_.save(study.path(f"{name}.json"))
    return f"@{name}.json"


def test_verify_and_copy(study):
    release, *others = (charged(study, "l", name) for name in "ab")
    verify = ("ledger", "verify", "@l.sqlite", "--release")
    found = study.json(*verify, release, "--release", *others)
    assert found["verified"]["entries"] == 2
    study.run(*verify, charged(study, "other", "c"), code=6, says="charged to another ledger")
    study.run("ledger", "copy", "@l.sqlite", "@new.sqlite", code=0)
    study.run("ledger", "verify", "@new.sqlite", "--release", release, code=0)
    study.run("ledger", "show", "@l.sqlite", code=6, says="was moved to")
    for old in ("@l.sqlite", "@none.sqlite"):
        study.run("ledger", "copy", old, "@third.sqlite", code=6)


def test_one_command_prints_for_machines_and_the_next_for_people(study):
    charged(study, "l", "a")
    assert study.json("ledger", "show", "@l.sqlite")["ledger"]["spent"] == 0.5
    for fails in (("ledger", "show", "@none.sqlite"), ("ledger", "verify", "@l.sqlite")):
        assert not study.run(*fails).output.startswith("{")
    error = study.run("ledger", "show", "@none.sqlite", "--json", code=6).stderr
    assert json.loads(error)["error"] == "ledger"


def test_one_charge_does_not_pay_for_two_releases(study):
    release = charged(study, "l", "one")
    content = json.loads((study.folder / "one.json").read_text())
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(TIMES, EVENTS)
    content["values"] = json.loads(fitter.release_.to_json())["values"]
    (study.folder / "other.json").write_text(json.dumps(content))
    verify = ("ledger", "verify", "@l.sqlite", "--release", "@other.json")
    study.run(*verify, code=0)
    given = (*verify[:4], release, *verify[3:])
    said = study.run(*given, code=6, says="release 1 has the receipt of another")
    assert f"1: {study.path('other.json')!r}" in said.output


def test_purpose_and_who(study):
    study.write(pd.DataFrame({"t": TIMES, "e": 1}))
    fit = ("fit", "km", "@study.csv", "--time", "t", "--event", "e", "--max-time", 5)
    fit += ("--epsilon", 0.5, "--out")
    said, ledger = ("--purpose", "protocol 7", "--who", "anna"), ("--ledger", "@l.sqlite")
    study.run(*fit, "@a.json", *ledger, "--budget", 2, *said, code=0)
    [entry] = study.json("ledger", "show", "@l.sqlite")["entries"]
    assert (entry["purpose"], entry["who"]) == ("protocol 7", "anna")
    for option in (said[:2], said[2:]):
        study.run(*fit, "@b.json", *option, code=2, says=f"{option[0]} needs --ledger")
    study.run(*fit, "@b.json", *ledger, *said, "--dry-run", code=0)
    assert study.spent("l") == 0.5


def test_show_prints_a_true_pair(study):
    accountant = PrivacyAccountant(3.0, 1e-6, path=study.path("l.sqlite"), composition="renyi")
    for _ in range(100):
        accountant.charge(PrivacyGuarantee(0.05))
    assert accountant.spent() < 5.0
    study.run("ledger", "show", "@l.sqlite", code=0, says="delta 1e-06 of 1e-06")
    free = PrivacyAccountant(math.inf, path=study.path("free.sqlite"))
    free.charge(PrivacyGuarantee(0.5, 1e-9))
    study.run("ledger", "show", "@free.sqlite", code=0, says="delta 1e-09 of no limit")


def test_a_server(url, study):  # noqa: F811
    study.run("ledger", "show", url, code=6)
    study.run("ledger", "create", url, "--budget", "3", code=0)
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(TIMES, EVENTS)
    PrivacyAccountant(url=url).charge(fitter.guarantee_)
    assert study.json("ledger", "show", url)["ledger"]["spent"] == 0.5
    study.run("ledger", "export", url, "--out", "@entries.csv", code=0)
    for address in ("postgresql://anna:secret@host/db", "mysql://host/db"):
        assert "secret" not in study.run("ledger", "show", address, code=6).output


def test_all_data_sets_are_shown_and_for_whom_their_sums_hold(study):
    ledger = PrivacyAccountant(epsilon=3.0, path=study.path("l.sqlite"))
    by_group = PrivacyGuarantee(0.5, neighbours="replace-one-same-group")
    for name, guarantee in [("a", PrivacyGuarantee(1.0)), ("a", by_group), ("b", by_group)]:
        ledger.charge(guarantee, name)
    relations = "neighbours by all of replace-one, replace-one-same-group"
    said = study.run("ledger", "show", "@l.sqlite", code=0, says="1.5 left (data set a); it").stdout
    assert " ".join(said.split()).count(relations) == 1
    assert "spent 0.5 of 3, 2.5 left (data set b)" in said
    assert study.json("ledger", "show", "@l.sqlite")["ledger"]["dataset"] == "a"
    assert "(data set a)" not in study.run("ledger", "show", "@l.sqlite", "--dataset", "b").stdout
