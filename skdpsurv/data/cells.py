"""Private cells of raw columns and tables, each read by itself as its column is declared.

Anything that a cell is asked may raise an error that quotes it. Readers run inside of
:func:`quietly`, and refusals are worded outside. Only cells whose type is exactly one of Python,
NumPy or pandas are asked anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.shape import unusable_labels
from skdpsurv.dp import containers
from skdpsurv.dp.input_errors import (
    FLOATS,
    NO_TABLE,
    NUMBERS,
    REAL,
    TEXT,
    InputValueError,
    all_of,
    call_or_none,
    refuse_masked,
    suppressed_float_errors,
)
from skdpsurv.dp.types import FloatArray, IndexArray

#: From here on, one double stands for several whole numbers.
LARGEST_FLOAT = 2.0**53
CATEGORIES = NUMBERS | TEXT | {Decimal}
MOMENTS = TEXT | {date, datetime, np.datetime64, pd.Timestamp}
PANDAS_MOMENTS = [f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")]
#: Number of units of time in a day.
_PER_DAY = {"h": 24, "m": 1_440, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
_PER_DAY["ns"] = 86_400 * 10**9
#: Beginnings of names of types of floats, in polars and pyarrow.
_FLOATS = ("float", "double", "halffloat")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?)?", flags=re.ASCII)


def quietly(read: Callable[..., Any], *args: Any) -> Any:
    """Call a reader; return None if it raises anything at all."""
    with suppressed_float_errors():
        return call_or_none(read, *args)


def numbers(column: Any) -> FloatArray:
    """Read numbers or booleans; NaN where missing."""
    cells = _cells(column)
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, dtype=np.float64)
    return _filled(cells, REAL, np.nan, lambda found: _objects(found).astype(np.float64))


def rows_of_numbers(X: Any) -> FloatArray:
    """Return rows in double precision, each cell read by itself; NaN where missing."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X.astype(np.float64, copy=False)
    rows = pd.DataFrame(X)
    if all(dtype.kind in "biuf" for dtype in rows.dtypes):
        return np.asarray(rows.to_numpy(dtype=np.float64, na_value=np.nan))
    read = [quietly(numbers, rows.iloc[:, j]) for j in range(rows.shape[1])]
    if any(column is None for column in read):
        raise InputValueError("X must hold numbers alone in columns of numbers.")
    return np.column_stack(read)


def positions(
    column: Any, labels: Sequence[Any], types: frozenset[type] = CATEGORIES
) -> IndexArray:
    """Read labels as positions among ``labels``, by Python's equality; -1 where missing.

    In one array a record's 1.0 would make 2^53 + 1 of another 2^53, and its text make text of all.
    """
    if containers.is_series(column) and not isinstance(column, pd.Series):
        # NumPy would make floats of integers of which some are missing.
        column = containers.listed(column)
    cells = _objects(column) if isinstance(column, list | tuple | range) else np.asarray(column)
    _require(cells.ndim == 1)
    if cells.dtype.kind in "biuf":
        different, index = np.unique(cells, return_inverse=True)
        found: IndexArray = positions(different.tolist(), labels, types)[index]
        return found
    known = {label: position for position, label in enumerate(labels)}
    several = LARGEST_FLOAT if float not in map(type, labels) else np.inf

    def read(found: list[Any]) -> list[int]:
        _require(not any(type(cell) in FLOATS and abs(cell) >= several for cell in found))
        return [known[cell] for cell in found]

    return _filled(cells, types, -1, read)


def days(column: Any, first: date, form: str = "") -> FloatArray:
    """Read dates as days since the first; NaN where missing.

    A time of day is a fraction of a day. Text may also have a stated format.
    """
    dtype = containers.dtype_of(column)
    # pandas and polars would give another day than the one that is written there.
    _require(getattr(dtype, "tz", getattr(dtype, "time_zone", None)) is None)
    cells = _cells(column)
    if cells.dtype.kind == "M":
        return _days_since(cells, first)

    def read(found: list[Any]) -> list[float]:
        texts = {cell for cell in found if type(cell) is str}
        known = {text: _day(text, first, form) for text in texts}
        return [known[cell] if type(cell) is str else _day(cell, first, form) for cell in found]

    return _filled(cells, MOMENTS, np.nan, read)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("Cells are not what the column is declared to be.")


def _cells(column: Any) -> NDArray[Any]:
    dtype = containers.dtype_of(column)
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
    """Read the cells that are present, each exactly of one of some types."""
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
    _require(not isinstance(cell, datetime) or cell.tzinfo is None)
    if isinstance(cell, pd.Timestamp):
        return _day(cell.asm8, first, form)
    day = float(cell.toordinal() - first.toordinal())
    if isinstance(cell, datetime):
        day += (cell - datetime(cell.year, cell.month, cell.day)) / timedelta(days=1)
    return day


def _iso_text(text: str, form: str) -> str:
    """Return a date, which may have a stated format, as ISO 8601 has it."""
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


def raw_columns(X: Any, names: Sequence[str], estimator: str) -> list[Any]:
    """Return the columns of a table, one for each name."""
    table = as_table(X, _names(X, names) if containers.is_frame(X) else names, estimator)
    return [table[name] for name in names]


def _names(X: Any, names: Sequence[str]) -> list[str]:
    """Return the names of a frame's columns, which must be ``names`` in any order."""
    labels = containers.labels_of(X) or []
    if not all(isinstance(name, str) for name in labels):
        raise unusable_labels(labels)
    found = [str.__str__(name) for name in labels]
    for what, some in (
        ("lacks", set(names) - set(found)),
        ("must hold no other columns than those described, got", set(found) - set(names)),
        ("must not have two columns of one name, got", {n for n in found if found.count(n) > 1}),
    ):
        if some:
            raise ValueError(f"X {what} {', '.join(map(repr, sorted(some)))}.")
    return found


def as_table(X: Any, names: Sequence[str] | None, estimator: str = "") -> pd.DataFrame:
    """Return rows as a data frame of pandas whose columns have these names, in order.

    Cells keep their types. A common type would make text of all numbers of a list beside one text,
    and floats of integers beside a gap.
    """
    refuse_masked(X, "X")
    if isinstance(X, containers.SPARSE):
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
    return containers.unlabelled(table.set_axis(names, axis=1))


def _table(X: Any) -> pd.DataFrame | None:
    if containers.is_frame(X):  # of polars or pyarrow
        each = [X[j] for j in (range(X.shape[1]) if containers.is_arrow(X) else X.columns)]
        columns = [
            np.asarray(one) if kind.startswith(_FLOATS) else _objects(containers.listed(one))
            for one, kind in zip(each, containers.column_types(X), strict=True)
        ]
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
        columns = list(array.T)
        if array.dtype.kind != "O" and array.dtype.name not in PANDAS_MOMENTS:
            plain = array.dtype.kind in "UST"
            columns = [_objects(column.tolist() if plain else list(column)) for column in columns]
    if len(set(map(len, columns))) > 1:
        return None
    return pd.DataFrame({j: pd.Series(one, dtype=one.dtype) for j, one in enumerate(columns)})
