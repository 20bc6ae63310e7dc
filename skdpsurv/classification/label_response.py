"""How labels respond to a linear predictor: the cells of a response, and what they pull.

For :mod:`skdpsurv.inference`. A record has label 1 with the logistic probability of its predictor;
it pulls at a minimiser with its residual there, capped or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from skdpsurv.likelihoods.logistic import LogisticLoss
from skdpsurv.types import FloatArray

__all__ = ["LabelResponse"]

#: The cells.
LABELS = np.array([1.0, -1.0])


@dataclass(frozen=True)
class LabelResponse:
    """Labels 1 and -1, given the coefficient of a constant column, if there is one, and rows.

    Parameters
    ----------
    constant : float
        The constant column; 0 for none.
    loss : LogisticLoss
        That of the fit.
    """

    constant: float
    loss: LogisticLoss

    @cached_property
    def _columns(self) -> FloatArray:
        """What the constant's coefficient and b are multiplied by, shape (k + 1, 1, 1)."""
        columns = [self.constant, 1.0] if self.constant else [1.0]
        return np.array(columns)[:, None, None]

    def _predictor(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(self._columns[:-1, 0, 0] @ a + b)[:, None]

    def chances(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of the labels, and perhaps their derivatives by a and b."""
        eta = self._predictor(a, b)
        chance = special.expit(eta * LABELS)
        if not slopes:
            return chance, np.zeros((0, *chance.shape))
        return chance, self._columns * (chance * chance[:, ::-1] * LABELS)

    def pulls(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives of the capped loss by a and b, for each label."""
        slope, _ = self.loss.derivatives(self._predictor(a, b), LABELS, order=1)
        return self._columns * slope
