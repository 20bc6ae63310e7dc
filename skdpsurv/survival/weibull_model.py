r"""What records may look like, given what was released: for weights and intervals, not for privacy.

Times are Weibull. How they were censored is not known beyond how many were. Records are censored
at the horizon and, if that leaves more events than were released, before it: at a time with
distribution function :math:`c^\theta` on (0, 1), which is entry at random times for theta = 1, and
theta such that the expected number of events is the released one.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from skdpsurv.survival.weibull_counts import log_time_grid
from skdpsurv.types import FloatArray

#: Powers theta that are looked at, from nearly all censored at once to nearly none before the end.
CENSORING_POWERS = np.geomspace(1e-3, 1e3, 121)


def bin_probabilities(
    shape: float, log_scale: float, event_rate: float | None, omega: float
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of an event, and of censoring, in each bin of log time.

    Parameters
    ----------
    shape : float
    log_scale : float
        In units of the horizon.
    event_rate : float or None
        Share of records that are events. None: all that happen by the horizon.
    omega : float

    Returns
    -------
    events, censored : ndarray of shape (N_BINS + 1,)
        They add up to 1.
    """
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
