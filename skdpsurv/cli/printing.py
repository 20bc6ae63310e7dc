"""What a command says: lines and tables for people, one JSON object for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from skdpsurv.cli.failures import CommandError

__all__ = ["Printed", "rich_table", "show", "show_saved"]


#: More than any table takes.
UNBOUNDED = 10_000


@dataclass(frozen=True)
class Printed:
    """A result, in both languages.

    Parameters
    ----------
    content : dict
        For machines; floats that JSON has not become text.
    lines : iterable of str, or of tables of rich
        For people; gone through once, and not at all for machines.
    """

    content: dict[str, Any]
    lines: Iterable[Any]


def show(printed: Printed, as_json: bool) -> None:
    """Print a result to standard output."""
    if as_json:
        typer.echo(json.dumps(_plain(printed.content), allow_nan=False))
        return
    # What goes into a pipe or a file has no width: a table is whole there.
    console = Console(width=None if sys.stdout.isatty() else UNBOUNDED)
    for line in printed.lines:
        line = harmless(line) if isinstance(line, str) else line
        # markup=False: "[plot]" is the name of an extra, not a style.
        console.print(line, markup=False, highlight=False, soft_wrap=isinstance(line, str))


def show_saved(printed: Printed, as_json: bool, path: Path) -> None:
    """Print a result that is in a file already.

    Raises
    ------
    CommandError
        If it cannot be printed: what was paid for is there all the same.
    """
    try:
        show(printed, as_json)
        sys.stdout.flush()
        return
    except OSError:
        pass
    raise CommandError("output", f"{path} is written, and paid for; only saying so failed.")


def harmless(text: str) -> str:
    """Return text without what a terminal takes for a command: a release may be anybody's."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def rich_table(frame: pd.DataFrame, title: str = "") -> Table:
    """Return a data frame as a table for a terminal, index first."""
    shown = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    table = Table(title=title or None, title_justify="left")
    for name in shown.columns:
        number = pd.api.types.is_numeric_dtype(shown[name].dtype)
        table.add_column(escape(harmless(str(name))), justify="right" if number else "left")
    for row in shown.itertuples(index=False):
        table.add_row(*map(_cell, row))
    return table


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(harmless(str(value)))


def _plain(value: Any) -> Any:
    """Return what JSON has, at any depth."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
