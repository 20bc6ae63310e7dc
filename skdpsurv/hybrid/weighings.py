r"""Ways to weigh public records by private ones. What follows on them is post-processing.

``cells``: k-means cells of the public records; noisy counts of the private ones in them, spread
evenly over the public records of a cell. ``points``: a cell for each distinct public record (Wang
et al., Algorithm 1). ``subset``: nested sets of public records, a fit for each, and a private
choice (Algorithm 2). ``residuals``: weights under which public residuals have the private moments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from skdpsurv.hybrid.hybrid_records import HybridRecords
from skdpsurv.hybrid.nearest import nearest, nested_counts
from skdpsurv.hybrid.residual_moments import Residuals, balance, private_moments
from skdpsurv.hybrid.selection import record_losses, select
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy import RandomSource
from skdpsurv.types import FloatArray, IntArray

__all__ = ["Weighing", "by_cells", "by_points", "by_residuals", "by_subset", "distinct"]

Fit = Callable[[FloatArray, NDArray[Any], FloatArray], Any]

#: Distances between cells look at the public records without this share at either end.
CLIPPED_SHARE = 0.02
#: K-means sees public records only, so that its seed is nobody's secret.
KMEANS_STEPS, KMEANS_SEED = 30, 0
#: Least weight of a public record before residuals are balanced, in units of the average.
LEAST_WEIGHT = 0.01


@dataclass(frozen=True)
class Weighing:
    """Public records, their weights, and the curve of a choice if it was released."""

    index: IntArray
    weights: FloatArray
    curve: FloatArray | None = None

    def over(self, n_public: int) -> FloatArray:
        """Return the weights of all public records: those that were not weighed have none."""
        everybody = np.zeros(n_public)
        everybody[self.index] = self.weights
        return everybody


def by_cells(
    records: HybridRecords, n_cells: int, epsilon: float, source: RandomSource
) -> Weighing:
    """Weigh by noisy counts in cells of the public records, which cost epsilon."""
    theirs, ours = records.public_points(CLIPPED_SHARE), records.private_points(CLIPPED_SHARE)
    kmeans = KMeans(n_cells, n_init=1, max_iter=KMEANS_STEPS, random_state=KMEANS_SEED)
    centers = kmeans.fit(theirs).cluster_centers_
    cell = nearest(theirs, centers)
    # A cell that is the nearest of no public record has nobody to give weight to.
    held, cell = np.unique(cell, return_inverse=True)
    counts = np.bincount(nearest(ours, centers[held]), minlength=held.size)
    released = _noisy(counts, epsilon, source)
    share = (released / np.bincount(cell))[cell]
    return Weighing(np.arange(records.n_public), share)


def _noisy(counts: IntArray, epsilon: float, source: RandomSource) -> FloatArray:
    """Release how many private records each cell holds; some counts are negative."""
    return HISTOGRAM.release(counts, epsilon, source).astype(np.float64)


def distinct(points: FloatArray) -> IntArray:
    """Return the first place of each distinct point, in order."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1]).astype(np.int64)


def by_points(records: HybridRecords, epsilon: float, source: RandomSource) -> Weighing:
    """Weigh each distinct public record by a noisy count, which cost epsilon together."""
    theirs = records.public_points()
    index = distinct(theirs)
    counts = np.bincount(nearest(records.private_points(), theirs[index]), minlength=index.size)
    return Weighing(index, _noisy(counts, epsilon, source))


def by_subset(
    records: HybridRecords,
    sizes: Sequence[int],
    epsilons: tuple[float, float, float],
    selection: str,
    fit: Fit,
    source: RandomSource,
) -> Weighing:
    """Weigh a subset of the public records: order, candidates and choice cost an epsilon each."""
    to_order, to_count, to_choose = epsilons
    each = by_points(records, to_order, source)
    index = each.index[np.argsort(-each.weights, kind="stable")]
    theirs, ours = records.public_points(), records.private_points()
    candidates = [
        Weighing(index[:size], _noisy(counts, to_count / len(sizes), source))
        for size, counts in zip(sizes, nested_counts(ours, theirs[index], sizes), strict=True)
    ]
    X, y = records.design_public, records.y_public
    private, low_span = records.design_private, records.outcome_range
    losses = [
        record_losses(fit(X, y, one.over(y.size)), private, records.y_private, *low_span)
        for one in candidates
    ]
    best, curve = select(losses, to_choose, selection, source)
    return replace(candidates[best], curve=curve)


def by_residuals(
    records: HybridRecords,
    epsilons: Sequence[float],
    fitted: Any,
    weights: FloatArray,
    fit: Fit,
    source: RandomSource,
) -> Weighing:
    """Weigh by moments of residuals, round after round, each of which costs an epsilon.

    Parameters
    ----------
    fitted : estimator
        Public: where the first residuals are taken.
    weights : ndarray of shape (n_public,)
        Released, or equal: what balanced weights stay close to.
    """
    X, y, n = records.design_public, records.y_public, records.n_private
    weights = np.maximum(weights, 0.0) * (n / max(float(np.maximum(weights, 0.0).sum()), 1e-9))
    weights = weights + LEAST_WEIGHT * n / records.n_public
    for place, epsilon in enumerate(epsilons):
        if place > 0:
            fitted = fit(X, y, weights)
        residuals = Residuals.at(fitted, X, y)
        private = residuals.moments(records.design_private, records.y_private)
        target, variance = private_moments(private, residuals.bound, epsilon, source)
        weights = n * balance(residuals.moments(X, y), target, variance, weights)
    return Weighing(np.arange(records.n_public), weights)
