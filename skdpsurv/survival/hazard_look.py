"""The first look of a hazard fit: a life table, and the mean of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.mechanisms.private_mean import MeanOfRows
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy.measurement import Known
from skdpsurv.survival import hazard_constants as tuned
from skdpsurv.survival.hazard_fit import HazardSum
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.survival.life_table import baseline_from_life_table, life_table_counts
from skdpsurv.types import FloatArray, IntArray


class LifeTable(HazardSum):
    """Exits by band and event, and the baseline that they suggest."""

    name = "a life table"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        exits = records.map(lambda block: (block.interval, block.event))
        return life_table_counts(exits, self.fit.model.n_intervals)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the baseline to shrink to."""
        fit = self.fit
        public = fit.public_look.center[: fit.model.n_knots]
        link, basis = fit.likelihood.link, fit.likelihood.basis
        found = baseline_from_life_table(noisy, self.price, basis, link, public)
        return {"_baseline": fit.moderate(found)}


class RowMean(HazardSum):
    """The mean of the rows, which centres them, and the spread that is left."""

    name = "the mean of the rows"

    def query(self, known: Known) -> MeanOfRows:
        """Return the mean, of rows that are clipped."""
        model = self.fit.model
        return MeanOfRows(model.n_records, model.n_features, model.data_norm)

    def spans(self) -> list[float]:
        """Return the noise in units of ``data_norm``, which is the size that a mean can have."""
        query = self.query({})
        return [query.law(self.price).scale / query.data_norm]

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> FloatArray:
        """Return the exact mean."""
        return self.query(known).mean(records.map(lambda block: block.X))

    def after(self, known: Known, noisy: FloatArray) -> dict[str, Any]:
        """Return the mean, the radius that rows are clipped to, and the spread."""
        model, fit = self.fit.model, self.fit
        mean, spread = self.query(known).shrunk(noisy, self.price)
        spread = max(spread, tuned.SMALLEST_SPREAD * model.data_norm)
        least, most = tuned.INFERENCE_SPREAD if fit.weighed else tuned.SPREAD_RANGE
        wider = least * model.signal(fit.epsilon) ** tuned.SPREAD_POWER
        radius = spread * float(np.clip(wider, least, most))
        return {"_mean": mean, "_radius": radius, "_spread": spread}
