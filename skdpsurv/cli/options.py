"""Options that several commands share, and the decorator that makes a command of a function."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from skdpsurv.cli.failures import WORDS, guarded, refusals, require

if TYPE_CHECKING:
    from skdpsurv.data.dates import DateColumns
    from skdpsurv.data.histories import Columns

#: Default of options that may be given several times.
NONE: Any = ()
#: Options whose name differs from that of their parameter.
_FLAGS = {"as_json": "--json", "set_": "--set"}


@dataclass(frozen=True)
class FileFormat:
    """The file. Options for its format; the first sentence names their panel in the help.

    Parameters
    ----------
    separator : str, default=","
        Separator between the cells of a CSV file.
    decimal : str, default="."
        The decimal point of a CSV file.
    encoding : str, default="utf-8"
        Encoding of a CSV file, such as cp1252.
    missing_value : list of str
        Another text for a missing covariate, beside an empty cell, NA, N/A, NaN, null and None; the
        same as missing_values of the schema. May be given several times.
    dask : bool, default=False
        Read block by block, for data larger than memory; a * in the name stands for many files.
        Needs the extra distributed.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing_value: list[str] = NONE
    dask: bool = False


@dataclass(frozen=True)
class SurvivalColumns:
    """Columns. Options that name the columns of the outcome and of people.

    Parameters
    ----------
    time : str or None
        Column with the time from a common start to the event or to censoring, a plain number.
    event : str or None
        Column that says whether the event was seen: 1 or 0, true or false.
    all_events : bool, default=False
        In place of --event: nobody is censored.
    event_is : list of str
        Labels of the event column for a seen event, if not 1 or true, such as dead,died; needs
        --censored-is.
    censored_is : list of str
        Labels of the event column for a censored record. Any other label is refused.
    person : str or None
        Column that identifies people who have several records. The first record of each is used,
        and people are protected.
    entry : str or None
        Column with the time from which each person was seen, from the same start as --time, where
        some came late. For fit survival, km, competing and competing-regression.
    entry_date : str or None
        Column with the date from which each person was seen. In place of --time, with --exit-date:
        time is their difference.
    exit_date : str or None
        Column with the date of the event or of censoring.
    origin_date : str or None
        Column with the date that time runs from, such as birth or diagnosis; the entry is late
        then.
    date_format : str, default=""
        Format of these dates, such as %d.%m.%Y, beside 2001-12-31.
    date_unit : str, default="days"
        Unit of the times that dates make: days, months or years. That of --max-time, too.
    """

    time: str | None = None
    event: str | None = None
    all_events: bool = False
    event_is: list[str] = NONE
    censored_is: list[str] = NONE
    person: str | None = None
    entry: str | None = None
    entry_date: str | None = None
    exit_date: str | None = None
    origin_date: str | None = None
    date_format: str = ""
    date_unit: str = "days"

    def __post_init__(self) -> None:
        for name in ("event_is", "censored_is"):
            object.__setattr__(self, name, self.labels(flag(name), getattr(self, name)))

    def named(self) -> Columns:
        """Return these columns, with labels as Parquet files have them, too."""
        from skdpsurv.data.histories import Columns

        def labels(texts: list[str]) -> list[Any]:
            values = map(parse, map(str.lower, texts))
            return [*texts, *(one for one in values if isinstance(one, int | float))]

        lists = labels(self.event_is), labels(self.censored_is)
        time, entry = self.time, self.entry
        if self.dates is not None:
            time, entry = self.dates.unit, self.dates.times.get("entry")
        return Columns(time, self.event, self.person, *lists, entry)

    @cached_property
    def dates(self) -> DateColumns | None:
        """The columns of dates, of which times follow; None if times are columns."""
        from skdpsurv.data.dates import DateColumns

        named = self.entry_date, self.exit_date, self.origin_date
        if named == (None, None, None):
            stated = self.date_format or self.date_unit != "days"
            require(not stated, "--date-format and --date-unit are for --entry-date.")
            return None
        both = None not in named[:2]
        require(both, "--entry-date and --exit-date go together; --origin-date needs both.")
        alone = self.time is None and self.entry is None
        require(alone, "give either --time, and --entry, or --entry-date and --exit-date.")
        with refusals("parameter"):
            entry, until, origin = named
            form, unit = self.date_format, self.date_unit
            return DateColumns(
                entry=str(entry), exit=str(until), origin=origin, format=form, unit=unit
            )

    @staticmethod
    def labels(option: str, texts: Sequence[str]) -> list[str]:
        """Return the labels that an option names, one each or several with commas."""
        labels = [label.strip() for text in texts for label in text.split(",")]
        require(all(labels), f"{option} must be labels with commas between them.")
        return labels


@dataclass(frozen=True)
class Spending:
    """Privacy. Options for the epsilon, the ledger and the noise of a fit.

    Parameters
    ----------
    epsilon : float
        Privacy loss; all of it is spent.
    ledger : str or None
        Ledger that adds up the privacy loss of these people and enforces a budget: an SQLite file,
        or postgresql://user@host/database.
    budget : float or None
        Create the ledger if it does not exist, with this budget of epsilon, which is fixed for
        ever.
    dataset : str, default="default"
        Name of the data set in the ledger. Each data set has the whole budget for itself.
    appetite : Path or None
        TOML file of the risk appetite of the environment, which the charge must keep, with all
        earlier charges to the data set in the ledger.
    purpose : str, default=""
        Purpose, such as a protocol's number; kept with the charge in the ledger.
    who : str or None
        Person who charges, by default the user; kept with the charge.
    dry_run : bool, default=False
        Print what would be charged, and spend nothing. The file's values are not used, except those
        of --person.
    seed : int or None
        Seed of the noise, for the same numbers in every run; voids the privacy.
    """

    epsilon: float
    ledger: str | None = None
    budget: float | None = None
    dataset: str = "default"
    appetite: Path | None = None
    purpose: str = ""
    who: str | None = None
    dry_run: bool = False
    seed: int | None = None


def command(function: Callable[..., None], *, for_machines: bool = True) -> Callable[..., None]:
    """Make a Typer command of a function; each failure in it ends in one line.

    Positional parameters become arguments, and all others options, with help from the docstring.
    Each field of a dataclass becomes an option. ``for_machines`` adds --json, which ``show`` heeds.
    """
    types = get_type_hints(function)
    positional: list[str] = []
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind: Any = types[name]
        if is_dataclass(kind) and isinstance(kind, type):
            fields, hints = inspect.signature(kind).parameters, get_type_hints(kind)
            parameters += [_option(field, hints[n], kind) for n, field in fields.items()]
            groups[name] = kind, list(fields)
        else:
            parameters.append(_option(parameter, kind, function))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)

    if for_machines:
        as_json = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False)
        parameters.append(_option(as_json, bool, function))

    @wraps(function)
    def run(as_json: bool = False, **given: Any) -> None:
        for name, (kind, names) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in names})
        function(*[given.pop(name) for name in positional], **given)

    ordered = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = inspect.cleandoc(function.__doc__ or "").partition("\n\nParameters\n")[0]
    return guarded(run)


def _option(parameter: inspect.Parameter, kind: Any, owner: Any) -> inspect.Parameter:
    """Return a parameter annotated for Typer, with its help from the owner's docstring."""
    doc = inspect.cleandoc(owner.__doc__ or "")
    helps = WORDS["helps"] | dict(re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", doc, re.MULTILINE))
    text = " ".join(helps.get(parameter.name, "").split())
    default = parameter.default is not parameter.empty and bool(parameter.default)
    if parameter.kind is parameter.POSITIONAL_ONLY:
        info = typer.Argument(metavar=parameter.name.upper(), help=text, show_default=default)
    else:
        panel = doc.partition(".")[0] if is_dataclass(owner) else None
        option = flag(parameter.name)
        info = typer.Option(option, help=text, show_default=default, rich_help_panel=panel)
    return parameter.replace(annotation=Annotated[kind, info])


def flag(name: str) -> str:
    """Return the option of a parameter."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def parse(text: str) -> Any:
    """Return a value as TOML reads it; anything else is text, and none is None."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
