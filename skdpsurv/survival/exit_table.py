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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.checks import number_in
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.measurement import Known, NoisySum
from skdpsurv.privacy.plan import Plan
from skdpsurv.references import reference
from skdpsurv.release import Release, released_array
from skdpsurv.survival.exact_curves import exact_curves
from skdpsurv.survival.time_bands import bands_of
from skdpsurv.types import FloatArray, IndexArray, IntArray

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
    """The same without privacy, and exact curves at the ends of bands beside it."""

    name = "none: product-limit estimates"

    def run(self, known: Known, records: Exits, source: RandomSource) -> Mapping[str, Any]:
        """Return counts and curves without noise."""
        curves = exact_curves(records, self.ends, self.n_causes, self.n_groups)
        return self.after(known, self.ask(known, records)) | curves


def exit_plan(
    n_records: int,
    epsilon: float,
    ends: FloatArray,
    n_causes: int,
    n_groups: int,
    setting: Mapping[str, Any],
) -> Plan:
    """Return the plan of a table of exits.

    Parameters
    ----------
    n_records : int
    epsilon : float
        inf: without privacy.
    ends, n_causes, n_groups
        As of :class:`ExitTable`.
    setting : mapping
        Public parameters by name, for the guarantee.
    """
    kind = ExactExits if math.isinf(epsilon) else ExitTable
    return Plan(
        kind(price=epsilon, ends=ends, n_causes=n_causes, n_groups=n_groups),
        epsilon,
        inputs={"n_records": n_records, **setting},
        assumed=ASSUMED,
    )


def table_variance(release: Release) -> float:
    """Return the variance of the noise in a cell of a released table.

    It follows from epsilon, unless tables of several fits were added up: then the release holds it.

    Raises
    ------
    ValueError
        If it holds one that is none, or an epsilon that no fit has, such as 0.
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
