"""The noisy table of risk scores over time that recalibrates a released hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy.concentrated import Price
from skdpsurv.privacy.measurement import Known
from skdpsurv.survival.hazard_fit import HazardFit, HazardSum
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.survival.recalibration import fit_table, groups_of, outer_width_of
from skdpsurv.survival.risk_cells import PLACES, RiskCells
from skdpsurv.types import IntArray


def cells_of(fit: HazardFit, known: Known, of_table: Price) -> RiskCells:
    """Return the layout of the table, by released coefficients, a released mean and its price."""
    model, (baseline, coef) = fit.model, known["_fitted"]
    return RiskCells(
        coef,
        baseline,
        LINKS[model.link],
        fit.look(known).mean,
        # Not what a first look says: that is of clipped rows, and the mean's noise takes from it.
        model.data_norm,
        groups_of(model.n_records, of_table),
        outer_width_of(model.n_records, of_table),
    )


class RiskTable(HazardSum):
    """Exits by group of the score, band of time and event."""

    name = "a table of risks over time"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        cells = cells_of(self.fit, known, self.price)
        return records.map_sum(lambda block: cells.counts(*block))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the counts."""
        return {"_risk_table": noisy.astype(np.float64)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskPlaces(HazardSum):
    """Sums of where scores are within their groups, and the recalibration that follows.

    Parameters
    ----------
    of_table : float or Concentrated
        The price of the table.
    """

    of_table: Price

    name = "places in it"
    asked = PLACES  # each record is in one group

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact sums."""
        cells = cells_of(self.fit, known, self.of_table)
        return records.map_sum(lambda block: cells.places(block.X))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return level, course and slope, set right."""
        model = self.fit.model
        found = fit_table(
            cells_of(self.fit, known, self.of_table),
            known["_risk_table"],
            PLACES.values(noisy),
            model.n_records,
            (self.of_table, self.price),
            model.signal(self.fit.epsilon),
        )
        return found.values()
