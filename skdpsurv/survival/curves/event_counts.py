r"""One noisy event-count table by group, outcome and band of time, from which all curves follow.

Each record is in one cell, and those who stay to the public horizon have one of their own.
Neighbours: replace-one. Sensitivity: 2 in L1, as a record whose time, event, cause and group are
replaced moves two cells by one. Theorem: the discrete Laplace mechanism with scale
:math:`2/\epsilon` on every cell is epsilon-differentially private, however many cells there are
(docs/proofs/curves). Curves, their intervals and tests are post-processing.

Where people enter late, a second table counts entries by group and band, with the same sensitivity
and noise of its own: exits have :data:`EXITS_SHARE` of epsilon, and entries the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.histories import Histories
from skdpsurv.data.labels import label_indices, stated_labels
from skdpsurv.data.target import survival_target
from skdpsurv.dp.checks import is_list, is_real, number_in
from skdpsurv.dp.input_errors import refuse_masked
from skdpsurv.dp.plan import Context, Node, NoisySum, Sequential
from skdpsurv.dp.privacy_cost import remaining_budget
from skdpsurv.dp.references import WORDS, reference
from skdpsurv.dp.types import FloatArray, IndexArray, IntArray
from skdpsurv.mechanisms.sums import HISTOGRAM

#: "auto": bands per root of records times epsilon and per group, and the range.
BANDS_PER_ROOT, FEWEST_BANDS, MOST_BANDS = 0.8, 4, 200
#: Part of these bands where people enter late; and the part of epsilon for the table of exits.
ENTRY_BANDS, EXITS_SHARE = 0.5, 0.7
#: Most outcomes by band, and pairs of them in all groups: more take too long.
LARGEST_TABLE, LARGEST_TABLES = 1000, 20_000_000
#: Shortest band, relative to the horizon.
NARROWEST = 1e-9
#: Rule for the epsilon of a table.
IS_EPSILON = number_in(1e-9, 1e9, allow_inf=True)
#: Largest number of groups.
MOST_GROUPS = 1000
ASSUMED = tuple(WORDS["assumptions"]["curve"])


def n_bands_for(
    n_records: int, epsilon: float, n_groups: int, n_causes: int, has_entry: bool = False
) -> int:
    """Return the number of bands for "auto", by public numbers."""
    root = math.sqrt(n_records * min(epsilon, 1e9) / n_groups)
    per_root = BANDS_PER_ROOT * (ENTRY_BANDS if has_entry else 1.0)
    n_bands = int(np.clip(round(per_root * root), FEWEST_BANDS, MOST_BANDS))
    n_outcomes = min(LARGEST_TABLE, math.isqrt(LARGEST_TABLES // n_groups))
    return min(n_bands, n_outcomes // (n_causes + 1))


def band_ends(max_time: float, n_bands: int, breakpoints: str | ArrayLike) -> FloatArray:
    """Return the right ends of the bands, shape (n_bands,), in the unit of max_time."""
    if not isinstance(breakpoints, str):
        return np.append(np.asarray(breakpoints, dtype=np.float64), max_time)
    parts = np.arange(1, n_bands + 1) / n_bands
    return max_time * (parts**2 if breakpoints == "early" else parts)


def check_breakpoints(name: str, breakpoints: Any) -> None:
    """Refuse breakpoints that are neither a word nor a list of increasing times."""
    if isinstance(breakpoints, str) and breakpoints in ("early", "equal"):
        return
    says = f"{name} must be 'early', 'equal', or a list of at least one time, positive and rising"
    if isinstance(breakpoints, str):
        raise ValueError(f"{says}, got {breakpoints!r}.")
    if not is_list(breakpoints) or isinstance(breakpoints, Set | Mapping):
        raise TypeError(f"{says}, got {type(breakpoints).__name__}.")
    refuse_masked(breakpoints, name)
    listed = list(breakpoints)
    numbers: list[Any] = [t for t in listed if is_real(t)]
    with np.errstate(over="ignore"):
        times = np.array([float(time) for time in numbers if abs(time) < 1e300])
    if times.size < max(len(listed), 1) or times[0] <= 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"{says}.")
    if times.size >= LARGEST_TABLE // 2:
        raise ValueError(f"{name} must be fewer than {LARGEST_TABLE // 2:,} times.")


def bands_of(histories: Histories, ends: FloatArray) -> tuple[Histories, IndexArray]:
    """Return histories that are censored at the horizon, and each record's band.

    Records that enter after the start, and not before their exit, are never at risk: they are said
    to enter at the horizon and to stay there.
    """
    end = float(ends[-1])
    seen = histories.clipped(end)
    if seen.entry is not None:
        never = (seen.entry > 0.0) & (seen.entry >= seen.exit)
        cause = np.where(never, np.zeros_like(seen.cause), seen.cause)
        exits, entry = (np.where(never, end, time) for time in (seen.exit, seen.entry))
        seen = replace(seen, exit=exits, cause=cause, entry=entry)
    return seen, np.searchsorted(ends, seen.exit, side="left")


@dataclass(frozen=True)
class Causes:
    """Kinds of events.

    Parameters
    ----------
    labels : list or None
        Labels of several kinds of events; None: there is one.
    censored : label
        Label of censored records.
    """

    labels: list[Any] | None = None
    censored: Any = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Causes:
        """Return the causes in the parameters of an estimator or of a release."""
        if "causes" not in parameters:
            return cls()
        labels = stated_labels("causes", parameters["causes"]).tolist()
        return cls(labels, plain(parameters["censored"]))

    @property
    def number(self) -> int:
        """Number of kinds of events."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def reader(self) -> Any:
        """Function that reads causes from a column and its name; None for indicators."""
        if self.labels is None:
            return None
        return partial(_read_causes, [self.censored, *self.labels])

    def index(self, label: Any, name: str = "cause") -> int:
        """Return the index of one of the events; that of None is 0."""
        if label is None:
            return 0
        if self.labels is None or np.ndim(label) > 0 or not is_one_of(label, self.labels):
            raise ValueError(f"{name} must be one of causes, {self.labels}, got {label!r}.")
        return self.labels.index(label)

    def target(self, cause: IndexArray, time: FloatArray) -> NDArray[Any]:
        """Return outcomes as ``fit`` takes them, by numbers of causes, 0 where censored."""
        if self.labels is None:
            return survival_target(cause > 0, time)
        y = np.empty(time.size, dtype=[("event", "O"), ("time", "f8")])
        y["event"], y["time"] = np.array([self.censored, *self.labels], dtype=object)[cause], time
        return y

    def stated(self) -> dict[str, Any]:
        """Return the parameters that a release states."""
        return {} if self.labels is None else {"causes": self.labels, "censored": self.censored}


def plain(label: Any) -> Any:
    """Return a label as Python's own number or text."""
    return label.item() if isinstance(label, np.generic) else label


def is_one_of(label: Any, labels: list[Any]) -> bool:
    """Say whether a label is one of some; True is not 1."""
    return any(type(label) is not bool and label == one for one in labels)


def _read_causes(labels: list[Any], values: Any, name: str) -> IndexArray:
    """Return the number of each record's cause, 0 if censored."""
    if values is None:
        if len(labels) == 2:
            return np.empty(0, dtype=np.intp)
        raise ValueError("event_observed must be given, or y must have two fields: which event.")
    stated: NDArray[Any] = np.empty(len(labels), dtype=object)
    stated[:] = labels
    return label_indices(values, name, stated, "causes, or censored")


def check_groups(name: str, groups: Any) -> None:
    """Refuse invalid or too many labels of groups."""
    if groups is not None and stated_labels(name, groups).size > MOST_GROUPS:
        raise ValueError(f"{name} must be at most {MOST_GROUPS:,}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class EventCounts(NoisySum):
    """Counts of records by group, outcome and band of time, with right ``ends``."""

    ends: FloatArray
    n_causes: int
    n_groups: int

    name = "discrete Laplace noise on one event-count table by band of time"
    theorem = reference("docs/proofs/curves", "dwork")
    query = HISTOGRAM  # each record is in one cell
    gives = "counts"

    @property
    def n_cells(self) -> int:
        """Cells of a group: causes and censoring by band, and staying to the horizon."""
        return (self.n_causes + 1) * self.ends.size + 1

    def exact_answer(self, context: Context, records: Blocks[Histories]) -> IntArray:
        """Return exact counts, of shape (n_groups, n_cells)."""
        q, shape = self.ends.size, (self.n_groups, self.n_cells)

        def count(block: Histories) -> IntArray:
            seen, band = bands_of(block, self.ends)
            cell = seen.cells(band, q, self.ends[-1], self.n_causes)
            if seen.stratum is not None:
                cell += seen.stratum * self.n_cells
            return np.bincount(cell, minlength=math.prod(shape)).astype(np.int64)

        return records.map_reduce(count).reshape(shape)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the noisy table."""
        return {"counts": noisy}


@dataclass(frozen=True, eq=False, kw_only=True)
class EntryCounts(NoisySum):
    """Counts of records by group and band of entry, with right ``ends``.

    Those who enter at 0 are counted first, and those who are never at risk last.
    """

    ends: FloatArray
    n_groups: int

    name = "discrete Laplace noise on one table of entries by band of time"
    theorem = reference("docs/proofs/curves", "dwork")
    query = HISTOGRAM  # each record is in one cell
    gives = "entries"

    def exact_answer(self, context: Context, records: Blocks[Histories]) -> IntArray:
        """Return exact counts, of shape (n_groups, n_bands + 2)."""
        shape = self.n_groups, self.ends.size + 2

        def count(block: Histories) -> IntArray:
            seen, _ = bands_of(block, self.ends)
            assert seen.entry is not None
            cell = 1 + np.searchsorted(self.ends, seen.entry, side="left")
            cell = np.where(seen.entry >= self.ends[-1], shape[1] - 1, cell)
            cell = np.where(seen.entry <= 0.0, 0, cell)
            if seen.stratum is not None:
                cell += seen.stratum * shape[1]
            return np.bincount(cell, minlength=math.prod(shape)).astype(np.int64)

        return records.map_reduce(count).reshape(shape)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the noisy table."""
        return {"entries": noisy}


class ExactEventCounts(EventCounts):
    """Exact event counts by band of time: not private, for reference."""

    name = "none: an exact event-count table by band of time"


class ExactEntryCounts(EntryCounts):
    """Exact counts of entries by band of time: not private, for reference."""

    name = "none: an exact table of entries by band of time"


def tables(stated: Mapping[str, Any], epsilon: float, has_entry: bool) -> Node:
    """Return the measurements of public parameters: a table of exits, and perhaps of entries."""
    check_size(stated)
    exact = math.isinf(epsilon)
    cells: Any = {"ends": stated_ends(stated), "n_groups": len(stated.get("groups", [None]))}
    spent = EXITS_SHARE * epsilon if has_entry else epsilon
    kind = ExactEventCounts if exact else EventCounts
    exits = kind(price=spent, n_causes=Causes.of(stated).number, **cells)
    if not has_entry:
        return exits
    rest = epsilon if exact else remaining_budget(epsilon, spent)
    entries = (ExactEntryCounts if exact else EntryCounts)(price=rest, **cells)
    return Sequential((exits, entries), total=epsilon)


def check_size(stated: Any) -> None:
    """Refuse a table of which curves would take hours, by public parameters."""
    n_masses = (Causes.of(stated).number + 1) * stated_ends(stated).size
    n_groups = len(stated.get("groups", [None]))
    if n_masses > LARGEST_TABLE or n_groups * n_masses**2 > LARGEST_TABLES:
        raise ValueError("n_intervals must be smaller, for so many causes and groups.")


def stated_ends(stated: Any) -> FloatArray:
    """Return the ends of the bands that public parameters give."""
    breakpoints, number = stated["breakpoints"], stated["n_intervals"]
    return band_ends(float(stated["max_time"]), 0 if number == "auto" else number, breakpoints)
