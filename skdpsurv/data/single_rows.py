"""Single records of a table or a target, each in a container of its own.

A record is rebuilt from its own cells, since a row cut out of a table has types that depend on the
other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.cells import LARGEST_FLOAT, as_table, numbers, quietly
from skdpsurv.dp import containers
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.types import FloatArray


@dataclass(frozen=True)
class SingleRows:
    """Private rows of a table, each of which is read without the others.

    Parameters
    ----------
    cells : ndarray of float64, shape (n_records, n_columns), or list of columns
    names : tuple or None
        Names of the columns; None where rows are arrays.
    """

    cells: FloatArray | list[list[Any]]
    names: tuple[Any, ...] | None

    @classmethod
    def of(cls, X: Any, *, raw: bool) -> SingleRows:
        """Return the rows of a table, each with cells of its own."""
        X, labels = X.toarray() if isinstance(X, containers.SPARSE) else X, containers.labels_of(X)
        names = None if labels is None else tuple(labels)
        table = as_table(X, None)
        labels = list(names or range(table.shape[1]))
        columns = [table.iloc[:, j] for j in range(len(labels))]
        if raw:
            return cls(list(map(_plain_column, columns)), tuple(labels))
        found = [quietly(numbers, column) for column in columns]
        wrong = [str(name) for name, one in zip(labels, found, strict=True) if one is None]
        if wrong:
            raise InputValueError(
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


def single_target(y: Any, i: int) -> Any:
    """Return a record's part of a target, in a container of its own; None stays None."""
    if y is None:
        return None
    if containers.is_frame(y):
        labels = containers.labels_of(y) or []
        return pd.DataFrame([[_plain_column(y[name])[i] for name in labels]], columns=labels)
    if containers.fields_of(y):
        return np.array(y[i : i + 1])
    return np.array(_plain_column(y)[i : i + 1])


def _plain_column(column: Any) -> list[Any]:
    """Return cells with types of their own: another's gap or fraction makes floats of all."""
    if not isinstance(column, list | tuple):
        is_series = containers.is_series(column)
        column = containers.listed(column) if is_series else np.asarray(column).tolist()
    return [_plain_cell(cell) for cell in column]


def _plain_cell(cell: Any) -> Any:
    """Return whole numbers as integers, and None for missing values."""
    if isinstance(cell, np.integer | np.floating):
        cell = cell.item()
    if cell is pd.NA or cell is pd.NaT or (type(cell) is float and math.isnan(cell)):
        return None
    if type(cell) is float and abs(cell) < LARGEST_FLOAT and cell.is_integer():
        return int(cell)
    return cell
