"""The measures of a model and their intervals, of what was released; and without privacy.

An interval allows for sampling and for noise: tables of other people are simulated from the
released one, with its noise taken off as far as counts can tell, and the same noise is put on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.target import survival_target
from skdpsurv.dp import RandomSource, clip_times, random_source
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.evaluation.plan import Setting
from skdpsurv.evaluation.risk_table import (
    OFFSETS,
    EvaluationRecords,
    RiskTable,
    between_ties,
    brier_terms,
    concordance,
    hazard_path,
    observed_curves,
    parts_of,
    slopes_of,
    uncensored_curve,
)
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS
from skdpsurv.survival.concordance import concordance_index

N_RESAMPLES = 500
#: Groups that are found, and have less than this part of an equal share, join a neighbour.
LEAST_SHARE = 0.4
#: Noise of a group's count, in standard deviations, below which it joins one, too.
LEAST_SIGNAL = 4.0


class Measures(NamedTuple):
    """How good a model is; arrays may have an axis of simulations in front.

    Parameters
    ----------
    c_index, brier, ratio : ndarray of shape (...)
    predicted : ndarray of shape (..., n_groups)
        Mean survival at the horizon.
    curves : ndarray of shape (..., n_groups, n_bands)
        Observed survival at the ends of bands, the last of which is the horizon.
    """

    c_index: FloatArray
    brier: FloatArray
    ratio: FloatArray
    predicted: FloatArray
    curves: FloatArray


class Sums(NamedTuple):
    """What noise is added to, with the same axis in front."""

    table: FloatArray
    risk_offsets: FloatArray
    time_offsets: FloatArray
    brier: FloatArray

    @classmethod
    def of(cls, released: Mapping[str, Any]) -> Sums:
        """Return released numbers as floats."""
        return cls(*(np.asarray(released[name], dtype=np.float64) for name in cls._fields))


@dataclass(frozen=True)
class Reading:
    """How a release is read.

    Parameters
    ----------
    setting : Setting
    edges : RiskTable
    shares : ndarray of shape (n_groups,)
        Of records in each group.
    merged : ndarray of shape (n_shown, n_groups)
        1 where a group of the table is part of a group that is shown.
    """

    setting: Setting
    edges: RiskTable
    shares: FloatArray
    merged: FloatArray

    @classmethod
    def of(cls, setting: Setting, released: Mapping[str, Any]) -> Reading:
        """Read a release for the first time."""
        edges = setting.table(released)
        counts = np.maximum(released["table"].sum(axis=1), 0.0)
        each = HISTOGRAM.deviation(setting.shares["table"])
        deviation = np.sqrt(edges.shape[1]) * each
        least = max(LEAST_SHARE * setting.n_records / setting.n_groups, LEAST_SIGNAL * deviation)
        given = "risk_edges" in setting.edges
        return cls(setting, edges, counts, np.eye(counts.size) if given else _merged(counts, least))

    @property
    def ends(self) -> FloatArray:
        """Ends of the groups that are shown, in predicted survival."""
        first = np.argmax(self.merged, axis=1)
        return np.append(self.edges.group_ends[first], 1.0)

    def uncensored(self, sums: Sums) -> float:
        """Return the share that would not be censored before the horizon."""
        curve = uncensored_curve(sums.table, sums.time_offsets, self.edges.band_ends)
        return float(curve(np.array([self.setting.horizon]))[0])

    def measures(self, sums: Sums) -> Measures:
        """Return what the numbers say of the model."""
        table, ends = sums.table, self.edges.group_ends
        slopes = slopes_of(table, sums.time_offsets)
        counts = table.sum(axis=-1)
        middles, widths = (ends[:-1] + ends[1:]) / 2.0, np.diff(ends)
        survivors = counts * middles + widths * np.clip(
            sums.risk_offsets, -np.abs(counts) / 2.0, np.abs(counts) / 2.0
        )
        shown = counts @ self.merged.T
        predicted = survivors @ self.merged.T / np.maximum(shown, 1.0)
        everybody = np.maximum(counts.sum(axis=-1), 1.0)
        expected = 1.0 - np.clip(survivors.sum(axis=-1) / everybody, 0.0, 1.0)
        pooled = observed_curves(table.sum(axis=-2, keepdims=True), slopes)[..., 0, -1]
        return Measures(
            between_ties(concordance(table, slopes), self.shares),
            np.clip(sums.brier / self.setting.n_records, 0.0, 1.0),
            expected / np.maximum(1.0 - pooled, 1.0 / self.setting.n_records),
            np.clip(predicted, self.ends[:-1], self.ends[1:]),
            observed_curves(self.merged @ table, slopes),
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
    reading: Reading, sums: Sums, found: Measures, level: float
) -> tuple[Measures, Measures]:
    """Return lower and upper ends of intervals around what was found.

    The same for the same release, as its randomness has a fixed seed.
    """
    source = random_source(0, purpose="interval")
    truth, draws = map(reading.measures, _simulated(reading, sums, source))
    ends = []
    for name, value, true, drawn in zip(Measures._fields, found, truth, draws, strict=True):
        if name == "ratio":
            width = np.exp(_width(np.log(np.maximum(drawn, 1e-9) / np.maximum(true, 1e-9)), level))
            ends.append((value / width, value * width))
        else:
            width = _width(drawn - true, level)
            ends.append(tuple(np.clip([value - width, value + width], 0.0, 1.0)))
    lower, upper = zip(*ends, strict=True)
    return Measures(*lower), Measures(*upper)


def _width(errors: FloatArray, level: float) -> FloatArray:
    """Return how far an interval goes to both sides: as far as errors go to their longer one."""
    low, high = np.quantile(errors, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return np.asarray(np.maximum(np.maximum(-low, high), 0.0))


def _simulated(reading: Reading, sums: Sums, source: RandomSource) -> tuple[Sums, Sums]:
    """Return a plausible truth, and what would be released of samples from it."""
    setting, generator = reading.setting, source.generator
    n_bands = reading.edges.n_bands
    table = _on_simplex(sums.table.ravel(), setting.n_records)
    cells = generator.multinomial(setting.n_records, table / table.sum(), size=N_RESAMPLES)
    cells = cells.reshape(N_RESAMPLES, *sums.table.shape)
    table = table.reshape(sums.table.shape)

    def places(offsets: FloatArray, own: FloatArray, others: FloatArray) -> tuple[Any, Any]:
        mean = np.clip(offsets / np.maximum(own, 1.0), -0.5, 0.5)
        spread = np.sqrt(others / 12.0) * generator.standard_normal(others.shape)
        return mean * own, mean * others + spread

    risk, risks = places(sums.risk_offsets, table.sum(axis=1), cells.sum(axis=2))
    by_band = (reading.edges.n_groups, 2, n_bands)
    time, times = places(
        sums.time_offsets,
        table[:, :-1].reshape(by_band).sum(axis=0),
        cells[..., :-1].reshape(N_RESAMPLES, *by_band).sum(axis=1),
    )
    mean, variance = _terms(reading, sums)
    spread = np.sqrt((cells * variance).sum(axis=(1, 2))) * generator.standard_normal(N_RESAMPLES)
    briers = (cells * mean).sum(axis=(1, 2)) + spread

    def noisy(query: Any, values: Any, name: str, unit: float) -> FloatArray:
        exact: IntArray = np.rint(values / unit).astype(np.int64)
        return np.asarray(query.release(exact, setting.shares[name], source) * unit)

    return Sums(table, risk, time, np.asarray((table * mean).sum())), Sums(
        noisy(HISTOGRAM, cells, "table", 1.0),
        noisy(OFFSETS, risks, "risk_offsets", 2.0**OFFSETS.exponent),
        noisy(OFFSETS, times, "time_offsets", 2.0**OFFSETS.exponent),
        noisy(LOSS, briers, "brier", LOSS.value(1)),
    )


def _on_simplex(counts: FloatArray, total: float) -> FloatArray:
    """Return the nearest counts that are not negative and have the known total."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(counts - excess[last], 0.0)


def _terms(reading: Reading, sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Return what mean and variance terms of the Brier score have in each cell, about."""
    setting, edges = reading.setting, reading.edges
    slopes = slopes_of(sums.table, sums.time_offsets)
    path = hazard_path(*parts_of(sums.table.sum(axis=0)), slopes)[:, -1]
    risen = np.concatenate([[0.0], np.cumsum(path + 1e-9)])
    share = np.interp(setting.times, edges.band_ends, risen / risen[-1])
    curve = uncensored_curve(sums.table, sums.time_offsets, edges.band_ends)
    n_places, n_bands = 8, edges.n_bands
    places = (np.arange(n_places) + 0.5) / n_places
    starts, widths = edges.band_ends[:-1, None], np.diff(edges.band_ends)[:, None]
    within = (starts + widths * places).ravel()
    time = np.concatenate([within, within, np.full(n_places, setting.horizon)])
    event = np.arange(time.size) < within.size
    counts = np.maximum(sums.table.sum(axis=1), 1.0)
    center = np.clip(sums.risk_offsets / counts, -0.5, 0.5)
    mean, variance = np.empty(edges.shape), np.empty(edges.shape)
    for g in range(edges.n_groups):
        low, high = edges.group_ends[g : g + 2]
        around = (low + high) / 2.0 + (high - low) * (center[g] + np.array([-0.25, 0.25]))
        terms = [
            brier_terms(
                EvaluationRecords(np.tile(np.append(s**share, s), (time.size, 1)), event, time),
                setting.times,
                curve(setting.times),
                curve(time),
            )
            for s in np.clip(around, max(low, 1e-6), high)
        ]
        cells = np.stack(terms, axis=1).reshape(2 * n_bands + 1, -1)
        mean[g], variance[g] = cells.mean(axis=1), cells.var(axis=1)
    return mean, variance


def exact_measures(records: EvaluationRecords, reading: Reading) -> Measures:
    """Return the measures of the records themselves, not private, for the groups of a reading.

    C is that of the predicted risk at the horizon; the Brier score is weighted by the Kaplan-Meier
    estimate of censoring; observed survival is the Kaplan-Meier estimate of each group. A group
    without records has neither prediction nor observation: NaN.
    """
    setting = reading.setting
    time, event = clip_times(records.time, records.event, setting.horizon)
    uncensored, at_exit = (
        # Nobody is left to be weighted where it is 0.
        np.where(shares > 0.0, shares, 1.0)
        for shares in (_left(~event, time, at, after=event) for at in (setting.times, time))
    )
    clipped = EvaluationRecords(records.survival, event, time)
    last = records.survival[:, -1]
    group = np.searchsorted(reading.ends[1:-1], last, side="right")
    groups = [group == g for g in range(reading.merged.shape[0])]
    ends = reading.edges.band_ends[1:]
    return Measures(
        np.asarray(concordance_index(survival_target(event, time), 1.0 - last)),
        brier_terms(clipped, setting.times, uncensored, at_exit, clip=False).mean(),
        (1.0 - last).mean() / max(1.0 - _left(event, time, ends)[-1], 1.0 / time.size),
        np.array([last[who].mean() if who.any() else np.nan for who in groups]),
        np.stack([_left(event[who], time[who], ends) for who in groups]),
    )


def _left(
    leaving: BoolArray, time: FloatArray, at: FloatArray, after: BoolArray | None = None
) -> FloatArray:
    """Return the product-limit estimate at some times; NaN of nobody."""
    if not time.size:
        return np.full(at.size, np.nan)
    times, place, number = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = time.size - np.cumsum(number) + number
    if after is not None:
        at_risk = at_risk - np.bincount(place, after)
    gone = np.bincount(place, leaving) / np.maximum(at_risk, 1)
    return np.append(1.0, np.cumprod(1.0 - gone))[np.searchsorted(times, at, side="right")]
