"""The page about the command line: its commands run as they stand, one after the other."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skdpsurv import Release
from skdpsurv.cli import app
from skdpsurv.cli.failures import EXIT_CODES
from tests.cli.study import Study, records

PAGE = Path(__file__).parents[2] / "docs" / "user_guide" / "command_line.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_its_commands_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    study = Study(tmp_path, records(600))
    study.write(records(50, seed=1).drop(columns=["days", "died"]), "new.csv")
    study.write(records(400, seed=2), "others.csv")
    (tmp_path / "columns.toml").unlink()
    monkeypatch.chdir(tmp_path)
    (schema,) = blocks("toml")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 10
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "skdpsurv"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (command, result.output)
        if arguments[0] == "schema":
            Path("columns.toml").write_text(schema)
    assert Release.load("model.json").guarantee.status == "proved"
    assert "600 records" in Path("report.html").read_text(encoding="utf-8")


def test_its_table_of_exit_codes_is_whole():
    rows = dict(re.findall(r"^\| (\d+) \| ([a-z ]+) \|", TEXT, re.MULTILINE))
    assert {kind: int(code) for code, kind in rows.items()} == EXIT_CODES


def test_its_header_is_that_of_the_file():
    assert blocks("text")[0].splitlines()[0] == ",".join(records(3).columns)
