r"""Cells of a table of risk scores over time, laid out by what was released before.

A record's cell is its group of the risk score, its band of the exit time, and how it left: with an
event, censored, or at the horizon. The layout follows from released coefficients and from public
numbers alone, and each record is in one cell, whatever the others are: replacing one record changes
two cells by one. Its place p within its group is between -1/2 and 1/2; what is added up of it is p
and :math:`2 p^2 - 1/4`, which are at most 3/4 together, so that replacing one record moves the
groups' sums by 3/2, in L1, and by 1, in L2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdpsurv.data.shape import row_products
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.links import Link
from skdpsurv.mechanisms.sums import CellSums

#: Groups of the score, equally wide between the ends, in guessed standard deviations, and as many
#: bands of time. Finer tables were worse, though what is fitted weighs their noise; coarser ones
#: are better where it is strong.
N_GROUPS, END = 6, 2.4
#: Bands hold equal parts of the released distribution of events, for this part, and of time.
EVENTS_PART = 0.75
#: What is added up of a record's place p in its group: p and 2 p^2 - 1/4. Replacing a record moves
#: both by at most 1 in L2 (docs/proofs/discrete_time).
PLACES = CellSums(0.75, distance=1.0)
#: Linear predictors are kept within this of 0.
ETA_RANGE = 30.0
#: Least guess of the scores' standard deviation: no coefficients, no spread; and the largest, which
#: with the largest distance of the center from 0 keeps ends of groups finite.
SMALLEST_SCALE, LARGEST_SCALE = 1e-6, 1e100


@dataclass(frozen=True, eq=False)
class RiskCells:
    """A public layout.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        Released: the score of a row is its product with them.
    baseline : ndarray of shape (n_intervals,)
        Released, on the scale of the link, of a row with score 0.
    link : Link
    mean : ndarray of shape (n_features,)
        Of the rows, as far as it is known.
    spread : float
        A guess of the root mean square distance of rows from the mean.
    n_groups : int, default=6
        Groups of the score, and bands of time.
    outer_width : float, default=2.0
        Width of the outer groups, which have no other end, in inner ones, for places in them.
    """

    coef: FloatArray
    baseline: FloatArray
    link: Link
    mean: FloatArray
    spread: float
    n_groups: int = N_GROUPS
    outer_width: float = 2.0

    @cached_property
    def progress(self) -> FloatArray:
        """What an interval's end is measured in: from 0, which is left out, to 1."""
        q = self.n_intervals
        time = np.arange(1, q + 1) / q
        eta = np.clip(np.nan_to_num(self.baseline + self.center), -ETA_RANGE, ETA_RANGE)
        events = -np.expm1(-np.cumsum(self.link.survival(eta).value))
        share = events / events[-1] if events[-1] > 0 else time
        return np.asarray(EVENTS_PART * share + (1.0 - EVENTS_PART) * time)

    @property
    def n_intervals(self) -> int:
        """Intervals of the time grid."""
        return self.baseline.size

    @property
    def n_bands(self) -> int:
        """Bands of time."""
        return min(self.n_groups, self.n_intervals)

    @property
    def center(self) -> float:
        """Score of the mean."""
        with np.errstate(all="ignore"):
            center = float(np.nan_to_num(self.mean @ self.coef))
        return min(max(center, -LARGEST_SCALE), LARGEST_SCALE)

    @property
    def scale(self) -> float:
        """Standard deviation of scores, if all directions have one: a guess, within some 2."""
        with np.errstate(all="ignore"):
            length = float(np.linalg.norm(self.coef)) / np.sqrt(self.coef.size)
            scale = float(np.nan_to_num(self.spread * length))
        return min(max(scale, SMALLEST_SCALE), LARGEST_SCALE)

    @property
    def inner_edges(self) -> FloatArray:
        """Ends between groups, in ``scale`` from ``center``; the outer groups have no other end."""
        return np.linspace(-END, END, self.n_groups + 1)[1:-1]

    @cached_property
    def bands(self) -> IntArray:
        """The band of each interval."""
        band = (self.progress * self.n_bands).astype(np.int64)
        # The end of a band belongs to it, as the end of an interval does.
        band -= band == self.progress * self.n_bands
        return np.clip(band, 0, self.n_bands - 1)

    @property
    def knots(self) -> FloatArray:
        """Where bands begin and end, as shares of the horizon, shape (n_bands + 1,)."""
        q, ends = self.n_intervals, np.arange(self.n_bands + 1) / self.n_bands
        progress = np.concatenate([[0.0], self.progress])
        knots = np.interp(ends, progress, np.arange(q + 1) / q)
        knots[-1] = 1.0
        return knots

    @property
    def shape(self) -> tuple[int, int]:
        """Groups; and events by band, censored by band, the horizon."""
        return self.n_groups, 2 * self.n_bands + 1

    @property
    def group_ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of groups, less ``center``; beyond them places are those of ends."""
        edges, width = self.inner_edges, 2.0 * END / self.n_groups
        lower = np.concatenate([[edges[0] - self.outer_width * width], edges])
        upper = np.concatenate([edges, [edges[-1] + self.outer_width * width]])
        return lower * self.scale, upper * self.scale

    def scores(self, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return scores of private rows less the centre, and their groups."""
        # Products of extreme numbers may be infinite or NaN, which is sorted behind all groups.
        with np.errstate(all="ignore"):
            scores = row_products(rows, self.coef) - self.center
        group = np.searchsorted(self.inner_edges * self.scale, scores)
        return scores, np.minimum(group, self.n_groups - 1)

    def counts(self, rows: FloatArray, interval: IntArray, event: BoolArray) -> IntArray:
        """Count private records in the cells, of shape ``shape``."""
        _, group = self.scores(rows)
        band = self.bands[interval - 1]
        at_horizon = ~event & (interval == self.n_intervals)
        how = np.where(event, band, np.where(at_horizon, 2 * self.n_bands, self.n_bands + band))
        n_groups, n_ways = self.shape
        cell = group * n_ways + how
        return np.bincount(cell, minlength=n_groups * n_ways).reshape(self.shape).astype(np.int64)

    def places(self, rows: FloatArray) -> IntArray:
        """Add up where private rows are in their groups, of shape (2, n_groups).

        Sums of p and of 2 p^2 - 1/4, in units of ``PLACES``.
        """
        scores, group = self.scores(rows)
        lower, upper = (ends[group] for ends in self.group_ends)
        with np.errstate(all="ignore"):
            share = np.clip((scores - lower) / (upper - lower), 0.0, 1.0)
        place = np.where(np.isnan(share), 1.0, share) - 0.5
        parts = (place, 2.0 * place**2 - 0.25)
        return np.stack([PLACES.totals(group, part, self.n_groups) for part in parts])
