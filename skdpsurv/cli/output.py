"""What a command says, and the files that it writes: their place is sure before a charge."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from skdpsurv.cli.failures import CommandError, refusals, require
from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.release import Release, layout
from skdpsurv.report import units
from skdpsurv.report.coefficients import cautions
from skdpsurv.report.text import exact

#: More than any table takes.
UNBOUNDED = 10_000
#: Times that curves are shown at, up to the horizon.
N_TIMES = 4
#: A release takes less, but for models of ten thousands of columns.
RESERVED_BYTES = 2**20
#: What a spreadsheet takes for the start of a formula, also behind what it skips.
_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", flags=re.ASCII)


def show(
    content: dict[str, Any], lines: Iterable[Any], as_json: bool, paid: Path | None = None
) -> None:
    """Print a result to standard output.

    Parameters
    ----------
    content : dict
        For machines; floats that JSON has not become text.
    lines : iterable of str, or of tables of rich
        For people; gone through once, and not at all for machines.
    as_json : bool
    paid : Path or None
        The file that holds the result already. Then a failure says so.
    """
    try:
        if as_json:
            typer.echo(json.dumps(_plain(content), allow_nan=False))
        else:
            # What goes into a pipe or a file has no width: a table is whole there.
            console = Console(width=None if sys.stdout.isatty() else UNBOUNDED)
            for line in lines:
                text = isinstance(line, str)
                # markup=False: "[plot]" is the name of an extra, not a style.
                said = strip_control_characters(line) if text else line
                console.print(said, markup=False, highlight=False, soft_wrap=text)
        sys.stdout.flush()
    except OSError as error:
        if paid is None:
            raise
        message = f"{paid} is written, and paid for; only saying so failed."
        raise CommandError("output", message) from error


@contextmanager
def working(what: str, as_json: bool) -> Iterator[None]:
    """Show that work is going on, where somebody looks at a terminal."""
    with Console(stderr=True, quiet=as_json).status(what):
        yield


def strip_control_characters(text: str) -> str:
    """Return text without what a terminal takes for a command: a release may be anybody's."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def rich_table(frame: pd.DataFrame, title: str = "") -> Table:
    """Return a data frame as a table for a terminal, index first."""
    shown = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    table = Table(title=title or None, title_justify="left")
    for name in shown.columns:
        number = pd.api.types.is_numeric_dtype(shown[name].dtype)
        table.add_column(
            escape(strip_control_characters(str(name))), justify="right" if number else "left"
        )
    for row in shown.itertuples(index=False):
        cells = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in row)
        table.add_row(*(escape(strip_control_characters(cell)) for cell in cells))
    return table


def promise_line(guarantee: PrivacyGuarantee) -> str:
    """Return what a guarantee promises, and to how many, in a line."""
    whom = "people" if guarantee.neighbours == PERSON else "records"
    delta = f", delta = {exact(guarantee.delta)}" if guarantee.delta else ""
    return (
        f"{guarantee.public_inputs['n_records']:,} {whom}, epsilon = {exact(guarantee.epsilon)}"
        f"{delta}, {guarantee.neighbours}, status {guarantee.status}"
    )


def result_lines(release: Release) -> Iterator[Any]:
    """Yield what came out: coefficients and how to read them, or curves at a few times.

    It follows from the release alone, and costs nothing. Models that have neither, or need more
    than their release, yield nothing.
    """
    with suppress(ValueError, TypeError, AttributeError):
        model = release._model
        if hasattr(model, "survival_function_at_times"):
            end = float(release.parameters["max_time"])
            yield rich_table(curves(model, np.linspace(0.0, end, N_TIMES + 1)[1:]), "Survival")
            return
        if getattr(model, "inference_", None) is not None:
            names = ["coef", "exp(coef)", "exp(coef) lower 95%", "exp(coef) upper 95%"]
            found = model.summary[names].rename_axis("column")
        else:
            found = units(release)
        yield rich_table(found, "Per unit, within the public bounds")
        yield from cautions(model)


def curves(model: Any, times: Any) -> pd.DataFrame:
    """Return the probability to survive each time, with intervals, by group."""
    labels = getattr(model, "groups_", None)
    groups = {None: model}
    if labels is not None:
        groups = {label: model.of_group(label) for label in labels.tolist()}
    ends, parts = ["lower", "upper"], []
    for label, one in groups.items():
        found = pd.DataFrame({} if label is None else {"group": [label] * len(times)})
        found["time"], found["survival"] = times, one.survival_function_at_times(times).to_numpy()
        if hasattr(one, "survival_band"):
            found[ends] = one.survival_band(times)[ends].to_numpy()
        for cause in getattr(one, "causes_", ()):
            name = f"incidence_{cause}"
            found[name] = one.cumulative_density_at_times(times, cause=cause).to_numpy()
            band = one.cumulative_density_band(times, cause=cause)[ends]
            found[[f"{name}_{end}" for end in ends]] = band.to_numpy()
        parts.append(found)
    return pd.concat(parts, ignore_index=True)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV; text that a spreadsheet would run begins with an apostrophe there."""
    plain = frame.rename(columns=_inert)
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            plain.isetitem(place, frame[name].map(_inert))
    text = plain.to_csv(index=False)
    # Not all versions of csv quote what some readers end a row at.
    return plain.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text


def reserve(path: Path) -> None:
    """Refuse a place where a file cannot be written, by writing one there."""
    there = os.path.lexists(path)
    require(not there, f"{path} exists, and nothing is written over it.", "output")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with refusals("output", f"{path} cannot be written: ", "."), draft.open("xb") as file:
            # Compressing file systems would find room for zeros anywhere.
            file.write(os.urandom(RESERVED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        draft.unlink(missing_ok=True)


def save(text: str, path: Path) -> None:
    """Write text to a new file: the whole of it, or nothing."""
    with refusals("output", f"{path} cannot be written: ", "."):
        layout.save(text, path)


def save_or_print(text: str, path: Path) -> None:
    """Write what was paid for: under another name beside it, or to standard output, if need be."""
    try:
        save(text, path)
    except CommandError as error:
        beside = path.with_name(f"{path.stem}-{secrets.token_hex(4)}{path.suffix}")
        where = f"is in {beside} instead."
        try:
            save(text, beside)
        except CommandError:
            typer.echo(text, nl=False)
            where = "printed to standard output instead: keep that."
        raise CommandError("output", f"{error} It was charged, and {where}") from error


def _inert(cell: Any) -> Any:
    runs = isinstance(cell, str) and cell.startswith(_STARTS) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def _plain(value: Any) -> Any:
    """Return what JSON has, at any depth."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
