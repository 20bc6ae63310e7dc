r"""Linear models, and rows whose columns are divided by their public spreads.

Features x with stated centres m and spreads s are read as :math:`z = (x - m)/s`, and clipped to a
radius. A model :math:`a + b^\top z` of such rows is

.. math:: \Big(a - \frac{m^\top b}{s}\Big) + \Big(\frac bs\Big)^\top x

on the scale of the features. All is public, and each row is mapped by itself: the theorem of the
fit, of rows of norm at most the radius, holds for what it reads (docs/proofs/logistic).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.data.shape import row_products
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import ROW_VALUES

#: Radius of rows over the root mean square of their length, and factor of the constant column: of
#: centred rows, only that says how likely classes are (docs/benchmarks/classification).
RADIUS, CONSTANT = 1.0, 3.0


class Coefficients(NamedTuple):
    """Linear models on the scale of X: coef (n_outputs, n_columns), intercept (n_outputs,)."""

    coef: FloatArray
    intercept: FloatArray

    def predictor(self, X: FloatArray) -> FloatArray:
        """Return linear predictors, of shape (n_samples, n_outputs)."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def each_predictor(self, X: FloatArray) -> FloatArray:
        """Return :meth:`predictor`, such that no row changes another row's last digit."""
        products = [row_products(X, coef) for coef in self.coef]
        return np.stack(products, axis=1) + self.intercept


@dataclass(frozen=True, eq=False)
class RowScales:
    """Public centres and spreads of features, of shape (n_features,)."""

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, known: KnownColumns | None, *, centred: bool, shared: bool) -> Self | None:
        """Return stated centres and spreads, or None without spreads; not centred, no centres."""
        if known is None or not known.states_spreads:
            return None
        center, scale = known.scales(shared=shared)
        return cls(center if centred else np.zeros_like(center), scale)

    @property
    def radius(self) -> float:
        """Bound on the norm of scaled rows, whose columns have mean square 1."""
        return RADIUS * math.sqrt(self.scale.size)

    def rows(self, X: FloatArray) -> FloatArray:
        """Return scaled rows, each by itself."""
        return np.asarray((X - self.center) / self.scale)

    def to_features(self, model: Coefficients, indices: Sequence[int]) -> Coefficients:
        """Return a model of some scaled columns on the scale of the features."""
        coef = model.coef / self.scale[[*indices]]
        return Coefficients(coef, model.intercept - coef @ self.center[[*indices]])

    def of_features(self, model: Coefficients, indices: Sequence[int]) -> Coefficients:
        """Return a model on the scale of some features as one of their scaled columns."""
        intercept = model.intercept + model.coef @ self.center[[*indices]]
        return Coefficients(model.coef * self.scale[[*indices]], intercept)

    def values(self) -> dict[str, Any]:
        """Return centre, scale and radius, as a release keeps them."""
        values = self.center, self.scale, np.asarray(self.radius)
        return dict(zip(ROW_VALUES, values, strict=True))
