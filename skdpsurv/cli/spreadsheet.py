"""CSV files that a spreadsheet may open: a cell of somebody's must not run there."""

from __future__ import annotations

import csv
import re
from typing import Any

import pandas as pd

__all__ = ["csv_text"]

#: What a spreadsheet takes for the start of a formula, also behind what it skips.
_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", flags=re.ASCII)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV; text that could be a formula begins with an apostrophe there."""
    plain = frame.rename(columns=_inert)
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            plain.isetitem(place, frame[name].map(_inert))
    text = plain.to_csv(index=False)
    # Not all versions of csv quote what some readers end a row at.
    return plain.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text


def _inert(cell: Any) -> Any:
    runs = isinstance(cell, str) and cell.startswith(_STARTS) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell
