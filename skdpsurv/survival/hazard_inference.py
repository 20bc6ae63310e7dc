r"""Standard errors of a hazard model: what they ask of the records, and what is made of it.

Beside the minimiser two things are released for a share of epsilon: a table of exits
(:mod:`~skdpsurv.survival.ways_out`), and the second moments of the rows as the likelihood sees
them, each with its weight and lengthened by a constant. From these follows the truth at which the
minimiser would be expected (:mod:`skdpsurv.inference`).

Neighbours: replace-one. Theorem: the epsilons of table and moments add up to the share
(docs/proofs/inference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.inference import Indirect, Inference, RowMoments
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard
from skdpsurv.mechanisms.perturbation import Perturbed, Problem
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price, amount, left, part
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.survival.spline import to_published
from skdpsurv.survival.ways_out import WaysOut, loss_rates
from skdpsurv.types import FloatArray

#: Part of the epsilon for the table of exits.
TABLE_PART = 0.15


class Scale(NamedTuple):
    """How a minimiser's coordinates come about.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Rows are less this.
    radius : float
        And divided by this.
    basis : ndarray of shape (n_intervals, n_knots)
        Of the baseline.
    """

    mean: FloatArray
    radius: float
    basis: FloatArray

    def change(self) -> FloatArray:
        """Return the matrix that makes published baseline and coefficients of a minimiser."""
        n_intervals, n_knots = self.basis.shape
        published = np.stack([to_published(column, n_knots) for column in self.basis.T], axis=1)
        level = to_published(np.ones(n_intervals), n_knots)
        d = self.mean.size
        change = np.zeros((n_knots + d, n_knots + d))
        change[:n_knots, :n_knots] = published
        change[:n_knots, n_knots:] = -np.outer(level, self.mean) / self.radius
        change[n_knots:, n_knots:] = np.eye(d) / self.radius
        return change


@dataclass(frozen=True)
class HazardInference:
    """What is asked of the records; from public numbers.

    Parameters
    ----------
    moments : RowMoments
    price_of_table : float or Concentrated
    """

    moments: RowMoments
    price_of_table: Price

    @classmethod
    def planned(cls, n_records: int, n_features: int, price: Price) -> Self:
        """Return the queries that have a price together."""
        table = part(price, TABLE_PART)
        return cls(RowMoments.planned(n_records, n_features, left(price, table)), table)

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [2.0 / amount(self.price_of_table), self.moments.query.law.scale]

    def found(
        self,
        problem: Problem,
        minimiser: Perturbed,
        records: Blocks[HazardRecords],
        scale: Scale,
        source: RandomSource,
    ) -> Inference:
        """Release table and moments, and return what they say of the truth.

        Parameters
        ----------
        problem : Problem
            The perturbed minimisation.
        minimiser : Perturbed
            What it released.
        records : Blocks
        scale : Scale
        source : RandomSource
        """
        likelihood: DiscreteHazard = problem.likelihood  # type: ignore[assignment]
        losses = loss_rates(records, likelihood.basis.shape[0], self.price_of_table, source)
        moments = self.moments.release(problem.blocks, source)
        equation = Indirect.after(
            WaysOut(likelihood, losses),
            minimiser.coef,
            minimiser.center,
            problem.calibration,
            moments,
        )
        return Inference.of_found(equation.solve(), scale.change())
