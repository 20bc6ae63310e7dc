"""Tables in files: CSV and Parquet, in memory or block by block; Excel, Stata and SAS in memory.

The description of a column decides what it holds, never its cells: labels and dates are read as
text, and anything else is passed on for the estimator to refuse. Messages of other packages are
hidden. The cells of each row are counted first, as pandas fills short rows and shifts long ones.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from skdpsurv.cli.failures import CommandError, require
from skdpsurv.cli.options import NONE, FileFormat

#: Texts that mean missing in a CSV file, unless they are a label of the column.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
#: Rows that are read at once.
CHUNK = 200_000
#: Bytes of a block of a file that is larger than memory.
BLOCK_BYTES = 64 * 2**20

_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


#: Name of the column that marks each row of made-up people.
MADE_UP = "made_up"
#: Functions of pandas for files of other programs.
READERS = {".xlsx": "read_excel", ".dta": "read_stata", ".sas7bdat": "read_sas"}


@dataclass(frozen=True)
class RecordFile:
    """The part of a file that is read.

    Parameters
    ----------
    path : Path
    columns : tuple of str
        Names, in the order of the file; other columns are left out.
    labels : mapping of str to collection of str
        Columns that are read as text, with their labels, none of which means missing.
    target : collection of str
        Times, events, labels and persons, to which ``--missing-value`` does not apply: 999 may be a
        code in one column and a time in another.
    missing : collection of str
        Texts that mean missing in the others, by their description.
    made_up : bool
        Whether a column that is not read marks people as made up.
    """

    path: Path
    columns: tuple[str, ...]
    labels: Mapping[str, Collection[str]] = field(default_factory=dict)
    target: Collection[str] = ()
    missing: Collection[str] = ()
    made_up: bool = False


def column_names(path: Path, form: FileFormat) -> list[str]:
    """Return the column names of a file, or of all files that a name with a * stands for."""
    first, *others = _files(path, form)
    names = _checked_names(first, form)
    for other in others:
        message = f"{other} must have the columns of {first}, in their order."
        require(_checked_names(other, form) == names, message, "data")
    return names


def require_columns(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a file that lacks a column.

    Other names are not shown, but for one that differs in case or in spaces: without a header they
    are cells.
    """
    missing = [name for name in wanted if name not in names]
    first = "".join(missing[:1]).strip().lower()
    near = [name for name in names if name.strip().lower() == first]
    spaces = " It has spaces around it, which count." if near and near[0] != near[0].strip() else ""
    hint = f"Did you mean {near[0]!r}?{spaces}" if near else "Does it begin with a line of names?"
    message = f"{path} must have the column(s) {few(missing)}. {hint} Is --separator right?"
    require(not missing, message, "data")


def few(names: Sequence[str]) -> str:
    """Return names in a line: all, or the first ones and the number of others."""
    more = len(names) - 6
    return ", ".join(names) if more < 1 else f"{', '.join(names[:6])} and {more:,} more"


def read_table(table: RecordFile, form: FileFormat, first: int | None = None) -> Any:
    """Return the rows of a file, or the first ones: a frame of pandas, or of Dask if asked for."""
    lazy = form.dask and first is None
    if not _has_types(table.path):
        for file in _files(table.path, form):
            require_even_rows(file, form, first)
    with _reading(table.path):
        if table.path.suffix in READERS:
            return _other(table, form)
        if _is_parquet(table.path):
            return _parquet(table, lazy)
        return _lazy_csv(table, form) if lazy else _csv(table, form, first)


def require_even_rows(path: Path, form: FileFormat, first: int | None = None) -> None:
    """Refuse a file with a row that has more or fewer cells than the header."""
    with _reading(path), _rows(path, form) as rows:
        lengths = set(map(len, rows if first is None else islice(rows, first + 1)))
    message = (
        f"{path} has rows with more or fewer cells than the header. Is --separator right? A cell "
        "that holds the separator must be quoted."
    )
    require(len(lengths - {0}) <= 1, message, "data")  # empty lines are skipped


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Replace any error of a reader by one that shows no cell."""
    try:
        yield
        return
    except CommandError:
        raise
    except ImportError:
        message = 'Parquet files and --dask need more: pip install "skdpsurv[distributed]"'
        if path.suffix in READERS:
            message = f"{path.suffix} files need openpyxl: pip install openpyxl"
        error = CommandError("missing package", message)
    except Exception:
        kind = path.suffix if path.suffix in READERS else "CSV"
        message = (
            f"{path} could not be read as {'Parquet' if _is_parquet(path) else kind}. Is it one, "
            "and not empty? Are --separator and --encoding right? A spreadsheet must be saved as "
            ".xlsx, or as CSV in UTF-8. The cause is not shown, since it may quote a record."
        )
        error = CommandError("data", message)
    raise error


def _is_parquet(path: Path) -> bool:
    return path.suffix in (".parquet", ".pq") or path.is_dir()


def _has_types(path: Path) -> bool:
    """Return whether the format of a file states the types of its cells, as CSV does not."""
    return _is_parquet(path) or path.suffix in READERS


def _files(path: Path, form: FileFormat) -> list[Path]:
    found = sorted(path.parent.glob(path.name)) if form.dask and "*" in path.name else [path]
    require(found and found[0].exists(), f"there is no file {path}.", "data")
    plain = replace(form, dask=False, missing_value=form.missing_value or NONE)
    message = "--separator, --decimal, --encoding and --missing-value are for CSV files."
    require(plain == FileFormat() or not _has_types(path), message)
    require(not form.dask or path.suffix not in READERS, "--dask is for CSV and Parquet files.")
    return found


def _checked_names(path: Path, form: FileFormat) -> list[str]:
    with _reading(path):
        if path.suffix in READERS:
            names = _other_names(path)
        elif _is_parquet(path):
            names = list(_dataset(path).schema.names)
        else:
            # Records are decoded with the names: to refuse their bytes would be a look at them.
            with _rows(path, form, "replace") as rows:
                (names,) = islice(filter(None, rows), 1)
            if any("\ufffd" in name for name in names):
                raise ValueError
    empty = names.index("") + 1 if "" in names else 0
    message = (
        f"{path} has no name for column {empty}, as R's write.csv and pandas' to_csv write row "
        "names: write it with row.names = FALSE, or index=False."
    )
    require(not empty, message, "data")
    # Without a header these are cells of a record, so the message gives a position, not a name.
    for position, name in enumerate(names, start=1):
        valid = not looks_like_a_cell(name) and name not in names[: position - 1]
        message = f"{path} must begin with a line of names; column {position} has no valid one."
        require(valid, f"{message} Names must be distinct, and no numbers or dates.", "data")
    return names


def looks_like_a_cell(name: str) -> bool:
    """Say whether a text is more likely a cell than a name: a number, a date or a truth value."""
    import pandas as pd

    if name.lower() in ("true", "false"):
        return True
    for read in (float, pd.Timestamp):
        with suppress(Exception):
            read(name.replace(",", "."))
            return name[:1].isdigit() or name[:1] in "+-." or read is float
    return False


def _dataset(path: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path)


def _parquet(table: RecordFile, lazy: bool) -> Any:
    columns = list(table.columns)
    if lazy:
        import dask.dataframe as dd

        # An index that pandas has named is a column of the file.
        return dd.read_parquet(table.path, columns=columns, index=False)
    return _dataset(table.path).to_table(columns).to_pandas(ignore_metadata=True)


def _other_names(path: Path) -> list[str]:
    if path.suffix == ".xlsx":  # pandas would change names that stand twice
        return list(_reader(path)(header=None, nrows=1, dtype=str).iloc[0].fillna(""))
    with _reader(path)(iterator=True) as rows:
        return list(rows.read(1).columns)


def _reader(path: Path) -> Callable[..., Any]:
    import pandas as pd

    options = {".xlsx": {"engine": "openpyxl"}, ".sas7bdat": {"encoding": "infer"}}
    return partial(getattr(pd, READERS[path.suffix]), path, **options.get(path.suffix, {}))


def _other(table: RecordFile, form: FileFormat) -> Any:
    options: dict[str, Any] = {}
    if table.path.suffix == ".xlsx":
        usual, names = _arguments(table, form), ("na_values", "keep_default_na", "usecols")
        # 007 stays text, but dates keep their type.
        texts = [n for n, labels in table.labels.items() if labels or n in table.target]
        options = {n: usual[n] for n in names} | {"dtype": dict.fromkeys(texts, str)}
    frame = _reader(table.path)(**options)[list(table.columns)]
    return _without_codes(table, form, frame)


def _separator(form: FileFormat) -> str:
    return form.separator.replace("\\t", "\t")


def _encoding(form: FileFormat) -> str:
    """Return the encoding; spreadsheets write a mark before the first name."""
    return "utf-8-sig" if form.encoding.lower() in ("utf-8", "utf8") else form.encoding


@contextmanager
def _rows(path: Path, form: FileFormat, errors: str = "strict") -> Iterator[Iterator[list[str]]]:
    opened = _OPEN.get(path.suffix, open)
    with opened(path, "rt", encoding=_encoding(form), errors=errors, newline="") as file:
        yield csv.reader(_without_nulls(file), delimiter=_separator(form))


def _without_nulls(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:  # some readers end a cell there
            raise csv.Error
        yield line


def _arguments(table: RecordFile, form: FileFormat) -> dict[str, Any]:
    missing = {
        name: {*MISSING, *_codes(table, form, name)} - set(table.labels.get(name, ()))
        for name in table.columns
    }
    return {
        "sep": _separator(form),
        "decimal": form.decimal,
        "usecols": list(table.columns),
        "index_col": False,
        "dtype": {name: str for name in table.columns if name in table.labels},
        "na_values": missing,
        "keep_default_na": False,
        "encoding": _encoding(form),
        # Otherwise an integer may become another double if some other record has a fraction.
        "float_precision": "round_trip",
    }


def _codes(table: RecordFile, form: FileFormat, name: str) -> tuple[str, ...]:
    """Return the texts that mean missing in a covariate, beside the usual ones."""
    return () if name in table.target else (*form.missing_value, *table.missing)


def _without_codes(table: RecordFile, form: FileFormat, frame: Any) -> Any:
    """Return rows without numbers that mean missing, however they are written."""
    for name in frame.columns:
        codes = []
        for text in _codes(table, form, name):
            with suppress(ValueError):
                codes.append(float(text.replace(form.decimal, ".")))
        if codes and frame[name].dtype.kind in "iuf":
            frame[name] = frame[name].mask(frame[name].isin(codes))
    return frame


def _csv(table: RecordFile, form: FileFormat, first: int | None) -> Any:
    import pandas as pd

    arguments = {"chunksize": CHUNK, "nrows": first, "low_memory": False}
    chunks = pd.read_csv(table.path, **arguments, **_arguments(table, form))
    found = [_without_codes(table, form, chunk) for chunk in chunks]
    return pd.concat(found, ignore_index=True)[list(table.columns)]


def _lazy_csv(table: RecordFile, form: FileFormat) -> Any:
    """Return a collection of Dask, of which nothing is read yet."""
    import dask
    import dask.dataframe as dd

    arguments = _arguments(table, form)
    # Dask guesses types by the first rows, but fractions may follow integers.
    arguments["dtype"] = dict.fromkeys(table.columns, float) | arguments["dtype"]
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.read_csv(str(table.path), blocksize=BLOCK_BYTES, **arguments)
        return frame[list(table.columns)]
