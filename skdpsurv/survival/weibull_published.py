r"""The ladder of Nguyen and Hui (2017) to the letter, to compare with: their bounds, their grid.

The fitted shape solves f(p) = g(p), with :math:`f = s_1/s_0`, :math:`g = 1/p + S/N`. With k records
changed, f lies between

.. math::
    f_L^k = \frac{s_1 - k/(ep)}{s_0 - \mathrm{top}_k}, \qquad
    f_U^k = \min\Big(0, \frac{s_1 + k/(ep)}{s_0 + k}\Big)

and g between

.. math::
    g_L^k = \frac1p + \frac{S - k\omega}{N - k}, \qquad
    g_U^k = \frac1p + \min\Big(0, \frac{S + k\omega}{N + k}\Big).

:math:`f_L^k` and :math:`g_L^k` are minus infinity from k = n and k = N on; the caps at 0, which the
paper leaves out, make its Lemma 1 true for every k. Rung k goes from the first node where
:math:`f_U^k \ge g_L^k` to the first where :math:`f_L^k \ge g_U^k`. *First* matters: the second
difference has several roots, and a Newton iteration as in the paper may find one or the other for
neighbouring data sets, which breaks the ladder (docs/proofs/ladder).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdpsurv.mechanisms.ladder import UNIT, first_rung
from skdpsurv.privacy import to_lattice
from skdpsurv.survival.weibull_counts import N_BINS, CountTable, lattice_exponent
from skdpsurv.types import IntArray

#: Cells of the grid on (0, max_shape], of equal width.
N_CELLS_PUBLISHED = 2000


@dataclass(frozen=True)
class PublishedRungs:
    """Rungs of the paper. Sums are of integers, so that bounds are ordered exactly as in theory."""

    table: CountTable
    max_shape: float
    top: int

    @property
    def n_cells(self) -> int:
        """Number of cells; cell j goes from node j to node j + 1."""
        return N_CELLS_PUBLISHED

    def shape_at(self, node: float) -> float:
        """Return the shape at a node."""
        return float(node * self.max_shape / N_CELLS_PUBLISHED)

    def down_to(self, node: int) -> int:
        """Return the first rung that begins in a cell before the node."""
        return int(self._rungs[0][node - 1]) * UNIT if node < self.n_cells else 0

    def up_to(self, node: int) -> int:
        """Return the first rung that ends in a cell after the node."""
        return int(self._rungs[1][node - 1]) * UNIT if node > 0 else 0

    @cached_property
    def _rungs(self) -> tuple[IntArray, IntArray]:
        """For each cell: first rung that begins in it or before, and first that ends after it."""
        begins = np.empty(N_CELLS_PUBLISHED, dtype=np.int64)
        ends = np.empty(N_CELLS_PUBLISHED, dtype=np.int64)
        for cell in range(N_CELLS_PUBLISHED):
            bounds = _Bounds(self.table, self.shape_at(cell + 1))
            begins[cell] = first_rung(bounds.begun, self.top)
            ends[cell] = first_rung(bounds.not_ended, self.top)
        # A rung begins, and ends, at the first crossing.
        return np.minimum.accumulate(begins), np.maximum.accumulate(ends)


class _Bounds:
    """The four bounds at one shape, as functions of k."""

    def __init__(self, table: CountTable, shape: float) -> None:
        counts, grid = table.records, table.log_time
        self.n, self.n_events = table.n_records, int(table.events.sum())
        self.inverse = 1.0 / shape
        # S and omega in bins: integers.
        self.log_sum = -int(table.events @ (N_BINS - np.arange(N_BINS + 1)))
        self.bin_width = table.omega / N_BINS
        exponent = lattice_exponent(self.n, 2.0 * max(1.0, self.inverse))
        exact = np.exp(shape * grid)
        power, first = to_lattice(exact, -exponent), to_lattice(exact * grid, -exponent)
        self.one = 1 << exponent
        self.s0, self.s1 = int(counts @ power), int(counts @ first)
        # No term is below -1/(ep); rounding may take one part of the lattice more.
        self.least = math.ceil(math.ldexp(self.inverse / math.e, exponent)) + 1
        self._power = power
        self._number = np.cumsum(counts[::-1])
        self._powers = np.cumsum((counts * power)[::-1])

    def begun(self, k: int) -> bool:
        """Whether f_U, rising with k, and g_L, falling, have crossed; from some k on they have."""
        return self.upper_left(k) >= self.lower_right(k)

    def not_ended(self, k: int) -> bool:
        """Whether f_L and g_U have not crossed; from some k on they have not."""
        return self.lower_left(k) < self.upper_right(k)

    def top(self, k: int) -> int:
        """Return the sum of the k largest powers."""
        bin_ = int(np.searchsorted(self._number, k))
        spare = int(self._number[bin_]) - k
        return int(self._powers[bin_]) - spare * int(self._power[N_BINS - bin_])

    def lower_left(self, k: int) -> float:
        if k >= self.n or self.s0 <= (top := self.top(k)):
            return -math.inf
        return (self.s1 - k * self.least) / (self.s0 - top)

    def upper_left(self, k: int) -> float:
        above, below = self.s1 + k * self.least, self.s0 + k * self.one
        if above >= 0:
            return 0.0
        # All powers may round to 0: then f is below every bound.
        return above / below if below else -math.inf

    def lower_right(self, k: int) -> float:
        if k >= self.n_events:
            return -math.inf
        mean = (self.log_sum - k * N_BINS) / (self.n_events - k)
        return self.inverse + mean * self.bin_width

    def upper_right(self, k: int) -> float:
        if self.n_events + k == 0:
            return self.inverse
        mean = min(0.0, (self.log_sum + k * N_BINS) / (self.n_events + k))
        return self.inverse + mean * self.bin_width
