"""Harrell's concordance index of risk scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.histories import Histories, with_entry
from skdpsurv.data.target import event_and_time
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray


def concordance_index(
    y: ArrayLike,
    risk: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> float:
    """Return Harrell's concordance index of risk scores, in O(n log² n).

    It is the share of comparable pairs in which the record with the higher risk has its event
    first; pairs with equal risk count one half. A pair is comparable if the shorter time is an
    event's, or if the times are equal and exactly one of them is an event's.

    Parameters
    ----------
    y : structured array of shape (n_samples,)
        Boolean (or 0/1) event field and time field, under any names, as in scikit-survival; or a
        plain array of times, all of them events (:func:`skdpsurv.data.target.event_and_time`).
    risk : array-like of shape (n_samples,)
        Risk scores, higher is riskier. Infinite scores are ranked; NaN is refused.
    sample_weight : array-like of shape (n_samples,) or None
        Weights, not negative; a pair counts with the product of its weights.
    entry : array-like of shape (n_samples,) or None
        Time from which each record was seen: a pair is comparable only if the other record had
        entered before the event. One that entered at its own time or later is in no pair.
    strata : array-like of shape (n_samples,) or None
        Groups: a pair is comparable only within one.

    Returns
    -------
    float
        Between 0 and 1. 0.5 if no pair is comparable, so that a cross-validation does not fail if
        private records have no events.

    Raises
    ------
    ValueError
        If ``y`` is not a survival target, if the lengths differ, or if ``risk`` holds NaN.

    See Also
    --------
    sksurv.metrics.concordance_index_censored : The same number, in O(n²), with pair counts.

    Notes
    -----
    It agrees with lifelines, and with scikit-survival, tied times included. Only equal scores are
    tied here; in scikit-survival those within ``tied_tol=1e-8``.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([(True, 2.0), (False, 3.0), (True, 5.0)], dtype=[("event", "?"), ("t", "f8")])
    >>> concordance_index(y, [0.4, 0.1, 0.7])
    0.5
    """
    event, time = event_and_time(y)
    entered = with_entry(Histories(time, event), entry).entry
    if entered is not None:  # who is seen from 0 is at risk there
        entered = np.where(entered == 0.0, -1.0, entered)
    # Float first: minus an unsigned integer wraps around.
    risk = np.asarray(risk, dtype=np.float64)
    if risk.shape != time.shape:
        raise ValueError(f"risk must have shape (n_samples,) = {time.shape}, got {risk.shape}.")
    if np.isnan(risk).any():
        raise ValueError("risk must not contain NaN.")
    weight = np.ones(time.size) if sample_weight is None else _checked_weight(sample_weight, time)
    groups = np.zeros(time.size) if strata is None else np.asarray(strata)
    concordant = comparable = 0.0
    for group in np.unique(groups):
        own = groups == group
        late = None if entered is None else entered[own]
        found = _counts(event[own], time[own], late, risk[own], weight[own])
        concordant, comparable = concordant + found[0], comparable + found[1]
    return float(concordant / comparable) if comparable > 0.0 else 0.5


def _counts(
    event: BoolArray,
    time: FloatArray,
    entered: FloatArray | None,
    risk: FloatArray,
    weight: FloatArray,
) -> tuple[float, float]:
    """Return the weight of comparable pairs: concordant, and all."""
    # Two records are comparable where the earlier key is an event's, which is even.
    key = 2 * np.unique(time, return_inverse=True)[1] + ~event
    score = np.unique(risk, return_inverse=True)[1]
    if entered is not None:
        weight = weight * (entered < time)
    concordant, comparable = _pairs(key, score, weight * event, weight)
    if entered is not None:  # less those with who entered at the time of the event, or later
        rank = 2 * np.unique(np.append(time, entered), return_inverse=True)[1]
        rank[time.size :] += 1
        none = np.zeros_like(weight)
        early, late = np.append(weight * event, none), np.append(none, weight)
        less = _pairs(rank, np.append(score, score), early, late)
        concordant, comparable = concordant - less[0], comparable - less[1]
    return concordant, comparable


def _pairs(
    key: IntArray, score: IntArray, first_weight: FloatArray, second_weight: FloatArray
) -> tuple[float, float]:
    """Return the weight of pairs whose first key is even and smaller: concordant, and all."""
    n_scores = int(score.max(initial=0)) + 1
    concordant = comparable = 0.0
    # Each pair of keys counts once: at the first bit in which they differ.
    for bit in range(int(key.max(initial=0)).bit_length()):
        groups, group = np.unique((key >> bit + 1) * n_scores + score, return_inverse=True)
        upper = (key >> bit) % 2 == 1
        later = np.bincount(group, second_weight * upper)
        earlier = np.bincount(group, first_weight * ~upper)
        sums = np.append(0.0, np.cumsum(later))
        block = groups // n_scores  # keys that agree above the bit
        first, last = (np.searchsorted(block, block, side) for side in ("left", "right"))
        comparable += earlier @ (sums[last] - sums[first])
        concordant += earlier @ (sums[:-1] + later / 2.0 - sums[first])
    return concordant, comparable


def _checked_weight(sample_weight: ArrayLike, time: FloatArray) -> FloatArray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != time.shape or not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(f"sample_weight must be finite, not negative and of shape {time.shape}.")
    return weight
