"""Harrell's concordance index of risk scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.target import event_and_time
from skdpsurv.dp.types import FloatArray


def concordance_index(
    y: ArrayLike, risk: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Harrell's concordance index of risk scores, in O(n log² n).

    The share of comparable pairs in which the record with the higher risk has its event first;
    pairs with equal risk count one half. A pair is comparable if the shorter time is an event's,
    or if the times are equal and exactly one of them is an event's.

    Parameters
    ----------
    y : structured array of shape (n_samples,)
        Boolean (or 0/1) event field and time field, under any names, as scikit-survival has
        them; or a plain array of times, all of them events. See
        :func:`skdpsurv.data.target.event_and_time`.
    risk : array-like of shape (n_samples,)
        Risk scores, higher is riskier. Infinite scores are ranked; NaN is refused.
    sample_weight : array-like of shape (n_samples,) or None
        A pair counts with the product of its records' weights, not negative.

    Returns
    -------
    float
        Between 0 and 1. 0.5 if no pair is comparable (say, no events), as for scores that carry
        no information: whether there are events depends on private records, and a score inside
        of a cross-validation must not fail on it.

    Raises
    ------
    ValueError
        If ``y`` is not a survival target, if the lengths differ, or if ``risk`` holds NaN.

    See Also
    --------
    sksurv.metrics.concordance_index_censored : The same number, in O(n²), with pair counts.

    Notes
    -----
    It agrees with lifelines, and with scikit-survival, tied times included, except that
    scikit-survival calls scores tied when they are within ``tied_tol=1e-8`` of each other, while
    here only equal scores are tied.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([(True, 2.0), (False, 3.0), (True, 5.0)], dtype=[("event", "?"), ("t", "f8")])
    >>> concordance_index(y, [0.4, 0.1, 0.7])
    0.5
    """
    event, time = event_and_time(y)
    # Float first: minus an unsigned integer wraps around.
    risk = np.asarray(risk, dtype=np.float64)
    if risk.shape != time.shape:
        raise ValueError(f"risk must have shape (n_samples,) = {time.shape}, got {risk.shape}.")
    if np.isnan(risk).any():
        raise ValueError("risk must not contain NaN.")
    weight = np.ones(time.size) if sample_weight is None else _checked_weight(sample_weight, time)
    # Two records are comparable where the earlier key is an event's, which is even.
    key = 2 * np.unique(time, return_inverse=True)[1] + ~event
    scores, score = np.unique(risk, return_inverse=True)
    concordant = comparable = 0.0
    # Each pair of keys is looked at once: at the first bit in which they differ.
    for bit in range(int(key.max(initial=0)).bit_length()):
        parts, part = np.unique((key >> bit + 1) * scores.size + score, return_inverse=True)
        upper = (key >> bit) % 2 == 1
        later = np.bincount(part, weight * upper)
        earlier = np.bincount(part, weight * (event & ~upper))
        sums = np.append(0.0, np.cumsum(later))
        block = parts // scores.size  # of keys that agree in what is above the bit
        first, last = (np.searchsorted(block, block, side) for side in ("left", "right"))
        comparable += earlier @ (sums[last] - sums[first])
        concordant += earlier @ (sums[:-1] + later / 2.0 - sums[first])
    return float(concordant / comparable) if comparable > 0.0 else 0.5


def _checked_weight(sample_weight: ArrayLike, time: FloatArray) -> FloatArray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != time.shape or not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(f"sample_weight must be finite, not negative and of shape {time.shape}.")
    return weight
