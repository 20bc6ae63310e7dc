r"""Noisy counts, sums and histograms, and choices between sums.

Integers. Neighbours: replace-one. Sensitivity: the query's, in L1 over all that it releases, in
units of :math:`2^{\text{exponent}}`. Theorem: integers with discrete Laplace noise of scale
sensitivity/epsilon are epsilon-differentially private (docs/proofs/noise). At a price of mu, the
noise is discrete Gaussian, of deviation Euclidean sensitivity/mu, and :math:`\tfrac12\mu^2`-zCDP.

Choices among public candidates by losses summed over records. Neighbours: replace-one. Sensitivity:
each loss's. Theorem: permute-and-flip is epsilon-differentially private (docs/proofs/noise).

Sums are exact, scales rounded upwards.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.noise import (
    RandomSource,
    lattice_gaussian,
    lattice_laplace,
    lattice_sum,
    to_lattice,
)
from skdpsurv.dp.plan import Context, Distances, Mechanism
from skdpsurv.dp.privacy_cost import (
    MARGIN,
    Concentrated,
    Cost,
    Price,
    cost_of,
    divide_budget,
    sequential_cost,
    share_of,
)
from skdpsurv.dp.references import reference
from skdpsurv.dp.selection import permute_and_flip
from skdpsurv.dp.stated_noise import GAUSSIAN, LAPLACE, NONE, Noise
from skdpsurv.dp.types import FloatArray, IntArray

#: The proof of all queries of integers.
PROOF = reference("docs/proofs/noise", "dwork")


class Integers(ABC):
    """A query whose answer is integers."""

    proof = PROOF
    #: Released numbers are multiples of this power of two.
    exponent: int = 0

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Sensitivity in L1: the largest change of all integers by one record."""

    @property
    def squared_distance(self) -> int:
        """Square of the sensitivity in L2, which that in L1 bounds."""
        return self.sensitivity**2

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the integers with noise on each; the price pays for all of them together."""
        return _released(self, exact, price, source)

    def noise_at(self, price: Price) -> Noise:
        """Return the noise on each integer, as it is drawn."""
        lattice = math.ldexp(1.0, self.exponent)
        variance = (self.deviation(price) * lattice) ** 2
        if isinstance(price, Concentrated):
            scale = least_deviation(self.squared_distance, price.mu)
            moved = self.squared_distance, "squared L2"
            return Noise(GAUSSIAN, scale, *moved, lattice, variance)
        law, scale = NONE, 0.0
        if not math.isinf(price):
            law, scale = LAPLACE, least_scale(self.sensitivity, price)
        return Noise(law, scale, self.sensitivity, "L1", lattice, variance)

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
    @lru_cache(maxsize=64)  # a plan asks several times; the ends are public
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

    def noise_at(self, price: Price) -> Noise:
        """Return the noise on each histogram; numbers are released in its unit."""
        each = [query.noise_at(self.each(price)) for query in self._queries()]
        scales, moves = (tuple(getattr(n, name) for n in each) for name in ("scale", "sensitivity"))
        lattice = tuple(1.0 / unit for unit in self.units)
        variance = self.deviation(price) ** 2
        return Noise(each[0].law, scales, moves, each[0].norm, lattice, variance)

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
        """Square of the L2 sensitivity: two records, each rounded twice, may be in one cell."""
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
    exponent: int = 0

    @property
    def sensitivity(self) -> int:
        return self.number * self.each

    @property
    def squared_distance(self) -> int:
        return self.number * self.each**2

    def release(self, exact: Sequence[int], price: Price, source: RandomSource) -> list[int]:
        """Return all sums, of any size, with noise; the price pays for all of them together."""
        return [_released(self, one, price, source) for one in exact]

    def least(self, exact: Sequence[int], epsilon: float, source: RandomSource) -> int:
        """Return the index of a small sum, by permute-and-flip, whatever their number.

        Neighbours: replace-one. Sensitivity: ``each``, of every sum. Theorem: permute-and-flip with
        scores of sensitivity ``each`` is epsilon-differentially private (McKenna and Sheldon 2020;
        :func:`~skdpsurv.dp.selection.permute_and_flip`).
        """
        return permute_and_flip([-total for total in exact], epsilon, float(self.each), source)


#: Query: the number of records with a property.
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
    noise = query.noise_at(price)
    if noise.law == NONE:
        return exact
    draw = lattice_gaussian if noise.law == GAUSSIAN else lattice_laplace
    assert isinstance(noise.scale, float)
    return draw(exact, noise.scale, source)


@dataclass(frozen=True, eq=False, kw_only=True)
class Choices(Mechanism):
    """Choices of which each has an equal part of a price, an epsilon."""

    price: float

    law = "permute-and-flip"

    @property
    @abstractmethod
    def queries(self) -> Sequence[Sums]:
        """For each choice: the number of candidates, and the sensitivity of their losses."""

    @abstractmethod
    def losses(self, context: Context, records: Any) -> Sequence[Sequence[int]]:
        """Return the exact losses of the candidates of each choice; private."""

    @abstractmethod
    def postprocess(self, context: Context, places: Sequence[int]) -> Mapping[str, Any]:
        """Return post-processing of the chosen candidates' positions, by name."""

    @property
    def each(self) -> float:
        return self.price / len(self.queries)

    @property
    def cost(self) -> Cost:
        return sequential_cost([cost_of(self.each)] * len(self.queries))

    def rests_on(self) -> list[type]:
        return [*map(type, self.queries)]

    def scales(self) -> list[float]:
        return [1.0 / self.price]

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        bounds = [query.each for query in self.queries]
        return {"law": self.law, "sensitivity": bounds, "epsilon": [self.each] * len(bounds)}

    def run(self, context: Context, records: Any, source: RandomSource) -> Mapping[str, Any]:
        both = zip(self.queries, self.losses(context, records), strict=True)
        return self.postprocess(
            context, [query.least(one, self.each, source) for query, one in both]
        )

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return the largest distance of neighbours' losses, choice by choice, with its bound."""
        return [
            ("losses", float(max(abs(a - b) for a, b in zip(*both, strict=True))), float(q.each))
            for q, *both in zip(
                self.queries, self.losses(context, one), self.losses(context, other), strict=True
            )
        ]
