r"""The slope of predicted log odds, found by one private table of margins.

A record's margin is its predicted log odds o, times 1 or -1 for its label. The table counts, in
groups of :math:`|o|` with public ends, the records whose margin is positive and those whose is not.
If b is the right slope, a share :math:`p_g`, the mean of :math:`\sigma(b\,o)` over group g, are
right, so that

.. math:: r_g(b) = (1 - p_g) N^+_g - p_g N^-_g

has mean 0, whatever the size of the group and with noise in both counts. With v the variance of
that noise, and :math:`n_g` a guess of the size, b solves

.. math::
    \sum_g \frac{n_g\,b\,\partial p_g / \partial b}{n_g p_g (1 - p_g) + v (p_g^2 + (1 - p_g)^2)}
    \,r_g(b) = \frac{\log b - \log b_0}{\tau^2},

the score of the counts' quasi-likelihood and of a prior around the public slope :math:`b_0`. All
groups have the same guess, which is public: one from their counts would bring noise in twice.

Neighbours: replace-one. Sensitivity: a record is in one cell for each output, so that replacing it
changes 2 counts by 1 for two classes, 2C for C classes with a model each. Theorem: discrete Laplace
noise on counts (docs/proofs/noise, docs/proofs/logistic); the slope is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from skdpsurv.blocks import Blocks
from skdpsurv.classification.group_fit import GroupFit, SignedRows
from skdpsurv.likelihoods.logistic import log_odds
from skdpsurv.mechanisms.sums import Histogram
from skdpsurv.privacy.concentrated import Price, stated_price
from skdpsurv.privacy.measurement import Known, NoisySum
from skdpsurv.references import reference
from skdpsurv.types import FloatArray, IntArray

__all__ = ["LARGEST_SLOPE", "LEAST_SLOPE", "MarginTable", "Margins"]

#: Groups of the size of log odds, narrower towards 0, as ends are cubes; and the prior standard
#: deviation of the slope's logarithm (docs/benchmarks/classification).
N_GROUPS, DEVIATION = 8, 0.5
#: A group's log odds are as many points.
N_POINTS = 4
#: Steps in which weights follow the slope.
N_STEPS = 4
#: What a slope is kept within.
LEAST_SLOPE, LARGEST_SLOPE = 0.01, 100.0


def counts_of(n_outputs: int) -> Histogram:
    """Return the query for counts of which a record is in one for each output."""
    return Histogram(2 * n_outputs)


@dataclass(frozen=True)
class MarginTable:
    """A public layout.

    Parameters
    ----------
    largest : float
        What log odds of the released model can be, in absolute value.
    n_outputs : int
    n_records : int
        Public.
    """

    largest: float
    n_outputs: int
    n_records: int

    @property
    def query(self) -> Histogram:
        """The counts."""
        return counts_of(self.n_outputs)

    @property
    def ends(self) -> FloatArray:
        """Ends of the groups, shape (N_GROUPS + 1,)."""
        return np.asarray(self.largest * (np.arange(N_GROUPS + 1) / N_GROUPS) ** 3)

    def counts(self, log_odds: FloatArray, signs: FloatArray) -> IntArray:
        """Count private records.

        Parameters
        ----------
        log_odds, signs : ndarray of shape (n, n_outputs)
            Predicted; and 1 for the label that they are the odds of, else -1.

        Returns
        -------
        counts : ndarray of shape (2, N_GROUPS)
            Of positive margins, and of others.
        """
        group = np.searchsorted(self.ends[1:-1], np.abs(log_odds))
        cell = group + N_GROUPS * ~(log_odds * signs > 0.0)
        counts = np.bincount(cell.ravel(), minlength=2 * N_GROUPS)
        return counts.astype(np.int64).reshape(2, N_GROUPS)

    def slope(self, counts: FloatArray, price: Price, prior: float) -> float:
        """Return b.

        Parameters
        ----------
        counts : ndarray of shape (2, N_GROUPS)
            With noise.
        price : float or Concentrated
            That they cost, which says how much.
        prior : float
            b_0.
        """
        right, wrong = counts
        guess = self.n_records * self.n_outputs / N_GROUPS
        variance = self.query.deviation(price) ** 2
        widths = np.diff(self.ends)[:, None]
        points = self.ends[:-1, None] + widths * (np.arange(N_POINTS) + 0.5) / N_POINTS

        log_slope = math.log(prior)
        for _ in range(N_STEPS):
            # Weights of one step are those of the last: with b in them far slopes would look
            # likely, as nothing has weight there.
            predictor = math.exp(log_slope) * points
            up, down = special.expit(predictor), special.expit(-predictor)
            p, q = up.mean(axis=1), down.mean(axis=1)
            moves = guess * (up * down * predictor).mean(axis=1)
            weight = moves / (guess * p * q + variance * (p**2 + q**2))

            def score(at: float, weight: FloatArray = weight) -> float:
                p = special.expit(math.exp(at) * points).mean(axis=1)
                excess = float(np.sum(weight * ((1.0 - p) * right - p * wrong)))
                return excess - (at - math.log(prior)) / DEVIATION**2

            log_slope = _root(score, math.log(LEAST_SLOPE), math.log(LARGEST_SLOPE))
        return min(max(math.exp(log_slope), LEAST_SLOPE), LARGEST_SLOPE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Margins(NoisySum):
    """The table of a released model, and the slope that it tells of.

    Parameters
    ----------
    price : float or Concentrated
    fit : GroupFit
        Of all columns.
    """

    fit: GroupFit

    name = "a table of margins"
    theorem = reference("docs/proofs/logistic", "chaudhuri")

    def stated(self) -> dict[str, Any]:
        """Return the price."""
        return stated_price("recalibration", self.price)

    def query(self, known: Known) -> Histogram:
        """Return the counts, whatever the layout is."""
        return counts_of(self.fit.n_outputs)

    def table(self, known: Known) -> MarginTable:
        """Return the layout for released coefficients."""
        fit, model = self.fit, known["_model"]
        reach = np.linalg.norm(model.coef, axis=1) * fit.data_norm + np.abs(model.intercept)
        largest = float(log_odds(reach, fit.max_residual).max())
        return MarginTable(largest, fit.n_outputs, fit.n_records)

    def ask(self, known: Known, records: Blocks[SignedRows]) -> IntArray:
        """Return exact counts."""
        fit, model, table = self.fit, known["_model"], self.table(known)

        def counts(block: SignedRows) -> IntArray:
            scores = model.each_predictor(block.within(fit.data_norm).X)
            return table.counts(log_odds(scores, fit.max_residual), block.signs.T)

        return records.map_sum(counts)

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the slope, found from one that is likely."""
        slope = self.table(known).slope(
            noisy.astype(np.float64), self.price, known["recalibration_slope"]
        )
        return {"recalibration_slope": slope}


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is 0, or the end that it is nearer to 0 at."""
    if falling(low) <= 0.0:
        return low
    if falling(high) >= 0.0:
        return high
    return float(optimize.brentq(falling, low, high, xtol=1e-6))
