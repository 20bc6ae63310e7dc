"""Table 1 on a page: who was studied, in all and by group."""

from __future__ import annotations

from typing import Any

import pandas as pd

from skdpsurv.report.numbers import Number
from skdpsurv.report.text import Table, distinct

#: Ends of its intervals that files have: of what is true of the people at hand.
ENDS = ["people_low", "people_high"]


def table_one(model: Any) -> dict[str, Any]:
    """Return the printed table of a fitted DPTableOne, and the numbers behind it."""
    return {"table": _printed(model.to_frame()), "numbers": _numbers(model.table_)}


def _printed(frame: pd.DataFrame) -> Table:
    """Return a row for each number, and for each label, of which the first has the name."""
    rows: list[list[str]] = []
    before = None
    for (name, level), cells in zip(frame.index, frame.to_numpy(), strict=True):
        words = [level] if name == before else [name, level]
        label = ": ".join(str(word) for word in words if word != "")
        rows.append([label, *(_unbroken(str(cell)) for cell in cells)])
        before = name
    caption = "Braces: 95 % intervals for these people, which allow for the noise"
    return Table(caption, ["", *distinct(frame.columns)], rows)


def _unbroken(cell: str) -> str:
    """Return a cell that may be on two lines: the estimate, and its interval."""
    return cell.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}{", " {")


def _numbers(table: pd.DataFrame) -> list[Number]:
    found = []
    for (name, level, statistic, part), *ends in table[["estimate", *ENDS]].itertuples():
        of = "" if statistic == "n" else f" of {name}"
        label = "" if level == "" else f" {level}"
        found.append(Number(f"{statistic}{of}{label}", str(part), *ends))
    return found
