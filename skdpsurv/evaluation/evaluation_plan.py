"""The plan of an evaluation: six measurements of all records, whose epsilons add up.

They are edges of risk groups, edges of time bands, the table of counts, offsets of predictions and
of times within their cells, and terms of the Brier score. Neighbours: replace-one. Sensitivities:
those of the queries (:mod:`skdpsurv.mechanisms.sums`). Theorem: adaptive composition
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
from skdpsurv.dp.plan import Context, NoisySum, Plan, Sequential
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.evaluation import risk_table
from skdpsurv.evaluation.risk_table import OFFSETS, EvaluationRecords, EvaluationTable
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS, Choices, Sums

#: Number of times that the Brier score is averaged over: midpoints of equal parts of the horizon.
TIMES = 32
#: Quantiles of risk that are estimated. Other edges follow as if the log cumulative hazard were
#: normal: in the tails too many candidates would be nearly as good.
ANCHORS = ((1, 4), (1, 2), (3, 4))

PROOF = reference("docs/proofs/evaluation", "dwork")
ASSUMED = "the model was not made from these records, or what it cost them is added"
WORDS = (
    "counts of records by predicted survival, time and event, sums of predictions within "
    "groups and of terms of the Brier score, with discrete Laplace noise"
)

Records = Blocks[EvaluationRecords]


@dataclass(frozen=True, eq=False)
class EvaluationSetting:
    """Public settings of an evaluation; edges that are not given are chosen privately."""

    epsilon: float
    n_records: int
    horizon: float
    n_groups: int
    n_bands: int
    edges: Mapping[str, FloatArray] = field(default_factory=dict)
    late_entry: bool = False
    competing: bool = False

    @property
    def shares(self) -> dict[str, float]:
        """Epsilon of each measurement, by its name."""
        used = {name: share for name, (share, _) in MEASURED.items() if name not in self.edges}
        if self.n_bands == 1:
            used.pop("time_edges", None)
        if self.late_entry:  # predictions since the entry are in wider ranges
            used["risk_offsets"] *= 2.0
        else:
            used.pop("entry_offsets")
        # Rounded down, so that they add up to at most epsilon.
        unit = self.epsilon / math.fsum(used.values()) * (1.0 - 2.0**-48)
        return {name: share * unit for name, share in used.items()}

    @property
    def times(self) -> FloatArray:
        """Times at which the Brier score is averaged."""
        return np.asarray(self.horizon * ((np.arange(TIMES) + 0.5) / TIMES))

    def table(self, context: Context) -> EvaluationTable:
        """Return the table with given or released edges."""
        edges = context["risk_edges"], context["time_edges"]
        return EvaluationTable(*edges, self.horizon, self.late_entry, self.competing)


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskEdges(Choices):
    """Edges of predicted survival that make groups of about equal size."""

    setting: EvaluationSetting

    name = "edges of risk groups by permute-and-flip"
    proof = PROOF

    @property
    def queries(self) -> list[Sums]:
        """Return the queries, one for each anchor: one record moves a rank by 1."""
        return [Sums(risk_table.N_CANDIDATES, whole) for _, whole in ANCHORS]

    def losses(self, context: Context, records: Records) -> list[list[int]]:
        """Return the distance of each candidate's rank from each quantile's."""
        candidates = risk_table.risk_candidates()
        below = records.map_reduce(lambda block: _bins(candidates, block.survival[:, -1], "right"))
        ranks, n = np.cumsum(below)[:-1], self.setting.n_records
        return [[abs(whole * int(rank) - part * n) for rank in ranks] for part, whole in ANCHORS]

    def postprocess(self, context: Context, chosen: Sequence[int]) -> dict[str, Any]:
        """Return edges by interpolation between the anchors, and extrapolation."""
        candidates, n_groups = risk_table.risk_candidates(), self.setting.n_groups
        first, middle, last = np.sort(chosen)
        wanted = special.ndtri(np.arange(1, n_groups) / n_groups)
        slopes = np.where(wanted < 0.0, middle - first, last - middle) / special.ndtri(0.75)
        at = np.clip(middle + wanted * slopes, 0.0, candidates.size - 1.0)
        log_hazards = np.interp(at, np.arange(candidates.size), np.log(-np.log(candidates)))
        return {"risk_edges": np.unique(np.exp(-np.exp(log_hazards)))}


@dataclass(frozen=True, eq=False, kw_only=True)
class TimeEdges(Choices):
    """Edges of time with about equal numbers of exits before the horizon."""

    setting: EvaluationSetting

    name = "edges of bands of time by permute-and-flip"
    proof = PROOF

    @property
    def queries(self) -> list[Sums]:
        """Return the queries: one record moves a rank, the number of exits, or both, by 1."""
        n_bands = self.setting.n_bands
        return [Sums(risk_table.N_CANDIDATES - 1, n_bands)] * (n_bands - 1)

    def losses(self, context: Context, records: Records) -> list[list[int]]:
        """Return the distance of each candidate's rank from each quantile's."""
        horizon, n_bands = self.setting.horizon, self.setting.n_bands
        candidates = risk_table.time_candidates(horizon)

        def exits(block: EvaluationRecords) -> IntArray:
            time, event = block.histories.exit, block.histories.event
            left = np.where(event, time <= horizon, time < horizon) & block.at_risk(horizon)
            return _bins(candidates, time[left], "left")

        *ranks, total = (int(rank) for rank in np.cumsum(records.map_reduce(exits)))
        return [[abs(n_bands * rank - k * total) for rank in ranks] for k in range(1, n_bands)]

    def postprocess(self, context: Context, chosen: Sequence[int]) -> dict[str, Any]:
        """Return the chosen times as edges of bands, each once."""
        return {
            "time_edges": np.unique(risk_table.time_candidates(self.setting.horizon)[list(chosen)])
        }


def _bins(edges: FloatArray, values: FloatArray, side: Any) -> IntArray:
    """Count values between neighbouring edges, and outside of the outer ones."""
    bins = np.searchsorted(edges, values, side=side)
    return np.bincount(bins, minlength=edges.size + 1).astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSums(NoisySum):
    """Sums over the cells of a table with public edges; ``counted`` sums one block of records."""

    setting: EvaluationSetting

    theorem = PROOF
    counted: ClassVar[Callable[[EvaluationTable, EvaluationRecords], Any]]

    def exact_answer(self, context: Context, records: Records) -> Any:
        """Return the exact sums, in units of the lattice."""
        return records.map_reduce(partial(type(self).counted, self.setting.table(context)))


class Counts(TableSums):
    """Numbers of records in each cell: a record is in one."""

    name = "noisy counts of records by predicted survival, time and event"
    query, counted = HISTOGRAM, EvaluationTable.counts

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the noisy table of records."""
        return {"table": noisy}


class RiskOffsets(TableSums):
    """Offsets of predictions from the middles of groups: at most half a width."""

    name = "noisy sums of predictions within groups"
    query, counted = OFFSETS, EvaluationTable.risk_offsets

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return sums in widths of the groups."""
        return {"risk_offsets": OFFSETS.values(noisy)}


class TimeOffsets(TableSums):
    """Offsets of times from the middles of bands: at most half a width."""

    name = "noisy sums of times within bands"
    query, counted = OFFSETS, EvaluationTable.time_offsets

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return sums in widths of the bands, by way to leave."""
        return {"time_offsets": OFFSETS.values(noisy).reshape(2 + self.setting.competing, -1)}


class EntryOffsets(TableSums):
    """Offsets of late entries from the middles of bands: at most half a width."""

    name = "noisy sums of entries within bands"
    query, counted = OFFSETS, EvaluationTable.entry_offsets

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return sums in widths of the bands."""
        return {"entry_offsets": OFFSETS.values(noisy)}


class BrierTotal(TableSums):
    """Terms of the Brier score, in [0, 1], with censoring weights from the released table."""

    name = "a noisy sum of terms of the Brier score"
    query = LOSS

    def exact_answer(self, context: Context, records: Records) -> int:
        """Return the exact sum of the Brier score's terms, in units of the lattice."""
        times, table = self.setting.times, self.setting.table(context)
        offsets = context["time_offsets"], context.get("entry_offsets", np.zeros(0))
        outcomes = table.read(context["table"].astype(np.float64), *offsets)
        curve = risk_table.uncensored_curve(outcomes, table.band_ends)

        def brier(block: EvaluationRecords) -> int:
            seen = block.histories.clipped(self.setting.horizon)
            uncensored, at_exit = curve(times), curve(seen.exit)
            if seen.entry is not None:
                entry = np.minimum(seen.entry, self.setting.horizon)
                uncensored = risk_table.weights_since_entry(curve, times, entry[:, None])
                at_exit = risk_table.weights_since_entry(curve, seen.exit, entry)
            return LOSS.total(risk_table.brier_terms(block, times, uncensored, at_exit))

        return records.map_reduce(brier)

    def postprocess(self, context: Context, noisy: int) -> dict[str, Any]:
        """Return the noisy sum of the Brier score's terms."""
        return {"brier": LOSS.value(noisy)}


#: Measurements in their order, with shares of epsilon; if edges are given, others share theirs.
MEASURED: Mapping[str, tuple[float, type[RiskEdges | TimeEdges | TableSums]]] = {
    "risk_edges": (0.12, RiskEdges),
    "time_edges": (0.04, TimeEdges),
    "table": (0.63, Counts),
    "risk_offsets": (0.07, RiskOffsets),
    "time_offsets": (0.03, TimeOffsets),
    "entry_offsets": (0.03, EntryOffsets),
    "brier": (0.11, BrierTotal),
}


def evaluation_plan(setting: EvaluationSetting, assumptions: tuple[str, ...] = ()) -> Plan:
    """Return the plan of an evaluation."""
    shares = setting.shares
    chosen = "; edges by permute-and-flip" if shares.keys() & {"risk_edges", "time_edges"} else ""
    leaves = tuple(MEASURED[name][1](price=e, setting=setting) for name, e in shares.items())
    inputs: dict[str, Any] = {"n_records": setting.n_records, "max_time": setting.horizon}
    inputs |= {"n_groups": setting.n_groups, "n_bands": setting.n_bands}
    inputs |= {"late_entry": True} if setting.late_entry else {}
    inputs |= {name: edges.tolist() for name, edges in setting.edges.items()}
    # A single group, or a single band, has no edges.
    known = {"risk_edges": np.empty(0), "time_edges": np.empty(0), **setting.edges}
    words, assumed = WORDS + chosen, (ASSUMED, *assumptions)
    tree, epsilon = Sequential(leaves), setting.epsilon
    return Plan(tree, epsilon, inputs=inputs, assumed=assumed, words=words, context=known)
