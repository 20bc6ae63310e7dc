r"""What is public of a Weibull fit: its setting, and its domain of counts over bins of log time.

Each record is clipped and put in a bin on its own, so neighbours stay neighbours: replacing one
record moves one unit of count from a bin to another. All that a private fit does afterwards starts
from two rows of integers, whatever the number of records; tables of parts of the data add up.

What the counts may be, given what was released, serves weights and intervals, not privacy. Times
are then Weibull. How they were censored is not known beyond how many were. Records are censored at
the horizon and, if that leaves more events than were released, before it: at a time with
distribution function :math:`c^\theta` on (0, 1), which is entry at random times for theta = 1, and
theta such that the expected number of events is the released one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import clip_times
from skdpsurv.dp.plan import Node, Plan
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.weibull import BEFORE_PART, SHAPE_RANGE

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
    """Return what an event of each bin counts as in sums of log times, in bins above -omega."""
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

    return CountTable(omega, *records.map_reduce(counts))


#: Powers theta that are looked at, from nearly all censored at once to nearly none before the end.
CENSORING_POWERS = np.geomspace(1e-3, 1e3, 121)


def bin_probabilities(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of an event, and of censoring, in each bin of log time."""
    grid = log_time_grid(omega)
    edges = np.append((grid[1:] + grid[:-1]) / 2.0, 0.0)
    edges[0] = -omega  # the first bin has what is before it, and nothing else
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
    # Who is not seen to die leaves where the censoring time falls, if still alive then.
    leaves = -np.diff(at_risk, append=0.0) * survival
    leaves[0] += 1.0 - at_risk[0]
    cells = np.maximum([dies * at_risk, leaves], 0.0)
    events, censored = cells / cells.sum()
    return events, censored


def exact_share(shape: float, log_scale: float, event_rate: float, omega: float) -> float:
    """Return the share of events that are not before -omega."""
    events, _ = bin_probabilities(shape, log_scale, event_rate, omega)
    total = float(events.sum())
    return 1.0 if total <= 0.0 else 1.0 - float(events[0]) / total


def log_time_variance(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> float:
    """Return the variance of log times that are weighted by their powers.

    It is the derivative of s1 / s0 by the shape.
    """
    _, from_last, weight = _power_weights(shape, log_scale, event_rate, omega)
    return float(weight @ (from_last - weight @ from_last) ** 2)


def mean_log_time(shape: float, log_scale: float, event_rate: float | None, omega: float) -> float:
    """Return the mean of log times that are weighted by their powers, s1 / s0.

    At this time the fitted hazard depends least on the fitted shape.
    """
    last, from_last, weight = _power_weights(shape, log_scale, event_rate, omega)
    return float(last + weight @ from_last)


def _power_weights(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the last log time that anybody may have, log times from it, and their weights."""
    grid = log_time_grid(omega)
    events, censored = bin_probabilities(shape, log_scale, event_rate, omega)
    weight = events + censored
    # From the last bin that anybody may be in, so that not all powers underflow.
    last = float(grid[weight > 0].max())
    from_last = np.minimum(grid - last, 0.0)
    with np.errstate(under="ignore"):
        weight = weight * np.exp(shape * from_last)
    return last, from_last, weight / weight.sum()


# What was tuned: on simulated Weibull data of many shapes, scales and censorings, and with the
# three data sets of docs/benchmarks/weibull in view. Shares are of epsilon, in the tight ladder.
#: Without a shape_fraction: shares of the number of events, and of the follow-up time.
EVENTS_SHARE, FOLLOW_UP_SHARE = 0.14, 0.03
#: With one: their parts of what it leaves, of which the last sum of powers has half.
EVENTS_PART, FOLLOW_UP_PART = 0.4, 0.1
#: Share of the ladder, and that of the last sum of powers, for one of the sum of log times, at one
#: event per horizon of follow-up; they grow with a power of that rate, within a range. The sum of
#: log times is hard to know where events are few, the others are where little follow-up is left.
LADDER_PART, RATE_POWER, RATE_RANGE = 0.4, 0.8, (0.25, 20.0)
#: With a correction: shares of the sum of log times, ladder, first sum of powers, and score.
CORRECTION_SHARES = (0.10, 0.10, 0.03, 0.35)
#: It is worth while from so many events times epsilon, and events per horizon of follow-up.
CORRECTION_EVENTS, CORRECTION_RATE = 1500.0, 1.0
#: It moves the shape by half of it down, or by all of it up, at most.
LARGEST_CORRECTION = (-0.5, 1.0)
#: Log event times are counted from a quarter of omega below the horizon, where their mean often is:
#: the noise in the number of events then hardly moves it. In bins from -omega.
CENTER = 3 * N_BINS // 4
#: A released mean of log event times allows shapes down to this part of the largest.
STEEPEST = 0.9

#: Part of epsilon that pays for its being split in floats: some ulps of each share and each scale.
ROUNDING_SHARE = 2.0**-40
#: Scales are released up to e^300 horizons.
LARGEST_LOG_SCALE = 300.0
#: Name of a public input of plans that take events before exp(-omega) for what they are.
LEFT_CENSORED = "left_censored"
#: What else must be true.
ASSUMED = (
    "n and every constructor parameter are public",
    "max_time was not read off these records",
)


@dataclass(frozen=True)
class WeibullSetting:
    """Public numbers of a fit, and the way to fit.

    Parameters
    ----------
    way : Way
    n_records : int
    epsilon, max_time, omega, max_shape : float
    shape_fraction : float or None
        Share of epsilon for the shape; None for the plan's own.
    left_censored : bool
        Whether an event before exp(-omega) is taken for one at an unknown time before it, where
        the plan can do that. False is what releases of version 1 did: it is taken for one at it.
    """

    way: Way
    n_records: int
    epsilon: float
    max_time: float
    omega: float
    max_shape: float
    shape_fraction: float | None = None
    left_censored: bool = True

    @property
    def spendable(self) -> float:
        """Epsilon less what rounding shares, and scales of noise, can cost at most."""
        return self.epsilon * (1.0 - ROUNDING_SHARE)

    @property
    def shape_share(self) -> float:
        """Share of epsilon for the shape, where nothing speaks for another."""
        return 0.5 if self.shape_fraction is None else self.shape_fraction

    @property
    def first_shares(self) -> tuple[float, float]:
        """Shares of the number of events and of the follow-up time, in the tight ladder."""
        if self.shape_fraction is None:
            return EVENTS_SHARE, FOLLOW_UP_SHARE
        rest = 1.0 - self.shape_fraction
        return EVENTS_PART * rest, FOLLOW_UP_PART * rest

    def later_shares(self, n_events: int, rate: float) -> tuple[float, ...]:
        """Return shares for log times and ladder and, with a correction, first scale and score."""
        if n_events * self.epsilon >= CORRECTION_EVENTS and rate >= CORRECTION_RATE:
            shares: tuple[float, ...] = CORRECTION_SHARES
        else:
            part = LADDER_PART * min(max(rate, RATE_RANGE[0]), RATE_RANGE[1]) ** RATE_POWER
            log_times_share = (1.0 - EVENTS_SHARE - FOLLOW_UP_SHARE) / (1.0 + 2.0 * part)
            shares = log_times_share, part * log_times_share
        if self.shape_fraction is None:
            return shares
        return tuple(self.shape_fraction * share / sum(shares) for share in shares)

    def within_range(self, shape: float) -> float:
        """Return the nearest shape that may be released."""
        return min(max(shape, SHAPE_RANGE * self.max_shape), self.max_shape)

    @property
    def bounds(self) -> FloatArray:
        """Least and largest log shape, and log scale in units of the horizon, of an estimate."""
        log_max = math.log(self.max_shape)
        return np.array([(log_max + math.log(SHAPE_RANGE), log_max), self.way.log_scales(self)])

    def stated(self) -> dict[str, Any]:
        """Return the parameters that a release states."""
        return {
            "max_time": self.max_time,
            "omega": self.omega,
            "max_shape": self.max_shape,
            "shape_fraction": "auto" if self.shape_fraction is None else self.shape_fraction,
        }

    def plan(self) -> Plan:
        """Return the plan of what is released, of records as they are read, or of their counts."""
        return self.way.plan(self)

    def plan_of(self, tree: Node, words: str) -> Plan:
        """Return the plan that consists of measurements."""
        inputs = {"n_records": self.n_records, **self.stated()}
        if self.way.n_rungs is not None:
            inputs["n_rungs"] = self.way.n_rungs
        if self.left_censored:
            inputs[LEFT_CENSORED] = True
        return Plan(tree, self.epsilon, inputs=inputs, assumed=ASSUMED, words=words)


class Way(NamedTuple):
    """A way to fit: its plan for a setting, how records are read for it, and ends of log scales.

    The plan releases ``shape``, ``log_scale`` in units of the horizon and, but for baselines,
    ``n_events``. ``read`` takes records, max_time and omega. ``n_rungs`` is where a ladder
    ends; None: where its rungs hardly matter any more.
    """

    plan: Callable[[WeibullSetting], Plan]
    read: Callable[[Targets, float, float], CountTable | LogTimes]
    log_scales: Callable[[WeibullSetting], tuple[float, float]]
    n_rungs: int | None = None
