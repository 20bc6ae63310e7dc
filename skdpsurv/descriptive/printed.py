"""Table 1 as people print it: a row for each number, and for each label of a category."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from skdpsurv.descriptive.column_tables import Cells
from skdpsurv.descriptive.summary import OVERALL

#: Largest number of printed decimals.
MOST_DECIMALS = 6
#: Part of the bounds above which an interval for these people says nothing.
MOST = 0.5
HEADER = "Missing"
UNKNOWN = "-"


class Printed:
    """The cells of a printed table, from a frame of estimates."""

    def __init__(self, estimates: pd.DataFrame, groups: Sequence[Any], intervals: str | None):
        self.found = estimates
        self.parts = [OVERALL, *map(str, groups)]
        self.others = self.parts[2:]
        self.ends = None if intervals is None else [f"{intervals}_low", f"{intervals}_high"]

    def frame(self, columns: Iterable[Cells], nonnormal: Collection[str]) -> pd.DataFrame:
        """Return the table as text."""
        first = self.parts[1] if self.others else None
        named = [HEADER, *self.parts, *(f"SMD ({first},{other})" for other in self.others)]
        rows = [(("n", ""), ["", *(self._count(self._of("n", "", "n", p)) for p in self.parts)])]
        for cells in columns:
            rows += self._rows(cells, cells.kind.column in nonnormal)
        blank = [""] * len(self.others)
        filled = [cells if len(cells) == len(named) else [*cells, *blank] for _, cells in rows]
        index = pd.MultiIndex.from_tuples([label for label, _ in rows])
        return pd.DataFrame(filled, index=index, columns=list(map(str, named)))

    def _of(self, column: str, level: str, statistic: str, part: str) -> pd.Series:
        row: pd.Series = self.found.loc[(column, level, statistic, part)]
        return row

    def _rows(self, cells: Cells, nonnormal: bool) -> Iterator[tuple[tuple[str, str], list[str]]]:
        column, kind = cells.kind.column, cells.kind
        missing = self._of(column, "", "missing", OVERALL) if cells.has_missing else None
        ends = (
            ["" if missing is None else self._count(missing)],
            [self._difference(column, other) for other in self.others],
        )
        if cells.points is None:
            shown = kind.labels[kind.condition :]
            # A difference of two labels is that of the share of the second.
            place = 1 if len(shown) == 2 else 0
            for number, label in enumerate(shown):
                before = ends[0] if number == 0 else [""]
                after = ends[1] if number == place else [""] * len(self.others)
                texts = [self._share(column, str(label), part) for part in self.parts]
                yield (f"{column}, n (%)", str(label)), [*before, *texts, *after]
            return
        way = self._quartiles if nonnormal else self._mean
        unit = f" {kind.unit}" if kind.unit and not kind.reads_text else ""
        said = "median [Q1,Q3]" if nonnormal else "mean (SD)"
        texts = [way(cells, part) for part in self.parts]
        yield (f"{column}{unit}, {said}", ""), [*ends[0], *texts, *ends[1]]

    def _count(self, row: pd.Series) -> str:
        n = row["estimate"]
        return UNKNOWN if math.isnan(n) else f"{max(round(n), 0)}"

    def _share(self, column: str, label: str, part: str) -> str:
        share = self._of(column, label, "share", part)
        if _hidden(share, 1.0):
            return UNKNOWN
        count = self._count(self._of(column, label, "count", part))
        ends = self._interval(100 * share, "{:.1f}".format)
        return f"{count} ({100 * share['estimate']:.1f}){ends}"

    def _mean(self, cells: Cells, part: str) -> str:
        mean, spread = (self._of(cells.kind.column, "", s, part) for s in ("mean", "sd"))
        if _hidden(mean, _width(cells)):
            return UNKNOWN
        write, in_days = _writer(cells, mean), cells.kind.reads_text
        deviation = _deviation(spread, 0 if in_days else decimals(mean)) + " days" * in_days
        return f"{write(mean['estimate'])} ({deviation}){self._interval(mean, write)}"

    def _quartiles(self, cells: Cells, part: str) -> str:
        name, quartiles = cells.kind.column, ("q1", "median", "q3")
        first, middle, third = (self._of(name, "", one, part) for one in quartiles)
        width = _width(cells)
        if _hidden(middle, width):
            return UNKNOWN
        write = _writer(cells, middle)
        low, high = (
            UNKNOWN if _hidden(one, width) else write(one["estimate"]) for one in (first, third)
        )
        return f"{write(middle['estimate'])} [{low},{high}]{self._interval(middle, write)}"

    def _interval(self, row: pd.Series, write: Callable[[float], str]) -> str:
        if self.ends is None:
            return ""
        low, high = map(write, row[self.ends])
        return f" {{{low} to {high}}}"

    def _difference(self, column: str, other: Any) -> str:
        row = self._of(column, "", "smd", other)
        if row.iloc[:3].isna().any():
            return UNKNOWN
        return f"{row['estimate']:.2f}{self._interval(row, '{:.2f}'.format)}"


def _width(cells: Cells) -> float:
    assert cells.points is not None
    return float(cells.points[-1] - cells.points[0])


def _hidden(row: pd.Series, width: float) -> bool:
    """Return whether noise leaves no estimate, or an interval of most of a public range."""
    return not row["people_high"] - row["people_low"] <= MOST * width


def _deviation(row: pd.Series, places: int) -> str:
    """Return a standard deviation, unless noise hides it: its interval begins at 0."""
    hidden = row["people_low"] == 0.0 < row["people_high"]
    return UNKNOWN if hidden else f"{row['estimate']:.{places}f}"


def decimals(row: pd.Series) -> int:
    """Return as many decimals as the noise leaves."""
    half = 0.5 * float(row["people_high"] - row["people_low"])
    if not half > 1e-12 * abs(float(row["estimate"])):  # none, but for rounding
        return 1
    return min(max(math.ceil(-math.log10(half)), 0), MOST_DECIMALS)


def _writer(cells: Cells, row: pd.Series) -> Callable[[float], str]:
    """Return the writer of a column's values: dates, or numbers with their decimals."""
    if cells.kind.reads_text:
        return lambda days: str(cells.kind.cell(round(days)))
    return f"{{:.{decimals(row)}f}}".format


def markdown(table: pd.DataFrame) -> str:
    """Return a table of text as Markdown."""

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    head = ["", "", *table.columns]
    rows = [[*label, *cells] for label, cells in zip(table.index, table.to_numpy(), strict=True)]
    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])
