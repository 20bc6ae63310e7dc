"""Rows of CSV files, as they stand: a header, and as many cells in every row.

pandas fills a short row, cuts a long one or shifts its columns, and says so in a warning at most.
So rows are counted before.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from skdpsurv.cli.failures import RefusedFileError
from skdpsurv.cli.options import FileFormat

__all__ = ["encoding", "header_of", "require_even_rows"]

_OPENED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def encoding(form: FileFormat) -> str:
    """Return how text is encoded; spreadsheets write a mark before the first name."""
    return "utf-8-sig" if form.encoding.lower() in ("utf-8", "utf8") else form.encoding


def header_of(path: Path, form: FileFormat) -> list[str]:
    """Return the cells of the first row that is not empty; none of an empty file."""
    with _text(path, form) as file:
        return next((row for row in _rows(file, form) if row), [])


def require_even_rows(path: Path, form: FileFormat, first: int | None = None) -> None:
    """Refuse a file with a row that has more or fewer cells than the header.

    Raises
    ------
    RefusedFileError
        Which says what is wrong, and shows no cell.
    """
    found: set[int] | None = None
    try:
        with _text(path, form) as file:
            rows = _rows(file, form)
            lengths = map(len, rows if first is None else islice(rows, first + 1))
            found = set(lengths) - {0}  # empty lines are skipped
    except (OSError, EOFError, UnicodeError, csv.Error):
        pass
    if found is None:
        raise RefusedFileError(
            f"{path} could not be read as text: --encoding says how it is written. What was found "
            "is not shown, since it may be a record.",
        )
    if len(found) > 1:
        raise RefusedFileError(
            f"{path} has rows with more or fewer cells than the header: a cell that holds the "
            "separator must be quoted, and --separator says what that is.",
        )


def _text(path: Path, form: FileFormat) -> IO[str]:
    opened = _OPENED.get(path.suffix, open)
    file: IO[str] = opened(path, "rt", encoding=encoding(form), newline="")
    return file


def _rows(file: IO[str], form: FileFormat) -> Iterator[list[str]]:
    return csv.reader(_whole(file), delimiter=form.between)


def _whole(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:  # where others end a cell
            raise csv.Error
        yield line
