"""The options that several commands share; a command takes a dataclass for those of a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from skdpsurv.cli.failures import CommandError

__all__ = [
    "NONE",
    "AsJson",
    "Drop",
    "FileFormat",
    "NewFile",
    "Option",
    "Path",
    "ReleaseFile",
    "Seed",
    "Settings",
    "Spending",
    "SurvivalColumns",
    "grouped",
    "split_names",
]

Option = partial(typer.Option, show_default=False)
#: Default of options that may be given several times.
NONE: Any = ()

_file = partial(typer.Option, rich_help_panel="The file")
_who = partial(Option, rich_help_panel="Columns")
_spent = partial(Option, rich_help_panel="Privacy")

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for machines; errors too.")
]
Drop = Annotated[
    list[str], Option(help="Column of the file to leave out. May be given several times.")
]
NewFile = Annotated[Path, typer.Option("--out", help="File to write. It must not exist yet.")]
ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release, as fit wrote it.")]
Seed = Annotated[
    int | None,
    _spent(min=0, help="Seed of the noise, for the same numbers in every run; voids the privacy."),
]
Settings = Annotated[
    list[str],
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another parameter of the estimator, by its name in Python: --set n_knots=5. May be "
        "given several times.",
    ),
]


@dataclass(frozen=True)
class FileFormat:
    """How a file is written."""

    separator: Annotated[str, _file(help="Between the cells of a CSV file.")] = ","
    decimal: Annotated[str, _file(help="The decimal point of a CSV file.")] = "."
    encoding: Annotated[str, _file(help="Of the text of a CSV file, such as cp1252.")] = "utf-8"
    missing_value: Annotated[
        list[str],
        _file(
            help="What else than an empty cell, NA, N/A, NaN, null and None means missing in a "
            "covariate, as missing_values of the schema. May be given several times."
        ),
    ] = NONE
    dask: Annotated[
        bool,
        _file(
            "--dask",
            help="Read block by block, for data larger than memory; a * in the name stands for "
            "many files. Needs the extra distributed.",
        ),
    ] = False

    @property
    def between(self) -> str:
        """What is between cells, where a tab may be written as in Python."""
        between = self.separator.replace("\\t", "\t")
        if len(between) != 1:
            raise CommandError("parameter", "--separator must be one character; \\t is a tab.")
        return between

    @property
    def is_stated(self) -> bool:
        """Whether anything is said of how a CSV file is written."""
        form = self.separator, self.decimal, self.encoding
        return form != (",", ".", "utf-8") or bool(self.missing_value)


@dataclass(frozen=True)
class SurvivalColumns:
    """Where times and events are."""

    time: Annotated[
        str | None,
        _who(help="Column with the time from a common start to the event or to censoring."),
    ] = None
    event: Annotated[
        str | None, _who(help="Column that says whether the event was seen: 1 or 0, true or false.")
    ] = None
    all_events: Annotated[
        bool, _who("--all-events", help="In place of --event: nobody is censored.")
    ] = False
    event_is: Annotated[
        list[str],
        _who(
            help="What the event column holds where the event was seen, if not 1 or true. May be "
            "given several times; needs --censored-is."
        ),
    ] = NONE
    censored_is: Annotated[
        list[str], _who(help="What it holds where it was not. Anything else is refused.")
    ] = NONE
    person: Annotated[
        str | None,
        _who(
            help="Column that says whose each record is, where people have several: the first of "
            "each is used, and people are protected."
        ),
    ] = None


@dataclass(frozen=True)
class Spending:
    """What a command spends, and from which budget."""

    epsilon: Annotated[float, _spent(help="Privacy loss, spent whole.")]
    ledger: Annotated[
        str | None,
        _spent(
            help="What adds up what was spent on these people, and refuses more than its budget: "
            "an SQLite file, or postgresql://user@host/database."
        ),
    ] = None
    budget: Annotated[
        float | None,
        _spent(
            help="Make the ledger if it is not there, with this budget of epsilon, fixed for ever."
        ),
    ] = None
    dataset: Annotated[
        str,
        _spent(help="Name of the data set in the ledger; each has the whole budget for itself."),
    ] = "default"
    purpose: Annotated[
        str,
        _spent(help="What this is for, such as a protocol's number; kept with the charge."),
    ] = ""
    who: Annotated[
        str | None, _spent(help="Who charges, by default the user; kept with the charge.")
    ] = None
    dry_run: Annotated[
        bool,
        _spent(
            "--dry-run",
            help="Only say what would be charged: nothing is spent, and no value is looked at but "
            "that of --person.",
        ),
    ] = False
    seed: Seed = None


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: each of their fields becomes an option of its own."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind: Any = hints[name]
        asked = {name: parameter}
        types = hints
        if is_dataclass(kind):
            types = get_type_hints(kind, include_extras=True)
            asked = dict(inspect.signature(hints[name]).parameters)
            groups[name] = kind, list(asked)
        parameters += [one.replace(annotation=types[n]) for n, one in asked.items()]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, (kind, names) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in names})
        command(**given)

    ordered = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that options name: each by one of its own, or with commas."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [name.strip() for name in text.split(",")]
    return found
