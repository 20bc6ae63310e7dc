r"""Cells of a table of risk scores over time, laid out by what was released before.

A record's cell is its group of the risk score, its band of the exit time, and how it left: with an
event, censored, or at the horizon. The layout follows from released coefficients and from public
numbers alone, and each record is in one cell, whatever the others are: replacing one record changes
two cells by one. Its place p within its group is between -1/2 and 1/2; what is added up of it is p
and :math:`2 p^2 - 1/4`, which are at most 3/4 together, so that replacing one record moves the
groups' sums by 3/2, in L1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skdpsurv.likelihoods.links import Link
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Groups of the score, equally wide between the ends, in guessed standard deviations; and bands of
#: time. What is fitted to the table weighs its noise, so that a finer one would cost little, and a
#: coarser one, whose groups' widths matter, would not gain (docs/benchmarks/absolute_risk).
N_GROUPS, END, N_BANDS = 6, 2.4, 6
#: Bands hold equal parts of the released distribution of events, for this part, and of time.
EVENTS_PART = 0.75
#: Places within groups are counted in these steps.
PLACE_STEPS = 2**20
#: Width of the outer groups, which have no other end, in inner ones, for places in them.
OUTER_WIDTH = 2.0
#: Least guess of the scores' standard deviation: no coefficients, no spread.
SMALLEST_SCALE = 1e-6


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
        Root mean square distance of rows from the mean, as far as it is known.
    """

    coef: FloatArray
    baseline: FloatArray
    link: Link
    mean: FloatArray
    spread: float
    progress: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        q = self.n_intervals
        time = np.arange(1, q + 1) / q
        hazard = self.link.survival(np.clip(self.baseline + self.center, -30.0, 30.0)).value
        events = -np.expm1(-np.cumsum(hazard))
        share = events / events[-1] if events[-1] > 0 else time
        progress = EVENTS_PART * share + (1.0 - EVENTS_PART) * time
        object.__setattr__(self, "progress", progress)

    @property
    def n_intervals(self) -> int:
        """Intervals of the time grid."""
        return self.baseline.size

    @property
    def n_bands(self) -> int:
        """Bands of time."""
        return min(N_BANDS, self.n_intervals)

    @property
    def center(self) -> float:
        """Score of the mean."""
        return float(self.mean @ self.coef)

    @property
    def scale(self) -> float:
        """Standard deviation of scores, if all directions have one: a guess, within some 2."""
        length = float(np.linalg.norm(self.coef)) / np.sqrt(self.coef.size)
        return max(self.spread * length, SMALLEST_SCALE)

    @property
    def inner_edges(self) -> FloatArray:
        """Ends between groups, in ``scale`` from ``center``; the outer groups have no other end."""
        return np.linspace(-END, END, N_GROUPS + 1)[1:-1]

    @property
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
        return N_GROUPS, 2 * self.n_bands + 1

    @property
    def group_ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of groups, less ``center``; beyond them places are those of ends."""
        edges, width = self.inner_edges, 2.0 * END / N_GROUPS
        lower = np.concatenate([[edges[0] - OUTER_WIDTH * width], edges])
        upper = np.concatenate([edges, [edges[-1] + OUTER_WIDTH * width]])
        return lower * self.scale, upper * self.scale

    def _groups(self, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return scores less ``center``, and their groups."""
        # Row by row, in an order of its own: the score of a record depends on no other record.
        # Products of extreme numbers may be infinite or NaN, which is sorted behind all groups.
        with np.errstate(all="ignore"):
            scores = np.sum(np.ascontiguousarray(rows * self.coef), axis=1) - self.center
        group = np.searchsorted(self.inner_edges * self.scale, scores)
        return scores, np.minimum(group, N_GROUPS - 1)

    def count(self, rows: FloatArray, interval: IntArray, event: BoolArray) -> IntArray:
        """Count private records in the cells, shape ``shape``."""
        _, group = self._groups(rows)
        band = self.bands[interval - 1]
        at_horizon = ~event & (interval == self.n_intervals)
        how = np.where(event, band, np.where(at_horizon, 2 * self.n_bands, self.n_bands + band))
        n_groups, n_ways = self.shape
        cell = group * n_ways + how
        return np.bincount(cell, minlength=n_groups * n_ways).reshape(self.shape).astype(np.int64)

    def places(self, rows: FloatArray) -> IntArray:
        """Add up places of private records within their groups, and their squares less a middle.

        Returns
        -------
        sums : ndarray of shape (2, n_groups)
            Of p and of 2 p^2 - 1/4, in steps.
        """
        scores, group = self._groups(rows)
        lower, upper = (ends[group] for ends in self.group_ends)
        with np.errstate(all="ignore"):
            share = np.clip((scores - lower) / (upper - lower), 0.0, 1.0)
        place = np.where(np.isnan(share), 1.0, share) - 0.5
        sums = np.zeros((2, N_GROUPS), dtype=np.int64)
        for total, terms in zip(sums, (place, 2.0 * place**2 - 0.25), strict=True):
            np.add.at(total, group, np.rint(terms * PLACE_STEPS).astype(np.int64))
        return sums
