"""The commands, by their names."""

from __future__ import annotations

from typing import Annotated

import typer

from skdpsurv import __version__
from skdpsurv.cli import fit_commands, ledger_commands
from skdpsurv.cli.audit_command import audit
from skdpsurv.cli.demo_command import demo
from skdpsurv.cli.evaluate_command import evaluate
from skdpsurv.cli.explain_command import explain
from skdpsurv.cli.failures import EXIT_CODES
from skdpsurv.cli.one_line import OneLine
from skdpsurv.cli.plan_command import plan
from skdpsurv.cli.pool_command import pool
from skdpsurv.cli.predict_command import predict
from skdpsurv.cli.schema_command import schema

__all__ = ["app"]

_CODES = ", ".join(f"{code} {kind}" for kind, code in EXIT_CODES.items())

app = typer.Typer(
    name="skdpsurv",
    cls=OneLine,
    help="Survival analysis with differential privacy: from a file of records to a model that "
    "may be published.",
    epilog=f"Exit codes: 0 done, {_CODES}.",
    no_args_is_help=True,
    # A traceback must not print records.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skdpsurv {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Survival analysis with differential privacy: from records to a model to publish."""


app.command()(schema)
app.add_typer(fit_commands.app, name="fit")
app.command()(pool)
app.command()(explain)
app.command()(predict)
app.command()(evaluate)
app.add_typer(ledger_commands.app, name="ledger")
app.command()(plan)
app.command()(audit)
app.command()(demo)
