"""Cells of raw columns, read by what the column is declared to be and never by what it looks like.

Whatever a cell is asked may answer with an error that quotes it. So every reader here runs inside
of :func:`quietly`, and what cannot be read is refused outside, in words of ours.

Cells also must not speak for each other. What compares or hashes cells, in order to be quick, sees
values of types that are known to do so honestly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.privacy import silent_arithmetic
from skdpsurv.privacy.plain_cells import REAL, all_of
from skdpsurv.privacy.silence import attempted
from skdpsurv.types import FloatArray, IndexArray

__all__ = ["LARGEST_FLOAT", "days", "missing_cells", "numbers", "places", "quietly"]

#: Doubles from here on stand for several whole numbers each.
LARGEST_FLOAT = 2.0**53
#: Numbers that compare and hash as numbers do, and text likewise. NumPy's compare in their own
#: precision: np.float16(2076) == 2077.
_HONEST = {int, float, str, Decimal}
#: How many units of time a day has.
_PER_DAY = {"h": 24, "m": 1_440, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
_PER_DAY["ns"] = 86_400 * 10**9
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?)?", flags=re.ASCII)


class _UnreadableError(Exception):
    """Cells are not what the column is declared to be."""


def quietly(read: Callable[..., Any], *args: Any) -> Any:
    """Return what a reader returns; None if it raises anything at all."""
    with silent_arithmetic():
        return attempted(read, *args)


def missing_cells(column: Any) -> NDArray[np.bool_]:
    """Return which cells of an array are None, NaN, NaT or NA."""
    return np.asarray(pd.isna(column), dtype=bool)


def numbers(column: Any) -> FloatArray:
    """Read numbers or booleans; NaN where missing."""
    cells = _cells(column)
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, dtype=np.float64)
    values = np.full(cells.size, np.nan)
    present = _present(cells)
    if not all_of(REAL, cells[present].tolist()):
        raise _UnreadableError
    values[present] = cells[present].astype(np.float64)
    return values


def places(column: Any, labels: Sequence[str] | Sequence[int]) -> IndexArray:
    """Read categories: the place of each among the labels, -1 where missing."""
    if hasattr(column, "to_list") and not isinstance(column, pd.Series):
        # NumPy would make floats of integers of which some are missing.
        column = _objects(column.to_list())
    if not isinstance(column, pd.Series):
        column = np.asarray(column)
        # pandas has no text but objects.
        column = column.astype(object) if column.dtype.kind in "UST" else column
    _require_flat(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        _present(column)  # they would be taken for integers
    if column.dtype == object:
        column = _honest(np.asarray(column))
    codes, found = pd.factorize(column)
    found = _honest(_objects(found.tolist()))
    # One record's gap makes floats of the whole numbers of all others.
    if any(isinstance(label, float) and abs(label) >= LARGEST_FLOAT for label in found):
        raise _UnreadableError
    known = {label: place for place, label in enumerate(labels)}
    # The last one is for the code -1, of what is missing.
    order = np.array([*(known[label] for label in found), -1], dtype=np.intp)
    return order[codes]


def days(column: Any, first: date, form: str = "") -> FloatArray:
    """Read dates, as days since the first; NaN where missing.

    A time of day is a fraction of a day. Text may also be of a stated form.
    """
    dtype = getattr(column, "dtype", None)
    # pandas and polars would give another day than the one that is written there.
    if getattr(dtype, "tz", getattr(dtype, "time_zone", None)) is not None:
        raise _UnreadableError
    cells = _cells(column)
    if cells.dtype.kind == "M":
        return _days_since(cells, first)
    cells = cells.astype(object) if cells.dtype.kind in "UT" else cells
    values = np.full(cells.size, np.nan)
    present = _present(cells)
    dates = cells[present] if not form else _objects(_iso_texts(cells[present].tolist(), form))
    values[present] = _days_of_objects(dates, first)
    return values


# ---- Arrays of one type.


def _cells(column: Any) -> NDArray[Any]:
    dtype = getattr(column, "dtype", None)
    extended = isinstance(column, pd.Series) and pd.api.types.is_extension_array_dtype(dtype)
    if extended and pd.api.types.is_numeric_dtype(dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    cells = np.asarray(column)
    _require_flat(cells)
    return cells


def _require_flat(cells: Any) -> None:
    if cells.ndim != 1:
        raise _UnreadableError


def _objects(cells: list[Any]) -> NDArray[Any]:
    """Return an array of objects; NumPy would look into those that are sequences."""
    return np.fromiter(cells, dtype=object, count=len(cells))


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


# ---- Arrays of objects.


def _present(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which objects are there to be read; there is none in an array of another type."""
    present = ~missing_cells(cells)
    if cells.dtype != object and present.any():
        raise _UnreadableError
    return present


def _types(cells: NDArray[Any]) -> set[type]:
    found = {id(kind): kind for kind in map(type, cells.tolist())}.values()
    # A class of classes may take them for others.
    if any(type(kind).__hash__ is not type.__hash__ for kind in found):
        raise _UnreadableError
    return set(found)


def _require(found: set[type], allowed: tuple[type, ...]) -> None:
    # NumPy counts spans of time among the integers.
    if not all(issubclass(k, allowed) and not issubclass(k, np.timedelta64) for k in found):
        raise _UnreadableError


def _honest(cells: NDArray[Any]) -> NDArray[Any]:
    """Return labels without what a class of the caller's may make of ==; no bool is among them."""
    present = ~missing_cells(cells)
    types = _types(cells[present])
    if types & {bool, np.bool_}:
        raise _UnreadableError
    cells = cells.copy()
    if not types <= _HONEST:
        _require(types - _HONEST, (str, int, float, np.integer, np.floating))
        cells[present] = _objects([_plain(cell) for cell in cells[present]])
    return cells


def _plain(cell: Any) -> Any:
    if isinstance(cell, np.integer | np.floating):
        return int(cell) if isinstance(cell, np.integer) else float(cell)
    kind = next((kind for kind in (str, int, float) if issubclass(type(cell), kind)), None)
    plain = {str: str.__str__, int: int.__int__, float: float.__float__}
    return cell if kind is None else plain[kind](cell)


def _days_of_objects(cells: NDArray[Any], first: date) -> FloatArray:
    values = np.empty(cells.size)
    listed = cells.tolist()
    for kind in _types(cells):
        reader = next((read for base, read in _READERS if issubclass(kind, base)), None)
        if reader is None:
            raise _UnreadableError
        chosen = np.array([type(cell) is kind for cell in listed])
        values[chosen] = reader(cells[chosen].tolist(), first)
    return values


def _days_of_texts(texts: list[str], first: date) -> list[float]:
    plain = [str.__str__(text) for text in texts]
    if not all(map(_ISO_DATE.fullmatch, found := list(set(plain)))):
        raise _UnreadableError
    moments = [datetime.fromisoformat(text) for text in found]
    known = dict(zip(found, _days_of_datetimes(moments, first), strict=True))
    return [known[text] for text in plain]


def _iso_texts(cells: list[Any], form: str) -> list[Any]:
    """Return cells with text of a form as ISO 8601 has it, and others as they are."""
    pattern = re.escape(form).replace("%d", r"(?P<d>\d\d?)").replace("%m", r"(?P<m>\d\d?)")
    read = re.compile(pattern.replace("%Y", r"(?P<Y>\d{4})"), flags=re.ASCII).fullmatch
    found: list[Any] = []
    for cell in cells:
        text = read(str.__str__(cell)) if issubclass(type(cell), str) else None
        found.append(f"{text['Y']}-{text['m']:0>2}-{text['d']:0>2}" if text else cell)
    return found


def _days_of_dates(dates: list[date], first: date) -> FloatArray:
    # NumPy is much slower at dates than they are themselves.
    return np.array([float(day) for day in map(date.toordinal, dates)]) - first.toordinal()


def _days_of_datetimes(moments: list[datetime], first: date) -> FloatArray:
    _refuse_time_zones(moments)
    seconds = [moment.hour * 3600 + moment.minute * 60 + moment.second for moment in moments]
    parts = [moment.microsecond for moment in moments]
    ticks = np.array(seconds, dtype=np.int64) * 10**6 + np.array(parts, dtype=np.int64)
    return _days_of_dates(list(moments), first) + ticks / _PER_DAY["us"]


def _days_of_timestamps(moments: list[pd.Timestamp], first: date) -> FloatArray:
    _refuse_time_zones(moments)
    return _days_of_numpy([moment.asm8 for moment in moments], first)


def _refuse_time_zones(moments: list[Any]) -> None:
    if any(moment.tzinfo is not None for moment in moments):
        raise _UnreadableError


def _days_of_numpy(moments: list[Any], first: date) -> FloatArray:
    values = np.empty(len(moments))
    types = [moment.dtype for moment in moments]
    # One unit for all would overflow.
    for dtype in set(types):
        chosen = np.array([other == dtype for other in types])
        some = [moment for moment, other in zip(moments, chosen, strict=True) if other]
        values[chosen] = _days_since(np.array(some, dtype=dtype), first)
    return values


#: By class, subclasses first.
_READERS: tuple[tuple[type, Callable[..., Any]], ...] = (
    (str, _days_of_texts),
    (pd.Timestamp, _days_of_timestamps),
    (datetime, _days_of_datetimes),
    (date, _days_of_dates),
    (np.datetime64, _days_of_numpy),
)
