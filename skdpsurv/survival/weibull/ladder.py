r"""The ladder of the Weibull shape: how many records must change before the shape can move so far.

For a shape p and the mean log time m of events, the fitted shape is at most p exactly if
:math:`h = \sum_i \phi_p(x_i) \ge 0` (:mod:`skdpsurv.likelihoods.weibull`). Replacing k records
raises h most if the k records with the least :math:`\phi` take its greatest value, and lowers it
most if those with the greatest take its least. Both extremes are exact, for any k, and between k
and k + 1 they are interpolated, so what must change is a number of records with a fraction.

Sensitivity: what lies within k records of D lies within k + 1 of any neighbour, so the extremes at
k + 1 of the neighbour include those at k of D, and the least k moves by at most 1. It does so in
the computer, too: :math:`\phi` is rounded to integers once for each bin, sums of integers are
exact, and the few divisions are monotone (docs/proofs/ladder).

Times before the grid are taken for what they are, or, as in releases of version 1, for times at its
beginning. Either way :math:`\phi` is a table over kinds of records, and nothing above needs more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from skdpsurv.dp import to_lattice
from skdpsurv.dp.types import IntArray
from skdpsurv.likelihoods.weibull import SHAPE_RANGE, score_with_before, shape_score
from skdpsurv.mechanisms.ladder import UNIT, first_level
from skdpsurv.survival.weibull.counts import N_BINS, CountTable, before_offset, lattice_exponent

#: Cells of the public grid of shapes: each is 5e-5 of its shape wide.
N_CELLS = 2**17


def shape_at(node: float, max_shape: float) -> float:
    """Return the shape at a node of the grid, which is even on the log scale."""
    return float(max_shape * SHAPE_RANGE ** (1.0 - node / N_CELLS))


def records_to_change(counts: IntArray, gains: IntArray, needed: int, n_records: int) -> int:
    """Return how many records, each gaining what it can, make up ``needed``."""
    order = np.argsort(-gains, kind="stable")  # at most two runs: merging them is quick
    gains, counts = gains[order], counts[order]
    gained = np.cumsum(counts * gains)
    if gained[-1] < needed:
        return n_records * UNIT
    last = int(np.searchsorted(gained, needed))
    rest = needed - (int(gained[last - 1]) if last else 0)
    before = int(counts[:last].sum())
    return before * UNIT + rest * UNIT // int(gains[last])


@dataclass(frozen=True)
class ScoreTable:
    """phi at the bins, in integers, for one shape and one mean of log event times."""

    counts: IntArray
    score: IntArray
    n_records: int

    @classmethod
    def at(
        cls, table: CountTable, shape: float, mean_log_event: float, left_censored: bool = False
    ) -> ScoreTable:
        """Tabulate phi; the rounding depends on public numbers only."""
        exponent = lattice_exponent(table.n_records, 2.0 * (table.omega + 1.0 / shape))
        if left_censored:
            offset = before_offset(table.omega)
            exact = score_with_before(table.log_time, shape, mean_log_event, offset)
        else:
            exact = shape_score(table.log_time, shape, mean_log_event)
        return cls(table.records, to_lattice(exact, -exponent), table.n_records)

    @property
    def total(self) -> int:
        """h, the sum of phi over the records."""
        return int(self.counts @ self.score)

    def to_raise(self) -> int:
        """Return the records to change before h can be 0 or more."""
        if (total := self.total) >= 0:
            return 0
        gains = self.score.max() - self.score
        return records_to_change(self.counts, gains, -total, self.n_records)

    def to_lower(self) -> int:
        """Return the records to change before h can be 0 or less."""
        if (total := self.total) <= 0:
            return 0
        gains = self.score - self.score.min()
        return records_to_change(self.counts, gains, total, self.n_records)


@dataclass(frozen=True)
class ReleasedMeanRungs:
    """Rungs given a mean of log event times that was released before.

    Only the sum over all records is private here, and the ladder is exact: its level is the
    distance to the nearest data set that has its solution in the cell.
    """

    table: CountTable
    mean_log_event: float
    max_shape: float
    left_censored: bool = False
    n_cells: int = field(default=N_CELLS, init=False)

    def down_to(self, node: int) -> int:
        """Count records to change for a shape at most the node's."""
        return 0 if node >= self.n_cells else self._score(node).to_raise()

    def up_to(self, node: int) -> int:
        """Count records to change for a shape at least the node's."""
        return 0 if node <= 0 else self._score(node).to_lower()

    def _score(self, node: int) -> ScoreTable:
        shape = shape_at(node, self.max_shape)
        return ScoreTable.at(self.table, shape, self.mean_log_event, self.left_censored)


@dataclass(frozen=True)
class ExactRungs:
    """Rungs of the paper's ladder with exact extremes on both sides of its equation.

    The mean of log event times is private here. At k changed records it is bounded by its own
    extremes, and the sum of phi by its extremes given those.
    """

    table: CountTable
    max_shape: float
    top: int
    left_censored: bool = False
    n_cells: int = field(default=N_CELLS, init=False)

    def down_to(self, node: int) -> int:
        """Count records to change for a shape at most the node's."""
        if node >= self.n_cells:
            return 0
        return self._first(lambda k: self._score(node, self.least_mean(k)).to_raise() <= k * UNIT)

    def up_to(self, node: int) -> int:
        """Count records to change for a shape at least the node's."""
        if node <= 0:
            return 0
        return self._first(lambda k: self._score(node, self.largest_mean(k)).to_lower() <= k * UNIT)

    def _first(self, reached: Callable[[int], bool]) -> int:
        return first_level(reached, min(self.top, self.table.n_records)) * UNIT

    def _score(self, node: int, mean_log_event: float) -> ScoreTable:
        shape = shape_at(node, self.max_shape)
        return ScoreTable.at(self.table, shape, mean_log_event, self.left_censored)

    @cached_property
    def _distance(self) -> IntArray:
        """How far below 0 an event of each bin counts."""
        return self.table.distances(self.left_censored)

    @cached_property
    def _events_from_below(self) -> tuple[IntArray, IntArray]:
        """Events, and the sum of their bins' distances from 0, over bins up to each."""
        events = self.table.events
        return np.cumsum(events), np.cumsum(events * self._distance)

    @cached_property
    def _ends_of_bins(self) -> IntArray:
        """Events up to each bin that has some."""
        return self._events_from_below[0][self.table.events > 0]

    def largest_mean(self, k: int) -> float:
        """Return the largest mean of log event times at k changed records; 0 without events.

        The j smallest leave, and all who changed have an event at the horizon.
        """
        number, distance = self._events_from_below
        n_events, total = int(number[-1]), int(distance[-1])
        if k >= n_events:
            return 0.0
        spare = self.table.n_records - n_events
        # Between the ends of bins the mean is monotone in j, but for where spare records run out.
        j = np.clip(np.append(self._ends_of_bins, [0, k - spare, k]), 0, k)
        bin_ = np.searchsorted(number, j)
        removed = distance[bin_] - (number[bin_] - j) * self._distance[bin_]
        means = (total - removed) / (n_events + np.minimum(k - j, spare))
        return -float(means.min()) * self.table.omega / N_BINS

    def least_mean(self, k: int) -> float:
        """Return the least mean of log event times at k changed records.

        The k largest go to the least time; 0 for no events.
        """
        number, distance = self._events_from_below
        n_events = int(number[-1])
        furthest = int(self._distance[0])
        if n_events == 0:
            return 0.0 if k == 0 else -furthest * self.table.omega / N_BINS
        j = min(k, n_events)
        kept = n_events - j
        bin_ = int(np.searchsorted(number, kept))
        kept_distance = int(distance[bin_]) - (int(number[bin_]) - kept) * int(self._distance[bin_])
        return -((kept_distance + j * furthest) / n_events) * self.table.omega / N_BINS
