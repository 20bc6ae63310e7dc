r"""Ladder mechanism: draw an answer from a public grid, by the records that it is away from.

For each node of a public grid, a *ladder* counts the records that must change before the answer can
be at most there, and before it can be at least there. The level of a cell is the larger of the two
at its ends. One cell is drawn with

.. math:: P(\text{cell}) \propto e^{-\frac\epsilon2\,\text{level}(\text{cell})}.

Neighbours: replace-one. Sensitivity: the caller proves that one record moves ``down_to`` and
``up_to`` by at most 1, and then it moves every level by at most 1, since levels are maxima of them.
Theorem (docs/proofs/ladder): the draw is epsilon-differentially private (exponential mechanism,
McSherry and Talwar 2007; with levels as distances, Nissim, Raskhodnikova and Smith 2007; ladders,
Zhang, Cormode, Procopiuc, Srivastava and Xiao 2015; for the Weibull shape, Nguyen and Hui 2017).

The draw is exact: levels, weights and random numbers are integers.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Protocol

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.noise import RandomSource, drawn_by_source, uniform_below

#: Levels are counted in these parts of one record, so that they can be interpolated.
UNIT = 2**20

#: Levels stop where e^(-epsilon level / 2) has fallen to e^-50, or to e^-150 for a given number.
NEGLIGIBLE, SMALLEST = 50, 150
#: Weights are e^(-x) in units of 2^-384: e^-150 still has 167 bits.
_SCALE = Decimal(2) ** 384
_DECIMAL = Context(prec=130)
#: The part of epsilon that pays for rounding weights to integers: far more than it can cost.
_ROUNDING = Fraction(1, 2**64)
#: Blocks of cells are split until none that is left holds more than this part of all weight.
_FINE_ENOUGH = 6


class LadderLevels(Protocol):
    """Distances of a data set to answers at most, and at least, at the nodes of a public grid."""

    @property
    def n_cells(self) -> int:
        """Cells of the grid; nodes are numbered 0 to ``n_cells``."""

    def down_to(self, node: int) -> int:
        """Count records to change, in parts ``1 / UNIT``, for an answer at most the node."""

    def up_to(self, node: int) -> int:
        """Count records to change, in parts ``1 / UNIT``, for an answer at least the node."""


def highest_level(epsilon: float, n_levels: int | None = None) -> int:
    """Return the public level at which the ladder ends, in parts ``1 / UNIT``.

    It is ``n_levels + 1``, or less where weights do not matter any more.
    """
    if n_levels is None:
        return math.ceil(Fraction(2 * NEGLIGIBLE * UNIT) / Fraction(epsilon))
    return min(
        (int(n_levels) + 1) * UNIT, math.ceil(Fraction(2 * SMALLEST * UNIT) / Fraction(epsilon))
    )


def first_level(reached: Callable[[int], bool], top: int) -> int:
    """Return the least level from which on ``reached`` is true, or ``top`` if that is less."""
    low, high = -1, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@drawn_by_source
def draw_cell(
    ladder: LadderLevels, epsilon: float, source: RandomSource, n_levels: int | None = None
) -> int:
    """Draw a cell of the grid.

    Parameters
    ----------
    ladder : LadderLevels
        Ladder of the private records.
    epsilon : float
        Public, positive and finite.
    source : RandomSource
    n_levels : int or None
        Levels from ``n_levels + 1`` on count as ``n_levels + 1``.

    Returns
    -------
    int
        From 0 to ``ladder.n_cells - 1``.

    Notes
    -----
    The level of a cell is the largest ``max(down_to(b), up_to(a))`` over the blocks [a, b) that
    hold it when the grid is halved again and again, the cell included. If ``down_to`` falls and
    ``up_to`` rises along the grid, that is the cell's own value; if rounding breaks this, the
    maximum still moves by at most 1 between neighbours.

    A block's value bounds the levels inside. Blocks that may hold much weight are halved, one is
    drawn by its bound, a cell in it uniformly, and the cell is accepted with the ratio of its
    weight to the bound. The time depends on the records; it is not part of the guarantee.
    """
    epsilon = positive_number("epsilon", epsilon)
    top = highest_level(epsilon, n_levels)
    rate = Fraction(epsilon) * (1 - _ROUNDING) / (2 * UNIT)
    per_unit = _DECIMAL.divide(Decimal(rate.numerator), Decimal(rate.denominator))

    @cache
    def down_to(node: int) -> int:
        return min(ladder.down_to(node), top)

    @cache
    def up_to(node: int) -> int:
        return min(ladder.up_to(node), top)

    @cache
    def weight(level: int) -> int:
        power = _DECIMAL.exp(_DECIMAL.multiply(per_unit, Decimal(-level)))
        return max(1, int(_DECIMAL.multiply(power, _SCALE)))

    def left(middle: int, level: int) -> int:
        return max(level, down_to(middle))

    def right(middle: int, level: int) -> int:
        return max(level, up_to(middle))

    # A heap of (-weight, first cell, end, level), the heaviest first; single cells are separate.
    total = ladder.n_cells * weight(0)
    blocks = [(-total, 0, ladder.n_cells, 0)]
    cells: list[tuple[int, int, int, int]] = []
    while blocks and -blocks[0][0] * _FINE_ENOUGH > total:
        minus, start, end, level = heapq.heappop(blocks)
        total += minus
        middle = (start + end) // 2
        halves = ((start, middle, left(middle, level)), (middle, end, right(middle, level)))
        for a, b, bound in halves:
            minus = -(b - a) * weight(bound)
            total -= minus
            if b - a > 1:
                heapq.heappush(blocks, (minus, a, b, bound))
            else:
                cells.append((minus, a, b, bound))

    candidates = cells + blocks
    ends = list(itertools.accumulate(-minus for minus, *_ in candidates))
    while True:
        _, start, end, level = candidates[bisect.bisect(ends, uniform_below(total, source))]
        cell = start + uniform_below(end - start, source)
        threshold = uniform_below(weight(level), source)
        while end - start > 1 and threshold < weight(level):
            middle = (start + end) // 2
            if cell < middle:
                end, level = middle, left(middle, level)
            else:
                start, level = middle, right(middle, level)
        if threshold < weight(level):
            return cell
