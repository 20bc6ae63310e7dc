"""columns.toml, which says what is publicly known of columns, and the command for a template."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.files import Table, column_names, read_table, require_columns
from skdpsurv.cli.options import NONE, FileFormat, command, split_names
from skdpsurv.cli.output import save, show
from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kinds import Category, Date

#: Of a column: None if it is not read as text.
Labels = tuple[str, ...] | None

#: Rows that types are guessed from.
FIRST = 1000


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
    left_out = [n for n in (time, event, target, person) if n] + split_names(drop, names)
    require_columns(data, left_out, names)
    frame = read_table(Table(data, tuple(names)), form, FIRST).head(FIRST)
    again = any((frame[name].astype(str) == name).any() for name in names)
    message = f"{data} must begin with a line of names, which are not found below again."
    require(not again, message, "data")
    described = [name for name in names if name not in left_out]
    lines = [f"{_key(name)} = []  # {_guess(frame[name])}\n" for name in described]
    head = Path(__file__).with_name("columns_template.toml").read_text(encoding="utf-8")
    save(head.replace("FILE", data.name) + "".join(lines), out)
    said = (
        f"{out} names {len(described)} columns. Say what each holds, from public knowledge alone."
    )
    show({"schema": str(out.resolve())}, [said, "Then give it to fit as --schema."], as_json)


def public_columns(path: Path, missing_values: Sequence[str] = ()) -> PublicColumns:
    """Read a description of columns, to which other texts that mean missing are added."""
    message = f"there is no schema {path}. Make one: skdpsurv schema DATA"
    require(path.is_file(), message, "description")
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


def table_of(
    path: Path,
    form: FileFormat,
    features: Sequence[str],
    described: Any,
    others: Mapping[str, Labels],
    drop: Sequence[str],
    ignored: Collection[str] | None = (),
) -> Table:
    """Say which columns of a file are read.

    Parameters
    ----------
    path : Path
    form : FileFormat
    features : sequence of str
        Those that a transformer reads.
    described : transformer or None
    others : mapping of str to tuple of str or None
        Those that are read beside them, with their labels if they are text.
    drop, ignored : collection of str
        Those that are left out, which must be there, or may be. All others, if ``ignored`` is None.
    """
    names = column_names(path, form)
    drop = split_names(drop, names)
    texts = {name: known for text, known in others.items() for name in split_names([text], names)}
    used = [*features, *texts]
    require_columns(path, [*used, *drop], names)
    both = [name for name in drop if name in used]
    require(not both, f"--drop must not name {', '.join(both)}: it is in use.")
    known = names if ignored is None else {*used, *drop, *ignored}
    extra = [name for name in names if name not in known]
    message = f"schema and release must describe {', '.join(extra)}: --drop leaves them out."
    require(not extra, message, "description")
    labels = {n: one for n, one in texts.items() if one is not None and n not in features}
    labels |= text_labels(described)
    columns = tuple(name for name in names if name in used)
    return Table(path, columns, labels, list(texts), getattr(described, "missing_values", ()))


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
