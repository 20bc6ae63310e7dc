r"""Noisy means and second moments of rows.

Mean of rows clipped to :math:`\|x\|_2 \le R`. Neighbours: replace-one. Sensitivity: :math:`2R/n`.
Theorem: noise of density :math:`\propto e^{-\epsilon n\|e\|_2/(2R)}` is epsilon-differentially
private, Gaussian noise of deviation :math:`2R/(n\mu)` is :math:`\tfrac12\mu^2`-zCDP.

Means of columns and of their squares, :math:`y = \big(u_j\ (\text{all } j),\ w(u_j^2 - \tfrac12)\
(\text{columns of more than two values})\big)` with :math:`u_j \in [-1, 1]` and w = 1.6. Neighbours:
replace-one. Sensitivity: :math:`\Delta/n` in L2, where :math:`\Delta^2` adds 4 for each column, and
at most 8 for indicators of which a record has one. The squares cost nothing: a column moves by at
most :math:`b^2(1 + w^2(2 - b)^2) \le 4`, with :math:`b = |u - u'|`. Theorem: the same.

Second moments :math:`M = \sum_i r_i r_i^\top` of rows with :math:`\|r_i\|_2 \le R`. Neighbours:
replace-one. Sensitivity: two sums differ by :math:`rr^\top - ss^\top`, a difference of semidefinite
matrices of trace at most :math:`R^2`, and by at most :math:`\sqrt2 R^2` in the Frobenius norm; that
is the Euclidean norm of the upper triangle with entries off the diagonal stretched by
:math:`\sqrt2`. Theorem: a difference of semidefinite matrices of joint density :math:`\propto
e^{-\epsilon\max(\mathrm{tr} A, \mathrm{tr} B)/R^2}` is noise that makes M epsilon-differentially
private; Gaussian noise of deviation :math:`\sqrt2 R^2/\mu` on that triangle makes it
:math:`\tfrac12\mu^2`-zCDP (docs/proofs/inference).

Sums are exact, scales rounded upwards; noise is within 1e-30 of its distribution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.clipping import clip_rows, row_pieces
from skdpsurv.dp.exact_matrices import n_entries
from skdpsurv.dp.exact_vectors import require_theorem
from skdpsurv.dp.noise import RandomSource, to_lattice
from skdpsurv.dp.plan import Distances
from skdpsurv.dp.privacy_cost import MARGIN, Concentrated, Price, epsilon_or_mu
from skdpsurv.dp.stated_noise import TRACES, Noise
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace, symmetric, trace_distance
from skdpsurv.mechanisms.vector_noise import (
    Spherical,
    SphericalGaussian,
    add_noise,
    calibrated_noise,
    vector_noise,
)

#: Share of the expected squared noise that is taken off. James and Stein take it all; a quarter
#: keeps more of a noisy mean, and did better on simulated data (docs/benchmarks/discrete_time).
SHRINKAGE = 0.25


class VectorMean(ABC):
    """A query for the mean of vectors, one for each record."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of the vectors."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Sensitivity of the mean in L2, with rounding: its largest change by one record."""

    def distribution(self, price: Price) -> Spherical:
        return calibrated_noise(self.dimension, self.sensitivity, price)

    def deviation(self, price: Price) -> float:
        return self.distribution(price).deviation

    def noise_at(self, price: Price) -> Noise:
        return vector_noise(self.distribution(price), self.sensitivity)

    def release(self, exact: FloatArray, price: Price, source: RandomSource) -> FloatArray:
        if math.isinf(epsilon_or_mu(price)):
            return exact
        return add_noise(exact, self.distribution(price), source)

    def distances(self, one: FloatArray, other: FloatArray) -> Distances:
        return [("in L2", float(np.linalg.norm(one - other)), self.sensitivity)]


@dataclass(frozen=True)
class MeanOfRows(VectorMean):
    """A query for the mean of rows, which are clipped to ``data_norm``, R; public."""

    n_records: int
    n_features: int
    data_norm: float

    @property
    def dimension(self) -> int:
        return self.n_features

    @property
    def sensitivity(self) -> float:
        # Rows in the unit ball are rounded to multiples of 2^-30, which moves one by at most
        # sqrt(n_features) 2^-31; that the exact sum becomes a double costs n 2^-52 more.
        slack = math.sqrt(self.n_features) * (2.0**-31 + self.n_records * 2.0**-52)
        return 2.0 * (1.0 + slack) * self.data_norm / self.n_records

    def mean(self, blocks: Blocks[FloatArray]) -> FloatArray:
        """Return the exact mean of private, finite rows, clipped here."""
        total = blocks.map_reduce(partial(_lattice_total, self.data_norm))
        return np.asarray(total * (2.0**-30 * self.data_norm / self.n_records))

    def shrunk(self, noisy: FloatArray, price: Price) -> tuple[FloatArray, float]:
        """Return a released mean, shrunk towards 0 as James and Stein do, and the row scale.

        The row scale bounds the root mean square distance of the clipped rows from their mean, by
        Pythagoras: ``sqrt(R^2 - ||mean||^2)``.
        """
        length = float(np.linalg.norm(noisy))
        if length == 0.0:
            return noisy, self.data_norm
        noise_length = self.distribution(price).mean_norm
        kept = min(max(0.0, length - SHRINKAGE * noise_length**2 / length), self.data_norm)
        return noisy * (kept / length), float(np.sqrt(self.data_norm**2 - kept**2))


def _lattice_total(data_norm: float, rows: FloatArray) -> IntArray:
    """Return the exact sum of the clipped rows, in the unit ball, in multiples of 2^-30."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    for piece in row_pieces(*rows.shape):
        total += to_lattice(clip_rows(rows[piece], data_norm) / data_norm).sum(axis=0)
    return total


#: Weight of squares, w.
SQUARE_WEIGHT = 1.6


@dataclass(frozen=True)
class ColumnMoments(VectorMean):
    """A query for means of columns u and, of ``n_squares`` of them, of w(u² - 1/2).

    ``squared_move`` is a public bound on Δ², by the kinds of the columns. A release states w, too,
    as that bound holds for no larger one than 1.665.
    """

    n_records: int
    n_columns: int
    n_squares: int
    squared_move: int
    square_weight: float = SQUARE_WEIGHT

    def __post_init__(self) -> None:
        require_theorem(self.dimension)

    @property
    def dimension(self) -> int:
        return self.n_columns + self.n_squares

    @property
    def sensitivity(self) -> float:
        # Each of two records is rounded to multiples of 2^-30, and each of two exact sums, of at
        # most n, to a double.
        slack = 2.0 * math.sqrt(self.dimension) * (2.0**-31 + self.n_records * 2.0**-52)
        return MARGIN * (math.sqrt(self.squared_move) + slack) / self.n_records

    def mean(self, blocks: Blocks[FloatArray], squared: BoolArray) -> FloatArray:
        """Return the exact means over private rows u, of which the columns ``squared`` are."""

        def total(units: FloatArray) -> IntArray:
            found = np.zeros(self.dimension, dtype=np.int64)
            for piece in row_pieces(*units.shape):
                u = np.clip(units[piece], -1.0, 1.0)
                y = np.hstack([u, self.square_weight * (u[:, squared] ** 2 - 0.5)])
                found += to_lattice(y).sum(axis=0)
            return found

        return np.asarray(blocks.map_reduce(total) * (2.0**-30 / self.n_records))

    def moments(self, noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means of u, and mean squares of the columns that are squared."""
        mean, squares = np.split(noisy, [self.n_columns])
        return mean, squares / self.square_weight + 0.5


#: Rows are rounded to multiples of this power of two. Products of two such numbers, and sums of a
#: piece of them, are exact in doubles; sums of up to 2^32 rows are exact in integers.
EXPONENT = -15


@dataclass(frozen=True)
class SecondMoments:
    """A query for the sum of outer products of rows of norm R, between 0.5 and 2; public."""

    n_records: int
    width: int
    norm: float

    def __post_init__(self) -> None:
        require_theorem(2 * n_entries(self.width))

    @property
    def largest_trace(self) -> float:
        """Largest trace of what a record adds or takes away, with rounding."""
        # Rounding to the lattice moves a row by at most sqrt(width) 2^-16; that exact integers
        # become doubles moves each of the numbers by a relative 2^-53 of a sum of n.
        longest = self.norm + math.sqrt(self.width) * 2.0 ** (EXPONENT - 1)
        slack = self.width * math.sqrt(self.width) * self.n_records * 2.0**-50
        return MARGIN * longest**2 + slack

    @property
    def sensitivity(self) -> float:
        """Sensitivity in L2 of the stretched upper triangle, with rounding."""
        return MARGIN * math.sqrt(2.0) * self.largest_trace

    def distribution(self, price: Price) -> SemidefiniteLaplace | SphericalGaussian:
        """Return the distribution of the noise on the upper triangle, stretched for a mu."""
        if isinstance(price, Concentrated):
            dimension = n_entries(self.width)
            return SphericalGaussian.calibrated_to(dimension, self.sensitivity, price.mu)
        return SemidefiniteLaplace.calibrated_to(self.width, self.largest_trace, price)

    def deviation(self, price: Price) -> float:
        r"""Return the standard deviation of the noise on :math:`u^\top M u` for a unit vector u."""
        return self.distribution(price).deviation

    def noise_at(self, price: Price) -> Noise:
        """Return the noise on the upper triangle."""
        if isinstance(price, Concentrated):
            return vector_noise(self.distribution(price), self.sensitivity)
        return vector_noise(self.distribution(price), self.largest_trace, TRACES)

    def total(self, blocks: Blocks[Any], rows: Callable[[Any], Iterable[FloatArray]]) -> FloatArray:
        """Return the exact moments of ``rows(block)``, rounded, in pieces of at most 2^20 rows."""

        def total(block: Any) -> IntArray:
            found = np.zeros((self.width, self.width), dtype=np.int64)
            for piece in rows(block):
                units = np.rint(piece * 2.0**-EXPONENT)
                found += (units.T @ units).astype(np.int64)
            return found

        return blocks.map_reduce(total).astype(np.float64) * 2.0 ** (2 * EXPONENT)

    def release(self, exact: FloatArray, price: Price, source: RandomSource) -> FloatArray:
        triangle = exact[np.triu_indices(self.width)] * self.stretch(price)
        return self.matrix(add_noise(triangle, self.distribution(price), source), price)

    def distances(self, one: FloatArray, other: FloatArray) -> Distances:
        apart = one - other
        return [
            ("in L2", float(np.linalg.norm(apart)), self.sensitivity),
            ("in traces", trace_distance(apart), self.largest_trace),
        ]

    def noise(self, price: Price, source: RandomSource) -> FloatArray:
        """Return noise of the same distribution, as a symmetric matrix: public if its source is."""
        return self.matrix(self.distribution(price).draw(source), price)

    def stretch(self, price: Price) -> FloatArray:
        """Return factors of the upper triangle whose norm, for a mu, is the Frobenius norm."""
        first, second = np.triu_indices(self.width)
        alike = (first == second) | (not isinstance(price, Concentrated))
        return np.where(alike, 1.0, math.sqrt(2.0))

    def matrix(self, triangle: FloatArray, price: Price) -> FloatArray:
        """Return the symmetric matrix of a stretched upper triangle."""
        return symmetric(triangle / self.stretch(price), self.width)
