r"""The hazard likelihood of one record: inner loops, its bounds, and where its cap sets in.

The inner loops of the hazard likelihood: records times intervals, a cacheful at a time.

Bounds on one record's loss and gradient in the hazard likelihood.

Proofs: docs/proofs/discrete_hazard, and of the loss docs/proofs/rounding.

Where the cap on a person's cumulative hazard sets in.

For a record that survived k intervals, the knee :math:`b^*_k` solves
:math:`\sum_{s \le k} \varphi'(a_s + b^*_k) = VH`. It depends on k and the baseline only, not on the
person.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from skdpsurv.dp.checks import CHUNK_ELEMENTS
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.base import SUM_ROWS
from skdpsurv.likelihoods.links import Link


class Sums:
    """Per record: slope and curvature in b, cross derivative in (a, b). Per interval: sums."""

    def __init__(self, n: int, n_basis: int, q: int) -> None:
        self.slope = np.zeros(n)
        self.curvature = np.zeros(n)
        self.cross = np.zeros((n, n_basis))
        self.interval_slope = np.zeros(q)
        self.interval_curvature = np.zeros(q)


def sums_by_level(values: FloatArray, levels: IntArray) -> tuple[IntArray, FloatArray]:
    """Add up rows by level, in pieces of at most SUM_ROWS rows, so that rounding stays small.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
    levels : ndarray of int, shape (n,)
        Ascending, not empty.

    Returns
    -------
    present : ndarray of int
        The levels that occur.
    sums : ndarray of shape (n_present, ...)
    """
    starts = np.empty(levels.size, dtype=bool)
    np.not_equal(levels[1:], levels[:-1], out=starts[1:])
    starts[::SUM_ROWS] = True  # the first row among them
    breaks = np.flatnonzero(starts)
    pieces = np.add.reduceat(values, breaks, axis=0)
    present, first = np.unique(levels[breaks], return_index=True)
    return present, np.add.reduceat(pieces, first, axis=0)


class Chunk(NamedTuple):
    """Records that are worked on together, out of arrays sorted by intervals survived.

    Parameters
    ----------
    part : slice
        Which records.
    width : int
        The most intervals that one of them survived.
    shortest : int
        The fewest.
    tail : ndarray of shape (n_rows, width - shortest)
        1 where a record survived the interval, 0 where it did not, from ``shortest`` on.
    """

    part: slice
    width: int
    shortest: int
    tail: FloatArray


def chunks(survived: IntArray) -> Iterator[Chunk]:
    """Cut records, ascending in ``survived``, into chunks that fit a cache; k = 0 has no part."""
    start, n = int(np.searchsorted(survived, 1)), survived.size
    while start < n:
        stop = min(n, start + min(SUM_ROWS, max(1, CHUNK_ELEMENTS // int(survived[start]))))
        stop = min(stop, start + max(1, CHUNK_ELEMENTS // int(survived[stop - 1])))
        shortest, width = int(survived[start]), int(survived[stop - 1])
        tail = np.arange(shortest, width) < survived[start:stop, None]
        yield Chunk(slice(start, stop), width, shortest, tail.astype(np.float64))
        start = stop


def slopes(
    link: Link, a: FloatArray, b: FloatArray, chunk: Chunk, order: int
) -> tuple[FloatArray, FloatArray | None]:
    r"""Return :math:`\varphi'(a_s + b_i)` and perhaps :math:`\varphi''`, 0 beyond a record's exit.

    Parameters
    ----------
    link : Link
    a : ndarray of shape (n_intervals,)
    b : ndarray of shape (n_records,)
    chunk : Chunk
    order : int
        1 leaves out the curvatures.
    """
    slope, curvature = link.survival_outer(a[: chunk.width], b[chunk.part], order)
    if chunk.tail.size:
        slope[:, chunk.shortest :] *= chunk.tail
        if curvature is not None:
            curvature[:, chunk.shortest :] *= chunk.tail
    return slope, curvature


def add_survived(
    sums: Sums,
    link: Link,
    basis: FloatArray,
    a: FloatArray,
    b: FloatArray,
    weights: FloatArray,
    rows: IntArray,
    survived: IntArray,
    order: int,
) -> None:
    """Add the intervals survived by the records ``rows``, ascending in ``survived``."""
    columns = np.column_stack([basis, np.ones(a.size)])
    ones = np.ones(a.size)
    b, weight = b[rows], weights[rows]
    slope_sums, moments = np.zeros(rows.size), np.zeros((rows.size, columns.shape[1]))
    for chunk in chunks(survived[rows]):
        part, width = chunk.part, chunk.width
        slope, curvature = slopes(link, a, b, chunk, order)
        np.dot(slope, ones[:width], out=slope_sums[part])
        sums.interval_slope[:width] += weight[part] @ slope
        if curvature is not None:
            np.dot(curvature, columns[:width], out=moments[part])
            sums.interval_curvature[:width] += weight[part] @ curvature
    sums.slope[rows] += weight * slope_sums
    moments *= weight[:, None]
    sums.cross[rows] += moments[:, :-1]
    sums.curvature[rows] += moments[:, -1]


def loss_at_zero(link: Link, n_intervals: int, cap: float | None) -> float:
    r"""Return a bound on the loss of a record at the coefficients 0; no loss is below 0.

    That of the intervals survived is the least over c of :math:`q\varphi(-c) + Cc`, so that any c
    gives a bound.
    """
    shifts = np.linspace(0.0, 2.0 * np.log(n_intervals + 1.0), 65)
    if cap is None:
        shifts = shifts[:1]
    survived = n_intervals * link.survival(-shifts).value + (cap or 0.0) * shifts
    event = link.event(np.zeros(1)).value
    return float(survived.min() + event[0]) * (1.0 + 2.0**-40)


def extent(basis: FloatArray) -> tuple[float, float]:
    """Return the largest norm of a row, and the largest distance between two."""
    norms = np.sum(basis**2, axis=1)
    widest = 0.0
    for start in range(0, norms.size, 1024):
        part = slice(start, start + 1024)
        gaps = norms[part, None] + norms - 2.0 * (basis[part] @ basis.T)
        widest = max(widest, float(gaps.max()))
    return float(np.sqrt(norms.max())), float(np.sqrt(widest))


def gradient_sensitivity(
    radius: float,
    diameter: float,
    data_norm: float,
    cap: float,
    event_slope: float,
    weighed: bool = False,
) -> float:
    """Return S = max over u, u' in {0, VH}, v, v' in {0, V} of the bound on a gradient difference.

    The baseline part is a difference of masses P = u + v' and N = u' + v on rows of the basis: of
    norm at most min(P, N) * diameter + |P - N| * radius. The covariate part has norm at most
    R (|u - v| + |u' - v'|). Weights at most 1 multiply the masses of the two records; the baseline
    part is convex in them, so that weights of 0 and 1 are the worst.
    """
    worst = 0.0
    survived, event = (0.0, cap), (0.0, event_slope)
    weights = (0.0, 1.0) if weighed else (1.0,)
    for u, u2, v, v2 in product(survived, survived, event, event):
        covariates = data_norm * (abs(u - v) + abs(u2 - v2))
        for w, w2 in product(weights, weights):
            plus, minus = w * u + w2 * v2, w2 * u2 + w * v
            baseline = min(plus, minus) * diameter + abs(plus - minus) * radius
            worst = max(worst, float(np.hypot(baseline, covariates)))
    return worst


#: Newton steps towards a knee, of which a handful are usual, before its bracket is halved; and
#: steps in all, more than it takes to halve any bracket of doubles to nothing.
NEWTON_STEPS, MOST_STEPS = 60, 2300
#: Of lower bounds on knees, relative to the size of the baseline.
SLACK = 2.0**-20
#: Distance of the points at which sums are looked up to start from, and the most of them.
LOOKED_UP, MOST_LOOKED_UP = 1.0 / 16.0, 256


def cap_thresholds(
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
        b = np.clip(least_thresholds(a, k, cap), low, high)
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
    """Return which knees are below ``highest``, and a bracket of each with a start inside."""
    lowest = least_thresholds(a, k, cap).min()
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


def least_thresholds(a: FloatArray, k: IntArray, cap: float) -> FloatArray:
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
