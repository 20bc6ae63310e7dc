"""Standard errors and intervals of private coefficients."""

from __future__ import annotations

from skdpsurv.inference.indirect import Indirect, Response
from skdpsurv.inference.inference import Inference, Summarised
from skdpsurv.inference.row_moments import (
    CONSTANT,
    DOWNWEIGHTING_BOUND,
    CovariateDistribution,
    ReleasedMoments,
    RowMoments,
)

__all__ = [
    "CONSTANT",
    "DOWNWEIGHTING_BOUND",
    "CovariateDistribution",
    "Indirect",
    "Inference",
    "ReleasedMoments",
    "Response",
    "RowMoments",
    "Summarised",
]
