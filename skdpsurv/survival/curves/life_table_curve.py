"""Curves made of the actuarial life table of a release: hazards at the ends of bands."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import linalg, special

from skdpsurv.data.histories import Histories
from skdpsurv.data.labels import stated_labels
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray
from skdpsurv.release import Release, check_parameters, released_array, stated_records
from skdpsurv.release.values import released_noise
from skdpsurv.survival.curves.entry_life_table import EntryEstimate, EntryTable
from skdpsurv.survival.curves.event_counts import Causes, bands_of, check_size, stated_ends
from skdpsurv.survival.curves.life_table import ActuarialEstimate, NoisyTable
from skdpsurv.survival.curves.one_thread import one_thread
from skdpsurv.survival.released_curve import ReleasedCurve, crossing

#: Largest count whose fractions doubles represent.
MOST_RECORDS = 2**50
#: Mass of hazard that nobody survives.
FATAL = 50.0


class LifeTableCurve(ReleasedCurve):
    """Curves from one noisy table, of everybody and of groups: hazards at the ends of bands."""

    short_name = "KM"
    #: Parameters that a release must state.
    needed: ClassVar[tuple[str, ...]] = ("max_time", "n_intervals", "breakpoints")

    def __init__(self, release: Release) -> None:
        check_parameters(release, *self.needed)
        super().__init__(release)
        check_size(release.parameters)
        self.causes = Causes.of(release.parameters)
        self.read_causes = self.causes.reader
        n_records = stated_records(release, MOST_RECORDS)
        labels = release.parameters.get("groups")
        self.groups = None if labels is None else stated_labels("groups", labels)
        self.ends = stated_ends(release.parameters)
        n_groups = 1 if self.groups is None else self.groups.size
        n_outcomes = self.causes.number + 1
        q = self.ends.size
        cells, law, variance = _counts(release, "counts", (n_groups, n_outcomes * q + 1), n_records)
        #: Whether people entered late, by a table of its own.
        self.has_entry = "entries" in release.values
        entries, more = None, 0.0
        if self.has_entry:
            entries, _, more = _counts(release, "entries", (n_groups, q + 2), n_records)
        width = np.diff(self.ends, prepend=0.0) / self.ends[-1]

        def estimated(own: IndexArray) -> tuple[NoisyTable, ActuarialEstimate]:
            others = np.setdiff1d(np.arange(n_groups), own)
            some: Any = {"elsewhere": _elsewhere(cells[others], variance), "law": law}
            table = cells[own].sum(axis=0), n_outcomes, own.size * variance, n_records
            if entries is None:
                made = NoisyTable(*table, **some)
                return made, ActuarialEstimate(made, width)
            some |= {"entries": entries[own].sum(axis=0), "entry_variance": own.size * more}
            some |= {"entries_elsewhere": _elsewhere(entries[others], more)}
            exposed = EntryTable(*table, **some)
            return exposed, EntryEstimate(exposed, width)

        everybody = np.arange(n_groups)
        parts = [everybody, *everybody[:, None]] if n_groups > 1 else [everybody]
        self._groups = [estimated(own) for own in parts]
        self._show(0, 0)

    def _show(self, group: int, first: int) -> None:
        """Show everybody (0) or one group, given survival to the start of a band."""
        self._group, self.first_band = group, first
        self.table, self.fit = self._groups[group]
        self.estimates = np.cumsum(self.hazards.sum(axis=0))

    @property
    def hazards(self) -> FloatArray:
        """Masses of hazard of each cause, of shape (n_causes, n_bands)."""
        return self._since(self.of_events(self.fit.hazards))

    def _since(self, by_band: FloatArray) -> FloatArray:
        """Return values by band, 0 in those that were survived for certain."""
        first = self.first_band
        if not first:
            return by_band
        found = by_band.copy()
        found[..., :first] = 0.0
        return found

    @property
    def _first_hidden(self) -> int:
        """First band in which noise hides the number at risk; the number of bands without one."""
        hidden = np.append(getattr(self.fit, "hidden", [False] * self.ends.size), True)
        hidden[: self.first_band] = False
        return int(np.argmax(hidden))

    def given_alive_at(self, time: float) -> Self:
        """Return the curve given survival to a time, which must be the start of a band."""
        starts = self.timeline[:-1].tolist()
        if time not in starts:
            listed = ", ".join(f"{start:g}" for start in starts[:50])
            raise ValueError(
                f"time must be the start of a band, one of {listed}. State breakpoints with it."
            )
        view = copy.copy(self)
        view._show(self._group, starts.index(time))
        return view

    def of_group(self, label: Any) -> Self:
        """Return the curve of one of the groups."""
        view = copy.copy(self)
        if self.groups is not None and self.groups.size > 1:  # one group is everybody
            view._show(1 + self.groups.tolist().index(label), self.first_band)
        return view

    def of_events(self, masses: FloatArray) -> FloatArray:
        """Return masses of events alone, of shape (..., n_causes, n_bands)."""
        return masses[..., : self.causes.number, :]

    @property
    def fitted(self) -> dict[str, Any]:
        """Labels of groups, and of the group that is shown."""
        return {"groups_": self.groups, "group_": None}

    @property
    def at_knots(self) -> FloatArray:
        """Cumulative hazards at the times of ``timeline``."""
        return np.append(0.0, self.estimates)

    @property
    def timeline(self) -> FloatArray:
        """Edges of the bands, from 0 on."""
        return np.append(0.0, self.ends)

    def knots(self, end: float) -> FloatArray:
        return np.append(self.timeline[self.timeline < end], end)

    def cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        """Interpolate values at the ends of bands, linearly and from 0."""
        cumulated = np.concatenate([np.zeros((*parameters.shape[:-1], 1)), parameters], axis=-1)
        band = np.clip(np.searchsorted(self.ends, times), 0, self.ends.size - 1)
        starts = self.timeline[band]
        part = np.clip((times - starts) / (self.ends[band] - starts), 0.0, 1.0)
        # A sum of both ends is exact at either of them.
        return cumulated[..., band] * (1.0 - part) + cumulated[..., band + 1] * part

    @property
    def smoothed(self) -> FloatArray:
        """Smoothed hazards of each cause in each band, positive, of shape (n_causes, n_bands)."""
        return np.asarray(self.of_events(self.fit.masses) / np.diff(self.timeline))

    def mean_log_likelihood(self, histories: Histories) -> float:
        """Return the mean log-likelihood of histories, by smoothed hazards."""
        seen, band = bands_of(histories, self.ends)
        cumulated = np.cumsum(self.of_events(self.fit.masses).sum(axis=0))
        event = seen.event
        hazard = self.smoothed[seen.cause[event].astype(int) - 1, band[event]]
        gone = self.cumulative_hazard(seen.exit, cumulated).sum()
        if seen.entry is not None:
            gone -= self.cumulative_hazard(seen.entry, cumulated).sum()
        return float((np.log(hazard).sum() - gone) / histories.size)

    def time_of(self, cumulative_hazard: float) -> float:
        return crossing(self.timeline, self.at_knots, cumulative_hazard)

    @one_thread()
    def survival_interval(self, times: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival without any event."""
        starts, n_causes = self.timeline[:-1], self.causes.number
        elapsed = np.clip((times[:, None] - starts) / (self.ends - starts), 0.0, 1.0)
        elapsed = self._since(elapsed)
        causes = np.tile(elapsed, n_causes)
        q = causes.shape[1]
        free, covariance = self.fit.unsmoothed
        hazard = elapsed @ free[:n_causes].sum(axis=0)
        by_band = causes @ covariance[:q, :q]
        error = np.sqrt(np.einsum("ti,ti->t", by_band, causes))
        half = special.ndtri((1.0 + level) / 2.0) * error + elapsed @ self.fit.unplaced
        lower, upper = (np.exp(-np.maximum(hazard + side, 0.0)) for side in (half, -half))
        hidden = times > self.timeline[self._first_hidden]
        return np.where(hidden, 0.0, lower), np.where(hidden, 1.0, upper)

    @one_thread()
    def plausible_masses(self, n_draws: int) -> FloatArray:
        """Draw masses of events that may be true, of shape (n_draws, n_causes, n_bands).

        Some are negative: they have no bias. From the first hidden band on, all may have an event
        at once, of any cause, or nobody.
        """
        generator = random_source(0, purpose="interval").generator
        free, covariance = self.fit.unsmoothed
        values, vectors = linalg.eigh(covariance)
        normal = generator.standard_normal((n_draws, values.size))
        # Of all roots the symmetric one: processors agree on it, and not on vectors.
        away = normal @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        drawn = self._since(self.of_events(free + away.reshape(n_draws, *free.shape)))
        if (first := self._first_hidden) < self.ends.size:
            n_causes = self.causes.number
            happens = generator.integers(n_causes + 1, size=n_draws)[:, None] == np.arange(n_causes)
            drawn[..., first:] = 0.0
            drawn[..., first] = FATAL * happens
        return drawn

    def plausible(self, n_resamples: int) -> FloatArray:
        return np.cumsum(self.plausible_masses(n_resamples).sum(axis=1), axis=-1)

    # ---- Made-up people.

    def _members(self, X: pd.DataFrame) -> Iterator[tuple[Self, BoolArray]]:
        """Yield the curve of each group with its rows; everybody's for other groups or none."""
        labels = [] if self.groups is None else self.groups.tolist()
        group = X["group"] if "group" in X else pd.Series(index=X.index, dtype=object)
        if not group.isin(labels).all():
            yield self, np.ones(len(X), dtype=bool)
            return
        for label in labels:
            yield self.of_group(label), (group == label).to_numpy()

    def _draw_rows(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw groups and entries of made-up people by the released counts."""

        def drawn(number: int, counts: Any) -> IndexArray:
            counts = np.maximum(counts, 1e-9)  # noise may leave nobody
            return rng.choice(counts.size, number, p=counts / counts.sum())

        X, width = pd.DataFrame(index=range(n_rows)), np.diff(self.timeline, prepend=0.0)
        if self.groups is not None:
            people = [self.of_group(one).fit.n_people for one in self.groups.tolist()]
            X["group"] = self.groups[drawn(n_rows, people)]
        if self.has_entry:
            entry = np.empty(n_rows)
            for curve, rows in self._members(X):
                edge = drawn(int(rows.sum()), curve.fit.entrants)
                entry[rows] = self.timeline[edge] - rng.random(edge.size) * width[edge]
            X["entry"] = entry
        return X

    def _draw_times(
        self, X: pd.DataFrame, masses_of: Callable[[Self], FloatArray], rng: np.random.Generator
    ) -> tuple[FloatArray, IndexArray]:
        """Draw times after entry, infinite beyond the horizon, and which of the masses ended them.

        Masses of hazard of a curve have the shape (n_outcomes, n_bands).
        """
        time, which = np.empty(len(X)), np.empty(len(X), dtype=np.intp)
        entry = X["entry"].to_numpy() if "entry" in X else np.zeros(len(X))
        for curve, rows in self._members(X):
            masses = masses_of(curve)
            reached = np.append(0.0, np.cumsum(masses.sum(axis=0)))
            hazard = np.interp(entry[rows], self.timeline, reached)
            hazard += rng.exponential(size=hazard.size)
            drawn = np.interp(hazard, reached, self.timeline, right=np.inf)
            time[rows] = drawn = np.maximum(drawn, entry[rows])
            below = np.cumsum(masses, axis=0)
            below = below[:, np.minimum(np.searchsorted(self.ends, drawn), self.ends.size - 1)]
            which[rows] = (below < rng.random(drawn.size) * below[-1]).sum(axis=0)
        return time, which

    def _draw_outcomes(
        self, X: pd.DataFrame, censored: FloatArray, rng: np.random.Generator
    ) -> NDArray[Any]:
        time, cause = self._draw_times(X, lambda curve: curve.hazards, rng)
        last = np.minimum(censored, self.max_time)
        return self.causes.target(np.where(time <= last, 1 + cause, 0), np.minimum(time, last))

    def _draw_censoring(self, X: pd.DataFrame, rng: np.random.Generator) -> FloatArray:
        """Draw times of censoring: its masses of hazard are the last ones of the table."""
        return self._draw_times(X, lambda curve: curve.fit.masses[-1:], rng)[0]


def _counts(
    release: Release, name: str, shape: tuple[int, int], n_records: int
) -> tuple[FloatArray, str, float]:
    """Return a released table, with law and variance of its noise."""
    cells = released_array(release, name, shape)
    law, variance = released_noise(release, name)
    exact = variance > 0.0 or (cells.min() >= 0.0 and cells.sum() == n_records)
    if np.abs(cells).max() > 2.0**62 or np.any(cells != np.rint(cells)) or not exact:
        raise ValueError(f"values of the release must hold {name} that are counts.")
    return cells, law, variance


def _elsewhere(cells: FloatArray, variance: float) -> tuple[float, float] | None:
    """Return the noisy number of people in other groups, and the variance of its noise."""
    return (float(cells.sum()), cells.size * variance) if cells.size else None
