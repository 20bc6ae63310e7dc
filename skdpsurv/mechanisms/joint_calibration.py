r"""Calibrate several models of the same records, on parts of each record, with one budget.

Model k sees part k of every record and is perturbed by noise :math:`b_k` of its own,

.. math::
    p(b_1, \dots, b_K) \propto \exp\Big(-\epsilon_b \sum_k a_k\|b_k\| \big/ h\Big),
    \qquad h = \max\Big\{\sum_k a_k t_k :\ t_k \le S_k,\ \|t\|_2 \le S\Big\}

with public weights :math:`a_k`. Neighbours: replace-one. Sensitivity: the gradients of one record
in model k differ by at most :math:`S_k`, and all of them together, as one vector, by at most S.
Theorem (docs/proofs/stacking): the K minimisers together are
:math:`(\epsilon_b + J)`-differentially private with

.. math::
    J = \max\Big\{\sum_k r_k\log\Big(1 + \frac{v_k}{r_k\kappa_k}\Big) :\
        v_k \le \tau_k,\ \sum_k v_k \le \tau\Big\}.

With :math:`S = \sum S_k` and :math:`\tau = \sum\tau_k`, bounds on the parts alone, this is Guo et
al. (2018, theorem 4) with one logarithm in place of two. A bound on the whole record makes h
smaller by up to a factor :math:`\sqrt K`, and J by up to K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms.newton import Center, least_where
from skdpsurv.mechanisms.objective import (
    SOLVER_SHARE,
    Calibration,
    curvature_cost,
    least_ridge,
    with_solver,
)
from skdpsurv.mechanisms.vector_noise import MARGIN, NoiseDistribution, SphericalLaplace


@dataclass(frozen=True)
class CalibratedPart:
    """What a joint calibration needs of one of the models.

    The model's noise is proportional to 1 / ``weight``, which is a_k. ``ridge`` is the least
    kappa_k wanted; ``center_norm`` is the public norm of the centre that it is shrunk towards.
    """

    constants: PrivacyConstants
    n_params: int
    weight: float
    ridge: float
    center_norm: float = 0.0


def joint_sensitivity(parts: Sequence[CalibratedPart], whole: float) -> float:
    """Return h, the largest weighted sum of gradient differences.

    ``whole`` is S, the bound on all gradient differences together; inf for none. At the maximum t
    is proportional to a, but for the parts that are at their bound.
    """
    ordered = sorted(parts, key=lambda p: p.constants.gradient_sensitivity / p.weight)
    total, square = 0.0, whole**2
    for k, part in enumerate(ordered):
        weights = math.hypot(*(p.weight for p in ordered[k:]))
        bound, remaining = part.constants.gradient_sensitivity, math.sqrt(max(square, 0.0))
        if part.weight * remaining <= bound * weights:
            return (total + weights * remaining) * MARGIN
        total += part.weight * bound
        square -= bound**2
    return total * MARGIN


def joint_curvature_cost(
    constants: Sequence[PrivacyConstants], ridges: Sequence[float], whole: float
) -> float:
    """Return J, or slightly more; ``whole`` is tau, the bound on the sum of the traces, or inf.

    J is concave in v, so that its Lagrange dual at any level bounds it from above. An inexact level
    costs accuracy and never privacy.
    """
    alone = [curvature_cost(c, kappa) for c, kappa in zip(constants, ridges, strict=True)]
    if whole >= math.fsum(c.hessian_trace for c in constants):
        return math.fsum(alone) * MARGIN

    def traces(level: float) -> list[float]:
        return [
            min(max(c.hessian_rank * (level - kappa), 0.0), c.hessian_trace)
            for c, kappa in zip(constants, ridges, strict=True)
        ]

    low, high = min(ridges), max(ridges) + max(c.hessian_trace for c in constants)
    for _ in range(50):
        level = 0.5 * (low + high)
        low, high = (level, high) if math.fsum(traces(level)) < whole else (low, level)
    spent = traces(high)
    costs = (
        c.hessian_rank * math.log1p(v / (c.hessian_rank * kappa))
        for c, kappa, v in zip(constants, ridges, spent, strict=True)
    )
    return (math.fsum(costs) + abs(whole - math.fsum(spent)) / high) * MARGIN


def calibrate_jointly(
    parts: Sequence[CalibratedPart],
    whole: PrivacyConstants | None,
    epsilon: float,
    n_records: int,
    *,
    curvature_share: float = 0.1,
    distribution: type[NoiseDistribution] = SphericalLaplace,
) -> list[Calibration]:
    """Split epsilon between the noise of all models, their curvature and their solvers.

    Parameters
    ----------
    parts : sequence of Part
    whole : PrivacyConstants or None
        Bounds on all parts of one record together: on the norm of the stacked gradients'
        difference, and on the sum of the traces. None: only the parts are bounded.
    epsilon : float
        For all models together; positive and finite.
    n_records : int
        n, public under replace-one.
    curvature_share : float, default=0.1
        Share of epsilon that J may use; all ridges are as large as that needs.
    distribution : type of NoiseDistribution, default=SphericalLaplace
        Distribution of the noise in each objective. Noise of model k hides h for epsilon a_k;
        together they hide all differences whose weighted sum is at most h.

    Returns
    -------
    list of Calibration
        One for each model, with the epsilons that it would cost alone.
    """
    constants = [part.constants for part in parts]
    sensitivity = joint_sensitivity(parts, whole.gradient_sensitivity if whole else math.inf)
    trace = whole.hessian_trace if whole else math.inf
    least_noise = (1.0 - SOLVER_SHARE - curvature_share) * epsilon
    wanted = []
    for part in parts:
        noise = distribution.calibrated_to(part.n_params, sensitivity, least_noise * part.weight)
        solver, center = _each_solver(parts, epsilon), Center(part.center_norm)
        public = part.constants, n_records, noise, solver
        wanted.append(least_ridge(*public, center=center, wanted=part.ridge))
    ridges = affordable_ridges(constants, wanted, trace, curvature_share * epsilon)
    cost = joint_curvature_cost(constants, ridges, trace)
    epsilon_noise = ((1.0 - SOLVER_SHARE) * epsilon - cost) / MARGIN
    noises = [
        distribution.calibrated_to(part.n_params, sensitivity, epsilon_noise * part.weight)
        for part in parts
    ]
    return with_noise(parts, ridges, noises, epsilon, n_records)


def with_noise(
    parts: Sequence[CalibratedPart],
    ridges: Sequence[float],
    noises: Sequence[NoiseDistribution],
    epsilon: float,
    n_records: int,
) -> list[Calibration]:
    """Return calibrations at given ridges, with noise that hides inexact minima.

    The ``noises`` may cost ``(1 - SOLVER_SHARE) * epsilon`` together; the solvers, certified one by
    one, have the rest.
    """
    each_solver = _each_solver(parts, epsilon)
    calibrations = []
    for part, kappa, noise in zip(parts, ridges, noises, strict=True):
        constants, center = part.constants, Center(part.center_norm)
        noise_cost = noise.cost(constants.gradient_sensitivity)
        epsilons = noise_cost, curvature_cost(constants, kappa), each_solver
        calibrations.append(with_solver(constants, n_records, kappa, noise, center, epsilons))
    return calibrations


def _each_solver(parts: Sequence[CalibratedPart], epsilon: float) -> float:
    return SOLVER_SHARE * epsilon / len(parts) / MARGIN


def affordable_ridges(
    constants: Sequence[PrivacyConstants], wanted: Sequence[float], whole: float, budget: float
) -> list[float]:
    """Return the ridges wanted, raised to the least level at which J is within the budget."""

    def raised(level: float) -> list[float]:
        return [max(kappa, level) for kappa in wanted]

    def affordable(level: float) -> bool:
        return joint_curvature_cost(constants, raised(level), whole) <= budget

    least = min(wanted)
    return raised(least if affordable(least) else least_where(affordable, least, 40))
