"""Cells of raw columns, read by what the column is declared to be and never by what it looks like.

Whatever a cell is asked may answer with an error that quotes it. So every reader here runs inside
of :func:`quietly`, and what cannot be read is refused outside, in words of ours.

A cell is asked nothing unless its type is one of Python, NumPy or pandas itself: so none can speak
for another.

Tables of raw columns: data frames, arrays and lists of rows, taken apart by public names.

Records one at a time, each made anew of its own cells.

A row that is cut out of a table has the types of whole columns: one record's gap makes floats of a
column of integers, its text makes objects of numbers, its category is in the list of all. What a
model makes of such a row is a function of all records. Here a row is a function of its cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.shape import is_frame
from skdpsurv.dp import InputValueError, refuse_masked, suppressed_float_errors
from skdpsurv.dp.input_errors import FLOATS, NO_TABLE, NUMBERS, REAL, TEXT, all_of, call_or_none
from skdpsurv.dp.types import FloatArray, IndexArray

#: Doubles from here on stand for several whole numbers each.
LARGEST_FLOAT = 2.0**53
LABELS = NUMBERS | TEXT | {Decimal}
MOMENTS = TEXT | {date, datetime, np.datetime64, pd.Timestamp}
#: How many units of time a day has.
_PER_DAY = {"h": 24, "m": 1_440, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
_PER_DAY["ns"] = 86_400 * 10**9
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?)?", flags=re.ASCII)


def quietly(read: Callable[..., Any], *args: Any) -> Any:
    """Return what a reader returns; None if it raises anything at all."""
    with suppressed_float_errors():
        return call_or_none(read, *args)


def numbers(column: Any) -> FloatArray:
    """Read numbers or booleans; NaN where missing."""
    cells = _cells(column)
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, dtype=np.float64)
    return _filled(cells, REAL, np.nan, lambda found: _objects(found).astype(np.float64))


def places(column: Any, labels: Sequence[Any], types: frozenset[type] = LABELS) -> IndexArray:
    """Read labels: the place of each among the known ones by Python's equality, -1 where missing.

    In one array a record's 1.0 would make 2^53 + 1 of another 2^53, and its text make text of all.
    """
    if hasattr(column, "to_list") and not isinstance(column, pd.Series):
        # NumPy would make floats of integers of which some are missing.
        column = column.tolist() if hasattr(column, "tolist") else column.to_list()
    cells = _objects(column) if isinstance(column, list | tuple | range) else np.asarray(column)
    _require(cells.ndim == 1)
    if cells.dtype.kind in "biuf":
        different, index = np.unique(cells, return_inverse=True)
        found: IndexArray = places(different.tolist(), labels, types)[index]
        return found
    known = {label: place for place, label in enumerate(labels)}
    several = LARGEST_FLOAT if float not in map(type, labels) else np.inf

    def read(found: list[Any]) -> list[int]:
        _require(not any(type(one) in FLOATS and abs(one) >= several for one in found))
        return [known[one] for one in found]

    return _filled(cells, types, -1, read)


def days(column: Any, first: date, form: str = "") -> FloatArray:
    """Read dates, as days since the first; NaN where missing.

    A time of day is a fraction of a day. Text may also be of a stated form.
    """
    dtype = getattr(column, "dtype", None)
    # pandas and polars would give another day than the one that is written there.
    _require(getattr(dtype, "tz", getattr(dtype, "time_zone", None)) is None)
    cells = _cells(column)
    if cells.dtype.kind == "M":
        return _days_since(cells, first)

    def read(found: list[Any]) -> list[float]:
        texts = {one for one in found if type(one) is str}
        known = {text: _day(text, first, form) for text in texts}
        return [known[one] if type(one) is str else _day(one, first, form) for one in found]

    return _filled(cells, MOMENTS, np.nan, read)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("Cells are not what the column is declared to be.")


def _cells(column: Any) -> NDArray[Any]:
    dtype = getattr(column, "dtype", None)
    extended = isinstance(column, pd.Series) and pd.api.types.is_extension_array_dtype(dtype)
    if extended and pd.api.types.is_numeric_dtype(dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    cells = np.asarray(column)
    _require(cells.ndim == 1)
    return cells


def _objects(cells: Sequence[Any]) -> NDArray[Any]:
    """Return an array of objects; NumPy would look into those that are sequences."""
    return np.fromiter(cells, dtype=object, count=len(cells))


def _filled(
    cells: NDArray[Any], types: frozenset[type], missing: Any, read: Callable[[list[Any]], Any]
) -> NDArray[Any]:
    """Return what is read of the cells that are there, each of one of some types itself."""
    cells = cells if cells.dtype.kind not in "UT" else cells.astype(object)
    present = ~np.asarray(pd.isna(cells), dtype=bool)
    values = np.full(cells.size, missing, dtype=np.intp if missing == -1 else np.float64)
    if listed := cells[present].tolist():
        _require(cells.dtype == object and all_of(types, listed))
        values[present] = read(listed)
    return values


def _day(cell: Any, first: date, form: str) -> float:
    if isinstance(cell, str):
        cell = datetime.fromisoformat(_iso_text(str(cell), form))
    if isinstance(cell, np.datetime64):
        return float(_days_since(np.array([cell]), first)[0])
    _require(getattr(cell, "tzinfo", None) is None)
    if isinstance(cell, pd.Timestamp):
        return _day(cell.asm8, first, form)
    day = float(cell.toordinal() - first.toordinal())
    if isinstance(cell, datetime):
        day += (cell - datetime(cell.year, cell.month, cell.day)) / timedelta(days=1)
    return day


def _iso_text(text: str, form: str) -> str:
    """Return a date as ISO 8601 has it, which it may be written in already."""
    pattern = re.escape(form).replace("%d", r"(?P<d>\d\d?)").replace("%m", r"(?P<m>\d\d?)")
    pattern = pattern.replace("%Y", r"(?P<Y>\d{4})")
    if form and (found := re.fullmatch(pattern, text, flags=re.ASCII)):
        return f"{found['Y']}-{found['m']:0>2}-{found['d']:0>2}"
    _require(_ISO_DATE.fullmatch(text) is not None)
    return text


def _days_since(moments: NDArray[Any], first: date) -> FloatArray:
    unit, step = np.datetime_data(moments.dtype)
    missing = np.isnat(moments)
    if unit in ("ps", "fs", "as") or step != 1:
        # A day has more attoseconds than there are integers.
        unit = unit if unit in ("Y", "M", "W", "D", *_PER_DAY) else "ns"
        moments = moments.astype(f"M8[{unit}]")
    if unit in ("Y", "M", "W"):
        # Years beyond what days can count are beyond all bounds.
        ticks = np.clip(moments.astype(np.int64), -(10**9), 10**9)
        moments = ticks.astype(f"M8[{unit}]")
    whole = moments.astype("M8[D]").astype(np.int64).astype(np.float64)
    values = whole - float(np.datetime64(first, "D").astype(np.int64))
    if unit in _PER_DAY:
        values += moments.astype(np.int64) % _PER_DAY[unit] / _PER_DAY[unit]
    values[missing] = np.nan
    return values


PANDAS_MOMENTS = [f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")]


def raw_columns(X: Any, names: Sequence[str], estimator: str) -> list[Any]:
    """Return the columns of a table, one for each name."""
    table = as_table(X, _names(X, names) if is_frame(X) else names, estimator)
    if not len(table):
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {estimator}."
        )
    return [table[name] for name in names]


def _names(X: Any, names: Sequence[str]) -> list[str]:
    """Return the names of a frame, which must be some names in any order."""
    found = quietly(list, X.columns)
    if found is None or not all(isinstance(name, str) for name in found):
        raise ValueError("X must have text column names.")
    found = [str.__str__(name) for name in found]
    for what, some in (
        ("lacks", set(names) - set(found)),
        ("must hold no other columns than those described, got", set(found) - set(names)),
        ("must not have two columns of one name, got", {n for n in found if found.count(n) > 1}),
    ):
        if some:
            raise ValueError(f"X {what} {', '.join(map(repr, sorted(some)))}.")
    return found


def as_table(X: Any, names: Sequence[str] | None, estimator: str = "") -> pd.DataFrame:
    """Return rows as a data frame of pandas with known columns, in order.

    Cells stay what they are. NumPy and pandas look for a type that fits all of them: one text makes
    text of all numbers of a list, and one gap makes floats of integers.
    """
    refuse_masked(X, "X")
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")
    table = X if isinstance(X, pd.DataFrame) else quietly(_table, X)
    if table is None:
        raise ValueError(NO_TABLE)
    width = table.shape[1]
    names = [str(j) for j in range(width)] if names is None else list(names)
    if width != len(names):
        expected = f"{estimator} is expecting {len(names)} features as input"
        expected = expected if estimator else f"{len(names)} features are expected"
        raise ValueError(f"X has {width} features, but {expected}.")
    return table.set_axis(names, axis=1)


def _table(X: Any) -> pd.DataFrame | None:
    if is_frame(X):
        columns = [_of_series(X[name]) for name in X.columns]
    elif isinstance(X, list | tuple):
        # NumPy would make text of numbers beside text, and look into cells that are sequences.
        arrays = [row for row in X if not isinstance(row, list | tuple)]
        if not all(type(row) is np.ndarray and row.ndim == 1 for row in arrays):
            return None
        columns = [_objects(column) for column in zip(*X, strict=True)]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            return None
        if array.dtype.kind in "biuf":
            return pd.DataFrame(array)
        columns = [_of_array(array[:, j]) for j in range(array.shape[1])]
    if len(set(map(len, columns))) > 1:
        return None
    return pd.DataFrame({j: pd.Series(one, dtype=one.dtype) for j, one in enumerate(columns)})


def _of_series(series: Any) -> NDArray[Any]:
    if str(series.dtype).startswith("Float"):
        return np.asarray(series.to_numpy())
    return _objects(series.to_list())


def _of_array(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells of a type that pandas has, or as objects."""
    if cells.dtype.kind == "O" or cells.dtype.name in PANDAS_MOMENTS:
        return cells
    return _objects(cells.tolist() if cells.dtype.kind in "UST" else list(cells))


@dataclass(frozen=True)
class LoneRows:
    """Rows of a table, which share nothing.

    Parameters
    ----------
    cells : ndarray of float64, shape (n_records, n_columns), or list of columns
        Private.
    names : tuple or None
        Of the columns; None where rows are arrays.
    """

    cells: FloatArray | list[list[Any]]
    names: tuple[Any, ...] | None

    @classmethod
    def of(cls, X: Any, *, raw: bool) -> LoneRows:
        """Take a table apart."""
        X = X.toarray() if hasattr(X, "tocsr") else X
        names = tuple(X.columns) if is_frame(X) else None
        table = as_table(X, None)
        labels = names or tuple(range(table.shape[1]))
        columns = [table.iloc[:, j] for j in range(len(labels))]
        if raw:
            return cls(list(map(_plain_column, columns)), labels)
        found = [quietly(numbers, column) for column in columns]
        wrong = [str(name) for name, one in zip(labels, found, strict=True) if one is None]
        if wrong:
            raise InputValueError(
                f"X must hold numbers alone for this model, unlike in {', '.join(wrong)}: let the "
                "model state columns=PublicColumns(...), or encode the columns beforehand, row by "
                "row."
            )
        return cls(np.column_stack(found), names)

    def __len__(self) -> int:
        return len(self.cells) if isinstance(self.cells, np.ndarray) else len(self.cells[0])

    def __getitem__(self, i: int) -> Any:
        """Return a record: an array or a frame with one row, and a neutral index."""
        if isinstance(self.cells, np.ndarray):
            row = np.array(self.cells[i : i + 1])
            return row if self.names is None else pd.DataFrame(row, columns=self.names)
        return pd.DataFrame([[column[i] for column in self.cells]], columns=self.names)


def lone_target(y: Any, i: int) -> Any:
    """Return what a record has in a target, in a container of its own; None of None."""
    if y is None:
        return None
    if is_frame(y):
        return pd.DataFrame(
            [[_plain_column(y[name])[i] for name in y.columns]], columns=list(y.columns)
        )
    if hasattr(y, "dtype") and getattr(y.dtype, "names", None):
        return np.array(y[i : i + 1])
    return np.array(_plain_column(y)[i : i + 1])


def _plain_column(column: Any) -> list[Any]:
    """Return cells whose types are their own: another's gap or fraction makes floats of all."""
    if not isinstance(column, list | tuple):
        column = column.tolist() if hasattr(column, "tolist") else column.to_list()
    return [_own(cell) for cell in column]


def _own(cell: Any) -> Any:
    """Return whole numbers as such, and None for what is missing."""
    if isinstance(cell, np.integer | np.floating):
        cell = cell.item()
    if cell is pd.NA or cell is pd.NaT or (type(cell) is float and math.isnan(cell)):
        return None
    if type(cell) is float and abs(cell) < LARGEST_FLOAT and cell.is_integer():
        return int(cell)
    return cell
