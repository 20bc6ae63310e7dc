"""The page about the command line says what is so; its commands run in tests/docs."""

import re
from pathlib import Path

from skdpsurv.cli.failures import EXIT_CODES
from tests.cli.study import records

PAGE = Path(__file__).parents[2] / "docs" / "user_guide" / "command_line.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_table_of_exit_codes_is_whole():
    rows = dict(re.findall(r"^\| (\d+) \| ([a-z ]+) \|", TEXT, re.MULTILINE))
    assert {kind: int(code) for code, kind in rows.items()} == EXIT_CODES


def test_its_header_is_that_of_the_file():
    (header,) = re.findall(r"^```text\n(.*)$", TEXT, re.MULTILINE)
    assert header == ",".join(records(3).columns)
