"""What a private coefficient says of the one that it stands for: standard errors and intervals."""

from __future__ import annotations

from skdpsurv.inference.indirect import Indirect, Response
from skdpsurv.inference.inference import Inference, Summarised
from skdpsurv.inference.row_moments import (
    CONSTANT,
    REACH,
    CovariateDistribution,
    ReleasedMoments,
    RowMoments,
)

__all__ = [
    "CONSTANT",
    "REACH",
    "CovariateDistribution",
    "Indirect",
    "Inference",
    "ReleasedMoments",
    "Response",
    "RowMoments",
    "Summarised",
]
