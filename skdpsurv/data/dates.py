"""Columns of dates, of which times follow: from an entry to an exit, or from an origin to both."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.cells import days, quietly
from skdpsurv.data.column_kinds import DATE_FORMATS, DATE_RULE
from skdpsurv.data.histories import refuse_starts
from skdpsurv.dp import containers
from skdpsurv.dp.checks import choice, instance, optional
from skdpsurv.dp.types import FloatArray

#: Days of a unit of time: the means of the Julian calendar, the same for every record.
UNITS = {"days": 1.0, "months": 365.25 / 12, "years": 365.25}
#: Name of the column of late entries that dates make.
ENTRY = "entry"
#: Any day does, as differences alone are used.
_FIRST = date(1970, 1, 1)


@dataclass(frozen=True, kw_only=True)
class DateColumns:
    """Names of the columns of dates of which times follow, and how they are written; public.

    A time is the difference of two dates, in days; a time of day is a fraction of one. Months and
    years are 365.25 / 12 and 365.25 days, so that times add up, and a leap day is a day. So five
    years by the calendar are 4.9993 or 5.0014 years: state a horizon that is shorter than the
    study.

    Parameters
    ----------
    entry : str
        Column of the dates from which records were seen.
    exit : str
        Column of the dates of the event or of censoring.
    origin : str or None, default=None
        Column of the dates from which time runs, such as of birth or diagnosis. The entry is late
        then. None: time runs from the entry.
    format : str, default=""
        Format of text, such as ``"%d.%m.%Y"``, beside ``"2001-12-31"``.
    unit : {"days", "months", "years"}, default="days"
        Unit of times, and the name of their column.

    Raises
    ------
    ValueError, TypeError
        If one of them breaks a rule.

    Notes
    -----
    Each cell is read by itself, and none is refused here, before a ledger is asked. A cell that is
    missing, no date or has a time zone makes a missing time, which the fit refuses as any other.
    So it does an exit or an entry before the date from which time runs: a negative time. Whoever
    enters after the exit is at risk at no time, as with entries that are times.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpsurv import DateColumns, split_target
    >>> frame = pd.DataFrame(
    ...     {"born": ["1950-06-01"], "came": ["2010-06-01"], "left": ["2012-06-01"], "died": [1]}
    ... )
    >>> dates = DateColumns(entry="came", exit="left", origin="born", unit="years")
    >>> X, y, entry = split_target(frame, event="died", dates=dates)
    >>> y.round(2), entry.round(2).tolist()
    (   died  years
    0     1   62.0, [60.0])
    """

    entry: str
    exit: str
    origin: str | None = None
    format: str = ""
    unit: str = "days"

    def __post_init__(self) -> None:
        for name in ("entry", "exit"):
            instance(str, "the name of a column of dates")(name, getattr(self, name))
        optional(instance(str, "the name of a column of dates"))("origin", self.origin)
        if self.format not in ("", *DATE_FORMATS):
            raise ValueError(f"dates must {DATE_RULE}, got {self.format!r}.")
        choice(*UNITS)("unit", self.unit)
        if len({*self.columns}) < len(self.columns):
            raise ValueError("entry, exit and origin must be different columns.")

    @property
    def columns(self) -> list[str]:
        """The columns of dates."""
        return [name for name in (self.entry, self.exit, self.origin) if name is not None]

    @property
    def times(self) -> dict[str, str]:
        """The columns that dates make, by the parameter of ``split_target`` that names them."""
        late = {} if self.origin is None else {"entry": ENTRY}
        return {"time": self.unit, **late}

    def check(self, names: Collection[Any]) -> None:
        """Refuse names of columns that contradict these; no cell is looked at.

        Parameters
        ----------
        names : collection
            Names of all columns of a table; public.

        Raises
        ------
        ValueError
            If a column of dates is not there once, or one that they make is there already, or
            another column looks like the start of rows.
        """
        names = list(names)
        for column in self.columns:
            if names.count(column) != 1:
                raise ValueError(f"dates must name columns that are there once, got {column!r}.")
        for made in self.times.values():
            if made in {*names} - {*self.columns}:
                raise ValueError(
                    f"dates make a column {made!r}, which is there already: rename or drop it."
                )
        refuse_starts([self.exit], [name for name in names if name not in self.columns])

    def replaced(self, frame: Any) -> Any:
        """Return a table with times in place of dates. Dask and chunks stay lazy.

        Parameters
        ----------
        frame : data frame of pandas or Dask, or FrameChunks
            Records. Private; no cell is refused.

        Returns
        -------
        data frame
            The other columns, then times, named as their unit, and late entries if there is an
            origin. Private.
        """
        self.check(frame.columns)
        names = [name for name in frame.columns if name not in self.columns]
        names += self.times.values()
        if containers.is_dask(frame):
            return frame.map_partitions(self._replaced, meta=self._replaced(frame._meta))
        if isinstance(frame, pd.DataFrame):
            return self._replaced(frame)
        return frame[list(frame.columns)].over_chunks(self._replaced, len(names), pd.Index(names))

    def _replaced(self, frame: pd.DataFrame) -> pd.DataFrame:
        entry, until = self._days(frame[self.entry]), self._days(frame[self.exit])
        start = entry if self.origin is None else self._days(frame[self.origin])
        made = {"time": until - start, "entry": entry - start}
        found = {column: made[name] / UNITS[self.unit] for name, column in self.times.items()}
        return frame.drop(columns=self.columns).assign(**found)

    def _days(self, cells: pd.Series) -> FloatArray:
        """Return days; NaN for a cell that is no date, whatever the others are."""
        found = quietly(days, cells, _FIRST, self.format)
        if found is None:
            one_by_one = (quietly(days, [cell], _FIRST, self.format) for cell in cells)
            found = np.array([np.nan if one is None else one[0] for one in one_by_one])
        return np.asarray(found, dtype=np.float64)
