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
from typing import Any, NamedTuple, Self

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.inference import Indirect, Inference, ReleasedMoments, RowMoments
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy.concentrated import Price
from skdpsurv.privacy.measurement import Known
from skdpsurv.survival.hazard_fit import HazardFit, HazardSum
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.survival.spline import to_published
from skdpsurv.survival.ways_out import WaysOut, exit_counts, loss_rates
from skdpsurv.types import FloatArray, IntArray


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


class ExitCounts(HazardSum):
    """A table of exits, and the rates at which people are lost."""

    name = "a table of exits"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        return exit_counts(records, self.fit.model.n_intervals)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return rates, by block of time."""
        return {"_losses": loss_rates(noisy, self.fit.model.n_intervals)}


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardMoments(RowMoments):
    """Second moments of the rows as the likelihood sees them, and the truth that they tell of.

    Parameters
    ----------
    fit : HazardFit
    """

    fit: HazardFit

    @classmethod
    def planned(cls, fit: HazardFit, price: Price) -> Self:
        """Return the query that has a price."""
        model = fit.model
        return cls(price=price, n_records=model.n_records, n_features=model.n_features, fit=fit)

    def seen(self, known: Known, records: Blocks[HazardRecords]) -> Blocks[Any]:
        """Return weighed rows; exits are not asked for."""
        return self.fit.seen(records, self.fit.look(known))

    def after(self, known: Known, noisy: FloatArray) -> dict[str, Any]:
        """Return baseline and coefficients on the scale of X, with errors, and the cap."""
        look, minimiser = self.fit.look(known), known["_minimiser"]
        likelihood, calibration = self.fit.after(look)
        equation = Indirect.after(
            WaysOut(likelihood, known["_losses"]),
            minimiser.coef,
            minimiser.center,
            calibration,
            ReleasedMoments(self, noisy),
            limit=True,
        )
        scale = Scale(look.mean, look.radius, self.fit.basis)
        found = Inference.of_found(equation.solve(), scale.change()).values()
        # What a released life table chose: post-processing.
        cap = likelihood.max_cumulative_hazard
        return found if cap is None else found | {"inference_cap": np.array([cap])}
