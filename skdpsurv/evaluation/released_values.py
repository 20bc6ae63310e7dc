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
from skdpsurv.evaluation.risk_table import OFFSETS, EvaluationRecords, EvaluationTable
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS
from skdpsurv.survival.concordance import concordance_index

N_RESAMPLES = 500
#: Chosen groups join a neighbour below this part of an equal share,
LEAST_SHARE = 0.4
#: or below this number of standard deviations of their counts' noise.
LEAST_SIGNAL = 4.0


class Measures(NamedTuple):
    """Measures, perhaps with a leading axis of simulations.

    ``predicted`` is mean survival at the horizon by group, and ``curves`` observed survival at the
    ends of bands by group.
    """

    c_index: FloatArray
    brier: FloatArray
    ratio: FloatArray
    predicted: FloatArray
    curves: FloatArray


class ReleasedSums(NamedTuple):
    """Quantities that noise is added to, perhaps with a leading axis of simulations."""

    table: FloatArray
    risk_offsets: FloatArray
    time_offsets: FloatArray
    brier: FloatArray

    @classmethod
    def of(cls, released: Mapping[str, Any]) -> ReleasedSums:
        """Return released numbers as floats."""
        return cls(*(np.asarray(released[name], dtype=np.float64) for name in cls._fields))


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
        counts = np.maximum(released["table"].sum(axis=1), 0.0)
        deviation = np.sqrt(edges.shape[1]) * HISTOGRAM.deviation(setting.shares["table"])
        least = max(LEAST_SHARE * setting.n_records / setting.n_groups, LEAST_SIGNAL * deviation)
        given = "risk_edges" in setting.edges
        return cls(setting, edges, counts, np.eye(counts.size) if given else _merged(counts, least))

    @property
    def ends(self) -> FloatArray:
        """Ends of the shown groups, in predicted survival."""
        first = np.argmax(self.merged, axis=1)
        return np.append(self.edges.group_ends[first], 1.0)

    def uncensored(self, sums: ReleasedSums) -> float:
        """Return the share that is not censored before the horizon."""
        curve = risk_table.uncensored_curve(sums.table, sums.time_offsets, self.edges.band_ends)
        return float(curve(np.array([self.setting.horizon]))[0])

    def measures(self, sums: ReleasedSums) -> Measures:
        """Return the measures of the model."""
        table, ends = sums.table, self.edges.group_ends
        slopes = risk_table.slopes_of(table, sums.time_offsets)
        counts = table.sum(axis=-1)
        half = np.abs(counts) / 2.0
        offsets = np.diff(ends) * np.clip(sums.risk_offsets, -half, half)
        survivors = counts * ((ends[:-1] + ends[1:]) / 2.0) + offsets
        shown = counts @ self.merged.T
        predicted = survivors @ self.merged.T / np.maximum(shown, 1.0)
        everybody = np.maximum(counts.sum(axis=-1), 1.0)
        expected = 1.0 - np.clip(survivors.sum(axis=-1) / everybody, 0.0, 1.0)
        pooled = risk_table.observed_curves(table.sum(axis=-2, keepdims=True), slopes)[..., 0, -1]
        return Measures(
            risk_table.between_ties(risk_table.concordance(table, slopes), self.shares),
            np.clip(sums.brier / self.setting.n_records, 0.0, 1.0),
            expected / np.maximum(1.0 - pooled, 1.0 / self.setting.n_records),
            np.clip(predicted, self.ends[:-1], self.ends[1:]),
            risk_table.observed_curves(self.merged @ table, slopes),
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
    n_bands = reading.edges.n_bands
    table = _on_simplex(sums.table.ravel(), setting.n_records)
    cells = generator.multinomial(setting.n_records, table / table.sum(), size=N_RESAMPLES)
    cells = cells.reshape(N_RESAMPLES, *sums.table.shape)
    table = table.reshape(sums.table.shape)

    def offsets(released: FloatArray, own: FloatArray, others: FloatArray) -> tuple[Any, Any]:
        mean = np.clip(released / np.maximum(own, 1.0), -0.5, 0.5)
        sampling = np.sqrt(others / 12.0) * generator.standard_normal(others.shape)
        return mean * own, mean * others + sampling

    risk, risks = offsets(sums.risk_offsets, table.sum(axis=1), cells.sum(axis=2))
    by_band = (reading.edges.n_groups, 2, n_bands)
    own = table[:, :-1].reshape(by_band).sum(axis=0)
    others = cells[..., :-1].reshape(N_RESAMPLES, *by_band).sum(axis=1)
    time, times = offsets(sums.time_offsets, own, others)
    mean, variance = _terms(reading, sums)
    spread = np.sqrt((cells * variance).sum(axis=(1, 2))) * generator.standard_normal(N_RESAMPLES)
    briers = (cells * mean).sum(axis=(1, 2)) + spread

    def noisy(query: Any, values: Any, name: str, unit: float) -> FloatArray:
        exact: IntArray = np.rint(values / unit).astype(np.int64)
        return np.asarray(query.release(exact, setting.shares[name], source) * unit)

    return ReleasedSums(table, risk, time, np.asarray((table * mean).sum())), ReleasedSums(
        noisy(HISTOGRAM, cells, "table", 1.0),
        noisy(OFFSETS, risks, "risk_offsets", 2.0**OFFSETS.exponent),
        noisy(OFFSETS, times, "time_offsets", 2.0**OFFSETS.exponent),
        noisy(LOSS, briers, "brier", LOSS.value(1)),
    )


def _on_simplex(counts: FloatArray, total: float) -> FloatArray:
    """Return the nearest nonnegative counts with the known total."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(counts - excess[last], 0.0)


def _terms(reading: Reading, sums: ReleasedSums) -> tuple[FloatArray, FloatArray]:
    """Return the approximate mean and variance of Brier terms in each cell."""
    setting, edges = reading.setting, reading.edges
    slopes = risk_table.slopes_of(sums.table, sums.time_offsets)
    path = risk_table.hazard_path(*risk_table.parts_of(sums.table.sum(axis=0)), slopes)[:, -1]
    risen = np.concatenate([[0.0], np.cumsum(path + 1e-9)])
    share = np.interp(setting.times, edges.band_ends, risen / risen[-1])
    curve = risk_table.uncensored_curve(sums.table, sums.time_offsets, edges.band_ends)
    n_points, n_bands = 8, edges.n_bands
    points = (np.arange(n_points) + 0.5) / n_points
    starts, widths = edges.band_ends[:-1, None], np.diff(edges.band_ends)[:, None]
    within = (starts + widths * points).ravel()
    time = np.concatenate([within, within, np.full(n_points, setting.horizon)])
    event = np.arange(time.size) < within.size
    weights = curve(setting.times), curve(time)
    center = np.clip(sums.risk_offsets / np.maximum(sums.table.sum(axis=1), 1.0), -0.5, 0.5)
    mean, variance = np.empty(edges.shape), np.empty(edges.shape)
    for g in range(edges.n_groups):
        low, high = edges.group_ends[g : g + 2]
        around = (low + high) / 2.0 + (high - low) * (center[g] + np.array([-0.25, 0.25]))
        terms = []
        for s in np.clip(around, max(low, 1e-6), high):
            survival = np.tile(np.append(s**share, s), (time.size, 1))
            records = EvaluationRecords(survival, Histories(time, event))
            terms.append(risk_table.brier_terms(records, setting.times, *weights))
        cells = np.stack(terms, axis=1).reshape(2 * n_bands + 1, -1)
        mean[g], variance[g] = cells.mean(axis=1), cells.var(axis=1)
    return mean, variance


def exact_measures(records: EvaluationRecords, reading: Reading) -> Measures:
    """Return the measures without noise, not private, for the groups of a reading.

    C ranks by predicted risk at the horizon. The Brier score is weighted by the Kaplan-Meier
    estimate of censoring, and observed survival is the Kaplan-Meier estimate of each group; NaN
    stands for groups without records.
    """
    setting = reading.setting
    seen = records.histories.clipped(setting.horizon)
    time, event = seen.exit, seen.event
    uncensored, at_exit = (
        np.where(shares > 0.0, shares, 1.0)  # nobody is left where it is 0
        for shares in (_survival(~event, time, at, after=event) for at in (setting.times, time))
    )
    clipped = EvaluationRecords(records.survival, seen)
    last = records.survival[:, -1]
    group = np.searchsorted(reading.ends[1:-1], last, side="right")
    groups = [group == g for g in range(reading.merged.shape[0])]
    ends = reading.edges.band_ends[1:]
    return Measures(
        np.asarray(concordance_index(survival_target(event, time), 1.0 - last)),
        risk_table.brier_terms(clipped, setting.times, uncensored, at_exit, clip=False).mean(),
        (1.0 - last).mean() / max(1.0 - _survival(event, time, ends)[-1], 1.0 / time.size),
        np.array([last[who].mean() if who.any() else np.nan for who in groups]),
        np.stack([_survival(event[who], time[who], ends) for who in groups]),
    )


def _survival(
    leaving: BoolArray, time: FloatArray, at: FloatArray, after: BoolArray | None = None
) -> FloatArray:
    """Return the Kaplan-Meier estimate at some times; NaN without records."""
    if not time.size:
        return np.full(at.size, np.nan)
    times, index, number = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = time.size - np.cumsum(number) + number
    if after is not None:
        at_risk = at_risk - np.bincount(index, after)
    gone = np.bincount(index, leaving) / np.maximum(at_risk, 1)
    return np.append(1.0, np.cumprod(1.0 - gone))[np.searchsorted(times, at, side="right")]
