"""Public and private records, as an estimator and as a nearest-neighbour search see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.hybrid.mixed_space import CategoricalAxis, MixedSpace, NumericAxes
from skdpsurv.hybrid.mixed_table import Design, Table
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["HybridRecords", "PublicRecords", "split_records"]


#: A numeric outcome counts this much in distances beside a column: it is what a model is about.
OUTCOME_FACTOR = 3.0


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

    def public_points(self, margin: float = 0.0) -> FloatArray:
        """Return public records as points, outcome included.

        Parameters
        ----------
        margin : float, default=0.0
            Share of the public records at either end whose values are clipped.
        """
        return self._points(self.public, self.y_public, margin)

    def _points(self, table: Table, y: NDArray[Any], margin: float) -> FloatArray:
        space = MixedSpace.of(*self._with_outcome(self.public, self.y_public), margin)
        numbers, labels = self._with_outcome(table, y)
        points = space.points(numbers, labels)
        if not self.classifies:
            points[:, numbers.shape[1] - 1] *= OUTCOME_FACTOR
        return points

    def _with_outcome(self, table: Table, y: NDArray[Any]) -> tuple[FloatArray, list[NDArray[Any]]]:
        if self.classifies:
            return table.numbers, [*table.labels, y]
        return np.column_stack([table.numbers, y]), table.labels


@dataclass(frozen=True)
class HybridRecords(PublicRecords):
    """Public and private records; private numbers are clipped to the public range.

    Parameters
    ----------
    private : Table
    y_private : ndarray
    """

    private: Table
    y_private: NDArray[Any]

    @property
    def design_private(self) -> FloatArray:
        """Design matrix of the private records."""
        return self.design.matrix(self.private)

    def private_points(self, margin: float = 0.0) -> FloatArray:
        """Return private records as points of the same space."""
        return self._points(self.private, self.y_private, margin)


def split_records(
    table: Table, y: NDArray[Any], public: BoolArray, classifies: bool
) -> HybridRecords:
    """Split records by the public mask, and clip private numbers to the public range."""
    theirs, ours = table.rows(public), table.rows(~public)
    y_public, y_private = y[public], y[~public]
    axes = NumericAxes.of(theirs.numbers)
    numbers = np.clip(ours.numbers, axes.low, axes.low + axes.span)
    if not classifies:
        y_private = np.clip(y_private, y_public.min(), y_public.max())
    private = Table(numbers, ours.labels)
    return HybridRecords(theirs, y_public, classifies, ours.size, private, y_private)
