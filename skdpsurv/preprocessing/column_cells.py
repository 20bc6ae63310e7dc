"""Cells of raw columns, read by what the column is declared to be and never by what it looks like.

Whatever a cell is asked may answer with an error that quotes it. So every reader here runs inside
of :func:`quietly`, and what cannot be read is refused outside, in words of ours.

A cell is asked nothing unless its type is one of Python, NumPy or pandas itself: so none can speak
for another.
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

from skdpsurv.privacy import silent_arithmetic
from skdpsurv.privacy.plain_cells import FLOATS, NUMBERS, REAL, TEXT, all_of
from skdpsurv.privacy.silence import attempted
from skdpsurv.types import FloatArray, IndexArray

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
    with silent_arithmetic():
        return attempted(read, *args)


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
        column = column.to_list()  # NumPy would make floats of integers of which some are missing
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
