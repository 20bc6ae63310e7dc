"""What a fit asks of private records: one thing at a time, at a price, by a theorem.

A *noisy sum* is made of integers that add up over blocks of records. It says what is asked and how
far one record can move the answer (its query); whoever runs it adds the noise that this query has
at its price, so that no measurement can have a wrong one. A *mechanism* has a theorem of its own,
and noise of its own. What either asks may depend on what was released before it (``known``), and
what becomes known goes to those that follow. Neighbours: replace-one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from skdpsurv.privacy.concentrated import Concentrated, Price, amount
from skdpsurv.privacy.cost import Cost, price_of
from skdpsurv.privacy.randomness import RandomSource
from skdpsurv.references import reference

#: Where all Gaussian noise is proved.
GAUSSIAN = reference("docs/proofs/gaussian", "bun-steinke", "canonne")
#: What was released before, by name, and what is public.
Known = Mapping[str, Any]
#: Of neighbours: what was compared, how far it is apart, and how far it may be.
Distances = list[tuple[str, float, float]]


class Query(Protocol):
    """What is asked of the records, and how its answer is released."""

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the exact answer with the noise that hides one record at the price."""
        ...

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in units of the answer."""
        ...

    def distances(self, one: Any, other: Any) -> Distances:
        """Return how far the exact answers of neighbours are apart, and may be."""
        ...


class Measurement(ABC):
    """One thing that is asked of the records.

    A subclass says its ``name``, in words: what a guarantee calls it; and its ``price``, or else
    its ``cost``.
    """

    name: str
    price: Price
    #: Where it is proved.
    proof: str
    #: What else must be true.
    assumptions: tuple[str, ...] = ()
    #: As of a guarantee.
    status: str = "proved"

    @property
    def cost(self) -> Cost:
        """What it costs: the price."""
        return price_of(self.price)

    def spans(self) -> Iterable[float]:
        """Return public numbers that must be neither huge nor tiny."""
        return ()

    def stated(self) -> Mapping[str, Any]:
        """Return public numbers that a guarantee states, by name."""
        return {}

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far neighbours are apart in all that the theorem speaks of: for audits."""
        return []

    def nested(self, known: Known, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return estimators that it fits, which have plans of their own, and X, y and options."""
        return []

    @abstractmethod
    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Return what is released of the records, by name.

        Names with an underscore in front are for later measurements, and not published.
        """


@dataclass(frozen=True, kw_only=True)
class NoisySum(Measurement):
    """Counts, sums, means, moments: integers that add up over blocks of records.

    A subclass says what is ``asked``, or overrides :meth:`query` where that depends on what is
    known.

    Parameters
    ----------
    price : float or Concentrated
    """

    price: Price

    #: The query, where it is always the same.
    asked: ClassVar[Query]
    #: Where it is proved of Laplace noise.
    theorem: ClassVar[str] = ""

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else self.theorem

    def query(self, known: Known) -> Query:
        """Return what is asked, once it is known what was released before."""
        return self.asked

    def query_range(self) -> Sequence[Query]:
        """Return the ends of what may be asked, for those who do not know yet."""
        return [self.query({})]

    @abstractmethod
    def ask(self, known: Known, records: Any) -> Any:
        """Return the exact answer: a sum over blocks, private."""

    @abstractmethod
    def after(self, known: Known, noisy: Any) -> Mapping[str, Any]:
        """Return what follows from the noisy answer, by name: it never sees records."""

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Ask, add noise, and return what follows."""
        noisy = self.query(known).release(self.ask(known, records), self.price, source)
        return self.after(known, noisy)

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return how far exact answers are apart, and how far the query says they may be."""
        return self.query(known).distances(self.ask(known, one), self.ask(known, other))

    def spans(self) -> Iterable[float]:
        """Return the inverse of the price."""
        return [1.0 / amount(self.price)]


class Mechanism(Measurement):
    """What has a theorem of its own: a perturbed minimiser, a descent, a chain, a choice."""
