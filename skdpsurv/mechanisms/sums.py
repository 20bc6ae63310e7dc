r"""Noisy counts, sums, histograms, means and second moments, and choices between sums.

Integers. Neighbours: replace-one. Sensitivity: the query's, in L1 over all that it releases, in
units of :math:`2^{\text{exponent}}`. Theorem: integers with discrete Laplace noise of scale
sensitivity/epsilon are epsilon-differentially private (docs/proofs/noise). At a price of mu, the
noise is discrete Gaussian, of deviation Euclidean sensitivity/mu, and :math:`\tfrac12\mu^2`-zCDP.

Mean of rows clipped to :math:`\|x\|_2 \le R`. Neighbours: replace-one. Sensitivity: :math:`2R/n`.
Theorem: noise of density :math:`\propto e^{-\epsilon n\|e\|_2/(2R)}` is epsilon-differentially
private, Gaussian noise of deviation :math:`2R/(n\mu)` is :math:`\tfrac12\mu^2`-zCDP.

Second moments :math:`M = \sum_i r_i r_i^\top` of rows with :math:`\|r_i\|_2 \le R`. Neighbours:
replace-one. Sensitivity: two outer products are at most :math:`\sqrt2 R^2` apart in the Frobenius
norm, as :math:`\|rr^\top - ss^\top\|_F^2 = \|r\|^4 + \|s\|^4 - 2(r^\top s)^2`; it is the Euclidean
norm of the upper triangle with entries off the diagonal stretched by :math:`\sqrt2`. Theorem: noise
of density :math:`\propto e^{-\epsilon\|e\|_2/(\sqrt2 R^2)}` on that triangle is
epsilon-differentially private (docs/proofs/inference; Chaudhuri, Monteleoni and Sarwate 2011),
Gaussian noise of deviation :math:`\sqrt2 R^2/\mu` is :math:`\tfrac12\mu^2`-zCDP.

Choices among public candidates by losses summed over records. Neighbours: replace-one. Sensitivity:
each loss's. Theorem: permute-and-flip is epsilon-differentially private (docs/proofs/noise).

Sums are exact, scales rounded upwards; noise on vectors is within 1e-30 of its distribution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.checks import clip_rows, row_pieces
from skdpsurv.dp.exact_vectors import require_theorem
from skdpsurv.dp.noise import (
    RandomSource,
    lattice_gaussian,
    lattice_laplace,
    lattice_sum,
    to_lattice,
)
from skdpsurv.dp.plan import Distances, Known, Mechanism
from skdpsurv.dp.privacy_cost import (
    MARGIN,
    Concentrated,
    Cost,
    Price,
    cost_of,
    divide_budget,
    epsilon_or_mu,
    sequential_cost,
    share_of,
)
from skdpsurv.dp.references import reference
from skdpsurv.dp.selection import permute_and_flip
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.mechanisms.vector_noise import Spherical, add_noise, calibrated_noise

#: The proof of all queries of integers.
PROOF = reference("docs/proofs/noise", "dwork")


class Integers(ABC):
    """A query whose answer is integers."""

    proof = PROOF

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Largest move of the integers by one record, in L1."""

    @property
    def squared_distance(self) -> int:
        """Largest move of the integers by one record, in the square of L2; L1 bounds L2."""
        return self.sensitivity**2

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return integers with noise on each, for one price together."""
        return _released(self, exact, price, source)

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number; discrete noise has less."""
        if isinstance(price, Concentrated):
            return math.sqrt(self.squared_distance) / price.mu
        return math.sqrt(2.0) * self.sensitivity / price

    def distances(self, one: Any, other: Any) -> Distances:
        """Return the distances of neighbours' integers, with their bounds."""
        moved = [a - b for a, b in zip(_flat(one), _flat(other), strict=True)]
        return [
            ("in L1", float(sum(map(abs, moved))), float(self.sensitivity)),
            ("in squared L2", float(sum(m * m for m in moved)), float(self.squared_distance)),
        ]


@dataclass(frozen=True)
class Sum(Integers):
    """The sum of one term for each record; an array of sums has the price each time.

    Terms have the public ends ``low`` and ``high``, in units of ``2**exponent``.
    """

    low: int
    high: int
    exponent: int = 0

    @classmethod
    def of_reals(cls, low: float, high: float, exponent: int) -> Sum:
        """Return the query for terms between two real numbers, each rounded to the lattice."""
        first, last = to_lattice([low, high], exponent).tolist()
        return cls(first, last, exponent)

    @property
    def sensitivity(self) -> int:
        return self.high - self.low

    def terms(self, values: ArrayLike) -> IntArray:
        """Return real terms, one for each record, in units of the lattice."""
        return to_lattice(values, self.exponent)

    def total(self, values: ArrayLike) -> int:
        """Return the exact sum of real terms, in units of the lattice."""
        return lattice_sum(values, self.exponent)

    def value(self, units: int) -> float:
        """Return a sum in units of the lattice as a number."""
        return math.ldexp(units, self.exponent)

    def distances(self, one: Any, other: Any) -> Distances:
        moved = (abs(a - b) for a, b in zip(_flat(one), _flat(other), strict=True))
        return [("in a sum", float(max(moved)), float(self.sensitivity))]


@dataclass(frozen=True)
class Histogram(Integers):
    """Counts in cells: a record leaves one and enters another; counted k times, it moves 2k."""

    sensitivity: int = 2

    @property
    def squared_distance(self) -> int:
        return self.sensitivity**2 // 2


@dataclass(frozen=True)
class Histograms(Integers):
    """Histograms of the same records, each of which has an equal part of a price.

    A record has integers in each that are not negative and add up to its unit. Another one moves it
    by at most 2 units in L1 and, as no product is negative, by root 2 units in L2.
    """

    units: tuple[int, ...]

    @property
    def sensitivity(self) -> int:
        return 2 * sum(self.units)

    @property
    def squared_distance(self) -> int:
        return 2 * sum(unit**2 for unit in self.units)

    def each(self, price: Price) -> Price:
        """Return the price of one: epsilons add up, and squares of mus."""
        if isinstance(price, Concentrated):
            return share_of(price, 1.0 / math.sqrt(len(self.units)) / MARGIN)
        return divide_budget(price, Fraction(len(self.units)))

    def release(self, exact: Sequence[IntArray], price: Price, source: RandomSource) -> Any:
        each, both = self.each(price), zip(self._queries(), exact, strict=True)
        return [query.release(one, each, source) for query, one in both]

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in its unit."""
        return HISTOGRAM.deviation(self.each(price))

    def distances(self, one: Any, other: Any) -> Distances:
        both = zip(self._queries(), one, other, strict=True)
        return [found for query, *pair in both for found in query.distances(*pair)]

    def _queries(self) -> list[Histogram]:
        return [Histogram(2 * unit) for unit in self.units]


@dataclass(frozen=True)
class CellSums(Integers):
    """Sums in the cells of a partition; a record has terms in its own cell only.

    ``size`` is a public bound on the absolute values of a record's terms, added up, a multiple of
    ``2**exponent``. ``distance`` is one on the move of all sums in L2 by one record with two terms,
    not rounded; None: 2 ``size``.
    """

    size: float
    exponent: int = -20
    distance: float | None = None

    @property
    def sensitivity(self) -> int:
        return 2 * int(to_lattice([self.size], self.exponent)[0])

    @property
    def squared_distance(self) -> int:
        """Both cells may be one; rounding moves two terms of two records by the root of 2 units."""
        if self.distance is None:
            return self.sensitivity**2
        return (int(to_lattice([self.distance], self.exponent)[0]) + 2) ** 2

    def totals(self, cell: IntArray, terms: FloatArray, n_cells: int) -> IntArray:
        """Return the exact sum, in each cell, of terms that are rounded to the lattice."""
        totals = np.zeros(n_cells, dtype=np.int64)
        np.add.at(totals, cell, to_lattice(terms, self.exponent))
        return totals

    def values(self, units: IntArray) -> FloatArray:
        """Return sums as real numbers."""
        return np.ldexp(units.astype(np.float64), self.exponent)


@dataclass(frozen=True)
class Sums(Integers):
    """Several sums over the same records, each of which one record moves by at most ``each``."""

    number: int
    each: int

    @property
    def sensitivity(self) -> int:
        return self.number * self.each

    @property
    def squared_distance(self) -> int:
        return self.number * self.each**2

    def release(self, exact: Sequence[int], price: Price, source: RandomSource) -> list[int]:
        """Return all sums, of any size, with noise, for one price together."""
        return [_released(self, one, price, source) for one in exact]

    def least(self, exact: Sequence[int], epsilon: float, source: RandomSource) -> int:
        """Return the index of a small sum, by permute-and-flip, whatever their number.

        Neighbours: replace-one. Sensitivity: ``each``, of every sum. Theorem: permute-and-flip with
        scores of sensitivity ``each`` is epsilon-differentially private (McKenna and Sheldon 2020;
        :func:`~skdpsurv.dp.selection.permute_and_flip`).
        """
        return permute_and_flip([-total for total in exact], epsilon, float(self.each), source)


#: The number of records with a property.
COUNT = Sum(0, 1)
LOSS = Sum.of_reals(0.0, 1.0, -30)
HISTOGRAM = Histogram()


def _flat(exact: Any) -> list[int]:
    """Return the integers, of any size, of an array or several."""
    parts = exact if isinstance(exact, tuple | list) else [exact]
    return [int(number) for part in parts for number in np.ravel(np.asarray(part, dtype=object))]


def least_scale(sensitivity: int, epsilon: float) -> float:
    """Return sensitivity / epsilon, or the next double above it."""
    return math.nextafter(float(Fraction(sensitivity) / Fraction(float(epsilon))), math.inf)


def least_deviation(squared_distance: int, mu: float) -> float:
    """Return the root of a squared distance over mu, rounded upwards."""
    square = Fraction(squared_distance) / Fraction(mu) ** 2
    deviation = math.sqrt(float(square))
    while Fraction(deviation) ** 2 < square:
        deviation = math.nextafter(deviation, math.inf)
    return deviation


def _released(query: Integers, exact: Any, price: Price, source: RandomSource) -> Any:
    if isinstance(price, Concentrated):
        return lattice_gaussian(exact, least_deviation(query.squared_distance, price.mu), source)
    if math.isinf(price):
        return exact
    return lattice_laplace(exact, least_scale(query.sensitivity, price), source)


@dataclass(frozen=True, eq=False, kw_only=True)
class Choices(Mechanism):
    """Choices of which each has an equal part of a price, an epsilon."""

    price: float

    @property
    @abstractmethod
    def queries(self) -> Sequence[Sums]:
        """For each choice: the number of candidates, and the sensitivity of their losses."""

    @abstractmethod
    def losses(self, known: Known, records: Any) -> Sequence[Sequence[int]]:
        """Return the exact losses of the candidates of each choice; private."""

    @abstractmethod
    def after(self, known: Known, places: Sequence[int]) -> Mapping[str, Any]:
        """Return post-processing of the chosen candidates' positions, by name."""

    @property
    def each(self) -> float:
        return self.price / len(self.queries)

    @property
    def cost(self) -> Cost:
        return sequential_cost([cost_of(self.each)] * len(self.queries))

    def scales(self) -> list[float]:
        return [1.0 / self.price]

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        both = zip(self.queries, self.losses(known, records), strict=True)
        return self.after(known, [query.least(one, self.each, source) for query, one in both])

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return the largest distance of neighbours' losses, choice by choice, with its bound."""
        return [
            ("losses", float(max(abs(a - b) for a, b in zip(*both, strict=True))), float(q.each))
            for q, *both in zip(
                self.queries, self.losses(known, one), self.losses(known, other), strict=True
            )
        ]


#: Share of the expected squared noise that is taken off. James and Stein take it all; a quarter
#: keeps more of a noisy mean, and did better on simulated data (docs/benchmarks/discrete_time).
SHRINKAGE = 0.25


@dataclass(frozen=True)
class MeanOfRows:
    """A query for the mean of rows, which are clipped to ``data_norm``, R; public."""

    n_records: int
    n_features: int
    data_norm: float

    @property
    def sensitivity(self) -> float:
        """Largest move of the mean by one record in L2, with rounding."""
        # Rows in the unit ball are rounded to multiples of 2^-30, which moves one by at most
        # sqrt(n_features) 2^-31; that the exact sum becomes a double costs n 2^-52 more.
        slack = math.sqrt(self.n_features) * (2.0**-31 + self.n_records * 2.0**-52)
        return 2.0 * (1.0 + slack) * self.data_norm / self.n_records

    def distribution(self, price: Price) -> Spherical:
        return calibrated_noise(self.n_features, self.sensitivity, price)

    def deviation(self, price: Price) -> float:
        return self.distribution(price).deviation

    def mean(self, blocks: Blocks[FloatArray]) -> FloatArray:
        """Return the exact mean of private, finite rows, clipped here."""
        total = blocks.map_reduce(partial(_lattice_total, self.data_norm))
        return np.asarray(total * (2.0**-30 * self.data_norm / self.n_records))

    def release(self, exact: FloatArray, price: Price, source: RandomSource) -> FloatArray:
        if math.isinf(epsilon_or_mu(price)):
            return exact
        return add_noise(exact, self.distribution(price), source)

    def distances(self, one: FloatArray, other: FloatArray) -> Distances:
        return [("in L2", float(np.linalg.norm(one - other)), self.sensitivity)]

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
        require_theorem(self.width * (self.width + 1) // 2)

    @property
    def sensitivity(self) -> float:
        """Largest move of the stretched upper triangle by one record, with rounding."""
        # Rounding to the lattice moves a row by at most sqrt(width) 2^-16; that exact integers
        # become doubles moves each of the numbers by a relative 2^-53 of a sum of n.
        longest = self.norm + math.sqrt(self.width) * 2.0 ** (EXPONENT - 1)
        slack = self.width * self.n_records * 2.0**-50
        return MARGIN * math.sqrt(2.0) * longest**2 + slack

    def distribution(self, price: Price) -> Spherical:
        """Return the distribution of the noise on the stretched upper triangle."""
        return calibrated_noise(self.width * (self.width + 1) // 2, self.sensitivity, price)

    def deviation(self, price: Price) -> float:
        r"""Return the standard deviation of the noise on :math:`u^\top M u` for a unit vector u."""
        return self.distribution(price).deviation

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
        return self.unpacked(add_noise(self.packed(exact), self.distribution(price), source))

    def distances(self, one: FloatArray, other: FloatArray) -> Distances:
        return [("in L2", float(np.linalg.norm(self.packed(one - other))), self.sensitivity)]

    def noise(self, price: Price, source: RandomSource) -> FloatArray:
        """Return noise of the same distribution, as a symmetric matrix: public if its source is."""
        return self.unpacked(self.distribution(price).draw(source))

    def packed(self, moments: FloatArray) -> FloatArray:
        """Return the upper triangle, stretched so that its norm is the Frobenius norm."""
        first, second = np.triu_indices(self.width)
        return np.asarray(moments[first, second] * np.where(first == second, 1.0, math.sqrt(2.0)))

    def unpacked(self, triangle: FloatArray) -> FloatArray:
        """Return the matrix of a stretched upper triangle."""
        first, second = np.triu_indices(self.width)
        moments = np.zeros((self.width, self.width))
        moments[first, second] = triangle / np.where(first == second, 1.0, math.sqrt(2.0))
        return moments + np.triu(moments, 1).T
