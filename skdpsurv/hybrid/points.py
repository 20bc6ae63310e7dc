r"""Records of numbers and categories as points, by a map that the public records alone define.

A numeric variable is scaled to [0, 1] by the public records' range, or by two of their quantiles,
and clipped to it. A category
becomes indicators times :math:`1/2`, so that two categories are :math:`1/\sqrt2` apart; categories
that no public record has share one indicator, "other". The outcome is a variable like the others.

Neighbours: each private record is mapped by itself, with public constants, so the map changes
nobody's neighbours.

**Which public point is nearest to each private one:** one pass over all pairs, in blocks.

:math:`\|x - e\|^2 = \|x\|^2 + \|e\|^2 - 2x^\top e`, of which the last term is a matrix product and
the first is the same for all e. Ties go to the first of the points, and points that are equally
near up to :math:`2^{-36}` are ties: how a product of matrices is rounded depends on how many rows
it has, and how records are cut must not decide which cell one on a lattice is in.

For a sensitivity it is enough that a record's cell is a function of that record, the public points,
its place and the size of its block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.types import FloatArray, IntArray

#: Pairs of a block: what a pass holds is a few arrays of so many doubles.
BLOCK_PAIRS = 2**21
BLOCK_ROWS = 2**10
#: Values that differ by less are equal. Points are in a cube, of side 1 (3 for an outcome).
TIE = 2.0**-36


def places_of(labels: NDArray[Any], known: Sequence[Any]) -> IntArray:
    """Return the place of each label among the known ones; the number of these for any other.

    Whatever has no hash, or fails to be compared, is another label.
    """
    places = {label: place for place, label in enumerate(known)}
    found = np.full(labels.size, len(known), dtype=np.int64)
    for row, label in enumerate(labels.tolist()):
        # Whose own methods may raise what they like.
        place = call_or_none(places.get, label)
        found[row] = len(known) if place is None else place
    return found


@dataclass(frozen=True)
class NumericAxes:
    """Numeric variables in the public range.

    Parameters
    ----------
    low, span : ndarray of shape (n_variables,)
        Public. A variable that is constant in public has span 0 and is left out of distances.
    """

    low: FloatArray
    span: FloatArray

    @classmethod
    def of(cls, public: FloatArray, margin: float = 0.0) -> NumericAxes:
        """Return the axes that public values define, of shape (n_public, n_variables).

        ``margin`` is the share of public values left out at either end, where what is left has a
        range.
        """
        low, high = public.min(axis=0), public.max(axis=0)
        if margin > 0.0:
            inner = np.quantile(public, [margin, 1.0 - margin], axis=0)
            ranged = inner[1] > inner[0]
            low, high = np.where(ranged, inner[0], low), np.where(ranged, inner[1], high)
        with np.errstate(over="ignore"):
            span = high - low
        # A range beyond the largest double is as good as unknown.
        return cls(low, np.where(np.isfinite(span), span, 0.0))

    def coordinates(self, values: FloatArray) -> FloatArray:
        """Return values in [0, 1]."""
        inside = np.clip(values, self.low, self.low + self.span)
        scaled = np.zeros_like(inside)
        np.divide(inside - self.low, self.span, out=scaled, where=self.span > 0)
        return np.clip(scaled, 0.0, 1.0)


@dataclass(frozen=True)
class CategoricalAxis:
    """A categorical variable: one indicator for each public category, and one for all others.

    Parameters
    ----------
    categories : tuple
        Public.
    """

    categories: tuple[Any, ...]

    @classmethod
    def of(cls, public: NDArray[Any]) -> CategoricalAxis:
        """Return the axis that public labels define."""
        return cls(tuple(dict.fromkeys(public.tolist())))

    def codes(self, labels: NDArray[Any]) -> IntArray:
        """Return the place of each label; that of "other" comes last."""
        return places_of(labels, self.categories)

    def coordinates(self, labels: NDArray[Any]) -> FloatArray:
        """Return indicators times 1/2."""
        return 0.5 * np.eye(len(self.categories) + 1)[self.codes(labels)]


@dataclass(frozen=True)
class MixedSpace:
    """The map of records to points.

    Parameters
    ----------
    numeric : NumericAxes
    categorical : tuple of CategoricalAxis
    """

    numeric: NumericAxes
    categorical: tuple[CategoricalAxis, ...]

    @classmethod
    def of(cls, numbers: FloatArray, labels: list[NDArray[Any]], margin: float = 0.0) -> MixedSpace:
        """Return the space that public records define; ``margin`` as for :class:`NumericAxes`."""
        axes = tuple(CategoricalAxis.of(column) for column in labels)
        return cls(NumericAxes.of(numbers, margin), axes)

    def points(self, numbers: FloatArray, labels: list[NDArray[Any]]) -> FloatArray:
        """Return records as points, of shape (n_records, n_dimensions)."""
        columns = [self.numeric.coordinates(numbers)]
        columns += [a.coordinates(c) for a, c in zip(self.categorical, labels, strict=True)]
        return np.hstack(columns)


def distinct(points: FloatArray) -> IntArray:
    """Return the first place of each distinct point, in order."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1]).astype(np.int64)


def nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Return, for each point, the place of the nearest centre."""
    (place,) = _nested(points, centers, (centers.shape[0],))
    return place


def nested_counts(
    points: FloatArray, centers: FloatArray, sizes: Sequence[int]
) -> Iterator[IntArray]:
    """Yield, for nested sets of centres, how many points are nearest to each centre."""
    for size, place in zip(sizes, _nested(points, centers, sizes), strict=True):
        yield np.bincount(place, minlength=size)


def _nested(points: FloatArray, centers: FloatArray, sizes: Sequence[int]) -> list[IntArray]:
    """Return the nearest centres among the first so many, for each size."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centers, centers)
    places = [np.empty(points.shape[0], dtype=np.int64) for _ in sizes]
    width = max(BLOCK_PAIRS // BLOCK_ROWS, 1)
    for start in range(0, points.shape[0], BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = points[rows]
        # The largest x'e - |e|^2 / 2 so far, and where it was.
        best = np.full(block.shape[0], -np.inf)
        place = np.zeros(block.shape[0], dtype=np.int64)
        low = 0
        for size, result in zip(sizes, places, strict=True):
            for first in range(low, size, width):
                last = min(first + width, size)
                near = np.asarray(block @ centers[first:last].T)
                near -= half_norms[first:last]
                value = near.max(axis=1)
                local = (near >= (value - TIE)[:, None]).argmax(axis=1)
                better = value > best + TIE
                best[better], place[better] = value[better], first + local[better]
            low = size
            result[rows] = place
    return places
