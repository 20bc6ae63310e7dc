r"""A table of records by predicted survival, time of exit and event, and measures based on it.

A record is in one cell, which depends on that record and on public numbers alone. The row is its
risk group, by predicted probability to survive the horizon. The column is its time band, with or
without an event, or the one of records that survived the horizon.

Tables have the shape (..., n_groups, 2 n_bands + 1), for simulated ones at once. Counts may be
negative: products are of two different counts, with independent noise, and so are unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from skdpsurv.data.histories import Histories
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.mechanisms.sums import CellSums

#: Offsets of records from the middle of their cells, in widths of the cell.
OFFSETS = CellSums(0.5)
#: Number of candidates for edges.
N_CANDIDATES = 256
#: Smallest number of records at risk, and smallest uncensored share, in a denominator.
LEAST_AT_RISK, LEAST_UNCENSORED = 1.0, 0.05
#: Equal parts of a band for numerical integration.
STEPS = 16


class EvaluationRecords(NamedTuple):
    """Private records; ``survival`` is predicted at the Brier times and at the horizon."""

    survival: FloatArray
    histories: Histories


def risk_candidates() -> FloatArray:
    """Return public candidates for edges of predicted survival: equal steps of the log hazard."""
    return np.exp(-np.geomspace(10.0, 1e-4, N_CANDIDATES))


def time_candidates(horizon: float) -> FloatArray:
    """Return public candidates for edges of time, in (0, horizon), denser towards 0."""
    return np.asarray(horizon * (np.arange(1, N_CANDIDATES) / N_CANDIDATES) ** 2)


@dataclass(frozen=True)
class EvaluationTable:
    """The public edges of a table. Group 0 has the lowest predicted survival."""

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
        """Numbers of rows and columns; columns are bands of events, of censoring, and survivors."""
        return self.n_groups, 2 * self.n_bands + 1

    @property
    def group_ends(self) -> FloatArray:
        """Ends of all groups, in predicted survival."""
        return np.concatenate([[0.0], self.risk_edges, [1.0]])

    @property
    def band_ends(self) -> FloatArray:
        """Ends of all bands."""
        return np.concatenate([[0.0], self.time_edges, [self.horizon]])

    def groups(self, records: EvaluationRecords) -> IntArray:
        """Return the group of each record."""
        last = records.survival[:, -1]
        return np.searchsorted(self.risk_edges, last, side="right").astype(np.int64)

    def counts(self, records: EvaluationRecords) -> IntArray:
        """Return the number of records in each cell."""
        rows, columns = self.shape
        cell = self.groups(records) * columns + self._columns(records)
        return np.bincount(cell, minlength=rows * columns).astype(np.int64).reshape(self.shape)

    def risk_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums of offsets of predictions by group."""
        group = self.groups(records)
        offsets = _offsets(records.survival[:, -1], self.group_ends, group)
        return OFFSETS.totals(group, offsets, self.n_groups)

    def time_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums of offsets of times by band, with events and without; no survivors."""
        column, n_bands = self._columns(records), self.n_bands
        left = column < 2 * n_bands
        column, time = column[left], np.minimum(records.histories.exit[left], self.horizon)
        return OFFSETS.totals(column, _offsets(time, self.band_ends, column % n_bands), 2 * n_bands)

    def _columns(self, records: EvaluationRecords) -> IntArray:
        seen = records.histories.clipped(self.horizon)
        band = np.searchsorted(self.time_edges, seen.exit, side="left")
        return seen.cells(band, self.n_bands, self.horizon)


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
    """
    survival, time = records.survival[:, :-1], records.histories.exit[:, None]
    gone = (time <= times) & records.histories.event[:, None]
    squares = np.where(gone, survival**2 / at_exit[:, None], 0.0)
    squares += np.where(time > times, (1.0 - survival) ** 2 / uncensored, 0.0)
    terms = squares.mean(axis=1)
    return np.clip(terms, 0.0, 1.0) if clip else terms


def _offsets(values: FloatArray, ends: FloatArray, cell: IntArray) -> FloatArray:
    """Return offsets from the middle of cells, in [-1/2, 1/2]; 0 in a cell without width."""
    offsets = (values - ends[cell]) / np.diff(ends)[cell] - 0.5
    return np.nan_to_num(np.clip(offsets, -0.5, 0.5), nan=0.0)


class TableParts(NamedTuple):
    """Events and censored records by band, and those still at risk at its end."""

    events: FloatArray
    censored: FloatArray
    later: FloatArray


def parts_of(tables: FloatArray) -> TableParts:
    """Return events, censored records, and records that outlast each band, from tables."""
    n_bands = (tables.shape[-1] - 1) // 2
    events, censored = tables[..., :n_bands], tables[..., n_bands:-1]
    both = events + censored
    after = np.cumsum(both[..., ::-1], axis=-1)[..., ::-1] - both
    return TableParts(events, censored, after + tables[..., -1:])


def concordance(tables: FloatArray, slopes: tuple[FloatArray, FloatArray]) -> FloatArray:
    r"""Return Harrell's C of groups, where pairs within a group count one half.

    The order of two events in one band is unknown. With hazards :math:`\lambda_g, \lambda_h` in a
    band of length 1, the event of group g is first with probability
    :math:`\frac12 + (\lambda_g - \lambda_h)/12`, to first order. An event is before a censored
    record of its band with probability :math:`\frac12 + (a_C - a_E)/12`, where densities have
    slopes :math:`a_C, a_E`.
    """
    events, censored, later = parts_of(tables)
    n_groups = tables.shape[-2]
    # 1 where the group of the row is at higher risk, 1/2 where it is the same.
    wins = np.triu(np.ones((n_groups, n_groups)), 1) + 0.5 * np.eye(n_groups)
    event_first = np.clip(0.5 + (slopes[1] - slopes[0]) / 12.0, 0.0, 1.0)
    against = later + event_first[..., None, :] * censored
    cross = np.einsum("...gk,gh,...hk->...", events, wins, against)
    comparable = (events.sum(axis=-2) * against.sum(axis=-2)).sum(axis=-1)
    total = events.sum(axis=-2)
    same = 0.5 * (total * (total - 1.0)).sum(axis=-1)
    gone = np.clip(events / np.maximum(later + events + censored, LEAST_AT_RISK), 0.0, 0.9)
    hazard = -np.log1p(-gone)
    lead = np.einsum("...gk,gh,...hk->...", events * hazard, wins, events)
    lead -= np.einsum("...gk,gh,...hk->...", events, wins, events * hazard)
    comparable, concordant = comparable + same, cross + 0.5 * same + lead / 12.0
    found = np.where(comparable > 0.5, concordant / np.maximum(comparable, 0.5), 0.5)
    return np.clip(found, 0.0, 1.0)


def between_ties(found: FloatArray, shares: FloatArray) -> FloatArray:
    r"""Return C without ties within groups, from a grouped C and the groups' shares.

    The correction is exact for normal risks: N(0, 1) of all, and N(b, 1) of events. Their C is
    :math:`\Phi(b/\sqrt2)`, and is smaller in groups.
    """
    b = np.linspace(-6.0, 6.0, 601)
    p = np.maximum(shares, 0.0) / max(np.maximum(shares, 0.0).sum(), LEAST_AT_RISK)
    # Group 0 is at the highest risk.
    above = np.append(-special.ndtri(np.clip(np.cumsum(p)[:-1], 1e-12, 1.0 - 1e-12)), -np.inf)
    events = np.diff(special.ndtr(b[:, None] - above), axis=1, prepend=0.0)
    grouped = (events * (0.5 * p + np.cumsum(p[::-1])[::-1] - p)).sum(axis=1)
    if p.max() > 0.9:  # hardly anything is known of the order
        return found
    return np.interp(found, grouped, special.ndtr(b / np.sqrt(2.0)))


def hazard_path(
    leaving: FloatArray, others: FloatArray, later: FloatArray, slopes: tuple[FloatArray, ...]
) -> FloatArray:
    """Return cumulative hazards within each band, at the ends of its ``STEPS`` equal parts."""
    leaving, others, later = (np.maximum(part, 0.0)[..., None] for part in (leaving, others, later))
    own, other = (slope[..., None] for slope in slopes)
    u = (np.arange(STEPS) + 0.5) / STEPS
    left = leaving * _by(u, own) + others * _by(u, other)
    at_risk = np.maximum(later + leaving + others - left, LEAST_AT_RISK)
    return np.cumsum(leaving * (1.0 + own * (u - 0.5)) / at_risk / STEPS, axis=-1)


def _by(u: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the share that has left by u, if the density has some slope."""
    return u + slope * u * (u - 1.0) / 2.0


def slopes_of(tables: FloatArray, time_offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return slopes of the densities of events and of censoring within bands, for all groups.

    A density :math:`1 + a (u - \frac12)` on [0, 1] has the mean :math:`\frac12 + a / 12`.
    """
    parts = parts_of(tables.sum(axis=-2))
    events, censored = (
        12.0 * np.clip(time_offsets[..., i, :] / np.maximum(counts, 1.0), -1.0 / 6.0, 1.0 / 6.0)
        for i, counts in enumerate(parts[:2])
    )
    return events, censored


def observed_curves(tables: FloatArray, slopes: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the share of each group that survives each band, of shape (..., n_groups, n_bands)."""
    both = tuple(slope[..., None, :] for slope in slopes)
    hazards = hazard_path(*parts_of(tables), both)[..., -1]
    return np.asarray(np.exp(-np.cumsum(hazards, axis=-1)))


def uncensored_curve(
    table: FloatArray, time_offsets: FloatArray, band_ends: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the uncensored share as a function of time."""
    slopes = slopes_of(table, time_offsets)
    events, censored, later = parts_of(table.sum(axis=0))
    inside = hazard_path(censored, events, later, slopes[::-1])
    before = np.append(0.0, np.cumsum(inside[:, -1]))
    hazards = np.append(0.0, (before[:-1, None] + inside).ravel())
    parts = np.arange(1, STEPS + 1) / STEPS
    within = band_ends[:-1, None] + np.diff(band_ends)[:, None] * parts
    times = np.append(0.0, within.ravel())
    return lambda t: np.maximum(np.exp(-np.interp(t, times, hazards)), LEAST_UNCENSORED)
