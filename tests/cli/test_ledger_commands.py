"""Tests of skdpsurv ledger: verify and copy, and a server's address in place of a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.cli import app
from tests.privacy.conftest import server, url  # noqa: F401, fixtures

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
