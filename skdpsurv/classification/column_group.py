r"""How the columns of a record get into the public domain of a linear model.

A record's row is clipped to ``data_norm``; each group of columns is clipped to a bound of its own,
scaled, and gets a constant column for the intercept:

.. math:: x \mapsto \big(\text{factor}\cdot x_{\text{columns}},\ \text{constant}\big),
    \qquad \text{of norm at most } R = \sqrt{(\text{factor}\cdot\text{norm})^2 + \text{constant}^2}.

The constant counts in R and is regularised like the rest: an intercept outside the norm would be
released without protection.

Longer columns may be kept as they are where their record counts less often: :math:`R^2/\|s\|^2`
times, s being all that the model sees of it, the constant too. Those within the bound count once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdpsurv.privacy import clip_rows, row_weights
from skdpsurv.types import FloatArray


@dataclass(frozen=True)
class ColumnGroup:
    """The columns that one linear model sees, and how.

    Parameters
    ----------
    indices : tuple of int
        Columns of X.
    norm : float
        Public bound on the norm of these columns, in the unit of X.
    factor : float
        What they are multiplied with.
    constant : float
        The constant column; 0 for none.
    """

    indices: tuple[int, ...]
    norm: float
    factor: float
    constant: float

    @property
    def n_params(self) -> int:
        """Columns, and one for the constant."""
        return len(self.indices) + (self.constant > 0)

    @property
    def bound(self) -> float:
        """R, the largest norm of what the model sees of a record."""
        return math.hypot(self.factor * self.norm, self.constant)

    def rows(self, X: FloatArray, data_norm: float) -> FloatArray:
        """Return what the model sees of rows that are within ``data_norm`` already."""
        part = X if self.indices == tuple(range(X.shape[1])) else X[:, self.indices]
        if self.norm < data_norm:
            part = clip_rows(part, self.norm)
        seen = np.empty((X.shape[0], self.n_params))
        np.multiply(part, self.factor, out=seen[:, : len(self.indices)])
        seen[:, len(self.indices) :] = self.constant
        return seen

    def weights(self, seen: FloatArray) -> FloatArray:
        """Return how often records count, given what the model sees of each."""
        return row_weights(seen, self.bound)

    def to_model(self, coef: FloatArray, intercept: float) -> FloatArray:
        """Return parameters of the model that predict as coefficients on the scale of X do."""
        constant = [intercept / self.constant] if self.constant else []
        return np.append(coef / self.factor, constant)

    def from_model(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients on the scale of X, and the intercept."""
        coef = parameters[: len(self.indices)] * self.factor
        return coef, float(parameters[-1] * self.constant) if self.constant else 0.0
