r"""How epsilon is spent on the evaluation of a model, and what is released.

Six queries, each on all records, whose epsilons add up to that of the whole: edges of risk groups,
edges of bands of time, the table of counts, where predictions are in their groups and times in
their bands, and the terms of the Brier score. Neighbours: replace-one. Sensitivities: those of the
queries
(:mod:`skdpsurv.mechanisms.sums`). Theorem: adaptive composition (docs/proofs/evaluation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from skdpsurv.blocks import Blocks
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS, Sums
from skdpsurv.metrics.risk_table import (
    OFFSETS,
    EvaluationRecords,
    RiskTable,
    brier_terms,
    risk_candidates,
    time_candidates,
)
from skdpsurv.metrics.table_statistics import slopes_of, uncensored_curve
from skdpsurv.privacy import RandomSource
from skdpsurv.references import reference
from skdpsurv.types import FloatArray, IntArray

__all__ = ["SHARES", "TIMES", "EvaluationPlan"]

#: Times that the Brier score is a mean over: the middles of as many parts of (0, horizon).
TIMES = 32
#: Shares of epsilon. The first two are the others' where edges are given.
SHARES = {
    "risk_edges": 0.12,
    "time_edges": 0.04,
    "table": 0.63,
    "risk_offsets": 0.07,
    "time_offsets": 0.03,
    "brier": 0.11,
}
#: Shares of records at higher risk than the quantiles that are looked for; edges are laid between
#: and beyond as if the log cumulative hazard were normal. Farther out too many candidates, beyond
#: nearly everybody, would be nearly as good.
ANCHORS = ((1, 4), (1, 2), (3, 4))


@dataclass(frozen=True)
class EvaluationPlan:
    """What is released of records, given public parameters.

    Parameters
    ----------
    epsilon : float
    n_records : int
    horizon : float
    n_groups, n_bands : int
    risk_edges, time_edges : ndarray or None
        Public edges; None where they are to be found.
    asked : tuple of str
        What is assumed of the model's predictions.
    """

    epsilon: float
    n_records: int
    horizon: float
    n_groups: int
    n_bands: int
    risk_edges: FloatArray | None
    time_edges: FloatArray | None
    asked: tuple[str, ...]

    proof = reference("docs/proofs/evaluation", "dwork")
    mechanism = (
        "counts of records by predicted survival, time and event, sums of predictions within "
        "groups and of terms of the Brier score, with discrete Laplace noise; edges by "
        "permute-and-flip"
    )

    @property
    def shares(self) -> dict[str, float]:
        """What of epsilon each query has."""
        given = {"risk_edges": self.risk_edges, "time_edges": self.time_edges}
        used = {name: share for name, share in SHARES.items() if given.get(name) is None}
        if self.n_groups == 1:
            used.pop("risk_edges", None)
        if self.n_bands == 1:
            used.pop("time_edges", None)
        # Rounded so that they add up to no more than epsilon.
        unit = self.epsilon / math.fsum(used.values()) * (1.0 - 2.0**-48)
        return {name: share * unit for name, share in used.items()}

    @property
    def times(self) -> FloatArray:
        """Times of the Brier score."""
        return np.asarray(self.horizon * ((np.arange(TIMES) + 0.5) / TIMES))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What else must be true."""
        return (
            "the model was not made from these records, or what it cost them is added",
            *self.asked,
        )

    def public_inputs(self) -> Mapping[str, object]:
        """Return the values that the guarantee takes to be public."""
        edges = {"risk_edges": self.risk_edges, "time_edges": self.time_edges}
        return {
            "n_records": self.n_records,
            "max_time": self.horizon,
            "n_groups": self.n_groups,
            "n_bands": self.n_bands,
            **{name: e.tolist() for name, e in edges.items() if e is not None},
        }

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [1.0 / epsilon for epsilon in self.shares.values()]

    def run(self, records: Blocks[EvaluationRecords], source: RandomSource) -> dict[str, Any]:
        """Return the edges, the noisy table, offsets and Brier total."""
        shares = self.shares
        table = RiskTable(
            self._risk_edges(records, shares, source),
            self._time_edges(records, shares, source),
            self.horizon,
        )
        counts = HISTOGRAM.release(records.map_sum(table.counts), shares["table"], source)
        risk_offsets = OFFSETS.release(
            records.map_sum(table.risk_offsets), shares["risk_offsets"], source
        )
        units = OFFSETS.release(records.map_sum(table.time_offsets), shares["time_offsets"], source)
        time_offsets = OFFSETS.values(units).reshape(2, -1)
        times, ends = self.times, table.band_ends
        known = counts.astype(np.float64)
        curve = uncensored_curve(known, slopes_of(known, time_offsets), ends)
        uncensored = curve(times)

        def brier(block: EvaluationRecords) -> int:
            at_exit = curve(np.minimum(block.time, self.horizon))
            return LOSS.total(brier_terms(block, times, uncensored, at_exit))

        total = LOSS.release(records.map_sum(brier), shares["brier"], source)
        return {
            "risk_edges": table.risk_edges,
            "time_edges": table.time_edges,
            "table": counts,
            "risk_offsets": OFFSETS.values(risk_offsets),
            "time_offsets": time_offsets,
            "brier": LOSS.value(total),
        }

    def _risk_edges(
        self,
        records: Blocks[EvaluationRecords],
        shares: dict[str, float],
        source: RandomSource,
    ) -> FloatArray:
        """Return edges of predicted survival with about as many records between each two."""
        if self.risk_edges is not None or self.n_groups == 1:
            return np.empty(0) if self.risk_edges is None else self.risk_edges
        candidates = risk_candidates()

        def below(block: EvaluationRecords) -> IntArray:
            place = np.searchsorted(candidates, block.survival[:, -1], side="right")
            return np.bincount(place, minlength=candidates.size + 1).astype(np.int64)

        ranks = np.cumsum(records.map_sum(below))[:-1]
        found = []
        for part, whole in ANCHORS:
            misses = [abs(whole * int(rank) - part * self.n_records) for rank in ranks]
            query = Sums(candidates.size, whole)
            found.append(query.least(misses, shares["risk_edges"] / len(ANCHORS), source))
        first, middle, last = np.sort(found)
        wanted = special.ndtri(np.arange(1, self.n_groups) / self.n_groups)
        slopes = np.where(wanted < 0.0, middle - first, last - middle) / special.ndtri(0.75)
        places = np.clip(middle + wanted * slopes, 0.0, candidates.size - 1.0)
        log_hazards = np.interp(places, np.arange(candidates.size), np.log(-np.log(candidates)))
        return np.unique(np.exp(-np.exp(log_hazards)))

    def _time_edges(
        self,
        records: Blocks[EvaluationRecords],
        shares: dict[str, float],
        source: RandomSource,
    ) -> FloatArray:
        """Return edges of time with about as many exits before the horizon between each two."""
        if self.time_edges is not None or self.n_bands == 1:
            return np.empty(0) if self.time_edges is None else self.time_edges
        candidates = time_candidates(self.horizon)

        def exits(block: EvaluationRecords) -> IntArray:
            left = np.where(block.event, block.time <= self.horizon, block.time < self.horizon)
            place = np.searchsorted(candidates, block.time[left], side="left")
            return np.bincount(place, minlength=candidates.size + 1).astype(np.int64)

        ranks = np.cumsum(records.map_sum(exits))
        total = int(ranks[-1])
        each = shares["time_edges"] / (self.n_bands - 1)
        query = Sums(candidates.size, self.n_bands)
        found = []
        for k in range(1, self.n_bands):
            misses = [abs(self.n_bands * int(rank) - k * total) for rank in ranks[:-1]]
            found.append(query.least(misses, each, source))
        return np.unique(candidates[found])
