"""columns.toml, which says what is publicly known of columns, and the command for a template."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from skdpsurv.cli.failures import CommandError, refusals
from skdpsurv.cli.files import Table, column_names, read_table, require_columns
from skdpsurv.cli.options import NONE, FileFormat, command, split_names
from skdpsurv.cli.output import save, show
from skdpsurv.preprocessing import PublicColumns
from skdpsurv.preprocessing.column_kinds import Category, Date

__all__ = ["missing_texts", "public_columns", "schema", "text_labels"]

#: Rows that types are guessed from.
FIRST = 1000
_HEAD = """\
# What is publicly known of the columns of {file}. Fill in every [] from the protocol or from
# what is published elsewhere, never from these records: what stands here goes into the release.
#
#   age = [18, 100]                                     a number, clipped to these bounds
#   age = {{ bounds = [18, 100], unit = "years" }}        the same, with its unit
#   stage = ["I", "II", "III"]                          categories; the first is the reference
#   grade = {{ categories = [1, 2] }}                     two categories that are numbers
#   smoker = {{ boolean = true }}                         1 or 0, true or false
#   diagnosed = {{ dates = ["2001-01-01", "2010-12-31"] }}
#   operated = {{ dates = ["2001-01-01", "2010-12-31"], format = "%d.%m.%Y" }}
#   temperature = {{ bounds = [30, 43], typical = 37 }}      of whom reports tell
#
# With missing = "midpoint" a missing cell counts as the middle of the bounds, with "category" it
# has a coefficient of its own, and with "error" it is refused. Columns in {{ }} may say their own,
# as in {{ bounds = [0, 9], missing = "category" }}; categories have no middle, and refuse missing
# cells unless they say "category". Delete the lines of times, events and classes, and of columns
# that fit is told to --drop. The guesses behind "#" come from the values: delete them before you
# publish this file.

missing = "error"
# missing_values = ["-99"]  what else than an empty cell, NA, NaN and the like means missing

[columns]
"""


@command
def schema(
    data: Path,
    /,
    *,
    form: FileFormat,
    time: str | None = None,
    event: str | None = None,
    target: str | None = None,
    person: str | None = None,
    drop: list[str] = NONE,
    out: Path = Path("columns.toml"),
    as_json: bool = False,
) -> None:
    """Write a template of columns.toml: the names of the columns, for you to say what they hold.

    Parameters
    ----------
    data : Path
        CSV or Parquet file. Private.
    time : str or None
        Column that fit is told of by this option, as by the next three.
    event : str or None
    target : str or None
    person : str or None
    drop : list of str
        Column that fit is told to --drop. May be given several times.
    """
    names = column_names(data, form)
    given = [name for name in (time, event, target, person) if name is not None]
    left_out = [*given, *split_names(drop, names)]
    require_columns(data, left_out, names)
    frame = read_table(Table(data, tuple(names)), form, FIRST).head(FIRST)
    if any((frame[name].astype(str) == name).any() for name in names):
        raise CommandError(
            "data",
            f"{data} must begin with a line of names, and what stands there is also found below.",
        )
    described = [name for name in names if name not in left_out]
    lines = [f"{_key(name)} = []  # {_guess(frame[name])}\n" for name in described]
    save(_HEAD.format(file=data.name) + "".join(lines), out)
    said = (
        f"{out} names {len(described)} columns. Say what each holds, from public knowledge alone, "
        "and give it to fit as --schema."
    )
    show({"schema": str(out.resolve())}, [said], as_json)


def public_columns(path: Path, missing_values: Sequence[str] = ()) -> PublicColumns:
    """Read a description of columns, to which other texts that mean missing are added."""
    if not path.is_file():
        raise CommandError(
            "description", f"there is no schema {path}. Make one: skdpsurv schema DATA"
        )
    with refusals("description"):
        columns = PublicColumns.from_toml(path)
        coded = dict.fromkeys([*columns.missing_values, *missing_values])
        return columns.set_params(missing_values=list(coded))


def text_labels(columns: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns that a file holds as text, and their labels, as far as that is known."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in columns._kinds() if isinstance(columns, PublicColumns) else ():
        if isinstance(kind, Date):
            found[kind.column] = ()
        elif isinstance(kind, Category) and isinstance(kind.labels[0], str):
            found[kind.column] = tuple(map(str, kind.labels))
    return found


def missing_texts(columns: Any) -> tuple[str, ...]:
    """Return what means missing in files, as far as a transformer says it."""
    return tuple(getattr(columns, "missing_values", ()))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _guess(cells: pd.Series) -> str:
    """Return what type cells look like, and nothing else of them."""
    present = cells.dropna()
    simple = present.map(lambda cell: isinstance(cell, bool | int | float | str | date))
    if present.empty or not simple.all():
        return "nothing to guess by"
    if present.isin([0, 1]).all():
        return "1 and 0, or true and false"
    if pd.api.types.is_numeric_dtype(present.dtype):
        return "numbers"
    if present.astype(str).str.match(r"\d{4}-\d\d-\d\d").all():
        return "dates"
    return "text: categories"
