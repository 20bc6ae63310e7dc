"""A group of commands that ends every failure in one line, wrong options included."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from skdpsurv.cli.failures import EXIT_CODES, say

__all__ = ["OneLine"]

#: In the order of the work.
ORDER = ("plan", "schema", "fit", "explain", "predict", "evaluate", "ledger", "audit", "demo")

#: What others call a command, and what it is here.
OTHERS = (
    ("train", "fit"),
    ("cox", "fit survival --link cloglog"),
    ("score", "evaluate"),
    ("budget", "ledger"),
    ("report", "explain --html"),
    ("columns", "schema"),
)


class OneLine(TyperGroup):
    """Typer says what is wrong with options in a box of several lines, also to machines."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command, as Typer's own does, and end with its exit code."""
        standalone = options.pop("standalone_mode", True)
        options["standalone_mode"] = False  # errors are raised, and exit codes returned
        given = list(sys.argv[1:] if args is None else args)
        try:
            found = super().main(given, *rest, **options)
        except Exception as error:  # only what Typer knows has these two
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            text = message() or "a command must be named; --help lists them"
            if text.startswith("No such command") and "Did you mean" not in text:
                found_here = (new for old, new in OTHERS if f"'{old}'" in text)
                text += "".join(f" In its place: {new}." for new in found_here)
            say("parameter", f"{text} (--help says more.)", "--json" in given)
            found = getattr(error, "exit_code", EXIT_CODES["parameter"])
        except KeyboardInterrupt:
            say("interrupted", "interrupted.", "--json" in given)
            found = EXIT_CODES["interrupted"]
        if not standalone:
            return found
        sys.exit(found if isinstance(found, int) else 0)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the work."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: (*ORDER, name).index(name))
