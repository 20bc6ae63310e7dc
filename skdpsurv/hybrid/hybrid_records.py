"""Public and private records: columns taken apart, points for a nearest-neighbour search."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.cells import LARGEST_FLOAT
from skdpsurv.data.shape import column_index
from skdpsurv.dp import check_finite, refuse_masked
from skdpsurv.dp.input_errors import (
    FLOATS,
    NO_TABLE,
    REAL,
    TEXT,
    all_of,
    as_float_array,
    call_or_none,
)
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.hybrid.points import CategoricalAxis, MixedSpace, NumericAxes

#: Of what is asked of private records.
PROOF = reference("docs/proofs/hybrid", "wang", "dwork")
#: A numeric outcome counts this much in distances beside a column: it is what a model is about.
OUTCOME_FACTOR = 3.0


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
    """Return the columns of X, and their names if it has any."""
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
    """Refuse a sparse matrix."""
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")


def categorical_columns(X: Any, stated: Collection[Any] | None) -> tuple[int, ...]:
    """Return which columns are categories: as stated, or by types and values."""
    columns, names = as_columns(X)
    if stated is not None:
        places = (column_index("categorical_features", one, names, len(columns)) for one in stated)
        return tuple(sorted(set(places)))
    return tuple(j for j, column in enumerate(columns) if not _is_numeric(column))


def _is_numeric(column: Any) -> bool:
    """Return whether values are numbers, be they written as text."""
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
    """Take records apart."""
    columns, _ = as_columns(X)
    numeric = [j for j in range(len(columns)) if j not in categorical]
    numbers = np.empty((len(columns[0]), len(numeric)))
    for place, j in enumerate(numeric):
        column = np.asarray(columns[j])
        if column.dtype.kind not in "biuf":
            column = np.array([_number(value) for value in column.tolist()])
        numbers[:, place] = as_float_array(column, "X")
    check_finite(numbers, "X")
    return Table(numbers, [as_labels(columns[j]) for j in sorted(categorical)])


def as_labels(column: Any) -> NDArray[Any]:
    """Return a column of labels as Python's own objects; a missing one is a category, None."""
    values = np.asarray(column, dtype=object)
    # One record's gap makes doubles of the whole numbers of all others, and one label of two.
    if any(all_of(FLOATS, [v]) and LARGEST_FLOAT <= abs(v) < np.inf for v in values.tolist()):
        raise ValueError(
            "X must hold labels that are exact: doubles from 2^53 on stand for several whole "
            "numbers. Write them as text."
        )
    labels = (None if _is_missing(value) else value for value in values.tolist())
    # One by one: an assignment of a list would ask each of them whether it is an array.
    return np.fromiter(labels, dtype=object, count=values.size)


def _is_missing(value: Any) -> bool:
    missing = value is None or value is pd.NA
    return missing or (all_of(FLOATS, [value]) and bool(np.isnan(value)))


def _two_dimensional(X: Any) -> NDArray[Any]:
    # Lists may mix numbers and text, of which NumPy would make text.
    array = X if isinstance(X, np.ndarray) else call_or_none(partial(np.asarray, dtype=object), X)
    if array is None or array.ndim != 2:
        raise ValueError(NO_TABLE)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    return array


@dataclass(frozen=True)
class PrivateRecords:
    """Some of the private records: a block of them.

    Parameters
    ----------
    table : Table
    y : ndarray
        Labels of a classification, numbers of a regression.
    """

    table: Table
    y: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of records."""
        return self.table.size


@dataclass(frozen=True)
class PublicRange:
    """What private numbers are clipped to: the range of the public ones.

    Parameters
    ----------
    axes : NumericAxes
    outcomes : (float, float) or None
        Least and largest public outcome of a regression; None of a classification.
    """

    axes: NumericAxes
    outcomes: tuple[float, float] | None

    def clipped(self, table: Table, y: NDArray[Any]) -> PrivateRecords:
        """Return private records with numbers in the public range."""
        axes = self.axes
        numbers = np.clip(table.numbers, axes.low, axes.low + axes.span)
        if self.outcomes is not None:
            y = np.clip(y, *self.outcomes)
        return PrivateRecords(Table(numbers, table.labels), y)


@dataclass(frozen=True)
class PointMap:
    """The map of records to points, outcome included; all of it is public.

    Parameters
    ----------
    space : MixedSpace
    classifies : bool
    """

    space: MixedSpace
    classifies: bool

    @classmethod
    def of(cls, table: Table, y: NDArray[Any], classifies: bool, margin: float = 0.0) -> PointMap:
        """Return the map that public records define; ``margin`` as for :class:`MixedSpace`."""
        return cls(MixedSpace.of(*_with_outcome(table, y, classifies), margin), classifies)

    def points(self, table: Table, y: NDArray[Any]) -> FloatArray:
        """Return records as points, of shape (n_records, n_dimensions)."""
        numbers, labels = _with_outcome(table, y, self.classifies)
        points = self.space.points(numbers, labels)
        if not self.classifies:
            points[:, numbers.shape[1] - 1] *= OUTCOME_FACTOR
        return points


def _with_outcome(
    table: Table, y: NDArray[Any], classifies: bool
) -> tuple[FloatArray, list[NDArray[Any]]]:
    if classifies:
        return table.numbers, [*table.labels, y]
    return np.column_stack([table.numbers, y]), table.labels


@dataclass(frozen=True)
class PublicRecords:
    """What is public: openly consented records, and how many private ones there are.

    Parameters
    ----------
    public : Table
    y_public : ndarray
        Labels of a classification, numbers of a regression.
    classifies : bool
    n_private : int
    """

    public: Table
    y_public: NDArray[Any]
    classifies: bool
    n_private: int
    design: Design = field(init=False)

    def __post_init__(self) -> None:
        if self.classifies:  # labels in a type of their own
            object.__setattr__(self, "y_public", np.asarray(self.y_public.tolist()))
        axes = tuple(CategoricalAxis.of(column) for column in self.public.labels)
        object.__setattr__(self, "design", Design(axes))

    @property
    def n_public(self) -> int:
        """Number of public records."""
        return int(self.y_public.size)

    @property
    def design_public(self) -> FloatArray:
        """Design matrix of the public records."""
        return self.design.matrix(self.public)

    @property
    def range(self) -> PublicRange:
        """What private numbers are clipped to."""
        ends = None if self.classifies else (float(self.y_public.min()), float(self.y_public.max()))
        return PublicRange(NumericAxes.of(self.public.numbers), ends)

    @property
    def rarest(self) -> float:
        """Share of the rarest public label; 1 in a regression."""
        if not self.classifies:
            return 1.0
        return float(np.unique(self.y_public, return_counts=True)[1].min() / self.n_public)

    def mapped(self, margin: float = 0.0) -> tuple[PointMap, FloatArray]:
        """Return the map of records to points, and the public records as points.

        ``margin`` is the share of the public records at either end whose values are clipped.
        """
        point_map = PointMap.of(self.public, self.y_public, self.classifies, margin)
        return point_map, point_map.points(self.public, self.y_public)
