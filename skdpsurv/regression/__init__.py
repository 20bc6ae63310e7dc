"""Private regressions of an outcome on a linear predictor."""

from __future__ import annotations

from skdpsurv.regression.linear import PrivateLinearModel

__all__ = ["PrivateLinearModel"]
