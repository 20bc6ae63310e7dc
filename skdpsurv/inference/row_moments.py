r"""Second moments of rows as a likelihood sees them: one private query, and the laws it tells of.

A row x comes with its weight w and is lengthened by a constant C, so that the moments :math:`\sum w
(C, x)(C, x)^\top` hold the number of records (each counted with its weight) and their mean, too. A
caller promises that :math:`w(\|x\|^2 + C^2) \le 1 + C^2`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.inference.row_law import RowLaw
from skdpsurv.mechanisms.second_moments import SecondMoments
from skdpsurv.pieces import row_pieces
from skdpsurv.privacy import random_source
from skdpsurv.privacy.measurement import Known, NoisySum
from skdpsurv.references import reference
from skdpsurv.types import FloatArray

__all__ = ["CONSTANT", "REACH", "ReleasedMoments", "RowMoments"]

#: Where there are standard errors, rows longer than the bound are weighed instead of scaled down,
#: up to so many times the bound.
REACH = 4.0
#: The constant that rows are lengthened by, at least. A small one makes little noise on the
#: moments, a large one little noise on number and mean of the rows.
CONSTANT = 0.5

#: With more features there are too many moments for any noise.
MOST_FEATURES = 500


class Weighed(Protocol):
    """A block of records as a likelihood sees them."""

    @property
    def X(self) -> FloatArray:  # noqa: N802  as blocks have it
        """Rows, of shape (n, n_features) or wider."""

    @property
    def weight(self) -> FloatArray | None:
        """How often each record counts; None: once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowMoments(NoisySum):
    """What is asked of the records. A subclass says which rows, and what follows.

    Parameters
    ----------
    price : float or Concentrated
    n_records, n_features : int
    constant : float
        C.

    Raises
    ------
    ValueError
        If there are more features than anything could be said of.
    """

    n_records: int
    n_features: int
    constant: float = CONSTANT

    name = "second moments"
    theorem = reference("docs/proofs/inference", "dwork")

    def __post_init__(self) -> None:
        if self.n_features > MOST_FEATURES:
            raise ValueError(
                f"inference_share must be 0 with more than {MOST_FEATURES} features: their second "
                f"moments would drown in noise, got {self.n_features}."
            )
        self.query({})  # whose theorem is for so many numbers

    def query(self, known: Known) -> SecondMoments:
        """Of lengthened rows in units of :attr:`longest`."""
        return SecondMoments(self.n_records, self.n_features + 1, 1.0)

    def spans(self) -> list[float]:
        """Return the scale of the noise."""
        return [self.query({}).law(self.price).scale]

    @property
    def longest(self) -> float:
        """The largest norm of a lengthened row, times the root of its weight."""
        return math.hypot(1.0, self.constant)

    @abstractmethod
    def seen(self, known: Known, records: Any) -> Blocks[Weighed]:
        """Return records as the likelihood sees them."""

    def ask(self, known: Known, records: Any) -> FloatArray:
        """Return the exact moments."""
        blocks = self.seen(known, records)
        return self.query(known).total(blocks, lambda block: self.rows(block.X, block.weight))

    def rows(self, X: FloatArray, weight: FloatArray | None) -> Iterator[FloatArray]:
        """Yield lengthened rows, times the roots of their weights, in pieces."""
        for piece in row_pieces(X.shape[0], self.n_features + 1):
            rows = X[piece, : self.n_features]
            root = 1.0 if weight is None else np.sqrt(weight[piece])
            root = np.broadcast_to(root / self.longest, rows.shape[:1])
            yield np.column_stack([self.constant * root, rows * root[:, None]])


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy moments, and what rows may be that have them."""

    asked: RowMoments
    moments: FloatArray

    @property
    def law(self) -> RowLaw:
        """The law that rows with these moments have, up to its shape."""
        return self._law(self.moments)

    def redrawn(self, number: int) -> list[tuple[RowLaw, RowLaw]]:
        """Return pairs of laws with more noise, and with the same noise less: what noise does."""
        # Noise that hides nothing: the same for everybody.
        source, query = random_source(0, purpose="moments"), self.asked.query({})
        draws = [query.noise(self.asked.price, source) for _ in range(number)]
        return [(self._law(self.moments + e), self._law(self.moments - e)) for e in draws]

    def _law(self, moments: FloatArray) -> RowLaw:
        asked, unit = self.asked, self.asked.longest**2
        deviation = asked.query({}).deviation(asked.price)
        return RowLaw.of_moments(moments * unit, asked.constant, asked.n_records, deviation * unit)
