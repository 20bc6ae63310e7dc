"""Files that a command writes: their place is sure before anything is spent."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import typer

from skdpsurv.cli.failures import CommandError
from skdpsurv.release import layout

__all__ = ["reserve", "save", "save_or_print"]

#: A release takes less, but for models of ten thousands of columns.
RESERVED_BYTES = 2**20


def reserve(path: Path) -> None:
    """Refuse a place where a file cannot be written, by writing one there.

    Raises
    ------
    CommandError
        If there is such a file, no folder, no right to write, or no room.
    """
    if os.path.lexists(path):
        raise CommandError("output", f"{path} exists, and nothing is written over it.")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    reason = None
    try:
        with draft.open("xb") as file:
            # Compressing file systems would find room for zeros anywhere.
            file.write(os.urandom(RESERVED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror
    finally:
        draft.unlink(missing_ok=True)
    if reason is not None:
        raise CommandError("output", f"{path} cannot be written: {reason}.")


def save(text: str, path: Path) -> None:
    """Write text to a new file: the whole of it, or nothing.

    Raises
    ------
    CommandError
        If there is such a file, or it cannot be written.
    """
    try:
        layout.save(text, path)
    except FileExistsError:
        reason = "it exists, and nothing is written over it"
    except OSError as error:
        reason = str(error.strerror)
    else:
        return
    raise CommandError("output", f"{path} cannot be written: {reason}.")


def save_or_print(text: str, path: Path) -> None:
    """Write what was paid for: under another name beside it, or to standard output, if need be.

    Raises
    ------
    CommandError
        Where it is instead, if it could not be written to ``path``.
    """
    try:
        save(text, path)
    except CommandError as error:
        beside = path.with_name(f"{path.stem}-{secrets.token_hex(4)}{path.suffix}")
        try:
            save(text, beside)
        except CommandError:
            typer.echo(text, nl=False)
            where = "It was charged, and printed to standard output instead: keep that."
        else:
            where = f"It was charged, and is in {beside} instead."
        message = f"{error} {where}"
    else:
        return
    raise CommandError("output", message)
