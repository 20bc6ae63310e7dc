r"""Objective perturbation: add a random linear term to the objective, then minimise.

.. math::
    F(f) = \sum_{i=1}^n \ell(f; z_i) + \frac\kappa2\|f - c\|^2 + \langle b, f\rangle,
    \qquad p(b) \propto e^{-\epsilon_b\|b\|_2/S}

Neighbours: replace-one. Sensitivity: S, tau and r of
:class:`~skdpsurv.likelihoods.base.PrivacyConstants`. Theorem (docs/proofs/objective_perturbation):
the minimiser is :math:`(\epsilon_b + J)`-differentially private with

.. math:: J = r\log\Big(1 + \frac{\tau}{r\kappa}\Big),

one logarithm, where Chaudhuri, Monteleoni and Sarwate (2011) and Nguyen and Hui (2017) pay two.
What is released is a point within :math:`g/\kappa` of the minimiser plus noise that hides the
difference at the price :math:`\epsilon_o`; :math:`\epsilon_b + J + \epsilon_o = \epsilon`. Of the
program this holds with a delta of (1 + e^epsilon) 1e-30 for each noisy vector
(docs/proofs/rounding, docs/proofs/noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.mechanisms.certificate import (
    ZERO,
    Center,
    Certificate,
    certifiable_ridge,
    certificate,
)
from skdpsurv.mechanisms.newton import LEAST_RIDGE, Move
from skdpsurv.mechanisms.vector_noise import (
    LEAST_NOISE,
    MARGIN,
    NoiseDistribution,
    SphericalLaplace,
)

#: Share of epsilon kept to hide that minima are found inexactly; and the share where the first
#: would need a larger ridge, as with a million records.
SOLVER_SHARE, LARGEST_SOLVER_SHARE = 1e-3, 1e-2
#: The largest scale of the solver's noise: see ``least_ridge``.
LARGEST_SOLVER_SCALE = 3e-4
#: The same scale for the published calibration, whose ridge should be the paper's if it can be.
LARGEST_SOLVER_SCALE_PUBLISHED = 1e-2


@dataclass(frozen=True)
class Calibration:
    """How epsilon is spent; every number is public.

    Parameters
    ----------
    kappa : float
        Ridge strength, in the sum over records.
    linear : NoiseDistribution
        Of b, which hides S for epsilon_b.
    certificate : Certificate
        g, the certified norm of the gradient at the point released, and how far out that may be.
    output : NoiseDistribution
        Of the noise that hides it: of scale 2 g / (kappa epsilon_o), or more.
    epsilon_noise, epsilon_curvature, epsilon_solver : float
        epsilon_b, J and epsilon_o; they add up to epsilon.
    """

    kappa: float
    linear: NoiseDistribution
    certificate: Certificate
    output: NoiseDistribution
    epsilon_noise: float
    epsilon_curvature: float
    epsilon_solver: float

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.linear.scale

    @property
    def solver_scale(self) -> float:
        """Size of the noise that hides the solver."""
        return self.output.scale

    def spent(self, move: Move) -> float:
        """Return what hides a move of the gradient, and of the Hessian, and the solver."""
        bent = max(float(np.log1p(side / self.kappa).sum()) for side in move.sides)
        solver = self.output.cost(2.0 * self.certificate.tolerance / self.kappa)
        return self.linear.cost(move.gradient) + bent + solver


def curvature_cost(constants: PrivacyConstants, kappa: float) -> float:
    """Return J = r log(1 + tau / (r kappa))."""
    r = constants.hessian_rank
    return r * math.log1p(constants.hessian_trace / (r * kappa))


def smallest_ridge(constants: PrivacyConstants, cost: float) -> float:
    """Return the kappa at which J equals ``cost``; 0 where that is below every double."""
    r = constants.hessian_rank
    return constants.hessian_trace / (r * math.expm1(cost / r)) if cost / r < 700.0 else 0.0


def least_ridge(
    constants: PrivacyConstants,
    n_records: int,
    noise: NoiseDistribution,
    epsilon_solver: float,
    solver_scale: float = LARGEST_SOLVER_SCALE,
    center: Center = ZERO,
) -> float:
    """Return a ridge that a solver can work with, however large epsilon or n is.

    A hundredth of one record's curvature, and enough for the noise that hides the solver to have a
    scale of at most ``solver_scale``.
    """
    norm = noise.largest_norm()
    return certifiable_ridge(
        lambda kappa: certificate(constants, n_records, kappa, norm, center).tolerance,
        LEAST_RIDGE * constants.hessian_trace,
        0.5 * epsilon_solver * solver_scale,
    )


def calibrate(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float = 0.0,
    *,
    curvature_share: float = 0.1,
    law: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> Calibration:
    """Split epsilon between the noise, the curvature and the solver, from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    epsilon : float
        Positive and finite.
    n_records : int
        n, public under replace-one.
    n_params : int
        p, the length of the coefficient vector.
    alpha : float, default=0.0
        Least ridge wanted, on the scale of the mean loss: kappa >= n alpha.
    curvature_share : float, default=0.1
        Share of epsilon that J may use; the ridge is as large as that needs.
    law : type of NoiseDistribution, default=SphericalLaplace
        Of the noise in the objective.
    center : Center, default=ZERO
        What is known of c.

    Returns
    -------
    Calibration
    """
    wanted = max(
        n_records * alpha,
        smallest_ridge(constants, curvature_share * epsilon),
        LEAST_RIDGE * constants.hessian_trace,
    )
    for share in (SOLVER_SHARE, LARGEST_SOLVER_SHARE):
        least_noise = law.calibrated_to(
            n_params, constants.gradient_sensitivity, (1.0 - share - curvature_share) * epsilon
        )
        solver = share * epsilon
        kappa = max(wanted, least_ridge(constants, n_records, least_noise, solver, center=center))
        if kappa == wanted:
            break
    cost = curvature_cost(constants, kappa)
    return split_budget(constants, epsilon, n_records, n_params, kappa, cost, law, center, share)


def calibrate_to_cost(
    constants: PrivacyConstants,
    cost_of: Callable[[float], float],
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float,
) -> Calibration:
    """Calibrate as Algorithm 2 of Nguyen and Hui: at kappa = n alpha unless J exceeds epsilon / 2.

    The ridge is larger where no solver could work with so small a one, at epsilon beyond 30 or so.

    Parameters
    ----------
    constants : PrivacyConstants
    cost_of : callable
        J as a decreasing function of kappa.
    epsilon : float
    n_records : int
    n_params : int
    alpha : float
        Lambda of the paper; may be 0.

    Returns
    -------
    Calibration
        With epsilon_o taken out of epsilon first, which the paper leaves out.
    """
    available = (1.0 - SOLVER_SHARE) * epsilon
    noise = SphericalLaplace.calibrated_to(n_params, constants.gradient_sensitivity, 0.49 * epsilon)
    solver = SOLVER_SHARE * epsilon
    kappa = max(
        n_records * alpha,
        least_ridge(constants, n_records, noise, solver, LARGEST_SOLVER_SCALE_PUBLISHED),
    )
    if cost_of(kappa) > available / 2.0:
        low, high = kappa, 2.0 * kappa
        while cost_of(high) > available / 2.0:
            low, high = high, 2.0 * high
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if cost_of(middle) > available / 2.0 else (low, middle)
        kappa = high
    return split_budget(constants, epsilon, n_records, n_params, kappa, cost_of(kappa))


def split_budget(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    kappa: float,
    cost: float,
    law: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
    solver_share: float = SOLVER_SHARE,
) -> Calibration:
    """Give the solver its sliver, the curvature its cost, and the noise all the rest."""
    solver = solver_share * epsilon
    epsilon_noise = (epsilon - solver - cost) / MARGIN
    noise = law.calibrated_to(n_params, constants.gradient_sensitivity, epsilon_noise)
    return with_solver(constants, n_records, kappa, noise, center, (epsilon_noise, cost, solver))


def with_solver(
    constants: PrivacyConstants,
    n_records: int,
    kappa: float,
    noise: NoiseDistribution,
    center: Center,
    epsilons: tuple[float, float, float],
) -> Calibration:
    """Return a calibration, with the noise that hides the solver.

    The epsilons are those of the noise, of the curvature and of the solver.
    """
    certified = certificate(constants, n_records, kappa, noise.largest_norm(), center)
    scale = max(MARGIN * 2.0 * certified.tolerance / (kappa * epsilons[2]), LEAST_NOISE)
    hidden = SphericalLaplace(noise.dimension, scale)
    return Calibration(kappa, noise, certified, hidden, *epsilons)
