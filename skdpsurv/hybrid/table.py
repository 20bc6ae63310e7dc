"""Columns of numbers and of categories, taken apart; messages that show no value."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.hybrid.mixed_space import CategoricalAxis
from skdpsurv.privacy import check_finite, refuse_masked
from skdpsurv.privacy.domain import as_float_array

__all__ = ["Design", "Table", "read_table"]

FloatArray = NDArray[np.float64]


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


def read_table(X: Any, categorical_features: Collection[Any] | None) -> Table:
    """Take records apart.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_records, n_columns)
        Private and public records.
    categorical_features : collection of int or str, or None
        Columns of categories, by index or name. None: the columns of a DataFrame that are not
        numbers.

    Raises
    ------
    ValueError, TypeError
        If a column is named that is not there, or a number is missing or infinite.
    """
    refuse_masked(X, "X")
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")
    if isinstance(X, pd.DataFrame):
        columns = [X.iloc[:, j] for j in range(X.shape[1])]
        names = [str(name) for name in X.columns]
        found = {j for j, c in enumerate(columns) if not pd.api.types.is_numeric_dtype(c.dtype)}
    else:
        array = _two_dimensional(X)
        columns = [array[:, j] for j in range(array.shape[1])]
        names, found = [], set()
    chosen = found
    if categorical_features is not None:
        chosen = {_index(column, names, len(columns)) for column in categorical_features}
    numeric = [j for j in range(len(columns)) if j not in chosen]
    numbers = np.empty((len(columns[0]) if columns else 0, len(numeric)))
    for place, j in enumerate(numeric):
        numbers[:, place] = as_float_array(np.asarray(columns[j]), "X")
    check_finite(numbers, "X")
    return Table(numbers, [as_labels(columns[j]) for j in sorted(chosen)])


def as_labels(column: Any) -> NDArray[Any]:
    """Return a column of labels as Python's own objects; a missing one is a category, None."""
    series = pd.Series(np.asarray(column, dtype=object))
    labels = np.empty(len(series), dtype=object)
    missing = series.isna().to_numpy()
    labels[:] = [None if gone else value for value, gone in zip(series, missing, strict=True)]
    return labels


def _two_dimensional(X: Any) -> NDArray[Any]:
    try:
        array = np.asarray(X)
    except ValueError:  # ragged
        array = np.empty(0)
    if array.ndim != 2:
        raise ValueError(
            "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
            "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    return array


def _index(column: Any, names: list[str], n_columns: int) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"categorical_features must hold columns of X, and {column!r} is none."
            )
        return names.index(column)
    if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
        raise TypeError(
            "categorical_features must hold indices or names of columns, got "
            f"{type(column).__name__}."
        )
    index = int(column)
    if not 0 <= index < n_columns:
        raise ValueError(
            f"categorical_features must hold indices from 0 to {n_columns - 1}, got {index}."
        )
    return index
