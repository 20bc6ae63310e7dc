"""What ends a command early: one line, an exit code of its own, and no cell of any record.

An error of this package says what rule was broken, and nothing of the record that broke it. One of
another package may quote a record, so its text is never shown, and neither is a traceback.
"""

from __future__ import annotations

import json
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import typer

import skdpsurv
from skdpsurv.preprocessing import PublicInputWarning
from skdpsurv.privacy import BudgetExceededError, PrivacyLeakWarning, RefusedValueError
from skdpsurv.target import COMPARED, TAKEN, TIMES_ALONE

__all__ = ["EXIT_CODES", "CommandError", "RefusedFileError", "guarded", "note", "say"]

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

_ROOT = Path(skdpsurv.__file__).parent
#: Where what is raised is about the ledger.
_LEDGER = tuple(
    str(_ROOT / "privacy" / name)
    for name in (
        "accountant.py",
        "ledger.py",
        "sql_ledger.py",
        "sqlite_file.py",
        "postgresql_server.py",
        "file_lock.py",
        "budget.py",
    )
)
#: What looks at values: the step of a fit, what counts people before it, what takes raw rows.
_READING = ("_read", "_gathered", "_labels", "raw_rows", "_refuse_beyond")

#: What a fit says, and what a command says in its place.
_IN_OTHER_WORDS = {
    "Unknown label type: ": "",
    "the times of y must be numbers": "the column of --time must hold numbers alone: times since a "
    "common start, not dates (--decimal says what the decimal point is)",
    "the times of y": "the column of --time",
    "the event column of y must be boolean, or 0 and 1": "the column of --event must hold 1 and 0, "
    "or true and false; other labels are named by --event-is and --censored-is, and whatever is "
    "neither is refused (upper and lower case count)",
    f" {COMPARED}": "",
    ". X must": ". The file must",
    "event_observed must": "the column of --event must",
    "group must hold, for each record, one of the labels in groups": "the column of --group must "
    "hold one of --groups in each row, and no missing cell",
    "must hold its public categories alone": "must hold the categories of the schema alone (add "
    "one there if it is public, or recode it)",
    "text is none, even of digits": "text is none; --missing-value names what means missing, "
    "--decimal the decimal point",
    "missing='midpoint' of that column is the middle of the public values, missing='category' also "
    "makes a feature of it": 'in the schema, missing = "midpoint" in its braces counts it as the '
    'middle, and missing = "category" gives it a coefficient of its own',
    "missing='category' of that column makes a feature of it": "in the schema, missing = "
    '"category" in its braces gives it a coefficient of its own',
}
#: What helps whoever has arrays.
_OF_ARRAYS = re.compile(
    r", which truth values are not: sksurv[^.]*\.util\.Surv.* of two arrays"
    rf"| {TAKEN} .*: name the columns event and time\."
)
_SEEDED = (
    "with --seed the noise can be drawn again and subtracted: what comes out is not private. For a "
    "release, leave it out."
)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class CommandError(Exception):
    """A failure in words of ours.

    Parameters
    ----------
    kind : str
        One of ``EXIT_CODES``.
    message : str
        One line, of public values only.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RefusedFileError(CommandError, RefusedValueError):
    """A file that what its records hold makes unreadable.

    Parameters
    ----------
    message : str
        One line, of public values only.
    """

    def __init__(self, message: str) -> None:
        super().__init__("data", message)


def guarded(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a command end in one line on standard error, whatever happens in it.

    With its option ``json`` that line is an object with the keys error, exit_code and message.
    """

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        as_json = bool(kwargs.get("as_json"))
        with _warnings_in_a_line():
            try:
                return command(*args, **kwargs)
            except (typer.Exit, typer.BadParameter, typer.Abort):
                raise
            except CommandError as error:
                kind, message = error.kind, str(error)
            except KeyboardInterrupt:
                kind = "interrupted"
                message = "interrupted. If the fit had begun, the ledger holds its charge."
            except Exception as error:  # of any kind: what it says may be private
                kind, message = _described(error)
        # Outside of the handler, so that nothing chains the error and its text.
        say(kind, message, as_json)
        raise typer.Exit(EXIT_CODES[kind])

    return run


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    typer.echo(text, err=True)


def say(kind: str, message: str, as_json: bool) -> None:
    """End with a line on standard error: text, or an object for machines."""
    line = " ".join(message.split())
    if as_json:
        line = json.dumps({"error": kind, "exit_code": EXIT_CODES[kind], "message": line})
        note(line)
    else:
        note(f"skdpsurv: {kind}: {line}")


def _described(error: Exception) -> tuple[str, str]:
    """Return what kind of failure an exception is, and what may be said of it."""
    frames = traceback.extract_tb(error.__traceback__)
    reading = any(frame.name in _READING for frame in frames)
    if isinstance(error, BudgetExceededError):
        return "budget", str(error)
    if _is_of_ours(frames[-1]):
        if isinstance(error, ImportError):
            return "missing package", str(error)
        if isinstance(error, ValueError | TypeError | OSError | RuntimeError):
            if any(frame.filename in _LEDGER for frame in frames):
                return "ledger", str(error)
            return "data" if reading else "parameter", _of_the_file(str(error))
    last = [frame for frame in frames if _is_inside(frame)][-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    if reading:
        return "data", (
            f"a column does not hold what it should ({type(error).__name__}, {place}); its text "
            "is not shown, since it may quote a record."
        )
    return "internal", (
        f"unexpected {type(error).__name__} at {place}. Its text is not shown, since it may quote "
        "a record. If the fit had begun, the ledger holds its charge."
    )


def _is_inside(frame: traceback.FrameSummary) -> bool:
    return Path(frame.filename).is_relative_to(_ROOT)


def _is_of_ours(frame: traceback.FrameSummary) -> bool:
    """Say whether an error was raised by a statement of this package, and not by a call in it.

    What is written in C, such as ``float``, has no frame of its own, and quotes what it is given.
    """
    return _is_inside(frame) and (frame.line or "").startswith("raise ")


def _of_the_file(message: str) -> str:
    """Return a message about the arguments of ``fit`` as one about the file."""
    for word in ("X ", "table "):
        if message.startswith(word):
            message = f"the file {message.removeprefix(word)}"
    message = _OF_ARRAYS.sub("", message)
    for ours, theirs in _IN_OTHER_WORDS.items():
        message = message.replace(ours, theirs)
    return message


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show the warnings of this package alone, each in a line; others may quote a record."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # Of a command, --all-events has said so.
        asked = str(message).startswith(TIMES_ALONE)
        if issubclass(category, PrivacyLeakWarning | PublicInputWarning) and not asked:
            seeded = "random_state is an integer" in str(message)
            note(f"skdpsurv: warning: {_SEEDED if seeded else message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shown in (PrivacyLeakWarning, PublicInputWarning):
            warnings.simplefilter("always", shown)
        warnings.showwarning = show
        yield
