"""The options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from skdpsurv.cli.failures import CommandError

__all__ = [
    "AsJson",
    "FileFormat",
    "Labels",
    "MaxTime",
    "NewFile",
    "ReleaseFile",
    "Settings",
    "Spending",
    "SurvivalColumns",
]

_FILE = "The file"
_WHO = "Columns"
_SPENT = "Privacy"

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for machines; errors too.")
]
#: Labels or times: with commas, or by giving the option again.
Labels = list[str]
NewFile = Annotated[Path, typer.Option("--out", help="File to write. It must not exist yet.")]
ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release, as fit wrote it.")]
MaxTime = Annotated[
    float,
    typer.Option(
        help="Public horizon, in the unit of the times; later ones count as censored there."
    ),
]


@dataclass(frozen=True)
class FileFormat:
    """How a file is written."""

    separator: Annotated[
        str, typer.Option(help="Between the cells of a CSV file.", rich_help_panel=_FILE)
    ] = ","
    decimal: Annotated[
        str, typer.Option(help="The decimal point of a CSV file.", rich_help_panel=_FILE)
    ] = "."
    encoding: Annotated[
        str, typer.Option(help="Of the text of a CSV file, such as cp1252.", rich_help_panel=_FILE)
    ] = "utf-8"
    missing_value: Annotated[
        list[str],
        typer.Option(
            help="What else than an empty cell, NA, N/A, NaN, null and None means missing in a "
            "covariate, as missing_values of the schema. May be given several times.",
            rich_help_panel=_FILE,
        ),
    ] = field(default_factory=list)
    dask: Annotated[
        bool,
        typer.Option(
            "--dask",
            help="Read block by block, for data larger than memory; a * in the name stands for "
            "many files. Needs the extra distributed.",
            rich_help_panel=_FILE,
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
        return replace(self, dask=False) != FileFormat()


@dataclass(frozen=True)
class SurvivalColumns:
    """Where times and events are."""

    time: Annotated[
        str,
        typer.Option(
            help="Column with the time from a common start to the event or to censoring, a number.",
            rich_help_panel=_WHO,
        ),
    ]
    event: Annotated[
        str | None,
        typer.Option(
            help="Column that says whether the event was seen: 1 or 0, true or false.",
            rich_help_panel=_WHO,
            show_default=False,
        ),
    ] = None
    all_events: Annotated[
        bool,
        typer.Option(
            "--all-events",
            help="In place of --event: nobody is censored.",
            rich_help_panel=_WHO,
        ),
    ] = False
    event_is: Annotated[
        list[str],
        typer.Option(
            help="What the event column holds where the event was seen, if not 1 or true. May be "
            "given several times; needs --censored-is.",
            rich_help_panel=_WHO,
        ),
    ] = field(default_factory=list)
    censored_is: Annotated[
        list[str],
        typer.Option(
            help="What it holds where it was not. Anything else is refused.",
            rich_help_panel=_WHO,
        ),
    ] = field(default_factory=list)
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that says whose each record is, where people have several: the first of "
            "each is used, and people are protected.",
            rich_help_panel=_WHO,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class Spending:
    """What a command spends, and from which budget."""

    epsilon: Annotated[
        float, typer.Option(help="Privacy loss, spent whole.", rich_help_panel=_SPENT)
    ]
    ledger: Annotated[
        str | None,
        typer.Option(
            help="What adds up what was spent on these people, and refuses more than its budget: "
            "an SQLite file, or postgresql://user@host/database.",
            rich_help_panel=_SPENT,
            show_default=False,
        ),
    ] = None
    budget: Annotated[
        float | None,
        typer.Option(
            help="Make the ledger if it is not there, with this budget of epsilon, fixed for ever.",
            rich_help_panel=_SPENT,
            show_default=False,
        ),
    ] = None
    dataset: Annotated[
        str,
        typer.Option(
            help="Name of the data set in the ledger; each has the whole budget for itself.",
            rich_help_panel=_SPENT,
        ),
    ] = "default"
    purpose: Annotated[
        str,
        typer.Option(
            help="What this is for, such as a protocol's number; kept with the charge in the "
            "ledger.",
            rich_help_panel=_SPENT,
            show_default=False,
        ),
    ] = ""
    who: Annotated[
        str | None,
        typer.Option(
            help="Who charges; kept with the charge.",
            rich_help_panel=_SPENT,
            show_default="the user's name",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what would be charged: nothing is spent, and no value is looked at but "
            "that of --person.",
            rich_help_panel=_SPENT,
        ),
    ] = False
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of the noise, for the same numbers in every run; voids the privacy.",
            rich_help_panel=_SPENT,
            show_default="the operating system's entropy",
        ),
    ] = None


@dataclass(frozen=True)
class Settings:
    """Every other parameter of an estimator."""

    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another parameter of the estimator, by its name in Python: --set n_knots=5, "
            "--set link=cloglog. May be given several times.",
        ),
    ] = field(default_factory=list)
