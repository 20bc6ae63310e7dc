"""Logistic regressions for tests: parameters of a perturbation go into the method."""

from __future__ import annotations

from typing import Any

from skdpsurv import DPLogisticRegression
from skdpsurv.classification import Perturbation

OWN = ("max_residual", "intercept_scaling", "recalibration_share")


def logistic(*args: Any, **parameters: Any) -> DPLogisticRegression:
    """Return a model, not fitted."""
    own = {name: parameters.pop(name) for name in OWN if name in parameters}
    if own:
        parameters["method"] = Perturbation(parameters.get("method", "auto"), **own)
    return DPLogisticRegression(*args, **parameters)
