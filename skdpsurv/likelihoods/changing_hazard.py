r"""Hazard loss with covariates whose effects change over time.

The predictor of interval s has, beside the baseline and :math:`x\beta`, products of covariates with
public functions :math:`g_k` of time, a coefficient each:

.. math:: \eta_s = A_s a + x\beta + \sum_{e} \theta_e\, x_{j(e)}\, g_{k(e)}(s).

So a record has a row :math:`(A_s, x, y_s)` in each interval, with :math:`y_s = (x_{j(e)}
g_{k(e)}(s))_e`. The functions of one covariate have together a norm of at most :math:`\bar g` in
each interval and are at most :math:`\Gamma` apart, so that :math:`\|y_s\| \le \bar g R` and
:math:`\|y_s - y_{s'}\| \le \Gamma R`. The capped loss is

.. math:: \inf_{c \ge 0} \Big[\sum_{s \le k} \varphi(\eta_s - c) + VH\,c\Big] + \delta\psi(\eta_t)

where each record has a threshold c of its own. All slopes are computed one by one.

Neighbours: replace-one. Constants and proofs: docs/proofs/discrete_hazard and docs/proofs/rounding,
"effects that change".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods import hazard_kernel as kernel
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.hazard_constants import extent
from skdpsurv.likelihoods.hazard_expansion import FULL
from skdpsurv.likelihoods.links import Curve
from skdpsurv.likelihoods.loss import (
    BlockLikelihood,
    Derivatives,
    Linearized,
    counted,
    gram,
    weighted_sum,
)


@dataclass(frozen=True, eq=False)
class TimeEffects:
    """Which covariates' effects change over time, and by which public functions.

    Parameters
    ----------
    values : ndarray of shape (n_intervals, n_functions)
        The functions in each interval.
    columns, functions : ndarray of int of shape (n_terms,)
        Covariate and function of each product.
    """

    values: FloatArray
    columns: IntArray
    functions: IntArray

    @property
    def n_terms(self) -> int:
        """Number of products, with a coefficient each."""
        return self.columns.size

    def extent(self) -> tuple[float, float]:
        """Return the largest norm of one covariate's functions, and their largest distance."""
        own = [
            extent(self.values[:, self.functions[self.columns == j]])
            for j in np.unique(self.columns)
        ]
        reach, width = (max(each) for each in zip(*own, strict=True))
        return reach, width

    def rows(self, X: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the slope of each record's predictor in each function, (n, n_functions)."""
        found = np.zeros((len(X), self.values.shape[1]))
        for j, k, own in zip(self.columns, self.functions, theta, strict=True):
            found[:, k] += X[:, j] * own
        return found


@dataclass(frozen=True)
class Survived:
    """A chunk's intervals: predictors less the shift beyond the cap, and what follows there."""

    chunk: kernel.Chunk
    shift: FloatArray
    capped: IntArray
    curve: Curve


@dataclass(frozen=True)
class ChangingHazard(DiscreteHazard):
    """Likelihood of exit intervals given covariates, some of whose effects change over time.

    Parameters
    ----------
    effects : TimeEffects
        Coefficients of its products come last.
    """

    effects: TimeEffects = field(kw_only=True)

    @property
    def n_params(self) -> int:
        """Number of coefficients: of the baseline, the covariates, and the products with time."""
        return super().n_params + self.effects.n_terms

    @cached_property
    def over_time(self) -> tuple[float, float]:
        """Norm and distance of the functions of one covariate."""
        return self.effects.extent()

    @property
    def largest_rank(self) -> int:
        """Bound on the number of independent rows that one record has over time."""
        return int(self.basis.shape[1] + self.effects.values.shape[1])

    @property
    def predictor_terms(self) -> int:
        """Number of roundings of a predictor's products and sums."""
        return self.n_params + 4  # two products for each term of y, and one sum more

    def stated(self) -> dict[str, Any]:
        """Return the numbers of constant effects, and those of the functions of time."""
        reach, width = self.over_time
        own = {"reach": reach, "width": width, "n_terms": self.effects.n_terms}
        return {**super().stated(), **own, "n_functions": self.effects.values.shape[1]}

    def losses(self, coef: FloatArray, block: HazardBlock) -> FloatArray:
        a, b, c = self._predictors(coef, block)
        values = np.zeros_like(b)
        for one in self._survived(a, b, c, block):
            one.chunk.clear(one.curve.value)
            values[one.chunk.part] = one.curve.value.sum(axis=1)
            if self.cap is not None:
                values[one.chunk.part] += self.cap * one.shift
        rows, last = self._events(block)
        values[rows] += self.link.event(self._at(a, b, c, rows, last)).value
        return values if block.weight is None else values * block.weight

    def linearized(
        self, coef: FloatArray, block: HazardBlock, tolerance: float = FULL
    ) -> Linearized:
        return BlockLikelihood.linearized(self, coef, block, tolerance)

    def derivatives(
        self,
        coef: FloatArray,
        block: HazardBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block, in O(n q) time."""
        a, b, c = self._predictors(coef, block)
        counts = counted(block.weight, weights)
        w = np.ones(b.size) if counts is None else np.ascontiguousarray(counts)
        G, n_basis = self.effects.values, self.basis.shape[1]
        #: Directions in which a record's predictors move: baseline, level, functions.
        T = np.column_stack([self.basis, np.ones(a.size), G])
        pairs = list(combinations_with_replacement(range(T.shape[1]), 2))
        place = {pair: at for at, pair in enumerate(pairs)}
        products = np.column_stack([T[:, i] * T[:, j] for i, j in pairs])

        slope = np.zeros((b.size, 1 + G.shape[1]))
        by_interval = np.zeros(a.size)
        moments = np.zeros((b.size if order >= 2 else 0, len(pairs)))
        for one in self._survived(a, b, c, block):
            part, width = one.chunk.part, one.chunk.width
            one.chunk.clear(one.curve.slope, one.curve.curvature)
            own = one.curve.slope @ T[:width, n_basis:]
            if self.cap is not None:
                own[one.capped, 0] = self.cap
            slope[part] = own * w[part, None]
            by_interval[:width] += weighted_sum(w[part], one.curve.slope)
            if order >= 2:
                moment = one.curve.curvature @ products[:width]
                _center(moment, one.capped, n_basis, place)
                moments[part] = moment * w[part, None]

        rows, last = self._events(block)
        eta = self._at(a, b, c, rows, last)
        event_slope, event_curvature = self.link.event_slopes(eta, order)
        event_slope *= w[rows]
        slope[rows] += event_slope[:, None] * T[last, n_basis:]
        present, at_event = kernel.sums_by_level(event_slope, last) if rows.size else (last, 0.0)
        by_interval[present] += at_event
        if event_curvature is not None:
            moments[rows] += (event_curvature * w[rows])[:, None] * products[last]

        X = block.X
        varying = [X[:, [j]] for j in self.effects.columns]
        changes = [
            weighted_sum(slope[:, 1 + k], column)
            for k, column in zip(self.effects.functions, varying, strict=True)
        ]
        effect = weighted_sum(np.ascontiguousarray(slope[:, 0]), X)
        gradient = np.concatenate([by_interval @ self.basis, effect, *changes])
        if order < 2:
            return Derivatives(gradient, None)

        def moment_of(i: int, j: int) -> FloatArray:
            return moments[:, place[min(i, j), max(i, j)]]

        # Coefficients in groups that share a direction: (direction, what multiplies it).
        groups = [(i, np.ones((len(X), 1))) for i in range(n_basis)] + [(n_basis, X)]
        groups += [
            (n_basis + 1 + int(k), column)
            for k, column in zip(self.effects.functions, varying, strict=True)
        ]
        hessian, starts = np.empty((gradient.size, gradient.size)), [0]
        for _, columns in groups:
            starts.append(starts[-1] + columns.shape[1])
        for at, (i, left) in enumerate(groups):
            for other, (j, right) in enumerate(groups[at:], at):
                moment = moment_of(i, j)
                is_one = at == other
                found = gram(left, moment) if is_one else (left * moment[:, None]).T @ right
                mine, theirs = (slice(starts[g], starts[g + 1]) for g in (at, other))
                hessian[mine, theirs] = found
                hessian[theirs, mine] = found.T
        return Derivatives(gradient, hessian)

    def _predictors(
        self, coef: FloatArray, block: HazardBlock
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        a, b = self._predictor(coef[: -self.effects.n_terms], block)
        return a, b, self.effects.rows(block.X, coef[-self.effects.n_terms :])

    def _at(
        self, a: FloatArray, b: FloatArray, c: FloatArray, rows: IntArray, last: IntArray
    ) -> FloatArray:
        return np.asarray(a[last] + (b[rows] + (c[rows] * self.effects.values[last]).sum(axis=1)))

    @staticmethod
    def _events(block: HazardBlock) -> tuple[IntArray, IntArray]:
        rows = np.flatnonzero(block.event)
        return rows, block.survived[rows]

    def _survived(
        self, a: FloatArray, b: FloatArray, c: FloatArray, block: HazardBlock
    ) -> Iterator[Survived]:
        """Yield chunks of records with their functions of the predictors less each one's shift."""
        for chunk in kernel.chunks(block.survived, block.entered):
            part, width = chunk.part, chunk.width
            eta = a[:width] + (b[part, None] + c[part] @ self.effects.values[:width].T)
            curve = self.link.survival(eta)
            shift, capped = np.zeros(len(eta)), np.arange(0)
            if self.cap is not None:
                slope = curve.slope.copy()
                chunk.clear(slope)
                capped = np.flatnonzero(slope.sum(axis=1) > self.cap)
            if capped.size:
                some = chunk.some(capped)
                shift[capped] = self._shifts(eta[capped, : some.width], some)
                beyond = self.link.survival(eta[capped] - shift[capped, None])
                for whole, own in zip(curve, beyond, strict=True):
                    whole[capped] = own
            yield Survived(chunk, shift, capped, curve)

    def _shifts(self, eta: FloatArray, chunk: kernel.Chunk) -> FloatArray:
        """Return the c > 0 at which slopes at ``eta - c`` add up to the cap, for each record.

        As thresholds are found in :func:`~skdpsurv.likelihoods.hazard_kernel.cap_thresholds`.
        """
        cap, q = float(self.cap or 0.0), self.basis.shape[0]
        seen = np.ones_like(eta)
        chunk.clear(seen)
        size = np.abs(eta).max(axis=1)
        low = np.zeros(len(eta))
        # Slopes are at most the exponentials of predictors.
        top = np.where(seen > 0.0, eta, -np.inf).max(axis=1)
        total = np.exp(np.where(seen > 0.0, eta, -np.inf) - top[:, None]).sum(axis=1)
        high = np.maximum(top + np.log(total) - np.log(cap), 0.0) + kernel.SLACK * (1.0 + size)
        c = high.copy()
        for step in range(kernel.MOST_STEPS):
            _, slope, curvature = self.link.survival(eta - c[:, None])
            sums, curved = (slope * seen).sum(axis=1), (curvature * seen).sum(axis=1)
            off = sums - cap
            rounded = (self.link.roundings + 1.0) * curved * (size + c)
            rounding = (q + 64.0) * cap + rounded
            if (np.abs(off) <= rounding * 2.0**-53).all():
                break
            low, high = np.where(off >= 0.0, c, low), np.where(off <= 0.0, c, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                new = c + np.log(sums / cap) * sums / curved
            outside = ~((new >= low) & (new <= high)) | (step >= kernel.NEWTON_STEPS)
            c = np.where(outside, low + 0.5 * (high - low), new)
        return np.asarray(c)


def _center(
    moments: FloatArray, rows: IntArray, level: int, place: dict[tuple[int, int], int]
) -> None:
    """Take from the curvature of rows beyond the cap what moves with the shift."""
    if not rows.size:
        return
    own = moments[rows]
    total = np.maximum(own[:, place[level, level]], np.finfo(float).tiny)
    means = {}
    for pair, at in place.items():
        if level in pair:
            means[pair[0] + pair[1] - level] = own[:, at].copy()
    for (i, j), at in place.items():
        moments[rows, at] = own[:, at] - means[i] * means[j] / total
