r"""Noisy counts, sums and histograms, and choices between sums: integers that add up over records.

Each query says how far one record can move it, so that a caller brings the exact integers and what
they may cost, and nothing else: no scale of noise is worked out anywhere but here.

Neighbours: replace-one. Sensitivity: that of the query, in L1 over all that it releases, in units
of :math:`2^{\text{exponent}}`. Theorem: integers with discrete Laplace noise of scale
sensitivity/epsilon are epsilon-differentially private (docs/proofs/noise). At a price of mu, the
noise is discrete Gaussian, of deviation Euclidean sensitivity/mu, and :math:`\tfrac12\mu^2`-zCDP
(docs/proofs/gaussian). Scales are rounded upwards, the samplers are exact, and the sums are of
integers: no float stands between the theorem and the program but in seeded draws, which are not
private anyway.

Choices among public candidates, by permute-and-flip.

A candidate's loss is a sum over the records. Neighbours: replace-one. Sensitivity: that of each
loss, as the query says. Theorem: permute-and-flip is epsilon-differentially private, however many
candidates there are (docs/proofs/noise); epsilons of several choices add up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp import (
    RandomSource,
    lattice_gaussian,
    lattice_laplace,
    lattice_sum,
    permute_and_flip,
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
    sequential_cost,
    share_of,
)
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray

#: Of all that is defined here.
PROOF = reference("docs/proofs/noise", "dwork")


class Integers(ABC):
    """What is asked of the records, and answered by integers."""

    proof = PROOF

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How far one record moves the integers, in L1."""

    @property
    @abstractmethod
    def squared_distance(self) -> int:
        """How far one record moves the integers, in the square of L2."""

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return integers with noise on each, for one price together."""
        return np.asarray(_released(self, exact, price, source))

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in its units.

        That of a continuous law; the discrete one has a little less.
        """
        if isinstance(price, Concentrated):
            return math.sqrt(self.squared_distance) / price.mu
        return math.sqrt(2.0) * self.sensitivity / price

    def distances(self, one: Any, other: Any) -> Distances:
        """Return how far integers of neighbours are apart, and may be."""
        moved = [a - b for a, b in zip(_flat(one), _flat(other), strict=True)]
        return [
            ("in L1", float(sum(map(abs, moved))), float(self.sensitivity)),
            ("in squared L2", float(sum(m * m for m in moved)), float(self.squared_distance)),
        ]


@dataclass(frozen=True)
class Sum(Integers):
    """The sum of one term for each record.

    Parameters
    ----------
    low, high : int
        Public ends of what a term can be, in units of ``2**exponent``. Replacing a record moves the
        sum by at most their distance.
    exponent : int, default=0
    """

    low: int
    high: int
    exponent: int = 0

    @classmethod
    def of_reals(cls, low: float, high: float, exponent: int) -> Sum:
        """Return the query for terms between two real numbers, each rounded to the lattice.

        Rounding is monotone, so that the ends stay ends.
        """
        first, last = to_lattice([low, high], exponent).tolist()
        return cls(first, last, exponent)

    @property
    def sensitivity(self) -> int:
        """The distance of both ends."""
        return self.high - self.low

    @property
    def squared_distance(self) -> int:
        """Of one number."""
        return self.sensitivity**2

    def terms(self, values: ArrayLike) -> IntArray:
        """Return real terms, one for each record, in units of the lattice."""
        return to_lattice(values, self.exponent)

    def total(self, values: ArrayLike) -> int:
        """Return the exact sum of real terms, in units of the lattice."""
        return lattice_sum(values, self.exponent)

    def value(self, units: int) -> float:
        """Return a sum in units of the lattice as a number."""
        return math.ldexp(units, self.exponent)

    @overload
    def release(self, exact: int, price: Price, source: RandomSource) -> int: ...
    @overload
    def release(self, exact: IntArray, price: Price, source: RandomSource) -> IntArray: ...

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the sum with noise; of an array, each by itself, at the price each time."""
        return _released(self, exact, price, source)

    def distances(self, one: Any, other: Any) -> Distances:
        """Return how far sums of neighbours are apart, and may be: of an array, each by itself."""
        moved = (abs(a - b) for a, b in zip(_flat(one), _flat(other), strict=True))
        return [("in a sum", float(max(moved)), float(self.sensitivity))]


@dataclass(frozen=True)
class Histogram(Integers):
    """Counts in the cells of a partition: a record leaves one cell and enters another.

    Of a record that is counted k times, each time may be so: the sensitivity is 2k.
    """

    sensitivity: int = 2

    @property
    def squared_distance(self) -> int:
        """All k may leave one cell and enter one other."""
        return self.sensitivity**2 // 2


@dataclass(frozen=True)
class Histograms(Integers):
    """Histograms of the same records, each of which has an equal part of a price."""

    number: int

    @property
    def sensitivity(self) -> int:
        """In each a record leaves one cell and enters another."""
        return 2 * self.number

    @property
    def squared_distance(self) -> int:
        """In each a record leaves one cell and enters another."""
        return 2 * self.number

    def each(self, price: Price) -> Price:
        """Return what one costs: epsilons add up, and of mus the squares do."""
        if isinstance(price, Concentrated):
            return share_of(price, 1.0 / math.sqrt(self.number) / MARGIN)
        return divide_budget(price, Fraction(self.number))

    def release(self, exact: Sequence[IntArray], price: Price, source: RandomSource) -> Any:
        """Return each with noise."""
        return [HISTOGRAM.release(one, self.each(price), source) for one in exact]

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number."""
        return HISTOGRAM.deviation(self.each(price))


@dataclass(frozen=True)
class CellSums(Integers):
    """Sums in the cells of a partition, of what each record has in its own cell only.

    Parameters
    ----------
    size : float
        Public bound on the absolute values of a record's terms, added up; a replaced record takes
        as much from one cell as it can add to another. A multiple of ``2**exponent``.
    exponent : int, default=-20
    distance : float or None, default=None
        Public bound on how far in L2 one record moves all sums together, of terms that are not
        rounded, where each record has two; None: 2 ``size``.
    """

    size: float
    exponent: int = -20
    distance: float | None = None

    @property
    def sensitivity(self) -> int:
        """Both cells move."""
        return 2 * int(to_lattice([self.size], self.exponent)[0])

    @property
    def squared_distance(self) -> int:
        """Both cells may be one; rounding moves two terms of two records by the root of 2 units."""
        if self.distance is None:
            return self.sensitivity**2
        return (int(to_lattice([self.distance], self.exponent)[0]) + 2) ** 2

    def totals(self, cell: IntArray, terms: FloatArray, n_cells: int) -> IntArray:
        """Return the exact sum of terms in each cell, in units of the lattice.

        Parameters
        ----------
        cell : ndarray of shape (n_records,)
        terms : ndarray of shape (n_records,)
            Rounded to the lattice one by one.
        n_cells : int

        Returns
        -------
        totals : ndarray of shape (n_cells,)
        """
        totals = np.zeros(n_cells, dtype=np.int64)
        np.add.at(totals, cell, to_lattice(terms, self.exponent))
        return totals

    def values(self, units: IntArray) -> FloatArray:
        """Return sums in units of the lattice as numbers."""
        return np.ldexp(units.astype(np.float64), self.exponent)


@dataclass(frozen=True)
class Sums(Integers):
    """Several sums over the same records, each of which one record moves by at most ``each``."""

    number: int
    each: int

    @property
    def sensitivity(self) -> int:
        """All sums may move at once."""
        return self.number * self.each

    @property
    def squared_distance(self) -> int:
        """All sums may move at once."""
        return self.number * self.each**2

    def release(self, exact: Sequence[int], price: Price, source: RandomSource) -> list[int]:
        """Return all sums with noise, for one price together."""
        return [_released(self, one, price, source) for one in exact]

    def least(self, exact: Sequence[int], epsilon: float, source: RandomSource) -> int:
        """Return the place of a small sum, by permute-and-flip, whatever their number.

        Neighbours: replace-one. Sensitivity: ``each``, of every sum. Theorem: permute-and-flip with
        scores of sensitivity ``each`` is epsilon-differentially private (McKenna and Sheldon 2020;
        :func:`~skdpsurv.dp.permute_and_flip`).
        """
        return permute_and_flip([-total for total in exact], epsilon, float(self.each), source)


#: How many records have a property.
COUNT = Sum(0, 1)
#: Losses between 0 and 1.
LOSS = Sum.of_reals(0.0, 1.0, -30)
HISTOGRAM = Histogram()


def _flat(exact: Any) -> list[int]:
    """Return exact integers, of any size, of however many arrays."""
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
    """Choices of which each has an equal part of a price.

    Parameters
    ----------
    price : float
    """

    price: float

    @property
    @abstractmethod
    def queries(self) -> Sequence[Sums]:
        """Of each choice: how many candidates it has, and how far a record moves their losses."""

    @abstractmethod
    def losses(self, known: Known, records: Any) -> Sequence[Sequence[int]]:
        """Return the exact losses of the candidates of each choice; private."""

    @abstractmethod
    def after(self, known: Known, places: Sequence[int]) -> Mapping[str, Any]:
        """Return what follows from the places of the candidates that were chosen, by name."""

    @property
    def each(self) -> float:
        """The price of a choice."""
        return self.price / len(self.queries)

    @property
    def cost(self) -> Cost:
        """That of the choices together."""
        return sequential_cost([cost_of(self.each)] * len(self.queries))

    def scales(self) -> list[float]:
        """Return the inverse of the price."""
        return [1.0 / self.price]

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Choose, and return what follows."""
        both = zip(self.queries, self.losses(known, records), strict=True)
        return self.after(known, [query.least(one, self.each, source) for query, one in both])

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far losses of neighbours are apart at most, choice by choice."""
        both = zip(self.losses(known, one), self.losses(known, other), strict=True)
        found = [max(abs(a - b) for a, b in zip(*losses, strict=True)) for losses in both]
        return [
            ("losses", float(far), float(query.each))
            for far, query in zip(found, self.queries, strict=True)
        ]
