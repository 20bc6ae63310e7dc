r"""Noisy counts of each column by group, from which all of Table 1 follows.

A category has a cell for each label. A number has public points :math:`t_0 < \dots < t_m` between
its bounds, and a value between two of them counts for both, more for the nearer one (linear
binning; Wand 1994):

.. math:: \text{at } t_k:\ \frac{t_{k+1} - x}{t_{k+1} - t_k},\qquad
          \text{at } t_{k+1}:\ \frac{x - t_k}{t_{k+1} - t_k} .

The points, so weighted, have the mean x: sums of (clipped) values are those of the cells, however
few points there are. Weights are rounded to multiples of :math:`2^{-20}` that add up to 1. Missing
values have a cell of their own.

Points are equally spaced or, around a public typical value at the part c of the bounds, at the
parts :math:`c u / (1 - c + (2 c - 1) u)` for equally spaced u: half of them lie on either side.

Neighbours: replace-one. Sensitivity: in the table of one column, of one unit for each record, 2 in
L1, and the square of L2 is 2, since entries of a record are not negative and add up to 1. Theorem:
k such tables with discrete Laplace noise of scale :math:`2k/\epsilon` are epsilon-differentially
private, and with discrete Gaussian noise of variance :math:`2k/\mu^2` they are
:math:`\tfrac12\mu^2`-zCDP (docs/proofs/table_one).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.dp.plan import Context, Distances, Mechanism, NoisySum
from skdpsurv.dp.privacy_cost import Price, split_gaussian
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IndexArray, IntArray
from skdpsurv.mechanisms.sums import Histograms

#: Units of one record in the table of a number.
UNIT = 2**20
#: "auto": (records per group / noise) ** (2/3) points, at which quartiles suffer from unknown
#: places between points as much as from noise; and their range.
FEWEST_POINTS, MOST_POINTS = 8, 200
#: Least share of the bounds on either side of a typical value.
LEAST_SIDE = 1e-3
#: Most groups, points of a grid, labels of a category, and cells in all. Largest bounds.
MOST_GROUPS, LARGEST_GRID, MOST_LABELS, LARGEST_TABLE = 50, 1000, 200, 100_000
LARGEST_BOUND = 1e150
#: Doubles hold fractions of counts up to this number of records.
MOST_RECORDS = 2**50
#: Largest released count that is accepted.
LARGEST_COUNT = 2.0**62
#: Label of records whose group is missing.
NO_GROUP = "missing"

#: Private: the values of each column as its kind reads them, NaN where missing.
Values = list[FloatArray]
#: Private: numbers of groups, and values.
TableBlock = tuple[IndexArray, Values]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column: of labels or, for numbers, of points; and one of missing values."""

    kind: ColumnKind
    points: FloatArray | None

    def __post_init__(self) -> None:
        # Searches among points that fall would depend on other records.
        if self.points is not None and not np.all(np.diff(0.5 * self.points) >= 0.0):
            raise ValueError("points of a grid must not fall.")

    @property
    def shares(self) -> FloatArray:
        """The points in units of their range, from 0 to 1."""
        assert self.points is not None
        return (self.points - self.points[0]) / (self.points[-1] - self.points[0])

    @property
    def unit(self) -> int:
        """Units that one record adds to its table in all."""
        return 1 if self.points is None else UNIT

    @property
    def has_missing(self) -> bool:
        """Whether there is a cell for missing values, the last one."""
        return self.kind.missing != "error"

    @property
    def n_present(self) -> int:
        """Number of cells of values that are not missing."""
        return len(self.kind.labels) if self.points is None else self.points.size

    @property
    def number(self) -> int:
        """Number of cells, with that of missing values."""
        return self.n_present + self.has_missing

    def count(self, values: FloatArray, group: IndexArray, n_groups: int) -> IntArray:
        """Return exact units in each cell, of shape (n_groups, number)."""
        missing = np.isnan(values)
        if self.points is None:
            place = np.where(missing, self.n_present, values).astype(np.intp)
            found = np.bincount(group * self.number + place, minlength=n_groups * self.number)
            return found.astype(np.int64).reshape(n_groups, -1)
        place, beyond = self._placed(np.where(missing, self.points[0], values))
        place, beyond = np.where(missing, self.n_present, place), np.where(missing, 0, beyond)
        cell, size = group * self.number + place, n_groups * self.number + 1
        # Sums of integers of up to 2^20 are exact in doubles, for up to 2^32 records of a block.
        below = np.bincount(cell, UNIT - beyond, minlength=size)
        above = np.bincount(cell + 1, beyond, minlength=size)
        return (below + above)[:-1].astype(np.int64).reshape(n_groups, -1)

    def evenly_spread(self) -> FloatArray:
        """Return the share of each cell if labels, or values within bounds, are evenly spread."""
        weights = np.ones(self.n_present)
        if self.points is not None:
            gap = np.diff(self.points)
            weights = 0.5 * (np.append(0.0, gap) + np.append(gap, 0.0))
        return np.append(weights / weights.sum(), np.zeros(int(self.has_missing)))

    def _placed(self, values: FloatArray) -> tuple[IndexArray, IntArray]:
        """Return the point below each value, and the units that go to the next one."""
        assert self.points is not None
        half = 0.5 * self.points  # differences of doubles may overflow
        values = 0.5 * np.clip(values, self.points[0], self.points[-1])
        place = np.clip(np.searchsorted(half, values, side="right") - 1, 0, half.size - 2)
        width = half[place + 1] - half[place]
        share = np.ones(values.size)  # where two points are one double
        np.divide(values - half[place], width, out=share, where=width > 0.0)
        return place, np.rint(np.clip(share, 0.0, 1.0) * UNIT).astype(np.int64)


def group_labels(kind: ColumnKind) -> list[Any]:
    """Return the labels of the groups that a category or a boolean makes."""
    return [*kind.labels, *[NO_GROUP] * (kind.missing != "error")]


def price_of(epsilon: float, delta: float, n_columns: int) -> Price:
    """Return the price with less noise for this number of columns: Laplace or Gaussian."""
    query = Histograms((1,) * n_columns)
    if delta and math.isfinite(epsilon):
        (gaussian,) = split_gaussian(epsilon, delta, (1.0,))
        if query.deviation(gaussian) < query.deviation(epsilon):
            return gaussian
    return epsilon


def n_points_for(n_records: int, n_groups: int, deviation: float) -> int:
    """Return the number of points of a grid for "auto", by public numbers."""
    if deviation == 0.0:
        return MOST_POINTS
    number = (n_records / n_groups / deviation) ** (2.0 / 3.0)
    return int(np.clip(round(number), FEWEST_POINTS, MOST_POINTS))


def points_of(kind: ColumnKind, stated: Any) -> FloatArray:
    """Return the points of a number or a date, by their number or as they are stated."""
    if not isinstance(stated, Integral):
        return np.asarray(stated, dtype=np.float64)
    low, high = kind.ends
    share, middle = np.linspace(0.0, 1.0, int(stated)), _middle(kind)
    # As many points on either side of the middle. All machines round these operations alike.
    share = share * middle / ((1.0 - middle) + share * (2.0 * middle - 1.0))
    share[-1] = 1.0
    # Rounding may swap points, and searches among such depend on other records.
    points = np.clip(low * (1.0 - share) + high * share, low, high)
    return np.asarray(np.maximum.accumulate(points))


def _middle(kind: ColumnKind) -> float:
    """Return the place of the typical value, from 0 to 1; 0.5 if there is none within bounds."""
    if kind.typical is None:
        return 0.5
    low, high = (0.5 * end for end in kind.ends)
    (typical,) = kind.read(np.array([kind.typical], dtype=object))
    place = (0.5 * float(typical) - low) / (high - low)
    return min(max(place, LEAST_SIDE), 1.0 - LEAST_SIDE) if 0.0 < place < 1.0 else 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class TableCounts(NoisySum):
    """Noisy tables of all columns, by group."""

    columns: tuple[Cells, ...]
    n_groups: int

    name = "noisy counts of every column by group"
    theorem = reference("docs/proofs/table_one", "dwork")
    gives = "counts"

    def query_for(self, context: Context) -> Histograms:
        """Return the query: a record is in each table once."""
        return Histograms(tuple(one.unit for one in self.columns))

    def exact_answer(self, context: Context, records: Blocks[TableBlock]) -> tuple[IntArray, ...]:
        """Return the exact tables, in their units."""

        def count(block: TableBlock) -> tuple[IntArray, ...]:
            group, values = block
            both = zip(self.columns, values, strict=True)
            return tuple(cells.count(one, group, self.n_groups) for cells, one in both)

        found: tuple[IntArray, ...] = records.map_reduce(count)
        return found

    def postprocess(self, context: Context, noisy: Sequence[IntArray]) -> Mapping[str, Any]:
        """Return all tables side by side, in records."""
        both = zip(self.columns, noisy, strict=True)
        return {"counts": np.hstack([np.asarray(one) / cells.unit for cells, one in both])}


class ExactTableCounts(TableCounts):
    """Exact tables of all columns by group: not private, for reference."""

    name = "none: exact counts of every column by group"


class GroupSizes(Mechanism):
    """Exact sizes of groups, where neighbours have the same ones."""

    name = "sizes of groups, which are public"
    law = "none"
    proof = reference("docs/proofs/table_one")
    price = 0.0
    assumptions = ("the group of each record is public: neighbours differ in no record's group",)

    def __init__(self, n_groups: int) -> None:
        self.n_groups = n_groups

    def _sizes(self, records: Blocks[TableBlock]) -> IntArray:
        total = records.map_reduce(lambda block: np.bincount(block[0], minlength=self.n_groups))
        return np.asarray(total, dtype=np.int64)

    def run(self, context: Context, records: Blocks[TableBlock], source: Any) -> dict[str, Any]:
        """Return the exact sizes of the groups, which are public."""
        return {"group_sizes": self._sizes(records)}

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return how many records of neighbours are in other groups."""
        moved = np.abs(self._sizes(one) - self._sizes(other)).sum()
        return [("group sizes", float(moved), 0.0)]
