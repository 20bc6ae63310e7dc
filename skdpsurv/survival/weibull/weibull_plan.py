r"""Settings and plans of Weibull fits, and their measurements of counts over bins of log time.

A ladder draws the shape :math:`\rho`. The scale follows from :math:`\lambda^\rho = \tau / \delta`
with :math:`\delta` the number of events and :math:`\tau = \sum u^\rho`, times u in horizons. In the
tight ladder two noisy sums give one side of the paper's equation, :math:`1/p + S/N`; the ladder has
the other side. With many events per follow-up time, one Newton step on a noisy score follows.

Neighbours: replace-one. Sensitivities: 1 for the number of events, for the follow-up time in
horizons and for a sum of powers; omega for the sum of log event times, from any point of their
range; 1 level; the range of the score. Theorems: docs/proofs/ladder.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.dp.noise import RandomSource, to_lattice
from skdpsurv.dp.plan import (
    AdaptiveChoice,
    Context,
    Distances,
    Mechanism,
    Node,
    NoisySum,
    Plan,
    Sequential,
)
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.dp.references import WORDS, reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods import weibull as likelihood
from skdpsurv.mechanisms.ladder import UNIT, LadderLevels, draw_cell, highest_level
from skdpsurv.mechanisms.sums import COUNT, Sum
from skdpsurv.survival.weibull import log_time_counts
from skdpsurv.survival.weibull.tuning import TUNING, TUNINGS, Tuning

#: Origin of log event times, in bins: near their mean, against noise in the number of events.
CENTER = 3 * log_time_counts.N_BINS // 4
#: Share of epsilon that pays for rounding of shares and scales.
ROUNDING_SHARE = 2.0**-40
#: Largest log scale, in horizons.
LARGEST_LOG_SCALE = 300.0
#: Public input of plans that take events before exp(-omega) as left-censored.
LEFT_CENSORED = "left_censored"
PROOF = reference("docs/proofs/ladder", "nguyen-hui-weibull", "nissim")
ASSUMED = tuple(WORDS["assumptions"]["curve"])
#: Number of nodes of the grid at which an audit compares ladders of neighbours.
NODES_LOOKED_AT = 256


@dataclass(frozen=True)
class WeibullSetting:
    """Public numbers of a fit, and its way.

    ``shape_fraction`` None is the plan's own. With ``left_censored``, events before exp(-omega) are
    left-censored, if the plan can do that; in releases of version 1 they were at exp(-omega).
    """

    way: Way
    n_records: int
    epsilon: float
    max_time: float
    omega: float
    max_shape: float
    shape_fraction: float | None = None
    left_censored: bool = True
    tuning: Tuning = TUNINGS[TUNING]

    @property
    def spendable(self) -> float:
        return self.epsilon * (1.0 - ROUNDING_SHARE)

    @property
    def first_shares(self) -> tuple[float, float]:
        """Shares of the number of events and of the follow-up time, in the tight ladder."""
        if self.shape_fraction is None:
            return self.tuning.events_share, self.tuning.follow_up_share
        rest = 1.0 - self.shape_fraction
        return self.tuning.events_part * rest, self.tuning.follow_up_part * rest

    def later_shares(self, n_events: int, rate: float) -> tuple[float, ...]:
        """Return shares for log times and ladder and, with a correction, first scale and score."""
        tuned = self.tuning
        if n_events * self.epsilon >= tuned.correction_events and rate >= tuned.correction_rate:
            shares = tuned.correction_shares
        else:
            low, high = tuned.rate_range
            part = tuned.ladder_part * min(max(rate, low), high) ** tuned.rate_power
            rest = 1.0 - tuned.events_share - tuned.follow_up_share
            log_times_share = rest / (1.0 + 2.0 * part)
            shares = log_times_share, part * log_times_share
        if self.shape_fraction is None:
            return shares
        return tuple(self.shape_fraction * share / sum(shares) for share in shares)

    def within_range(self, shape: float) -> float:
        return min(max(shape, likelihood.SHAPE_RANGE * self.max_shape), self.max_shape)

    @property
    def bounds(self) -> FloatArray:
        """Least and largest log shape, and log scale in units of the horizon, of an estimate."""
        log_max = math.log(self.max_shape)
        return np.array(
            [(log_max + math.log(likelihood.SHAPE_RANGE), log_max), self.way.log_scales(self)]
        )

    def stated(self) -> dict[str, Any]:
        return {
            "max_time": self.max_time,
            "omega": self.omega,
            "max_shape": self.max_shape,
            "shape_fraction": "auto" if self.shape_fraction is None else self.shape_fraction,
        }

    def plan_of(self, tree: Node, words: str) -> Plan:
        inputs = {"n_records": self.n_records, **self.stated()}
        if self.way.n_levels is not None:
            inputs["n_levels"] = self.way.n_levels
        if self.left_censored:
            inputs[LEFT_CENSORED] = True
        return Plan(tree, self.epsilon, inputs=inputs, assumed=ASSUMED, words=words)


def ladder_scales(public: WeibullSetting) -> tuple[float, float]:
    return -public.omega, LARGEST_LOG_SCALE


class Way(NamedTuple):
    """A way to fit: its plan, its reading of records, the range of log scales, a ladder's height.

    The plan releases ``shape``, ``log_scale`` in units of the horizon and, but for baselines,
    ``n_events``. ``n_levels`` None is the level from which weights are negligible.
    """

    plan: Callable[[WeibullSetting], Plan]
    read: Callable[[log_time_counts.Targets, float, float], log_time_counts.Records] = (
        log_time_counts.count_table
    )
    log_scales: Callable[[WeibullSetting], tuple[float, float]] = ladder_scales
    n_levels: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class WeibullSum(NoisySum):
    """A sum over the records of a Weibull fit."""

    public: WeibullSetting

    theorem = PROOF

    def scales(self) -> tuple[float, ...]:
        return ()  # the rules of the parameters keep every number in range


class Events(WeibullSum):
    """The noisy number of events."""

    name = "Laplace noise on the number of events"
    query = COUNT  # each record is one event at most
    gives = "n_events"

    def exact_answer(self, context: Context, records: log_time_counts.CountTable) -> int:
        return int(records.events.sum())

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        return {"n_events": min(max(noisy, 1), self.public.n_records)}


class Powers(WeibullSum):
    """Sum of times in horizons to a power in [0, 1]; times before the grid count for half."""

    @abstractmethod
    def power(self, context: Context) -> float:
        """Return the exponent of the times that are added up."""

    def query_for(self, context: Context) -> Sum:
        return Sum.of_reals(0.0, 1.0, -log_time_counts.lattice_exponent(self.public.n_records, 1.0))

    def exact_answer(self, context: Context, records: log_time_counts.CountTable) -> int:
        exact = np.exp(self.power(context) * records.log_time)
        if self.public.left_censored:
            exact[0] *= likelihood.BEFORE_PART
        return int(records.records @ self.query_for(context).terms(exact))

    def log_total(self, context: Context, noisy: int) -> float:
        """Return the log of the sum, clipped to its range."""
        most, exponent = math.log(self.public.n_records), self.query_for(context).exponent
        log_total = math.log(noisy) + exponent * math.log(2.0) if noisy > 0 else -math.inf
        return min(max(log_total, most - self.public.omega * self.power(context)), most)


class FollowUp(Powers):
    """The noisy follow-up time of all records, in horizons."""

    name = "Laplace noise on the follow-up time"

    def power(self, context: Context) -> float:
        return 1.0

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        return {"follow_up": math.exp(self.log_total(context, noisy))}


class Scale(Powers):
    """The log scale in units of the horizon, at a released shape."""

    name = "Laplace noise on a sum of powers of times"

    def power(self, context: Context) -> float:
        return float(context["shape"])

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        log_scale = (self.log_total(context, noisy) - math.log(context["n_events"])) / context[
            "shape"
        ]
        return {"log_scale": min(log_scale, LARGEST_LOG_SCALE)}


class MeanLogTime(WeibullSum):
    """The mean of log event times; their sum, in bins, moves by at most their range."""

    name = "Laplace noise on the sum of log event times"

    @property
    def terms(self) -> IntArray:
        return log_time_counts.event_bins(self.public.left_censored) - CENTER

    def query_for(self, context: Context) -> Sum:
        """Return the sum; a censored record counts 0, which is within the range."""
        return Sum(int(self.terms[0]), int(self.terms[-1]))

    def exact_answer(self, context: Context, records: log_time_counts.CountTable) -> int:
        return int(records.events @ self.terms)

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        """Return a mean for which there are shapes: below -1 / max_shape."""
        omega = self.public.omega
        mean = ((CENTER + noisy / context["n_events"]) / log_time_counts.N_BINS - 1.0) * omega
        least = -omega - log_time_counts.before_offset(omega) * self.public.left_censored
        steepest = self.public.tuning.steepest * self.public.max_shape
        return {"mean_log_event": min(max(mean, least), -1.0 / steepest)}


class Correction(WeibullSum):
    """One Newton step from a first fit, on a sum of scores, which moves by at most their range."""

    name = "Laplace noise on a score"

    def scores(self, context: Context) -> tuple[Sum, IntArray, IntArray]:
        """Return the query, and the term of each bin with an event and without."""
        public = self.public
        shape, log_scale, mean = context["shape"], context["log_scale"], context["mean_log_event"]
        weighted_mean = None
        if public.left_censored:
            # As in score_with_before, at the first fit.
            before = math.exp(min(-shape * (public.omega + log_scale), 0.0)) / self._rate(context)
            weighted_mean = mean + 1.0 / shape
            weighted_mean -= before * (1.0 / shape - log_time_counts.before_offset(public.omega))
        grid, cap = log_time_counts.log_time_grid(public.omega), self._cap(context["n_events"])
        scores = likelihood.efficient_score(grid, shape, log_scale, mean, cap, weighted_mean)
        exponent = log_time_counts.lattice_exponent(
            public.n_records, max(float(np.abs(s).max()) for s in scores)
        )
        event, censored = (to_lattice(score, -exponent) for score in scores)
        ends = min(event.min(), censored.min()), max(event.max(), censored.max())
        return Sum(int(ends[0]), int(ends[1]), -exponent), event, censored

    def query_for(self, context: Context) -> Sum:
        return self.scores(context)[0]

    def query_range(self) -> Sequence[Sum]:
        public = self.public  # no log time is further from a mean than omega
        widest = (1.0 + self._cap(public.n_records)) * public.omega + log_time_counts.before_offset(
            public.omega
        )
        widest += 1.0 / (likelihood.SHAPE_RANGE * public.max_shape)
        return [
            Sum.of_reals(
                -widest, widest, -log_time_counts.lattice_exponent(public.n_records, widest)
            )
        ]

    def exact_answer(self, context: Context, records: log_time_counts.CountTable) -> int:
        _, event, censored = self.scores(context)
        return int(records.events @ event + (records.records - records.events) @ censored)

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        shape, omega = context["shape"], self.public.omega
        first = shape, context["log_scale"], self._rate(context), omega
        exact = 1.0
        if self.public.left_censored:
            events, _ = log_time_counts.bin_probabilities(*first)
            exact = 1.0 - float(events[0]) / (float(events.sum()) or 1.0)
        # The expected fall of the score, per event and unit of shape.
        information = exact * shape**-2.0 + log_time_counts.log_time_variance(*first)
        step = self.query_for(context).value(noisy) / (
            float(context["n_events"]) * information * shape
        )
        low, high = self.public.tuning.largest_correction
        return {"shape": self.public.within_range(shape + shape * min(max(step, low), high))}

    def _rate(self, context: Context) -> float:
        return float(context["n_events"]) / self.public.n_records

    def _cap(self, n_events: float) -> float:
        # The share of people beyond the cap, e^-cap, is below the noise.
        return max(3.0, math.log(float(n_events) * self.public.epsilon))


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder(Mechanism):
    """The shape, drawn among cells of a grid, near ones first."""

    price: float
    public: WeibullSetting

    name = "ladder"
    proof = PROOF
    law = "ladder"

    @abstractmethod
    def levels(self, context: Context, records: log_time_counts.CountTable) -> LadderLevels:
        """Return how many records must change for a shape at each node."""

    @property
    def top(self) -> int:
        """Height of the ladder, in records."""
        return math.ceil(highest_level(self.price, self.public.way.n_levels) / UNIT)

    def drawn(self, context: Context | None) -> dict[str, Any]:
        """Return law, epsilon and height of the ladder."""
        return {"law": self.law, "epsilon": self.price, "height": self.top}

    def shape_at(self, node: float) -> float:
        return log_time_counts.shape_at(node, self.public.max_shape)

    def place(self, source: RandomSource) -> float:
        """Return the shape's position in its cell, whatever the records."""
        return 0.5

    def run(
        self, context: Context, records: log_time_counts.CountTable, source: RandomSource
    ) -> dict[str, Any]:
        levels = self.levels(context, records)
        cell = draw_cell(levels, self.price, source, self.public.way.n_levels)
        return {"shape": self.public.within_range(self.shape_at(cell + self.place(source)))}

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return the largest difference of levels, in records."""
        first, second = self.levels(context, one), self.levels(context, other)
        top, n = highest_level(self.price, self.public.way.n_levels), first.n_cells
        gaps = (
            abs(min(a(node), top) - min(b(node), top))
            for node in range(1, n, max(1, n // NODES_LOOKED_AT))
            for a, b in ((first.down_to, second.down_to), (first.up_to, second.up_to))
        )
        return [("levels", max(gaps) / UNIT, 1.0)]


class ReleasedMeanLadder(Ladder):
    """A ladder given a released mean of log event times."""

    def levels(
        self, context: Context, records: log_time_counts.CountTable
    ) -> log_time_counts.ReleasedMeanLevels:
        public, mean = self.public, context["mean_log_event"]
        return log_time_counts.ReleasedMeanLevels(
            records, mean, public.max_shape, public.left_censored
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class WeibullMaximum(Mechanism):
    """The fit without privacy, whatever omega is, but for times of 0, which have no logarithm."""

    public: WeibullSetting

    name = "none: maximum likelihood"
    law = "none"
    proof = ""
    price = math.inf

    def run(
        self, context: Context, records: log_time_counts.Records, source: RandomSource
    ) -> dict[str, Any]:
        omega, max_shape = self.public.omega, self.public.max_shape
        x, events, weights, n_before = records.weighted(self.public.left_censored)
        full = weights > 0
        if full.any():
            x, events, weights = x[full], events[full], weights[full]
        else:  # nothing but events before the least time: exact at it
            x, events, weights = np.array([-omega]), np.array([n_before]), np.array([n_before])
            n_before = 0
        if n_before > 0:
            shape, log_scale = likelihood.maximum_likelihood_with_before(
                x, events, n_before, omega, max_shape, weights
            )
        else:
            fits = likelihood.maximum_likelihood(x, events, max_shape, weights=weights)
            shape, log_scale = fits[0][0], fits[1][0]
        return {
            "shape": shape,
            "log_scale": min(max(log_scale, -LARGEST_LOG_SCALE), LARGEST_LOG_SCALE),
            "n_events": float(events.sum()) + n_before,
        }


#: Kinds of measurements after the first two; without a correction, the first three of them.
LATER: tuple[Any, ...] = (MeanLogTime, ReleasedMeanLadder, Scale, Correction, Scale)


def tight_plan(public: WeibullSetting) -> Plan:
    """Return the plan of the number of events, the follow-up time, and what these decide."""

    def later(n_events: int, rate: float) -> Sequential:
        shares = public.later_shares(n_events, rate)
        rest = 1.0 - public.first_shares[0] - public.first_shares[1] - sum(shares)
        return Sequential(priced(public, LATER[: len(shares) + 1], (*shares, rest)))

    first = priced(public, (Events, FollowUp), public.first_shares)
    # A correction, if there can be events enough; without one, the extremes of the rate.
    possible = later(public.n_records, math.inf), later(0, 0.0), later(0, math.inf)
    total = remaining_budget(public.epsilon, *(each.price for each in first))
    rest = AdaptiveChoice(
        total,
        lambda found: later(found["n_events"], found["n_events"] / found["follow_up"]),
        possible,
    )
    return public.plan_of(
        Sequential((*first, rest)),
        "Laplace noise on the number of events, the follow-up time and the sum of log event times, "
        "ladder for the shape, Laplace noise on sums for a correction of it and for the scale",
    )


def priced(public: WeibullSetting, kinds: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return measurements of these kinds, each at its share of epsilon."""
    pairs = zip(kinds, shares, strict=True)
    return tuple(kind(price=share * public.spendable, public=public) for kind, share in pairs)


TIGHT = Way(tight_plan)
MAXIMUM_LIKELIHOOD = Way(
    lambda public: public.plan_of(WeibullMaximum(public=public), ""),
    partial(log_time_counts.all_log_times, exact=True),
    lambda public: (-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE),
)
