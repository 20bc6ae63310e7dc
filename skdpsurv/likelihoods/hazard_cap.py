r"""Where the cap on a person's cumulative hazard sets in.

For a record that survived k intervals, the knee :math:`b^*_k` solves
:math:`\sum_{s \le k} \varphi'(a_s + b^*_k) = VH`. It depends on k and the baseline only, not on the
person.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.likelihoods.hazard_kernel import chunks, slopes
from skdpsurv.likelihoods.links import Link
from skdpsurv.types import FloatArray, IntArray


def cap_knees(link: Link, a: FloatArray, counts: IntArray, cap: float) -> FloatArray:
    """Return the knee of each k in ``counts``; inf where the sum of slopes never reaches the cap.

    Newton on the logarithm of the sum, whose slope is bounded, inside a shrinking bracket. The
    answer depends on the baseline and on public numbers only.
    """
    knees = np.full(counts.size, np.inf)
    reachable = counts > (cap if link.bounded_slope else 0.0)
    todo = np.flatnonzero(reachable)
    if todo.size == 0:
        return knees
    k = counts[todo]
    low, high = _knee_bracket(link, a, k, cap)
    b = np.clip(least_knees(a, k, cap), low, high)
    for _ in range(60):
        total, bend = np.empty(k.size), np.empty(k.size)
        for chunk in chunks(k):
            slope, curvature = slopes(link, a, b, chunk, 2)
            assert curvature is not None
            total[chunk.part], bend[chunk.part] = slope.sum(axis=1), curvature.sum(axis=1)
        low = np.where(total <= cap, b, low)
        high = np.where(total >= cap, b, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.log(total / cap) * total / bend
        new = b - step
        outside = ~((new >= low) & (new <= high))
        new = np.where(outside, 0.5 * (low + high), new)
        moved = np.max(np.abs(new - b) / (1.0 + np.abs(b)))
        b = new
        if moved < 1e-9:  # the convergence is quadratic
            break
    knees[todo] = b
    return knees


def least_knees(a: FloatArray, k: IntArray, cap: float) -> FloatArray:
    r"""Return a lower bound on the knee of each k, close where hazards are small.

    All links have :math:`\varphi'(\eta) \le e^\eta`, so a knee is at least where
    :math:`e^b \sum_{s \le k} e^{a_s}` reaches the cap; inf for k = 0.
    """
    total = np.concatenate([[-np.inf], np.logaddexp.accumulate(a)])
    return np.asarray(np.log(cap) - total[k])


def _knee_bracket(
    link: Link, a: FloatArray, k: IntArray, cap: float
) -> tuple[FloatArray, FloatArray]:
    """Return b where every slope is at most cap/k, and b where every one is at least cap/k."""
    level = link.slope_inverse(cap / k)
    top = np.maximum.accumulate(a)[k - 1]
    bottom = np.minimum.accumulate(a)[k - 1]
    return level - top, level - bottom
