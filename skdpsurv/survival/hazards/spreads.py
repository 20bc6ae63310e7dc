"""The rows of a pilot: their mean, or means and spreads of all columns in one query."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.moments import SHRINKAGE, ColumnMoments, MeanOfRows
from skdpsurv.survival.hazards.fit import HazardSum
from skdpsurv.survival.hazards.model import Records

#: Largest deviation of the noise on a mean, beside half the width of bounds, at which spreads are
#: asked for; and the share of epsilon for the pilot if they are.
LARGEST_NOISE, SPREADS_SHARE = 0.3, 0.15
#: Smallest spread of centred rows, relative to ``data_norm``.
SMALLEST_SPREAD = 0.25


def spreads_query(n_records: int, known: KnownColumns) -> ColumnMoments:
    """Return the query for the means and spreads of columns."""
    n_squares = int((~known.two_valued).sum())
    return ColumnMoments(n_records, known.two_valued.size, n_squares, known.squared_move)


def spreads_pay(n_records: int, known: KnownColumns | None, price: Price) -> bool:
    """Say whether columns have public ends, unknown spreads, and means that noise does not hide."""
    if known is None or known.is_complete:
        return False
    return spreads_query(n_records, known).deviation(price) <= LARGEST_NOISE


class RowMean(HazardSum):
    """The mean of the rows, which centres them, and the remaining row scale."""

    name = "the mean of the rows"

    def query_for(self, context: Context) -> MeanOfRows:
        """Return the mean of clipped rows."""
        model = self.fit.model
        return MeanOfRows(model.n_records, model.n_features, model.data_norm)

    def scales(self) -> list[float]:
        """Return the noise relative to ``data_norm``, the largest norm of a mean."""
        query = self.query_for({})
        return [query.distribution(self.price).scale / query.data_norm]

    def exact_answer(self, context: Context, records: Records) -> FloatArray:
        """Return the exact mean of the clipped rows."""
        return self.query_for(context).mean(records.map(lambda block: block.X))

    def postprocess(self, context: Context, noisy: FloatArray) -> dict[str, Any]:
        """Return mean, clipping norm and row scale."""
        fit, stated = self.fit, self.fit.stated_scales
        mean, spread = self.query_for(context).shrunk(noisy, self.price)
        if stated is not None:
            return fit.scaled_rows(mean, stated[1])
        spread = max(spread, SMALLEST_SPREAD * fit.model.data_norm)
        radius = fit.radius(spread)
        return {"_mean": mean, "_radius": radius, "_spread": spread, "_scales": None}


class ColumnSpreads(HazardSum):
    """The means of columns and of their squares, and the centres and spreads that follow."""

    name = "means and spreads of the columns"

    @property
    def known(self) -> KnownColumns:
        """What is public of the columns."""
        known = self.fit.known
        assert known is not None
        return known

    def query_for(self, context: Context) -> ColumnMoments:
        return spreads_query(self.fit.model.n_records, self.known)

    def scales(self) -> list[float]:
        return [self.query_for({}).distribution(self.price).scale]

    def exact_answer(self, context: Context, records: Records) -> FloatArray:
        known = self.known
        units = records.map(lambda block: known.units(block.X))
        return self.query_for(context).mean(units, ~known.two_valued)

    def postprocess(self, context: Context, noisy: FloatArray) -> dict[str, Any]:
        """Return centre, spread, clipping norm and row scale, each shrunk to what is public."""
        known, query = self.known, self.query_for(context)
        noise = query.deviation(self.price) ** 2
        mean, square = query.moments(noisy)
        second = np.ones_like(mean)
        second[~known.two_valued] = square
        of_square = np.where(known.two_valued, 0.0, noise / query.square_weight**2)
        error = of_square + 4.0 * mean**2 * noise + 2.0 * noise**2
        variance = known.variances(second - mean**2 + noise, error)
        # As James and Stein shrink a mean, in part (:data:`SHRINKAGE`), to the stated centre.
        start = np.nan_to_num(known.center, nan=0.0)
        moved = mean - start
        square_length = max(float(moved @ moved), 1e-300)
        kept = max(0.0, 1.0 - SHRINKAGE * mean.size * noise / square_length)
        center = np.clip(start + kept * moved, -1.0, 1.0)
        shared = not self.fit.has_inference
        return self.fit.scaled_rows(*known.in_features(center, variance, shared=shared))
