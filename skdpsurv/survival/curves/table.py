r"""One noisy table of how and when people left: all that curves of one fit are made of.

Records are counted in cells: group x way out x band of time, and one more for those who stay to
the public horizon. Each record is in one cell, so that replacing one record, whatever its time, its
event, its cause and its group, moves two cells by one. Neighbours: replace-one. Sensitivity: 2 in
L1. Theorem: the discrete Laplace mechanism with scale :math:`2/\epsilon` on every cell is
epsilon-differentially private, however many bands, causes and groups there are
(docs/proofs/curves). All curves, their intervals and tests are post-processing of the table and of
public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import RandomSource, clip_times, refuse_masked
from skdpsurv.dp.checks import is_list, number_in
from skdpsurv.dp.measurement import Known, NoisySum
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray, IntArray
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.release import Release, released_array

#: Bands for a number of records times epsilon, per group: a part of its root, between two ends.
BANDS_PER_ROOT, FEWEST_BANDS, MOST_BANDS = 0.8, 4, 200
#: Ways out by band, and pairs of them in all groups: more takes too long to make curves of.
LARGEST_TABLE, LARGEST_TABLES = 1000, 20_000_000
#: Bands are at least so long, in parts of the horizon.
NARROWEST = 1e-9


def n_bands_for(n_records: int, epsilon: float, n_groups: int) -> int:
    """Return how many bands are worth their noise, by public numbers.

    Noise in a count of all that left by some time grows with the root of the bands before it, and
    what a band hides falls with its width.
    """
    if math.isinf(epsilon):
        return MOST_BANDS
    root = math.sqrt(n_records * epsilon / n_groups)
    return int(np.clip(round(BANDS_PER_ROOT * root), FEWEST_BANDS, MOST_BANDS))


def band_ends(max_time: float, n_bands: int, breakpoints: str | ArrayLike) -> FloatArray:
    r"""Return the right ends of the bands, shape (n_bands,), in the unit of max_time."""
    if not isinstance(breakpoints, str):
        return np.append(np.asarray(breakpoints, dtype=np.float64), max_time)
    parts = np.arange(1, n_bands + 1) / n_bands
    return max_time * (parts**2 if breakpoints == "early" else parts)


def check_breakpoints(name: str, breakpoints: Any) -> None:
    """Refuse what is neither a word nor a list of rising times."""
    if isinstance(breakpoints, str) and breakpoints in ("early", "equal"):
        return
    says = f"{name} must be 'early', 'equal', or a list of at least one time, positive and rising"
    if isinstance(breakpoints, str):
        raise ValueError(f"{says}, got {breakpoints!r}.")
    if not is_list(breakpoints) or isinstance(breakpoints, Set | Mapping):
        raise TypeError(f"{says}, got {type(breakpoints).__name__}.")
    refuse_masked(breakpoints, name)
    listed = list(breakpoints)
    if any(isinstance(one, bool | np.bool_) or not isinstance(one, Real) for one in listed):
        raise ValueError(f"{says}.")
    with np.errstate(over="ignore"):
        times = np.array([float(one) for one in listed if abs(one) < 1e300])
    if times.size < max(len(listed), 1) or times[0] <= 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"{says}.")
    if times.size >= LARGEST_TABLE // 2:
        raise ValueError(f"{name} must be fewer than {LARGEST_TABLE // 2:,} times.")


def bands_of(
    time: FloatArray, event: BoolArray, ends: FloatArray
) -> tuple[IndexArray, BoolArray, BoolArray]:
    """Put times in bands; each record on its own, so neighbours stay neighbours."""
    horizon = float(ends[-1])
    time, event = clip_times(time, event, horizon)
    return np.searchsorted(ends, time, side="left"), event, ~event & (time >= horizon)


#: Name of a released value: the variance of the noise in a cell, where tables were added up.
COUNT_VARIANCE = "count_variance"
#: The rule for the epsilon of a table.
IS_EPSILON = number_in(1e-9, 1e9, allow_inf=True)
#: Of many tables with the least epsilon.
LARGEST_VARIANCE = 1e24

ASSUMED = (
    "n and every constructor parameter are public",
    "max_time was not read off these records",
)

#: Private: 0 where censored, else the number of the cause; the time; the number of the group.
Exits = Blocks[tuple[IndexArray, FloatArray, IndexArray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExitTable(NoisySum):
    """Counts of records by group, way out and band of time.

    Parameters
    ----------
    price : float
    ends : ndarray of shape (n_bands,)
        Right ends of the bands.
    n_causes : int
        Kinds of events.
    n_groups : int
    """

    ends: FloatArray
    n_causes: int
    n_groups: int

    name = "discrete Laplace noise on one table of exits by band of time"
    theorem = reference("docs/proofs/curves", "dwork")
    asked = HISTOGRAM  # each record is in one cell

    @property
    def n_cells(self) -> int:
        """Cells of a group: causes and censoring by band, and staying to the horizon."""
        return (self.n_causes + 1) * self.ends.size + 1

    def ask(self, known: Known, records: Exits) -> IntArray:
        """Return exact counts, of shape (n_groups, n_cells)."""
        q, n_ways = self.ends.size, self.n_causes + 1

        def count(block: tuple[IndexArray, FloatArray, IndexArray]) -> IntArray:
            cause, time, group = block
            band, event, stayed = bands_of(time, cause > 0, self.ends)
            # Causes come first, censoring last.
            way = np.where(event, cause - 1, self.n_causes)
            cell = np.where(stayed, n_ways * q, way * q + band)
            size = self.n_groups * self.n_cells
            return np.bincount(group * self.n_cells + cell, minlength=size).astype(np.int64)

        return records.map_sum(count).reshape(self.n_groups, self.n_cells)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the table."""
        return {"counts": noisy}


class ExactExits(ExitTable):
    """The same without privacy, and exact curves at the ends of bands beside it: reference."""

    name = "none: product-limit estimates"

    def run(self, known: Known, records: Exits, source: RandomSource) -> Mapping[str, Any]:
        """Return counts without noise, and curves: of everybody first, then of each group."""
        blocks = list(records.results(tuple))
        cause, time, group = (np.concatenate([block[i] for block in blocks]) for i in range(3))
        time, event = clip_times(time, cause > 0, float(self.ends[-1]))
        cause = np.where(event, cause, 0)
        parts = [np.ones(time.size, dtype=bool)]
        if self.n_groups > 1:
            parts += [group == g for g in range(self.n_groups)]
        curves = [self._exact(time[part], cause[part]) for part in parts]
        survival, incidence = map(np.ascontiguousarray, zip(*curves, strict=True))
        counts = self.after(known, self.ask(known, records))
        return {**counts, "survival": survival, "incidence": incidence}

    def _exact(self, time: FloatArray, cause: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return Kaplan-Meier and Aalen-Johansen estimates at the ends of bands."""
        times, place, number = np.unique(time, return_inverse=True, return_counts=True)
        at_risk = (time.size - np.append(0, np.cumsum(number)[:-1])).astype(np.float64)
        kinds = range(1, self.n_causes + 1)
        events = np.array([np.bincount(place[cause == k], minlength=times.size) for k in kinds])
        survival = np.append(1.0, np.cumprod(1.0 - events.sum(axis=0) / at_risk))
        incidence = np.cumsum(survival[:-1] * events / at_risk, axis=-1)
        at = np.searchsorted(times, self.ends, side="right")
        return survival[at], np.insert(incidence, 0, 0.0, axis=1)[:, at]


def table_variance(release: Release) -> float:
    """Return the variance of the noise in a cell of a released table.

    It follows from epsilon, unless tables of several fits were added up: then the release holds it.
    """
    if COUNT_VARIANCE not in release.values:
        epsilon = release.made_by.epsilon
        IS_EPSILON("epsilon of a released table", epsilon)
        return cell_variance(epsilon)
    variance = float(released_array(release, COUNT_VARIANCE, ()))
    if not 0.0 <= variance <= LARGEST_VARIANCE:
        raise ValueError(f"values of the release must hold a {COUNT_VARIANCE} that is one.")
    return variance


def cell_variance(epsilon: float) -> float:
    """Return the variance of the noise in a cell."""
    return 0.0 if math.isinf(epsilon) else HISTOGRAM.deviation(epsilon) ** 2
