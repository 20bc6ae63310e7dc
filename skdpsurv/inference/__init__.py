"""What a private coefficient says of the one that it stands for: standard errors and intervals."""

from __future__ import annotations

from skdpsurv.inference.indirect import Indirect, Response
from skdpsurv.inference.inference import Inference
from skdpsurv.inference.row_law import RowLaw
from skdpsurv.inference.row_moments import CONSTANT, REACH, ReleasedMoments, RowMoments
from skdpsurv.inference.summarised import Summarised

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
