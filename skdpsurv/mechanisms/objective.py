r"""Objective perturbation: add a random linear term to the objective, then minimise.

.. math::
    F(f) = \sum_{i=1}^n \ell(f; z_i) + \frac\kappa2\|f - c\|^2 + \langle b, f\rangle,
    \qquad p(b) \propto e^{-\epsilon_b\|b\|_2/S}

Neighbours: replace-one. Sensitivity: S, tau and r of
:class:`~skdpsurv.likelihoods.loss.PrivacyConstants`. Theorem (docs/proofs/objective_perturbation):
the minimiser is :math:`(\epsilon_b + J)`-differentially private with

.. math:: J = r\log\Big(1 + \frac{\tau}{r\kappa}\Big),

one logarithm, where Chaudhuri, Monteleoni and Sarwate (2011) and Nguyen and Hui (2017) pay two. The
release is a point within :math:`g/\kappa` of the minimiser, plus noise that hides the difference at
the price :math:`\epsilon_o`; :math:`\epsilon_b + J + \epsilon_o = \epsilon`. The program satisfies
this with a delta of (1 + e^epsilon) 1e-30 for each noisy vector (docs/proofs/rounding,
docs/proofs/noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdpsurv.likelihoods.loss import PrivacyConstants, Sensitivity
from skdpsurv.mechanisms.newton import (
    LEAST_RIDGE,
    ZERO,
    Center,
    Certificate,
    certifiable_ridge,
    certificate,
    least_where,
)
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
#: This scale in the paper's calibration, whose ridge should be the paper's if possible.
LARGEST_SOLVER_SCALE_PUBLISHED = 1e-2


@dataclass(frozen=True)
class Calibration:
    """Split epsilon; every number is public.

    Parameters
    ----------
    kappa : float
        Ridge strength, in the sum over records.
    linear : NoiseDistribution
        Distribution of b, which hides S for epsilon_b.
    certificate : Certificate
        Conditions on the released point, with g.
    output : NoiseDistribution
        Noise that hides the solver: of scale 2 g / (kappa epsilon_o), or more.
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

    def cost(self, move: Sensitivity) -> float:
        """Return the epsilon that hides a move of gradient and Hessian, and the solver."""
        curvature = max(float(np.log1p(side / self.kappa).sum()) for side in move.sides)
        solver = self.output.cost(2.0 * self.certificate.tolerance / self.kappa)
        return self.linear.cost(move.gradient) + curvature + solver


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
    wanted: float = 0.0,
) -> float:
    """Return a ridge that a solver can work with, however large epsilon or n is.

    It is at least a hundredth of one record's curvature, and enough for the noise that hides the
    solver to have a scale of at most ``solver_scale``. The one ``wanted`` is returned if it will
    do, and is the least.
    """
    norm, ratio = noise.largest_norm(), 0.5 * epsilon_solver * solver_scale
    least = LEAST_RIDGE * constants.hessian_trace

    def tolerance(kappa: float) -> float:
        return certificate(constants, n_records, kappa, norm, center).tolerance

    if wanted >= least and tolerance(wanted) <= ratio * wanted:
        return wanted
    return max(wanted, certifiable_ridge(tolerance, least, ratio))


def calibrate(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float = 0.0,
    *,
    curvature_share: float = 0.1,
    distribution: type[NoiseDistribution] = SphericalLaplace,
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
    distribution : type of NoiseDistribution, default=SphericalLaplace
        Distribution of the noise in the objective.
    center : Center, default=ZERO
        Public bounds on c.

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
        least_noise = distribution.calibrated_to(
            n_params, constants.gradient_sensitivity, (1.0 - share - curvature_share) * epsilon
        )
        solver = share * epsilon
        public = constants, n_records, least_noise, solver
        kappa = least_ridge(*public, center=center, wanted=wanted)
        if kappa == wanted:
            break
    cost = curvature_cost(constants, kappa)
    return split_budget(
        constants, epsilon, n_records, n_params, kappa, cost, distribution, center, share
    )


def calibrate_to_cost(
    constants: PrivacyConstants,
    cost_of: Callable[[float], float],
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float,
) -> Calibration:
    """Calibrate as Algorithm 2 of Nguyen and Hui: at kappa = n alpha unless J exceeds epsilon / 2.

    ``cost_of`` is J as a decreasing function of kappa. Unlike in the paper, epsilon_o is taken out
    of epsilon first, and the ridge is larger where no solver could work with so small a one.
    """
    available = (1.0 - SOLVER_SHARE) * epsilon
    noise = SphericalLaplace.calibrated_to(n_params, constants.gradient_sensitivity, 0.49 * epsilon)
    solver = SOLVER_SHARE * epsilon
    kappa = max(
        n_records * alpha,
        least_ridge(constants, n_records, noise, solver, LARGEST_SOLVER_SCALE_PUBLISHED),
    )
    if cost_of(kappa) > available / 2.0:
        kappa = least_where(lambda ridge: cost_of(ridge) <= available / 2.0, kappa, 200)
    return split_budget(constants, epsilon, n_records, n_params, kappa, cost_of(kappa))


def split_budget(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    kappa: float,
    cost: float,
    distribution: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
    solver_share: float = SOLVER_SHARE,
) -> Calibration:
    """Split epsilon: the solver's share first, then the cost of curvature, the rest to noise."""
    solver = solver_share * epsilon
    epsilon_noise = (epsilon - solver - cost) / MARGIN
    noise = distribution.calibrated_to(n_params, constants.gradient_sensitivity, epsilon_noise)
    return with_solver(constants, n_records, kappa, noise, center, (epsilon_noise, cost, solver))


def with_solver(
    constants: PrivacyConstants,
    n_records: int,
    kappa: float,
    noise: NoiseDistribution,
    center: Center,
    epsilons: tuple[float, float, float],
) -> Calibration:
    """Return a calibration with noise that hides the solver, for the last of the epsilons."""
    certified = certificate(constants, n_records, kappa, noise.largest_norm(), center)
    scale = max(MARGIN * 2.0 * certified.tolerance / (kappa * epsilons[2]), LEAST_NOISE)
    hidden = SphericalLaplace(noise.dimension, scale)
    return Calibration(kappa, noise, certified, hidden, *epsilons)
