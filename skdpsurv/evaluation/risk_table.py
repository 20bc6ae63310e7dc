r"""A table of records by predicted survival, time of exit and event, and measures based on it.

A record is in one cell, which depends on that record and on public numbers alone. The row is its
risk group, by predicted probability to survive the horizon. The column is its time band, with or
without an event, or the one of records that survived the horizon.

Tables have the shape (..., n_groups, 2 n_bands + 1), for simulated ones at once. Counts may be
negative: products are of two different counts, with independent noise, and so are unbiased.

**Late entry.** The column then says the band of the entry, too, 0 for who is seen from the start;
the last one is for records that are never at risk before the horizon. All else follows from the
exits and the entries by group: at risk at a time are those who entered before it, less those who
left before it.

**Competing events.** Of one cause, "survival" is the probability of no event of it, 1 less its
incidence. The columns have bands of events of this cause, of events of any other, and of censoring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
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
    """Private records; ``survival`` is predicted at the Brier times and at the horizon.

    ``at_entry`` is predicted at the entry, 1 without a prediction; None without late entries. With
    competing events, ``cause`` of the histories is 1 for the cause in question and 2 for others.
    """

    survival: FloatArray
    histories: Histories
    at_entry: FloatArray | None = None

    @property
    def since_entry(self) -> FloatArray:
        """Predicted survival given that of the entry; 1/2 where even that had probability 0."""
        if self.at_entry is None:
            return self.survival
        given = self.at_entry[:, None]
        ratio = self.survival / np.where(given > 0.0, given, 1.0)
        return np.where(given > 0.0, np.minimum(ratio, 1.0), 0.5)

    def at_risk(self, horizon: float) -> BoolArray:
        """Return who is at risk at some time before the horizon: from 0, or from an entry."""
        seen, entry = self.histories, self.histories.entry
        if entry is None:
            return np.ones(seen.size, dtype=bool)
        return (entry == 0.0) | (entry < np.minimum(seen.exit, horizon))


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
    late_entry: bool = False
    competing: bool = False

    @property
    def n_groups(self) -> int:
        """Number of risk groups."""
        return self.risk_edges.size + 1

    @property
    def n_bands(self) -> int:
        """Number of bands of time."""
        return self.time_edges.size + 1

    @property
    def n_leaving(self) -> int:
        """Number of ways to leave in a band: an event, perhaps one of another cause, censoring."""
        return 2 + self.competing

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns; columns are bands of events, of censoring, and survivors.

        With late entries there are such columns for each band of entry, and one for the others.
        """
        return self.n_groups, self.possible.size

    @property
    def possible(self) -> BoolArray:
        """Columns in which records can be: nobody leaves in a band before that of the entry."""
        n_bands = self.n_bands
        if not self.late_entry:
            return np.ones(self.n_leaving * n_bands + 1, dtype=bool)
        band = np.append(np.tile(np.arange(1, n_bands + 1), 2), n_bands)
        return np.append((band >= np.arange(n_bands + 1)[:, None]).ravel(), True)

    @property
    def counted(self) -> BoolArray:
        """Columns of records that are at risk at some time."""
        counted = self.possible
        if self.late_entry:
            counted[-1] = False
        return counted

    @property
    def group_ends(self) -> FloatArray:
        """Ends of all groups, in predicted survival."""
        return np.concatenate([[0.0], self.risk_edges, [1.0]])

    @property
    def band_ends(self) -> FloatArray:
        """Ends of all bands."""
        return np.concatenate([[0.0], self.time_edges, [self.horizon]])

    @property
    def group_tops(self) -> FloatArray:
        """Upper ends of the predictions in each group; since an entry, they may be up to 1."""
        return np.ones(self.n_groups) if self.late_entry else self.group_ends[1:]

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
        """Return sums of offsets of predictions by group, since the entry if that is late."""
        seen = records.at_risk(self.horizon)
        group, lows = self.groups(records)[seen], self.group_ends[:-1]
        offsets = _offsets(records.since_entry[seen, -1], lows, self.group_tops - lows, group)
        return OFFSETS.totals(group, offsets, self.n_groups)

    def time_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums of offsets of times by way to leave and band; no survivors."""
        column, n_bands = self._outcomes(records), self.n_bands
        n_cells = self.n_leaving * n_bands
        left = (column < n_cells) & records.at_risk(self.horizon)
        column, time = column[left], np.minimum(records.histories.exit[left], self.horizon)
        offsets = self._within_bands(time, column % n_bands)
        return OFFSETS.totals(column, offsets, n_cells)

    def entry_offsets(self, records: EvaluationRecords) -> IntArray:
        """Return sums of offsets of late entries by band."""
        entry = records.histories.entry
        assert entry is not None
        entry = entry[records.at_risk(self.horizon) & (entry > 0.0)]
        band = self._bands(entry)
        return OFFSETS.totals(band, self._within_bands(entry, band), self.n_bands)

    def read(self, tables: FloatArray, times: FloatArray, entries: FloatArray) -> Outcomes:
        """Return exits and entries by group, of tables and sums of offsets of both times."""
        if self.competing:
            own, others, censored = np.split(tables[..., :-1], 3, axis=-1)
            # Whoever had another event has none of this cause any more.
            without = tables[..., -1:] + others.sum(axis=-1, keepdims=True)
            exits = np.concatenate([own, censored, without], axis=-1)
            slope = _slope(times[..., 1, :], others.sum(axis=-2))
            slopes = *slopes_of(exits, times[..., ::2, :]), slope
            return Outcomes(exits, None, slopes, others)
        if not self.late_entry:
            return Outcomes(tables, None, slopes_of(tables, times))
        joint = np.where(self.possible, tables, 0.0)[..., :-1]
        joint = joint.reshape(*joint.shape[:-1], self.n_bands + 1, 2 * self.n_bands + 1)
        exits, entrants = joint.sum(axis=-2), joint.sum(axis=-1)
        own = _slope(entries, entrants[..., 1:].sum(axis=-2))
        return Outcomes(exits, entrants, (*slopes_of(exits, times), own))

    def entered_by(self, outcomes: Outcomes, times: FloatArray) -> FloatArray:
        """Return how many entered before public times, within the horizon."""
        assert outcomes.entrants is not None
        entrants = outcomes.entrants.sum(axis=-2)
        band, ends = self._bands(times), self.band_ends
        u = (times - ends[band]) / np.diff(ends)[band]
        before = np.cumsum(entrants, axis=-1)[..., band]
        return np.asarray(before + entrants[..., 1 + band] * _by(u, outcomes.slopes[2][..., band]))

    def _columns(self, records: EvaluationRecords) -> IntArray:
        column, entry = self._outcomes(records), records.histories.entry
        if entry is None:
            return column
        band = np.where(entry > 0.0, 1 + self._bands(entry), 0)
        last = (self.n_bands + 1) * (2 * self.n_bands + 1)
        column = band * (2 * self.n_bands + 1) + column
        return np.where(records.at_risk(self.horizon), column, last)

    def _outcomes(self, records: EvaluationRecords) -> IntArray:
        seen = records.histories.clipped(self.horizon)
        return seen.cells(self._bands(seen.exit), self.n_bands, self.horizon, self.n_leaving - 1)

    def _bands(self, times: FloatArray) -> IntArray:
        return np.searchsorted(self.time_edges, times, side="left").astype(np.int64)

    def _within_bands(self, times: FloatArray, band: IntArray) -> FloatArray:
        return _offsets(times, self.band_ends[:-1], np.diff(self.band_ends), band)


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

    An event of another cause is like survival: :math:`(1 - \hat S(t_j))^2\,1(T \le t_j)/G(T)`.

    With a late entry e, only times after it have a term, of survival and weights since then:
    :math:`\hat S(t)/\hat S(e)`, and :math:`G(t)/G(e)` as ``uncensored`` and ``at_exit``.
    """
    survival, time = records.since_entry[:, :-1], records.histories.exit[:, None]
    cause = records.histories.cause[:, None]
    gone = (time <= times) & (cause == 1)
    squares = np.where(gone, survival**2 / at_exit[:, None], 0.0)
    if cause.dtype != bool:
        other = (time <= times) & (cause > 1)
        squares += np.where(other, (1.0 - survival) ** 2 / at_exit[:, None], 0.0)
    squares += np.where(time > times, (1.0 - survival) ** 2 / uncensored, 0.0)
    if (entry := records.histories.entry) is not None:
        seen = records.at_risk(np.inf)
        squares = np.where(seen[:, None] & (entry[:, None] < times), squares, 0.0)
    terms = squares.mean(axis=1)
    return np.clip(terms, 0.0, 1.0) if clip else terms


def weights_since_entry(
    curve: Callable[[FloatArray], FloatArray], exits: FloatArray, entry: FloatArray
) -> FloatArray:
    """Return the uncensored share at exits, or at all times in a row, of that at the entry."""
    return np.maximum(curve(exits) / curve(entry), LEAST_UNCENSORED)


def _offsets(
    values: FloatArray, lows: FloatArray, widths: FloatArray, cell: IntArray
) -> FloatArray:
    """Return offsets from the middle of cells, in [-1/2, 1/2]; 0 in a cell without width."""
    offsets = (values - lows[cell]) / widths[cell] - 0.5
    return np.nan_to_num(np.clip(offsets, -0.5, 0.5), nan=0.0)


class TableParts(NamedTuple):
    """Events and censored records by band, and those still at risk at its end."""

    events: FloatArray
    censored: FloatArray
    later: FloatArray


class Outcomes(NamedTuple):
    """Exits by group, and entrants: from the start, and in each band; None if none is late.

    ``slopes`` are those of the densities of events, of censoring and, if late, of entries. Events
    of ``others`` by group and band have a slope at last, and count in ``exits`` as staying.
    """

    exits: FloatArray
    entrants: FloatArray | None
    slopes: tuple[FloatArray, ...]
    others: FloatArray | None = None

    @property
    def late(self) -> FloatArray | None:
        """Late entrants by group and band."""
        return None if self.entrants is None else self.entrants[..., 1:]

    def merged(self, groups: FloatArray) -> Outcomes:
        """Return sums over groups, of which ``groups`` has a 1 for each."""
        entrants = None if self.entrants is None else groups @ self.entrants
        others = None if self.others is None else groups @ self.others
        return Outcomes(groups @ self.exits, entrants, self.slopes, others)

    @property
    def leaving(self) -> FloatArray:
        """All groups together, of shape (..., ways to leave, n_bands), as in a table."""
        *first, n_groups, n_columns = self.exits.shape
        parts = self.exits[..., :-1].reshape(*first, n_groups, 2, n_columns // 2).sum(axis=-3)
        if self.others is None:
            return np.asarray(parts)
        return np.insert(parts, 1, self.others.sum(axis=-2), axis=-2)

    def paths(self, of: int = 0) -> FloatArray:
        """Return cumulative hazards within each band, by group.

        They are ``of`` events (0), of censoring (1), or of events of other causes (2).
        """
        *parts, later = parts_of(self.exits, self.late)
        slopes = [slope[..., None, :] for slope in self.slopes]
        if self.others is None:
            own = slopes[of], slopes[1 - of], *slopes[2:]
            return hazard_path(parts[of], parts[1 - of], later, own, self.late)
        parts, later = [*parts, self.others], later - np.cumsum(self.others, axis=-1)
        one, other = ((np.maximum(parts[i], 0.0), slopes[i]) for i in range(3) if i != of)
        both = one[0] + other[0]
        slope = (one[0] * one[1] + other[0] * other[1]) / np.maximum(both, 1e-9)
        return hazard_path(parts[of], both, later, (slopes[of], slope))

    def curves(self) -> FloatArray:
        """Return the shares without an event at the ends of bands, by group.

        With others they are 1 less incidences (Aalen-Johansen).
        """
        own = self.paths()
        if self.others is None:
            return np.asarray(np.exp(-np.cumsum(own[..., -1], axis=-1)))
        total = own + self.paths(2)
        before = np.cumsum(total[..., -1], axis=-1) - total[..., -1]
        part, step = (np.diff(path, axis=-1, prepend=0.0) for path in (own, total))
        there = np.exp(-before[..., None] - (total - step))
        gone = there * -np.expm1(-step) * part / np.maximum(step, 1e-300)
        return np.asarray(1.0 - np.cumsum(gone.sum(axis=-1), axis=-1))

    def observed(self) -> FloatArray:
        """Return the share without an event at the end of the last band, by group."""
        return self.curves()[..., -1] if self.others is not None else self.since_entry(self.paths())

    def since_entry(self, inside: FloatArray) -> FloatArray:
        """Return the mean share that outlasts the last band, given that of the entry, by group."""
        past = np.cumsum(inside[..., -1], axis=-1)
        total = past[..., -1]
        if self.entrants is None:
            return np.asarray(np.exp(-total))
        before = past - inside[..., -1]
        ends = np.concatenate([before[..., None], before[..., None] + inside], axis=-1)
        middle = (ends[..., 1:] + ends[..., :-1]) / 2.0
        slope = self.slopes[2][..., None, :, None]
        share = np.diff(_by(np.arange(STEPS + 1) / STEPS, slope), axis=-1)
        late = (share * np.exp(middle - total[..., None, None])).sum(axis=-1)
        shares = np.concatenate([np.exp(-total)[..., None], late], axis=-1)
        entrants = np.maximum(self.entrants, 0.0)
        entrants[..., 0] += 1e-9  # nobody entered: as if from the start
        return np.asarray((entrants * shares).sum(axis=-1) / entrants.sum(axis=-1))


def parts_of(tables: FloatArray, late: FloatArray | None = None) -> TableParts:
    """Return events, censored records, and records that outlast each band, from tables.

    Who enters in a later band does not count among the last.
    """
    n_bands = (tables.shape[-1] - 1) // 2
    events, censored = tables[..., :n_bands], tables[..., n_bands:-1]
    both = events + censored
    after = np.cumsum(both[..., ::-1], axis=-1)[..., ::-1] - both
    if late is not None:
        after = after - (np.cumsum(late[..., ::-1], axis=-1)[..., ::-1] - late)
    return TableParts(events, censored, after + tables[..., -1:])


def hazard_path(
    leaving: FloatArray,
    others: FloatArray,
    later: FloatArray,
    slopes: tuple[FloatArray, ...],
    late: FloatArray | None = None,
) -> FloatArray:
    """Return cumulative hazards within each band, at the ends of its ``STEPS`` equal parts."""
    leaving, others, later = (np.maximum(part, 0.0)[..., None] for part in (leaving, others, later))
    own, other, *entering = (slope[..., None] for slope in slopes)
    u = (np.arange(STEPS) + 0.5) / STEPS
    left = leaving * _by(u, own) + others * _by(u, other)
    if late is not None:  # those who enter in the band are not there from its start
        left = left + np.maximum(late, 0.0)[..., None] * (1.0 - _by(u, entering[0]))
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
    events, censored = (_slope(time_offsets[..., i, :], n) for i, n in enumerate(parts[:2]))
    return events, censored


def _slope(offsets: FloatArray, counts: FloatArray) -> FloatArray:
    return 12.0 * np.clip(offsets / np.maximum(counts, 1.0), -1.0 / 6.0, 1.0 / 6.0)


def uncensored_curve(
    outcomes: Outcomes, band_ends: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the uncensored share as a function of time."""
    inside = outcomes.merged(np.ones((1, outcomes.exits.shape[-2]))).paths(1)[0]
    before = np.append(0.0, np.cumsum(inside[:, -1]))
    hazards = np.append(0.0, (before[:-1, None] + inside).ravel())
    parts = np.arange(1, STEPS + 1) / STEPS
    within = band_ends[:-1, None] + np.diff(band_ends)[:, None] * parts
    times = np.append(0.0, within.ravel())
    return lambda t: np.maximum(np.exp(-np.interp(t, times, hazards)), LEAST_UNCENSORED)
