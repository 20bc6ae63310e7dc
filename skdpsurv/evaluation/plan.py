r"""How epsilon is spent on the evaluation of a model, and what is released.

Six measurements, each of all records, whose epsilons add up to that of the whole: edges of risk
groups, edges of bands of time, the table of counts, where predictions are in their groups and times
in their bands, and the terms of the Brier score. Neighbours: replace-one. Sensitivities: those of
the queries (:mod:`skdpsurv.mechanisms.sums`). Theorem: adaptive composition
(docs/proofs/evaluation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import special

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Known, NoisySum, Plan, Sequential
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.evaluation.risk_table import (
    N_CANDIDATES,
    OFFSETS,
    EvaluationRecords,
    RiskTable,
    brier_terms,
    risk_candidates,
    time_candidates,
    uncensored_curve,
)
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS, Choices, Sums

#: Times that the Brier score is a mean over: the middles of as many parts of (0, horizon).
TIMES = 32
#: Shares of records at higher risk than the quantiles that are looked for; edges are laid between
#: and beyond as if the log cumulative hazard were normal. Farther out too many candidates, beyond
#: nearly everybody, would be nearly as good.
ANCHORS = ((1, 4), (1, 2), (3, 4))

PROOF = reference("docs/proofs/evaluation", "dwork")
ASSUMED = "the model was not made from these records, or what it cost them is added"
WORDS = (
    "counts of records by predicted survival, time and event, sums of predictions within "
    "groups and of terms of the Brier score, with discrete Laplace noise"
)

Records = Blocks[EvaluationRecords]


@dataclass(frozen=True, eq=False)
class Setting:
    """What is public of an evaluation.

    Parameters
    ----------
    epsilon : float
    n_records : int
    horizon : float
    n_groups, n_bands : int
    edges : mapping of str to ndarray
        Public "risk_edges" and "time_edges"; those that are not there are to be found.
    """

    epsilon: float
    n_records: int
    horizon: float
    n_groups: int
    n_bands: int
    edges: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """What of epsilon each measurement has."""
        used = {name: share for name, (share, _) in MEASURED.items() if name not in self.edges}
        if self.n_bands == 1:
            used.pop("time_edges", None)
        # Rounded so that they add up to no more than epsilon.
        unit = self.epsilon / math.fsum(used.values()) * (1.0 - 2.0**-48)
        return {name: share * unit for name, share in used.items()}

    @property
    def times(self) -> FloatArray:
        """Times of the Brier score."""
        return np.asarray(self.horizon * ((np.arange(TIMES) + 0.5) / TIMES))

    def table(self, known: Known) -> RiskTable:
        """Return the table, by edges that were given or released."""
        return RiskTable(known["risk_edges"], known["time_edges"], self.horizon)


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskEdges(Choices):
    """Edges of predicted survival with about as many records between each two."""

    setting: Setting

    name = "edges of risk groups by permute-and-flip"
    proof = PROOF

    @property
    def queries(self) -> list[Sums]:
        """One record moves a rank by 1."""
        return [Sums(N_CANDIDATES, whole) for _, whole in ANCHORS]

    def losses(self, known: Known, records: Records) -> list[list[int]]:
        """Return how far the rank of each candidate is from what is wanted."""
        candidates = risk_candidates()

        def below(block: EvaluationRecords) -> IntArray:
            place = np.searchsorted(candidates, block.survival[:, -1], side="right")
            return np.bincount(place, minlength=candidates.size + 1).astype(np.int64)

        ranks, n = np.cumsum(records.map_reduce(below))[:-1], self.setting.n_records
        return [[abs(whole * int(rank) - part * n) for rank in ranks] for part, whole in ANCHORS]

    def after(self, known: Known, places: Sequence[int]) -> dict[str, Any]:
        """Return edges between the anchors, and beyond."""
        candidates, n_groups = risk_candidates(), self.setting.n_groups
        first, middle, last = np.sort(places)
        wanted = special.ndtri(np.arange(1, n_groups) / n_groups)
        slopes = np.where(wanted < 0.0, middle - first, last - middle) / special.ndtri(0.75)
        at = np.clip(middle + wanted * slopes, 0.0, candidates.size - 1.0)
        log_hazards = np.interp(at, np.arange(candidates.size), np.log(-np.log(candidates)))
        return {"risk_edges": np.unique(np.exp(-np.exp(log_hazards)))}


@dataclass(frozen=True, eq=False, kw_only=True)
class TimeEdges(Choices):
    """Edges of time with about as many exits before the horizon between each two."""

    setting: Setting

    name = "edges of bands of time by permute-and-flip"
    proof = PROOF

    @property
    def queries(self) -> list[Sums]:
        """One record moves a rank, the number of exits, or both, by 1."""
        n_bands = self.setting.n_bands
        return [Sums(N_CANDIDATES - 1, n_bands)] * (n_bands - 1)

    def losses(self, known: Known, records: Records) -> list[list[int]]:
        """Return how far the rank of each candidate is from what is wanted."""
        horizon, n_bands = self.setting.horizon, self.setting.n_bands
        candidates = time_candidates(horizon)

        def exits(block: EvaluationRecords) -> IntArray:
            left = np.where(block.event, block.time <= horizon, block.time < horizon)
            place = np.searchsorted(candidates, block.time[left], side="left")
            return np.bincount(place, minlength=candidates.size + 1).astype(np.int64)

        *ranks, total = (int(rank) for rank in np.cumsum(records.map_reduce(exits)))
        return [[abs(n_bands * rank - k * total) for rank in ranks] for k in range(1, n_bands)]

    def after(self, known: Known, places: Sequence[int]) -> dict[str, Any]:
        """Return the candidates that were chosen, each once."""
        return {"time_edges": np.unique(time_candidates(self.setting.horizon)[list(places)])}


@dataclass(frozen=True, eq=False, kw_only=True)
class OfTable(NoisySum):
    """What is summed with a table whose edges are public by now.

    A subclass says what is asked, and what the table counts in a block of records.
    """

    setting: Setting

    theorem = PROOF
    counted: ClassVar[Callable[[RiskTable, EvaluationRecords], Any]]

    def ask(self, known: Known, records: Records) -> Any:
        """Return exact sums."""
        return records.map_reduce(partial(type(self).counted, self.setting.table(known)))


class Counts(OfTable):
    """How many records are in each cell: a record is in one."""

    name = "noisy counts of records by predicted survival, time and event"
    asked, counted = HISTOGRAM, RiskTable.counts

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the table."""
        return {"table": noisy}


class RiskOffsets(OfTable):
    """Where in their groups predictions are: at most half a width from the middle of one."""

    name = "noisy sums of predictions within groups"
    asked, counted = OFFSETS, RiskTable.risk_offsets

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return sums in widths of the groups."""
        return {"risk_offsets": OFFSETS.values(noisy)}


class TimeOffsets(OfTable):
    """Where in their bands times are: at most half a width from the middle of one."""

    name = "noisy sums of times within bands"
    asked, counted = OFFSETS, RiskTable.time_offsets

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return sums in widths of the bands, with events and without."""
        return {"time_offsets": OFFSETS.values(noisy).reshape(2, -1)}


class BrierTotal(OfTable):
    """Terms of the Brier score, in [0, 1], weighted by a curve that follows from the table."""

    name = "a noisy sum of terms of the Brier score"
    asked = LOSS

    def ask(self, known: Known, records: Records) -> int:
        """Return the exact sum."""
        times, horizon = self.setting.times, self.setting.horizon
        counts = known["table"].astype(np.float64)
        ends = self.setting.table(known).band_ends
        curve = uncensored_curve(counts, known["time_offsets"], ends)
        uncensored = curve(times)

        def brier(block: EvaluationRecords) -> int:
            at_exit = curve(np.minimum(block.time, horizon))
            return LOSS.total(brier_terms(block, times, uncensored, at_exit))

        return records.map_reduce(brier)

    def after(self, known: Known, noisy: int) -> dict[str, Any]:
        """Return the sum as a number."""
        return {"brier": LOSS.value(noisy)}


#: In the order in which they are asked, with shares of epsilon: those of edges are the others'
#: where edges are given.
MEASURED: Mapping[str, tuple[float, type[RiskEdges | TimeEdges | OfTable]]] = {
    "risk_edges": (0.12, RiskEdges),
    "time_edges": (0.04, TimeEdges),
    "table": (0.63, Counts),
    "risk_offsets": (0.07, RiskOffsets),
    "time_offsets": (0.03, TimeOffsets),
    "brier": (0.11, BrierTotal),
}


def evaluation_plan(setting: Setting, asked: tuple[str, ...] = ()) -> Plan:
    """Return the plan of an evaluation."""
    shares = setting.shares
    found = "; edges by permute-and-flip" if shares.keys() & {"risk_edges", "time_edges"} else ""
    return Plan(
        Sequential(
            tuple(MEASURED[name][1](price=e, setting=setting) for name, e in shares.items())
        ),
        setting.epsilon,
        inputs={
            "n_records": setting.n_records,
            "max_time": setting.horizon,
            "n_groups": setting.n_groups,
            "n_bands": setting.n_bands,
            **{name: edges.tolist() for name, edges in setting.edges.items()},
        },
        assumed=(ASSUMED, *asked),
        words=WORDS + found,
        # One group, or one band, has none.
        known={"risk_edges": np.empty(0), "time_edges": np.empty(0), **setting.edges},
    )
