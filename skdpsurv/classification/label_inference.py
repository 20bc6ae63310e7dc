r"""Standard errors of a logistic model: what they ask of the records, and what is made of it.

Beside the minimiser the second moments of the rows as the model sees them are released for a share
of epsilon, each with its weight, and lengthened by a constant C. From these follows the truth at
which the minimiser would be expected (:mod:`skdpsurv.inference`).

Neighbours: replace-one. Theorem: that of the second moments, for rows of norm at most
:math:`\sqrt{1 + C^2}`. In units of the bound, let t be the square of a row's norm and s the
constant column of the model, so that the row's weight is at most :math:`\min(1, (1 + s^2)/(t +
s^2))`. The square of what is released of it is at most :math:`1 + C^2` where :math:`t \le 1`; and
where :math:`t > 1`, :math:`(1 + s^2)(t + C^2)/(t + s^2)` does not grow with t as :math:`C \ge s`,
and is :math:`1 + C^2` at t = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skdpsurv.classification.column_group import ColumnGroup
from skdpsurv.classification.label_response import LabelResponse
from skdpsurv.inference import CONSTANT, Indirect, Inference, RowMoments
from skdpsurv.likelihoods.logistic import LogisticLoss
from skdpsurv.mechanisms.perturbation import Perturbed, Problem
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price
from skdpsurv.types import FloatArray

__all__ = ["LabelInference"]


@dataclass(frozen=True)
class LabelInference:
    """What is asked of the records; from public numbers.

    Parameters
    ----------
    group : ColumnGroup
        All columns, in units of the bound.
    moments : RowMoments
    """

    group: ColumnGroup
    moments: RowMoments

    @classmethod
    def planned(cls, group: ColumnGroup, n_records: int, price: Price) -> Self:
        """Return the query that has a price."""
        constant, d = max(CONSTANT, group.constant), len(group.indices)
        return cls(group, RowMoments.planned(n_records, d, price, constant))

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [self.moments.query.law.scale]

    def found(self, problem: Problem, minimiser: Perturbed, source: RandomSource) -> Inference:
        """Release moments, and return what they say of the truth.

        Parameters
        ----------
        problem : Problem
            The perturbed minimisation.
        minimiser : Perturbed
            What it released.
        source : RandomSource

        Returns
        -------
        Inference
            Of the intercept, if there is one, and of coefficients on the scale of X.
        """
        loss: LogisticLoss = problem.likelihood.loss  # type: ignore[attr-defined]
        moments = self.moments.release(problem.blocks, source)
        equation = Indirect.after(
            LabelResponse(self.group.constant, loss),
            self._constant_first(minimiser.coef),
            self._constant_first(minimiser.center),
            problem.calibration,
            moments,
        )
        sizes = np.full(self.group.n_params, self.group.factor)
        if self.group.constant:
            sizes[0] = self.group.constant
        return Inference.of_found(equation.solve(), np.diag(sizes))

    def _constant_first(self, parameters: FloatArray) -> FloatArray:
        return np.roll(parameters, self.group.n_params - len(self.group.indices))
