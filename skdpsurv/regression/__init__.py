"""Private regressions of an outcome on a linear predictor."""

from __future__ import annotations

from skdpsurv.regression.tabular import PrivateLinearModel

__all__ = ["PrivateLinearModel"]
