"""Measurements: one release from private records each, by a theorem, at a price.

A *noisy sum* adds up over blocks of records. It states its query, and the runner adds the noise of
that query at its price. A *mechanism* has a theorem and noise of its own. Either may depend on
earlier releases (``context``). Neighbours: replace-one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skdpsurv.dp.guarantee import weakest_status
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.privacy_cost import Concentrated, Cost, Price, cost_of, epsilon_or_mu
from skdpsurv.dp.proofs import status_of
from skdpsurv.dp.references import reference
from skdpsurv.dp.stated_noise import Distances, Query, plain, stated_cost, stated_noise

#: Reference to the proof of Gaussian noise.
GAUSSIAN = reference("docs/proofs/gaussian", "bun-steinke", "canonne")
#: Earlier releases and public values, by name.
Context = Mapping[str, Any]


class Measurement(ABC):
    """One release from the records, with a ``name`` in words, and a ``price`` or a ``cost``."""

    name: str
    price: Price
    #: Reference to the proof.
    proof: str
    #: Assumptions of the theorem, in words.
    assumptions: tuple[str, ...] = ()
    #: Best status that the measurement can have.
    claim: ClassVar[str] = "proved"
    #: Name of the distribution of what is drawn.
    law: str = "other"

    def rests_on(self) -> Iterable[type]:
        """Return other classes that the theorem is about: of queries, laws and losses."""
        return []

    @property
    def status(self) -> str:
        """Weakest status of what the measurement rests on, and of its own claim."""
        return weakest_status([self.claim, status_of([type(self), *self.rests_on()])])

    @property
    def cost(self) -> Cost:
        """Cost of the measurement: the price, unless overridden."""
        return cost_of(self.price)

    def scales(self) -> Iterable[float]:
        """Return public numbers that must lie in the representable range."""
        return ()

    def stated(self) -> Mapping[str, Any]:
        """Return public numbers for the guarantee, by name."""
        return {}

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        """Return the law and public numbers of what is drawn; context None: before all releases."""
        return {"law": self.law}

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        """Return distances of neighbours in the quantities of the theorem, for audits."""
        return []

    def nested(self, context: Context, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return estimators that it fits, with plans of their own, and their arguments."""
        return []

    @abstractmethod
    def run(self, context: Context, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Return released values by name; those with a leading underscore are not published."""


@dataclass(frozen=True, kw_only=True)
class NoisySum(Measurement):
    """Counts, sums, means, moments: integers that add up over blocks of records.

    A subclass has a ``query``, or overrides :meth:`query_for` where that depends on ``context``.
    """

    price: Price

    #: The query, if earlier releases do not change it.
    query: ClassVar[Query]
    #: Reference to the proof for Laplace noise.
    theorem: ClassVar[str] = ""
    #: Name of the result that is the noisy answer; None if there is none.
    gives: ClassVar[str | None] = None

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Reference to the proof."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else self.theorem

    def query_for(self, context: Context) -> Query:
        """Return the query, given earlier releases."""
        return self.query

    def query_range(self) -> Sequence[Query]:
        """Return the extreme queries possible, before anything is released."""
        return [self.query_for({})]

    @abstractmethod
    def exact_answer(self, context: Context, records: Any) -> Any:
        """Return the exact answer: a sum over blocks, private."""

    @abstractmethod
    def postprocess(self, context: Context, noisy: Any) -> Mapping[str, Any]:
        """Return results by name from the noisy answer; it never sees records."""

    def run(self, context: Context, records: Any, source: RandomSource) -> Mapping[str, Any]:
        noisy = self.query_for(context).release(
            self.exact_answer(context, records), self.price, source
        )
        return self.postprocess(context, noisy)

    def drawn(self, context: Context | None) -> Mapping[str, Any]:
        query = (
            self.query_for(context) if context is not None else next(iter(self.query_range()), None)
        )
        found = super().drawn(context) if query is None else stated_noise(query, self.price)
        return found if self.gives is None else {**found, "gives": self.gives}

    def distances(self, context: Context, one: Any, other: Any) -> Distances:
        return self.query_for(context).distances(
            self.exact_answer(context, one), self.exact_answer(context, other)
        )

    def rests_on(self) -> Iterable[type]:
        return map(type, self.query_range())

    def scales(self) -> Iterable[float]:
        return [1.0 / epsilon_or_mu(self.price)]


class Mechanism(Measurement):
    """A measurement with its own theorem: a perturbed minimiser, a descent, a chain, a choice."""


def one_drawn(one: Measurement, context: Context | None) -> dict[str, Any]:
    """Describe the draw of a measurement after earlier releases; None: before any."""
    stated = {"node": "measurement", "name": one.name, "price": stated_cost(one.cost)}
    return stated | plain(one.drawn(context))
