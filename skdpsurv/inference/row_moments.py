r"""Second moments of a likelihood's rows: a private query, and distributions with these moments.

A row x has a weight w and is lengthened by a constant C, so that the moments :math:`\sum w (C, x)
(C, x)^\top` hold the number of records (each counted with its weight) and their mean. A caller
guarantees that :math:`w(\|x\|^2 + C^2) \le 1 + C^2`.

Moments give the number of records, their mean :math:`\mu` and their covariance S, but no shape.
Rows :math:`\mu + S^{1/2} z` are made of standard ones z of two shapes: normal and uniform. Where
indicators of labels are known to be such, z holds labels in the released shares instead, and is
moved to S by the linear map that moves rows least. Curves of a number and products of columns are
computed from rows of the others, which are made first, and then moved likewise: rows whose curves
vary like other columns exist for nobody. An eigenvalue of S below :data:`KNOWN` standard
deviations of the noise is *unknown*.

Records may tell different amounts. Where each has an *exposure* :math:`e \in [0, 1]`, the rows are
:math:`(C, x, E(e - \tfrac12))`, with E a constant, and :math:`w(\|x\|^2 + C^2 + E^2/4)` is at most
:math:`1 + C^2 + E^2/4`. Rows x then count by the linear regression of e on x, relative to the mean
of e.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special
from scipy.stats import qmc

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp.clipping import row_pieces
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.plan import Context, NoisySum, Plan
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.inference.uncertainty import MEAN_WEIGHT
from skdpsurv.mechanisms.moments import SecondMoments
from skdpsurv.mechanisms.perturbation import Minimisers, ridge_and_variances

#: Number of standardised rows of each shape: at least, and per column.
N_ROWS, ROWS_PER_COLUMN = 256, 8
#: Eigenvalues below so many standard deviations of the noise are unknown.
KNOWN = 2.0
SHAPES = ("normal", "uniform")
#: Number of rows with labels, of which each has at least so many.
N_LABELLED, LEAST_LABELLED = 512, 4
#: Groups of exclusive indicators: the features, and the shares of rows that have the labels.
Labels = tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]


@dataclass(frozen=True, eq=False)
class Derivation:
    """How features follow from others, which are its bases, in rows ``(x - center) / unit``."""

    known: KnownColumns
    center: FloatArray
    unit: FloatArray | float

    @cached_property
    def bases(self) -> list[int]:
        """Places of the features that follow from no others."""
        derived = {one.place for one in self.known.derived}
        return [j for j in range(self.center.size) if j not in derived]

    def rows(self, bases: FloatArray) -> FloatArray:
        """Return whole rows, given those of the bases."""
        rows = np.zeros((len(bases), self.center.size))
        rows[:, self.bases] = bases
        whole = self.known.with_derived(rows * self.unit + self.center)
        return np.asarray((whole - self.center) / self.unit)


@dataclass(frozen=True)
class CovariateDistribution:
    """Covariates of which only these moments are known.

    Parameters
    ----------
    mass : float
        Number of records, each counted with its weight.
    mean : ndarray of shape (n_features,)
    values : ndarray of shape (n_features,)
        Eigenvalues of the covariance; those below what is known are raised to it.
    vectors : ndarray of shape (n_features, n_features)
        Eigenvectors, in columns.
    known : ndarray of bool of shape (n_features,)
        True for eigenvalues that were not raised.
    labels : tuple
        Features that indicate labels.
    mean_exposure : float
    exposure_slopes : ndarray of shape (n_features,) or None
        Coefficients of the regression of exposures on rows; None if all are 1.
    derivation : Derivation or None
        How features follow from others; None if none does.
    """

    mass: float
    mean: FloatArray
    values: FloatArray
    vectors: FloatArray
    known: BoolArray
    labels: Labels = ()
    mean_exposure: float = 1.0
    exposure_slopes: FloatArray | None = None
    derivation: Derivation | None = None

    @classmethod
    def of_moments(
        cls,
        moments: FloatArray,
        constant: float,
        n_records: int,
        deviation: float,
        labels: Labels = (),
    ) -> CovariateDistribution:
        """Return the distribution of rows with released second moments, the constant first.

        ``n_records`` is the largest mass, and ``deviation`` that of the noise on a diagonal entry.
        """
        least = max(1.0, 2.0 * deviation / constant**2)
        mass = float(np.clip(moments[0, 0] / constant**2, min(least, n_records), n_records))
        mean = moments[0, 1:] / (constant * mass)
        covariance = moments[1:, 1:] / mass - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        least = max(KNOWN * deviation / mass, 1e-12)
        return cls(mass, mean, np.maximum(values, least), vectors, values >= least, labels)

    def exposed(self, products: FloatArray, constant: float, deviation: float) -> Self:
        """Return the distribution with exposures, from the products of their column with rows.

        In each direction of the covariance, the expected squared noise is taken off.
        """
        center, *cross = products[: self.mean.size + 1] / self.mass
        center = center / constant
        mean = float(np.clip(0.5 + center / EXPOSURE, LEAST_EXPOSURE, 1.0))
        unit = EXPOSURE * np.sqrt(self.values)
        slopes = self.vectors.T @ (np.array(cross) - center * self.mean) / unit
        noise = np.square(deviation / (math.sqrt(2.0) * self.mass * unit))
        slopes *= np.maximum(1.0 - noise / np.maximum(np.square(slopes), 1e-300), 0.0)
        slopes = self.vectors @ (slopes / np.sqrt(self.values))
        return replace(self, mean_exposure=mean, exposure_slopes=slopes)

    def exposure(self, rows: FloatArray) -> FloatArray | float:
        """Return how much each row tells, 1 on average."""
        if self.exposure_slopes is None:
            return 1.0
        exposure = self.mean_exposure + (rows - self.mean) @ self.exposure_slopes
        exposure = np.clip(exposure, LEAST_EXPOSURE, 1.0)
        return np.asarray(exposure / exposure.mean())

    def rows(self, shape: str) -> FloatArray:
        """Return rows of a shape with this mean and covariance."""
        if not self.labels and self.derivation is None:
            root = (self.vectors * np.sqrt(self.values)) @ self.vectors.T
            return np.asarray(self.mean + standard_rows(shape, self.mean.size) @ root)
        covariance = (self.vectors * self.values) @ self.vectors.T
        if self.derivation is None:
            rows = labelled_rows(shape, self.mean.size, self.labels)
        else:
            bases = self._of(self.derivation.bases, covariance).rows(shape)
            rows = _standardised(self.derivation.rows(bases))
        rows = rows * np.sqrt(np.diag(covariance))
        root, inverse = _roots(rows.T @ rows / len(rows))
        between, _ = _roots(root @ covariance @ root)
        return np.asarray(self.mean + rows @ (inverse @ between @ inverse))

    def _of(self, places: list[int], covariance: FloatArray) -> CovariateDistribution:
        """Return the distribution of some features, which hold all labels."""
        values, vectors = np.linalg.eigh(covariance[np.ix_(places, places)])
        at = {place: j for j, place in enumerate(places)}
        labels = tuple((tuple(at[j] for j in group), shares) for group, shares in self.labels)
        known = np.ones(values.size, dtype=bool)
        return CovariateDistribution(self.mass, self.mean[places], values, vectors, known, labels)


def _standardised(rows: FloatArray) -> FloatArray:
    """Return rows with mean 0 and variance 1."""
    rows = rows - rows.mean(axis=0)
    return np.asarray(rows / np.maximum(np.sqrt(np.mean(rows**2, axis=0)), 1e-9))


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root of a symmetric positive matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T


def _points(n_rows: int, n_features: int) -> FloatArray:
    """Return points in the unit cube that fill it evenly."""
    # Shifted, as the first of Sobol's points is 0.
    points = qmc.Sobol(n_features, scramble=False).random(n_rows)
    points = (points + np.random.default_rng(0).random(n_features)) % 1.0
    return np.asarray(np.clip(points, 1e-9, 1.0 - 1e-9))


@lru_cache(maxsize=8)
def labelled_rows(shape: str, n_features: int, labels: Labels) -> FloatArray:
    """Return fixed rows with labels, of mean 0 and variance 1; other features have the shape."""
    points = _points(N_LABELLED // 2, n_features)
    points = np.concatenate([points, 1.0 - points])
    rows = special.ndtri(points) if shape == "normal" else points - 0.5
    for group, shares in labels:
        least = np.maximum(shares, LEAST_LABELLED / N_LABELLED)
        whole = 1.0 - LEAST_LABELLED / N_LABELLED
        ends = np.cumsum(least * min(1.0, whole / least.sum()))
        label = np.searchsorted(ends, points[:, group[0]], side="right")
        rows[:, list(group)] = label[:, None] == np.arange(len(group))
    rows = _standardised(rows)
    rows.setflags(write=False)
    return rows


@lru_cache(maxsize=8)
def standard_rows(shape: str, n_features: int) -> FloatArray:
    """Return fixed rows of a shape with mean 0 and the identity for covariance."""
    if n_features == 0:
        return np.zeros((1, 0))
    n_rows = max(N_ROWS, 2 ** int(np.ceil(np.log2(ROWS_PER_COLUMN * n_features))))
    uniform = _points(n_rows // 2, n_features)
    rows = special.ndtri(uniform) if shape == "normal" else uniform - 0.5
    rows = np.concatenate([rows, -rows])
    values, vectors = np.linalg.eigh(rows.T @ rows / n_rows)
    standard = np.asarray(rows @ ((vectors / np.sqrt(values)) @ vectors.T))
    standard.setflags(write=False)
    return standard


#: With standard errors, rows longer than the bound are weighted instead of scaled down, up to so
#: many times the bound.
DOWNWEIGHTING_BOUND = 4.0
#: The constant entry of each row. A small one means less noise on moments, a large one less on
#: number and mean of the rows.
CONSTANT = 0.5
#: A feature with a larger part of the variance that its mean allows between its ends is two-valued.
#: Evenly spread ones have a third at most, and those with an arcsine law a half.
TWO_VALUED = 0.7
#: E, the length of the column of exposures; and the least exposure of a row, and in the mean.
EXPOSURE, LEAST_EXPOSURE = 0.5, 0.02
#: With more features, noise hides all moments.
MOST_FEATURES = 500


class MomentRows(NamedTuple):
    """A block of private rows (n, n_features), with weights and exposures (n,); None: all are 1."""

    X: FloatArray
    weight: FloatArray | None
    exposure: FloatArray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RowMoments(NoisySum):
    """The query for the moments of rows, lengthened by ``constant``; a subclass gives the rows."""

    n_records: int
    n_features: int
    constant: float = CONSTANT
    has_exposure: bool = False

    name = "second moments"
    theorem = reference("docs/proofs/inference", "dwork")

    def __post_init__(self) -> None:
        if self.n_features > MOST_FEATURES:
            raise ValueError(
                f"inference_share must be 0 with more than {MOST_FEATURES} features: their second "
                f"moments would drown in noise, got {self.n_features}."
            )
        self.query_for({})  # refuses vectors that are too long for the theorem

    def query_for(self, context: Context) -> SecondMoments:
        """Return the query for lengthened rows in units of :attr:`longest`."""
        return SecondMoments(self.n_records, self.n_features + 1 + self.has_exposure, 1.0)

    def scales(self) -> list[float]:
        return [self.query_for({}).distribution(self.price).scale]

    @property
    def noise(self) -> float:
        """Standard deviation of the noise on the moments in any direction."""
        return self.query_for({}).deviation(self.price)

    @property
    def longest(self) -> float:
        """The largest norm of a lengthened row, times the root of its weight."""
        return math.hypot(1.0, self.constant, 0.5 * EXPOSURE * self.has_exposure)

    @abstractmethod
    def seen(self, context: Context, records: Any) -> Blocks[MomentRows]:
        """Return the rows of the records, as the likelihood weights them."""

    def exact_answer(self, context: Context, records: Any) -> FloatArray:
        blocks = self.seen(context, records)
        return self.query_for(context).total(blocks, self.rows)

    def rows(self, block: MomentRows) -> Iterator[FloatArray]:
        """Yield lengthened rows, times the roots of their weights, in pieces."""
        for piece in row_pieces(block.X.shape[0], self.query_for({}).width):
            rows = block.X[piece, : self.n_features]
            root = 1.0 if block.weight is None else np.sqrt(block.weight[piece])
            root = np.broadcast_to(root / self.longest, rows.shape[:1])
            columns = [self.constant * root, rows * root[:, None]]
            if block.exposure is not None:
                columns.append(EXPOSURE * (block.exposure[piece] - 0.5) * root)
            yield np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy moments, and the distributions of rows that have them.

    ``groups`` are places of exclusive indicators, and ``ends`` the public ones of all features in
    the rows. What varies as only values at the ends do is taken for an indicator.
    """

    measurement: RowMoments
    moments: FloatArray
    groups: tuple[tuple[int, ...], ...] = ()
    ends: tuple[FloatArray, FloatArray] | None = None
    derivation: Derivation | None = None

    @cached_property
    def _labels(self) -> Labels:
        """The shares of rows at the high ends, the same for all that is drawn again."""
        if self.ends is None:
            return ()
        found, (low, high) = self._distribution(self.moments), self.ends
        shares = (found.mean - low) / (high - low)
        variances = np.square(found.vectors) @ found.values / (high - low) ** 2
        single = np.setdiff1d(
            np.flatnonzero(variances > TWO_VALUED * shares * (1.0 - shares)),
            [place for group in self.groups for place in group],
        )
        if self.derivation is not None:
            single = np.intersect1d(single, self.derivation.bases)
        groups = (*self.groups, *((place,) for place in single.tolist()))
        return tuple((group, tuple(shares[list(group)].tolist())) for group in groups)

    @property
    def distribution(self) -> CovariateDistribution:
        """The distribution of rows with these moments, up to its shape."""
        return self._distribution(self.moments, self._labels)

    def values(self) -> dict[str, FloatArray]:
        """Return the mean weight of rows with its standard error by the noise, as released."""
        asked = self.measurement
        unit = (asked.longest / asked.constant) ** 2 / asked.n_records
        deviation = asked.query_for({}).deviation(asked.price)
        return {MEAN_WEIGHT: np.array([self.moments[0, 0], deviation]) * unit}

    def redrawn(self, number: int) -> list[tuple[CovariateDistribution, CovariateDistribution]]:
        """Return pairs of distributions, with more noise and with the same noise less."""
        # Public noise, the same for everybody, hides nothing.
        source, query = random_source(0, purpose="moments"), self.measurement.query_for({})
        draws = [query.noise(self.measurement.price, source) for _ in range(number)]

        def moved(e: FloatArray) -> CovariateDistribution:
            return self._distribution(self.moments + e, self._labels)

        return [(moved(e), moved(-e)) for e in draws]

    def _distribution(self, moments: FloatArray, labels: Labels = ()) -> CovariateDistribution:
        asked, unit = self.measurement, self.measurement.longest**2
        moments, noise, size = moments * unit, asked.noise * unit, asked.n_features + 1
        how = asked.constant, asked.n_records, noise, labels
        found = CovariateDistribution.of_moments(moments[:size, :size], *how)
        found = replace(found, derivation=self.derivation)
        return found.exposed(moments[size], asked.constant, noise) if asked.has_exposure else found


#: At most this part of the noise on moments is worth at most so many times that on the gradient.
LESS_ON_MOMENTS, MORE_ON_GRADIENT = 0.475, 1.5


def least_noise(plans: Sequence[Plan]) -> Plan:
    """Return the plan of a perturbed fit with the least noise, by public numbers.

    Another one is better if its second moments have far less noise, its gradient little more, and
    its ridge is no larger.
    """

    def of(plan: Plan, kind: type[Any]) -> list[float]:
        return [leaf.noise for leaf in plan.leaves if isinstance(leaf, kind)]

    best, *others = sorted(plans, key=lambda plan: of(plan, Minimisers))
    for other in others:
        pairs = list(zip(of(other, RowMoments), of(best, RowMoments), strict=True))
        (ridge, noise), (own_ridge, own_noise) = map(_ridge_and_noise, (other, best))
        if (
            any(a <= LESS_ON_MOMENTS * b for a, b in pairs)
            and noise <= MORE_ON_GRADIENT * own_noise
            and ridge <= own_ridge
        ):
            best = other
    return best


def _ridge_and_noise(plan: Plan) -> tuple[float, float]:
    """Return the ridge, and the deviation of the noise on the gradient, of a plan's first fit."""
    fits = (leaf.calibrated(None) for leaf in plan.leaves if isinstance(leaf, Minimisers))
    (_, how, *_), *_ = next(fits)
    ridge, linear, output = ridge_and_variances(how)
    return ridge, math.sqrt(linear + ridge**2 * output)
