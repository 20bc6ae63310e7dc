r"""Discrete-time hazard loss with a cap on each person's cumulative hazard.

A record (x, t, delta) was seen in intervals 1, ..., t of q; delta = 1 if interval t ended in an
event. With the public baseline rows A_s and :math:`\eta_s = A_s a + x\beta`, its loss is

.. math:: \ell(f; z) = \sum_{s \le k} \varphi(\eta_s) + \delta\,\psi(\eta_t), \qquad k = t - \delta

over the k intervals survived (:mod:`skdpsurv.likelihoods.links`). With an entry e, sums are over e
< s <= k, and the loss of a record with e >= t is 0.

With :math:`L_k(b) = \sum_{s \le k} \varphi(A_s a + b)` and :math:`b = x\beta`, the slope of
:math:`L_k` is the person's cumulative hazard (V times it for probit). The loss is linear beyond the
point :math:`b^*_k` where the slope reaches the cap :math:`VH`:

.. math::
    \tilde L_k(b) = L_k(\min(b, b^*_k)) + VH\,\max(0, b - b^*_k)
                  = \inf_{c \ge 0}\Big[\sum_{s \le k} \varphi(A_s a + b - c) + VH\,c\Big]

This infimal convolution is jointly convex in (a, b) and continuously differentiable.

Rows longer than R are scaled down to it, which biases coefficients, or weighted: the loss of such a
record counts :math:`R^2/\|x\|^2` times, so that its score keeps mean 0 given x.

Neighbours: replace-one. Constants and proofs: docs/proofs/discrete_hazard; rounding of computed
gradients: docs/proofs/rounding, theorem 1. Source of the uncapped loss: Nguyen and Hui, arXiv
1708.07436, equation 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.dp.clipping import row_pieces
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods import hazard_kernel as kernel
from skdpsurv.likelihoods.hazard_constants import (
    extent,
    gradient_rounding,
    gradient_sensitivity,
    loss_at_zero,
    predictor_rounding,
)
from skdpsurv.likelihoods.hazard_expansion import FULL, expand
from skdpsurv.likelihoods.links import LOGIT, Link
from skdpsurv.likelihoods.loss import (
    BlockLikelihood,
    Derivatives,
    Linearized,
    PrivacyConstants,
    counted,
    gram,
    weighted_sum,
)


class HazardBlock(NamedTuple):
    """Records sorted by the number of intervals they survived; k is the exit less the event.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    survived : ndarray of int of shape (n,)
        k, ascending.
    event : ndarray of bool of shape (n,)
        Whether there was one; or the number of its cause, 0 for none.
    weight : ndarray of shape (n,) or None
        How often a record counts, at most 1 and at most ``(R / norm of its row)^2``; None: once.
    entered : ndarray of int of shape (n,) or None
        Intervals before the entry, at most k, and ascending where k is equal; None: 0.
    """

    X: FloatArray
    survived: IntArray
    event: BoolArray
    weight: FloatArray | None = None
    entered: IntArray | None = None

    def changed(self, change: Callable[[HazardBlock], HazardBlock]) -> HazardBlock:
        """Return a block with a change made to its records, whose order stays."""
        return change(self)


def hazard_block(
    X: FloatArray, histories: Histories, change: Callable[[FloatArray], FloatArray] | None = None
) -> HazardBlock:
    """Sort records (any order; on a grid) into a block, with ``change`` made to their rows."""
    event, entered = histories.cause, histories.entry
    if entered is not None:
        event = event * histories.at_risk
    survived = histories.exit - event.astype(bool, copy=False)
    # Integers of 16 bits are sorted in a time that does not grow faster than their number.
    short = survived.astype(np.uint16) if survived.max(initial=0) < 2**16 else survived
    if entered is None:
        order = np.argsort(short, kind="stable")
    else:
        entered = np.minimum(entered, survived)
        order = np.lexsort((entered, short))
        entered = entered[order]

    rows = X.take(order, axis=0).astype(np.float64, copy=False)
    if change is not None:
        for piece in row_pieces(*X.shape):
            rows[piece] = change(rows[piece])
    return HazardBlock(rows, survived[order], event[order], entered=entered)


@dataclass(frozen=True)
class DiscreteHazard(BlockLikelihood):
    """Likelihood of exit intervals given covariates.

    Parameters
    ----------
    basis : ndarray of shape (n_intervals, n_basis)
        A, whose columns span the constant. Public.
    n_features : int
        Number of covariates.
    data_norm : float
        R, the public bound on the Euclidean norm of a record's covariates.
    link : Link
        The link; ``event_slope`` is its V.
    max_cumulative_hazard : float or None
        H. None leaves hazards uncapped, H = q, which only the logit link bounds.
    weighted : bool
        True if rows longer than R are weighted; otherwise there are none.
    """

    basis: FloatArray
    n_features: int
    data_norm: float = 1.0
    link: Link = LOGIT
    max_cumulative_hazard: float | None = None
    weighted: bool = False

    @property
    def n_params(self) -> int:
        """Number of coefficients: the baseline's first, then the covariates'."""
        return int(self.basis.shape[1]) + self.n_features

    @property
    def cap(self) -> float | None:
        """VH, the largest slope of the survived part in b."""
        if self.max_cumulative_hazard is None:
            return None
        return self.link.event_slope * self.max_cumulative_hazard

    @property
    def largest_slope(self) -> float:
        """C, a bound on the slope of the survived part in b: the cap, or q where that is less."""
        q, cap = float(self.basis.shape[0]), self.cap
        if self.link.bounded_slope:
            return q if cap is None else min(cap, q)
        if cap is None:
            raise ValueError(
                f"max_cumulative_hazard must be a number with link={self.link.name!r}: its loss "
                "has no bounded gradient without a cap."
            )
        return cap

    @cached_property
    def extent(self) -> tuple[float, float]:
        """Rho and D: the largest norm of a row of the basis, and the largest distance of two."""
        return extent(self.basis)

    @cached_property
    def over_time(self) -> tuple[float, float]:
        """Norm and distance of functions of time that multiply covariates; 0 for none."""
        return 0.0, 0.0

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a record's covariates and products in one interval."""
        return self.data_norm * math.hypot(1.0, self.over_time[0])

    @property
    def largest_rank(self) -> int:
        """Bound on the number of independent rows that one record has over time."""
        return int(self.basis.shape[1])

    @property
    def predictor_terms(self) -> int:
        """Number of roundings of a predictor's products and sums."""
        return self.n_params

    def sensitivity(self, diameter: float) -> float:
        """Return S for baseline rows that are at most ``diameter`` apart."""
        return gradient_sensitivity(
            self.extent[0],
            diameter,
            self.data_norm,
            self.largest_slope,
            self.link.event_slope,
            self.weighted,
            self.over_time,
        )

    @cached_property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record (docs/proofs/discrete_hazard, theorems 1 to 3)."""
        q, link, cap = self.basis.shape[0], self.link, self.largest_slope
        survival_curvature = q * link.curvature_of_slope(cap / q)
        radius, diameter = self.extent
        return PrivacyConstants(
            gradient_sensitivity=self.sensitivity(diameter),
            hessian_trace=(survival_curvature + link.event_curvature)
            * (radius**2 + self.row_norm**2),
            hessian_rank=min(q, self.largest_rank),
            rounding=gradient_rounding(q),
            predictor_rounding=self.predictor_terms + predictor_rounding(link),
            loss_at_zero=loss_at_zero(link, q, self.cap),
        )

    def stated(self) -> dict[str, Any]:
        """Return link, V, grid, rho, D, R and H."""
        radius, diameter = self.extent
        return {
            "kind": "hazard",
            "link": self.link.name,
            "event_slope": self.link.event_slope,
            "n_intervals": self.basis.shape[0],
            "n_basis": self.basis.shape[1],
            "radius": radius,
            "diameter": diameter,
            "data_norm": self.data_norm,
            "n_features": self.n_features,
            "caps": [self.max_cumulative_hazard],
            "weighted": self.weighted,
        }

    def loss_within(self, predictor: float) -> float:
        """Return a bound on a record's loss for baselines within +-``predictor``, no effects."""
        survived = float(self.basis.shape[0]) if self.cap is None else self.cap
        return self.constants.loss_at_zero + (survived + self.link.event_slope) * predictor

    def n_records(self, block: HazardBlock) -> int:
        return int(block.survived.size)

    def losses(self, coef: FloatArray, block: HazardBlock) -> FloatArray:
        a, b = self._predictor(coef, block)
        values = np.zeros_like(b)
        capped, thresholds = self._capped(a, b, block.survived, block.entered)
        inner = np.where(capped, thresholds, b)
        for chunk in kernel.chunks(block.survived, block.entered):
            phi = self.link.survival(a[: chunk.width] + inner[chunk.part, None]).value
            chunk.clear(phi)
            values[chunk.part] = np.sum(phi, axis=1)
        if self.cap is not None:
            values += self.cap * np.where(capped, b - inner, 0.0)
        rows = np.flatnonzero(block.event)
        values[rows] += self.link.event(a[block.survived[rows]] + b[rows]).value
        return values if block.weight is None else values * block.weight

    def derivatives(
        self,
        coef: FloatArray,
        block: HazardBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block, in O(n q) time and O(n + q) memory."""
        A, X = self.basis, block.X
        a, b = self._predictor(coef, block)
        counts = counted(block.weight, weights)
        w = np.broadcast_to(1.0, b.shape) if counts is None else counts
        sums = kernel.KernelSums(self.link, A, a, b, w, block.survived, order, block.entered)
        capped, thresholds = self._capped(a, b, block.survived, block.entered)
        small = kernel.is_small(self.link, a, b)
        if block.entered is not None:
            small[:] = False
        elif self.link.series is not None:
            small &= block.survived > kernel.TERM_COST * self.link.series.slope.size
        long = ~(small | capped)
        if self.link.tiled and block.entered is None:
            cap = np.inf if self.cap is None else self.cap
            for upper, rows in kernel.tiles(self.link, a, b, block.survived, cap, long):
                kernel.add_tile(sums, rows, upper)
                long[rows] = False
        for add, chosen in ((kernel.add_small, small & ~capped), (kernel.add_survived, long)):
            if chosen.size and chosen.all():
                add(sums, slice(None))  # without copies
            elif chosen.any():
                add(sums, np.flatnonzero(chosen))
        hessian_aa = self._add_capped(sums, capped, thresholds)
        self._add_events(sums, block.event)

        gradient = np.concatenate([sums.interval_slope @ A, weighted_sum(sums.slope, X)])
        if order < 2:
            return Derivatives(gradient, None)
        n_basis = A.shape[1]
        hessian = np.empty((gradient.size, gradient.size))
        hessian[:n_basis, :n_basis] = hessian_aa + A.T @ (sums.interval_curvature[:, None] * A)
        hessian[:n_basis, n_basis:] = cross = sums.cross.T @ X
        hessian[n_basis:, :n_basis] = cross.T
        hessian[n_basis:, n_basis:] = gram(X, sums.curvature)
        return Derivatives(gradient, hessian)

    def linearized(
        self, coef: FloatArray, block: HazardBlock, tolerance: float = FULL
    ) -> Linearized:
        """Return the losses, and a function from weights to the weighted sum of gradients.

        In O(n + number of intervals) time without a cap and weights, if the link has an expansion.
        """
        a, b = self._predictor(coef, block)
        expansion = None
        if self.max_cumulative_hazard is None and block.weight is None and block.entered is None:
            expansion = expand(self.link, a, b, tolerance)
        if expansion is None:
            return super().linearized(coef, block)
        losses, slopes = expansion.survived(block.survived)
        rows = np.flatnonzero(block.event)
        last = block.survived[rows]
        event = self.link.event(a[last] + b[rows])
        np.maximum(losses, 0.0, out=losses)  # no less, whatever an expansion leaves over
        losses[rows] += event.value
        slopes[rows] += event.slope

        def gradient(weights: FloatArray) -> FloatArray:
            by_interval = expansion.by_interval(weights, block.survived)
            by_interval += np.bincount(last, weights[rows] * event.slope, by_interval.size)
            return np.concatenate([by_interval @ self.basis, (weights * slopes) @ block.X])

        return Linearized(losses, gradient)

    def _predictor(self, coef: FloatArray, block: HazardBlock) -> tuple[FloatArray, FloatArray]:
        n_basis = self.basis.shape[1]
        return self.basis @ coef[:n_basis], block.X @ coef[n_basis:]

    def _capped(
        self, a: FloatArray, b: FloatArray, survived: IntArray, entered: IntArray | None = None
    ) -> tuple[BoolArray, FloatArray]:
        """Return which records are beyond their cap threshold b*, and the thresholds."""
        if self.cap is None:
            return np.zeros(b.size, dtype=bool), np.array(np.inf)
        thresholds = np.full(b.size, np.inf)
        near = np.flatnonzero(b > kernel.least_thresholds(a, survived, self.cap))
        if entered is not None:
            least = kernel.least_thresholds(a, survived[near], self.cap, entered[near])
            near = near[b[near] > least]
            # Pairs of exit and entry, as one number, in the order of the exits.
            pairs, where = np.unique(
                survived[near] * (a.size + 1) + entered[near], return_inverse=True
            )
            present, first = np.divmod(pairs, a.size + 1)
        else:
            (present, where), first = np.unique(survived[near], return_inverse=True), None
        highest = b[near].max(initial=-np.inf)
        thresholds[near] = kernel.cap_thresholds(self.link, a, present, self.cap, highest, first)[
            where
        ]
        return b > thresholds, thresholds

    def _add_capped(
        self, sums: kernel.KernelSums, capped: BoolArray, thresholds: FloatArray
    ) -> FloatArray:
        """Add the records beyond their threshold: they differ by k alone, so one pass over k.

        With entries they are added one by one.
        """
        A, w, survived = self.basis, sums.weights[capped], sums.survived[capped]
        hessian = np.zeros((A.shape[1], A.shape[1]))
        if self.cap is None or not capped.any():
            return hessian
        sums.slope[capped] += self.cap * w
        entered = None if sums.entered is None else sums.entered[capped]
        if entered is None:
            levels, where = np.unique(survived, return_inverse=True)
            _, mass = kernel.sums_by_level(w, survived)
            at = np.empty(levels.size)
            at[where] = thresholds[capped]
        else:
            levels, mass, at = survived, np.ascontiguousarray(w), thresholds[capped]
        for chunk in kernel.chunks(levels, entered):
            part, width = chunk.part, chunk.width
            slope, curvature = kernel.slopes(self.link, sums.a, at, chunk, sums.order)
            add = np.matmul if entered is None else weighted_sum
            sums.interval_slope[:width] += add(mass[part], slope)
            if curvature is not None:
                sums.interval_curvature[:width] += mass[part] @ curvature
                moment = curvature @ A[:width]
                total = np.maximum(curvature.sum(axis=1), np.finfo(float).tiny)
                mean = moment / total[:, None]  # first: a weight over a tiny total overflows
                hessian -= moment.T @ (mass[part, None] * mean)
        return hessian

    def _add_events(self, sums: kernel.KernelSums, event: BoolArray) -> None:
        rows = np.flatnonzero(event)
        if rows.size == 0:
            return
        last = sums.survived[rows]  # the interval of the event, counted from 0; ascending
        slope, curvature = self.link.event_slopes(sums.a[last] + sums.b[rows], sums.order)
        slope *= sums.weights[rows]
        sums.slope[rows] += slope
        present, by_interval = kernel.sums_by_level(slope, last)
        sums.interval_slope[present] += by_interval
        if curvature is not None:
            curvature *= sums.weights[rows]
            sums.moments[rows] += curvature[:, None] * sums.columns[last]
            _, by_interval = kernel.sums_by_level(curvature, last)
            sums.interval_curvature[present] += by_interval
