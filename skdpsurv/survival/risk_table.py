"""The noisy table of risk scores over time that recalibrates a released hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.sums import HISTOGRAM, CellSums, Histogram
from skdpsurv.privacy.concentrated import Price
from skdpsurv.privacy.measurement import Known, NoisySum
from skdpsurv.survival.hazard_fit import HazardFit
from skdpsurv.survival.hazard_plans import HAZARD_PROOF, HazardRecords
from skdpsurv.survival.recalibration import fit_table, groups_of
from skdpsurv.survival.risk_cells import PLACES, RiskCells
from skdpsurv.types import IntArray


def cells_of(fit: HazardFit, known: Known, whole: Price) -> RiskCells:
    """Return the layout of the table, by released coefficients, a released mean and its price."""
    look, (baseline, coef) = fit.look(known), known["_fitted"]
    size = groups_of(fit.model.n_records, whole)
    return RiskCells(coef, baseline, LINKS[fit.model.link], look.mean, look.spread, size)


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskTable(NoisySum):
    """Exits by group of the score, band of time and event.

    Parameters
    ----------
    price : float or Concentrated
    fit : HazardFit
    whole : float or Concentrated
        The price of the recalibration.
    """

    fit: HazardFit
    whole: Price

    name = "a table of risks over time"
    theorem = HAZARD_PROOF

    def query(self, known: Known) -> Histogram:
        """Return the counts: each record is in one cell."""
        return HISTOGRAM

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        cells = cells_of(self.fit, known, self.whole)
        return records.map_sum(lambda block: cells.counts(*block))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the counts."""
        return {"_risk_table": noisy.astype(np.float64)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskPlaces(NoisySum):
    """Sums of where scores are within their groups, and the recalibration that follows.

    Parameters
    ----------
    price : float or Concentrated
    fit : HazardFit
    whole, of_table : float or Concentrated
        The prices of the recalibration, and of the table.
    """

    fit: HazardFit
    whole: Price
    of_table: Price

    name = "places in it"
    theorem = HAZARD_PROOF

    def query(self, known: Known) -> CellSums:
        """Return the sums: each record is in one group."""
        return PLACES

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact sums."""
        cells = cells_of(self.fit, known, self.whole)
        return records.map_sum(lambda block: cells.places(block.X))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return level, course and slope, set right."""
        model = self.fit.model
        found = fit_table(
            cells_of(self.fit, known, self.whole),
            known["_risk_table"],
            PLACES.values(noisy),
            model.n_records,
            (self.of_table, self.price),
            model.signal(self.fit.epsilon),
        )
        return found.values()
