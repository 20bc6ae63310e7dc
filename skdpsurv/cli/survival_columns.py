"""The columns of a file: columns.toml, which describes covariates, and options that name others."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.options import NONE, FileFormat, SurvivalColumns, command
from skdpsurv.cli.printing import save, show
from skdpsurv.cli.record_files import (
    MADE_UP,
    RecordFile,
    column_names,
    few,
    read_table,
    require_columns,
)

if TYPE_CHECKING:
    from skdpsurv.data import PublicColumns
    from skdpsurv.study.protocol import Protocol

#: Labels of a column that is read as text, which may be unknown; None for other columns.
Labels = tuple[str, ...] | None
#: Columns beside the covariates, with their labels.
Others = Mapping[str, Labels]

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
    entry: str | None = None,
    entry_date: str | None = None,
    exit_date: str | None = None,
    origin_date: str | None = None,
    drop: list[str] = NONE,
    out: Path = Path("columns.toml"),
) -> None:
    """Write a template of columns.toml, in which you describe the columns of a file.

    Parameters
    ----------
    data : Path
        CSV or Parquet file. Private.
    time : str or None
        Column of times, as in fit. It is no covariate and left out, like the next seven.
    event : str or None
        Column of events, as in fit.
    target : str or None
        Column of classes, as in fit.
    person : str or None
        Column that identifies people, as in fit.
    entry : str or None
        Column of late entries, as in fit.
    entry_date : str or None
        Column of dates of entry, as in fit.
    exit_date : str or None
        Column of dates of exit, as in fit.
    origin_date : str or None
        Column of dates that time runs from, as in fit.
    drop : list of str
        Column to leave out, as in fit. May be given several times.
    """
    from skdpsurv.data.histories import refuse_starts

    names = column_names(data, form)
    starts = entry, entry_date, origin_date
    others = [name for name in (time, event, target, person, *starts, exit_date) if name]
    excluded = others + split_names(drop, names)
    require_columns(data, excluded, names)
    with refusals("data"):
        refuse_starts(filter(None, (time, exit_date)), [n for n in names if n not in starts])
    frame = read_table(RecordFile(data, tuple(names)), form, FIRST).head(FIRST)
    repeated = [name for name in names if (frame[name].astype(str) == name).any()]
    require(not repeated, f"{data} must begin with a line of names, not repeated below.", "data")
    described = [name for name in names if name not in excluded]
    lines = [f"{_key(name)} = []  # {_guess(frame[name])}\n" for name in described]
    head = Path(__file__).with_name("columns_template.toml").read_text(encoding="utf-8")
    save(head.replace("FILE", data.name) + "".join(lines), out)
    text = f"{out} names {len(described)} columns. Describe each, from public knowledge alone."
    show({"schema": str(out.resolve())}, [text, "Then give it to fit as --schema."])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _guess(cells: Any) -> str:
    """Return the type that cells seem to have, and nothing else about them."""
    from pandas.api.types import is_numeric_dtype

    present = cells.dropna()
    simple = present.map(lambda cell: isinstance(cell, bool | int | float | str | date))
    if present.empty or not simple.all():
        return "nothing to guess by"
    if present.isin([0, 1]).all():
        return "1 and 0, or true and false"
    if is_numeric_dtype(present.dtype):
        return "numbers"
    if present.astype(str).str.match(r"\d{4}-\d\d-\d\d").all():
        return "dates"
    return "text: categories"


def public_columns(path: Path, missing_values: Sequence[str] = ()) -> PublicColumns:
    """Read a description of columns, or that in a release, and add texts that mean missing."""
    from skdpsurv.data import PublicColumns

    message = f"there is no schema {path}. Make one: skdpsurv schema DATA"
    require(path.is_file(), message, "description")
    with refusals("description"):
        read = _columns_of_release if path.suffix == ".json" else PublicColumns.from_toml
        columns = read(path)
        coded = dict.fromkeys([*columns.missing_values, *missing_values])
        return columns.set_params(missing_values=list(coded))


def _columns_of_release(path: Path) -> PublicColumns:
    """Return the columns that a release states, and say what is taken of it."""
    from skdpsurv.data import PublicColumns
    from skdpsurv.release import Release

    stated = Release.load(path).transformer()
    message = f"{path} states no columns as a schema does: fit with --schema, or give a TOML file."
    require(isinstance(stated, PublicColumns), message, "description")
    parameters = stated.get_params(deep=False)
    parameters.pop("strata", None)  # an option of the fit, whose category is among the columns
    found = PublicColumns(**parameters)
    text = f"of {path} the schema has the columns {few(found._names())}, and nothing else"
    typer.echo(f"skdpsurv: {text}: no option of its fit.", err=True)
    return found


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that options name, one each or several with commas."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [name.strip() for name in text.split(",")]
    return found


def table_of(
    path: Path,
    form: FileFormat,
    features: Sequence[str],
    described: Any,
    others: Others,
    drop: Sequence[str],
    ignored: Collection[str] | None = (),
    outcome: SurvivalColumns | Protocol | None = None,
) -> RecordFile:
    """Return the part of a file to read.

    Parameters
    ----------
    path : Path
    form : FileFormat
    features : sequence of str
        Columns of the transformer.
    described : transformer or None
    others : mapping of str to tuple of str or None
        Columns that are read beside them, with their labels if they are text.
    drop, ignored : collection of str
        Columns to leave out: those to drop must exist. None ignores all others.
    outcome : SurvivalColumns, Protocol or None
        Columns of late entries and of dates, whose names may say that they are starts.
    """
    from skdpsurv.data.histories import refuse_starts

    names = column_names(path, form)
    drop = split_names(drop, names)
    more = {name: labels for text, labels in others.items() for name in split_names([text], names)}
    used = [*features, *more]
    require_columns(path, [*used, *drop], names)
    both = [name for name in drop if name in used]
    require(not both, f"--drop must not name {few(both)}: it is in use.")
    times = [name for name, labels in more.items() if labels is None]  # which have none
    starts, dates = (None, None) if outcome is None else (outcome.entry, outcome.dates)
    of_dates = [] if dates is None else dates.columns
    with refusals("data"):
        if dates is not None:
            times.append(dates.exit)
            both = [name for name in features if name in of_dates]
            require(not both, f"the schema must not describe {few(both)}.", "description")
            dates.check(used)
        refuse_starts(times, [name for name in names if name not in {starts, *of_dates}])
    known = names if ignored is None else {*used, *drop, *ignored}
    extra = [name for name in names if name not in known]
    message = f"schema and release must describe {few(extra)}: --drop leaves them out."
    require(not extra, message, "description")
    texts = {n: labels for n, labels in more.items() if labels is not None and n not in features}
    texts |= {k.column: k.labels for k in getattr(described, "_kinds", tuple)() if k.reads_text}
    columns = tuple(name for name in names if name in used)
    missing, made_up = getattr(described, "missing_values", ()), MADE_UP in {*names} - {*used}
    return RecordFile(path, columns, texts, list(more), missing, made_up)


def other_columns(
    time: str | None,
    event: str | None,
    person: str | None,
    labels: tuple[Any, ...] = (),
    entry: str | None = None,
    dates: Sequence[str] = (),
) -> dict[str, Labels]:
    """Return the columns of histories, each with the labels to read it by, if it is text."""
    texts = labels if labels and isinstance(labels[0], str) else None
    found: dict[str | None, Labels] = {time: None, entry: None, person: (), event: texts}
    found |= dict.fromkeys(dates, ())
    return {name: found[name] for name in found if name is not None}


def survival_columns(columns: SurvivalColumns, late_entry: bool = False) -> dict[str, Labels]:
    """Return the columns that options name; refuse options that contradict each other."""
    time, event, dates = columns.time, columns.event, columns.dates
    message = (
        "--time must name the column of times, or --entry-date and --exit-date those of dates."
    )
    require(time is not None or dates is not None, message)
    require((event is None) == columns.all_events, "give either --event or --all-events.")
    named = columns.named()
    option = "--entry" if columns.origin_date is None else "--origin-date makes a late entry, which"
    message = f"{option} is for evaluate, and for fit survival, km and competing events alone."
    require(late_entry or named.entry is None, message)
    named.check()
    labels = (*columns.event_is, *columns.censored_is)
    of_dates = [] if dates is None else dates.columns
    return other_columns(time, event, columns.person, labels, columns.entry, of_dates)
