"""The ways to fit a Weibull distribution: without privacy, by noisy estimates, or by a ladder.

Each is a plan, made from public numbers alone before anything is charged, and a ``run`` that
touches the records. A plan also runs on a table of counts, so that intervals can be found by
running it on simulated ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.weibull import (
    BEFORE_PART,
    SHAPE_RANGE,
    efficient_score,
    maximum_likelihood,
    maximum_likelihood_with_before,
)
from skdpsurv.mechanisms.ladder import UNIT, draw_cell, highest_level
from skdpsurv.mechanisms.sums import COUNT, Sum
from skdpsurv.privacy import RandomSource, to_lattice
from skdpsurv.references import reference
from skdpsurv.survival.weibull_counts import (
    N_BINS,
    CountTable,
    before_offset,
    count_table,
    event_bins,
    lattice_exponent,
    log_times,
)
from skdpsurv.survival.weibull_model import exact_share, log_time_variance
from skdpsurv.survival.weibull_published import PublishedRungs
from skdpsurv.survival.weibull_rungs import ExactRungs, ReleasedMeanRungs, shape_at
from skdpsurv.types import BoolArray, FloatArray

#: shape_fraction=None: shares of epsilon for the number of events and for the follow-up time.
EVENTS_SHARE, FOLLOW_UP_SHARE = 0.14, 0.03
#: A given shape_fraction: the parts of its complement for them; the last sum of powers has half.
EVENTS_PART, FOLLOW_UP_PART = 0.4, 0.1
#: Shares of the ladder and of the sum of powers, for one of the sum of log times, at one event per
#: horizon of follow-up; they grow with a power of that rate. Rates beyond the range count as its
#: ends. Found on simulated Weibull data of many shapes, scales and censorings, and with the three
#: data sets of docs/benchmarks/weibull in view.
LADDER_PART, RATE_POWER, RATE_RANGE = 0.4, 0.8, (0.25, 20.0)
#: With a correction: shares for the sum of log times, the ladder, a first sum of powers, and the
#: score. It is worth while from so many events times epsilon, and events per horizon of follow-up.
CORRECTION_SHARES = (0.10, 0.10, 0.03, 0.35)
CORRECTION_EVENTS, CORRECTION_RATE = 1500.0, 1.0
#: A correction moves the shape by half of it down, or by all of it up, at most.
LARGEST_CORRECTION = (-0.5, 1.0)
#: Log event times are counted from a quarter of omega below the horizon, where their mean often is:
#: the noise in the number of events then hardly moves it. In bins from -omega.
CENTER = 3 * N_BINS // 4
#: A released mean of log event times allows shapes down to this part of the largest.
STEEPEST = 0.9
#: Sample and aggregate: records of a block.
BLOCK_RECORDS = 500
#: Part of epsilon that pays for its being split in floats: some ulps of each share and each scale.
ROUNDING_SHARE = 2.0**-40
#: Scales are released up to e^300 horizons.
LARGEST_LOG_SCALE = 300.0


#: Name of a public input of plans that take events before exp(-omega) for what they are.
LEFT_CENSORED = "left_censored"

#: Private events and times.
Targets = Blocks[tuple[BoolArray, FloatArray]]


class Estimate(NamedTuple):
    """Shape; log scale in units of the horizon; number of events, where that is released."""

    shape: float
    log_scale: float
    n_events: float | None = None


@dataclass(frozen=True)
class WeibullPlan(ABC):
    """How to fit, from public numbers.

    Parameters
    ----------
    n_records : int
    epsilon : float
    max_time : float
    omega : float
    max_shape : float
    shape_fraction : float or None
        Share of epsilon for the shape; None for the plan's own.
    n_rungs : int or None
    left_censored : bool
        Whether an event before exp(-omega) is taken for one at an unknown time before it, where
        the plan can do that. False is what releases of version 1 did: it is taken for one at it.
    """

    n_records: int
    epsilon: float
    max_time: float
    omega: float
    max_shape: float
    shape_fraction: float | None = None
    n_rungs: int | None = None
    left_censored: bool = True

    #: Whether the plan can take events before the grid for what they are: the paper's do not.
    corrects: ClassVar[bool] = True
    #: Whether records' times before exp(-omega) are taken as they are, but for 0, which has no log.
    takes_all_times: ClassVar[bool] = False
    mechanism: ClassVar[str]
    proof: ClassVar[str] = reference("docs/proofs/ladder", "nguyen-hui-weibull", "nissim")
    assumptions: ClassVar[tuple[str, ...]] = (
        "n and every constructor parameter are public",
        "max_time was not read off these records",
    )

    def __post_init__(self) -> None:
        if not self.corrects:
            object.__setattr__(self, "left_censored", False)

    def spans(self) -> list[float]:
        """Return nothing: the rules of the parameters keep every number in range."""
        return []

    @property
    def spendable(self) -> float:
        """Epsilon less what rounding shares, and scales of noise, can cost at most."""
        return self.epsilon * (1.0 - ROUNDING_SHARE)

    def public_inputs(self) -> dict[str, Any]:
        """Return what the guarantee takes to be public."""
        before = {LEFT_CENSORED: True} if self.left_censored else {}
        return {"n_records": self.n_records, **self.setting(), **before}

    def setting(self) -> dict[str, Any]:
        """Return the parameters that a release states."""
        return {
            "max_time": self.max_time,
            "omega": self.omega,
            "max_shape": self.max_shape,
            "shape_fraction": "auto" if self.shape_fraction is None else self.shape_fraction,
            "n_rungs": self.n_rungs,
        }

    def run(self, records: Targets, source: RandomSource) -> dict[str, float]:
        """Release shape, scale in the unit of the times and, from ladders, number of events."""
        estimate = self.estimate(records, source)
        values = {"rho": estimate.shape, "lambda": self.max_time * math.exp(estimate.log_scale)}
        if estimate.n_events is not None:
            values["n_events"] = estimate.n_events
        return values

    def estimate(self, records: Targets, source: RandomSource) -> Estimate:
        """Fit the records."""
        return self.run_on_counts(count_table(records, self.max_time, self.omega), source)

    def all_log_times(self, records: Targets) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return clipped log times, not their bins, events, and who is clipped below, of all."""
        parts = records.results(
            lambda block: log_times(
                block[1], block[0], self.max_time, self.omega, exact=self.takes_all_times
            )
        )
        x, seen, before = (np.concatenate(each) for each in zip(*parts, strict=True))
        return x, seen, before

    @property
    def bounds(self) -> FloatArray:
        """Least and largest log shape, and log scale in units of the horizon, of an estimate."""
        log_max = math.log(self.max_shape)
        shapes = (log_max + math.log(SHAPE_RANGE), log_max)
        return np.array([shapes, self.log_scale_bounds])

    @property
    def log_scale_bounds(self) -> tuple[float, float]:
        """Least and largest log scale."""
        return -self.omega, LARGEST_LOG_SCALE

    @property
    def _shape_share(self) -> float:
        return 0.5 if self.shape_fraction is None else self.shape_fraction

    def _within_range(self, shape: float) -> float:
        return min(max(shape, SHAPE_RANGE * self.max_shape), self.max_shape)

    @abstractmethod
    def run_on_counts(self, table: CountTable, source: RandomSource) -> Estimate:
        """Fit records that are given by their counts."""


class MaximumLikelihood(WeibullPlan):
    """The fit without privacy, whatever omega is: but for times of 0, which have no logarithm."""

    takes_all_times = True
    mechanism = "none: maximum likelihood"
    proof = ""

    @property
    def log_scale_bounds(self) -> tuple[float, float]:
        """Least and largest log scale."""
        return -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE

    def estimate(self, records: Targets, source: RandomSource) -> Estimate:
        """Fit the times, not their bins."""
        x, seen, before = self.all_log_times(records)
        if not self.left_censored or not before.any():
            return self._solve(x, seen)
        inside, n_before = ~before, int((before & seen).sum())
        n_leaving = int(before.sum()) - n_before
        return self._solve_with_before(
            np.append(x[inside], -self.omega),
            np.append(seen[inside], False),
            np.append(np.ones(x.size)[inside], BEFORE_PART * n_leaving),
            n_before,
        )

    def run_on_counts(self, table: CountTable, source: RandomSource) -> Estimate:
        """Fit the bins."""
        weights, events, n_before = table.records.astype(float), table.events.copy(), 0
        if self.left_censored:
            n_before = int(events[0])
            weights[0], events[0] = BEFORE_PART * (weights[0] - n_before), 0
        return self._solve_with_before(table.log_time, events, weights, n_before)

    def _solve_with_before(
        self, x: FloatArray, events: NDArray[Any], weights: FloatArray, n_before: int
    ) -> Estimate:
        full = weights > 0
        if not full.any():  # nothing but events before: their least time, as if it was theirs
            return self._solve(np.array([-self.omega]), np.array([n_before]), np.array([n_before]))
        return self._solve(x[full], events[full], weights[full], n_before)

    def _solve(
        self,
        x: FloatArray,
        events: NDArray[Any],
        weights: NDArray[Any] | None = None,
        n_before: int = 0,
    ) -> Estimate:
        n_events = float(events.sum()) + n_before
        if n_before > 0:
            shape, log_scale = maximum_likelihood_with_before(
                x, events, n_before, self.omega, self.max_shape, weights
            )
            return Estimate(shape, self._scale_within_range(log_scale), n_events)
        shapes, log_scales = maximum_likelihood(x, events, self.max_shape, weights=weights)
        return Estimate(shapes[0], self._scale_within_range(log_scales[0]), n_events)

    def _scale_within_range(self, log_scale: float) -> float:
        return min(max(log_scale, -LARGEST_LOG_SCALE), LARGEST_LOG_SCALE)


class NoisyEstimates(WeibullPlan):
    r"""Laplace noise on maximum likelihood estimates, averaged over disjoint blocks of records.

    Neighbours: replace-one. Sensitivity: one record changes the estimates of one of m blocks; shape
    and scale (in units of the horizon) are clamped to [0, max_shape], so each mean moves by at most
    max_shape / m. Theorem: Laplace mechanism, half of epsilon for each (Nissim, Raskhodnikova and
    Smith 2007 for the blocks).
    """

    corrects = False
    mechanism = "Laplace noise on clamped maximum likelihood estimates"
    n_blocks = 1

    @property
    def log_scale_bounds(self) -> tuple[float, float]:
        """Least and largest log scale."""
        return -self.omega, math.log(self.max_shape)

    def estimate(self, records: Targets, source: RandomSource) -> Estimate:
        """Fit the clipped times, not their bins."""
        x, seen, _ = self.all_log_times(records)
        return self._fit(x, seen, source)

    def run_on_counts(self, table: CountTable, source: RandomSource) -> Estimate:
        """Fit as many records as were counted."""
        censored = table.records - table.events
        x = np.concatenate([np.repeat(table.log_time, k) for k in (table.events, censored)])
        return self._fit(x, np.arange(x.size) < table.events.sum(), source)

    def _fit(self, x: FloatArray, event: BoolArray, source: RandomSource) -> Estimate:
        m = self.n_blocks
        if m > 1:
            # The order depends on n alone, so a record is in one block whatever its values are.
            order = source.independent.generator.permutation(x.size)
            x, event = x[order], event[order]
        starts = np.arange(m) * x.size // m
        shape, log_scale = maximum_likelihood(x, event, self.max_shape, starts)
        scale = np.exp(np.minimum(log_scale, math.log(self.max_shape)))
        share = self._shape_share
        noisy_shape = self._noisy_mean(shape, share * self.spendable, source)
        noisy_scale = self._noisy_mean(scale, (1.0 - share) * self.spendable, source)
        return Estimate(
            self._within_range(noisy_shape),
            math.log(min(max(noisy_scale, math.exp(-self.omega)), self.max_shape)),
        )

    def _noisy_mean(self, values: FloatArray, epsilon: float, source: RandomSource) -> float:
        query = Sum.of_reals(0.0, self.max_shape, -30)
        return query.value(query.release(query.total(values), epsilon, source)) / values.size


class SampleAggregate(NoisyEstimates):
    """The same over blocks of about 500 records each."""

    mechanism = "sample and aggregate: Laplace noise on the mean of clamped block estimates"

    @property
    def n_blocks(self) -> int:  # type: ignore[override]
        """Number of blocks."""
        return max(1, self.n_records // BLOCK_RECORDS)


class NoisyScale(WeibullPlan):
    r"""What ladders have in common: the scale follows from two noisy sums, at a released shape.

    :math:`\lambda^\rho = \tau / \delta`, with :math:`\delta` the number of events and
    :math:`\tau = \sum u^\rho`. Sensitivity: 1 for each of them. A record before the grid counts for
    half of the power of its beginning.
    """

    def _noisy_events(self, table: CountTable, epsilon: float, source: RandomSource) -> int:
        noisy = COUNT.release(int(table.events.sum()), epsilon, source)
        return min(max(noisy, 1), table.n_records)

    def _noisy_powers(
        self, table: CountTable, shape: float, epsilon: float, source: RandomSource
    ) -> float:
        """Release the log of the sum of powers of times, within what is possible."""
        n = table.n_records
        exponent = lattice_exponent(n, 1.0)
        query = Sum.of_reals(0.0, 1.0, -exponent)
        exact = np.exp(shape * table.log_time)
        if self.left_censored:
            exact[0] *= BEFORE_PART
        noisy = query.release(int(table.records @ query.terms(exact)), epsilon, source)
        log_total = math.log(noisy) - exponent * math.log(2.0) if noisy > 0 else -math.inf
        return min(max(log_total, math.log(n) - table.omega * shape), math.log(n))

    def _noisy_log_scale(
        self, table: CountTable, shape: float, n_events: int, epsilon: float, source: RandomSource
    ) -> float:
        log_total = self._noisy_powers(table, shape, epsilon, source)
        return min((log_total - math.log(n_events)) / shape, LARGEST_LOG_SCALE)


class Ladder(NoisyScale):
    """The paper's two steps: the shape by a ladder, then the scale."""

    def run_on_counts(self, table: CountTable, source: RandomSource) -> Estimate:
        """Release the shape, the number of events and the sum of powers."""
        epsilon_shape = self._shape_share * self.spendable
        epsilon_events = (self.spendable - epsilon_shape) / 2.0
        shape = self.draw_shape(table, epsilon_shape, source)
        n_events = self._noisy_events(table, epsilon_events, source)
        log_scale = self._noisy_log_scale(table, shape, n_events, epsilon_events, source)
        return Estimate(shape, log_scale, n_events)

    @abstractmethod
    def draw_shape(self, table: CountTable, epsilon: float, source: RandomSource) -> float:
        """Release the shape."""

    def _highest_rung(self, epsilon: float) -> int:
        return math.ceil(highest_level(epsilon, self.n_rungs) / UNIT)


class PublishedLadder(Ladder):
    """With the rungs of the paper, on an even grid. Times are as they are clipped, as there."""

    corrects = False
    mechanism = "published ladder for the shape, Laplace noise on two sums for the scale"

    def draw_shape(self, table: CountTable, epsilon: float, source: RandomSource) -> float:
        """Draw a cell, and a shape uniformly in the cell."""
        rungs = PublishedRungs(table, self.max_shape, self._highest_rung(epsilon))
        cell = draw_cell(rungs, epsilon, source, self.n_rungs)
        # The first cell begins at 0, which is no shape.
        return self._within_range(rungs.shape_at(cell + source.independent.generator.random()))


class ExactLadder(Ladder):
    """With exact extremes on both sides of the paper's equation."""

    mechanism = "ladder with exact extremes for the shape, Laplace noise on two sums for the scale"

    def draw_shape(self, table: CountTable, epsilon: float, source: RandomSource) -> float:
        """Draw a cell, whose middle is released."""
        rungs = ExactRungs(table, self.max_shape, self._highest_rung(epsilon), self.left_censored)
        cell = draw_cell(rungs, epsilon, source, self.n_rungs)
        return shape_at(cell + 0.5, self.max_shape)


class TightLadder(NoisyScale):
    r"""The number of events and their mean log time first, then a ladder on what is left.

    On one side of the paper's equation stands :math:`1/p + S/N`, two sums. Noise on these costs
    half of what a ladder pays, whose epsilon is halved by the exponential mechanism, and the number
    of events is needed for the scale anyway. The ladder then has the other side alone.

    Where there are many events per follow-up time, this is only a first fit, and one Newton step
    follows, on the noisy sum of a score: one sum for both sides, whose range at the first fit is
    known.

    Sensitivities: 1 for the number of events and for the follow-up time in horizons; omega for the
    sum of log event times, counted from any point of their range; 1 rung; the range of the score;
    1 for a sum of powers. The share that each gets of epsilon may depend on what was released
    before.
    """

    mechanism = (
        "Laplace noise on the number of events, the follow-up time and the sum of log event times, "
        "ladder for the shape, Laplace noise on sums for a correction of it and for the scale"
    )

    def run_on_counts(self, table: CountTable, source: RandomSource) -> Estimate:
        """Release events, follow-up, log times, shape and powers, each with its share."""
        epsilon = self.spendable
        events_share, follow_up_share = self._first_shares()
        n_events = self._noisy_events(table, events_share * epsilon, source)
        # A sum of powers with exponent 1: the time that all records were followed, in horizons.
        follow_up = math.exp(self._noisy_powers(table, 1.0, follow_up_share * epsilon, source))
        shares = self._later_shares(n_events, n_events / follow_up)
        mean = self._noisy_mean(table, n_events, shares[0] * epsilon, source)
        rungs = ReleasedMeanRungs(table, mean, self.max_shape, self.left_censored)
        cell = draw_cell(rungs, shares[1] * epsilon, source, self.n_rungs)
        shape = shape_at(cell + 0.5, self.max_shape)
        if len(shares) > 2:
            log_scale = self._noisy_log_scale(table, shape, n_events, shares[2] * epsilon, source)
            first = Estimate(shape, log_scale, n_events)
            shape += self._noisy_correction(table, first, mean, shares[3] * epsilon, source)
            shape = self._within_range(shape)
        rest = (1.0 - events_share - follow_up_share - sum(shares)) * epsilon
        log_scale = self._noisy_log_scale(table, shape, n_events, rest, source)
        return Estimate(shape, log_scale, n_events)

    def _first_shares(self) -> tuple[float, float]:
        """Return the shares of the number of events and of the follow-up time."""
        if self.shape_fraction is None:
            return EVENTS_SHARE, FOLLOW_UP_SHARE
        rest = 1.0 - self.shape_fraction
        return EVENTS_PART * rest, FOLLOW_UP_PART * rest

    def _later_shares(self, n_events: int, rate: float) -> tuple[float, ...]:
        """Return shares for log times and ladder and, with a correction, first scale and score."""
        if n_events * self.epsilon >= CORRECTION_EVENTS and rate >= CORRECTION_RATE:
            shares: tuple[float, ...] = CORRECTION_SHARES
        else:
            # The sum of log times is hard to know where events are few, the ladder and the sum of
            # powers are where little of the follow-up is left.
            part = LADDER_PART * min(max(rate, RATE_RANGE[0]), RATE_RANGE[1]) ** RATE_POWER
            log_times_share = (1.0 - EVENTS_SHARE - FOLLOW_UP_SHARE) / (1.0 + 2.0 * part)
            shares = log_times_share, part * log_times_share
        if self.shape_fraction is None:
            return shares
        return tuple(self.shape_fraction * share / sum(shares) for share in shares)

    def _noisy_mean(
        self, table: CountTable, n_events: int, epsilon: float, source: RandomSource
    ) -> float:
        """Release the mean of log event times: their sum, in bins, moves by their range at most."""
        terms = event_bins(self.left_censored) - CENTER
        noisy = Sum(int(terms[0]), int(terms[-1])).release(
            int(table.events @ terms), epsilon, source
        )
        mean = ((CENTER + noisy / n_events) / N_BINS - 1.0) * self.omega
        least = -self.omega - before_offset(self.omega) * self.left_censored
        # At -1 / max_shape or above no shape would do.
        return min(max(mean, least), -1.0 / (STEEPEST * self.max_shape))

    def _noisy_correction(
        self,
        table: CountTable,
        first: Estimate,
        mean: float,
        epsilon: float,
        source: RandomSource,
    ) -> float:
        """Release one Newton step: the sum of scores moves by their range at most."""
        shape, log_scale, n_events = first.shape, first.log_scale, float(first.n_events or 1)
        # The share of people beyond the cap, e^-cap, is below the noise.
        cap = max(3.0, math.log(n_events * self.epsilon))
        rate, exact, weighted_mean = n_events / table.n_records, 1.0, None
        if self.left_censored:
            exact = exact_share(shape, log_scale, rate, self.omega)
            # Of score_with_before, at the first fit.
            before = math.exp(min(-shape * (self.omega + log_scale), 0.0)) / rate
            weighted_mean = mean + 1.0 / shape
            weighted_mean -= before * (1.0 / shape - before_offset(self.omega))
        scores = efficient_score(table.log_time, shape, log_scale, mean, cap, weighted_mean)
        largest = max(float(np.abs(score).max()) for score in scores)
        exponent = lattice_exponent(table.n_records, largest)
        event, censored = (to_lattice(score, -exponent) for score in scores)
        ends = min(event.min(), censored.min()), max(event.max(), censored.max())
        query = Sum(int(ends[0]), int(ends[1]), -exponent)
        total = int(table.events @ event + (table.records - table.events) @ censored)
        noisy = query.value(query.release(total, epsilon, source))
        # What the score falls by, per event, for a unit of shape.
        information = exact * shape**-2.0 + log_time_variance(shape, log_scale, rate, self.omega)
        low, high = LARGEST_CORRECTION
        return shape * min(max(noisy / (n_events * information * shape), low), high)
