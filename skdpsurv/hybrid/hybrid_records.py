"""Public and private records, as an estimator and as a nearest-neighbour search see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.hybrid.mixed_space import CategoricalAxis, MixedSpace, NumericAxes
from skdpsurv.hybrid.mixed_table import Design, Table
from skdpsurv.references import reference
from skdpsurv.types import FloatArray

__all__ = ["PROOF", "PointMap", "PrivateRecords", "PublicRange", "PublicRecords"]


#: Of what is asked of private records.
PROOF = reference("docs/proofs/hybrid", "wang", "dwork")
#: A numeric outcome counts this much in distances beside a column: it is what a model is about.
OUTCOME_FACTOR = 3.0


@dataclass(frozen=True)
class PrivateRecords:
    """Some of the private records: a block of them.

    Parameters
    ----------
    table : Table
    y : ndarray
        Labels of a classification, numbers of a regression.
    """

    table: Table
    y: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of records."""
        return self.table.size


@dataclass(frozen=True)
class PublicRange:
    """What private numbers are clipped to: the range of the public ones.

    Parameters
    ----------
    axes : NumericAxes
    outcomes : (float, float) or None
        Least and largest public outcome of a regression; None of a classification.
    """

    axes: NumericAxes
    outcomes: tuple[float, float] | None

    def clipped(self, table: Table, y: NDArray[Any]) -> PrivateRecords:
        """Return private records with numbers in the public range."""
        axes = self.axes
        numbers = np.clip(table.numbers, axes.low, axes.low + axes.span)
        if self.outcomes is not None:
            y = np.clip(y, *self.outcomes)
        return PrivateRecords(Table(numbers, table.labels), y)


@dataclass(frozen=True)
class PointMap:
    """The map of records to points, outcome included; all of it is public.

    Parameters
    ----------
    space : MixedSpace
    classifies : bool
    """

    space: MixedSpace
    classifies: bool

    @classmethod
    def of(cls, table: Table, y: NDArray[Any], classifies: bool, margin: float = 0.0) -> PointMap:
        """Return the map that public records define; ``margin`` as for :class:`MixedSpace`."""
        return cls(MixedSpace.of(*_with_outcome(table, y, classifies), margin), classifies)

    def points(self, table: Table, y: NDArray[Any]) -> FloatArray:
        """Return records as points, of shape (n_records, n_dimensions)."""
        numbers, labels = _with_outcome(table, y, self.classifies)
        points = self.space.points(numbers, labels)
        if not self.classifies:
            points[:, numbers.shape[1] - 1] *= OUTCOME_FACTOR
        return points


def _with_outcome(
    table: Table, y: NDArray[Any], classifies: bool
) -> tuple[FloatArray, list[NDArray[Any]]]:
    if classifies:
        return table.numbers, [*table.labels, y]
    return np.column_stack([table.numbers, y]), table.labels


@dataclass(frozen=True)
class PublicRecords:
    """What is public: openly consented records, and how many private ones there are.

    Parameters
    ----------
    public : Table
    y_public : ndarray
        Labels of a classification, numbers of a regression.
    classifies : bool
    n_private : int
    """

    public: Table
    y_public: NDArray[Any]
    classifies: bool
    n_private: int
    design: Design = field(init=False)

    def __post_init__(self) -> None:
        if self.classifies:  # labels in a type of their own
            object.__setattr__(self, "y_public", np.asarray(self.y_public.tolist()))
        axes = tuple(CategoricalAxis.of(column) for column in self.public.labels)
        object.__setattr__(self, "design", Design(axes))

    @property
    def n_public(self) -> int:
        """Number of public records."""
        return int(self.y_public.size)

    @property
    def design_public(self) -> FloatArray:
        """Design matrix of the public records."""
        return self.design.matrix(self.public)

    @property
    def range(self) -> PublicRange:
        """What private numbers are clipped to."""
        outcomes = None
        if not self.classifies:
            outcomes = float(self.y_public.min()), float(self.y_public.max())
        return PublicRange(NumericAxes.of(self.public.numbers), outcomes)

    @property
    def outcome_range(self) -> tuple[float, float]:
        """Least public outcome and range of a regression; 0 and 1 of a classification."""
        if self.classifies:
            return 0.0, 1.0
        return float(self.y_public.min()), float(np.ptp(self.y_public))

    @property
    def rarest(self) -> float:
        """Share of the rarest public label; 1 in a regression."""
        if not self.classifies:
            return 1.0
        return float(np.unique(self.y_public, return_counts=True)[1].min() / self.n_public)

    def point_map(self, margin: float = 0.0) -> PointMap:
        """Return the map of records to points.

        Parameters
        ----------
        margin : float, default=0.0
            Share of the public records at either end whose values are clipped.
        """
        return PointMap.of(self.public, self.y_public, self.classifies, margin)

    def public_points(self, margin: float = 0.0) -> FloatArray:
        """Return public records as points; ``margin`` as for :meth:`point_map`."""
        return self.point_map(margin).points(self.public, self.y_public)
