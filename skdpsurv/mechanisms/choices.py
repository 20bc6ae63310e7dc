r"""Choices among public candidates, by permute-and-flip.

A candidate's loss is a sum over the records. Neighbours: replace-one. Sensitivity: that of each
loss, as the query says. Theorem: permute-and-flip is epsilon-differentially private, however many
candidates there are (docs/proofs/noise); epsilons of several choices add up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdpsurv.mechanisms.sums import Sums
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.cost import Cost, in_turn, price_of
from skdpsurv.privacy.measurement import Distances, Known, Mechanism


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
        return in_turn([price_of(self.each)] * len(self.queries))

    def spans(self) -> list[float]:
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
