"""skdpsurv schema: a description of columns, to be filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skdpsurv.cli.columns_file import template
from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.files import Table, column_names, read_table, require_columns
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.options import AsJson, FileFormat
from skdpsurv.cli.printing import Printed, show
from skdpsurv.cli.saving import save
from skdpsurv.cli.targets import split_names

__all__ = ["schema"]

Target = Annotated[
    str | None,
    typer.Option(help="Column that fit is told of by this option.", show_default=False),
]

#: Rows that types are guessed from.
FIRST = 1000


@guarded
@grouped
def schema(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file. Private.")],
    form: FileFormat,
    time: Target = None,
    event: Target = None,
    target: Target = None,
    person: Target = None,
    drop: Annotated[
        list[str],
        typer.Option(help="Column that fit is told to --drop. May be given several times."),
    ] = [],  # noqa: B006, typer copies it
    out: Annotated[
        Path, typer.Option("--out", help="File to write. It must not exist yet.")
    ] = Path("columns.toml"),
    as_json: AsJson = False,
) -> None:
    """Write a template of columns.toml: the names of the columns, for you to say what they hold."""
    names = column_names(data, form)
    given = [name for name in (time, event, target, person) if name is not None]
    left_out = [*given, *split_names(drop, names)]
    require_columns(data, left_out, names)
    frame = read_table(Table(data, tuple(names)), form, FIRST).head(FIRST)
    if any((frame[name].astype(str) == name).any() for name in names):
        raise CommandError(
            "data",
            f"{data} must begin with a line of names, and what stands there is also found below.",
        )
    save(template(frame, data.name, left_out), out)
    show(
        Printed(
            {"schema": str(out.resolve())},
            [
                f"{out} names {len(names) - len(set(left_out))} columns. Say what each "
                "holds, from public knowledge alone, and give it to fit as --schema."
            ],
        ),
        as_json,
    )
