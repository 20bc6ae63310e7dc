"""Records one at a time, each made anew of its own cells.

A row that is cut out of a table has the types of whole columns: one record's gap makes floats of a
column of integers, its text makes objects of numbers, its category is in the list of all. What a
model makes of such a row is a function of all records. Here a row is a function of its cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.preprocessing.column_cells import LARGEST_FLOAT, numbers, quietly
from skdpsurv.preprocessing.raw_table import as_table, is_frame
from skdpsurv.privacy import RefusedValueError
from skdpsurv.types import FloatArray


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
        """Take a table apart.

        Parameters
        ----------
        X : array-like or data frame of shape (n_records, n_columns)
            Private.
        raw : bool
            Whether who is shown the rows reads raw cells by a public description of columns. Others
            are shown numbers in double precision.

        Raises
        ------
        ValueError, TypeError
            If it is no table or, for others, if a column holds anything but numbers.
        """
        X = X.toarray() if hasattr(X, "tocsr") else X
        names = tuple(X.columns) if is_frame(X) else None
        table = as_table(X, None)
        labels = names or tuple(range(table.shape[1]))
        columns = [table.iloc[:, j] for j in range(len(labels))]
        if raw:
            return cls(list(map(_cells, columns)), labels)
        found = [quietly(numbers, column) for column in columns]
        wrong = [str(name) for name, one in zip(labels, found, strict=True) if one is None]
        if wrong:
            raise RefusedValueError(
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
        return pd.DataFrame([[_cells(y[name])[i] for name in y.columns]], columns=list(y.columns))
    if hasattr(y, "dtype") and getattr(y.dtype, "names", None):
        return np.array(y[i : i + 1])
    return np.array(_cells(y)[i : i + 1])


def _cells(column: Any) -> list[Any]:
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
