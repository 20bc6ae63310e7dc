"""Public classes of records whose covariates, outcomes or baselines differ: strata, and entries.

People who enter late have a class by the time of their entry: from the start, or in a band of the
horizon. That with fewest people in the released life table is merged with the smaller one beside
it, until there are :data:`MOST_CLASSES`. Within a class, covariates are taken not to depend on the
entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray

#: Most classes of entry: each has a column in the moments, and so more noise on all.
MOST_CLASSES = 4


@dataclass(frozen=True, eq=False)
class RecordClasses:
    """Classes by stratum and entry: those of one stratum after another.

    Parameters
    ----------
    n_strata : int
    n_intervals : int
    of_cell : ndarray of int of shape (n_cells,) or None
        The class of entries from the start, or in a band; None: nobody enters late.
    weight : ndarray of shape (n_cells,) or None
        Share of each in its class.
    """

    n_strata: int
    n_intervals: int
    of_cell: IntArray | None = None
    weight: FloatArray | None = None

    @classmethod
    def of_table(cls, n_strata: int, n_intervals: int, entered: FloatArray | None) -> Self:
        """Return the classes that follow from released counts of entries, from the start first."""
        if entered is None:
            return cls(n_strata, n_intervals)
        counts = np.maximum(entered, 0.0)
        groups = [[cell] for cell in range(counts.size)]
        while len(groups) > MOST_CLASSES:
            sizes = [sorted(counts[own].sum() for own in both) for both in pairwise(groups)]
            at = sizes.index(min(sizes))
            groups[at : at + 2] = [groups[at] + groups[at + 1]]
        of_cell, weight = np.zeros(counts.size, dtype=np.int64), np.zeros(counts.size)
        for place, group in enumerate(groups):
            of_cell[group] = place
            weight[group] = (counts[group] + 1.0) / (counts[group] + 1.0).sum()
        return cls(n_strata, n_intervals, of_cell, weight)

    @staticmethod
    def n_entries(n_bands: int, n_intervals: int) -> int:
        """Return the number of classes of entry, known before there is a table."""
        return min(MOST_CLASSES, 1 + min(n_bands, n_intervals))

    @property
    def n_of_stratum(self) -> int:
        """Number of classes of each stratum."""
        return 1 if self.of_cell is None else int(self.of_cell.max()) + 1

    @property
    def number(self) -> int:
        """Number of classes."""
        return self.n_strata * self.n_of_stratum

    def places(self, entered: IntArray | None, stratum: IntArray | None) -> IntArray:
        """Return the class of each record, by the interval of its entry, 0 for the start."""
        found: Any = 0 if stratum is None else stratum * self.n_of_stratum
        if self.of_cell is not None:
            n_bands, q = self.of_cell.size - 1, self.n_intervals
            late: Any = entered
            found = found + self.of_cell[np.where(late > 0, 1 + (late - 1) * n_bands // q, 0)]
        return np.asarray(found)

    def of(self, histories: Histories) -> IntArray:
        """Return the class of each history; after all others that of those never at risk."""
        found = self.places(histories.entry, histories.stratum)
        return np.where(histories.at_risk, found, self.number)

    def entries(self, place: int) -> list[tuple[float, float]]:
        """Return shares of a class, and when these enter, as shares of the horizon."""
        if self.of_cell is None:
            return [(1.0, 0.0)]
        cells = np.flatnonzero(self.of_cell == place % self.n_of_stratum)
        middle = np.maximum(cells - 0.5, 0.0) / (self.of_cell.size - 1)
        weight: Any = self.weight
        return list(zip(weight[cells].tolist(), middle.tolist(), strict=True))


def seen_from(entry: float, edges: IntArray) -> FloatArray:
    """Return the share of each block, between edges in intervals, after a share of the horizon."""
    start = entry * edges[-1]
    return np.clip((edges[1:] - start) / np.diff(edges), 0.0, 1.0)


def at_risk(survived: IntArray, event: BoolArray, entered: IntArray) -> BoolArray:
    """Return which records of a block are at risk at all: others entered when they left."""
    return event.astype(bool, copy=False) | (entered < survived)
