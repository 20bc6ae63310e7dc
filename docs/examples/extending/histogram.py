"""A private histogram of one column."""

from dataclasses import dataclass

import numpy as np

from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data.blocks import in_blocks
from skdpsurv.dp.checks import integer, positive
from skdpsurv.dp.plan import NoisySum, Plan
from skdpsurv.mechanisms.sums import HISTOGRAM, PROOF
from skdpsurv.release import released_array


@dataclass(frozen=True, kw_only=True)
class Counts(NoisySum):
    """How many records are in each bin; values beyond the edges are in the first or the last."""

    edges: np.ndarray

    asserted = True  # no registered theorem is about this class
    name, theorem, query = "noisy counts of bins", PROOF, HISTOGRAM  # a record is in one bin
    assumptions = ("the edges were not read off these records",)

    def exact_answer(self, known, records):
        ends = self.edges[[0, -1]]
        return records.map_reduce(lambda rows: np.histogram(rows[:, 0].clip(*ends), self.edges)[0])

    def postprocess(self, known, noisy):
        return {"counts": noisy, "edges": self.edges}


class DPHistogram(TabularEstimator):
    """Counts of the first column in bins between 0 and a top, with Laplace noise."""

    _rules = {"top": positive(), "n_bins": integer()}

    def __init__(
        self, epsilon=1.0, *, columns=None, top=1.0, n_bins=10, random_state=None, accountant=None
    ):
        self.epsilon, self.columns, self.top, self.n_bins = epsilon, columns, top, n_bins
        self.random_state, self.accountant = random_state, accountant

    def fit(self, X, y=None, *, person=None):
        return self._fit(X, person=person)

    def _plan(self, shape):
        price, edges = float(self.epsilon), np.linspace(0.0, float(self.top), int(self.n_bins) + 1)
        return Plan(Counts(price=price, edges=edges), price, inputs={"n_records": shape.n_records})

    def _read(self, shape, X, y=None):
        of = self._without_ledger()
        rows = in_blocks(X).map(lambda block: of._fitting_rows(block[0])).persist()
        shape.require(rows.map_reduce(len))
        return rows

    def _set_fitted(self, release):
        size = np.size(release.values.get("edges", ()))
        self.counts_ = released_array(release, "counts", (size - 1,))
        self.bin_edges_ = released_array(release, "edges", (size,))
