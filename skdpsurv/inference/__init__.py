"""What a private coefficient says of the one that it stands for: standard errors and intervals."""

from __future__ import annotations

from skdpsurv.inference.indirect import Indirect, Response
from skdpsurv.inference.inference import Inference, Summarised
from skdpsurv.inference.row_moments import CONSTANT, REACH, ReleasedMoments, RowLaw, RowMoments

__all__ = [
    "CONSTANT",
    "REACH",
    "Indirect",
    "Inference",
    "ReleasedMoments",
    "Response",
    "RowLaw",
    "RowMoments",
    "Summarised",
]
