"""The public domain of a Weibull fit: a table of counts over bins of log time.

Each record is clipped and put in a bin on its own, so neighbours stay neighbours: replacing one
record moves one unit of count from a bin to another. All that a private fit does afterwards starts
from two rows of integers, whatever the number of records; tables of parts of the data add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.weibull import BEFORE_PART
from skdpsurv.privacy import clip_times
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Bins between the least and the largest log time. With omega = 6 a bin is 0.3 % of a time wide.
N_BINS = 2048
#: An event before the least time counts as so many bins further down, where sums of log times are
#: made: a sixth of omega. The mean log time of such events is 1 / shape below -omega.
BEFORE_BINS = 341

#: Private events and times.
Targets = Blocks[tuple[BoolArray, FloatArray]]
#: Log times, events and records at each, and how many events were before them all.
Weighted = tuple[FloatArray, NDArray[Any], FloatArray, int]


@dataclass(frozen=True)
class CountTable:
    """Private counts over a public grid of log times.

    Parameters
    ----------
    omega : float
        Public: the grid goes from -omega to 0.
    records : ndarray of int64, shape (N_BINS + 1,)
        Private: records whose log time is nearest to each point of the grid; at the first point,
        those before -omega, and they alone.
    events : ndarray of int64, shape (N_BINS + 1,)
        Private: those among them with an event.
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
        """The public grid, rising from -omega to 0."""
        return log_time_grid(self.omega)

    def distances(self, left_censored: bool) -> IntArray:
        """Return how far below 0 an event counts in each bin, in bins."""
        return N_BINS - event_bins(left_censored)

    def each(self) -> tuple[FloatArray, BoolArray]:
        """Return log times and events of as many records as were counted, in some order."""
        censored = self.records - self.events
        x = np.concatenate([np.repeat(self.log_time, k) for k in (self.events, censored)])
        return x, np.arange(x.size) < self.events.sum()

    def weighted(self, left_censored: bool) -> Weighted:
        """Return what the likelihood is made of."""
        weights, events, n_before = self.records.astype(float), self.events.copy(), 0
        if left_censored:
            n_before, events[0] = int(events[0]), 0
            weights[0] = BEFORE_PART * (weights[0] - n_before)
        return self.log_time, events, weights, n_before


@dataclass(frozen=True)
class LogTimes:
    """Private log times themselves, for fits that do not count them: as of :func:`log_times`."""

    omega: float
    x: FloatArray
    event: BoolArray
    before: BoolArray

    def each(self) -> tuple[FloatArray, BoolArray]:
        """Return log times and events, in the order of the records."""
        return self.x, self.event

    def weighted(self, left_censored: bool) -> Weighted:
        """Return what the likelihood is made of."""
        if not left_censored:
            return self.x, self.event, np.ones(self.x.size), 0
        inside, n_before = ~self.before, int((self.before & self.event).sum())
        n_leaving = int(self.before.sum()) - n_before
        return (
            np.append(self.x[inside], -self.omega),
            np.append(self.event[inside], False),
            np.append(np.ones(self.x.size)[inside], BEFORE_PART * n_leaving),
            n_before,
        )


def log_time_grid(omega: float) -> FloatArray:
    """Return the N_BINS + 1 points of the grid of log times."""
    return np.asarray((np.arange(N_BINS + 1) / N_BINS - 1.0) * omega)


def event_bins(left_censored: bool) -> IntArray:
    """Return what an event of each bin counts as in sums of log times, in bins above -omega.

    Parameters
    ----------
    left_censored : bool
        Whether events of the first bin are taken for events before it, and not at it.
    """
    bins = np.arange(N_BINS + 1)
    bins[0] -= BEFORE_BINS * left_censored
    return bins


def before_offset(omega: float) -> float:
    """Return how far below -omega the log time of an event before it counts."""
    return BEFORE_BINS / N_BINS * omega


def lattice_exponent(n_records: int, largest: float) -> int:
    """Return the bits after the point at which n terms below ``largest`` sum exactly in int64."""
    _, bits = np.frexp(largest)
    return min(30, 61 - int(n_records).bit_length() - int(bits))


def log_times(
    time: FloatArray, event: BoolArray, max_time: float, omega: float, *, exact: bool = False
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return log times in units of the horizon, clipped to [-omega, 0], events, and who is clipped.

    Times beyond ``max_time`` are censored there; times below ``max_time * exp(-omega)``, zero
    among them, are raised to it and stay what they were. With ``exact``, zero alone is raised.
    """
    time, event = clip_times(time, event, max_time)
    with np.errstate(divide="ignore", under="ignore"):
        u = time / max_time
        x = np.log(u)
    before = u < (0.0 if exact else math.exp(-omega))
    before |= u == 0.0  # as is every time where exp(-omega) is 0
    return np.where(before, -omega, np.minimum(x, 0.0)), event, before


def all_log_times(
    records: Targets, max_time: float, omega: float, *, exact: bool = False
) -> LogTimes:
    """Return the clipped log times of all records; ``exact`` as of :func:`log_times`."""
    parts = records.results(
        lambda block: log_times(block[1], block[0], max_time, omega, exact=exact)
    )
    return LogTimes(omega, *(np.concatenate(each) for each in zip(*parts, strict=True)))


def count_table(records: Targets, max_time: float, omega: float) -> CountTable:
    """Count records and events in the bins."""

    def counts(block: tuple[BoolArray, FloatArray]) -> tuple[IntArray, IntArray]:
        event, time = block
        x, seen, before = log_times(time, event, max_time, omega)
        place = np.rint((x / omega + 1.0) * N_BINS).astype(np.int64)
        place = np.where(before, 0, np.maximum(place, 1))
        return (
            np.bincount(place, minlength=N_BINS + 1),
            np.bincount(place[seen], minlength=N_BINS + 1),
        )

    return CountTable(omega, *records.map_sum(counts))
