r"""Weibull likelihood of right-censored times.

With :math:`x = \log u`, u a time in units of a public horizon, :math:`d = 1` for an event, shape
:math:`\rho` and scale :math:`\lambda`, a record's log-likelihood is

.. math::
    d\,\big(\log\rho + \rho x - x - \rho\log\lambda\big) - (u/\lambda)^\rho .

The scale follows from the shape, :math:`\lambda^\rho = \sum u^\rho / N` with N events, and the
shape solves :math:`\sum_i \phi_\rho(x_i) = 0` with

.. math:: \phi_\rho(x) = e^{\rho x}\Big(x - \frac1\rho - m\Big), \qquad m = \frac1N\sum_i d_i x_i.

The sum is negative below the solution and positive above it. In Nguyen and Hui's terms it is
:math:`s_0 (f - g)`, where :math:`f = s_1 / s_0` rises with the shape and g falls.

**Events before a least time** :math:`c = e^{-\omega}`. Such an event has the probability
:math:`1 - e^{-H}`, :math:`H = (c/\lambda)^\rho`, and the score :math:`r\,(-\omega - \log\lambda)`
with :math:`r = H / (e^H - 1) = 1 - H/2 + \dots`; an exact event has :math:`1/\rho + (1 -
(u/\lambda)^\rho)(\log u - \log\lambda)`. So it counts as an event at c, with half of the power of c
and without :math:`1/\rho`. Records censored before c also count about half of the power: a part
:math:`1 / (1 + \rho)` if their times are uniform.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from skdpsurv.data.histories import Histories
from skdpsurv.dp.types import BoolArray, FloatArray

#: The smallest shape, as a part of the largest one.
SHAPE_RANGE = 2.0**-10

#: Records before the least time were at risk for this part of its power.
BEFORE_PART = 0.5

_STEPS = 200


def shape_score(x: FloatArray, shape: float, mean_log_event: float) -> FloatArray:
    r"""Return :math:`\phi` of each log time; it is least at ``mean_log_event`` if that is below 0.

    Rounded values are monotone in ``mean_log_event``, as every operation is.
    """
    return np.asarray(np.exp(shape * x) * ((x - 1.0 / shape) - mean_log_event))


def score_with_before(
    x: FloatArray, shape: float, mean_log_event: float, offset: float
) -> FloatArray:
    r"""Return the scores of log times; the first, :math:`-\omega`, stands for all before it.

    An event before :math:`-\omega` counts in m as one at :math:`-\omega - a`, with a the offset,
    and any event at v as :math:`c(v)`. In a Weibull distribution the sum of these is on average

    .. math::
        \lambda^{-\rho}\sum_i \int_0^{u_i} c(v)\,dv^\rho =
        \lambda^{-\rho}\sum_i \Big[u_i^\rho\Big(x_i - \frac1\rho\Big)
        + e^{-\rho\omega}\Big(\frac1\rho - a\Big)\Big] ,

    so that the bracket, less :math:`u^\rho m`, takes the place of :math:`\phi`. Its sum rises
    through 0. The first score is half of the bracket, as records that leave before were not at risk
    for all of it.
    """
    constant = np.exp(shape * x[0]) * (1.0 / shape - offset)
    score = shape_score(x, shape, mean_log_event) + constant
    score[0] *= BEFORE_PART
    return np.asarray(score)


def before_residual(hazard: float) -> float:
    """Return H / (e^H - 1), the part of an event before H that the hazard does not explain."""
    return 1.0 if hazard < 1e-300 else hazard / math.expm1(min(hazard, 700.0))


def efficient_score(
    x: FloatArray,
    shape: float,
    log_scale: float,
    mean_log_event: float,
    cap: float,
    weighted_mean: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return a record's part in the score of the shape, with an event and without one.

    .. math:: d\,(x - m) - \min(u^\rho\lambda^{-\rho}, H)\,(x - \bar x), \qquad \bar x = m + 1/\rho

    At the solution, where :math:`\bar x` is the mean log time weighted by :math:`u^\rho`, a wrong
    scale moves its sum only to second order. The cap H on a record's cumulative hazard is exceeded
    with probability :math:`e^{-H}`.

    Log times ``x`` run from -omega to 0; shape, log_scale and mean_log_event are a first fit. If
    records at the first log time were before it, ``weighted_mean`` is :math:`\bar x`: events there
    have the part :math:`r\,(x - \bar x)`, others :math:`x - \bar x + 1/\rho` for :math:`x - m`.
    """
    center = mean_log_event + 1.0 / shape if weighted_mean is None else weighted_mean
    center = min(max(center, float(x[0])), 0.0)
    with np.errstate(over="ignore"):
        hazard = np.minimum(np.exp(shape * (x - log_scale)), cap)
    censored = -hazard * (x - center)
    if weighted_mean is None:
        return (x - mean_log_event) + censored, censored
    event = (x - center + 1.0 / shape) + censored
    event[0] = before_residual(float(hazard[0])) * (x[0] - center)
    censored[0] *= BEFORE_PART
    return event, censored


def mean_log_likelihood(
    histories: Histories, log_scale: float, shape: float, before: BoolArray | None = None
) -> float:
    """Return the mean log-likelihood of log times; those ``before`` ended before their time."""
    log_time, event = histories.exit, histories.event
    power = shape * (log_time - log_scale)
    density = np.log(shape) + power - log_time
    with np.errstate(over="ignore"):
        hazard = np.exp(power)
        parts = np.where(event, density, 0.0) - hazard
        if before is not None and before.any():
            early = before & event
            parts[before] *= BEFORE_PART
            # A hazard below all doubles is the probability itself.
            probability = -np.expm1(-hazard[early])
            log_probability = np.log(np.maximum(probability, 5e-324))
            parts[early] = np.where(probability > 0, log_probability, power[early])
    return float(np.mean(parts))


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
        1 for an event; with ``weights``, the number of events.
    max_shape : float
        Largest shape; the smallest is ``SHAPE_RANGE`` times it.
    starts : array-like of int, default=(0,)
        First records of the groups, none of them empty.
    weights : array-like of shape (n,) or None
        Number of records with each log time; 1 if omitted.

    Returns
    -------
    shape : ndarray of shape (n_groups,)
        Within the bounds.
    log_scale : ndarray of shape (n_groups,)
        Log of lambda in units of the horizon. A group without events has half an event, at the
        horizon.
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


def maximum_likelihood_with_before(
    x: FloatArray,
    events: ArrayLike,
    n_before: float,
    omega: float,
    max_shape: float,
    weights: ArrayLike | None = None,
) -> tuple[float, float]:
    r"""Fit records of which some are events at unknown times before :math:`e^{-\omega}`.

    With :math:`\tau = \lambda^{-\rho}`, N exact events and K before, the likelihood is concave in
    :math:`(\rho, \log\tau)` and greatest where

    .. math::
        N + K r(\tau) = \tau s_0, \qquad
        \frac N\rho + S - K\omega\,r(\tau) - \tau s_1 = 0, \qquad
        r(\tau) = \frac{H}{e^H - 1},\ H = \tau e^{-\rho\omega} ,

    with sums over all other records, given by x, events and weights as for
    :func:`maximum_likelihood`. Those censored before :math:`e^{-\omega}` are at it, with weight
    ``BEFORE_PART``. The first equation gives the scale for a shape; the second is then a falling
    function of the shape. Return shape and log scale.
    """
    counts = np.ones(x.size) if weights is None else np.asarray(weights, dtype=np.float64)
    events = np.asarray(events, dtype=np.float64)
    n_exact, log_sum = float(events.sum()), float(events @ x)
    # All log times less the last, so that not all powers underflow.
    last = float(x.max())
    below, least = x - last, -omega - last
    log_sum -= n_exact * last

    def solve(log_shape: float) -> tuple[float, float]:
        shape = math.exp(log_shape)
        with np.errstate(under="ignore"):
            power = counts * np.exp(shape * below)
            s0, s1 = float(power.sum()), float(power @ below)
        start = math.exp(max(shape * least, -700.0))

        def excess(log_tau: float) -> float:
            tau = math.exp(log_tau)
            return n_exact + n_before * before_residual(tau * start) - tau * s0

        high = math.log((n_exact + n_before) / s0)
        # The root has a large H where all events, or nearly all, are before.
        low = min(math.log(n_exact / s0) if n_exact > 0 else high, high) - 1e-9
        while excess(low) < 0.0:
            low -= 1.0
        log_tau = brentq(excess, low, high + 1e-9, xtol=1e-15, rtol=1e-15)
        tau = math.exp(log_tau)
        score = n_exact / shape + log_sum + n_before * least * before_residual(tau * start)
        return score - tau * s1, log_tau

    low, high = math.log(SHAPE_RANGE * max_shape), math.log(max_shape)
    if solve(low)[0] <= 0.0:
        log_shape = low
    elif solve(high)[0] >= 0.0:
        log_shape = high
    else:
        log_shape = brentq(lambda each: solve(each)[0], low, high, xtol=1e-14, rtol=1e-14)
    shape = min(math.exp(log_shape), float(max_shape))
    return shape, last - solve(log_shape)[1] / shape
