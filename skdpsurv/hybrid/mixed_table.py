"""Columns of numbers and of categories, taken apart; messages that show no value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.column_index import column_index
from skdpsurv.hybrid.mixed_space import CategoricalAxis
from skdpsurv.preprocessing.column_cells import LARGEST_FLOAT
from skdpsurv.privacy import check_finite, refuse_masked
from skdpsurv.privacy.domain import as_float_array
from skdpsurv.privacy.plain_cells import FLOATS, REAL, TEXT, all_of
from skdpsurv.privacy.refusals import NO_TABLE
from skdpsurv.privacy.silence import attempted
from skdpsurv.types import FloatArray

__all__ = ["Design", "Table", "categorical_columns", "read_table", "refuse_sparse"]


@dataclass(frozen=True)
class Table:
    """Records: numbers of shape (n_records, n_numeric), and a list of columns of labels."""

    numbers: FloatArray
    labels: list[NDArray[Any]]

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.numbers.shape[0])

    def rows(self, which: NDArray[Any]) -> Table:
        """Return some of the records."""
        return Table(self.numbers[which], [column[which] for column in self.labels])

    @classmethod
    def stacked(cls, tables: Sequence[Table]) -> Table:
        """Return the records of tables with the same columns, one after the other."""
        labels = zip(*(table.labels for table in tables), strict=True)
        numbers = np.concatenate([table.numbers for table in tables])
        return cls(numbers, [np.concatenate(column) for column in labels])


@dataclass(frozen=True)
class Design:
    """What an estimator sees of a record: numbers, and indicators of public categories.

    The first category of each column is left out, as the intercept stands for it. A category that
    no public record has looks like the first.

    Parameters
    ----------
    axes : tuple of CategoricalAxis
    """

    axes: tuple[CategoricalAxis, ...]

    def matrix(self, table: Table) -> FloatArray:
        """Return the design matrix."""
        columns = [table.numbers]
        for axis, labels in zip(self.axes, table.labels, strict=True):
            columns.append(2.0 * axis.coordinates(labels)[:, 1:-1])
        return np.hstack(columns)


def as_columns(X: Any) -> tuple[list[Any], list[str]]:
    """Return the columns of X, and their names if it has any.

    Raises
    ------
    ValueError, TypeError
        If X is not two-dimensional and dense.
    """
    refuse_masked(X, "X")
    refuse_sparse(X)
    table = X if isinstance(X, pd.DataFrame) else _two_dimensional(X)
    if table.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({table.shape[0]}, 0)) while a minimum of 1 is "
            "required."
        )
    if isinstance(table, pd.DataFrame):
        return [X.iloc[:, j] for j in range(X.shape[1])], [str(name) for name in X.columns]
    return [table[:, j] for j in range(table.shape[1])], []


def refuse_sparse(X: Any) -> None:
    """Refuse a sparse matrix.

    Raises
    ------
    TypeError
        If X is one.
    """
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")


def categorical_columns(X: Any, stated: Collection[Any] | None) -> tuple[int, ...]:
    """Return which columns are categories: as stated, or by types and values.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_public, n_columns)
        Public records alone: one private value must not turn numbers into categories.
    stated : collection of int or str, or None
        Columns by index or name. None: columns of a type that is for categories, and those of which
        a value is no number.
    """
    columns, names = as_columns(X)
    if stated is not None:
        return tuple(
            sorted(
                {
                    column_index("categorical_features", column, names, len(columns))
                    for column in stated
                }
            )
        )
    return tuple(j for j, column in enumerate(columns) if not _is_numeric(column))


def _is_numeric(column: Any) -> bool:
    """Return whether values are numbers, be they written as text.

    A single private text is enough for a reader of files to make text of a column of numbers.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    values = np.asarray(column, dtype=object)
    return all(np.isfinite(_number(value)) or _is_missing(value) for value in values)


#: What a reader of files makes of booleans, where one entry of their column is another word.
_WORDS = {"True": 1.0, "False": 0.0}


def _number(value: Any) -> float:
    """Return a number, be it written as text; NaN for what is none."""
    if not all_of(REAL | TEXT, [value]):
        return np.nan
    try:
        return float(_WORDS.get(value, value) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def read_table(X: Any, categorical: Collection[int]) -> Table:
    """Take records apart.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_records, n_columns)
        Private and public records.
    categorical : collection of int
        Columns of categories.

    Raises
    ------
    ValueError, TypeError
        If a number is missing, infinite, or no number.
    """
    columns, _ = as_columns(X)
    numeric = [j for j in range(len(columns)) if j not in categorical]
    numbers = np.empty((len(columns[0]) if columns else 0, len(numeric)))
    for place, j in enumerate(numeric):
        column = np.asarray(columns[j])
        if column.dtype.kind not in "biuf":
            column = np.array([_number(value) for value in column.tolist()])
        numbers[:, place] = as_float_array(column, "X")
    check_finite(numbers, "X")
    return Table(numbers, [as_labels(columns[j]) for j in sorted(categorical)])


def as_labels(column: Any) -> NDArray[Any]:
    """Return a column of labels as Python's own objects; a missing one is a category, None.

    Raises
    ------
    ValueError
        If a label is a double that stands for several whole numbers.
    """
    values = np.asarray(column, dtype=object)
    _require_exact(values)
    labels = (None if _is_missing(value) else value for value in values.tolist())
    # One by one: an assignment of a list would ask each of them whether it is an array.
    return np.fromiter(labels, dtype=object, count=values.size)


def _require_exact(labels: NDArray[Any]) -> None:
    """Refuse labels that are doubles from 2^53 on.

    One record's gap makes doubles of the whole numbers of all others, and one label of two.

    Raises
    ------
    ValueError
    """
    if any(all_of(FLOATS, [v]) and LARGEST_FLOAT <= abs(v) < np.inf for v in labels.tolist()):
        raise ValueError(
            "X must hold labels that are exact: doubles from 2^53 on stand for several whole "
            "numbers. Write them as text."
        )


def _is_missing(value: Any) -> bool:
    missing = value is None or value is pd.NA
    return missing or (all_of(FLOATS, [value]) and bool(np.isnan(value)))


def _two_dimensional(X: Any) -> NDArray[Any]:
    # Lists may mix numbers and text, of which NumPy would make text.
    array = X if isinstance(X, np.ndarray) else attempted(partial(np.asarray, dtype=object), X)
    if array is None or array.ndim != 2:
        raise ValueError(NO_TABLE)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    return array
