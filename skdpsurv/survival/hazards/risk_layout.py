"""The public layout of a table of risks: strata, groups of the score, bands of time and outcomes.

The layout follows from what was released before, so that the cell of a record, and its position in
the group, are functions of that record alone (docs/proofs/discrete_time).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.data.shape import row_products
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.links import Link
from skdpsurv.mechanisms.sums import HISTOGRAM, CellSums

#: Query of positions: p and 2 p^2 - 1/4 move by at most 1 in L2 (docs/proofs/discrete_time).
POSITIONS = CellSums(0.75, distance=1.0)

# Tuned constants (docs/benchmarks/absolute_risk).
#: Most groups of scores and bands of time, and the ends of groups in guessed standard deviations.
N_GROUPS, END = 6, 2.4
#: Fewest groups and bands; records per noise of a count from which there are more; their growth.
LEAST_GROUPS, RECORDS_TO_NOISE, GROWTH = 3, 45.0, 0.4
#: Width of outer groups in inner ones: its range, and records per noise from which it grows.
OUTER_WIDTHS, RECORDS_TO_WIDEN = (2.0, 5.0), 300.0
#: Bands hold equal shares of released events, with this weight, and of time.
EVENTS_PART = 0.75
#: Largest linear predictor; range of the scores' guessed standard deviation.
ETA_RANGE, SMALLEST_SCALE, LARGEST_SCALE = 30.0, 1e-6, 1e100


@dataclass(eq=False)
class RiskLayout:
    """Public layout of a risk table: released coefficients and baseline, and guesses about rows.

    ``spread`` guesses the root mean square distance of rows from the mean, or holds the deviation
    of each column. ``n_groups`` is also the
    number of bands; outer groups are ``outer_width`` inner ones wide, for positions in them.
    """

    coef: FloatArray
    baseline: FloatArray
    link: Link
    mean: FloatArray
    spread: FloatArray | float
    n_groups: int = N_GROUPS
    outer_width: float = 2.0
    has_entry: bool = False

    def __post_init__(self) -> None:
        q = self.n_intervals = self.baseline.shape[-1]
        #: Strata, each with a baseline: the table has their groups one after another.
        self.n_strata = self.baseline.size // q
        self.n_bands = min(self.n_groups, q)
        #: Classes of entry: from the start, and with late entries by band.
        self.n_classes = 1 + self.has_entry * self.n_bands
        #: Outcomes: events by band, censored by band, the horizon.
        self.n_outcomes = 2 * self.n_bands + 1
        #: Groups; and outcomes by class of entry, with late entries never at risk at last.
        n_columns = self.n_classes * self.n_outcomes + self.has_entry
        self.shape = self.n_strata * self.n_groups, n_columns
        with np.errstate(all="ignore"):
            center = np.nan_to_num(self.mean @ self.coef)
            if isinstance(self.spread, float):
                scale = self.spread * (float(np.linalg.norm(self.coef)) / np.sqrt(self.coef.size))
            else:
                scale = np.linalg.norm(self.coef * self.spread)
        #: Score of the mean, and guessed standard deviation of scores, equal in all directions.
        self.center = float(np.clip(center, -LARGEST_SCALE, LARGEST_SCALE))
        self.scale = float(np.clip(np.nan_to_num(scale), SMALLEST_SCALE, LARGEST_SCALE))
        #: Edges between groups, in ``scale`` from ``center``; outer groups are unbounded.
        self.inner_edges = edges = np.linspace(-END, END, self.n_groups + 1)[1:-1]
        width = self.outer_width * (2.0 * END / self.n_groups)
        ends = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]]) * self.scale
        #: Lower and upper ends of groups, less ``center``, for positions within them.
        self.group_ends = ends[:-1], ends[1:]
        # Ends of intervals on the scale of bands: shares of released events, and of time.
        time = np.arange(1, q + 1) / q
        eta = np.clip(np.nan_to_num(self.baselines + self.center), -ETA_RANGE, ETA_RANGE)
        hazards = [self.link.survival(own).value for own in eta]
        events = np.mean([-np.expm1(-np.cumsum(own)) for own in hazards], axis=0)
        share = events / events[-1] if events[-1] > 0 else time
        progress = EVENTS_PART * share + (1.0 - EVENTS_PART) * time
        #: Band of each interval; the end of a band belongs to it.
        band = np.ceil(progress * self.n_bands).astype(np.int64) - 1
        self.bands = np.clip(band, 0, self.n_bands - 1)
        #: Edges of bands as shares of the horizon, shape (n_bands + 1,).
        edge = np.arange(self.n_bands + 1) / self.n_bands
        self.knots = np.interp(edge, np.append(0.0, progress), np.arange(q + 1) / q)
        self.knots[-1] = 1.0

    @property
    def baselines(self) -> FloatArray:
        """Baselines of the strata, of shape (n_strata, n_intervals)."""
        return self.baseline.reshape(self.n_strata, -1)

    def scores(self, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return scores of private rows less the centre, and their groups."""
        # Products of extreme numbers may be infinite or NaN, which is sorted behind all groups.
        with np.errstate(all="ignore"):
            scores = row_products(rows, self.coef) - self.center
        # The number of edges below; for a few edges faster than a binary search.
        group = np.zeros(scores.size, dtype=np.int64)
        for edge in self.inner_edges * self.scale:
            group += ~(scores <= edge)
        return scores, group

    def counts(self, rows: FloatArray, histories: Histories) -> IntArray:
        """Count private records in the cells, of shape ``shape``."""
        _, group = self.scores(rows)
        band = self.bands[histories.exit - 1]
        outcome = histories.cells(band, self.n_bands, self.n_intervals)
        if self.has_entry:
            entry: Any = histories.entry
            entered = np.where(entry > 0, 1 + self.bands[entry - 1], 0)
            outcome = outcome + entered * self.n_outcomes
            outcome = np.where(histories.at_risk, outcome, self.shape[1] - 1)
        cell = self._rows(group, histories) * self.shape[1] + outcome
        return np.bincount(cell, minlength=math.prod(self.shape)).reshape(self.shape)

    def _rows(self, group: IntArray, histories: Histories) -> IntArray:
        """Return the table's rows of records in groups."""
        stratum = histories.stratum
        return group if stratum is None else group + self.n_groups * stratum

    def positions(self, rows: FloatArray, histories: Histories) -> IntArray:
        """Add up positions p of private rows, and 2 p^2 - 1/4, in units of ``POSITIONS``.

        The sums have shape (2, n_strata * n_groups).
        """
        scores, group = self.scores(rows)
        lower, upper = (ends[group] for ends in self.group_ends)
        with np.errstate(all="ignore"):
            share = np.clip((scores - lower) / (upper - lower), 0.0, 1.0)
        position = np.where(np.isnan(share), 1.0, share) - 0.5
        terms = (position, 2.0 * position**2 - 0.25)
        row = self._rows(group, histories)
        return np.stack([POSITIONS.totals(row, term, self.shape[0]) for term in terms])


def groups_of(n_records: float, price: Price) -> int:
    """Return the number of groups, and of bands, of a table at a price."""
    noise = HISTOGRAM.deviation(price)
    groups = LEAST_GROUPS * (n_records / (RECORDS_TO_NOISE * noise)) ** GROWTH
    return round(min(max(groups, LEAST_GROUPS), N_GROUPS))


def outer_width_of(n_records: float, price: Price) -> float:
    """Return the width of outer groups, in inner ones, of a table at a price."""
    least, most = OUTER_WIDTHS
    root = math.sqrt(n_records / (RECORDS_TO_WIDEN * HISTOGRAM.deviation(price)))
    return min(max(least * root, least), most)
