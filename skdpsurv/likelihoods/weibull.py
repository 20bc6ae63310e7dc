r"""Weibull likelihood of right-censored times.

With :math:`x = \log u`, u a time in units of a public horizon, :math:`d = 1` for an event, shape
:math:`\rho` and scale :math:`\lambda`, a record's log-likelihood is

.. math::
    d\,\big(\log\rho + \rho x - x - \rho\log\lambda\big) - (u/\lambda)^\rho .

The scale follows from the shape, :math:`\lambda^\rho = \sum u^\rho / N` with N events, and the
shape solves :math:`\sum_i \phi_\rho(x_i) = 0` with

.. math:: \phi_\rho(x) = e^{\rho x}\Big(x - \frac1\rho - m\Big), \qquad m = \frac1N\sum_i d_i x_i,

whose sum is negative below the solution and positive above it: in Nguyen and Hui's terms it is
:math:`s_0 (f - g)`, where :math:`f = s_1 / s_0` rises with the shape and g falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.types import BoolArray, FloatArray

#: Shapes are sought down to this part of the largest one.
SHAPE_RANGE = 2.0**-10

_STEPS = 200


def shape_score(x: FloatArray, shape: float, mean_log_event: float) -> FloatArray:
    r"""Return :math:`\phi` of each log time; it is least at ``mean_log_event`` if that is below 0.

    Every operation is monotone in ``mean_log_event``, so the rounded values are too.
    """
    return np.asarray(np.exp(shape * x) * ((x - 1.0 / shape) - mean_log_event))


def efficient_score(
    x: FloatArray, shape: float, log_scale: float, mean_log_event: float, cap: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return a record's part in the score of the shape, with an event and without.

    .. math:: d\,(x - m) - \min(u^\rho\lambda^{-\rho}, H)\,(x - \bar x), \qquad \bar x = m + 1/\rho

    At the solution, where :math:`\bar x` is the mean log time weighted by :math:`u^\rho`, a wrong
    scale moves its sum only to second order. The cap H on a record's cumulative hazard is exceeded
    with probability :math:`e^{-H}`.

    Parameters
    ----------
    x : ndarray
        Log times in units of the horizon, from -omega to 0.
    shape, log_scale, mean_log_event : float
        A first fit.
    cap : float
    """
    weighted_mean = min(max(mean_log_event + 1.0 / shape, float(x[0])), 0.0)
    with np.errstate(over="ignore"):
        hazard = np.minimum(np.exp(shape * (x - log_scale)), cap)
    censored = -hazard * (x - weighted_mean)
    return (x - mean_log_event) + censored, censored


def mean_log_likelihood(
    log_time: FloatArray, event: BoolArray, log_scale: float, shape: float
) -> float:
    """Return the mean log-likelihood of the times themselves.

    Parameters
    ----------
    log_time : ndarray of shape (n,)
    event : ndarray of bool, shape (n,)
    log_scale : float
        Log of lambda, in the unit of the times.
    shape : float
        rho.
    """
    power = shape * (log_time - log_scale)
    density = np.log(shape) + power - log_time
    with np.errstate(over="ignore"):
        return float(np.mean(np.where(event, density, 0.0) - np.exp(power)))


def maximum_likelihood(
    x: FloatArray,
    events: ArrayLike,
    max_shape: float,
    starts: ArrayLike = (0,),
    weights: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Fit consecutive groups of records, each on its own, by Newton's method between bounds.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Log times in units of the horizon.
    events : array-like of shape (n,)
        Whether each was an event; with ``weights``, how many of them were.
    max_shape : float
        Largest shape; the smallest is ``SHAPE_RANGE`` times it.
    starts : array-like of int, default=(0,)
        Where groups begin; they have at least one record each.
    weights : array-like of shape (n,) or None
        How many records have each log time. One if omitted.

    Returns
    -------
    shape : ndarray of shape (n_groups,)
        Within the bounds.
    log_scale : ndarray of shape (n_groups,)
        Log of lambda in units of the horizon. A group without events counts as having half of one
        event, at the horizon.
    """
    starts = np.asarray(starts, dtype=np.intp)
    sizes = np.diff(np.append(starts, x.size))
    counts = 1.0 if weights is None else np.asarray(weights, dtype=np.float64)
    events = np.asarray(events, dtype=np.float64)
    n_events = np.add.reduceat(events, starts)
    log_sum = np.add.reduceat(events * x, starts)
    n_events = np.where(n_events > 0, n_events, 0.5)
    mean_log_event = log_sum / n_events
    # The largest log time of each group, so that no power underflows in all of a group.
    last = np.maximum.reduceat(x, starts)
    below = x - np.repeat(last, sizes)

    def sums(shape: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        power = counts * np.exp(np.repeat(shape, sizes) * below)
        first = power * below
        return (
            np.add.reduceat(power, starts),
            np.add.reduceat(first, starts),
            np.add.reduceat(first * below, starts),
        )

    low = np.full(starts.size, SHAPE_RANGE * max_shape)
    high = np.full(starts.size, float(max_shape))
    shape = np.clip(1.0, low, high)
    finished = np.zeros(starts.size, dtype=bool)
    for _ in range(_STEPS):
        s0, s1, s2 = sums(shape)
        mean = s1 / s0
        score = mean + last - 1.0 / shape - mean_log_event
        low, high = np.where(score < 0, shape, low), np.where(score < 0, high, shape)
        slope = s2 / s0 - mean**2 + shape**-2.0
        step = shape - score / slope
        # Off the bracket, halve it on the log scale instead.
        step = np.where((step >= low) & (step <= high), step, np.sqrt(low * high))
        # A group that has finished stays as it is, so that none depends on another's records.
        shape, finished = (
            np.where(finished, shape, step),
            finished | (np.abs(step - shape) <= 1e-13 * shape),
        )
        if finished.all():
            break
    s0 = sums(shape)[0]
    return shape, last + np.log(s0 / n_events) / shape
