r"""Lower bounds on epsilon from how often an event happened on either of two neighbours.

An (epsilon, delta)-private mechanism M has, for every event E and neighbours D and D',

.. math:: P(M(D) \in E) \le e^\epsilon P(M(D') \in E) + \delta,

so that :math:`\epsilon \ge \log\frac{p - \delta}{p'}`. From k hits in n trials, the bounds of
Clopper and Pearson (1934),

.. math:: p \ge B^{-1}_{k,\,n-k+1}(a), \qquad p' \le B^{-1}_{k'+1,\,n-k'}(1 - a),

with B the distribution function of the beta law, are each wrong with probability at most a.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from skdpsurv.types import FloatArray

__all__ = ["epsilon_bound", "fewest_trials", "largest_bound", "probability_bounds"]


#: More trials than anybody will wait for.
MOST_TRIALS = 2**40


def probability_bounds(
    hits: ArrayLike, n_trials: int, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of Clopper and Pearson on a probability.

    Parameters
    ----------
    hits : array-like of int
        Of ``n_trials``.
    n_trials : int
    error : float
        Probability with which either bound may be wrong.

    Returns
    -------
    low, high : ndarray of float

    Examples
    --------
    >>> low, high = probability_bounds([0, 5, 10], 10, 0.025)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.19, 0.69]), array([0.31, 0.81, 1.  ]))
    """
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n_trials - k + 1, error), 0.0)
    left = np.maximum(n_trials - k, 1)
    high = np.where(k < n_trials, special.betainccinv(k + 1, left, error), 1.0)
    return low, high


def epsilon_bound(
    hits: ArrayLike, other_hits: ArrayLike, n_trials: int, error: float, delta: float = 0.0
) -> FloatArray:
    """Return what epsilon is at least, given the hits of an event on two neighbours.

    Parameters
    ----------
    hits, other_hits : array-like of int
        Of ``n_trials`` each.
    n_trials : int
    error : float
        Probability with which the bound may be wrong: half of it for either probability.
    delta : float, default=0.0

    Returns
    -------
    ndarray of float
        -inf where nothing is known.
    """
    low, _ = probability_bounds(hits, n_trials, error / 2.0)
    _, high = probability_bounds(other_hits, n_trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def largest_bound(n_trials: int, error: float, delta: float = 0.0) -> float:
    """Return the largest bound that can be found: all hits on one neighbour, none on the other."""
    return float(epsilon_bound(n_trials, 0, n_trials, error, delta))


def fewest_trials(epsilon: float, error: float, delta: float = 0.0) -> int:
    """Return with how many trials a bound above ``epsilon`` could be found.

    Parameters
    ----------
    epsilon : float
    error : float
        As for :func:`epsilon_bound`.
    delta : float, default=0.0

    Examples
    --------
    >>> fewest_trials(1.0, 0.01)
    17
    """
    high = 1
    while largest_bound(high, error, delta) <= epsilon:
        if high >= MOST_TRIALS or not math.isfinite(epsilon):
            raise ValueError(f"no number of trials can refute epsilon={epsilon}, delta={delta}.")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if largest_bound(middle, error, delta) > epsilon else (middle, high)
        )
    return high
