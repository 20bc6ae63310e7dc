"""Tests of skdpsurv ledger: verify and copy, and a server's address in place of a file."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.cli import app
from skdpsurv.dp import PrivacyGuarantee
from tests.dp.conftest import server, url  # noqa: F401, fixtures

TIMES, EVENTS = np.arange(9.0) / 2, np.ones(9, dtype=bool)


def call(*arguments):
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)])


def charged(path, tmp_path, name):
    accountant = PrivacyAccountant(2.0, path=path)
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0, accountant=accountant)
    fitter.fit(TIMES, EVENTS).release_.save(tmp_path / name)
    return tmp_path / name


def test_verify(tmp_path):
    path = tmp_path / "ledger.sqlite"
    releases = [charged(path, tmp_path, f"{number}.json") for number in range(2)]
    options = [text for release in releases for text in ("--release", release)]
    result = call("verify", path, *options, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verified"]["entries"] == 2
    other = charged(tmp_path / "other.sqlite", tmp_path, "other.json")
    result = call("verify", path, "--release", other)
    assert result.exit_code == 6
    assert "charged to another ledger" in result.output.replace("\n", " ")


def test_one_charge_does_not_pay_for_two_releases(tmp_path):
    path = tmp_path / "ledger.sqlite"
    release = charged(path, tmp_path, "one.json")
    content = json.loads(release.read_text())
    fitter = DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(TIMES, EVENTS)
    content["values"] = json.loads(fitter.release_.to_json())["values"]
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content))
    assert call("verify", path, "--release", other).exit_code == 0
    result = call("verify", path, "--release", release, "--release", other)
    assert result.exit_code == 6
    assert "release 1 has the receipt of another" in " ".join(result.output.split())
    assert f"1: {str(other)!r}" in result.output


def test_purpose_and_who(tmp_path):
    path, table = tmp_path / "ledger.sqlite", tmp_path / "table.csv"
    rows = [f"{time},{1}" for time in TIMES]
    table.write_text("\n".join(["t,e", *rows]))
    fit = ["fit", "km", table, "--time", "t", "--event", "e", "--max-time", 5, "--epsilon", 0.5]
    said = ["--purpose", "protocol 7", "--who", "anna"]

    def run(*arguments):
        return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})

    result = run(*fit, "--out", tmp_path / "a.json", "--ledger", path, "--budget", 2, *said)
    assert result.exit_code == 0, result.output
    shown = run("ledger", "show", path)
    assert "protocol 7" in shown.output
    assert "anna" in shown.output
    [entry] = json.loads(run("ledger", "show", path, "--json").stdout)["entries"]
    assert (entry["purpose"], entry["who"]) == ("protocol 7", "anna")
    for option in (said[:2], said[2:]):
        result = run(*fit, "--out", tmp_path / "b.json", *option)
        assert result.exit_code == 2, result.output
        assert f"{option[0]} needs --ledger" in result.output
    dry = run(*fit, "--out", tmp_path / "b.json", "--ledger", path, *said, "--dry-run")
    assert dry.exit_code == 0
    assert len(PrivacyAccountant(path=path).entries()) == 1


def test_show_prints_a_true_pair(tmp_path):
    path = tmp_path / "ledger.sqlite"
    accountant = PrivacyAccountant(3.0, 1e-6, path=path, composition="renyi")
    for _ in range(100):
        accountant.charge(PrivacyGuarantee(0.05))
    assert accountant.spent() < 5.0
    assert "delta 1e-06 of 1e-06" in " ".join(call("show", path).output.split())
    free = PrivacyAccountant(math.inf, path=tmp_path / "free.sqlite")
    free.charge(PrivacyGuarantee(0.5, 1e-9))
    result = call("show", tmp_path / "free.sqlite")
    assert "delta 1e-09 of no limit" in " ".join(result.output.split())


def test_copy(tmp_path):
    path, new = tmp_path / "ledger.sqlite", tmp_path / "new.sqlite"
    release = charged(path, tmp_path, "one.json")
    assert call("copy", path, new).exit_code == 0
    assert call("verify", new, "--release", release).exit_code == 0
    result = call("show", path)
    assert result.exit_code == 6
    assert "was moved to" in result.output.replace("\n", " ")
    assert call("copy", path, tmp_path / "third.sqlite").exit_code == 6
    assert call("copy", tmp_path / "none.sqlite", tmp_path / "third.sqlite").exit_code == 6


def test_a_server(url, tmp_path):  # noqa: F811
    assert call("show", url).exit_code == 6
    assert call("create", url, "--budget", "3").exit_code == 0
    PrivacyAccountant(url=url).charge(
        DPKaplanMeierFitter(epsilon=0.5, max_time=5.0).fit(TIMES, EVENTS).guarantee_
    )
    shown = json.loads(call("show", url, "--json").stdout)
    assert shown["ledger"]["spent"] == 0.5
    assert call("export", url, "--out", tmp_path / "entries.csv").exit_code == 0


@pytest.mark.parametrize("address", ["postgresql://anna:secret@host/db", "mysql://host/db"])
def test_addresses_that_are_refused(address):
    result = call("show", address)
    assert result.exit_code == 6
    assert "secret" not in result.output
