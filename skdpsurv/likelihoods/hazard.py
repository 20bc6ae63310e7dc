r"""Discrete-time hazard loss with a cap on each person's cumulative hazard.

A record (x, t, delta) was seen in intervals 1, ..., t of q; delta = 1 if interval t ended in an
event. With the baseline rows A_s (shared, public) and :math:`\eta_s = A_s a + x\beta`, its loss is

.. math:: \ell(f; z) = \sum_{s \le k} \varphi(\eta_s) + \delta\,\psi(\eta_t), \qquad k = t - \delta

over the k intervals survived (links: :mod:`skdpsurv.likelihoods.links`).

The cap. Write :math:`L_k(b) = \sum_{s \le k} \varphi(A_s a + b)` with :math:`b = x\beta`; its slope
is the person's cumulative hazard (for probit: V times it). Beyond the point :math:`b^*_k` where the
slope reaches :math:`VH`, the loss goes on linearly:

.. math::
    \tilde L_k(b) = L_k(\min(b, b^*_k)) + VH\,\max(0, b - b^*_k)
                  = \inf_{c \ge 0}\Big[\sum_{s \le k} \varphi(A_s a + b - c) + VH\,c\Big]

an infimal convolution, hence jointly convex in (a, b) and continuously differentiable.

Rows longer than R are scaled down to it, which biases coefficients, or weighed: the loss of such a
record counts :math:`R^2/\|x\|^2` times. Its score has mean 0 given x as before, and pulls no harder
than a row of length R.

Constants and proofs: docs/proofs/discrete_hazard. Source of the uncapped loss: Nguyen and Hui,
arXiv 1708.07436, equation 3.

How far computed gradients of the hazard likelihood are off: units of the proof.

Theorem 1 of docs/proofs/rounding, for the kernel, series and knees as they are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skdpsurv.dp.checks import CHUNK_ELEMENTS, by_pieces
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.base import (
    LARGEST_BLOCK,
    SUM_DEPTH,
    SUM_ROWS,
    BlockLikelihood,
    Derivatives,
    Linearized,
    PrivacyConstants,
    counted,
    gram,
    weighted_sum,
)
from skdpsurv.likelihoods.hazard_kernel import (
    Sums,
    add_survived,
    cap_thresholds,
    chunks,
    extent,
    gradient_sensitivity,
    least_thresholds,
    loss_at_zero,
    slopes,
    sums_by_level,
)
from skdpsurv.likelihoods.hazard_series import FULL, add_small, add_tile, expand, is_small, tiles
from skdpsurv.likelihoods.links import LOGIT, Link


class HazardBlock(NamedTuple):
    """Records sorted by the number of intervals they survived.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    survived : ndarray of int of shape (n,)
        k, ascending: the exit interval less one for an event.
    event : ndarray of bool of shape (n,)
    weight : ndarray of shape (n,) or None
        How often a record counts, at most 1 and at most ``(R / norm of its row)^2``; None: once.
    """

    X: FloatArray
    survived: IntArray
    event: BoolArray
    weight: FloatArray | None = None


def hazard_block(
    X: FloatArray,
    interval: IntArray,
    event: BoolArray,
    change: Callable[[FloatArray], FloatArray] | None = None,
) -> HazardBlock:
    """Sort records (any order; intervals 1..q) into a block.

    ``change`` is what is done to each row, if anything.
    """
    survived = interval - event
    # Integers of 16 bits are sorted in a time that does not grow faster than their number.
    short = survived.astype(np.uint16) if survived.max(initial=0) < 2**16 else survived
    order = np.argsort(short, kind="stable")

    def rows(piece: slice) -> FloatArray:
        chosen = X[order[piece]]
        return chosen if change is None else change(chosen)

    return HazardBlock(by_pieces(rows, *X.shape), survived[order], event[order])


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
    weighed : bool
        Whether rows longer than R are weighed; else there are none.
    """

    basis: FloatArray
    n_features: int
    data_norm: float = 1.0
    link: Link = LOGIT
    max_cumulative_hazard: float | None = None
    weighed: bool = False

    @property
    def n_params(self) -> int:
        """Baseline coefficients first, then the covariates'."""
        return int(self.basis.shape[1]) + self.n_features

    @property
    def cap(self) -> float | None:
        """VH, the largest slope of the survived part in b."""
        if self.max_cumulative_hazard is None:
            return None
        return self.link.event_slope * self.max_cumulative_hazard

    @cached_property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record (docs/proofs/discrete_hazard, theorems 1 to 3)."""
        q, n_basis = self.basis.shape
        link, cap = self.link, self.cap
        if cap is None:
            if not link.bounded_slope:
                raise ValueError(
                    f"max_cumulative_hazard must be a number with link={link.name!r}: its loss has "
                    "no bounded gradient without a cap."
                )
            cap = float(q)
        elif link.bounded_slope:
            cap = min(cap, float(q))
        survival_curvature = q * link.curvature_of_slope(cap / q)
        radius, diameter = extent(self.basis)
        return PrivacyConstants(
            gradient_sensitivity=gradient_sensitivity(
                radius, diameter, self.data_norm, cap, link.event_slope, self.weighed
            ),
            hessian_trace=(survival_curvature + link.event_curvature)
            * (radius**2 + self.data_norm**2),
            hessian_rank=min(q, n_basis),
            rounding=of_gradients(q),
            predictor_rounding=self.n_params + of_predictors(link),
            loss_at_zero=loss_at_zero(link, q, self.cap),
        )

    def loss_within(self, predictor: float) -> float:
        """Return a bound on a record's loss where covariates have no effect.

        For baselines whose linear predictors are all within +-``predictor``.
        """
        survived = float(self.basis.shape[0]) if self.cap is None else self.cap
        return self.constants.loss_at_zero + (survived + self.link.event_slope) * predictor

    def n_records(self, block: HazardBlock) -> int:
        """Return the number of records in a block."""
        return int(block.survived.size)

    def losses(self, coef: FloatArray, block: HazardBlock) -> FloatArray:
        """Return the loss of each record, in the block's order."""
        a, b = self._predictor(coef, block)
        values = np.zeros_like(b)
        capped, knees = self._capped(a, b, block.survived)
        inner = np.where(capped, knees, b)
        for chunk in chunks(block.survived):
            phi = self.link.survival(a[: chunk.width] + inner[chunk.part, None]).value
            phi[:, chunk.shortest :] *= chunk.tail
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
        """Return gradient and Hessian summed over the block, in O(n q) time and O(n + q) memory.

        Per record only sums of slopes and curvatures over its intervals are needed, and per
        interval only sums over the records at risk; person-period rows are never built.
        """
        A, X = self.basis, block.X
        a, b = self._predictor(coef, block)
        counts = counted(block.weight, weights)
        w = np.ones_like(b) if counts is None else counts
        sums = Sums(b.size, A.shape[1], A.shape[0])
        capped, knees = self._capped(a, b, block.survived)
        small = is_small(self.link, a, b)
        long = ~(small | capped)
        if order < 2 and self.link.tiled and self.cap is not None:
            for upper, rows in tiles(self.link, a, b, block.survived, self.cap, long):
                add_tile(sums, self.link, a, b, w, rows, block.survived, upper)
                long[rows] = False
        for add, chosen in ((add_small, small & ~capped), (add_survived, long)):
            rows = np.flatnonzero(chosen)
            if rows.size:
                add(sums, self.link, A, a, b, w, rows, block.survived, order)
        hessian_aa = self._add_capped(sums, a, w, capped, knees, block.survived, order)
        self._add_events(sums, a, b, w, block, order)

        gradient = np.concatenate([sums.interval_slope @ A, weighted_sum(sums.slope, X)])
        if order < 2:
            return Derivatives(gradient, None)
        hessian_aa += A.T @ (sums.interval_curvature[:, None] * A)
        hessian_ab = sums.cross.T @ X
        hessian_bb = gram(X, sums.curvature)
        return Derivatives(
            gradient, np.block([[hessian_aa, hessian_ab], [hessian_ab.T, hessian_bb]])
        )

    def linearized(
        self, coef: FloatArray, block: HazardBlock, tolerance: float = FULL
    ) -> Linearized:
        """Return losses and weighted gradients, in O(n + q) time where there is no cap."""
        a, b = self._predictor(coef, block)
        expansion = None
        if self.max_cumulative_hazard is None and block.weight is None:
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
        self, a: FloatArray, b: FloatArray, survived: IntArray
    ) -> tuple[BoolArray, FloatArray]:
        """Return which records are beyond their knee b*, and the knees."""
        knees = np.full(b.size, np.inf)
        if self.cap is None:
            return np.zeros(b.size, dtype=bool), knees
        near = np.flatnonzero(b > least_thresholds(a, survived, self.cap))
        present, where = np.unique(survived[near], return_inverse=True)
        highest = b[near].max(initial=-np.inf)
        knees[near] = cap_thresholds(self.link, a, present, self.cap, highest)[where]
        return b > knees, knees

    def _add_capped(
        self,
        sums: Sums,
        a: FloatArray,
        w: FloatArray,
        capped: BoolArray,
        knees: FloatArray,
        survived: IntArray,
        order: int,
    ) -> FloatArray:
        """Add the records beyond their knee: they differ by k alone, so one pass over the k's."""
        A = self.basis
        hessian = np.zeros((A.shape[1], A.shape[1]))
        if self.cap is None or not capped.any():
            return hessian
        sums.slope[capped] += self.cap * w[capped]
        levels, where = np.unique(survived[capped], return_inverse=True)
        _, mass = sums_by_level(w[capped], survived[capped])
        at = np.empty(levels.size)
        at[where] = knees[capped]
        for chunk in chunks(levels):
            part, width = chunk.part, chunk.width
            slope, curvature = slopes(self.link, a, at, chunk, order)
            sums.interval_slope[:width] += mass[part] @ slope
            if curvature is not None:
                sums.interval_curvature[:width] += mass[part] @ curvature
                moment = curvature @ A[:width]
                total = np.maximum(curvature.sum(axis=1), np.finfo(float).tiny)
                hessian -= moment.T @ (moment * (mass[part] / total)[:, None])
        return hessian

    def _add_events(
        self,
        sums: Sums,
        a: FloatArray,
        b: FloatArray,
        w: FloatArray,
        block: HazardBlock,
        order: int,
    ) -> None:
        rows = np.flatnonzero(block.event)
        if rows.size == 0:
            return
        last = block.survived[rows]  # the interval of the event, counted from 0; ascending
        _, slope, curvature = self.link.event(a[last] + b[rows])
        weighted = w[rows, None] * np.column_stack([slope, curvature])
        present, by_interval = sums_by_level(weighted, last)
        sums.slope[rows] += weighted[:, 0]
        sums.interval_slope[present] += by_interval[:, 0]
        if order >= 2:
            sums.curvature[rows] += weighted[:, 1]
            sums.cross[rows] += weighted[:, 1:] * self.basis[last]
            sums.interval_curvature[present] += by_interval[:, 1]


#: Units that a slope is off by, relative to it, whatever the number of intervals, and for each of
#: them. The links' constants, of which the largest is that of the powers of cloglog.
SLOPE_ROUNDING, INTERVAL_ROUNDING = 1500.0, 4.0


def of_predictors(link: Link) -> float:
    """Return the units of 2^-53 that a predictor is off by beside its two products.

    For coefficients and a row of norm 1: its own rounding, that of a series' exponents, or that of
    a knee, at which sums are off by twice 2 j + 1 and slopes by twice j, with j of the link.
    """
    j = link.roundings
    return max(12.0, 4.0 * (2.0 * j + 1.0) + 2.0 * j)


def of_gradients(n_intervals: int) -> float:
    """Return the units of 2^-53 S that a record's gradient and its place in sums are off by.

    Slopes; then either a record's sum over its intervals and the sum over records, or, for the
    baseline, the sums over records of each interval (of pieces, of pieces in a chunk, of chunks)
    and that over intervals. Weights are two roundings.
    """
    q = float(n_intervals)
    slope = SLOPE_ROUNDING + INTERVAL_ROUNDING * q
    rows = min(SUM_ROWS, max(1, CHUNK_ELEMENTS // n_intervals))
    n_chunks = LARGEST_BLOCK / rows + 2.0
    baseline = 2.0 * SUM_ROWS + n_chunks + 2.0 * q
    return slope + 2.0 + max(baseline, SUM_DEPTH)
