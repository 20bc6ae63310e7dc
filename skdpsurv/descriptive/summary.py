"""Table 1 as numbers: a row for each quantity, with a column for each group and comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.descriptive import differences, share_intervals
from skdpsurv.descriptive.column_tables import Cells
from skdpsurv.descriptive.solution import Sizes, Solved
from skdpsurv.dp.types import FloatArray
from skdpsurv.release.simulation import TABLE, Margin

#: Levels of the quantiles, by name.
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
OVERALL = "Overall"
INDEX = ["column", "level", "statistic", "part"]
COLUMNS = ["estimate", "people_low", "people_high", "population_low", "population_high"]

Row = tuple[tuple[Any, ...], share_intervals.Estimated]


@dataclass(frozen=True, eq=False)
class Summary:
    """Solved tables of all columns, and the labels of the groups; none: everybody is in one."""

    columns: Sequence[Cells]
    solved: Sequence[Solved]
    sizes: Sizes
    groups: Sequence[Any]
    laplace: bool

    @classmethod
    def of(
        cls,
        columns: Sequence[Cells],
        counts: FloatArray,
        variance: float,
        n_records: int,
        groups: Sequence[Any],
        sizes: FloatArray | None,
        laplace: bool = False,
    ) -> Summary:
        """Solve noisy tables, which stand side by side; sizes, if groups are public."""
        ends = np.cumsum([cells.number for cells in columns])[:-1]
        tables = np.split(counts, ends, axis=1)
        found = Sizes.solved(tables, variance, n_records) if sizes is None else Sizes.known(sizes)
        solved = [Solved.of(one, variance, found) for one in tables]
        return cls(columns, solved, found, groups, laplace)

    @property
    def parts(self) -> list[tuple[Any, FloatArray]]:
        """Everybody, and each group: a label, and which groups it holds."""
        own = np.eye(self.sizes.estimate.size)
        everybody = (OVERALL, np.ones(len(own)))
        named = map(str, self.groups)
        return [everybody, *zip(named, own, strict=True)] if len(self.groups) else [everybody]

    def frame(self, level: float) -> pd.DataFrame:
        """Return estimates with the ends of their intervals."""
        rows = list(self._rows(share_intervals.Level(level, self.laplace)))
        index = pd.MultiIndex.from_tuples([key for key, _ in rows], names=INDEX)
        numbers = [(one.estimate, *one.people, *one.population) for _, one in rows]
        return pd.DataFrame(numbers, index=index, columns=COLUMNS)

    def margins(self) -> dict[str, tuple[ColumnKind, list[Margin]]]:
        """Return kinds of columns, and how they are drawn: for everybody, and for each group."""
        parts, both = [own for _, own in self.parts], zip(self.columns, self.solved, strict=True)
        return {
            cells.kind.column: (cells.kind, [_margin(cells, solved, own) for own in parts])
            for cells, solved in both
        }

    def _rows(self, level: share_intervals.Level) -> Iterator[Row]:
        for label, chosen in self.parts:
            yield ("n", "", "n", label), self._size(chosen, level)
        for cells, solved in zip(self.columns, self.solved, strict=True):
            name = cells.kind.column
            for label, chosen in self.parts:
                for key, one in _of_part(cells, solved, chosen, level):
                    yield (name, *key, label), one
            for other, pair in self._pairs():
                found = (
                    differences.of_labels(solved, cells.n_present, pair, level)
                    if cells.points is None
                    else differences.of_numbers(solved, cells.shares, pair, level)
                )
                yield (name, "", "smd", other), found

    def _pairs(self) -> Iterator[tuple[str, FloatArray]]:
        """Yield the label of each group but the first, and weights that choose the first and it."""
        for label, chosen in self.parts[2:]:
            yield label, np.array([self.parts[1][1], chosen])

    def _size(self, chosen: FloatArray, level: share_intervals.Level) -> share_intervals.Estimated:
        n = float(chosen @ self.sizes.estimate)
        if chosen.all():
            n = float(round(n))  # public
            return share_intervals.Estimated(n, share_intervals.Ends(n, n), share_intervals.UNKNOWN)
        variance = max(float(chosen @ self.sizes.covariance @ chosen), 0.0)
        reach = level.quantile(0.0) * math.sqrt(variance)
        return share_intervals.Estimated(
            n, share_intervals.Ends(n - reach, n + reach), share_intervals.UNKNOWN
        )


def _margin(cells: Cells, solved: Solved, chosen: FloatArray) -> Margin:
    counts = chosen @ solved.cells
    missing = counts[cells.n_present :].sum() / max(counts.sum(), 1e-300)
    if cells.points is None:
        return Margin.of_shares(TABLE, counts[: cells.n_present], missing)
    below, edges = share_intervals.cumulated(solved, cells.points, chosen)
    if not below[-1] > 0.0:  # noise hides the group
        return Margin(TABLE, np.array([0.0, 1.0]), cells.points[[0, -1]], missing)
    return Margin(TABLE, below / below[-1], edges, missing)


def _of_part(
    cells: Cells, solved: Solved, chosen: FloatArray, level: share_intervals.Level
) -> Iterator[tuple[tuple[str, str], share_intervals.Estimated]]:
    """Yield rows of one column: (level, statistic), and the estimate for the chosen groups."""

    def of(places: Any) -> FloatArray:
        weights = np.zeros(cells.number)
        weights[places] = 1.0
        return np.outer(chosen, weights)

    if cells.has_missing:
        yield ("", "missing"), share_intervals.count(solved, of(-1), level)
    whole = of(slice(cells.n_present))
    for place, label in enumerate(cells.kind.labels):
        yield (str(label), "count"), share_intervals.count(solved, of(place), level)
        yield (str(label), "share"), share_intervals.share(solved, of(place), whole, level)
    if cells.points is not None:
        moments = share_intervals.Moments(solved, cells.shares, chosen, level)
        yield ("", "mean"), _scaled(moments.mean(), cells.points, cells.points[0])
        yield ("", "sd"), _scaled(moments.deviation(), cells.points, 0.0)
        for name, p in QUARTILES.items():
            yield ("", name), share_intervals.quantile(solved, cells.points, chosen, p, level)


def _scaled(
    found: share_intervals.Estimated, points: FloatArray, start: float
) -> share_intervals.Estimated:
    """Return numbers in units of a column, from such in units of its range."""
    start, width = float(start), float(points[-1] - points[0])
    ends = (
        share_intervals.Ends(start + width * low, start + width * high) for low, high in found[1:]
    )
    return share_intervals.Estimated(start + width * found.estimate, *ends)
