r"""Public and private records as tables and points, by maps that public records alone define.

**Points.** A numeric variable is scaled to [0, 1] by the public records' range, or by two of their
quantiles, and clipped to it. A category becomes indicators times :math:`1/2`, so that two
categories are :math:`1/\sqrt2` apart; categories that no public record has share one indicator,
"other". The outcome is a variable like the others. Each private record is mapped by itself, with
public constants, so the map changes nobody's neighbours.

**Nearest public points:** one pass over all pairs, in blocks. In :math:`\|x - e\|^2 = \|x\|^2 +
\|e\|^2 - 2x^\top e` the last term is a matrix product and the first is the same for all e. Ties go
to the first of the points, and points that are equally near up to :math:`2^{-36}` are ties: how a
product of matrices is rounded depends on how many rows it has, and must not decide cells on a
lattice. For a sensitivity it is enough that a record's cell is a function of that record, the
public points, its place and the size of its block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.cells import LARGEST_FLOAT, as_table
from skdpsurv.data.shape import column_index
from skdpsurv.dp import input_errors
from skdpsurv.dp.containers import SPARSE, is_frame, labels_of
from skdpsurv.dp.input_errors import check_finite, refuse_masked
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray

#: Reference to the proof of all measurements of private records.
PROOF = reference("docs/proofs/hybrid", "wang", "dwork")
#: Weight in distances of a numeric outcome relative to a column.
OUTCOME_FACTOR = 3.0
#: Largest number of pairs in a block, each a few doubles, and of its rows.
BLOCK_PAIRS, BLOCK_ROWS = 2**21, 2**10
#: Values that differ by less are equal. Points are in a cube, of side 1 (3 for an outcome).
TIE = 2.0**-36
#: Booleans as text, as readers of files give them if one entry of their column is another word.
_WORDS = {"True": 1.0, "False": 0.0}


# ---- Tables: numbers and labels.


@dataclass(frozen=True)
class MixedTable:
    """Records: numbers of shape (n_records, n_numeric), and a list of columns of labels."""

    numbers: FloatArray
    labels: list[NDArray[Any]]

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.numbers.shape[0])

    def rows(self, which: NDArray[Any]) -> MixedTable:
        """Return some of the records."""
        return MixedTable(self.numbers[which], [column[which] for column in self.labels])

    @classmethod
    def stacked(cls, tables: Sequence[MixedTable]) -> MixedTable:
        """Return the records of tables with the same columns, one after the other."""
        labels = zip(*(table.labels for table in tables), strict=True)
        numbers = np.concatenate([table.numbers for table in tables])
        return cls(numbers, [np.concatenate(column) for column in labels])


def as_columns(X: Any) -> tuple[list[Any], list[str]]:
    """Return the columns of X, and their names if it has any."""
    refuse_masked(X, "X")
    refuse_sparse(X)
    table = as_table(X, labels_of(X)) if is_frame(X) else _two_dimensional(X)
    if table.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({table.shape[0]}, 0)) while a minimum of 1 is "
            "required."
        )
    if isinstance(table, pd.DataFrame):
        return [table.iloc[:, j] for j in range(table.shape[1])], list(map(str, table.columns))
    return list(table.T), []


def refuse_sparse(X: Any) -> None:
    """Refuse a sparse matrix."""
    if isinstance(X, SPARSE):
        raise TypeError("X must be dense: sparse data is not supported.")


def _two_dimensional(X: Any) -> NDArray[Any]:
    # Lists may mix numbers and text, of which NumPy would make text.
    array = (
        X
        if isinstance(X, np.ndarray)
        else input_errors.call_or_none(partial(np.asarray, dtype=object), X)
    )
    if array is None or array.ndim != 2:
        raise ValueError(input_errors.NO_TABLE)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    return array


def categorical_columns(X: Any, stated: Collection[Any] | None) -> tuple[int, ...]:
    """Return the indices of categorical columns: as stated, or by types and values."""
    columns, names = as_columns(X)
    if stated is not None:
        places = (column_index("categorical_features", one, names, len(columns)) for one in stated)
        return tuple(sorted(set(places)))
    return tuple(j for j, column in enumerate(columns) if not _is_numeric(column))


def _is_numeric(column: Any) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    values = np.asarray(column, dtype=object)
    return all(np.isfinite(_number(value)) or _is_missing(value) for value in values)


def _number(value: Any) -> float:
    """Return a number, even one written as text; NaN for other values."""
    if not input_errors.all_of(input_errors.REAL | input_errors.TEXT, [value]):
        return np.nan
    try:
        return float(_WORDS.get(value, value) if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _is_missing(value: Any) -> bool:
    missing = value is None or value is pd.NA
    return missing or (input_errors.all_of(input_errors.FLOATS, [value]) and bool(np.isnan(value)))


def read_table(X: Any, categorical: Collection[int]) -> MixedTable:
    """Return records as a table, with some columns as labels."""
    columns, _ = as_columns(X)
    numeric = [j for j in range(len(columns)) if j not in categorical]
    numbers = np.empty((len(columns[0]), len(numeric)))
    for place, j in enumerate(numeric):
        column = np.asarray(columns[j])
        if column.dtype.kind not in "biuf":
            column = np.array([_number(value) for value in column.tolist()])
        numbers[:, place] = input_errors.as_float_array(column, "X")
    check_finite(numbers, "X")
    return MixedTable(numbers, [as_labels(columns[j]) for j in sorted(categorical)])


def as_labels(column: Any) -> NDArray[Any]:
    """Return a column of labels as Python's own objects; a missing one is a category, None."""
    values = np.asarray(column, dtype=object)
    # One record's gap makes doubles of the whole numbers of all others, and one label of two.
    if any(
        input_errors.all_of(input_errors.FLOATS, [v]) and LARGEST_FLOAT <= abs(v) < np.inf
        for v in values.tolist()
    ):
        raise ValueError("X must hold exact labels: write doubles from 2^53 on as text.")
    labels = (None if _is_missing(value) else value for value in values.tolist())
    # One by one: an assignment of a list would ask each of them whether it is an array.
    return np.fromiter(labels, dtype=object, count=values.size)


def places_of(labels: NDArray[Any], known: Sequence[Any]) -> IntArray:
    """Return the place of each label among ``known``; ``len(known)`` for any other.

    A label that has no hash, or fails to be compared, is another label.
    """
    places = {label: place for place, label in enumerate(known)}
    found = (input_errors.call_or_none(places.get, label) for label in labels.tolist())
    return np.array([len(known) if place is None else place for place in found], dtype=np.int64)


# ---- Variables and points.


@dataclass(frozen=True)
class NumericAxes:
    """Numeric variables in the public range, by their lows and spans of shape (n_variables,).

    A variable that is constant in public has span 0 and is left out of distances.
    """

    low: FloatArray
    span: FloatArray

    @classmethod
    def of(cls, public: FloatArray, margin: float = 0.0) -> NumericAxes:
        """Return the axes that public values define, of shape (n_public, n_variables).

        ``margin`` is the share of public values left out at either end, if the others have a range.
        """
        low, high = public.min(axis=0), public.max(axis=0)
        if margin > 0.0:
            inner = np.quantile(public, [margin, 1.0 - margin], axis=0)
            ranged = inner[1] > inner[0]
            low, high = np.where(ranged, inner[0], low), np.where(ranged, inner[1], high)
        with np.errstate(over="ignore"):
            span = high - low
        # A range beyond the largest double is as good as unknown.
        return cls(low, np.where(np.isfinite(span), span, 0.0))

    def clipped(self, values: FloatArray) -> FloatArray:
        """Return values within the range."""
        return np.clip(values, self.low, self.low + self.span)

    def coordinates(self, values: FloatArray) -> FloatArray:
        """Return values in [0, 1]."""
        inside = self.clipped(values)
        scaled = np.zeros_like(inside)
        np.divide(inside - self.low, self.span, out=scaled, where=self.span > 0)
        return np.clip(scaled, 0.0, 1.0)


@dataclass(frozen=True)
class CategoricalAxis:
    """A categorical variable: one indicator for each public category, and one for all others."""

    categories: tuple[Any, ...]

    @classmethod
    def of(cls, public: NDArray[Any]) -> CategoricalAxis:
        """Return the axis that public labels define."""
        return cls(tuple(dict.fromkeys(public.tolist())))

    def codes(self, labels: NDArray[Any]) -> IntArray:
        """Return the place of each label; that of "other" comes last."""
        return places_of(labels, self.categories)

    def coordinates(self, labels: NDArray[Any]) -> FloatArray:
        """Return indicators times 1/2."""
        return 0.5 * np.eye(len(self.categories) + 1)[self.codes(labels)]


@dataclass(frozen=True)
class Design:
    """The columns of the design matrix: numbers, and indicators of public categories.

    The first category of each column is left out, as the intercept stands for it. A category that
    no public record has looks like the first.
    """

    axes: tuple[CategoricalAxis, ...]

    def matrix(self, table: MixedTable) -> FloatArray:
        """Return the design matrix."""
        pairs = zip(self.axes, table.labels, strict=True)
        indicators = [2.0 * axis.coordinates(labels)[:, 1:-1] for axis, labels in pairs]
        return np.hstack([table.numbers, *indicators])


@dataclass(frozen=True)
class PointMap:
    """The public map of a record, outcome included, to a point, by which neighbours are found."""

    numeric: NumericAxes
    categorical: tuple[CategoricalAxis, ...]
    classifies: bool

    @classmethod
    def of(
        cls, table: MixedTable, y: NDArray[Any], classifies: bool, margin: float = 0.0
    ) -> PointMap:
        """Return the map that public records define; ``margin`` as for :class:`NumericAxes`."""
        numbers, labels = _with_outcome(table, y, classifies)
        axes = NumericAxes.of(numbers, margin)
        return cls(axes, tuple(map(CategoricalAxis.of, labels)), classifies)

    def points(self, table: MixedTable, y: NDArray[Any]) -> FloatArray:
        """Return records as points, of shape (n_records, n_dimensions)."""
        numbers, labels = _with_outcome(table, y, self.classifies)
        columns = [self.numeric.coordinates(numbers)]
        columns += [a.coordinates(c) for a, c in zip(self.categorical, labels, strict=True)]
        if not self.classifies:
            columns[0][:, -1] *= OUTCOME_FACTOR
        return np.hstack(columns)


def _with_outcome(
    table: MixedTable, y: NDArray[Any], classifies: bool
) -> tuple[FloatArray, list[NDArray[Any]]]:
    if classifies:
        return table.numbers, [*table.labels, y]
    return np.column_stack([table.numbers, y]), table.labels


def distinct(points: FloatArray) -> IntArray:
    """Return the first place of each distinct point, in order."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1]).astype(np.int64)


def nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Return, for each point, the place of the nearest centre."""
    (place,) = _nested(points, centers, (centers.shape[0],))
    return place


def nested_counts(
    points: FloatArray, centers: FloatArray, sizes: Sequence[int]
) -> Iterator[IntArray]:
    """Yield, for nested sets of centres, how many points are nearest to each centre."""
    for size, place in zip(sizes, _nested(points, centers, sizes), strict=True):
        yield np.bincount(place, minlength=size)


def _nested(points: FloatArray, centers: FloatArray, sizes: Sequence[int]) -> list[IntArray]:
    """Return, for each size, the nearest one among that number of first centres."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centers, centers)
    places = [np.empty(points.shape[0], dtype=np.int64) for _ in sizes]
    width = max(BLOCK_PAIRS // BLOCK_ROWS, 1)
    for start in range(0, points.shape[0], BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = points[rows]
        # The largest x'e - |e|^2 / 2 so far, and its place.
        best = np.full(block.shape[0], -np.inf)
        place = np.zeros(block.shape[0], dtype=np.int64)
        low = 0
        for size, result in zip(sizes, places, strict=True):
            for first in range(low, size, width):
                last = min(first + width, size)
                near = np.asarray(block @ centers[first:last].T)
                near -= half_norms[first:last]
                value = near.max(axis=1)
                local = (near >= (value - TIE)[:, None]).argmax(axis=1)
                better = value > best + TIE
                best[better], place[better] = value[better], first + local[better]
            low = size
            result[rows] = place
    return places


# ---- The two kinds of records.


@dataclass(frozen=True)
class PrivateRecords:
    """A block of private records, with labels of a classification or numbers of a regression."""

    table: MixedTable
    y: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of records."""
        return self.table.size


@dataclass(frozen=True)
class PublicRange:
    """The range of public numbers, and the least and largest public outcome of a regression."""

    axes: NumericAxes
    outcomes: tuple[float, float] | None

    def clipped(self, table: MixedTable, y: NDArray[Any]) -> PrivateRecords:
        """Return private records with numbers in the public range."""
        outcome = y if self.outcomes is None else np.clip(y, *self.outcomes)
        return PrivateRecords(MixedTable(self.axes.clipped(table.numbers), table.labels), outcome)


@dataclass(frozen=True)
class PublicRecords:
    """Openly consented records, and the number of private ones; all of it is public.

    ``y_public`` holds labels of a classification, or numbers of a regression.
    """

    public: MixedTable
    y_public: NDArray[Any]
    classifies: bool
    n_private: int

    def __post_init__(self) -> None:
        if self.classifies:  # labels in a type of their own
            object.__setattr__(self, "y_public", np.asarray(self.y_public.tolist()))

    @cached_property
    def design(self) -> Design:
        """The map from records to rows as the estimator takes them."""
        return Design(tuple(map(CategoricalAxis.of, self.public.labels)))

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
        """The range that private numbers are clipped to."""
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
