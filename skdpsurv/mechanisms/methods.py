"""The ways to perturb a minimiser, by the names that estimators give them."""

from __future__ import annotations

from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.mechanisms import noisy_descent, objective_perturbation, output_perturbation
from skdpsurv.mechanisms.certificate import ZERO, Center
from skdpsurv.mechanisms.noisy_descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Calibrated
from skdpsurv.mechanisms.vector_noise import NoiseLaw, SphericalGaussian, SphericalLaplace
from skdpsurv.privacy.concentrated import Concentrated, Price

NAMES = {
    "obj_pert": "objective perturbation",
    "out_pert": "output perturbation",
    "noisy_gd": "noisy gradient descent",
}


#: Those that epsilon alone pays for.
PURE = ("obj_pert", "out_pert")


def candidates(method: str, delta: float) -> list[tuple[str, bool]]:
    """Return the methods that a fit may use, and whether by Gaussian noise.

    Parameters
    ----------
    method : {"auto", "obj_pert", "out_pert", "noisy_gd"}
    delta : float
        0 rules Gaussian noise out.
    """
    pure = {"auto": "obj_pert", "obj_pert": "obj_pert", "out_pert": "out_pert"}
    gaussian = {"auto": "noisy_gd", "noisy_gd": "noisy_gd", "out_pert": "out_pert"}
    found = [(pure[method], False)] if method in pure else []
    return found + ([(gaussian[method], True)] if delta and method in gaussian else [])


def check_delta(method: object, delta: float) -> None:
    """Refuse a method that needs a delta which the estimator has not.

    Raises
    ------
    ValueError
    """
    if not delta and isinstance(method, str) and method == "noisy_gd":
        raise ValueError(
            "delta must be positive with method='noisy_gd': Gaussian noise has no epsilon without."
        )


def calibrate(
    method: str,
    constants: PrivacyConstants,
    price: Price,
    n_records: int,
    n_params: int,
    alpha: float,
    law: type[NoiseLaw] = SphericalLaplace,
    center: Center = ZERO,
) -> Calibrated:
    """Return ridge, certificate and laws of noise, from public numbers.

    Parameters
    ----------
    method : str
        One of ``NAMES``.
    constants : PrivacyConstants
    price : float or Concentrated
        An epsilon, or a mu for Gaussian noise.
    n_records, n_params : int
    alpha : float
        Least ridge wanted, on the scale of the mean loss.
    law : type of NoiseLaw, default=SphericalLaplace
        Of what epsilon pays for.
    center : Center, default=ZERO
        What is known of what coefficients are shrunk to.

    Returns
    -------
    Calibrated
    """
    if not isinstance(price, Concentrated):
        module = objective_perturbation if method == "obj_pert" else output_perturbation
        found: Calibrated = module.calibrate(
            constants, price, n_records, n_params, alpha, law=law, center=center
        )
        return found
    if method == "noisy_gd":
        return noisy_descent.calibrate(
            constants, price.mu, n_records, n_params, alpha, center_norm=center.norm
        )
    return output_perturbation.calibrate(
        constants, price.mu, n_records, n_params, alpha, law=SphericalGaussian, center=center
    )


def deviation(calibration: Calibrated) -> float:
    """Return how much noise there is, in units of a gradient: what two ways are compared by.

    Of a descent that cannot go as far as it should, so many times as much.
    """
    if isinstance(calibration, DescentCalibration):
        return calibration.linear.deviation * calibration.excess
    linear, output = calibration.linear, calibration.output
    if linear is not None:
        return linear.deviation
    return 0.0 if output is None else output.deviation * calibration.kappa
