"""Published numbers: what a page shows as text is written to files with all digits."""

from __future__ import annotations

import csv
import math
import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skdpsurv.dp.types import FloatArray
from skdpsurv.report.text import Table, short

#: Widths of intervals that are written with decimals.
TINY, LARGE = 1e-6, 1e6
#: Most times in a table.
MOST_TIMES = 5
#: First characters of a formula in a spreadsheet, or characters that it skips before one.
_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", flags=re.ASCII)


class ShownNumber(NamedTuple):
    """A published number, its subject, and the ends of its interval (NaN without one)."""

    quantity: str
    group: str
    estimate: float
    low: float = math.nan
    high: float = math.nan


class Shown(NamedTuple):
    """A table of a page, if there is one, and the numbers in it."""

    table: Table | None
    numbers: list[ShownNumber]


def between(low: float, high: float, digits: int | None = None) -> str:
    r"""Return an interval as text that stays on one line, perhaps with so many decimals.

    Otherwise with two digits of its width.

    Examples
    --------
    >>> between(-0.51234, 2.0), between(0.5, 2.0, digits=3)
    ('−0.5\xa0to\xa02.0', '0.500\xa0to\xa02.000')
    """
    width = high - low
    if digits is None and TINY < width < LARGE:
        digits = max(1 - math.floor(math.log10(width)), 0)

    def written(end: float) -> str:
        if digits is None or math.isinf(end):
            return short(end)
        return f"{round(end, digits) + 0.0:.{digits}f}".replace("-", "−")

    return f"{written(low)} to {written(high)}".replace(" ", "\N{NO-BREAK SPACE}")


def probability(number: ShownNumber, with_ends: bool = True) -> str:
    r"""Return a probability as text, with its interval if it has one.

    Examples
    --------
    >>> probability(ShownNumber("survival", "all", 0.5, 0.25, 0.75))
    '0.500 (0.250\xa0to\xa00.750)'
    """
    if math.isnan(number.low) or not with_ends:
        return f"{number.estimate:.3f}"
    return f"{number.estimate:.3f} ({between(number.low, number.high, digits=3)})"


def round_times(end: float) -> FloatArray:
    """Return a few round times up to the end of follow-up, which is the last of them.

    Examples
    --------
    >>> round_times(5200.0).tolist(), round_times(10.0).tolist()
    ([1000.0, 2000.0, 3000.0, 4000.0, 5200.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    """
    size = 10.0 ** math.floor(math.log10(end / MOST_TIMES))
    steps = (size * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0))
    step = next(step for step in steps if end / step < MOST_TIMES + 0.5)
    times = step * np.arange(1.0, MOST_TIMES + 2.0)
    # The last one may not be near the end.
    return np.append(times[times < end - 0.5 * step], end)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV; text that a spreadsheet would run gets an apostrophe before it."""
    inert = frame.rename(columns=_inert)
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            inert.isetitem(place, frame[name].map(_inert))
    text = inert.to_csv(index=False)
    # Some versions of csv do not quote a carriage return, which ends a row for some readers.
    return inert.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text


def _inert(cell: Any) -> Any:
    runs = isinstance(cell, str) and cell.startswith(_STARTS) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell
