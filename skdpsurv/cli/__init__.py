"""The command line: from a file of records to a release, without a line of Python."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from skdpsurv.cli import ledger_command, study_command
from skdpsurv.cli.demo import demo
from skdpsurv.cli.failures import EXIT_CODES, WORDS, print_failure
from skdpsurv.cli.fitting import evaluate, fit
from skdpsurv.cli.releases import explain, pool, predict, verify
from skdpsurv.cli.simulate import audit, plan, planner, simulate
from skdpsurv.cli.survival_columns import schema
from skdpsurv.cli.table_command import table
from skdpsurv.dp.references import __version__

__all__ = ["app"]


class OneLine(TyperGroup):
    """Typer says what is wrong with options in a box of several lines, also to machines."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command, as Typer's own does, and end with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            # Errors are raised, and exit codes returned.
            found = super().main(given, *rest, **{**options, "standalone_mode": False})
        except Exception as error:  # only what Typer knows has these two
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            text = message() or "a command must be named"
            said, hinted = "\n".join(given), WORDS["hints"].items()
            hints = [hint for words, hint in hinted if re.search(f"(?im)^({words})$", said)]
            text = " ".join([text.replace("Value error, ", ""), "(--help says more.)", *hints])
            print_failure("parameter", text, "--json" in given)
            found = getattr(error, "exit_code", EXIT_CODES["parameter"])
        sys.exit(found if isinstance(found, int) else 0)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skdpsurv {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="skdpsurv",
    cls=OneLine,
    epilog=f"Exit codes: 0 done, {', '.join(f'{n} {kind}' for kind, n in EXIT_CODES.items())}.",
    no_args_is_help=True,
    # A traceback must not print records.
    pretty_exceptions_enable=False,
)


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


# In the order of the work.
COMMANDS = (
    *(planner, plan, schema, table, fit, explain, verify, predict, evaluate, pool),
    *(simulate, audit, demo),
)
for each in COMMANDS:
    app.command()(each)
app.add_typer(study_command.app, name="study")
app.add_typer(ledger_command.app, name="ledger")
