"""Prints results and writes files, after a test, before the charge, that they can be written."""

from __future__ import annotations

import json
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdpsurv.cli.failures import AS_JSON, CommandError, refusals, require

if TYPE_CHECKING:
    from skdpsurv.dp.guarantee import PrivacyGuarantee
    from skdpsurv.release import Release

#: Width of a pipe or a file, wider than any table.
UNBOUNDED = 10_000
#: Times up to the horizon at which curves are printed.
N_TIMES = 4
#: Bytes kept free for a release; those of models with ten thousands of columns need more.
RESERVED_BYTES = 2**20


def show(content: dict[str, Any], lines: Iterable[Any], written: Path | None = None) -> None:
    """Print a result to standard output.

    Parameters
    ----------
    content : dict
        Result for machines.
    lines : iterable of str or of rich tables
        Result for people, not iterated for machines.
    written : Path or None
        File that holds the result already; a failure to print refers to it.
    """
    try:
        if AS_JSON.get():
            from skdpsurv.dp.guarantee import as_json

            typer.echo(json.dumps(as_json(content, _json_leaf), allow_nan=False))
        else:
            from rich.console import Console

            from skdpsurv.report.text import escape_hidden

            console = Console(width=None if sys.stdout.isatty() else UNBOUNDED)
            for line in lines:
                if text := isinstance(line, str):
                    line = "\n".join(map(escape_hidden, line.split("\n")))
                # markup=False: "[plot]" is the name of an extra, not a style.
                console.print(line, markup=False, highlight=False, soft_wrap=text)
        sys.stdout.flush()
    except OSError as error:
        if written is None:
            raise
        message = f"{written} is written, and paid for; only printing the result failed."
        raise CommandError("output", message) from error


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a progress indicator on a terminal."""
    from rich.console import Console

    with Console(stderr=True, quiet=AS_JSON.get()).status(what):
        yield


def rich_table(frame: Any, title: str = "") -> Any:
    """Return a data frame as a table for a terminal, index first."""
    from pandas.api.types import is_numeric_dtype
    from rich.table import Table

    named = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    table = Table(title=title or None, title_justify="left")
    for name, dtype in named.dtypes.items():
        number = is_numeric_dtype(dtype)
        table.add_column(_cell(name), justify="right" if number else "left")
    for row in named.itertuples(index=False):
        table.add_row(*(_cell(f"{x:.4g}" if isinstance(x, float) else x) for x in row))
    return table


def _cell(value: Any) -> str:
    from rich.markup import escape

    from skdpsurv.report.text import escape_hidden

    return escape(escape_hidden(value))


def guarantee_line(guarantee: PrivacyGuarantee) -> str:
    """Return the guarantee in a line, with the number of protected people or records."""
    from skdpsurv.report.text import exact, how_many

    delta = f", delta = {exact(guarantee.delta)}" if guarantee.delta else ""
    loss = f"epsilon = {exact(guarantee.epsilon)}{delta}"
    return f"{how_many(guarantee)}, {loss}, {guarantee.neighbours}, status {guarantee.status}"


def result_lines(release: Release) -> Iterator[Any]:
    """Yield coefficients and how to read them, or curves at a few times, from a release alone.

    Models that have neither, or need more than their release, yield nothing.
    """
    import numpy as np

    from skdpsurv.report import units
    from skdpsurv.report.coefficients import cautions

    with suppress(ValueError, TypeError, AttributeError):
        model = release._model
        if hasattr(model, "table_"):
            yield from table_lines(model, intervals="people")
            return
        if hasattr(model, "survival_function_at_times"):
            end = float(release.parameters["max_time"])
            yield rich_table(curves(model, np.linspace(0.0, end, N_TIMES + 1)[1:]), "Survival")
            yield from getattr(model, "_horizon_words", list)()
            return
        if getattr(model, "inference_", None) is not None:
            names = ["coef", "exp(coef)", "exp(coef) lower 95%", "exp(coef) upper 95%"]
            found = model.summary[names].rename_axis(index={"covariate": "column"})
        else:
            found = units(release)
        yield rich_table(found, "Per unit, within the public bounds")
        if getattr(model, "inference_", None) is not None:
            title = "Wald tests that a term has no effect"
            for cause in getattr(model, "causes_", []):
                yield rich_table(model.of_cause(cause).test_terms(), f"{title} on {cause}")
            if hasattr(model, "test_terms"):
                yield rich_table(model.test_terms(), title)
            if model._changes is not None:
                hazards = model.proportional_hazards_test()
                yield rich_table(hazards, "Wald tests that effects do not change over time")
        yield from cautions(model)


def table_lines(model: Any, *, intervals: str | None, **options: Any) -> Iterator[Any]:
    """Yield Table 1 as people print it, and how to read it."""
    from skdpsurv.report.text import WORDS

    found = model.to_frame(intervals=intervals, **options)
    yield rich_table(found.rename_axis(["", " "]), "Table 1")
    names = ["clipped", *filter(None, [intervals]), *(["smd"] if len(model.groups_) > 1 else [])]
    names += ["quartiles"] if options.get("nonnormal") else []
    yield " ".join(WORDS["table_one"][name] for name in names)


def expected_widths(estimator: Any, n_records: int) -> Any:
    """Return half-widths to be expected of intervals of shares and means of Table 1."""
    found = estimator.expected_table(n_records).reset_index()
    first = ["Overall", *map(str, estimator._groups()[:1])]
    here = found["statistic"].isin(["share", "mean"]) & found["part"].astype(str).isin(first)
    found = found[here].drop_duplicates(["column", "part"])
    for whom in ("people", "population"):
        found[f"± {whom}"] = (found[f"{whom}_high"] - found[f"{whom}_low"]) / 2.0
    return found[["column", "statistic", "part", "± people", "± population"]]


def curves(model: Any, times: Any) -> Any:
    """Return the probability to survive each time, with intervals, by group."""
    import pandas as pd

    labels = getattr(model, "groups_", None)
    if labels is None:
        return _curve(model, times)
    members = {label: _curve(model.of_group(label), times) for label in labels.tolist()}
    return pd.concat(members, names=["group"]).reset_index("group").reset_index(drop=True)


def _curve(model: Any, times: Any) -> Any:
    import pandas as pd

    found = {"time": times, "survival": model.survival_function_at_times(times).to_numpy()}
    if hasattr(model, "survival_band"):
        band = model.survival_band(times)
        found |= {end: band[end].to_numpy() for end in ("lower", "upper")}
    for cause in getattr(model, "causes_", ()):
        name = f"incidence_{cause}"
        found[name] = model.cumulative_density_at_times(times, cause=cause).to_numpy()
        band = model.cumulative_density_band(times, cause=cause)
        found |= {f"{name}_{end}": band[end].to_numpy() for end in ("lower", "upper")}
    return pd.DataFrame(found)


def reserve(path: Path) -> None:
    """Refuse a place where a file cannot be written, by writing one there."""
    require(path.parent.is_dir(), f"there is no folder {path.parent} for {path.name}.", "output")
    exists = os.path.lexists(path)
    require(not exists, f"{path} exists, and nothing is written over it.", "output")
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
    """Write text to a new file, completely or not at all."""
    from skdpsurv.release import layout

    with refusals("output", f"{path} cannot be written: ", "."):
        layout.save(text, path)


def save_or_print(text: str, path: Path) -> None:
    """Write a paid result: to a file, to another file beside it, or else to standard output."""
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


def _json_leaf(value: Any) -> Any:
    """Return a value as JSON has it: floats that are not finite become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
