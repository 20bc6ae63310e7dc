r"""Standard errors of a logistic model, from second moments of its rows.

Beside the minimiser the second moments of the rows as the model sees them are released for a share
of epsilon, each row with its weight, and lengthened by a constant C. From these follows the truth
at which the minimiser would be expected (:mod:`skdpsurv.inference`).

Neighbours: replace-one. Theorem: as for second moments, for rows of norm at most
:math:`\sqrt{1 + C^2}`. In units of the bound, let t be the square of a row's norm and s the
constant column of the model, so that the row's weight is at most :math:`\min(1, (1 + s^2)/(t +
s^2))`. Its squared norm, weighted and lengthened, is at most :math:`1 + C^2` if :math:`t \le 1`;
and if :math:`t > 1`, :math:`(1 + s^2)(t + C^2)/(t + s^2)` does not grow with t as :math:`C \ge s`,
and is :math:`1 + C^2` at t = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import special

from skdpsurv.classification.logistic_measurements import GroupFit
from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price, stated_price
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import CONSTANT, Indirect, MomentRows, Part, ReleasedMoments, RowMoments
from skdpsurv.likelihoods.linear import LogisticLoss

#: Signs of the two labels, the outcomes of a response.
LABELS = np.array([1.0, -1.0])


@dataclass(frozen=True)
class LabelResponse:
    """How labels 1 and -1 respond to the coefficient of a constant column, if any, and to rows.

    ``constant`` is that column, 0 for none; ``loss`` is the loss of the fit.
    """

    constant: float
    loss: LogisticLoss

    @cached_property
    def _columns(self) -> FloatArray:
        """Factors of the constant's coefficient and of b, shape (k + 1, 1, 1)."""
        columns = [self.constant, 1.0] if self.constant else [1.0]
        return np.array(columns)[:, None, None]

    def _predictor(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(self._columns[:-1, 0, 0] @ a + b)[:, None]

    def outcome_probabilities(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return probabilities of the labels, and perhaps their derivatives by a and b."""
        likely = special.expit(self._predictor(a, b) * LABELS)
        if not slopes:
            return likely, np.zeros((0, *likely.shape))
        return likely, self._columns * (likely * likely[:, ::-1] * LABELS)

    def record_scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives of the capped loss by a and b, for each label."""
        slope, _ = self.loss.derivatives(self._predictor(a, b), LABELS, order=1)
        return self._columns * slope

    def expected_curvature(self, a: FloatArray, b: FloatArray, likely: FloatArray) -> FloatArray:
        """Return derivatives by a and b of each row's expected score, (n, k + 1, k + 1)."""
        curvature: Any = self.loss.derivatives(self._predictor(a, b), LABELS, order=2)[1]
        columns = self._columns[:, 0, 0]
        return np.outer(columns, columns) * (curvature * likely).sum(axis=1)[:, None, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelMoments(RowMoments):
    """Second moments of the rows of a logistic model of all columns, and standard errors."""

    fit: GroupFit

    @classmethod
    def planned(cls, fit: GroupFit, price: Price) -> Self:
        """Return the measurement of second moments that goes with a fit, at a price."""
        (group,) = fit.groups
        constant = max(CONSTANT, group.constant)
        d = len(group.indices)
        return cls(price=price, n_records=fit.n_records, n_features=d, constant=constant, fit=fit)

    def stated(self) -> dict[str, Any]:
        """Return the price, for the guarantee."""
        return stated_price("inference", self.price)

    def seen(self, context: Context, records: Blocks[Any]) -> Blocks[MomentRows]:
        """Return the rows as the fit weights them; labels are not read."""
        blocks = self.fit.problems(records)[0].blocks
        return blocks.map(lambda block: MomentRows(block.X, block.weight))

    def postprocess(self, context: Context, noisy: FloatArray) -> dict[str, Any]:
        """Return intercept, if there is one, and coefficients on the scale of X, with errors."""
        (group,), (calibration,) = self.fit.groups, self.fit.calibrations
        minimiser, constants = context["_minimiser"], group.n_params - len(group.indices)
        response = LabelResponse(group.constant, LogisticLoss(self.fit.max_residual))
        found = np.roll(minimiser.coef, constants), np.roll(minimiser.center, constants)
        moments = ReleasedMoments(self, noisy)
        equation = Indirect.after([Part(response)], *found, calibration, moments)
        sizes = np.full(group.n_params, group.factor)
        sizes[:constants] = group.constant
        change = np.diag(sizes)
        if (scales := self.fit.scales) is not None:
            change[constants:] /= scales.scale[:, None]
            change[:constants] -= scales.center @ change[constants:]
        return equation.solve().in_coordinates(change).values() | moments.values(self.n_records)
