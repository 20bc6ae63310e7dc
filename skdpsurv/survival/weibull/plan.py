r"""What Weibull fits ask of the records, who are given by counts over bins of log time.

A ladder draws the shape :math:`\rho`. For the scale, :math:`\lambda^\rho = \tau / \delta` with
:math:`\delta` the number of events and :math:`\tau = \sum u^\rho`, times u being in units of the
horizon. Neighbours: replace-one. Theorems and sensitivities: docs/proofs/ladder.

Plans of Weibull fits: without privacy, and by a tight ladder.

On one side of the paper's equation stands :math:`1/p + S/N`, two sums. Noise on
these costs half of what a ladder pays, whose epsilon is halved by the exponential mechanism, and
the number of events is needed for the scale anyway. The ladder then has the other side alone.

Where there are many events per follow-up time, this is only a first fit, and one Newton step
follows, on the noisy sum of a score: one sum for both sides, whose range at the first fit is known.

Sensitivities: 1 for the number of events and for the follow-up time in horizons; omega for the sum
of log event times, counted from any point of their range; 1 rung; the range of the score; 1 for a
sum of powers. The share that each gets of epsilon may depend on what was released before.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.dp import RandomSource, to_lattice
from skdpsurv.dp.plan import Distances, Known, Mechanism, NoisySum, Plan, Sequential, Total
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import IntArray
from skdpsurv.likelihoods.weibull import (
    BEFORE_PART,
    SHAPE_RANGE,
    efficient_score,
    maximum_likelihood,
    maximum_likelihood_with_before,
)
from skdpsurv.mechanisms.ladder import UNIT, Rungs, draw_cell, highest_level
from skdpsurv.mechanisms.sums import COUNT, Sum
from skdpsurv.survival.weibull.counts import (
    CENTER,
    LARGEST_CORRECTION,
    LARGEST_LOG_SCALE,
    N_BINS,
    STEEPEST,
    CountTable,
    LogTimes,
    Way,
    WeibullSetting,
    all_log_times,
    before_offset,
    count_table,
    event_bins,
    exact_share,
    lattice_exponent,
    log_time_grid,
    log_time_variance,
)
from skdpsurv.survival.weibull.ladder import ReleasedMeanRungs, shape_at

PROOF = reference("docs/proofs/ladder", "nguyen-hui-weibull", "nissim")

#: Of neighbours' ladders an audit looks at so many nodes.
NODES_LOOKED_AT = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class WeibullSum(NoisySum):
    """A sum over the records of a Weibull fit."""

    public: WeibullSetting

    theorem = PROOF

    def scales(self) -> tuple[float, ...]:
        """Return nothing: the rules of the parameters keep every number in range."""
        return ()


class Events(WeibullSum):
    """How many events there are."""

    name = "Laplace noise on the number of events"
    asked = COUNT  # each record is one event at most

    def ask(self, known: Known, records: CountTable) -> int:
        """Return the number."""
        return int(records.events.sum())

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return a number that is possible."""
        return {"n_events": min(max(noisy, 1), self.public.n_records)}


class Powers(WeibullSum):
    """The sum of times in horizons to a power, each of which is between 0 and 1.

    A record before the grid counts for half of the power of its beginning.
    """

    @abstractmethod
    def power(self, known: Known) -> float:
        """Return the power."""

    def query(self, known: Known) -> Sum:
        """Powers lie in [0, 1]."""
        return Sum.of_reals(0.0, 1.0, -lattice_exponent(self.public.n_records, 1.0))

    def ask(self, known: Known, records: CountTable) -> int:
        """Return the sum, of terms that are rounded bin by bin."""
        exact = np.exp(self.power(known) * records.log_time)
        if self.public.left_censored:
            exact[0] *= BEFORE_PART
        return int(records.records @ self.query(known).terms(exact))

    def log_total(self, known: Known, noisy: int) -> float:
        """Return the log of the sum, within what is possible."""
        most, exponent = math.log(self.public.n_records), self.query(known).exponent
        log_total = math.log(noisy) + exponent * math.log(2.0) if noisy > 0 else -math.inf
        return min(max(log_total, most - self.public.omega * self.power(known)), most)


class FollowUp(Powers):
    """The time that all records were followed, in horizons."""

    name = "Laplace noise on the follow-up time"

    def power(self, known: Known) -> float:
        """Return 1."""
        return 1.0

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return the time."""
        return {"follow_up": math.exp(self.log_total(known, noisy))}


class Scale(Powers):
    """The scale, at a shape that was released."""

    name = "Laplace noise on a sum of powers of times"

    def power(self, known: Known) -> float:
        """Return the shape."""
        return float(known["shape"])

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return the log scale, in units of the horizon."""
        log_scale = (self.log_total(known, noisy) - math.log(known["n_events"])) / known["shape"]
        return {"log_scale": min(log_scale, LARGEST_LOG_SCALE)}


class MeanLogTime(WeibullSum):
    """The mean of log event times: their sum, in bins, moves by their range at most."""

    name = "Laplace noise on the sum of log event times"

    @property
    def terms(self) -> IntArray:
        """What an event of each bin counts, from a point of the range."""
        return event_bins(self.public.left_censored) - CENTER

    def query(self, known: Known) -> Sum:
        """Who is no event counts 0, which is within the range."""
        return Sum(int(self.terms[0]), int(self.terms[-1]))

    def ask(self, known: Known, records: CountTable) -> int:
        """Return the sum."""
        return int(records.events @ self.terms)

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return a mean for which there are shapes."""
        omega = self.public.omega
        mean = ((CENTER + noisy / known["n_events"]) / N_BINS - 1.0) * omega
        least = -omega - before_offset(omega) * self.public.left_censored
        # At -1 / max_shape or above no shape would do.
        return {"mean_log_event": min(max(mean, least), -1.0 / (STEEPEST * self.public.max_shape))}


class Correction(WeibullSum):
    """One Newton step from a first fit, on a sum of scores, which moves by their range at most."""

    name = "Laplace noise on a score"

    def scores(self, known: Known) -> tuple[Sum, IntArray, IntArray]:
        """Return what is asked, and the part of each bin with an event and without."""
        public = self.public
        shape, log_scale, mean = known["shape"], known["log_scale"], known["mean_log_event"]
        weighted_mean = None
        if public.left_censored:
            # Of score_with_before, at the first fit.
            before = math.exp(min(-shape * (public.omega + log_scale), 0.0)) / self._rate(known)
            weighted_mean = mean + 1.0 / shape
            weighted_mean -= before * (1.0 / shape - before_offset(public.omega))
        grid, cap = log_time_grid(public.omega), self._cap(known["n_events"])
        scores = efficient_score(grid, shape, log_scale, mean, cap, weighted_mean)
        largest = max(float(np.abs(score).max()) for score in scores)
        exponent = lattice_exponent(public.n_records, largest)
        event, censored = (to_lattice(score, -exponent) for score in scores)
        ends = min(event.min(), censored.min()), max(event.max(), censored.max())
        return Sum(int(ends[0]), int(ends[1]), -exponent), event, censored

    def query(self, known: Known) -> Sum:
        """Scores lie in their range, which the first fit decides."""
        return self.scores(known)[0]

    def query_range(self) -> Sequence[Sum]:
        """Return the widest: no log time is further from a mean than omega."""
        public = self.public
        widest = (1.0 + self._cap(public.n_records)) * public.omega + before_offset(public.omega)
        widest += 1.0 / (SHAPE_RANGE * public.max_shape)
        return [Sum.of_reals(-widest, widest, -lattice_exponent(public.n_records, widest))]

    def ask(self, known: Known, records: CountTable) -> int:
        """Return the sum."""
        _, event, censored = self.scores(known)
        return int(records.events @ event + (records.records - records.events) @ censored)

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return the corrected shape."""
        shape, omega = known["shape"], self.public.omega
        first = shape, known["log_scale"], self._rate(known), omega
        exact = exact_share(*first) if self.public.left_censored else 1.0
        # What the score falls by, per event, for a unit of shape.
        information = exact * shape**-2.0 + log_time_variance(*first)
        step = self.query(known).value(noisy) / (float(known["n_events"]) * information * shape)
        low, high = LARGEST_CORRECTION
        return {"shape": self.public.within_range(shape + shape * min(max(step, low), high))}

    def _rate(self, known: Known) -> float:
        return float(known["n_events"]) / self.public.n_records

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

    @abstractmethod
    def rungs(self, known: Known, records: CountTable) -> Rungs:
        """Return how many records must change for shapes at most, and at least, at each node."""

    @property
    def highest_rung(self) -> int:
        """Where the ladder ends."""
        return math.ceil(highest_level(self.price, self.public.way.n_rungs) / UNIT)

    def shape_at(self, node: float) -> float:
        """Return the shape at a node."""
        return shape_at(node, self.public.max_shape)

    def place(self, source: RandomSource) -> float:
        """Return where in its cell the shape is: no record has a part in that."""
        return 0.5

    def run(self, known: Known, records: CountTable, source: RandomSource) -> dict[str, Any]:
        """Draw a cell, and return the shape there."""
        rungs = self.rungs(known, records)
        cell = draw_cell(rungs, self.price, source, self.public.way.n_rungs)
        return {"shape": self.public.within_range(self.shape_at(cell + self.place(source)))}

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far rungs move, in records."""
        first, second = self.rungs(known, one), self.rungs(known, other)
        top, n = highest_level(self.price, self.public.way.n_rungs), first.n_cells
        found = (
            abs(min(a(node), top) - min(b(node), top))
            for node in range(1, n, max(1, n // NODES_LOOKED_AT))
            for a, b in ((first.down_to, second.down_to), (first.up_to, second.up_to))
        )
        return [("rungs", max(found) / UNIT, 1.0)]


class ReleasedMeanLadder(Ladder):
    """On what is left once the mean of log event times was released."""

    def rungs(self, known: Known, records: CountTable) -> ReleasedMeanRungs:
        """Return rungs at that mean."""
        public, mean = self.public, known["mean_log_event"]
        return ReleasedMeanRungs(records, mean, public.max_shape, public.left_censored)


@dataclass(frozen=True, eq=False, kw_only=True)
class MaximumLikelihood(Mechanism):
    """The fit without privacy, whatever omega is: but for times of 0, which have no logarithm."""

    public: WeibullSetting

    name = "none: maximum likelihood"
    proof = ""
    price = math.inf

    def run(
        self, known: Known, records: CountTable | LogTimes, source: RandomSource
    ) -> dict[str, Any]:
        """Fit the times, or their bins."""
        omega, max_shape = self.public.omega, self.public.max_shape
        x, events, weights, n_before = records.weighted(self.public.left_censored)
        full = weights > 0
        if full.any():
            x, events, weights = x[full], events[full], weights[full]
        else:  # nothing but events before: their least time, as if it was theirs
            x, events, weights = np.array([-omega]), np.array([n_before]), np.array([n_before])
            n_before = 0
        if n_before > 0:
            shape, log_scale = maximum_likelihood_with_before(
                x, events, n_before, omega, max_shape, weights
            )
        else:
            fits = maximum_likelihood(x, events, max_shape, weights=weights)
            shape, log_scale = fits[0][0], fits[1][0]
        return {
            "shape": shape,
            "log_scale": min(max(log_scale, -LARGEST_LOG_SCALE), LARGEST_LOG_SCALE),
            "n_events": float(events.sum()) + n_before,
        }


#: What follows the number of events and the follow-up time in a tight ladder, without a correction
#: and with one.
LATER: tuple[Any, ...] = (MeanLogTime, ReleasedMeanLadder, Scale)
CORRECTED = (*LATER, Correction, Scale)


def tight_plan(public: WeibullSetting) -> Plan:
    """Return the plan of the number of events, the follow-up time, and what these decide."""

    def later(n_events: int, rate: float) -> Sequential:
        shares = public.later_shares(n_events, rate)
        rest = 1.0 - public.first_shares[0] - public.first_shares[1] - sum(shares)
        kinds = CORRECTED if len(shares) > 2 else LATER
        return Sequential(priced(public, kinds, (*shares, rest)))

    def choose(known: Known) -> Sequential:
        return later(known["n_events"], known["n_events"] / known["follow_up"])

    first = priced(public, (Events, FollowUp), public.first_shares)
    # At most a correction, if there can be events enough; else from no events to nothing but these.
    possible = later(public.n_records, math.inf), later(0, 0.0), later(0, math.inf)
    total = remaining_budget(public.epsilon, *(each.price for each in first))
    return public.plan_of(
        Sequential((*first, Total(total, choose, possible))),
        "Laplace noise on the number of events, the follow-up time and the sum of log event times, "
        "ladder for the shape, Laplace noise on sums for a correction of it and for the scale",
    )


def priced(public: WeibullSetting, kinds: Sequence[Any], shares: Sequence[float]) -> Any:
    """Return measurements, each at its share of epsilon."""
    pairs = zip(kinds, shares, strict=True)
    return tuple(kind(price=share * public.spendable, public=public) for kind, share in pairs)


def ladder_scales(public: WeibullSetting) -> tuple[float, float]:
    """Return the least and the largest log scale that ladders release."""
    return -public.omega, LARGEST_LOG_SCALE


TIGHT = Way(tight_plan, count_table, ladder_scales)
MAXIMUM_LIKELIHOOD = Way(
    lambda public: public.plan_of(MaximumLikelihood(public=public), ""),
    partial(all_log_times, exact=True),
    lambda public: (-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE),
)
