"""What the makers of worst pairs have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.types import FloatArray

__all__ = ["NeighbourPair", "PairSetting"]


#: How far beyond a bound records go that clipping must catch.
FAR = 1e9


class NeighbourPair(NamedTuple):
    """Two data sets that differ in their first private record.

    Parameters
    ----------
    name : str
        What differs, and what the other records are.
    data, neighbour : tuple
        Arguments of ``fit``.
    """

    name: str
    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]


@dataclass(frozen=True)
class PairSetting:
    """Sizes of the data sets.

    Parameters
    ----------
    n : int
        Private records.
    n_features : int
    seed : int
    """

    n: int
    n_features: int
    seed: int

    @property
    def n_others(self) -> int:
        """Records beside the one that differs."""
        return self.n - 1

    def rng(self) -> np.random.Generator:
        """Return the generator of the records that are spread out; not of any noise."""
        return np.random.default_rng(self.seed)

    def along(self, size: float, column: int = 0) -> FloatArray:
        """Return a row along one column."""
        row = np.zeros(self.n_features)
        row[column] = size
        return row

    def shared(self, size: float) -> FloatArray:
        """Return a row that all columns have an equal part in."""
        return np.full(self.n_features, size / np.sqrt(self.n_features))

    def spread(self, size: float) -> FloatArray:
        """Return rows of norm at most ``size`` in all directions, for the others."""
        rows = self.rng().uniform(-1.0, 1.0, (self.n_others, self.n_features))
        return np.asarray(size * rows / np.sqrt(self.n_features))

    def repeated(self, row: FloatArray) -> FloatArray:
        """Return copies of a row, for the others."""
        return np.tile(row, (self.n_others, 1))

    def alternating(self, first: Any, second: Any) -> list[Any]:
        """Return values that take turns, for the others."""
        return [(first, second)[i % 2] for i in range(self.n_others)]
