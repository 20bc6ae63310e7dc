"""Failures of commands: one line, an exit code of its own, and no cell of any record.

An error of this package names the rule that was broken, and nothing of the record that broke it.
An error of another package may quote a record, so its text and its traceback are never shown.
"""

from __future__ import annotations

import json
import re
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import typer

_KINDS = ["internal", "parameter", "data", "description", "budget", "ledger", "output"]
_KINDS += ["missing package", "refuted", "not covered"]
#: Exit codes by kind of failure. A wrong option ends with 2, too.
EXIT_CODES = {kind: code for code, kind in enumerate(_KINDS, start=1)} | {"interrupted": 130}
#: Longest texts in a message: about common options, and others.
WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
#: Whether the command that runs prints for machines.
AS_JSON: ContextVar[bool] = ContextVar("AS_JSON", default=False)
CHARGED = "If the fit had begun, the ledger holds its charge."

_ROOT = Path(__file__).parents[1]


class CommandError(Exception):
    """A failure of a kind in ``EXIT_CODES``, with a message of public values only."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def require(holds: object, message: str, kind: str = "parameter") -> None:
    """End the command unless a condition holds."""
    if not holds:
        raise CommandError(kind, message)


@contextmanager
def refusals(
    kind: str, before: str = "", after: str = "", *, private: bool = False
) -> Iterator[None]:
    """End the command with a failure of this kind if anything inside raises.

    Parameters
    ----------
    kind : str
    before, after : str
        Text around the message.
    private : bool, default=False
        Records are read inside: the text of other packages' errors is hidden.
    """
    from skdpsurv.dp.budget import BudgetExceededError

    try:
        yield
        return
    except (CommandError, BudgetExceededError, ImportError):
        raise
    except Exception as error:
        found, message = _described(error, kind) if private else (kind, str(error))
        if kind == "data" and isinstance(error, BlockingIOError | FileExistsError):  # of a folder
            found, message = "output", str(error)
        if kind == "output" and isinstance(error, OSError):  # may name a temporary file
            message = error.strerror or message
    raise CommandError(found, f"{before}{message}{after if found == kind else ''}")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let every failure of a command end in one line on standard error."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        AS_JSON.set(bool(kwargs.get("as_json")))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            try:
                return command(*args, **kwargs)
            except (typer.Exit, typer.BadParameter, typer.Abort):
                raise
            except KeyboardInterrupt:
                kind, message = "interrupted", f"interrupted. {CHARGED}"
            except Exception as error:
                kind, message = _described(error, "parameter")
        # Raised outside of the handler, so that the error and its text are not chained.
        print_failure(kind, message, AS_JSON.get())
        raise typer.Exit(EXIT_CODES[kind])

    return run


def print_failure(kind: str, message: str, as_json: bool) -> None:
    """Print a failure to standard error in a line: text, or an object for machines."""
    # A protocol has names of Python.
    line = " ".join((message if kind == "description" else in_terminal(message)).split())
    content = {"error": kind, "exit_code": EXIT_CODES[kind], "message": line}
    typer.echo(json.dumps(content) if as_json else f"skdpsurv: {kind}: {line}", err=True)


def in_terminal(message: str) -> str:
    """Return a message with options of commands in place of parameters of Python."""
    for python, terminal in WORDS["terminal"].items():
        message = re.sub(python, terminal, message)
    return message


def _described(error: Exception, kind: str) -> tuple[str, str]:
    """Return the kind of failure of an exception, and a message without private values."""
    if isinstance(error, CommandError):
        return error.kind, str(error)
    from skdpsurv.dp.budget import BudgetExceededError

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


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning of this package in a line; those of others may quote a record."""
    from skdpsurv.data import PublicInputWarning
    from skdpsurv.data.target import TIMES_ALONE
    from skdpsurv.dp.guarantee import PrivacyLeakWarning

    # Times without events are not asked about: --all-events says so.
    expected = str(message).startswith(TIMES_ALONE)
    if issubclass(category, PrivacyLeakWarning | PublicInputWarning) and not expected:
        typer.echo(f"skdpsurv: warning: {in_terminal(str(message))}", err=True)
