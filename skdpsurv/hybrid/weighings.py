r"""Counts that weigh public records. What follows on them is post-processing.

*Cells*: k-means cells of the public records; noisy counts of the private ones in them, spread
evenly over the public records of a cell. *Points*: a cell for each distinct public record (Wang et
al., Algorithm 1). *Nested counts*: points again, of sets of which each holds the one before; each
makes a candidate, with a fit (Algorithm 2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.hybrid.hybrid_records import PROOF, PointMap, PrivateRecords, PublicRecords
from skdpsurv.hybrid.points import distinct, nearest, nested_counts
from skdpsurv.hybrid.residual_moments import Fit, Residuals, lifted
from skdpsurv.mechanisms.sums import HISTOGRAM, Histograms
from skdpsurv.privacy.cost import Cost, in_turn, price_of
from skdpsurv.privacy.measurement import Known, NoisySum
from skdpsurv.types import FloatArray, IntArray

Records = Blocks[PrivateRecords]

#: Distances between cells look at the public records without this share at either end.
CLIPPED_SHARE = 0.02
#: K-means sees public records only, so that its seed is nobody's secret.
KMEANS_STEPS, KMEANS_SEED = 30, 0


def over(n_public: int, index: IntArray, weights: FloatArray) -> FloatArray:
    """Return the weights of all public records: those that were not weighed have none."""
    everybody = np.zeros(n_public)
    everybody[index] = weights
    return everybody


@dataclass(frozen=True, eq=False, kw_only=True)
class NearestCounts(NoisySum):
    """How many private records are nearest to each of some public points. A subclass says which.

    Parameters
    ----------
    public : PublicRecords
    """

    public: PublicRecords

    asked = HISTOGRAM  # each private record is nearest to one
    theorem = PROOF

    @cached_property
    @abstractmethod
    def points(self) -> tuple[PointMap, FloatArray, IntArray]:
        """The map of records to points, the points, and places that belong to them."""

    def ask(self, known: Known, records: Records) -> IntArray:
        """Return exact counts."""
        point_map, points, _ = self.points
        return records.map_sum(partial(_held, point_map, points))


@dataclass(frozen=True, eq=False, kw_only=True)
class CellCounts(NearestCounts):
    """How many private records are in each cell of the public ones.

    Parameters
    ----------
    public : PublicRecords
    n_cells : int
    fit : callable or None, default=None
        If residuals of a fit with these weights are asked next.
    """

    n_cells: int
    fit: Fit | None = None

    name = "noisy counts of private records in cells of the public ones"

    @cached_property
    def points(self) -> tuple[PointMap, FloatArray, IntArray]:
        """The map of records to points, centres of cells, and each public record's cell."""
        from sklearn.cluster import KMeans

        point_map, theirs = self.public.mapped(CLIPPED_SHARE)
        kmeans = KMeans(self.n_cells, n_init=1, max_iter=KMEANS_STEPS, random_state=KMEANS_SEED)
        centers = kmeans.fit(theirs).cluster_centers_
        # A cell that is the nearest of no public record has nobody to give weight to.
        held, cell = np.unique(nearest(theirs, centers), return_inverse=True)
        return point_map, centers[held], cell

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return counts, spread over the public records of each cell; some are negative."""
        cell = self.points[-1]
        weights = (noisy.astype(np.float64) / np.bincount(cell))[cell]
        if self.fit is None:
            return {"weights": weights}
        residuals = Residuals.of(self.fit(weights), self.public)
        return {"weights": lifted(weights, self.public.n_private), "residuals": residuals}


@dataclass(frozen=True, eq=False, kw_only=True)
class PointCounts(NearestCounts):
    """How many private records are nearest to each distinct public one.

    Parameters
    ----------
    public : PublicRecords
    """

    name = "noisy counts of private records nearest to each public one"

    @cached_property
    def points(self) -> tuple[PointMap, FloatArray, IntArray]:
        """The map of records to points, distinct points, and places of public records there."""
        point_map, theirs = self.public.mapped()
        index = distinct(theirs)
        return point_map, theirs[index], index

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return counts, some of them negative, and of whom."""
        return {"public_index": self.points[-1], "weights": noisy.astype(np.float64)}


class Order(PointCounts):
    """The order in which public records join nested sets: by how many are nearest to each."""

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the order."""
        return {"order": self.points[-1][np.argsort(-noisy, kind="stable")]}


@dataclass(frozen=True, eq=False, kw_only=True)
class NestedCounts(NoisySum):
    """How many private records are nearest to each public one of nested sets, set by set.

    Parameters
    ----------
    public : PublicRecords
    sizes : sequence of int
        Of the sets, rising: each holds the first so many of a released order.
    fit : callable
    """

    public: PublicRecords
    sizes: Sequence[int]
    fit: Fit

    name = "noisy counts for nested sets of public records"
    theorem = PROOF

    @property
    def cost(self) -> Cost:
        """An equal part of the price for each."""
        return in_turn([price_of(self.query({}).each(self.price))] * len(self.sizes))

    def query(self, known: Known) -> Histograms:
        """In each set a private record is nearest to one."""
        return Histograms(len(self.sizes))

    def ask(self, known: Known, records: Records) -> tuple[IntArray, ...]:
        """Return the exact counts of each set."""
        point_map, theirs = self.public.mapped()
        joining = theirs[known["order"]]
        return records.map_sum(partial(_held_by_each, point_map, joining, self.sizes))

    def after(self, known: Known, noisy: Sequence[IntArray]) -> dict[str, Any]:
        """Return candidates: places and weights of public records; and a fit of each."""
        candidates = [(known["order"][: c.size], c.astype(np.float64)) for c in noisy]
        fits = [self.fit(over(self.public.n_public, *one)) for one in candidates]
        return {"candidates": candidates, "fits": fits}


def _held(point_map: PointMap, centers: FloatArray, private: PrivateRecords) -> IntArray:
    """Return how many private records of a block are nearest to each centre."""
    place = nearest(point_map.points(private.table, private.y), centers)
    return np.bincount(place, minlength=centers.shape[0])


def _held_by_each(
    point_map: PointMap, centers: FloatArray, sizes: Sequence[int], private: PrivateRecords
) -> tuple[IntArray, ...]:
    """Return the counts of a block for each of some nested sets of centres."""
    return tuple(nested_counts(point_map.points(private.table, private.y), centers, sizes))
