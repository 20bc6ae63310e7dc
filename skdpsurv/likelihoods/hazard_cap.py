r"""Where the cap on a person's cumulative hazard sets in.

For a record that survived k intervals, the knee :math:`b^*_k` solves
:math:`\sum_{s \le k} \varphi'(a_s + b^*_k) = VH`. It depends on k and the baseline only, not on the
person.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.likelihoods.hazard_kernel import chunks, slopes
from skdpsurv.likelihoods.links import Link
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Newton steps towards a knee, of which a handful are usual, before its bracket is halved; and
#: steps in all, more than it takes to halve any bracket of doubles to nothing.
NEWTON_STEPS, MOST_STEPS = 60, 2300
#: Of lower bounds on knees, relative to the size of the baseline.
SLACK = 2.0**-20
#: Distance of the points at which sums are looked up to start from, and the most of them.
LOOKED_UP, MOST_LOOKED_UP = 1.0 / 16.0, 256


def cap_knees(
    link: Link, a: FloatArray, counts: IntArray, cap: float, highest: float = np.inf
) -> FloatArray:
    """Return the knee of each k in ``counts``; inf where the sum of slopes never reaches the cap.

    For a link without a series also inf where it does so above ``highest``, if that is given.

    Newton on the logarithm of the sum, whose slope is bounded, inside a shrinking bracket, which is
    halved should that take long. It ends when sums differ from the cap by no more than rounding
    can make them (docs/proofs/rounding). But for that, the answer depends on the baseline and on
    public numbers only.
    """
    knees = np.full(counts.size, np.inf)
    reachable = counts > (cap if link.bounded_slope else 0.0)
    todo = np.flatnonzero(reachable)
    if todo.size == 0:
        return knees
    k = counts[todo]
    if link.series is None and highest < np.inf:
        reached, low, b, high = _look_up(link, a, k, cap, highest)
        todo, k = todo[reached], k[reached]
    else:
        low, high = _knee_bracket(link, a, k, cap)
        b = np.clip(least_knees(a, k, cap), low, high)
    size = np.max(np.abs(a))
    for step in range(MOST_STEPS):
        total, bend = _sums(link, a, b, k)
        off = total - cap
        rounded = (link.roundings + 1.0) * bend * (size + np.abs(b))
        rounding = (a.size + 64.0) * cap + rounded
        if (np.abs(off) <= rounding * 2.0**-53).all():
            break
        low = np.where(off <= 0.0, b, low)
        high = np.where(off >= 0.0, b, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = b - np.log(total / cap) * total / bend
        outside = ~((new >= low) & (new <= high)) | (step >= NEWTON_STEPS)
        b = np.where(outside, low + 0.5 * (high - low), new)
    knees[todo] = b
    return knees


def _look_up(
    link: Link, a: FloatArray, k: IntArray, cap: float, highest: float
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Return which knees are below ``highest``; of those a bracket, with a start between its ends.

    Sums of all k at one b are found in one pass over the intervals, so that they are cheap at
    points between which logarithms of sums are nearly cubic.
    """
    lowest = least_knees(a, k, cap).min()
    n_points = int(min(max((highest - lowest) / LOOKED_UP, 1.0), MOST_LOOKED_UP - 1.0)) + 2
    points = np.linspace(lowest, max(highest, lowest), n_points)
    slope, curvature = link.survival_outer(a, points, 2)
    assert curvature is not None
    total, bend = (np.cumsum(each, axis=1)[:, k - 1] for each in (slope, curvature))
    reached = total[-1] >= (1.0 - SLACK) * cap
    total, bend = total[:, reached], bend[:, reached]
    right = np.clip(np.sum(total < cap, axis=0), 1, n_points - 1)
    ends, which = (right - 1, right), np.arange(right.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Hermite's cubic for b as a function of the logarithm of the sum.
        (u0, u1), (d0, d1) = (
            [each[end, which] for end in ends] for each in (np.log(total / cap), total / bend)
        )
        width, t = u1 - u0, -u0 / (u1 - u0)
        rise = points[right] - points[right - 1]
        start = points[right - 1] + t * (
            width * d0 * (1.0 - t) ** 2 + rise * t * (3.0 - 2.0 * t) - width * d1 * t * (1.0 - t)
        )
    # Sums by another order of their terms may be on the other side of the cap.
    slack = SLACK * (1.0 + np.abs(a).max() + np.abs(points).max())
    low, high = points[right - 1] - slack, points[right] + slack
    inside = (start >= low) & (start <= high)
    return reached, low, np.where(inside, start, 0.5 * (low + high)), high


def _sums(link: Link, a: FloatArray, b: FloatArray, k: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the sums of slopes and of curvatures of the first k intervals, at each b."""
    total, bend = np.empty(k.size), np.empty(k.size)
    for chunk in chunks(k):
        slope, curvature = slopes(link, a, b, chunk, 2)
        assert curvature is not None
        total[chunk.part], bend[chunk.part] = slope.sum(axis=1), curvature.sum(axis=1)
    return total, bend


def least_knees(a: FloatArray, k: IntArray, cap: float) -> FloatArray:
    r"""Return a lower bound on the knee of each k, close where hazards are small.

    All links have :math:`\varphi'(\eta) \le e^\eta`, so a knee is at least where
    :math:`e^b \sum_{s \le k} e^{a_s}` reaches the cap; inf for k = 0. It is lowered by more than
    rounding can raise it.
    """
    total = np.concatenate([[-np.inf], np.logaddexp.accumulate(a)])
    return np.asarray(np.log(cap) - total[k] - SLACK * (1.0 + np.max(np.abs(a))))


def _knee_bracket(
    link: Link, a: FloatArray, k: IntArray, cap: float
) -> tuple[FloatArray, FloatArray]:
    """Return b where every slope is at most cap/k, and b where every one is at least cap/k."""
    level = link.slope_inverse(cap / k)
    top = np.maximum.accumulate(a)[k - 1]
    bottom = np.minimum.accumulate(a)[k - 1]
    return level - top, level - bottom
