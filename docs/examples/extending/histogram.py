"""A private histogram of one column."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import validate_data

from skdpsurv.base import PrivateEstimator
from skdpsurv.blocks import in_blocks
from skdpsurv.checks import integer, positive
from skdpsurv.mechanisms.sums import HISTOGRAM, PROOF
from skdpsurv.privacy import call_without_data
from skdpsurv.privacy.measurement import NoisySum
from skdpsurv.privacy.plan import Plan
from skdpsurv.release import released_array


@dataclass(frozen=True, kw_only=True)
class Counts(NoisySum):
    """How many records are in each bin; values beyond the edges are in the first or the last."""

    edges: np.ndarray

    name, theorem, asked = "noisy counts of bins", PROOF, HISTOGRAM  # a record is in one bin
    assumptions = ("the edges were not read off these records",)

    def ask(self, known, records):
        inner = self.edges[1:-1]
        places = records.map(lambda rows: np.searchsorted(inner, rows[:, 0], side="right"))
        return places.map_sum(lambda found: np.bincount(found, minlength=inner.size + 1))

    def after(self, known, noisy):
        return {"counts": noisy, "edges": self.edges}


class DPHistogram(PrivateEstimator):
    """Counts of a column in bins between 0 and a largest value, with discrete Laplace noise."""

    _rules = {"largest": positive(), "n_bins": integer()}

    def __init__(self, epsilon=1.0, *, largest=1.0, n_bins=10, random_state=None, accountant=None):
        self.epsilon, self.largest, self.n_bins = epsilon, largest, n_bins
        self.random_state, self.accountant = random_state, accountant

    def fit(self, X, y=None, *, person=None):
        return self._fit(X, person=person)

    def _plan(self, shape):
        edges = np.linspace(0.0, float(self.largest), int(self.n_bins) + 1)
        counts = Counts(price=float(self.epsilon), edges=edges)
        return Plan(counts, counts.price, inputs={"n_records": shape.n_records})

    def _read(self, shape, X, y=None):
        of = self._without_ledger()
        return in_blocks(X).map(lambda b: call_without_data(validate_data, of, b[0], reset=False))

    def _set_fitted(self, release):
        size = np.size(release.values.get("edges", ()))
        self.counts_ = released_array(release, "counts", (size - 1,))
        self.bin_edges_ = released_array(release, "edges", (size,))
