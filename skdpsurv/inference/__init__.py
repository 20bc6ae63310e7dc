"""Standard errors and intervals of private coefficients."""

from __future__ import annotations

from skdpsurv.inference.covariates import CovariateDistribution, Derivation
from skdpsurv.inference.expected_scores import Part, Response
from skdpsurv.inference.indirect import Indirect
from skdpsurv.inference.row_moments import (
    CONSTANT,
    DOWNWEIGHTING_BOUND,
    MomentRows,
    ReleasedMoments,
    RowMoments,
    least_noise,
)
from skdpsurv.inference.uncertainty import ROW_VALUES, Inference, Summarised

__all__ = [
    "CONSTANT",
    "DOWNWEIGHTING_BOUND",
    "ROW_VALUES",
    "CovariateDistribution",
    "Derivation",
    "Indirect",
    "Inference",
    "MomentRows",
    "Part",
    "ReleasedMoments",
    "Response",
    "RowMoments",
    "Summarised",
    "least_noise",
]
