"""Table 1 as numbers: a row for each quantity, with a column for each group and comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.descriptive import differences
from skdpsurv.descriptive.counts import Cells
from skdpsurv.descriptive.intervals import UNKNOWN, Ends, Estimated, Moments, quartile, share
from skdpsurv.descriptive.solution import Sizes, Solved
from skdpsurv.dp.types import FloatArray

#: Quantiles, by name.
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
OVERALL = "Overall"
INDEX = ["column", "level", "statistic", "part"]
COLUMNS = ["estimate", "people_low", "people_high", "population_low", "population_high"]

Row = tuple[tuple[Any, ...], Estimated]


@dataclass(frozen=True, eq=False)
class Summary:
    """Solved tables of all columns, and the labels of the groups; none: everybody is in one."""

    columns: Sequence[Cells]
    solved: Sequence[Solved]
    sizes: Sizes
    groups: Sequence[Any]

    @classmethod
    def of(
        cls,
        columns: Sequence[Cells],
        counts: FloatArray,
        variance: float,
        n_records: int,
        groups: Sequence[Any],
        sizes: FloatArray | None,
    ) -> Summary:
        """Solve noisy tables, which stand side by side."""
        ends = np.cumsum([cells.number for cells in columns])[:-1]
        tables = np.split(counts, ends, axis=1)
        found = Sizes.solved(tables, variance, n_records) if sizes is None else Sizes.known(sizes)
        return cls(columns, [Solved.of(one, variance, found) for one in tables], found, groups)

    @property
    def parts(self) -> list[tuple[Any, FloatArray]]:
        """Everybody, and each group: a label, and which groups it holds."""
        own = np.eye(self.sizes.estimate.size)
        everybody = (OVERALL, np.ones(len(own)))
        return [everybody, *zip(self.groups, own, strict=True)] if len(self.groups) else [everybody]

    def frame(self, level: float) -> pd.DataFrame:
        """Return estimates with the ends of their intervals."""
        rows = list(self._rows(level))
        index = pd.MultiIndex.from_tuples([key for key, _ in rows], names=INDEX)
        numbers = [(one.estimate, *one.people, *one.population) for _, one in rows]
        return pd.DataFrame(numbers, index=index, columns=COLUMNS)

    def _rows(self, level: float) -> Iterator[Row]:
        z = float(special.ndtri(0.5 + 0.5 * level))
        for label, chosen in self.parts:
            yield ("n", "", "n", label), self._size(chosen, z)
        for cells, solved in zip(self.columns, self.solved, strict=True):
            name = cells.kind.column
            for label, chosen in self.parts:
                for key, one in _of_part(cells, solved, chosen, z):
                    yield (name, *key, label), one
            for other, pair in self._pairs():
                found = (
                    differences.of_labels(solved, cells.n_present, pair, level)
                    if cells.points is None
                    else differences.of_numbers(solved, cells.points, pair, z)
                )
                yield (name, "", "smd", other), found

    def _pairs(self) -> Iterator[tuple[Any, FloatArray]]:
        """Yield each group but the first, beside that."""
        for label, chosen in self.parts[2:]:
            yield label, np.array([self.parts[1][1], chosen])

    def _size(self, chosen: FloatArray, z: float) -> Estimated:
        n = float(chosen @ self.sizes.estimate)
        reach = z * math.sqrt(max(float(chosen @ self.sizes.covariance @ chosen), 0.0))
        return Estimated(n, Ends(n - reach, n + reach), UNKNOWN)


def _of_part(
    cells: Cells, solved: Solved, chosen: FloatArray, z: float
) -> Iterator[tuple[tuple[Any, str], Estimated]]:
    """Yield level and statistic, with what is known of them, for some groups."""

    def count(weights: FloatArray) -> Estimated:
        (n,), noise = solved.sums(np.outer(chosen, weights)[None])
        reach = z * math.sqrt(max(float(noise[0, 0]), 0.0))
        return Estimated(float(n), Ends(float(n - reach), float(n + reach)), UNKNOWN)

    one_cell = np.eye(cells.number)
    present = (np.arange(cells.number) < cells.n_present).astype(np.float64)
    if cells.has_missing:
        yield ("", "missing"), count(one_cell[-1])
    for place, label in enumerate(cells.labels):
        both = np.array([np.outer(chosen, one_cell[place]), np.outer(chosen, present)])
        yield (label, "count"), count(one_cell[place])
        yield (label, "share"), share(*solved.sums(both), z)
    if cells.points is not None:
        moments = Moments(solved, cells.points, chosen, z)
        yield ("", "mean"), moments.mean()
        yield ("", "sd"), moments.deviation()
        for name, p in QUARTILES.items():
            yield ("", name), quartile(solved, cells.points, chosen, p, z)
