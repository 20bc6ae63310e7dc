"""Intervals for a released Weibull fit, from the release alone: they cost no budget.

Records are simulated from the released distribution, as many as there were, and the same plan is
run on them, noise included. How its results scatter around the released values says how these
scatter around the true ones: by sampling and by privacy noise together.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdpsurv.privacy import random_source
from skdpsurv.survival.weibull_counts import CountTable
from skdpsurv.survival.weibull_model import bin_probabilities
from skdpsurv.survival.weibull_plans import Estimate, WeibullPlan
from skdpsurv.types import FloatArray

#: Estimates nearer than this to a bound, on the log scale, count as being at it.
AT_BOUND = 1e-3


@lru_cache(maxsize=8)
def plausible_estimates(plan: WeibullPlan, released: Estimate, n_resamples: int) -> FloatArray:
    """Draw shapes and log scales that could have led to the released ones.

    Parameters
    ----------
    plan : WeibullPlan
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
    rate = None if released.n_events is None else released.n_events / plan.n_records
    probabilities = np.concatenate(
        bin_probabilities(released.shape, released.log_scale, rate, plan.omega)
    )
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
    plausible = np.where(draws >= high - AT_BOUND, low, plausible)
    plausible.setflags(write=False)
    return plausible
