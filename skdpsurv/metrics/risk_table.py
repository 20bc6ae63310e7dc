r"""A table of records by predicted survival, time of exit and event, and what is counted with it.

A record is in one cell, which depends on that record and on public numbers alone: its row is the
risk group, which is where the predicted probability to survive the horizon lies between public
edges; its column says in which band of time the record left, and whether with an event, or that it
was seen to survive the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdpsurv.mechanisms.sums import CellSums
from skdpsurv.types import BoolArray, FloatArray, IntArray

__all__ = [
    "OFFSETS",
    "EvaluationRecords",
    "RiskTable",
    "brier_terms",
    "risk_candidates",
    "time_candidates",
]

#: How far from the middle of its cell a record is, in widths of the cell: at most half of one.
OFFSETS = CellSums(0.5)
#: Candidates for edges.
N_CANDIDATES = 256


class EvaluationRecords(NamedTuple):
    """What an evaluation uses of some records, row by row; private.

    Parameters
    ----------
    survival : ndarray of shape (n, n_times + 1)
        Predicted probabilities to survive the public times, the last of which is the horizon.
    event : ndarray of bool, shape (n,)
    time : ndarray of shape (n,)
    """

    survival: FloatArray
    event: BoolArray
    time: FloatArray


def risk_candidates() -> FloatArray:
    """Return public candidates for edges of predicted survival, rising.

    Equal steps of the log cumulative hazard, so that rare and frequent events have as many.
    """
    return np.exp(-np.geomspace(10.0, 1e-4, N_CANDIDATES))


def time_candidates(horizon: float) -> FloatArray:
    """Return public candidates for edges of time, in (0, horizon), denser towards 0."""
    return np.asarray(horizon * (np.arange(1, N_CANDIDATES) / N_CANDIDATES) ** 2)


@dataclass(frozen=True)
class RiskTable:
    """The public edges of a table.

    Parameters
    ----------
    risk_edges : ndarray of shape (n_groups - 1,)
        Of predicted survival, rising, within (0, 1). Group 0 is at the highest risk.
    time_edges : ndarray of shape (n_bands - 1,)
        Rising, within (0, horizon).
    horizon : float
    """

    risk_edges: FloatArray
    time_edges: FloatArray
    horizon: float

    @property
    def n_groups(self) -> int:
        """Number of risk groups."""
        return self.risk_edges.size + 1

    @property
    def n_bands(self) -> int:
        """Number of bands of time."""
        return self.time_edges.size + 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns: bands of events, bands of censored records, survivors."""
        return self.n_groups, 2 * self.n_bands + 1

    @property
    def group_ends(self) -> FloatArray:
        """Both ends of all groups, in predicted survival."""
        return np.concatenate([[0.0], self.risk_edges, [1.0]])

    @property
    def band_ends(self) -> FloatArray:
        """Both ends of all bands."""
        return np.concatenate([[0.0], self.time_edges, [self.horizon]])

    def groups(self, records: EvaluationRecords) -> IntArray:
        """Return the group of each record."""
        last = records.survival[:, -1]
        return np.searchsorted(self.risk_edges, last, side="right").astype(np.int64)

    def counts(self, records: EvaluationRecords) -> IntArray:
        """Return the number of records in each cell, of shape ``shape``."""
        rows, columns = self.shape
        cell = self.groups(records) * columns + self._columns(records)
        return np.bincount(cell, minlength=rows * columns).astype(np.int64).reshape(self.shape)

    def risk_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums over each group of where in it predictions are, from -1/2 to 1/2."""
        group, ends = self.groups(records), self.group_ends
        place = (records.survival[:, -1] - ends[group]) / np.diff(ends)[group] - 0.5
        return OFFSETS.totals(group, _offset(place), self.n_groups)

    def time_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums of where in their bands events are, and censored records; no survivors."""
        column, n_bands = self._columns(records), self.n_bands
        ends = self.band_ends
        before = column < 2 * n_bands
        band = np.where(before, column % n_bands, 0)
        time = np.minimum(records.time, self.horizon)
        place = (time - ends[band]) / np.diff(ends)[band] - 0.5
        return OFFSETS.totals(column[before], _offset(place[before]), 2 * n_bands)

    def _columns(self, records: EvaluationRecords) -> IntArray:
        n_bands = self.n_bands
        band = np.searchsorted(self.time_edges, records.time, side="left")
        past = (records.time > self.horizon) | (~records.event & (records.time >= self.horizon))
        column = np.where(past, 2 * n_bands, np.where(records.event, band, n_bands + band))
        return np.asarray(column, dtype=np.int64)


def brier_terms(
    records: EvaluationRecords,
    times: FloatArray,
    uncensored: FloatArray,
    at_exit: FloatArray,
    *,
    clip: bool = True,
) -> FloatArray:
    r"""Return each record's part of the integrated Brier score, clipped to [0, 1].

    .. math::
        \frac1J\sum_j \frac{\hat S(t_j)^2\,1(T \le t_j, \delta)}{G(T)}
        + \frac{(1 - \hat S(t_j))^2\,1(T > t_j)}{G(t_j)}

    Parameters
    ----------
    records : EvaluationRecords
    times : ndarray of shape (n_times,)
        :math:`t_j`, public.
    uncensored : ndarray of shape (n_times,)
        :math:`G(t_j)`, from released counts.
    at_exit : ndarray of shape (n,)
        :math:`G(T)`, by the same curve.
    clip : bool, default=True
    """
    survival, time = records.survival[:, :-1], records.time[:, None]
    gone = (time <= times) & records.event[:, None]
    squares = np.where(gone, survival**2 / at_exit[:, None], 0.0)
    squares += np.where(time > times, (1.0 - survival) ** 2 / uncensored, 0.0)
    terms = squares.mean(axis=1)
    return np.clip(terms, 0.0, 1.0) if clip else terms


def _offset(place: FloatArray) -> FloatArray:
    """Return places that are within their cells; in a cell without width a place is no number."""
    return np.nan_to_num(np.clip(place, -0.5, 0.5), nan=0.0)
