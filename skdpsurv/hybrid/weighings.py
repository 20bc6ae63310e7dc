r"""Ways to weigh public records by private ones. What follows on them is post-processing.

``cells``: k-means cells of the public records; noisy counts of the private ones in them, spread
evenly over the public records of a cell. ``points``: a cell for each distinct public record (Wang
et al., Algorithm 1). ``subset``: nested sets of public records, a fit for each, and a private
choice (Algorithm 2). ``residuals``: weights under which public residuals have the private moments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from skdpsurv.hybrid.hybrid_records import HybridRecords, PointMap, PrivateRecords
from skdpsurv.hybrid.mixed_table import Design
from skdpsurv.hybrid.nearest import nearest, nested_counts
from skdpsurv.hybrid.residual_moments import Residuals, balance, private_moments
from skdpsurv.hybrid.selection import record_losses, select
from skdpsurv.mechanisms.sums import HISTOGRAM, LOSS
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price
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
    point_map = records.point_map(CLIPPED_SHARE)
    theirs = point_map.points(records.public, records.y_public)
    kmeans = KMeans(n_cells, n_init=1, max_iter=KMEANS_STEPS, random_state=KMEANS_SEED)
    centers = kmeans.fit(theirs).cluster_centers_
    cell = nearest(theirs, centers)
    # A cell that is the nearest of no public record has nobody to give weight to.
    held, cell = np.unique(cell, return_inverse=True)
    counts = records.private.map_sum(partial(_held, point_map, centers[held]))
    released = _noisy(counts, epsilon, source)
    share = (released / np.bincount(cell))[cell]
    return Weighing(np.arange(records.n_public), share)


def _held(point_map: PointMap, centers: FloatArray, private: PrivateRecords) -> IntArray:
    """Return how many private records of a block are nearest to each centre."""
    place = nearest(point_map.points(private.table, private.y), centers)
    return np.bincount(place, minlength=centers.shape[0])


def _noisy(counts: IntArray, epsilon: float, source: RandomSource) -> FloatArray:
    """Release how many private records each cell holds; some counts are negative."""
    return HISTOGRAM.release(counts, epsilon, source).astype(np.float64)


def distinct(points: FloatArray) -> IntArray:
    """Return the first place of each distinct point, in order."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1]).astype(np.int64)


def by_points(records: HybridRecords, epsilon: float, source: RandomSource) -> Weighing:
    """Weigh each distinct public record by a noisy count, which cost epsilon together."""
    point_map = records.point_map()
    theirs = point_map.points(records.public, records.y_public)
    index = distinct(theirs)
    counts = records.private.map_sum(partial(_held, point_map, theirs[index]))
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
    point_map = records.point_map()
    theirs = point_map.points(records.public, records.y_public)
    nested = records.private.map_sum(partial(_held_by_each, point_map, theirs[index], sizes))
    candidates = [
        Weighing(index[:size], _noisy(counts, to_count / len(sizes), source))
        for size, counts in zip(sizes, nested, strict=True)
    ]
    X, y = records.design_public, records.y_public
    fits = [fit(X, y, one.over(y.size)) for one in candidates]
    lost = partial(_lost_by_each, fits, records.design, records.outcome_range)
    best, curve = select(records.private.map_sum(lost), to_choose, selection, source)
    return replace(candidates[best], curve=curve)


def _held_by_each(
    point_map: PointMap, centers: FloatArray, sizes: Sequence[int], private: PrivateRecords
) -> tuple[IntArray, ...]:
    """Return the counts of a block for each of some nested sets of centres."""
    return tuple(nested_counts(point_map.points(private.table, private.y), centers, sizes))


def _lost_by_each(
    fits: Sequence[Any], design: Design, outcomes: tuple[float, float], private: PrivateRecords
) -> tuple[int, ...]:
    """Return the exact sum of a block's losses for each of some fits."""
    X = design.matrix(private.table)
    return tuple(LOSS.total(record_losses(fitted, X, private.y, *outcomes)) for fitted in fits)


def by_residuals(
    records: HybridRecords,
    prices: Sequence[Price],
    fitted: Any,
    weights: FloatArray,
    fit: Fit,
    source: RandomSource,
) -> Weighing:
    """Weigh by moments of residuals, round after round, each of which has a price.

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
    for place, price in enumerate(prices):
        if place > 0:
            fitted = fit(X, y, weights)
        residuals = Residuals.at(fitted, X, y)
        private = records.private.map(partial(_moments, residuals, records.design))
        target, variance = private_moments(private, n, residuals.bound, price, source)
        weights = n * balance(residuals.moments(X, y), target, variance, weights)
    return Weighing(np.arange(records.n_public), weights)


def _moments(residuals: Residuals, design: Design, private: PrivateRecords) -> FloatArray:
    """Return the moments of a block."""
    return residuals.moments(design.matrix(private.table), private.y)
