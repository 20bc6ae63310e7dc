"""The ways to perturb a minimiser, by the names that estimators give them."""

from __future__ import annotations

from typing import Protocol

from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.mechanisms import objective_perturbation, output_perturbation
from skdpsurv.mechanisms.perturbation import Calibrated
from skdpsurv.mechanisms.vector_noise import NoiseLaw

__all__ = ["CALIBRATIONS", "NAMES"]


class Calibrate(Protocol):
    """How a method spends epsilon on one minimiser, from public numbers."""

    def __call__(
        self,
        constants: PrivacyConstants,
        epsilon: float,
        n_records: int,
        n_params: int,
        alpha: float,
        *,
        law: type[NoiseLaw],
    ) -> Calibrated:
        """Return ridge, tolerance and laws of noise."""


CALIBRATIONS: dict[str, Calibrate] = {
    "obj_pert": objective_perturbation.calibrate,
    "out_pert": output_perturbation.calibrate,
}
NAMES = {"obj_pert": "objective perturbation", "out_pert": "output perturbation"}
