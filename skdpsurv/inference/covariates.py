r"""Distributions of rows of which only second moments are known, and of their exposures.

Moments give the number of records, their mean :math:`\mu` and their covariance S, but no shape.
Rows :math:`\mu + S^{1/2} z` are made of standard ones z of two shapes: normal and uniform. Where
indicators of labels are known to be such, z holds labels in the released shares instead, and is
moved to S by the linear map that moves rows least. Curves of a number and products of columns are
computed from rows of the others, which are made first, and then moved likewise: rows whose curves
vary like other columns exist for nobody. An eigenvalue of S below :data:`KNOWN` standard
deviations of the noise is *unknown*.

Records of public classes have a number, a mean and shares of labels in each class, and one
covariance, that within classes:

.. math:: S = \frac1N \Big(\sum_i w_i x_i x_i^\top - \sum_g N_g \mu_g \mu_g^\top\Big).

A class's mean is shrunk to that of all by the noise on it, as James and Stein do.

Records may tell different amounts, their *exposures* e. Rows then count by the linear regression of
e on x within classes, relative to the class's mean of e.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from scipy import special
from scipy.stats import qmc

from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp.types import BoolArray, FloatArray

#: E, the length of the column of exposures; and the least exposure of a row, and in the mean.
EXPOSURE, LEAST_EXPOSURE = 0.5, 0.02
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
    parts : tuple of CovariateDistribution
        Those of the classes, whose covariance is the same; none for one class.
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
    parts: tuple[CovariateDistribution, ...] = ()

    @property
    def classes(self) -> Sequence[CovariateDistribution]:
        """The distribution of each class."""
        return self.parts or (self,)

    @classmethod
    def of_moments(
        cls,
        moments: FloatArray,
        constant: float,
        n_records: int,
        deviation: float,
        labels: Sequence[Labels] = (),
        n_classes: int = 1,
    ) -> CovariateDistribution:
        """Return the distribution of rows with released second moments, the constants first.

        ``n_records`` is the largest mass, ``deviation`` that of the noise on a diagonal entry, and
        ``labels`` are those of each class.
        """
        g, least = n_classes, max(1.0, 2.0 * deviation / constant**2)
        floor = min(least if g == 1 else 1.0, n_records)
        masses = np.clip(np.diag(moments)[:g] / constant**2, floor, n_records)
        mass = float(masses.sum())
        shares = masses / mass
        counted = masses if g == 1 else np.maximum(masses, least)  # few would have any mean
        means = moments[:g, g:] / (constant * counted)[:, None]
        if g > 1:
            noise = deviation / (math.sqrt(2.0) * constant * counted)
            means = _shrunk(means, shares, noise)
        between = sum(share * np.outer(own, own) for share, own in zip(shares, means, strict=True))
        values, vectors = np.linalg.eigh(moments[g:, g:] / mass - between)
        least = max(KNOWN * deviation / mass, 1e-12)
        mean = means[0] if g == 1 else shares @ means
        found = cls(mass, mean, np.maximum(values, least), vectors, values >= least)
        each = zip(masses.tolist(), means, [*labels, *[()] * g][:g], strict=True)
        parts = tuple(replace(found, mass=m, mean=own, labels=which) for m, own, which in each)
        return parts[0] if g == 1 else replace(found, parts=parts)

    def derived(self, derivation: Derivation | None) -> Self:
        """Return the distribution with features that follow from others."""
        parts = tuple(replace(one, derivation=derivation) for one in self.parts)
        return replace(self, derivation=derivation, parts=parts)

    def exposed(
        self, products: FloatArray, constant: float, deviation: float
    ) -> CovariateDistribution:
        """Return the distribution with exposures, from the products of their column with rows.

        In each direction of the covariance, the expected squared noise is taken off.
        """
        classes, cross = self.classes, products[len(self.classes) :][: self.mean.size] / self.mass
        centers = [x / one.mass / constant for x, one in zip(products, classes, strict=False)]
        for center, one in zip(centers, classes, strict=True):
            cross = cross - (one.mass / self.mass) * (center * one.mean)
        unit = EXPOSURE * np.sqrt(self.values)
        slopes = self.vectors.T @ cross / unit
        noise = np.square(deviation / (math.sqrt(2.0) * self.mass * unit))
        slopes *= np.maximum(1.0 - noise / np.maximum(np.square(slopes), 1e-300), 0.0)
        slopes = self.vectors @ (slopes / np.sqrt(self.values))
        means = [float(np.clip(0.5 + x / EXPOSURE, LEAST_EXPOSURE, 1.0)) for x in centers]
        parts = tuple(
            replace(one, mean_exposure=mean, exposure_slopes=slopes)
            for one, mean in zip(classes, means, strict=True)
        )
        return replace(self, parts=parts) if self.parts else parts[0]

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


def _shrunk(means: FloatArray, shares: FloatArray, noise: FloatArray) -> FloatArray:
    """Return means of classes, each shrunk to that of all by the deviation of its noise."""
    away = means - (center := shares @ means)
    lengths = np.maximum(np.sum(np.square(away), axis=1), 1e-300)
    kept = np.maximum(1.0 - away.shape[1] * np.square(noise) / lengths, 0.0)
    return np.asarray(center + kept[:, None] * away)


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


@lru_cache(maxsize=64)
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
