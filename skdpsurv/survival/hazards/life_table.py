r"""The life table of a pilot: counts by band of time, and the baselines fitted to them.

Each record is in one cell of stratum, band and event, and of entry where that is stated.
Neighbours: replace-one. Sensitivity: 2 in L1, and the root of 2 in L2. Theorem: that of a histogram
(:mod:`skdpsurv.mechanisms.sums`). Baselines fitted to it are post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.links import Link
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards.fit import HazardSum
from skdpsurv.survival.hazards.model import N_BANDS, HazardRecords, Records

#: Prior standard deviations of the log-odds of the hazard, and of its shape.
LEVEL_DEVIATION, SHAPE_DEVIATION = 2.0, 0.7
#: Baselines of strata are this many times as near to their common one as that to the prior.
STRATUM_PART = 0.5


class LifeTable(HazardSum):
    """Noisy counts of records by band of time and event, and the baseline fitted to them."""

    name = "a life table"
    query = HISTOGRAM  # each record is in one cell

    def exact_answer(self, context: Context, records: Records) -> IntArray:
        """Return the exact event counts by stratum and band, and by entry if that is stated."""
        model = self.fit.model
        count = entry_counts if model.has_entry else outcome_counts
        return count(records, model.n_intervals, N_BANDS, model.n_strata)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return baselines to shrink to, and shares of events, of early ends, and of strata."""
        fit, late = self.fit, self.fit.model.has_entry
        tables, n_strata = np.reshape(noisy, (fit.model.n_strata, -1)), fit.model.n_strata
        seen = [seen_cells(own).sum(axis=0) if late else np.reshape(own, (-1, 2)) for own in tables]
        table = np.sum(seen, axis=0)
        n_cells = n_strata * (n_seen_cells(len(table)) / 2 if late else len(table))
        n, deviation = fit.model.n_records, HISTOGRAM.deviation(self.price)
        found = table[:, 1].sum(), table[0].sum(), 2.0 * deviation * math.sqrt(n_cells)
        shares = np.clip(np.array(found, dtype=np.float64) / n, 0.0, 1.0)
        prior = fit.public_pilot.center[: fit.model.n_columns]
        how = baseline_from_entries if late else baseline_from_life_table
        given = self.price, fit.basis, fit.likelihood.link
        baselines = [how(tables.sum(axis=0), *given, prior, n_tables=n_strata)]
        if n_strata > 1:
            baselines = [how(own, *given, baselines[0], part=STRATUM_PART) for own in tables]
        mass = np.array([max(own.sum(), 0.0) + deviation for own in seen])
        return {
            "_baseline": np.concatenate([fit.clip_baseline(own) for own in baselines]),
            "_shares": mass / mass.sum(),
            "follow_up": shares,
            **(
                {"_entered": _entered(tables.sum(axis=0)), "_events": n * shares[0]} if late else {}
            ),
        }


def _entered(counts: IntArray) -> FloatArray:
    """Return how many enter from the start, and in each band."""
    return np.asarray(seen_cells(counts).sum(axis=(1, 2)))


def _counted(cell: IntArray, n_cells: int, histories: Histories, n_strata: int) -> IntArray:
    """Count records by cell, in a table of each stratum, one after another."""
    if histories.stratum is not None:
        cell = cell + n_cells * histories.stratum
    return np.bincount(cell, minlength=n_cells * n_strata).astype(np.int64)


def entry_counts(
    records: Records, q: int, n_bands: int, n_strata: int = 1, *, n_causes: int = 1
) -> IntArray:
    """Count private records by stratum, entry, band of time and event; each is in one cell.

    Entries are the start, or a band; events are by cause. The last cell is that of people who are
    never at risk.
    """
    n_bands, n_outcomes = min(n_bands, q), n_causes + 1

    def counts(block: HazardRecords) -> IntArray:
        seen: Any = block.histories
        entered = np.where(seen.entry > 0, 1 + (seen.entry - 1) * n_bands // q, 0)
        cell = n_outcomes * (entered * n_bands + (seen.exit - 1) * n_bands // q) + seen.cause
        n_cells = n_outcomes * (n_bands + 1) * n_bands
        cell = np.where(seen.at_risk, cell, n_cells)
        return _counted(cell, n_cells + 1, seen, n_strata)

    return records.map_reduce(counts)


def exits_and_entries(
    records: Records, q: int, n_strata: int = 1, *, n_causes: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Count exits (n_strata, q, 1 + n_causes), the first ones censored, and entries (n_strata, q).

    They are of those at risk at all.
    """
    n_outcomes = n_causes + 1

    def counts(block: HazardRecords) -> IntArray:
        seen: Any = block.histories.take(block.histories.at_risk)
        cell = n_outcomes * (seen.exit - 1) + seen.cause
        exits = _counted(cell, n_outcomes * q, seen, n_strata)
        return np.append(exits, _counted(seen.entry, q + 1, seen, n_strata))

    found = records.map_reduce(counts).astype(np.float64)
    exits, entries = np.split(found, [n_outcomes * q * n_strata])
    return exits.reshape(-1, q, n_outcomes), entries.reshape(-1, q + 1)[:, 1:]


def outcome_counts(
    records: Records,
    q: int,
    n_bands: int,
    n_strata: int = 1,
    *,
    n_causes: int = 1,
    horizon: bool = False,
) -> IntArray:
    """Count private records, censored and with events, by stratum and band of q intervals.

    Those with events are counted by cause. With ``horizon``, records censored in the last interval
    have a cell of their own, the last one.
    """
    n_bands, n_outcomes = min(n_bands, q), n_causes + 1

    def counts(block: HazardRecords) -> IntArray:
        interval, cause = block.histories.exit, block.histories.cause.astype(np.int64)
        cell = n_outcomes * ((interval - 1) * n_bands // q) + cause
        if horizon:
            stayed = (interval == q) & (cause == 0)
            cell = np.where(stayed, n_outcomes * n_bands, cell)
        return _counted(cell, n_outcomes * n_bands + horizon, block.histories, n_strata)

    return records.map_reduce(counts)


def baseline_from_life_table(
    counts: IntArray,
    price: Price,
    basis: FloatArray,
    link: Link,
    prior: FloatArray,
    *,
    n_tables: int = 1,
    part: float = 1.0,
) -> FloatArray:
    """Fit baseline coefficients to a noisy life table, shrunk towards a prior.

    The table is the sum of ``n_tables``; the prior's deviations are multiplied by ``part``.
    """
    table = np.maximum(counts, 0).reshape(-1, 2).astype(np.float64)
    exits = spread_exits(table, len(basis))
    noise = HISTOGRAM.deviation(price) ** 2 * table.size * n_tables
    return shrunk_baseline(exits, None, noise, basis, link, prior, part)


def baseline_from_entries(
    counts: IntArray,
    price: Price,
    basis: FloatArray,
    link: Link,
    prior: FloatArray,
    *,
    n_tables: int = 1,
    part: float = 1.0,
) -> FloatArray:
    """Fit baseline coefficients to a noisy table by entry, as :func:`entry_counts` makes it.

    The rest is as for :func:`baseline_from_life_table`.
    """
    exits, entries = spread_entries(table := seen_cells(counts), basis.shape[0])
    noise = HISTOGRAM.deviation(price) ** 2 * n_seen_cells(table.shape[1]) * n_tables
    return shrunk_baseline(exits, entries, noise, basis, link, prior, part)


def spread_entries(table: FloatArray, q: int) -> tuple[FloatArray, FloatArray]:
    """Return exits by interval and outcome, and entries by interval, of a table by entry.

    Who enters and leaves in one band is seen for a third of it.
    """
    table, n_bands = table.copy(), table.shape[1]
    own = np.arange(1, n_bands + 1), np.arange(n_bands)
    same = table[own].copy()
    table[own] = 0.0
    exits = spread_exits(np.maximum(table.sum(axis=0), 0.0), q)
    exits += spread_exits(np.maximum(same, 0.0), q, 2 / 3)
    entries = np.zeros(q)
    for entering, share in ((table[1:].sum(axis=1), 0.5), (same, 1 / 3)):
        places = _places(n_bands, q, share)
        np.add.at(entries, places - 1, np.maximum(entering.sum(axis=1), 0.0))
    return exits, entries


def seen_cells(counts: IntArray, n_outcomes: int = 2) -> FloatArray:
    """Return a table by entry, band and event, with 0 where nobody can be: only noise is there."""
    n_pairs = (np.size(counts) - 1) // n_outcomes  # (b + 1) b
    n_bands = round((math.sqrt(4 * n_pairs + 1) - 1.0) / 2.0)
    table = np.reshape(counts[:-1], (n_bands + 1, n_bands, n_outcomes)).astype(np.float64)
    return np.asarray(table * ~np.tri(n_bands + 1, n_bands, -2, dtype=bool)[:, :, None])


def n_seen_cells(n_bands: int, n_outcomes: int = 2) -> int:
    """Return the number of cells that :func:`seen_cells` keeps."""
    return n_outcomes * n_bands * (n_bands + 3) // 2


def _places(n_bands: int, q: int, share: float) -> IntArray:
    return np.clip(np.rint((np.arange(n_bands) + share) * q / n_bands), 1, q).astype(np.int64)


def spread_exits(table: FloatArray, q: int, share: float = 0.5) -> FloatArray:
    """Return exits by interval and outcome, the first one censored, in the middle of bands."""
    middle = _places(len(table), q, share)
    censored = middle.copy()
    censored[-1] = q  # most of the last band's censored records reached the horizon
    exits = np.zeros((q, table.shape[1]))
    np.add.at(exits[:, 0], censored - 1, table[:, 0])
    np.add.at(exits[:, 1:], middle - 1, table[:, 1:])
    return exits


def shrunk_baseline(
    exits: FloatArray,
    entries: FloatArray | None,
    noise: float,
    basis: FloatArray,
    link: Link,
    prior: FloatArray,
    part: float = 1.0,
) -> FloatArray:
    """Fit baseline coefficients to exits and entries of a noise variance, shrunk to a prior."""
    n_basis = basis.shape[1]
    size = np.sqrt(np.mean(basis**2, axis=0))
    deviation = np.full(n_basis, part * SHAPE_DEVIATION)
    deviation[0] = part * LEVEL_DEVIATION
    # The ridge that minimises a coefficient's squared error: noise variance over information times
    # prior variance.
    ridge = noise * size**2 / (max(exits[:, 1].sum(), math.sqrt(noise)) * deviation**2)
    return fit_to_exits(exits, basis, link, prior, ridge, 25, entries)


def fit_to_exits(
    exits: FloatArray,
    basis: FloatArray,
    link: Link,
    start: FloatArray,
    ridge: FloatArray | float,
    n_steps: int,
    entries: FloatArray | None = None,
) -> FloatArray:
    r"""Fit baseline coefficients to exits without and with an event, of shape (n_intervals, 2).

    .. math:: \sum_s m_s\varphi(A_s a) + d_s\psi(A_s a) + \tfrac12\sum_j r_j (a_j - a^0_j)^2

    with :math:`m_s` survivors of an interval, of those who had entered before it, and :math:`d_s`
    events in it. ``entries`` are counts by interval, of people at risk later; None: no late ones.
    """
    events = exits[:, 1]
    survivors = np.cumsum(exits.sum(axis=1)[::-1])[::-1] - events
    if entries is not None:
        survivors = np.maximum(survivors - np.cumsum(entries[::-1])[::-1], 0.0)
    size = np.sqrt(np.mean(basis**2, axis=0))
    coef = start
    for _ in range(n_steps):
        predictor = basis @ coef
        survival, event = link.survival(predictor), link.event(predictor)
        gradient = (survivors * survival.slope + events * event.slope) @ basis
        curvature = survivors * survival.curvature + events * event.curvature
        hessian = basis.T @ (curvature[:, None] * basis)
        # The small multiple of the identity keeps the system regular for any table.
        damping = (ridge + 1e-9 * (np.trace(hessian) or 1.0)) * np.eye(coef.size)
        step = np.linalg.solve(hessian + damping, gradient + ridge * (coef - start))
        largest = float(np.max(np.abs(step * size)))
        coef = coef - step * min(1.0, 1.5 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    return coef
