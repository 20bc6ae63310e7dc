"""The public numbers that a Weibull fit is planned from: its parameters, and what was tuned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.dp.plan import Node, Plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.weibull import SHAPE_RANGE
from skdpsurv.survival.weibull.counts import N_BINS, CountTable, LogTimes, Targets

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
