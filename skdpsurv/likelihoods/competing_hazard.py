r"""Discrete-time hazards of competing causes: one capped hazard loss for each cause, stacked.

A record (x, t, c) was seen in intervals 1, ..., t of q, the last of which ended in an event of
cause c of J, or in none (c = 0). Cause j is compared with those who survive (Begg and Gray 1984):
the record survived k = t - (c > 0) intervals, and its interval with an event of another cause is
left out. With coefficients :math:`f = (f_1, \dots, f_J)`, :math:`f_j = (a_j, \beta_j)`,

.. math:: \ell(f; z) = \sum_{j=1}^J \ell_{H_j}(f_j; x, k, [c = j])

where :math:`\ell_H` is the loss of :mod:`~skdpsurv.likelihoods.hazard` with the logit link and the
cap H. So :math:`\exp(\eta_j) = h_j / h_0`, with :math:`h_0` the probability of no event.

One record has one x and at most one event, so its gradients in all problems together, as one
vector, move by less than J times one of them. Caps that sum to H make that about as little as one
problem with the cap H.

Neighbours: replace-one. Constants and proofs: docs/proofs/competing_risks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.links import LOGIT, Link
from skdpsurv.likelihoods.loss import BlockLikelihood, Derivatives, PrivacyConstants


@dataclass(frozen=True)
class CompetingHazard(BlockLikelihood):
    """Likelihood of exit intervals and causes given covariates.

    Blocks are those of one cause, whose ``event`` holds the number of the cause, 0 for none.

    Parameters
    ----------
    basis : ndarray of shape (n_intervals, n_basis)
        A, whose columns span the constant. Public.
    n_features : int
        Number of covariates.
    caps : tuple of float, or of None
        H_j of each cause. None leaves the hazards of a cause uncapped.
    data_norm : float
        R, the public bound on the Euclidean norm of a record's covariates.
    weighted : bool
        True if rows longer than R are weighted; otherwise there are none.
    """

    basis: FloatArray
    n_features: int
    caps: tuple[float | None, ...]
    data_norm: float = 1.0
    weighted: bool = False

    @cached_property
    def causes(self) -> tuple[DiscreteHazard, ...]:
        """The likelihood of each cause against surviving."""
        public = self.basis, self.n_features, self.data_norm, LOGIT
        return tuple(DiscreteHazard(*public, cap, self.weighted) for cap in self.caps)

    @property
    def link(self) -> Link:
        """The link of a cause against surviving."""
        return LOGIT

    @property
    def max_cumulative_hazard(self) -> float | None:
        """H, the sum of the caps; None without caps."""
        caps = [cap for cap in self.caps if cap is not None]
        return math.fsum(caps) if len(caps) == len(self.caps) else None

    @property
    def n_params(self) -> int:
        """Number of coefficients: of each cause in turn, baseline first."""
        return sum(cause.n_params for cause in self.causes)

    @cached_property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record (docs/proofs/competing_risks, theorems 1 and 2)."""
        parts = [cause.constants for cause in self.causes]
        q, n_causes = float(self.basis.shape[0]), len(parts)
        caps = [cause.largest_slope for cause in self.causes]
        curved = math.fsum(q * LOGIT.curvature_of_slope(cap / q) for cap in caps)
        radius, diameter = self.causes[0].extent
        how = radius, diameter, self.data_norm, caps, self.weighted
        return PrivacyConstants(
            gradient_sensitivity=stacked_sensitivity(*how),
            hessian_trace=(curved + LOGIT.event_curvature) * (radius**2 + self.data_norm**2),
            hessian_rank=sum(part.hessian_rank for part in parts),
            rounding=math.sqrt(n_causes) * max(part.rounding for part in parts),
            predictor_rounding=max(part.predictor_rounding for part in parts),
            loss_at_zero=math.fsum(part.loss_at_zero for part in parts),
        )

    def stated(self) -> dict[str, Any]:
        """Return the numbers of one cause, and the caps of all."""
        return {**self.causes[0].stated(), "caps": list(self.caps)}

    def loss_within(self, predictor: float) -> float:
        """Return a bound on a record's loss for baselines within +-``predictor``, no effects."""
        return math.fsum(cause.loss_within(predictor) for cause in self.causes)

    def split(self, coef: FloatArray) -> list[FloatArray]:
        """Return the coefficients of each cause."""
        return np.split(coef, len(self.caps))

    def n_records(self, block: HazardBlock) -> int:
        return int(block.survived.size)

    def losses(self, coef: FloatArray, block: HazardBlock) -> FloatArray:
        found = np.zeros(block.survived.size)
        for j, (cause, own) in enumerate(zip(self.causes, self.split(coef), strict=True), 1):
            found += cause.losses(own, of_cause(block, j))
        return found

    def derivatives(
        self,
        coef: FloatArray,
        block: HazardBlock,
        weights: FloatArray | None = None,
        order: int = 2,
    ) -> Derivatives:
        """Return gradient and Hessian summed over the block; no two causes have a curvature."""
        found = [
            cause.derivatives(own, of_cause(block, j), weights, order)
            for j, (cause, own) in enumerate(zip(self.causes, self.split(coef), strict=True), 1)
        ]
        gradient = np.concatenate([one.gradient for one in found])
        if order < 2:
            return Derivatives(gradient, None)
        hessian, start = np.zeros((gradient.size, gradient.size)), 0
        for one in found:
            own = slice(start, start := start + one.gradient.size)
            hessian[own, own] = one.hessian
        return Derivatives(gradient, hessian)


def of_cause(block: HazardBlock, cause: int) -> HazardBlock:
    """Return the records as those who survive, and those with an event of one cause, see them."""
    return block._replace(event=block.event == cause)


def stacked_sensitivity(
    radius: float, diameter: float, data_norm: float, caps: Sequence[float], weighted: bool = False
) -> float:
    r"""Return S, the bound on the distance of two records' gradients in all causes together.

    With :math:`u_j \in \{0, H_j\}`, :math:`v = e_c` or 0 and :math:`a_j = u_j - v_j` of one record,
    u', v' and a' of the other, and :math:`P_j = u_j + v_j'`, :math:`N_j = u_j' + v_j`,

    .. math:: S^2 = \max \sum_j \big(\min(P_j, N_j) D + |P_j - N_j| \rho\big)^2
              + R^2 \max_{\sigma = \pm1} \sum_j (a_j + \sigma a_j')^2 .

    Given both events and the sign, each cause has its own largest term. Weights at most 1 multiply
    u and v, and u' and v', of all causes in P and N: those of 0 and 1 are the worst.
    """
    either = 0.0, 1.0

    def largest(cap: float, sign: float, v: float, v2: float, w: float, w2: float) -> float:
        found = []
        for u, u2 in product((0.0, cap), repeat=2):
            plus, minus = w * u + w2 * v2, w2 * u2 + w * v
            baseline = min(plus, minus) * diameter + abs(plus - minus) * radius
            found.append(baseline**2 + (data_norm * (u - v + sign * (u2 - v2))) ** 2)
        return max(found)

    worst, n_causes = 0.0, len(caps)
    weights = either if weighted else (1.0,)
    for sign, w, w2 in product((1.0, -1.0), weights, weights):
        terms = np.array(
            [[[largest(cap, sign, v, v2, w, w2) for v2 in either] for v in either] for cap in caps]
        )
        where = np.arange(n_causes)
        for cause, other in product(range(n_causes + 1), repeat=2):  # the last one is none
            chosen = terms[where, (where == cause).astype(int), (where == other).astype(int)]
            worst = max(worst, math.fsum(chosen))
    return math.sqrt(worst)
