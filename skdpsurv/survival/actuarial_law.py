r"""Probabilities of how and when people leave, for bands in which nothing more is known of when.

In a band, events come with a mass of hazard :math:`a = \sum_w a_w` over their kinds w, and
censoring with b. Alone, a part :math:`A = 1 - e^{-a}` would have an event and a part
:math:`B = 1 - e^{-b}` be censored; of those who would do both one half do the one first:

.. math::
    P(\text{event } w) = S\,A\,(1 - B/2)\,a_w / a,\qquad P(\text{censored}) = S\,B\,(1 - A/2),

with S the part that enters the band; :math:`S\,e^{-a-b}` stays. That is the actuarial life table.
If nobody is censored a is the product-limit estimate, and if all who are censored leave at the end
of a band, as at the end of a study, a is too large by a factor of at most 2, in that band alone.
Where people leave evenly by rates (:mod:`~skdpsurv.survival.exit_law`) there is no such bound.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.types import FloatArray


def leaving(masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each cell, and its derivatives by the logs of the masses.

    Parameters
    ----------
    masses : ndarray of shape (n_ways, n_bands)
        Of each kind of event, and last of censoring; positive.

    Returns
    -------
    probability : ndarray of shape (n_ways * n_bands + 1,)
        Of each way out, by band; and of staying to the end.
    slopes : ndarray of shape (n_ways * n_bands, n_ways * n_bands + 1)
    """
    n_ways, q = masses.shape
    events, b = masses[:-1], masses[-1]
    a = events.sum(axis=0)
    share = events / a
    some, lost = -np.expm1(-a), -np.expm1(-b)
    both = np.cumsum(a + b)
    entering = np.exp(a + b - both)
    way = np.concatenate([share * some * (1.0 - lost / 2.0), [lost * (1.0 - some / 2.0)]])
    probability = np.append((entering * way).ravel(), np.exp(-both[-1]))

    # Of a way out in the same band, by each mass: (by, of, band).
    own = np.empty((n_ways, n_ways, q))
    by_all = np.exp(-a) * (1.0 - lost / 2.0) - some * (1.0 - lost / 2.0) / a
    own[:-1, :-1] = share * by_all
    own[np.arange(n_ways - 1), np.arange(n_ways - 1)] += some * (1.0 - lost / 2.0) / a
    own[:-1, -1] = -lost * np.exp(-a) / 2.0
    own[-1, :-1] = -share * some * np.exp(-b) / 2.0
    own[-1, -1] = np.exp(-b) * (1.0 - some / 2.0)
    slopes = np.zeros((n_ways, q, n_ways, q))
    # What leaves in a later band is less by as much, whichever way more leave before.
    later = np.triu(np.ones((q, q)), 1)
    slopes -= (later[:, None, :] * (entering * way))[None]
    band = np.arange(q)
    slopes[:, band, :, band] += np.moveaxis(own * entering, -1, 0)
    end = np.full((n_ways * q, 1), -probability[-1])
    table = np.hstack([slopes.reshape(n_ways * q, n_ways * q), end])
    return probability, table * masses.reshape(-1, 1)


def masses_of(counts: FloatArray, at_risk: FloatArray) -> FloatArray:
    """Return the masses that expect some counts of events: the inverse of the law.

    Parameters
    ----------
    counts : ndarray of shape (n_ways, n_bands)
        Not negative; the last way is censoring.
    at_risk : ndarray of shape (n_bands,)
        At the start of each band, at least the sum of its counts.

    Returns
    -------
    ndarray of shape (n_ways - 1, n_bands)
    """
    at_risk = np.maximum(at_risk, 1e-300)
    # Where next to nobody is left, rounding may have more leave.
    events = np.minimum(counts[:-1].sum(axis=0) / at_risk, 1.0)
    censored = np.minimum(counts[-1] / at_risk, 1.0 - events)
    # B solves B^2 - (2 - d) B + 2 c = 0, with d the difference of both parts; A = B + d.
    linear = 2.0 - (events - censored)
    root = np.sqrt(np.maximum(linear**2 - 8.0 * censored, 0.0))
    # The smaller root, without cancellation.
    lost = 4.0 * censored / np.maximum(linear + root, 1e-300)
    some = lost + events - censored
    # Of the last ones, half a person stays: a curve that may not be 0 is none that ends.
    most = 1.0 - np.minimum(0.5, 0.5 / np.maximum(at_risk, 1.0))
    total = -np.log1p(-np.clip(some, 0.0, most))
    share = counts[:-1] / np.maximum(counts[:-1].sum(axis=0), 1e-300)
    return np.asarray(total * share)
