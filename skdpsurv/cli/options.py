"""The options that several commands share, and what makes commands of functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from skdpsurv.cli.failures import guarded

#: Default of options that may be given several times.
NONE: Any = ()
#: Options that are not called as their parameter is.
_FLAGS = {"as_json": "--json", "set_": "--set"}

#: What is said of parameters of which a docstring says nothing.
_HELPS = {
    "as_json": "Print one JSON object, for machines; errors too.",
    "ledger": "An SQLite file, or postgresql://user@host/database.",
    "out": "File to write. It must not exist yet.",
}


@dataclass(frozen=True)
class FileFormat:
    """The file.

    Parameters
    ----------
    separator : str, default=","
        Between the cells of a CSV file.
    decimal : str, default="."
        The decimal point of a CSV file.
    encoding : str, default="utf-8"
        Of the text of a CSV file, such as cp1252.
    missing_value : list of str
        What else than an empty cell, NA, N/A, NaN, null and None means missing in a covariate, as
        missing_values of the schema. May be given several times.
    dask : bool, default=False
        Read block by block, for data larger than memory; a * in the name stands for many files.
        Needs the extra distributed.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing_value: list[str] = NONE
    dask: bool = False

    @property
    def between(self) -> str:
        """What is between cells, where a tab may be written as in Python."""
        return self.separator.replace("\\t", "\t")


@dataclass(frozen=True)
class SurvivalColumns:
    """Columns.

    Parameters
    ----------
    time : str or None
        Column with the time from a common start to the event or to censoring, a number.
    event : str or None
        Column that says whether the event was seen: 1 or 0, true or false.
    all_events : bool, default=False
        In place of --event: nobody is censored.
    event_is : list of str
        What the event column holds where the event was seen, if not 1 or true. May be given several
        times; needs --censored-is.
    censored_is : list of str
        What it holds where it was not. Anything else is refused.
    person : str or None
        Column that says whose each record is, where people have several: the first of each is used,
        and people are protected.
    """

    time: str | None = None
    event: str | None = None
    all_events: bool = False
    event_is: list[str] = NONE
    censored_is: list[str] = NONE
    person: str | None = None


@dataclass(frozen=True)
class Spending:
    """Privacy.

    Parameters
    ----------
    epsilon : float
        Privacy loss, spent whole.
    ledger : str or None
        What adds up what was spent on these people, and refuses more than its budget: an SQLite
        file, or postgresql://user@host/database.
    budget : float or None
        Make the ledger if it is not there, with this budget of epsilon, fixed for ever.
    dataset : str, default="default"
        Name of the data set in the ledger; each has the whole budget for itself.
    purpose : str, default=""
        What this is for, such as a protocol's number; kept with the charge in the ledger.
    who : str or None
        Who charges, by default the user; kept with the charge.
    dry_run : bool, default=False
        Only say what would be charged: nothing is spent, and no value is looked at but that of
        --person.
    seed : int or None
        Seed of the noise, for the same numbers in every run; voids the privacy.
    """

    epsilon: float
    ledger: str | None = None
    budget: float | None = None
    dataset: str = "default"
    purpose: str = ""
    who: str | None = None
    dry_run: bool = False
    seed: int | None = None


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function, as Typer takes it, which ends every failure in one line.

    Positional parameters are arguments, and all others options, with the help that the docstring
    gives them. Of a dataclass each field is an option of its own.
    """
    types = get_type_hints(function)
    positional: list[str] = []
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind: Any = types[name]
        if isinstance(kind, type) and is_dataclass(kind):
            fields, hints = inspect.signature(kind).parameters, get_type_hints(kind)
            parameters += [_option(one, hints[n], kind) for n, one in fields.items()]
            groups[name] = kind, list(fields)
        else:
            parameters.append(_option(parameter, kind, function))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)

    @wraps(function)
    def run(**given: Any) -> None:
        for name, (kind, names) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in names})
        function(*[given.pop(name) for name in positional], **given)

    ordered = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = inspect.cleandoc(function.__doc__ or "").partition("\n\nParameters\n")[0]
    return guarded(run)


def _option(parameter: inspect.Parameter, kind: Any, where: Any) -> inspect.Parameter:
    """Return a parameter with what Typer needs to know of it; a docstring has its help."""
    said = inspect.cleandoc(where.__doc__ or "")
    helps = _HELPS | dict(re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", said, re.MULTILINE))
    text = " ".join(helps.get(parameter.name, "").split())
    shown = parameter.default is not parameter.empty and bool(parameter.default)
    if parameter.kind is parameter.POSITIONAL_ONLY:
        info = typer.Argument(metavar=parameter.name.upper(), help=text, show_default=shown)
    else:
        flag = _FLAGS.get(parameter.name, f"--{parameter.name.replace('_', '-')}")
        panel = said.partition(".")[0] if is_dataclass(where) else None
        info = typer.Option(flag, help=text, show_default=shown, rich_help_panel=panel)
    return parameter.replace(annotation=Annotated[kind, info])


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that options name: each by one of its own, or with commas."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [name.strip() for name in text.split(",")]
    return found
