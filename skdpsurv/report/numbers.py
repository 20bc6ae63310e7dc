"""Published numbers: what a page shows as text is written to files with all digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from skdpsurv.report.text import Table, short


class Number(NamedTuple):
    """A published number, of whom, and the ends of its interval, NaN if there is none."""

    quantity: str
    group: str
    estimate: float
    low: float = math.nan
    high: float = math.nan


class Shown(NamedTuple):
    """A table of a page, if there is one, and the numbers in it."""

    table: Table | None
    numbers: list[Number]


def frame(numbers: Iterable[Number]) -> pd.DataFrame:
    """Return numbers as a table, a row for each.

    Examples
    --------
    >>> frame([Number("survival at 5", "treated", 0.5, 0.25, 0.75)])
            quantity    group  estimate   low  high
    0  survival at 5  treated       0.5  0.25  0.75
    """
    return pd.DataFrame(list(numbers), columns=list(Number._fields))


def between(low: float, high: float) -> str:
    """Return an interval as text.

    Examples
    --------
    >>> between(-0.5, 2.0)
    '−0.5 to 2'
    """
    return f"{short(low)} to {short(high)}"


def probability(number: Number) -> str:
    """Return a probability as text, with its interval if it has one.

    Examples
    --------
    >>> probability(Number("survival", "all", 0.5, 0.25, 0.75)), probability(Number("p", "all", 1))
    ('0.500 (0.250 to 0.750)', '1.000')
    """
    ends = f" ({number.low:.3f} to {number.high:.3f})" if number.low == number.low else ""
    return f"{number.estimate:.3f}{ends}"
