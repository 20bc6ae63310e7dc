"""Measures of a model and their intervals, from released numbers; and measures without privacy.

An interval allows for sampling and for noise: tables are simulated from the released one, after
projection onto possible counts, and receive the same noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.histories import Histories
from skdpsurv.data.target import survival_target
from skdpsurv.dp.noise import RandomSource, random_source
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.evaluation import risk_table
from skdpsurv.evaluation.evaluation_plan import EvaluationSetting
from skdpsurv.evaluation.grouped_concordance import between_ties, concordance
from skdpsurv.evaluation.risk_table import OFFSETS, EvaluationRecords, EvaluationTable, Outcomes
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS
from skdpsurv.survival.concordance import concordance_index

N_RESAMPLES = 500
#: Chosen groups join a neighbour below this part of an equal share,
LEAST_SHARE = 0.4
#: or below this number of standard deviations of their counts' noise.
LEAST_SIGNAL = 4.0


class Measures(NamedTuple):
    """Measures, perhaps with a leading axis of simulations.

    ``predicted`` is mean survival at the horizon by group, and ``observed`` that of the life table;
    with late entries, since the entry. ``curves`` is observed survival at the ends of bands.
    """

    c_index: FloatArray
    brier: FloatArray
    ratio: FloatArray
    predicted: FloatArray
    observed: FloatArray
    curves: FloatArray


class ReleasedSums(NamedTuple):
    """Quantities that noise is added to, perhaps with a leading axis of simulations."""

    table: FloatArray
    risk_offsets: FloatArray
    time_offsets: FloatArray
    brier: FloatArray
    entry_offsets: FloatArray = np.zeros(0)

    @classmethod
    def of(cls, released: Mapping[str, Any]) -> ReleasedSums:
        """Return released numbers as floats."""
        names = [name for name in cls._fields if name in released]
        return cls(**{name: np.asarray(released[name], dtype=np.float64) for name in names})


@dataclass(frozen=True)
class Reading:
    """Settings, edges and merged groups, by which released sums become measures.

    ``shares`` are the groups' noisy counts. ``merged``, of shape (n_shown, n_groups), is 1 where a
    group of the table is part of a group that is shown.
    """

    setting: EvaluationSetting
    edges: EvaluationTable
    shares: FloatArray
    merged: FloatArray

    @classmethod
    def of(cls, setting: EvaluationSetting, released: Mapping[str, Any]) -> Reading:
        """Read the edges of a release, and decide which groups to merge."""
        edges = setting.table(released)
        cells = released["table"][:, edges.counted]
        counts = np.maximum(cells.sum(axis=1), 0.0)
        deviation = np.sqrt(cells.shape[1]) * HISTOGRAM.deviation(setting.shares["table"])
        least = max(LEAST_SHARE * setting.n_records / setting.n_groups, LEAST_SIGNAL * deviation)
        given = "risk_edges" in setting.edges
        return cls(setting, edges, counts, np.eye(counts.size) if given else _merged(counts, least))

    @property
    def ends(self) -> FloatArray:
        """Ends of the shown groups, in predicted survival."""
        first = np.argmax(self.merged, axis=1)
        return np.append(self.edges.group_ends[first], 1.0)

    @property
    def tops(self) -> FloatArray:
        """Largest predictions in the shown groups."""
        return np.ones(self.ends.size - 1) if self.edges.late_entry else self.ends[1:]

    def outcomes(self, sums: ReleasedSums) -> Outcomes:
        """Return exits and entries by group."""
        return self.edges.read(sums.table, sums.time_offsets, sums.entry_offsets)

    def uncensored(self, sums: ReleasedSums) -> float:
        """Return the share that is not censored before the horizon, of those at risk."""
        outcomes = self.outcomes(sums)
        if outcomes.entrants is None:
            curve = risk_table.uncensored_curve(outcomes, self.edges.band_ends)
            return float(curve(np.array([self.setting.horizon]))[0])
        pooled = outcomes.merged(np.ones((1, self.edges.n_groups)))
        return float(pooled.since_entry(pooled.paths(1))[0])

    def measures(self, sums: ReleasedSums) -> Measures:
        """Return the measures of the model."""
        outcomes, lows, tops = (
            self.outcomes(sums),
            self.edges.group_ends[:-1],
            self.edges.group_tops,
        )
        counts = outcomes.exits.sum(axis=-1)
        half = np.abs(counts) / 2.0
        offsets = (tops - lows) * np.clip(sums.risk_offsets, -half, half)
        survivors = counts * ((lows + tops) / 2.0) + offsets
        shown = counts @ self.merged.T
        predicted = survivors @ self.merged.T / np.maximum(shown, 1.0)
        everybody = np.maximum(counts.sum(axis=-1), 1.0)
        expected = 1.0 - np.clip(survivors.sum(axis=-1) / everybody, 0.0, 1.0)
        by_group = outcomes.merged(self.merged)
        observed = by_group.observed()
        n_terms: Any = self.setting.n_records
        if outcomes.entrants is None:
            pooled = outcomes.merged(np.ones((1, counts.shape[-1])))
            survived = pooled.observed()[..., 0]
        else:  # covariates may depend on the entry: each group has its own life table
            n_terms = self.edges.entered_by(outcomes, self.setting.times).mean(axis=-1)
            shown = np.maximum(shown, 0.0)
            survived = (shown * observed).sum(axis=-1) / np.maximum(shown.sum(axis=-1), 1.0)
        found = concordance(outcomes.exits, outcomes.slopes, outcomes.late)
        return Measures(
            between_ties(found, self.shares),
            np.clip(sums.brier / np.maximum(n_terms, 1.0), 0.0, 1.0),
            expected / np.maximum(1.0 - survived, 1.0 / self.setting.n_records),
            np.clip(predicted, self.ends[:-1], self.tops),
            observed,
            by_group.curves(),
        )


def _merged(counts: FloatArray, least: float) -> FloatArray:
    groups = [[k] for k in range(counts.size)]
    while len(groups) > 1:
        sizes = [counts[group].sum() for group in groups]
        k = int(np.argmin(sizes))
        if sizes[k] >= least:
            break
        neighbours = [j for j in (k - 1, k + 1) if 0 <= j < len(groups)]
        first = min(k, min(neighbours, key=lambda j: sizes[j]))
        groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return np.array([np.isin(np.arange(counts.size), group) for group in groups], dtype=np.float64)


def intervals(
    reading: Reading, sums: ReleasedSums, found: Measures, level: float
) -> tuple[Measures, Measures]:
    """Return lower and upper ends of intervals; their fixed seed makes them reproducible."""
    source = random_source(0, purpose="interval")
    truth, draws = map(reading.measures, _simulated(reading, sums, source))
    ends = []
    for name, value, true, drawn in zip(Measures._fields, found, truth, draws, strict=True):
        if name == "ratio":
            factor = np.exp(_width(np.log(np.maximum(drawn, 1e-9) / np.maximum(true, 1e-9)), level))
            ends.append((value / factor, value * factor))
        else:
            width = _width(drawn - true, level)
            ends.append(tuple(np.clip([value - width, value + width], 0.0, 1.0)))
    lower, upper = zip(*ends, strict=True)
    return Measures(*lower), Measures(*upper)


def _width(errors: FloatArray, level: float) -> FloatArray:
    """Return the half-width of an interval: the larger of both quantiles of the errors."""
    low, high = np.quantile(errors, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return np.asarray(np.maximum(np.maximum(-low, high), 0.0))


def _simulated(
    reading: Reading, sums: ReleasedSums, source: RandomSource
) -> tuple[ReleasedSums, ReleasedSums]:
    """Return a plausible truth, and simulated releases of samples from it."""
    setting, generator = reading.setting, source.generator
    edges, possible = reading.edges, reading.edges.possible
    table = np.zeros(sums.table.shape)
    likely = _on_simplex(sums.table[:, possible].ravel(), setting.n_records)
    table[:, possible] = likely.reshape(-1, possible.sum())
    likely = table.ravel()
    cells = generator.multinomial(setting.n_records, likely / likely.sum(), size=N_RESAMPLES)
    cells = cells.reshape(N_RESAMPLES, *sums.table.shape)
    offset_sums = sums.time_offsets, sums.entry_offsets
    truth, drawn = (edges.read(one, *offset_sums) for one in (table, cells.astype(np.float64)))

    def offsets(released: FloatArray, own: FloatArray, others: FloatArray) -> tuple[Any, Any]:
        mean = np.clip(released / np.maximum(own, 1.0), -0.5, 0.5)
        sampling = np.sqrt(others / 12.0) * generator.standard_normal(others.shape)
        return mean * own, mean * others + sampling

    by_group = (one.exits.sum(axis=-1) for one in (truth, drawn))
    risk, risks = offsets(sums.risk_offsets, *by_group)
    time, times = offsets(sums.time_offsets, truth.leaving, drawn.leaving)
    mean, variance = _terms(reading, sums)
    spread = np.sqrt((cells * variance).sum(axis=(1, 2))) * generator.standard_normal(N_RESAMPLES)
    briers = (cells * mean).sum(axis=(1, 2)) + spread

    def noisy(query: Any, values: Any, name: str, unit: float) -> FloatArray:
        exact: IntArray = np.rint(values / unit).astype(np.int64)
        return np.asarray(query.release(exact, setting.shares[name], source) * unit)

    exact = ReleasedSums(table, risk, time, np.asarray((table * mean).sum()))
    simulated = ReleasedSums(
        noisy(HISTOGRAM, cells, "table", 1.0),
        noisy(OFFSETS, risks, "risk_offsets", 2.0**OFFSETS.exponent),
        noisy(OFFSETS, times, "time_offsets", 2.0**OFFSETS.exponent),
        noisy(LOSS, briers, "brier", LOSS.value(1)),
    )
    if truth.late is not None and drawn.late is not None:
        late = (one.sum(axis=-2) for one in (truth.late, drawn.late))
        entry, entries = offsets(sums.entry_offsets, *late)
        exact = exact._replace(entry_offsets=entry)
        entries = noisy(OFFSETS, entries, "entry_offsets", 2.0**OFFSETS.exponent)
        simulated = simulated._replace(entry_offsets=entries)
    return exact, simulated


def _on_simplex(counts: FloatArray, total: float) -> FloatArray:
    """Return the nearest nonnegative counts with the known total."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(counts - excess[last], 0.0)


def _terms(reading: Reading, sums: ReleasedSums) -> tuple[FloatArray, FloatArray]:
    """Return the approximate mean and variance of Brier terms in each cell."""
    setting, edges, outcomes = reading.setting, reading.edges, reading.outcomes(sums)
    everybody = outcomes.merged(np.ones((1, edges.n_groups)))
    path = everybody.paths()[0, :, -1]
    if edges.competing:
        path = -np.diff(np.log(np.maximum(everybody.curves()[0], 1e-9)), prepend=0.0)
    risen = np.concatenate([[0.0], np.cumsum(path + 1e-9)])
    curve = risk_table.uncensored_curve(outcomes, edges.band_ends)
    n_points, n_bands = 8, edges.n_bands
    points = (np.arange(n_points) + 0.5) / n_points
    starts, widths = edges.band_ends[:-1, None], np.diff(edges.band_ends)[:, None]
    within = (starts + widths * points).ravel()
    n_leaving = edges.n_leaving
    time = np.append(np.tile(within, n_leaving), np.full(n_points, setting.horizon))
    event = np.arange(time.size) < within.size
    if edges.competing:  # events of this cause, of others, and none
        event = np.array([1, 2, 0, 0])[np.arange(time.size) // within.size]
    exits, entry, n_cells = Histories(time, event), None, n_leaving * n_bands + 1
    weights = curve(setting.times), curve(time)
    if edges.late_entry:
        # In other bands the points are in another order; in the same one, half-way to the exit.
        places = np.array([0, 5, 2, 7, 4, 1, 6, 3])
        first = np.tile(within.reshape(n_bands, 1, -1)[..., places], (1, n_cells, 1))
        first = np.minimum(first.reshape(n_bands, -1), (starts + time) / 2.0)
        entry = np.concatenate([np.zeros(time.size), first.ravel()])
        repeated = Histories(np.tile(time, n_bands + 1), np.tile(event, n_bands + 1), entry)
        exits, n_cells = repeated, n_cells * (n_bands + 1)
        weights = (
            risk_table.weights_since_entry(curve, setting.times, entry[:, None]),
            risk_table.weights_since_entry(curve, exits.exit, entry),
        )

    def share(times: FloatArray) -> FloatArray:
        return np.asarray(np.interp(times, edges.band_ends, risen / risen[-1]))

    counts = np.maximum(outcomes.exits.sum(axis=-1), 1.0)
    center = np.clip(sums.risk_offsets / counts, -0.5, 0.5)
    mean, variance = np.zeros((2, *edges.shape))
    for g in range(edges.n_groups):
        low, high = edges.group_ends[g : g + 2]
        middle = 0.0 if edges.late_entry else center[g]  # that of predictions since the entry
        around = (low + high) / 2.0 + (high - low) * (middle + np.array([-0.25, 0.25]))
        terms = []
        for s in np.clip(around, max(low, 1e-6), high):
            survival = np.tile(np.append(s ** share(setting.times), s), (exits.size, 1))
            records = EvaluationRecords(
                survival, exits, None if entry is None else s ** share(entry)
            )
            terms.append(risk_table.brier_terms(records, setting.times, *weights))
        cells = np.stack(terms, axis=1).reshape(n_cells, -1)
        mean[g, :n_cells], variance[g, :n_cells] = cells.mean(axis=1), cells.var(axis=1)
    return mean, variance


def exact_measures(records: EvaluationRecords, reading: Reading) -> Measures:
    """Return the measures without noise, not private, for the groups of a reading.

    C ranks by predicted risk at the horizon. Whoever had an event of another cause stays in its
    pairs, as free of this one, and observed survival is then 1 less the Aalen-Johansen estimate.
    The Brier score is weighted by the Kaplan-Meier
    estimate of censoring, and observed survival is the Kaplan-Meier estimate of each group, with
    late entries since these; NaN stands for groups without records.
    """
    setting = reading.setting
    found, ends = records.histories.clipped(setting.horizon), reading.edges.band_ends[1:]
    late = found.entry is not None
    who = records.at_risk(setting.horizon)
    seen, at_entry = found.take(who), None if records.at_entry is None else records.at_entry[who]
    clipped = EvaluationRecords(records.survival[who], seen, at_entry)
    time, event, n = seen.exit, seen.event, max(seen.size, 1)
    entry = np.zeros(time.size) if seen.entry is None else seen.entry
    n_terms = (entry[:, None] < setting.times).sum() / setting.times.size if late else n
    censoring = KaplanMeier.of(~event, time, entry, after=event)
    weights = censoring.since(entry[:, None], setting.times), censoring.since(entry, time)
    uncensored, at_exit = (np.where(share > 0.0, share, 1.0) for share in weights)
    if not late:
        uncensored = uncensored[0] if time.size else np.ones(setting.times.size)
    last, risk = clipped.since_entry[:, -1], 1.0 - clipped.survival[:, -1]
    group = np.searchsorted(reading.ends[1:-1], clipped.survival[:, -1], side="right")
    groups = [group == g for g in range(reading.merged.shape[0])]
    cause, horizon = seen.cause, ends[-1:]
    estimate = AalenJohansen if reading.edges.competing else KaplanMeier
    curves = [estimate.of(cause[own], time[own], entry[own]) for own in groups]
    everybody = estimate.of(cause, time, entry)
    observed = [
        curve.since(entry[own], horizon).mean() if own.any() else np.nan
        for curve, own in zip(curves, groups, strict=True)
    ]
    survived = everybody.since(np.zeros(1), horizon)[0]
    if late:
        survived = np.nansum([x * own.sum() for x, own in zip(observed, groups, strict=True)]) / n
    brier = risk_table.brier_terms(clipped, setting.times, uncensored, at_exit, clip=False)
    target = survival_target(cause == 1, np.where(cause > 1, 2.0 * setting.horizon, time))
    return Measures(
        np.asarray(concordance_index(target, risk, entry=seen.entry)),
        np.asarray(brier.sum() / max(n_terms, 1.0 / n)),
        np.asarray((1.0 - last).sum() / n / max(1.0 - survived, 1.0 / n)),
        np.array([last[own].mean() if own.any() else np.nan for own in groups]),
        np.array(observed),
        np.stack([curve.since(np.zeros(1), ends) for curve in curves]),
    )


@dataclass(frozen=True)
class KaplanMeier:
    """Shares of those at risk who leave at each time: not private."""

    times: FloatArray
    stayed: FloatArray

    @classmethod
    def of(
        cls, leaving: BoolArray, time: FloatArray, entry: FloatArray, after: BoolArray | None = None
    ) -> KaplanMeier:
        """Return the estimate; who enters at a time is not at risk at it, but for those at 0."""
        times, index, number = np.unique(time, return_inverse=True, return_counts=True)
        entered = np.sort(np.where(entry > 0.0, entry, -1.0))
        at_risk = np.searchsorted(entered, times, side="left") - (np.cumsum(number) - number)
        if after is not None:
            at_risk = at_risk - np.bincount(index, after, minlength=times.size)
        gone = np.bincount(index, leaving, minlength=times.size) / np.maximum(at_risk, 1)
        return cls(times, 1.0 - gone)

    def since(self, entry: FloatArray, at: FloatArray) -> FloatArray:
        """Return the share, of those there at the entry, that stays until later times."""
        first, last = (np.searchsorted(self.times, t, side="right") for t in (entry, at))
        first = np.where(entry > 0.0, first, 0)
        with np.errstate(divide="ignore"):
            logs = np.log(self.stayed)
        lost = np.append(0, np.cumsum(self.stayed <= 0.0))
        logs = np.append(0.0, np.cumsum(np.where(self.stayed > 0.0, logs, 0.0)))
        return np.where(lost[last] > lost[first], 0.0, np.exp(logs[last] - logs[first]))


@dataclass(frozen=True)
class AalenJohansen:
    """Shares without an event of a cause, among competing ones: not private."""

    times: FloatArray
    without: FloatArray

    @classmethod
    def of(cls, cause: IntArray, time: FloatArray, entry: FloatArray) -> AalenJohansen:
        """Return the estimate for cause 1 of people who are seen from the start."""
        survival = KaplanMeier.of(cause > 0, time, entry)
        before = np.append(1.0, np.cumprod(survival.stayed)[:-1])
        index = np.searchsorted(survival.times, time)
        own, number = (np.bincount(index, x, survival.times.size) for x in (cause == 1, None))
        at_risk = np.cumsum(number[::-1])[::-1]
        return cls(survival.times, 1.0 - np.cumsum(before * own / np.maximum(at_risk, 1)))

    def since(self, entry: FloatArray, at: FloatArray) -> FloatArray:
        """Return the share at times; all are seen from the start."""
        return np.append(1.0, self.without)[np.searchsorted(self.times, at, side="right")]
