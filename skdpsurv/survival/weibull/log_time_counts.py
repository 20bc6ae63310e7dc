r"""Records of a Weibull fit as counts over bins of log time, and ladder levels of the shape.

Each record is clipped and put in a bin on its own: replacing one record moves one unit of count
from a bin to another.

A ladder level is the number of records that must change before the fitted shape can be at most, or
at least, a node p. With m the mean log time of events, the shape is at most p exactly if
:math:`h = \sum_i \phi_p(x_i) \ge 0` (:mod:`skdpsurv.likelihoods.weibull`). Replacing k records
raises h most if those with the least :math:`\phi` take its greatest value, and likewise lowers it.
Both extremes are exact, and interpolated between k and k + 1.

Sensitivity: data within k records of D are within k + 1 of any neighbour, so its extremes at k + 1
include those of D at k, and the level moves by at most 1. In the computer too: :math:`\phi` is
rounded to integers for each bin, sums are exact, and divisions are monotone (docs/proofs/ladder).

Expected counts, given a release, serve weights and intervals, not privacy. Times are then Weibull.
Records are censored at the horizon and, if that leaves more events than were released, before it,
at a time with distribution function :math:`c^\theta` on (0, 1) that leaves the released number.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.histories import Histories
from skdpsurv.dp.noise import to_lattice
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.weibull import BEFORE_PART, SHAPE_RANGE, score_with_before, shape_score
from skdpsurv.mechanisms.ladder import UNIT, first_level

#: Bins between the least and the largest log time: 0.3 % of a time wide for omega = 6.
N_BINS = 2048
#: Bins below -omega as which an event before it counts in sums of log times: a sixth of omega.
BEFORE_BINS = 341
#: Cells of the public grid of shapes: each is 5e-5 of its shape wide.
N_CELLS = 2**17
#: Powers theta for censoring, from nearly all censored at once to nearly none before the end.
CENSORING_POWERS = np.geomspace(1e-3, 1e3, 121)

#: Private records, as they are read.
Targets = Blocks[Histories]
#: Log times, events and records at each, and how many events were before them all.
Weighted = tuple[FloatArray, NDArray[Any], FloatArray, int]


@dataclass(frozen=True)
class CountTable:
    """Private counts over a public grid of log times from -omega to 0.

    ``records`` and ``events`` have shape (N_BINS + 1,): records whose log time is nearest to each
    point, and those among them with an event. At the first point are those before -omega alone.
    """

    omega: float
    records: IntArray
    events: IntArray

    @cached_property
    def n_records(self) -> int:
        """Number of records, public under replace-one."""
        return int(self.records.sum())

    @cached_property
    def log_time(self) -> FloatArray:
        """Public grid, from -omega to 0."""
        return log_time_grid(self.omega)

    def each(self) -> tuple[FloatArray, BoolArray]:
        """Return log times and events of all records, in some order."""
        censored = self.records - self.events
        x = np.concatenate([np.repeat(self.log_time, k) for k in (self.events, censored)])
        return x, np.arange(x.size) < self.events.sum()

    def weighted(self, left_censored: bool) -> Weighted:
        """Return log times, events, weights and early events, for the likelihood."""
        weights, events, n_before = self.records.astype(float), self.events.copy(), 0
        if left_censored:
            n_before, events[0] = int(events[0]), 0
            weights[0] = BEFORE_PART * (weights[0] - n_before)
        return self.log_time, events, weights, n_before


@dataclass(frozen=True)
class LogTimes:
    """Private records by log time, for fits that do not count them: as of :func:`log_times`."""

    omega: float
    histories: Histories
    before: BoolArray

    def each(self) -> tuple[FloatArray, BoolArray]:
        """Return log times and events, in the order of the records."""
        return self.histories.exit, self.histories.event

    def weighted(self, left_censored: bool) -> Weighted:
        """Return log times, events, weights and early events, for the likelihood."""
        x, event = self.each()
        if not left_censored:
            return x, event, np.ones(x.size), 0
        inside, n_before = ~self.before, int((self.before & event).sum())
        n_leaving = int(self.before.sum()) - n_before
        return (
            np.append(x[inside], -self.omega),
            np.append(event[inside], False),
            np.append(np.ones(x.size)[inside], BEFORE_PART * n_leaving),
            n_before,
        )


#: Private records, as a fit reads them.
Records = CountTable | LogTimes


def log_time_grid(omega: float) -> FloatArray:
    """Return the N_BINS + 1 points of the grid of log times."""
    return np.asarray((np.arange(N_BINS + 1) / N_BINS - 1.0) * omega)


def event_bins(left_censored: bool) -> IntArray:
    """Return the value of an event of each bin in sums of log times, in bins above -omega."""
    bins = np.arange(N_BINS + 1)
    bins[0] -= BEFORE_BINS * left_censored
    return bins


def before_offset(omega: float) -> float:
    """Return the distance below -omega at which events before it count."""
    return BEFORE_BINS / N_BINS * omega


def lattice_exponent(n_records: int, largest: float) -> int:
    """Return the binary places at which n terms below ``largest`` sum exactly in int64."""
    _, bits = np.frexp(largest)
    return min(30, 61 - int(n_records).bit_length() - int(bits))


def log_times(
    histories: Histories, max_time: float, omega: float, *, exact: bool = False
) -> tuple[Histories, BoolArray]:
    """Return histories by log time in units of the horizon, in [-omega, 0], and which are low.

    Times beyond ``max_time`` are censored there; times below ``max_time * exp(-omega)`` are low,
    and raised to it. With ``exact``, zero alone is raised.
    """
    seen = histories.clipped(max_time)
    with np.errstate(divide="ignore", under="ignore"):
        u = seen.exit / max_time
        x = np.log(u)
    before = u < (0.0 if exact else math.exp(-omega))
    before |= u == 0.0  # as is every time where exp(-omega) is 0
    return replace(seen, exit=np.where(before, -omega, np.minimum(x, 0.0))), before


def all_log_times(
    records: Targets, max_time: float, omega: float, *, exact: bool = False
) -> LogTimes:
    """Return the clipped log times of all records; ``exact`` as of :func:`log_times`."""
    blocks = records.results(lambda block: log_times(block, max_time, omega, exact=exact))
    histories, before = zip(*blocks, strict=True)
    return LogTimes(omega, Histories.joined(histories), np.concatenate(before))


def count_table(records: Targets, max_time: float, omega: float) -> CountTable:
    """Count records and events in the bins."""

    def counts(block: Histories) -> tuple[IntArray, IntArray]:
        seen, before = log_times(block, max_time, omega)
        bin_ = np.rint((seen.exit / omega + 1.0) * N_BINS).astype(np.int64)
        bin_ = np.where(before, 0, np.maximum(bin_, 1))
        size = N_BINS + 1
        return np.bincount(bin_, minlength=size), np.bincount(bin_[seen.event], minlength=size)

    return CountTable(omega, *records.map_reduce(counts))


def bin_probabilities(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of an event, and of censoring, in each bin of log time."""
    grid = log_time_grid(omega)
    edges = np.append((grid[1:] + grid[:-1]) / 2.0, 0.0)
    edges[0] = -omega  # the first bin has times before it, and no others
    with np.errstate(over="ignore", under="ignore"):
        survival = np.exp(-np.exp(shape * (edges - log_scale)))
    dies = -np.diff(survival, prepend=1.0)
    at_risk = np.ones(grid.size)
    if event_rate is not None and event_rate < dies.sum():

        def uncensored(theta: float) -> FloatArray:
            with np.errstate(under="ignore"):
                return np.asarray(1.0 - np.exp(theta * grid))

        # The expected share of events rises with theta.
        power = bisect_left(
            CENSORING_POWERS, event_rate, key=lambda theta: float(uncensored(theta) @ dies)
        )
        at_risk = uncensored(CENSORING_POWERS[min(power, CENSORING_POWERS.size - 1)])
    # Records without an event leave at their censoring time, if still alive.
    leaves = -np.diff(at_risk, append=0.0) * survival
    leaves[0] += 1.0 - at_risk[0]
    cells = np.maximum([dies * at_risk, leaves], 0.0)
    events, censored = cells / cells.sum()
    return events, censored


def log_time_variance(shape: float, log_scale: float, rate: float | None, omega: float) -> float:
    """Return the variance of log times weighted by powers: the slope of s1 / s0 by the shape."""
    _, from_last, weight = _power_weights(shape, log_scale, rate, omega)
    return float(weight @ (from_last - weight @ from_last) ** 2)


def mean_log_time(shape: float, log_scale: float, event_rate: float | None, omega: float) -> float:
    """Return the mean of log times weighted by powers: there the hazard varies least by shape."""
    last, from_last, weight = _power_weights(shape, log_scale, event_rate, omega)
    return float(last + weight @ from_last)


def _power_weights(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the last log time of positive probability, log times from it, and their weights."""
    grid = log_time_grid(omega)
    events, censored = bin_probabilities(shape, log_scale, event_rate, omega)
    weight = events + censored
    # From the last bin, so that not all powers underflow.
    last = float(grid[weight > 0].max())
    from_last = np.minimum(grid - last, 0.0)
    with np.errstate(under="ignore"):
        weight = weight * np.exp(shape * from_last)
    return last, from_last, weight / weight.sum()


def shape_at(node: float, max_shape: float) -> float:
    """Return the shape at a node of the grid, which is even on the log scale."""
    return float(max_shape * SHAPE_RANGE ** (1.0 - node / N_CELLS))


def records_to_change(counts: IntArray, gains: IntArray, needed: int, n_records: int) -> int:
    """Return the number of records, each with its largest gain, that make up ``needed``."""
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
        """Sum h of the scores phi over the records."""
        return int(self.counts @ self.score)

    def to_raise(self) -> int:
        """Return the records to change before h can be 0 or more."""
        return self._to_change(-self.total, self.score.max() - self.score)

    def to_lower(self) -> int:
        """Return the records to change before h can be 0 or less."""
        return self._to_change(self.total, self.score - self.score.min())

    def _to_change(self, needed: int, gains: IntArray) -> int:
        return records_to_change(self.counts, gains, needed, self.n_records) if needed > 0 else 0


@dataclass(frozen=True)
class ReleasedMeanLevels:
    """Ladder levels given a released mean of log event times.

    Only the sum over all records is private here, and the ladder is exact: its level is the
    distance to the nearest data set that has its solution in the cell.
    """

    table: CountTable
    mean_log_event: float
    max_shape: float
    left_censored: bool = False
    n_cells: ClassVar[int] = N_CELLS

    def down_to(self, node: int) -> int:
        """Count records to change for a shape at most the node's."""
        return 0 if node >= self.n_cells else self._score(node).to_raise()

    def up_to(self, node: int) -> int:
        """Count records to change for a shape at least the node's."""
        return 0 if node <= 0 else self._score(node).to_lower()

    def _score(self, node: int) -> ScoreTable:
        shape = shape_at(node, self.max_shape)
        return ScoreTable.at(self.table, shape, self.mean_log_event, self.left_censored)


@dataclass
class ExactLevels:
    """Levels of the paper's ladder with exact extremes on both sides of its equation.

    The mean of log event times is private here. At k changed records it is bounded by its own
    extremes, and the sum of phi by its extremes given those.
    """

    table: CountTable
    max_shape: float
    top: int
    left_censored: bool = False
    n_cells: ClassVar[int] = N_CELLS

    def __post_init__(self) -> None:
        events = self.table.events
        #: Bins below 0 at which an event of each bin counts.
        self._distance = N_BINS - event_bins(self.left_censored)
        #: Events, and the sum of their distances, up to each bin.
        self._number, self._total = np.cumsum(events), np.cumsum(events * self._distance)

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

    def largest_mean(self, k: int) -> float:
        """Return the largest mean of log event times at k changed records; 0 without events.

        The k smallest go to the horizon: each is further from it than the mean of the larger ones,
        so that moving it gains more than an event for a censored record would.
        """
        n_events = int(self._number[-1])
        if k >= n_events:
            return 0.0
        kept_distance = int(self._total[-1]) - self._distance_of_smallest(k)
        return -(kept_distance / n_events) * self.table.omega / N_BINS

    def least_mean(self, k: int) -> float:
        """Return the least mean of log event times at k changed records.

        The k largest go to the least time; 0 for no events.
        """
        n_events = int(self._number[-1])
        furthest = int(self._distance[0])
        if n_events == 0:
            return 0.0 if k == 0 else -furthest * self.table.omega / N_BINS
        j = min(k, n_events)
        kept_distance = self._distance_of_smallest(n_events - j)
        return -((kept_distance + j * furthest) / n_events) * self.table.omega / N_BINS

    def _distance_of_smallest(self, n_events: int) -> int:
        bin_ = int(np.searchsorted(self._number, n_events))
        beyond = int(self._number[bin_]) - n_events
        return int(self._total[bin_]) - beyond * int(self._distance[bin_])
