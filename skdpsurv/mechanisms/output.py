r"""Output perturbation: minimise a ridged objective, then add noise to the minimiser.

.. math::
    f^* = \arg\min_f \sum_{i=1}^n \ell(f; z_i) + \frac\kappa2\|f - c\|^2, \qquad
    \text{release } f^* + e,\quad p(e) \propto e^{-\epsilon\|e\|_2/\Delta},\quad
    \Delta = \frac{S + 2g}{\kappa}

Neighbours: replace-one. Sensitivity: the objective is kappa-strongly convex and the gradients of
neighbours differ by at most S, so their exact minimisers differ by at most :math:`S/\kappa`, and
points whose gradients are below g by at most :math:`\Delta`. Theorem: the L2-Laplace mechanism
(docs/proofs/output_perturbation; Chaudhuri, Monteleoni and Sarwate 2011, algorithm 1); of the
program, with a delta of (1 + e^epsilon) 1e-30 (docs/proofs/rounding, docs/proofs/noise). Gaussian
noise of deviation :math:`\Delta/\mu` is :math:`\tfrac12\mu^2`-zCDP instead (docs/proofs/gaussian).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdpsurv.dp.privacy_cost import Concentrated, as_laplace
from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.mechanisms.certificate import ZERO, Center, Certificate, certificate
from skdpsurv.mechanisms.newton import LEAST_RIDGE, Move
from skdpsurv.mechanisms.vector_noise import (
    LEAST_NOISE,
    MARGIN,
    NoiseDistribution,
    SphericalGaussian,
    SphericalLaplace,
)


@dataclass(frozen=True)
class OutputCalibration:
    """Ridge, certified gradient norm and noise scale; all public.

    Parameters
    ----------
    kappa : float
        Ridge strength, in the sum over records.
    certificate : Certificate
        Of g, and of how far out a minimum may be.
    output : NoiseDistribution
        Hides (S + 2 g) / kappa for epsilon, or more.
    """

    kappa: float
    certificate: Certificate
    output: NoiseDistribution
    #: There is no noise in the objective.
    linear: NoiseDistribution | None = None

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.output.scale

    def spent(self, move: Move) -> float:
        """Return what hides the minimisers of gradients so far apart, each of them inexact."""
        return self.output.cost((move.gradient + 2.0 * self.certificate.tolerance) / self.kappa)


def calibrate(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    alpha: float = 0.0,
    *,
    law: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> OutputCalibration:
    r"""Choose the ridge and the noise from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    epsilon : float
        Positive and finite; of Gaussian noise, mu.
    n_records : int
        n, public under replace-one.
    n_params : int
        p, the length of the coefficient vector.
    alpha : float, default=0.0
        Least ridge wanted, on the scale of the mean loss: kappa >= n alpha.
    law : type of NoiseDistribution, default=SphericalLaplace
        Of the noise on the minimiser.
    center : Center, default=ZERO
        What is known of c.

    Returns
    -------
    OutputCalibration

    Notes
    -----
    A small ridge means much noise, of length about :math:`pS/(\kappa\epsilon)`, a large one much
    shrinkage, about :math:`\kappa/n` per unit of curvature. Their product is fixed, so the ridge is
    :math:`\kappa = \sqrt{RIDGE\, n\, p\, S/\epsilon}`.
    """
    gaussian = issubclass(law, SphericalGaussian)
    size = as_laplace(Concentrated(epsilon), n_params) if gaussian else epsilon
    kappa = max(
        n_records * alpha,
        math.sqrt(RIDGE * n_records * n_params * constants.gradient_sensitivity / size),
    )
    return calibrate_at(constants, epsilon, n_records, n_params, kappa, law, center)


#: Found on simulated survival data and flchain; see docs/benchmarks/accuracy.
RIDGE = 0.03


def calibrate_at(
    constants: PrivacyConstants,
    epsilon: float,
    n_records: int,
    n_params: int,
    kappa: float,
    law: type[NoiseDistribution] = SphericalLaplace,
    center: Center = ZERO,
) -> OutputCalibration:
    """Return the calibration at a given ridge, or at the least that a solver can work with."""
    kappa = max(kappa, LEAST_RIDGE * constants.hessian_trace)
    certified = certificate(constants, n_records, kappa, 0.0, center)
    apart = MARGIN * (constants.gradient_sensitivity + 2.0 * certified.tolerance) / kappa
    noise = law.calibrated_to(n_params, apart, epsilon)
    if noise.scale < LEAST_NOISE:  # to hide more than is asked
        noise = law.calibrated_to(n_params, apart * LEAST_NOISE / noise.scale, epsilon)
    return OutputCalibration(kappa, certified, noise)
