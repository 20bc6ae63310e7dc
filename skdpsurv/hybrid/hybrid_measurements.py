r"""Measurements of private records in a hybrid fit: counts near public ones, residual moments.

All else is post-processing.

*Cells*: k-means cells of the public records; noisy counts of the private ones in them, spread
evenly over the public records of a cell. *Points*: a cell for each distinct public record (Wang et
al., Algorithm 1). *Nested counts*: points again, of sets of which each holds the one before; each
makes a candidate, with a fit (Algorithm 2).

**Moments of residuals**, and weights under which public residuals have the moments of private ones.
At a public fit with predictions :math:`\hat y(x)`, every record has the vector

.. math:: g(z) = \text{clip}_R\big[r(z)\,(1, \tilde x)\big], \qquad
    r(z) = \text{clip}\big[(y - \hat y(x)) / s\big],

its residual times its standardised columns: for a generalised linear model, its score at the fit.
Standardisation, the scale s and the bound R come from public records. The mean of g over private
records is released with L2-Laplace noise, or with Gaussian noise for a mu. Neighbours: replace-one
among private records; sensitivity: the mean moves by at most :math:`2R/n`; so the release is
epsilon-differentially private (docs/proofs/hybrid), or :math:`\tfrac12\mu^2`-zCDP
(docs/proofs/gaussian). Public weights then move, as little as entropy allows, towards that mean T:

.. math:: w = \arg\min_w \mathrm{KL}(w \| w_0) + \frac1{2k}\Big\|\sum_i w_i g(z_i) - T\Big\|^2,

with a k that exceeds the variance of the noise, so that noise is not followed. A fit with weights w
has taken about one Newton step from the public fit towards the private records.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.clipping import clip_rows
from skdpsurv.dp.plan import Context, NoisySum
from skdpsurv.dp.privacy_cost import Cost, cost_of, epsilon_or_mu, sequential_cost
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.hybrid import hybrid_records
from skdpsurv.hybrid.meta_estimator import predicted_numbers, predicted_probabilities
from skdpsurv.likelihoods.loss import gram
from skdpsurv.mechanisms.moments import MeanOfRows
from skdpsurv.mechanisms.sums import HISTOGRAM, Histograms

Records = Blocks[hybrid_records.PrivateRecords]

#: Share of public records left out at either end in distances between cells.
CLIPPED_SHARE = 0.02
#: K-means sees public records only, so that its seed is no secret.
KMEANS_STEPS, KMEANS_SEED = 30, 0
#: Penalty k of the weights: its least value, and in units of the noise's variance (by trial).
LEAST_SLACK, SLACK = 0.3, 10.0
#: Columns are clipped at this many standard deviations, numeric residuals at this many scales.
FARTHEST, FARTHEST_RESIDUAL = 4.0, 2.5
#: Moments are clipped a little above this quantile of the public ones.
QUANTILE, ABOVE = 0.95, 1.1
#: Least bound on residuals, for private ones where public ones are nearly 0.
LEAST_RESIDUAL = 0.5
NEWTON_STEPS = 50
#: Least weight of a public record before residuals are balanced, in units of the average.
LEAST_WEIGHT = 0.01

#: A function that fits the estimator to all public records, with released weights.
Fit = Callable[[FloatArray], Any]


@dataclass(frozen=True)
class Residuals:
    """The map of records to moments, at a public fit, with scale s and bound R.

    A constant column has spread inf.
    """

    fitted: Any
    center: FloatArray
    spread: FloatArray
    scale: float
    bound: float

    @classmethod
    def of(cls, fitted: Any, public: hybrid_records.PublicRecords) -> Residuals:
        """Return the map from records to residuals, with scales of the public records."""
        return cls.at(fitted, public.design_public, public.y_public)

    @classmethod
    def at(cls, fitted: Any, X: FloatArray, y: NDArray[Any]) -> Residuals:
        """Return the map that public rows and outcomes define."""
        center, spread = X.mean(axis=0), X.std(axis=0)
        # Columns that are constant, or beyond the range of doubles, count for nothing.
        known = np.isfinite(center) & np.isfinite(spread) & (spread > 0)
        center, spread = np.where(known, center, 0.0), np.where(known, spread, np.inf)
        scale = 0.5
        if not is_classifier(fitted):
            residual = np.abs(y - predicted_numbers(fitted, X))
            scale = 1.48 * float(np.median(residual)) or float(np.mean(residual)) or 1.0
        draft = cls(fitted, center, spread, scale, np.inf)
        norms = np.linalg.norm(draft.moments(X, y), axis=1)
        rows = np.linalg.norm(draft._columns(X), axis=1)
        bound = max(np.quantile(norms, QUANTILE), LEAST_RESIDUAL * np.quantile(rows, QUANTILE))
        return replace(draft, bound=ABOVE * float(bound))

    def moments(self, X: FloatArray, y: NDArray[Any]) -> FloatArray:
        """Return a row of moments for each record, of norm at most R."""
        residual = self._residuals(X, y)
        shape = X.shape[0], residual.shape[1] * (X.shape[1] + 1)
        flat = (residual[:, :, None] * self._columns(X)[:, None, :]).reshape(shape)
        return clip_rows(flat, self.bound) if np.isfinite(self.bound) else flat

    @property
    def size(self) -> int:
        """Number of moments."""
        classes = len(self.fitted.classes_) if is_classifier(self.fitted) else 2
        return (classes if classes > 2 else 1) * (self.center.size + 1)

    def _columns(self, X: FloatArray) -> FloatArray:
        columns = np.clip((X - self.center) / self.spread, -FARTHEST, FARTHEST)
        return np.column_stack([np.ones(X.shape[0]), columns])

    def _residuals(self, X: FloatArray, y: NDArray[Any]) -> FloatArray:
        """Return residuals over s: one column, or one for each of three or more classes."""
        if not is_classifier(self.fitted):
            error = (y - predicted_numbers(self.fitted, X)) / self.scale
            error = np.where(np.isnan(error), 0.0, error)
            return np.clip(error, -FARTHEST_RESIDUAL, FARTHEST_RESIDUAL)[:, None]
        classes = self.fitted.classes_.tolist()
        likely = predicted_probabilities(self.fitted, X)
        seen = np.eye(len(classes) + 1)[hybrid_records.places_of(y, classes)][:, :-1]
        residual = np.where(np.isnan(likely), 0.0, (seen - likely) / self.scale)
        return residual[:, 1:] if len(classes) == 2 else residual


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualMoments(NoisySum):
    """Mean moments of private residuals, at a fit that is released; weights follow.

    ``fit`` is given if residuals of a fit with these weights follow.
    """

    public: hybrid_records.PublicRecords
    fit: Fit | None = None
    assumptions: tuple[str, ...] = ()

    name = "noisy moments of private residuals"
    theorem = hybrid_records.PROOF

    def query_for(self, context: Context) -> MeanOfRows:
        """Return the query: the mean of rows whose norm is at most a bound."""
        residuals = context["_residuals"]
        return MeanOfRows(self.public.n_private, residuals.size, residuals.bound)

    def query_range(self) -> list[MeanOfRows]:
        """Return no query: bounds follow from fits, which are made later."""
        return []

    def exact_answer(self, context: Context, records: Blocks[hybrid_records.PrivateRecords]) -> Any:
        """Return the exact mean of the moments."""
        rows = records.map(partial(_moments, context["_residuals"], self.public.design))
        if np.isinf(epsilon_or_mu(self.price)):  # without rounding
            return rows.map_reduce(partial(np.sum, axis=0)) / self.public.n_private
        return self.query_for(context).mean(rows)

    def postprocess(self, context: Context, noisy: FloatArray) -> dict[str, Any]:
        """Return weights whose residuals have about the noisy moments."""
        public, variance = self.public, self.query_for(context).deviation(self.price) ** 2
        moments = context["_residuals"].moments(public.design_public, public.y_public)
        weights = public.n_private * balance(moments, noisy, variance, context["weights"])
        if self.fit is None:
            return {"weights": weights}
        return {"weights": weights, "_residuals": Residuals.of(self.fit(weights), public)}


def _moments(
    residuals: Residuals, design: hybrid_records.Design, private: hybrid_records.PrivateRecords
) -> FloatArray:
    """Return the moments of the residuals of a block of private records."""
    return residuals.moments(design.matrix(private.table), private.y)


def lifted(weights: FloatArray, n_private: int) -> FloatArray:
    """Return weights that balanced ones may stay close to: positive, and of about n together."""
    weights = np.maximum(weights, 0.0)
    weights = weights * (n_private / max(float(weights.sum()), 1e-9))
    return weights + LEAST_WEIGHT * n_private / weights.size


def balance(
    moments: FloatArray, target: FloatArray, variance: float, start: FloatArray
) -> FloatArray:
    r"""Return weights, adding up to 1, whose mean moments are near the target.

    Notes
    -----
    Newton's method on the dual, :math:`\log\sum_i w_{0i}e^{\lambda^\top g_i} -
    \lambda^\top T + \frac k2\|\lambda\|^2`: smooth and strongly convex. All of it is public.
    """
    slack = SLACK * variance + LEAST_SLACK
    offset = np.log(start / start.sum())

    def dual(point: FloatArray) -> tuple[float, FloatArray]:
        tilt = offset + moments @ point
        top = float(tilt.max())
        weights = np.exp(tilt - top)
        total = float(weights.sum())
        value = top + np.log(total) - point @ target + 0.5 * slack * point @ point
        return float(value), weights / total

    point = np.zeros(target.size)
    value, weights = dual(point)
    for _ in range(NEWTON_STEPS):
        mean = weights @ moments
        slope = mean - target + slack * point
        bend = gram(moments, weights) - np.outer(mean, mean)
        bend[np.diag_indices_from(bend)] += slack
        direction = -np.linalg.solve(bend, slope)
        step = 1.0
        while True:
            below, tried = dual(point + step * direction)
            if below <= value + 1e-4 * step * float(slope @ direction) or step < 1e-6:
                break
            step *= 0.5
        gain, point, value, weights = value - below, point + step * direction, below, tried
        if gain < 1e-10:
            break
    return weights


def over(n_public: int, index: IntArray, weights: FloatArray) -> FloatArray:
    """Return weights of all public records, 0 for those without a weight."""
    everybody = np.zeros(n_public)
    everybody[index] = weights
    return everybody


@dataclass(frozen=True, eq=False, kw_only=True)
class NearestCounts(NoisySum):
    """Counts of private records nearest to public points; a subclass says to which points."""

    public: hybrid_records.PublicRecords

    query = HISTOGRAM  # each private record is nearest to one
    theorem = hybrid_records.PROOF

    @cached_property
    @abstractmethod
    def points(self) -> tuple[hybrid_records.PointMap, FloatArray, IntArray]:
        """The map of records to points, the points, and the public records that belong to them."""

    def exact_answer(self, context: Context, records: Records) -> IntArray:
        """Return the exact number of private records nearest to each point."""
        point_map, points, _ = self.points
        (counts,) = records.map_reduce(partial(_counts, point_map, points, (len(points),)))
        return np.asarray(counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellCounts(NearestCounts):
    """Counts of private records in cells of the public ones.

    ``fit`` is given if residuals of a fit with these weights follow.
    """

    n_cells: int
    fit: Fit | None = None

    name = "noisy counts of private records in cells of the public ones"

    @cached_property
    def points(self) -> tuple[hybrid_records.PointMap, FloatArray, IntArray]:
        """The map of records to points, centres of cells, and each public record's cell."""
        from sklearn.cluster import KMeans

        point_map, theirs = self.public.mapped(CLIPPED_SHARE)
        kmeans = KMeans(self.n_cells, n_init=1, max_iter=KMEANS_STEPS, random_state=KMEANS_SEED)
        centers = kmeans.fit(theirs).cluster_centers_
        # A cell that is nearest to no public record has no weights.
        held, cell = np.unique(hybrid_records.nearest(theirs, centers), return_inverse=True)
        return point_map, centers[held], cell

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return counts, spread over the public records of each cell; some are negative."""
        cell = self.points[-1]
        weights = (noisy.astype(np.float64) / np.bincount(cell))[cell]
        if self.fit is None:
            return {"weights": weights}
        residuals = Residuals.of(self.fit(weights), self.public)
        return {"weights": lifted(weights, self.public.n_private), "_residuals": residuals}


@dataclass(frozen=True, eq=False, kw_only=True)
class PointCounts(NearestCounts):
    """Counts of private records nearest to each distinct public one."""

    name = "noisy counts of private records nearest to each public one"
    gives: ClassVar[str | None] = "weights"

    @cached_property
    def points(self) -> tuple[hybrid_records.PointMap, FloatArray, IntArray]:
        """The map of records to points, distinct points, and places of public records there."""
        point_map, theirs = self.public.mapped()
        index = hybrid_records.distinct(theirs)
        return point_map, theirs[index], index

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return counts, some of them negative, and the places of their public records."""
        return {"public_index": self.points[-1], "weights": noisy.astype(np.float64)}


class Order(PointCounts):
    """The order in which public records join nested sets, by noisy counts."""

    gives = None

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return the public records in order of their noisy counts, the largest first."""
        return {"_order": self.points[-1][np.argsort(-noisy, kind="stable")]}


@dataclass(frozen=True, eq=False, kw_only=True)
class NestedCounts(NoisySum):
    """Counts of private records nearest to each public one of nested sets, set by set.

    Each set holds the first so many records of a released order, by rising ``sizes``.
    """

    public: hybrid_records.PublicRecords
    sizes: Sequence[int]
    fit: Fit

    name = "noisy counts for nested sets of public records"
    theorem = hybrid_records.PROOF

    @property
    def cost(self) -> Cost:
        """Cost of the counts of all sets, at equal parts of the price."""
        return sequential_cost([cost_of(self.query_for({}).each(self.price))] * len(self.sizes))

    def query_for(self, context: Context) -> Histograms:
        """Return the query: in each set, a private record is nearest to one public record."""
        return Histograms((1,) * len(self.sizes))

    def exact_answer(self, context: Context, records: Records) -> tuple[IntArray, ...]:
        """Return the exact counts of each set."""
        point_map, theirs = self.public.mapped()
        joining = theirs[context["_order"]]
        return records.map_reduce(partial(_counts, point_map, joining, self.sizes))

    def postprocess(self, context: Context, noisy: Sequence[IntArray]) -> dict[str, Any]:
        """Return candidates: places and weights of public records; and a fit of each."""
        candidates = [(context["_order"][: c.size], c.astype(np.float64)) for c in noisy]
        fits = [self.fit(over(self.public.n_public, *one)) for one in candidates]
        return {"_candidates": candidates, "_fits": fits}


def _counts(
    point_map: hybrid_records.PointMap,
    centers: FloatArray,
    sizes: Sequence[int],
    private: hybrid_records.PrivateRecords,
) -> tuple[IntArray, ...]:
    """Return the counts of a block for each of some nested sets of centres."""
    return tuple(
        hybrid_records.nested_counts(point_map.points(private.table, private.y), centers, sizes)
    )
