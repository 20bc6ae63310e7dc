"""Public classes of records whose covariates, outcomes or baselines differ: strata, and entries.

People who enter late have a class by the time of their entry. Those from the start are one, unless
they are few, and the others are cut into classes of equal numbers, by the entries in the released
life table, taken to rise evenly within its bands. Within a class, covariates are taken not to
depend on the entry, which is that of the median.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    cuts : ndarray of int of shape (n_of_stratum - 1,)
        The last intervals of entry of all classes but the last one, ascending; none if nobody
        enters late.
    entries : ndarray of shape (n_of_stratum,)
        When those of a class enter, as shares of the horizon.
    """

    n_strata: int
    cuts: IntArray
    entries: FloatArray

    @classmethod
    def of_table(cls, n_strata: int, q: int, entered: FloatArray | None) -> Self:
        """Return the classes that follow from released counts of entries, from the start first."""
        if entered is None:
            return cls(n_strata, np.zeros(0, dtype=np.int64), np.zeros(1))
        counts = np.maximum(entered, 0.0) + 1e-9 * (1.0 + np.abs(entered).sum())
        n_bands, number = counts.size - 1, cls.n_entries(counts.size - 1, q)
        edges = np.ceil(np.arange(n_bands + 1) * q / n_bands)
        has_own = counts[0] >= counts.sum() / (2 * number)
        cut = counts.copy()
        if has_own:
            cut[0] = 0.0
        so_far, n_cut = np.cumsum(cut) / cut.sum(), number - has_own
        # Ends and medians of classes.
        shares = np.arange(1, 2 * n_cut) / (2.0 * n_cut)
        found = np.interp(shares, so_far, edges)
        cuts, entries = np.rint(found[1::2]), found[::2] / q
        if has_own:
            cuts, entries = np.append(0.0, cuts), np.append(0.0, entries)
        return cls(n_strata, cuts.astype(np.int64), np.minimum(entries, 1.0 - 0.5 / q))

    @staticmethod
    def n_entries(n_bands: int, q: int) -> int:
        """Return the number of classes of entry, known before there is a table."""
        return min(MOST_CLASSES, 1 + min(n_bands, q))

    @property
    def n_of_stratum(self) -> int:
        """Number of classes of each stratum."""
        return self.entries.size

    @property
    def number(self) -> int:
        """Number of classes."""
        return self.n_strata * self.n_of_stratum

    def places(self, entered: IntArray | None, stratum: IntArray | None) -> IntArray:
        """Return the class of each record, by the interval of its entry, 0 for the start."""
        found: Any = 0 if stratum is None else stratum * self.n_of_stratum
        late: Any = 0 if entered is None else np.searchsorted(self.cuts, entered)
        return np.asarray(found + late)

    def of(self, histories: Histories) -> IntArray:
        """Return the class of each history; after all others that of those never at risk."""
        found = self.places(histories.entry, histories.stratum)
        return np.where(histories.at_risk, found, self.number)

    def entry(self, place: int) -> float:
        """Return when those of a class enter, as a share of the horizon."""
        return float(self.entries[place % self.n_of_stratum])


def seen_from(entry: float, edges: IntArray) -> FloatArray:
    """Return the share of each block, between edges in intervals, after a share of the horizon."""
    start = entry * edges[-1]
    return np.clip((edges[1:] - start) / np.diff(edges), 0.0, 1.0)


def at_risk(survived: IntArray, event: BoolArray, entered: IntArray) -> BoolArray:
    """Return which records of a block are at risk at all: others entered when they left."""
    return event.astype(bool, copy=False) | (entered < survived)
