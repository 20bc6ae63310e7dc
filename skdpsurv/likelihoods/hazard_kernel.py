r"""Sums over records and intervals in the hazard likelihood, and the thresholds of its cap.

Slopes are computed record by interval, a cacheful at a time, or without a loop over intervals where
:math:`\varphi'(a_s + b_i) = \sum_j d_{js} T_j(b_i)`: sums over a record's intervals then need the
cumulative sums of :math:`d_{js}` alone, and sums over the records at risk those of
:math:`w_i T_j(b_i)` by exit.

- Small hazards of many intervals: :math:`T_j(b) = e^{jb}`, by the polynomials of
  :class:`~skdpsurv.likelihoods.links.Series`. Slopes are exact to rounding, curvatures to 1e-6.
- Probit: predictors are cut into tiles of length 1/2, :math:`T_j` are the Lagrange polynomials of
  Chebyshev's nodes in a tile. Tiles are used where predictors are at most 0 and slopes at the upper
  end of the tile add up to no more than the cap, so that errors are relative to the largest
  gradient. Curvatures take the same polynomials.

The cap threshold :math:`b^*_k` of k intervals solves :math:`\sum_{s \le k} \varphi'(a_s + b^*_k) =
VH`. It depends on k and the baseline only. Errors are bounded in docs/proofs/rounding.

With entries, sums are over the intervals after a record's own, and thresholds are of pairs of entry
and exit. All slopes are then computed one by one: a difference of two sums would be of no use where
hazards before the entry are beyond the cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdpsurv.dp.clipping import CHUNK_ELEMENTS, row_pieces
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.links import Link
from skdpsurv.likelihoods.loss import SUM_ROWS, weighted_sum


@dataclass
class KernelSums:
    """Per record: slope and curvature in b, cross derivative in (a, b). Per interval: sums."""

    link: Link
    basis: FloatArray
    a: FloatArray
    b: FloatArray
    weights: FloatArray
    survived: IntArray
    order: int
    entered: IntArray | None = None

    def __post_init__(self) -> None:
        n, q = self.b.size, self.a.size
        self.columns = np.column_stack([self.basis, np.ones(q)])
        self.slope = np.zeros(n)
        self.moments = np.zeros((n if self.order >= 2 else 1, self.columns.shape[1]))
        self.cross, self.curvature = self.moments[:, :-1], self.moments[:, -1]
        self.interval_slope, self.interval_curvature = np.zeros(q), np.zeros(q)


def sums_by_level(values: FloatArray, levels: IntArray) -> tuple[IntArray, FloatArray]:
    """Add up rows by level (ascending) in pieces of SUM_ROWS rows; return levels and sums."""
    starts = np.empty(levels.size, dtype=bool)
    np.not_equal(levels[1:], levels[:-1], out=starts[1:])
    starts[::SUM_ROWS] = True  # the first row among them
    breaks = np.flatnonzero(starts)
    pieces = np.add.reduceat(values, breaks, axis=0)
    present, first = np.unique(levels[breaks], return_index=True)
    return present, np.add.reduceat(pieces, first, axis=0)


#: Records that are worked on together, at most.
CHUNK_ROWS = 8 * SUM_ROWS


class Chunk(NamedTuple):
    """Records that are worked on together, out of arrays sorted by intervals survived.

    ``survived`` are theirs, ascending, and ``width`` the most of them; of ``entered``, if not None,
    they were not seen.
    """

    part: slice
    width: int
    survived: IntArray
    entered: IntArray | None = None

    def some(self, rows: IntArray) -> Chunk:
        """Return some records, ascending: the most that one of them survived is the width.

        Else :meth:`clear` would leave what is beyond the last exit.
        """
        survived = self.survived[rows]
        entered = None if self.entered is None else self.entered[rows]
        width = int(survived[-1])
        return self._replace(width=width, survived=survived, entered=entered)

    def clear(self, *tables: FloatArray | None) -> None:
        """Set what is not from entry to exit to 0, in tables of records by intervals."""
        if self.entered is not None:
            unseen = np.arange(self.width) < self.entered[:, None]
            for table in tables:
                if table is not None:
                    table[unseen] = 0.0
        last = (self.survived[1:] != self.survived[:-1]).nonzero()[0]
        exits = [*self.survived[last].tolist(), self.width]
        for end, exit_, next_exit in zip(last.tolist(), exits, exits[1:], strict=False):
            for table in tables:
                if table is not None:
                    table[: end + 1, exit_:next_exit] = 0.0


def chunks(survived: IntArray, entered: IntArray | None = None) -> Iterator[Chunk]:
    """Cut records, ascending in ``survived``, into chunks that fit a cache; k = 0 has no part."""
    start, n = int(np.searchsorted(survived, 1)), survived.size
    while start < n:
        stop = min(n, start + min(CHUNK_ROWS, max(1, CHUNK_ELEMENTS // int(survived[start]))))
        stop = min(stop, start + max(1, CHUNK_ELEMENTS // int(survived[stop - 1])))
        part = slice(start, stop)
        own = None if entered is None else entered[part]
        yield Chunk(part, int(survived[stop - 1]), survived[part], own)
        start = stop


def slopes(
    link: Link, a: FloatArray, b: FloatArray, chunk: Chunk, order: int
) -> tuple[FloatArray, FloatArray | None]:
    r"""Return :math:`\varphi'(a_s + b_i)`, and at order 2 :math:`\varphi''`; 0 where not seen."""
    slope, curvature = link.survival_outer(a[: chunk.width], b[chunk.part], order)
    chunk.clear(slope, curvature)
    return slope, curvature


def add_survived(sums: KernelSums, rows: IntArray | slice) -> None:
    """Add the intervals survived by the records ``rows``, ascending in ``survived``."""
    ones, b, weights = np.ones(sums.a.size), sums.b[rows], sums.weights[rows]
    entered = None if sums.entered is None else sums.entered[rows]
    for chunk in chunks(sums.survived[rows], entered):
        part, width = chunk.part, chunk.width
        own = part if isinstance(rows, slice) else rows[part]  # a slice is that of all rows
        weight = np.ascontiguousarray(weights[part])
        slope, curvature = slopes(sums.link, sums.a, b, chunk, sums.order)
        sums.slope[own] += weight * (slope @ ones[:width])
        sums.interval_slope[:width] += weighted_sum(weight, slope)
        if curvature is not None:
            sums.moments[own] += weight[:, None] * (curvature @ sums.columns[:width])
            sums.interval_curvature[:width] += weight @ curvature


# ---- Small hazards: powers.


def cumulative(terms: FloatArray) -> FloatArray:
    """Return the sums over s <= k, for k = 0..q, of terms of shape (..., q)."""
    sums = np.zeros((*terms.shape[:-1], terms.shape[-1] + 1))
    np.add.accumulate(terms, axis=-1, out=sums[..., 1:])
    return sums


def over_at_risk(terms: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the sums, by interval, over the records at risk; ``mass`` has their parts by k."""
    at_risk = np.add.accumulate(mass[:, ::-1], axis=1)[:, -2::-1]  # those with k >= s
    return np.asarray(np.einsum("js,js->s", terms, at_risk))


def powers(exponent: FloatArray, n_terms: int) -> FloatArray:
    r"""Return :math:`e^{jx}`, j = 1..n_terms, in rows.

    With top the largest :math:`a_s`, :math:`(u/\theta)^j = e^{j(a_s - \text{top})} e^{j(b_i +
    \text{top} - \log\theta)}`, and both factors are at most 1 for :math:`u \le \theta`.
    """
    raised = np.empty((n_terms, exponent.size))
    raised[0] = base = np.exp(exponent)
    for j in range(1, n_terms):
        np.multiply(raised[j - 1], base, out=raised[j])
    return raised


#: Series do not pay in blocks with fewer records, nor for records with fewer intervals than so
#: many times its terms.
LEAST_RECORDS, TERM_COST = 64, 2


def is_small(link: Link, a: FloatArray, b: FloatArray) -> BoolArray:
    """Return which records have hazards within the link's series in every interval."""
    if link.series is None or b.size < LEAST_RECORDS:
        return np.zeros(b.size, dtype=bool)
    return np.asarray(b <= link.series.log_limit - a.max())


def add_small(sums: KernelSums, rows: IntArray | slice) -> None:
    """Add the intervals survived by records with small hazards, ascending in ``survived``."""
    series, a = sums.link.series, sums.a
    assert series is not None
    n_terms, top = series.slope.size, a.max()
    baseline = powers(a - top, n_terms)
    slope = _terms_last(baseline * series.slope[:, None])
    curvature = _terms_last(baseline[: series.curvature.size] * series.curvature[:, None])

    def records(b: FloatArray) -> FloatArray:
        return _terms_last(powers(b + (top - series.log_limit), n_terms))

    _add_split(sums, rows, records, slope, curvature if sums.order >= 2 else None)


def _add_split(
    sums: KernelSums,
    rows: IntArray | slice,
    records: Callable[[FloatArray], FloatArray],
    slope_terms: FloatArray,
    curvature_terms: FloatArray | None,
) -> None:
    """Add records, of whom none survived more than the first ``width`` intervals.

    ``records`` maps b to :math:`T_j`, shape (n, n_terms). Of :math:`d_{js}`, shape (width,
    n_terms), there are those of curvatures for the first few :math:`T_j`, or None at order 1.
    """
    width, n_terms = slope_terms.shape
    slopes_to = _terms_last(cumulative(slope_terms.T))
    curvatures_to, n_curvature = np.empty((0, width + 1, 0)), 0
    if curvature_terms is not None:
        n_curvature = curvature_terms.shape[1]
        columns = sums.columns[:width].T
        curvatures_to = _terms_last(cumulative(columns[:, None] * curvature_terms.T))

    mass = np.zeros((width + 1, n_terms))  # sums of weighted T_j by k
    b, k, weight = sums.b[rows], sums.survived[rows], sums.weights[rows]
    slope, moments = np.empty(k.size), np.empty((len(curvatures_to), k.size))
    for part in row_pieces(k.size, n_terms):
        here = k[part]
        own = records(b[part])
        slope[part] = np.einsum("np,np->n", own, slopes_to.take(here, axis=0))
        few = np.ascontiguousarray(own[:, :n_curvature])
        for moment, terms in zip(moments, curvatures_to, strict=True):
            moment[part] = np.einsum("np,np->n", few, terms.take(here, axis=0))
        own *= weight[part, None]
        levels, by_level = sums_by_level(own, here)
        mass[levels] += by_level

    sums.slope[rows] += weight * slope
    sums.interval_slope[:width] += over_at_risk(slope_terms.T, mass.T)
    if curvature_terms is not None:
        moments *= weight
        sums.moments[rows] += moments.T
        sums.interval_curvature[:width] += over_at_risk(curvature_terms.T, mass.T[:n_curvature])


def _terms_last(terms: FloatArray) -> FloatArray:
    """Return (..., n_terms, n) as (..., n, n_terms), a record's terms side by side in memory."""
    return np.ascontiguousarray(np.swapaxes(terms, -1, -2))


# ---- Probit: tiles of predictors.

#: Length of a tile and number of its nodes. The proof has these numbers.
LENGTH, N_NODES = 0.5, 20
#: Nodes of tiles further out would be too near to each other, as doubles.
FARTHEST = 1e6
#: A record of a tile takes the time of so many intervals, and a tile that of so many and those of
#: its nodes. Where the long way is faster it is taken, and so it is below so many tiles.
RECORD_COST, TILE_COST, MOST_TILES = 16, 2**14, 32


def tiles(
    link: Link, a: FloatArray, b: FloatArray, k: IntArray, cap: float, chosen: BoolArray
) -> Iterator[tuple[float, IntArray]]:
    """Yield each tile's upper end and its records, of those ``chosen``: below their threshold."""
    gain = k - RECORD_COST
    within = (b <= min(-a.max(), FARTHEST)) & (b >= -FARTHEST)
    left = np.flatnonzero(chosen & within & (gain > 0))
    for _ in range(MOST_TILES):
        if gain[left].sum() < TILE_COST:
            return
        upper = b[left].max()
        slope, _ = link.survival_outer(a, np.array([upper]), 1)
        most = np.searchsorted(np.cumsum(slope[0]), cap, side="right")
        inside = (b[left] >= upper - LENGTH) & (k[left] <= most)
        rows = left[inside]
        if gain[rows].sum() >= TILE_COST + N_NODES * k[rows].max(initial=0):
            yield float(upper), rows
            left = left[~inside]
        else:
            left = left[b[left] < upper - LENGTH / 8.0]


def add_tile(sums: KernelSums, rows: IntArray, upper: float) -> None:
    """Add the intervals survived by the records ``rows`` of a tile, ascending in ``survived``."""
    angles = np.pi * (np.arange(N_NODES) + 0.5) / N_NODES
    nodes = upper - 0.5 * LENGTH * (1.0 - np.cos(angles))
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 1.0)
    scale = 1.0 / gaps.prod(axis=1)
    width = int(sums.survived[rows[-1]])
    slope, curvature = sums.link.survival_outer(sums.a[:width], nodes, sums.order)
    curvature_terms = None if curvature is None else curvature.T
    _add_split(sums, rows, lambda b: _lagrange(b, nodes, scale), slope.T, curvature_terms)


def _lagrange(b: FloatArray, nodes: FloatArray, scale: FloatArray) -> FloatArray:
    """Return Lagrange's polynomials of shape (n, n_nodes), by products from either side."""
    gaps = b - nodes[:, None]
    parts = np.empty_like(gaps)
    parts[0] = below = 1.0
    for j in range(1, nodes.size):  # four times faster than multiply.accumulate
        np.multiply(parts[j - 1], gaps[j - 1], out=parts[j])
    for part, gap in zip(parts[::-1], gaps[::-1], strict=True):
        part *= below
        below = below * gap
    parts *= scale[:, None]
    return _terms_last(parts)


# ---- Thresholds of the cap.

#: Newton steps towards a threshold, before its bracket is halved; and steps in all, more than it
#: takes to halve any bracket of doubles to nothing.
NEWTON_STEPS, MOST_STEPS = 60, 2300
#: Lower bounds on thresholds are lowered by this, relative to the size of the baseline.
SLACK = 2.0**-20
#: Distance of the points at which sums are looked up to start from, and the most of them.
LOOKED_UP, MOST_LOOKED_UP = 1.0 / 16.0, 256


def cap_thresholds(
    link: Link,
    a: FloatArray,
    counts: IntArray,
    cap: float,
    highest: float = np.inf,
    entered: IntArray | None = None,
) -> FloatArray:
    """Return the threshold of each k in ``counts``; inf where sums of slopes never reach the cap.

    With ``entered``, it is that of the intervals from there to k, which ascends. For a link without
    a series, and without ``entered``, it is also inf where it would be above ``highest``.

    Newton's method on the logarithm of the sum, inside a shrinking bracket. It ends when sums
    differ from the cap by no more than rounding (docs/proofs/rounding). But for that, the answer
    depends on the baseline and on public numbers only.
    """
    thresholds = np.full(counts.size, np.inf)
    number = counts if entered is None else counts - entered
    todo = np.flatnonzero(number > (cap if link.bounded_slope else 0.0))
    if todo.size == 0:
        return thresholds
    k, start = counts[todo], None if entered is None else entered[todo]
    if start is not None:
        level = link.slope_inverse(cap / number[todo])
        low, high = (level - _over(most, a, start, k) for most in (np.maximum, np.minimum))
        b = np.clip(least_thresholds(a, k, cap, start), low, high)
    elif link.series is None and highest < np.inf:
        reached, low, b, high = _look_up(link, a, k, cap, highest)
        todo, k = todo[reached], k[reached]
    else:
        level = link.slope_inverse(cap / k)
        low = level - np.maximum.accumulate(a)[k - 1]  # every slope is at most cap / k
        high = level - np.minimum.accumulate(a)[k - 1]  # every slope is at least cap / k
        b = np.clip(least_thresholds(a, k, cap), low, high)
    size = np.max(np.abs(a))
    for step in range(MOST_STEPS):
        total, curvature = _sums(link, a, b, k, start)
        off = total - cap
        rounded = (link.roundings + 1.0) * curvature * (size + np.abs(b))
        rounding = (a.size + 64.0) * cap + rounded
        if (np.abs(off) <= rounding * 2.0**-53).all():
            break
        low = np.where(off <= 0.0, b, low)
        high = np.where(off >= 0.0, b, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = b - np.log(total / cap) * total / curvature
        outside = ~((new >= low) & (new <= high)) | (step >= NEWTON_STEPS)
        b = np.where(outside, low + 0.5 * (high - low), new)
    thresholds[todo] = b
    return thresholds


def _look_up(
    link: Link, a: FloatArray, k: IntArray, cap: float, highest: float
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Return which thresholds may be below ``highest``; and their low ends, starts, high ends."""
    lowest = least_thresholds(a, k, cap).min()
    n_points = int(min(max((highest - lowest) / LOOKED_UP, 1.0), MOST_LOOKED_UP - 1.0)) + 2
    points = np.linspace(lowest, max(highest, lowest), n_points)
    slope, slope_change = link.survival_outer(a, points, 2)
    assert slope_change is not None
    total, curvature = (np.cumsum(each, axis=1)[:, k - 1] for each in (slope, slope_change))
    reached = total[-1] >= (1.0 - SLACK) * cap
    total, curvature = total[:, reached], curvature[:, reached]
    right = np.clip(np.sum(total < cap, axis=0), 1, n_points - 1)
    ends, which = (right - 1, right), np.arange(right.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Hermite's cubic for b as a function of the logarithm of the sum.
        (u0, u1), (d0, d1) = (
            [each[end, which] for end in ends] for each in (np.log(total / cap), total / curvature)
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


def _sums(
    link: Link, a: FloatArray, b: FloatArray, k: IntArray, entered: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of slopes and of curvatures of the first k intervals, at each b."""
    total, total_curvature = np.empty(k.size), np.empty(k.size)
    for chunk in chunks(k, entered):
        slope, curvature = slopes(link, a, b, chunk, 2)
        assert curvature is not None
        total[chunk.part], total_curvature[chunk.part] = slope.sum(axis=1), curvature.sum(axis=1)
    return total, total_curvature


def _over(function: np.ufunc, a: FloatArray, entered: IntArray, k: IntArray) -> FloatArray:
    """Return a function, such as the maximum, over the intervals from each entry to exit."""
    ends = np.column_stack([entered, k]).ravel()
    return np.asarray(function.reduceat(np.append(a, a[-1]), ends)[::2])


def least_thresholds(
    a: FloatArray, k: IntArray, cap: float, entered: IntArray | None = None
) -> FloatArray:
    r"""Return a lower bound on the threshold of each k, close where hazards are small.

    All links have :math:`\varphi'(\eta) \le e^\eta`, so a threshold is at least where
    :math:`e^b \sum_{s \le k} e^{a_s}` reaches the cap; inf for k = 0.
    """
    if entered is None:
        total = np.concatenate([[-np.inf], np.logaddexp.accumulate(a)])[k]
    else:
        total = np.where(entered < k, _over(np.logaddexp, a, entered, k), -np.inf)
    return np.asarray(np.log(cap) - total - SLACK * (1.0 + np.max(np.abs(a))))
