"""What ends a command early: one line, an exit code of its own, and no cell of any record.

An error of this package says what rule was broken, and nothing of the record that broke it. One of
another package may quote a record, so its text is never shown, and neither is a traceback.
"""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import typer

from skdpsurv.data import PublicInputWarning
from skdpsurv.data.target import TIMES_ALONE
from skdpsurv.dp import BudgetExceededError, InputValueError, PrivacyLeakWarning

#: Exit codes by kind of failure. 2 is also what a wrong option ends with.
EXIT_CODES = {
    "internal": 1,
    "parameter": 2,
    "data": 3,
    "description": 4,
    "budget": 5,
    "ledger": 6,
    "output": 7,
    "missing package": 8,
    "refuted": 9,
    "interrupted": 130,
}
CHARGED = "If the fit had begun, the ledger holds its charge."

_ROOT = Path(__file__).parents[1]


class CommandError(Exception):
    """A failure in words of ours: its kind, one of ``EXIT_CODES``, and public values only."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RefusedFileError(CommandError, InputValueError):
    """A file that what its records hold makes unreadable."""


def require(holds: object, message: str, kind: str = "parameter") -> None:
    """End the command, unless a condition holds."""
    if not holds:
        raise CommandError(kind, message)


@contextmanager
def refusals(
    kind: str, before: str = "", after: str = "", *, private: bool = False
) -> Iterator[None]:
    """Let what is refused inside end the command as a failure of this kind.

    Parameters
    ----------
    kind : str
    before, after : str
        Said around the message.
    private : bool, default=False
        Whether records are read inside: only what this package raises is said then.
    """
    try:
        yield
        return
    except (CommandError, BudgetExceededError, ImportError):
        raise
    except Exception as error:
        found, message = _described(error, kind) if private else (kind, str(error))
    raise CommandError(found, f"{before}{message}{after if found == kind else ''}")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end in one line on standard error, whatever happens in it.

    With its option ``json`` that line is an object with the keys error, exit_code and message.
    """

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with _warnings_in_a_line():
            try:
                return command(*args, **kwargs)
            except (typer.Exit, typer.BadParameter, typer.Abort):
                raise
            except KeyboardInterrupt:
                kind, message = "interrupted", f"interrupted. {CHARGED}"
            except Exception as error:  # of any kind: what it says may be private
                kind, message = _described(error, "parameter")
        # Outside of the handler, so that nothing chains the error and its text.
        say(kind, message, bool(kwargs.get("as_json")))
        raise typer.Exit(EXIT_CODES[kind])

    return run


def say(kind: str, message: str, as_json: bool) -> None:
    """End with a line on standard error: text, or an object for machines."""
    line = " ".join(message.split())
    content = {"error": kind, "exit_code": EXIT_CODES[kind], "message": line}
    typer.echo(json.dumps(content) if as_json else f"skdpsurv: {kind}: {line}", err=True)


def _described(error: Exception, kind: str) -> tuple[str, str]:
    """Return what kind of failure an exception is, and what may be said of it."""
    if isinstance(error, CommandError):
        return error.kind, str(error)
    if isinstance(error, BudgetExceededError):
        return "budget", str(error)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_ROOT)]
    if ours[-1] is frames[-1] and (frames[-1].line or "").startswith("raise "):
        if isinstance(error, ImportError):
            return "missing package", str(error)
        if isinstance(error, ValueError | TypeError | OSError | RuntimeError):
            return kind, str(error)
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    hidden = f"{type(error).__name__} at {place}. Its text is not shown, as it may quote a record."
    if kind == "data" and isinstance(error, ValueError | TypeError):
        return "data", f"a column does not hold what it should: {hidden}"
    return "internal", f"unexpected {hidden} {CHARGED}"


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show the warnings of this package alone, each in a line; others may quote a record."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # A command was told --all-events.
        asked = str(message).startswith(TIMES_ALONE)
        if issubclass(category, PrivacyLeakWarning | PublicInputWarning) and not asked:
            typer.echo(f"skdpsurv: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield
