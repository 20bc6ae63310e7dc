r"""Intervals for a released Weibull fit, from the release alone: they cost no budget.

Records are simulated from the released distribution, as many as there were, and the same plan is
run on them, noise included. How its results scatter around the released values says how these
scatter around the true ones: by sampling and by privacy noise together.

How records were censored is not known beyond how many were. The simulation censors at the horizon
and, if that leaves more events than were released, before it: at a time with distribution function
:math:`c^\theta` on (0, 1), which is entry at random times for theta = 1, and theta such that the
expected number of events is the released one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdpsurv.privacy import random_source
from skdpsurv.survival.weibull_counts import CountTable, log_time_grid
from skdpsurv.survival.weibull_plans import Estimate, Plan

FloatArray = NDArray[np.float64]

#: Powers theta that are looked at, from nearly all censored at once to nearly none before the end.
CENSORING_POWERS = np.geomspace(1e-3, 1e3, 121)
#: Estimates nearer than this to a bound, on the log scale, count as being at it.
AT_BOUND = 1e-3


def plausible_estimates(plan: Plan, released: Estimate, n_resamples: int) -> FloatArray:
    """Draw shapes and log scales that could have led to the released ones.

    Parameters
    ----------
    plan : Plan
        That the release was made by.
    released : Estimate
    n_resamples : int

    Returns
    -------
    ndarray of shape (n_resamples, 2)
        Log shape and log scale in units of the horizon: released values less the simulated errors.
        The same for the same release, as its randomness has a fixed seed.
    """
    source = random_source(0, purpose="interval")
    probabilities = _cell_probabilities(plan, released)
    center = np.array([math.log(released.shape), released.log_scale])
    draws = np.empty((n_resamples, 2))
    for draw in draws:
        cells = source.generator.multinomial(plan.n_records, probabilities)
        events, censored = cells.reshape(2, -1)
        simulated = plan.run_on_counts(CountTable(plan.omega, events + censored, events), source)
        draw[:] = math.log(simulated.shape), simulated.log_scale
    low, high = plan.bounds[:, 0], plan.bounds[:, 1]
    plausible = np.clip(2.0 * center - draws, low, high)
    # What an estimate at its bound would have been without the bound is not known.
    plausible = np.where(draws <= low + AT_BOUND, high, plausible)
    return np.asarray(np.where(draws >= high - AT_BOUND, low, plausible))


def _cell_probabilities(plan: Plan, released: Estimate) -> FloatArray:
    """Return the probabilities of an event, and of censoring, in each bin of log time."""
    grid = log_time_grid(plan.omega)
    edges = (grid[1:] + grid[:-1]) / 2.0
    with np.errstate(over="ignore", under="ignore"):
        survival = np.exp(-np.exp(released.shape * (edges - released.log_scale)))
        last = math.exp(-math.exp(min(-released.shape * released.log_scale, 700.0)))
    survival = np.concatenate([[1.0], survival, [last]])
    dies = -np.diff(survival)
    events, uncensored = dies, np.ones(grid.size)
    if released.n_events is not None:
        wanted = released.n_events / plan.n_records
        if wanted < dies.sum():
            with np.errstate(under="ignore"):
                at_risk = 1.0 - np.exp(CENSORING_POWERS[:, None] * grid)
            theta = int(np.searchsorted(at_risk @ dies, wanted))
            uncensored = at_risk[min(theta, len(at_risk) - 1)]
    events = dies * uncensored
    # Who is not seen to die is censored where the censoring time falls, if still alive then.
    leaves = -np.diff(np.append(uncensored, 0.0)) * survival[1:]
    leaves[0] += 1.0 - uncensored[0]
    cells = np.maximum(np.concatenate([events, leaves]), 0.0)
    return np.asarray(cells / cells.sum())
