"""columns.toml: what is publicly known of the columns of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from skdpsurv.cli.failures import CommandError
from skdpsurv.preprocessing import PublicColumns
from skdpsurv.preprocessing.column_kinds import Category, Date

__all__ = ["missing_texts", "public_columns", "template", "text_labels"]

#: Types of cells, of objects.
_SIMPLE = (bool, int, float, str, date, datetime)
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


def public_columns(path: Path, missing_values: Sequence[str] = ()) -> PublicColumns:
    """Read a description of columns, to which other texts that mean missing are added.

    Raises
    ------
    CommandError
        If there is no such file, or it breaks a rule.
    """
    try:
        columns = PublicColumns.from_toml(path)
        coded = dict.fromkeys([*columns.missing_values, *missing_values])
        return columns.set_params(missing_values=list(coded))
    except OSError:
        message = f"there is no schema {path} that can be read. Make one: skdpsurv schema DATA"
    except (ValueError, TypeError) as error:
        message = str(error)
    raise CommandError("description", message)


def text_labels(columns: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns that a file holds as text, and their labels.

    Parameters
    ----------
    columns : transformer
        Of a release, or of a schema. Only of :class:`PublicColumns` it is known.
    """
    if not isinstance(columns, PublicColumns):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for kind in columns._kinds():
        if isinstance(kind, Date):
            found[kind.column] = ()
        elif isinstance(kind, Category) and isinstance(kind.labels[0], str):
            found[kind.column] = tuple(map(str, kind.labels))
    return found


def missing_texts(columns: Any) -> tuple[str, ...]:
    """Return what means missing in files, as far as a transformer says it."""
    return tuple(getattr(columns, "missing_values", ()))


def template(frame: pd.DataFrame, file: str, left_out: Iterable[str]) -> str:
    """Return a description to be filled in: names, and guesses of types as comments alone.

    Parameters
    ----------
    frame : DataFrame
        The first rows of a file. Nothing of their values is written but what type they look like.
    file : str
        Name of the file.
    left_out : iterable of str
        Columns that are not described.
    """
    names = [name for name in frame.columns if name not in set(left_out)]
    lines = [f"{_key(name)} = []  # {_guess(frame[name])}" for name in names]
    return _HEAD.format(file=file) + "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _guess(cells: pd.Series) -> str:
    present = cells.dropna()
    if present.empty:
        return "nothing to guess by"
    if pd.api.types.is_object_dtype(present.dtype) and not present.map(type).isin(_SIMPLE).all():
        return "nothing that a column may hold"
    if set(present.unique()) <= {0, 1}:
        return "1 and 0, or true and false"
    if pd.api.types.is_numeric_dtype(present.dtype):
        return "numbers"
    if _are_dates(present):
        return "dates"
    return "text: categories"


def _are_dates(cells: Sequence[Any]) -> bool:
    return all(re.match(r"\d{4}-\d\d-\d\d", str(cell)) for cell in cells)
