"""Perturbation: how a logistic regression is perturbed, and what is made of the result."""

from __future__ import annotations

from typing import ClassVar

from skdpsurv.checks import Check, Parameters, auto_or, choice, number_in, positive
from skdpsurv.mechanisms.methods import NAMES

__all__ = ["Perturbation"]


class Perturbation(Parameters):
    """How ``DPLogisticRegression(method=...)`` is perturbed.

    A word for ``method`` is this with its defaults.

    Parameters
    ----------
    kind : {"auto", "obj_pert", "noisy_gd", "out_pert"}, default="auto"
        Objective perturbation; noisy gradient descent, which needs a delta; output perturbation
        (simpler, and less accurate). "auto" takes that of the first two which needs less noise, by
        public numbers alone.
    max_residual : float in [0.5, 1] or "auto", default="auto"
        Cap on the residual, label less probability, with which a record can pull at the fit. 1 is
        logistic regression, 0.5 halves the noise. "auto" is 0.5 unless there is very little
        noise. Probabilities allow for the cap; coefficients are log odds ratios at 1 only.
    intercept_scaling : float, default=0.1
        Size, in units of ``data_norm``, of the public constant column whose coefficient makes the
        intercept. It counts in the norm of a row: a large one costs accuracy, a small one means a
        strong penalty on the intercept.
    recalibration_share : float in [0, 1), default=0.1
        Share of epsilon spent, after the coefficients, on a private table of how often they are
        right, which gives ``recalibration_slope_``; 0 leaves it out. Skipped, with nothing spent,
        where n times epsilon is below 600.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.classification import Perturbation
    >>> model = DPLogisticRegression(classes=[0, 1], method=Perturbation(max_residual=1.0))
    >>> model.set_params(method__recalibration_share=0.0).method
    Perturbation(max_residual=1.0, recalibration_share=0.0)
    """

    _rules: ClassVar[dict[str, Check]] = {
        "kind": choice("auto", *NAMES),
        "max_residual": auto_or(number_in(0.5, 1.0)),
        "intercept_scaling": positive(),
        "recalibration_share": number_in(0.0, 1.0, closed="left"),
    }

    def __init__(
        self,
        kind: str = "auto",
        *,
        max_residual: float | str = "auto",
        intercept_scaling: float = 0.1,
        recalibration_share: float = 0.1,
    ) -> None:
        self.kind = kind
        self.max_residual = max_residual
        self.intercept_scaling = intercept_scaling
        self.recalibration_share = recalibration_share
