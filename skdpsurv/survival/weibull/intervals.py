r"""Intervals for a released Weibull fit, from the release alone: they cost no budget.

Records are simulated from distributions that may be the true one, as many as there were, and the
same plan is run on them, noise included. How its results scatter around the simulated truths says
how the released values scatter around the true ones: by sampling and by privacy noise together.

Not the released distribution alone: the errors of a large shape are larger, and mostly below it.
A shape that came out too low has errors that are too short, and intervals that end before the
truth: they covered 78 to 88 % instead of 95 %. With few events the same goes for their number.

So estimates are simulated at many truths :math:`\theta`, and their law is taken to be

.. math:: t = \theta + m + b\,(\theta - t_0) + z\,(1 + s\,(\theta - t_0)) ,

:math:`t_0` being the estimate at hand and z a deviation of unknown law, the same everywhere. Each
simulated z then gives the truth at which it would have led to :math:`t_0`,

.. math:: \theta = t_0 - \frac{m + z}{1 + b + s z} .

Quantiles of these are the ends of a test inverted: truths for which :math:`t_0` is not extreme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from skdpsurv.dp import RandomSource, random_source
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.weibull.counts import (
    CountTable,
    WeibullSetting,
    bin_probabilities,
    mean_log_time,
)

#: Errors further from their median than so many median deviations do not move slopes any more.
FAR = 6.0
#: Standard errors by which the slope of the spread is taken to the side that makes more plausible.
CAUTION = 1.0
#: How far the law of errors is extrapolated: bounds of the spread there, in parts of that at hand,
SPREADS = (0.4, 2.5)
#: and of the denominator above.
DENOMINATORS = (0.35, 1.2)


def plausible_truths(observed: float, truths: FloatArray, estimates: FloatArray) -> FloatArray:
    """Return, for each simulated error, the truth at which it would have led to ``observed``."""
    slope, growth, error = _slopes(truths, estimates - truths)
    distance = truths - observed
    errors = estimates - truths - slope * distance
    median = np.median(errors)
    deviation = (errors - median) / np.clip(1.0 + growth * distance, *SPREADS)
    steepness = slope + growth * deviation - CAUTION * error * np.abs(deviation)
    return np.asarray(observed - (median + deviation) / np.clip(1.0 + steepness, *DENOMINATORS))


def _slopes(truths: FloatArray, errors: FloatArray) -> tuple[float, float, float]:
    """Return what errors, and their spread in parts of it, rise by, and the latter's error."""
    step = truths - truths.mean()
    squares = float(step @ step)
    median = np.median(errors)
    reach = FAR * np.median(np.abs(errors - median))
    if squares <= 1e-12 or reach <= 0.0:
        return 0.0, 0.0, 0.0
    near = np.clip(errors, median - reach, median + reach)
    slope = float(step @ near) / squares
    rest = near - slope * step
    spread = np.abs(rest - np.median(rest))
    size = float(spread.mean())
    growth = float(step @ spread) / squares / size
    error = float(np.std(spread - growth * size * step)) / size / math.sqrt(squares)
    return slope, growth, error


#: Estimates nearer than this to a bound, on the log scale, count as being at it.
AT_BOUND = 1e-3
#: Part of the simulated fits that is of the released distribution, and how many of them at least.
FIRST_PART, FIRST = 4, 10
#: The others are of distributions that are so many times as far from it as errors are.
REACH = 2.0


class Estimate(NamedTuple):
    """Shape; log scale in units of the horizon; number of events, where that is released."""

    shape: float
    log_scale: float
    n_events: float | None = None


@dataclass(frozen=True)
class _Simulation:
    """Fits of simulated records; log shapes and log scales are rows of two."""

    public: WeibullSetting
    released: Estimate
    source: RandomSource

    @cached_property
    def plan(self) -> Plan:
        """What is run."""
        return self.public.plan()

    @property
    def rate(self) -> float | None:
        """Released share of records that are events."""
        n_events = self.released.n_events
        return None if n_events is None else n_events / self.public.n_records

    @property
    def center(self) -> FloatArray:
        """What was released."""
        return np.array([math.log(self.released.shape), self.released.log_scale])

    def fits(self, truth: FloatArray, rate: float | None, n_fits: int) -> FloatArray:
        """Return estimates for records of one distribution."""
        public, found = self.public, np.empty((n_fits, 2))
        shape, log_scale = math.exp(truth[0]), float(truth[1])
        probabilities = np.concatenate(bin_probabilities(shape, log_scale, rate, public.omega))
        for each in found:
            cells = self.source.generator.multinomial(public.n_records, probabilities)
            events, censored = cells.reshape(2, -1)
            table = CountTable(public.omega, events + censored, events)
            known = self.plan.run(table, self.source)
            each[:] = math.log(known["shape"]), known["log_scale"]
        return found

    def rate_at(self, truth: FloatArray) -> float | None:
        """Return the share of events if as many of them are censored as in what was released."""
        if self.rate is None:
            return None
        uncensored = self.rate / max(_event_share(self.center), 1e-300)
        return uncensored * _event_share(truth) if uncensored < 1.0 else None

    def others(self, found: FloatArray, n_truths: int) -> FloatArray:
        """Draw truths around what the fits of the released distribution say of the true one."""
        shape = self.released.shape
        middle = mean_log_time(shape, self.released.log_scale, self.rate, self.public.omega)

        def turned(estimates: FloatArray) -> FloatArray:
            log_shape, log_scale = estimates.T
            return np.column_stack([log_shape, np.exp(log_shape) * (middle - log_scale)])

        errors = turned(found) - turned(self.center[None])
        median = np.median(errors, axis=0)
        generator = self.source.generator
        picked = generator.integers(0, len(found), (n_truths, 2))
        sign = generator.choice([-REACH, REACH], (n_truths, 2))
        away = sign * np.take_along_axis(errors - median, picked, axis=0)
        log_shape, log_hazard = (turned(self.center[None]) - median + away).T
        (low, high), scales = self.public.bounds
        log_shape = np.clip(log_shape, low, high)
        log_scale = np.clip(middle - log_hazard / np.exp(log_shape), *scales)
        return np.column_stack([log_shape, log_scale])


def _event_share(truth: FloatArray) -> float:
    """Return the share of events before the horizon, if nobody is censored."""
    return -math.expm1(-math.exp(min(-math.exp(truth[0]) * truth[1], 700.0)))


@lru_cache(maxsize=8)
def plausible_estimates(public: WeibullSetting, released: Estimate, n_resamples: int) -> FloatArray:
    """Draw shapes and log scales that could have led to the released ones."""
    simulation = _Simulation(public, released, random_source(0, purpose="interval"))
    center = simulation.center
    n_first = max(n_resamples // FIRST_PART, min(n_resamples, FIRST))
    first = simulation.fits(center, simulation.rate, n_first)
    others = simulation.others(first, n_resamples - n_first)
    found = [simulation.fits(truth, simulation.rate_at(truth), 1) for truth in others]
    truths = np.concatenate([np.tile(center, (n_first, 1)), others])
    draws = np.concatenate([first, *found])

    low, high = public.bounds.T
    plausible = center - (draws - truths)
    plausible[:, 0] = plausible_truths(float(center[0]), truths[:, 0], draws[:, 0])
    plausible = np.clip(plausible, low, high)
    # What an estimate at its bound would have been without the bound is not known. A scale at its
    # bound that comes of a shape far off says nothing of this one.
    unknown = np.ones((n_resamples, 2), dtype=bool)
    unknown[n_first:, 1] = False
    plausible = np.where(unknown & (draws <= low + AT_BOUND), high, plausible)
    plausible = np.where(unknown & (draws >= high - AT_BOUND), low, plausible)
    plausible.setflags(write=False)
    return plausible
