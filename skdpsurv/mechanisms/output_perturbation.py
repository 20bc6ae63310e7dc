r"""Output perturbation: minimise a ridged objective, then add noise to the minimiser.

.. math::
    f^* = \arg\min_f \sum_{i=1}^n \ell(f; z_i) + \frac\kappa2\|f - c\|^2, \qquad
    \text{release } f^* + e,\quad p(e) \propto e^{-\epsilon\|e\|_2/\Delta},\quad
    \Delta = \frac{S + 2g}{\kappa}

Neighbours: replace-one. Sensitivity: the objective is kappa-strongly convex and gradients of
neighbours differ by at most S, so that exact minimisers differ by at most :math:`S/\kappa`, and
points whose gradients are below g by at most :math:`\Delta`. Theorem: the L2-Laplace mechanism
(docs/proofs/output_perturbation; Chaudhuri, Monteleoni and Sarwate 2011, algorithm 1). The program
has a delta of (1 + e^epsilon) 1e-30 (docs/proofs/rounding, docs/proofs/noise). Gaussian noise of
deviation :math:`\Delta/\mu` is :math:`\tfrac12\mu^2`-zCDP instead (docs/proofs/gaussian).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdpsurv.dp.privacy_cost import Concentrated, as_laplace
from skdpsurv.likelihoods.loss import PrivacyConstants, Sensitivity
from skdpsurv.mechanisms.newton import LEAST_RIDGE, ZERO, Center, Certificate, certificate
from skdpsurv.mechanisms.vector_noise import (
    LEAST_NOISE,
    MARGIN,
    NoiseDistribution,
    SphericalGaussian,
    SphericalLaplace,
)


@dataclass(frozen=True)
class OutputCalibration:
    """Ridge (in the sum over records), certificate and noise on the minimiser; all public."""

    kappa: float
    certificate: Certificate
    output: NoiseDistribution
    linear: NoiseDistribution | None = None

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.output.scale

    def cost(self, move: Sensitivity) -> float:
        """Return the price that hides the inexact minimisers of gradients so far apart."""
        return self.output.cost((move.gradient + 2.0 * self.certificate.tolerance) / self.kappa)


def calibrate(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float = 0.0,
    *,
    distribution: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> OutputCalibration:
    r"""Choose the ridge and the noise from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    epsilon : float
        Positive and finite; mu with Gaussian noise.
    n_records : int
        n, public under replace-one.
    n_params : int
        p, the length of the coefficient vector.
    alpha : float, default=0.0
        Least ridge wanted, on the scale of the mean loss: kappa >= n alpha.
    distribution : type of NoiseDistribution, default=SphericalLaplace
        Distribution of the noise on the minimiser.
    center : Center, default=ZERO
        Public bounds on c.

    Returns
    -------
    OutputCalibration

    Notes
    -----
    Noise has a length of about :math:`pS/(\kappa\epsilon)`, and shrinkage is about :math:`\kappa/n`
    per unit of curvature. A ridge :math:`\kappa = \sqrt{RIDGE\, n\, p\, S/\epsilon}` balances them.
    """
    gaussian = issubclass(distribution, SphericalGaussian)
    size = as_laplace(Concentrated(epsilon), n_params) if gaussian else epsilon
    kappa = max(
        n_records * alpha,
        math.sqrt(RIDGE * n_records * n_params * constants.gradient_sensitivity / size),
    )
    return calibrate_at(constants, epsilon, n_records, n_params, kappa, distribution, center)


#: Found on simulated survival data and flchain; see docs/benchmarks/discrete_time.
RIDGE = 0.03


def calibrate_at(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    kappa: float,
    distribution: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> OutputCalibration:
    """Return the calibration at a given ridge, or at the least that a solver can work with."""
    kappa = max(kappa, LEAST_RIDGE * constants.hessian_trace)
    certified = certificate(constants, n_records, kappa, 0.0, center)
    apart = MARGIN * (constants.gradient_sensitivity + 2.0 * certified.tolerance) / kappa
    noise = distribution.calibrated_to(n_params, apart, epsilon)
    if noise.scale < LEAST_NOISE:  # hide more than necessary
        noise = distribution.calibrated_to(n_params, apart * LEAST_NOISE / noise.scale, epsilon)
    return OutputCalibration(kappa, certified, noise)
