"""Tables in files: CSV and Parquet, in memory or block by block.

What a column holds is decided by its description, never by what it looks like: labels and dates are
read as text, and what should be numbers is passed on as it is, for the estimator to refuse. Nothing
that another package says of a file is shown.

pandas fills a short row of a CSV file, cuts a long one or shifts its columns, and says so in a
warning at most. So the cells of each row are counted before.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd

from skdpsurv.cli.failures import CommandError, RefusedFileError, require
from skdpsurv.cli.options import NONE, FileFormat

#: What means missing in a CSV file, unless it is a label of the column.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
#: Rows that are read at once.
CHUNK = 200_000
#: Of a block of a file that is larger than memory.
BLOCK_BYTES = 64 * 2**20

_OPENED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Table:
    """What is to be read of a file.

    Parameters
    ----------
    path : Path
    columns : tuple of str
        In the order of the file; others are left out.
    labels : mapping of str to collection of str
        Columns that are read as text, and their labels: of these none means missing.
    target : collection of str
        Times, events, labels and people, in which ``--missing-value`` means nothing: 999 may be a
        code in one column and a time in another.
    missing : collection of str
        What means missing in the others, as their description has it.
    """

    path: Path
    columns: tuple[str, ...]
    labels: Mapping[str, Collection[str]] = field(default_factory=dict)
    target: Collection[str] = ()
    missing: Collection[str] = ()


def column_names(path: Path, form: FileFormat) -> list[str]:
    """Return the names of the columns of a file, or of all files that a name with a * stands for.

    Raises
    ------
    CommandError
        If it cannot be read, a name is missing or a number, two columns have one name, or files
        have other columns than the first.
    """
    first, *others = _files(path, form)
    names = _checked_names(first, form)
    for other in others:
        message = f"{other} must have the columns of {first}, in their order."
        require(_checked_names(other, form) == names, message, "data")
    return names


def require_columns(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a file that lacks a column.

    Names that it has are not said, but for one that was all but typed: without a header they are
    cells of somebody's.
    """
    missing = [name for name in wanted if name not in names]
    near = [name for name in names if name.lower() in [one.lower() for one in missing[:1]]]
    hint = f"Did you mean {near[0]}?" if near else "Does it begin with a line of names?"
    message = f"{path} must have the column(s) {', '.join(missing)}. {hint} Is --separator right?"
    require(not missing, message, "data")


def read_table(table: Table, form: FileFormat, first: int | None = None) -> Any:
    """Return the rows of a file: a data frame of pandas, or of Dask if that is asked for.

    Parameters
    ----------
    table : Table
    first : int or None
        How many rows, in memory; None for all. Of Parquet, all are read.

    Raises
    ------
    RefusedFileError
        If it cannot be read, or a row has more or fewer cells than the header.
    CommandError
        If a package is missing.
    """
    lazy = form.dask and first is None
    if _is_parquet(table.path):
        with _reading(table.path):
            return _parquet(table, lazy)
    for file in _files(table.path, form):
        require_even_rows(file, form, first)
    with _reading(table.path):
        return _lazy_csv(table, form) if lazy else _csv(table, form, first)


def require_even_rows(path: Path, form: FileFormat, first: int | None = None) -> None:
    """Refuse a file with a row that has more or fewer cells than the header."""
    with _reading(path), _rows(path, form) as rows:
        lengths = set(map(len, rows if first is None else islice(rows, first + 1)))
    if len(lengths - {0}) > 1:  # empty lines are skipped
        raise RefusedFileError(
            "data",
            f"{path} has rows with more or fewer cells than the header: a cell that holds the "
            "separator must be quoted, and --separator says what that is.",
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say that a file cannot be read, and nothing else: it may be a record."""
    try:
        yield
        return
    except CommandError:
        raise
    except ImportError:
        message = 'Parquet files and --dask need more: pip install "skdpsurv[distributed]"'
        error = CommandError("missing package", message)
    except Exception:  # of any kind: what it says may quote a cell
        what = "Parquet" if _is_parquet(path) else "CSV"
        error = RefusedFileError(
            "data",
            f"{path} could not be read as {what}: is it one, and not empty? --separator says what "
            "is between the cells of CSV, --encoding how its text is written, and a spreadsheet's "
            "own file must be saved as CSV, in UTF-8. What was found is not shown, since it may be "
            "a record.",
        )
    raise error


def _is_parquet(path: Path) -> bool:
    return path.suffix in (".parquet", ".pq") or path.is_dir()


def _files(path: Path, form: FileFormat) -> list[Path]:
    found = sorted(path.parent.glob(path.name)) if form.dask and "*" in path.name else [path]
    require(found and found[0].exists(), f"there is no file {path}.", "data")
    plain = replace(form, dask=False, missing_value=form.missing_value or NONE)
    message = "--separator, --decimal, --encoding and --missing-value are for CSV files."
    require(plain == FileFormat() or not _is_parquet(path), message)
    return found


def _checked_names(path: Path, form: FileFormat) -> list[str]:
    with _reading(path):
        if _is_parquet(path):
            names = list(_dataset(path).schema.names)
        else:
            with _rows(path, form) as rows:
                (names,) = islice(filter(None, rows), 1)
    # Without a header these are cells of somebody's: places are named, and no names.
    for place, name in enumerate(names, start=1):
        named = name and not looks_like_a_cell(name) and name not in names[: place - 1]
        message = f"{path} must begin with a line of names, and that of column {place} is none."
        require(named, f"{message} Each must have one of its own, and no number.", "data")
    return names


def looks_like_a_cell(name: str) -> bool:
    """Say whether a name is one that a column has hardly, and a record easily."""
    if name.lower() in ("true", "false"):
        return True
    for read in (float, pd.Timestamp):
        with suppress(Exception):  # of any kind: it is none
            read(name.replace(",", "."))
            return name[:1].isdigit() or name[:1] in "+-." or read is float
    return False


def _dataset(path: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path)


def _parquet(table: Table, lazy: bool) -> Any:
    columns = list(table.columns)
    if lazy:
        import dask.dataframe as dd

        # An index that pandas has named is a column of the file.
        return dd.read_parquet(table.path, columns=columns, index=False)
    return _dataset(table.path).to_table(columns).to_pandas(ignore_metadata=True)


def _encoding(form: FileFormat) -> str:
    """Return how text is encoded; spreadsheets write a mark before the first name."""
    return "utf-8-sig" if form.encoding.lower() in ("utf-8", "utf8") else form.encoding


@contextmanager
def _rows(path: Path, form: FileFormat) -> Iterator[Iterator[list[str]]]:
    opened = _OPENED.get(path.suffix, open)
    with opened(path, "rt", encoding=_encoding(form), newline="") as file:
        yield csv.reader(_whole(file), delimiter=form.between)


def _whole(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:  # where others end a cell
            raise csv.Error
        yield line


def _arguments(table: Table, form: FileFormat) -> dict[str, Any]:
    missing = {
        name: {*MISSING, *_coded(table, form, name)} - set(table.labels.get(name, ()))
        for name in table.columns
    }
    return {
        "sep": form.between,
        "decimal": form.decimal,
        "usecols": list(table.columns),
        "index_col": False,
        "dtype": {name: str for name in table.columns if name in table.labels},
        "na_values": missing,
        "keep_default_na": False,
        "encoding": _encoding(form),
        # Else a whole number may be another double where somebody else's has a fraction.
        "float_precision": "round_trip",
    }


def _coded(table: Table, form: FileFormat, name: str) -> tuple[str, ...]:
    return () if name in table.target else (*form.missing_value, *table.missing)


def _without_codes(table: Table, form: FileFormat, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which numbers that mean missing are, however they are written."""
    for name in frame.columns:
        codes = []
        for text in _coded(table, form, name):
            with suppress(ValueError):
                codes.append(float(text.replace(form.decimal, ".")))
        if codes and frame[name].dtype.kind in "iuf":
            frame[name] = frame[name].mask(frame[name].isin(codes))
    return frame


def _csv(table: Table, form: FileFormat, first: int | None) -> pd.DataFrame:
    arguments = {"chunksize": CHUNK, "nrows": first, "low_memory": False}
    chunks = pd.read_csv(table.path, **arguments, **_arguments(table, form))
    found = [_without_codes(table, form, chunk) for chunk in chunks]
    return pd.concat(found, ignore_index=True)[list(table.columns)]


def _lazy_csv(table: Table, form: FileFormat) -> Any:
    """Return a collection of Dask, of which nothing is read yet."""
    import dask
    import dask.dataframe as dd

    arguments = _arguments(table, form)
    # Dask guesses types by the first rows; whole numbers may be followed by others.
    rest = [name for name in table.columns if name not in table.labels]
    arguments["dtype"] |= dict.fromkeys(rest, float)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.read_csv(str(table.path), blocksize=BLOCK_BYTES, **arguments)
        return frame[list(table.columns)]
