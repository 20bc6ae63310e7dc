"""Measurements of private records, and plans: trees of measurements made for a budget.

A *noisy sum* adds up over blocks of records. It states its query, and the runner adds the noise of
that query at its price. A *mechanism* has a theorem and noise of its own. Either may depend on
earlier releases (``known``). Neighbours: replace-one.

Nodes say how measurements compose: in sequence; within a total that is divided in view of earlier
results; on disjoint people; the best of a random number of runs. A plan is made from public numbers
alone, before anything is charged, and computes its guarantee.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee, weakest_status
from skdpsurv.dp.noise import RandomSource, uniform_below
from skdpsurv.dp.privacy_cost import (
    Concentrated,
    Cost,
    Price,
    cost_of,
    disjoint_cost,
    epsilon_or_mu,
    random_runs_cost,
    sequential_cost,
    stated_price,
)
from skdpsurv.dp.proofs import is_asserted, name_of, status_of, unproved
from skdpsurv.dp.references import OWN_RECORD, WORDS, reference
from skdpsurv.dp.selection import RunCount

#: Proof of all Gaussian noise.
GAUSSIAN = reference("docs/proofs/gaussian", "bun-steinke", "canonne")
#: Earlier releases and public values, by name.
Known = Mapping[str, Any]
#: Comparisons of neighbours: name, distance found, distance allowed.
Distances = list[tuple[str, float, float]]


class Query(Protocol):
    """A question to the records, and the release of its answer."""

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the exact answer with noise that hides one record at the price."""

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in units of the answer."""

    def distances(self, one: Any, other: Any) -> Distances:
        """Return distances of the exact answers of neighbours, found and allowed."""


class Measurement(ABC):
    """One release from the records, with a ``name`` in words, and a ``price`` or a ``cost``."""

    name: str
    price: Price
    #: Reference to the proof.
    proof: str
    #: Other conditions of the theorem.
    assumptions: tuple[str, ...] = ()
    #: The best status that it can have.
    claim: ClassVar[str] = "proved"

    def rests_on(self) -> Iterable[type]:
        """Return other classes that the theorem is about: of queries, laws and losses."""
        return []

    @property
    def status(self) -> str:
        """As in a guarantee: that of what it rests on, and no better than its claim."""
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

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        """Return distances of neighbours in the quantities of the theorem, for audits."""
        return []

    def nested(self, known: Known, records: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return estimators that it fits, with plans of their own, and their arguments."""
        return []

    @abstractmethod
    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Return released values by name; those with a leading underscore are not published."""


@dataclass(frozen=True, kw_only=True)
class NoisySum(Measurement):
    """Counts, sums, means, moments: integers that add up over blocks of records.

    A subclass has a query, ``asked``, or overrides :meth:`query` where that depends on ``known``.
    """

    price: Price

    #: The query, if it is always the same.
    asked: ClassVar[Query]
    #: Proof for Laplace noise.
    theorem: ClassVar[str] = ""

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Reference to the proof."""
        return GAUSSIAN if isinstance(self.price, Concentrated) else self.theorem

    def query(self, known: Known) -> Query:
        """Return the query, given earlier releases."""
        return self.asked

    def query_range(self) -> Sequence[Query]:
        """Return the extreme queries possible, before anything is released."""
        return [self.query({})]

    @abstractmethod
    def ask(self, known: Known, records: Any) -> Any:
        """Return the exact answer: a sum over blocks, private."""

    @abstractmethod
    def after(self, known: Known, noisy: Any) -> Mapping[str, Any]:
        """Return results by name from the noisy answer; it never sees records."""

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        noisy = self.query(known).release(self.ask(known, records), self.price, source)
        return self.after(known, noisy)

    def distances(self, known: Known, one: Any, other: Any) -> Distances:
        return self.query(known).distances(self.ask(known, one), self.ask(known, other))

    def rests_on(self) -> Iterable[type]:
        return map(type, self.query_range())

    def scales(self) -> Iterable[float]:
        return [1.0 / epsilon_or_mu(self.price)]


class Mechanism(Measurement):
    """A measurement with its own theorem: a perturbed minimiser, a descent, a chain, a choice."""


class Several:
    """Base of nodes that are made of nodes."""

    nodes: tuple[Node, ...]

    def leaves(self) -> Iterator[Measurement]:
        for node in self.nodes:
            yield from leaves(node)

    def stated(self) -> dict[str, Any]:
        """Return the public numbers of all nodes."""
        return {name: value for node in self.nodes for name, value in node.stated().items()}


@dataclass(frozen=True, eq=False)
class Sequential(Several):
    """Measurements of the same records, one after another.

    They count for their ``total``, if there is one, and may not cost more than that. A guarantee
    states it under ``name``.
    """

    nodes: tuple[Node, ...]
    total: Price | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.total is not None:
            _require(sequential_cost(node.cost for node in self.nodes), self.total)

    @property
    def cost(self) -> Cost:
        """The total, or else the sum."""
        if self.total is not None:
            return cost_of(self.total)
        return sequential_cost(node.cost for node in self.nodes)

    def stated(self) -> dict[str, Any]:
        if self.total is None or not self.name:
            return super().stated()
        return super().stated() | stated_price(self.name, self.total)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node in self.nodes:
            found |= node.run({**known, **found}, records, source)
        return found


@dataclass(frozen=True, eq=False)
class Total(Several):
    """A node that ``choose`` makes within a total price, in view of earlier releases.

    ``possible`` holds some nodes that may be chosen, for use before anything is released.
    """

    total: Price
    choose: Callable[[Known], Node]
    possible: tuple[Node, ...]

    def __post_init__(self) -> None:
        for node in self.possible:
            _require(node.cost, self.total)

    @property
    def cost(self) -> Cost:
        """The total, whatever is chosen."""
        return cost_of(self.total)

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The first possible choice."""
        return self.possible[:1]

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        return self.chosen(known).run(known, records, source)

    def chosen(self, known: Known) -> Node:
        """Return the node for earlier releases, or refuse one that costs or assumes too much."""
        node = self.choose(known)
        _require(node.cost, self.total)
        stated, found = (_weakest(everything(one)) for one in (self, node))
        if weakest_status([stated, found]) != stated:
            raise ValueError("a choice must be as private as what may be chosen is stated to be.")
        return node


@dataclass(frozen=True, eq=False)
class Disjoint(Several):
    """Measurements of records that share nobody.

    ``deal`` takes all records and a source for their order, and returns the records of each node.
    It looks at their number alone.
    """

    nodes: tuple[Node, ...]
    deal: Callable[[Any, RandomSource], Iterable[Any]]

    @property
    def cost(self) -> Cost:
        """The largest cost: a replaced record is in one of the sets."""
        return disjoint_cost(node.cost for node in self.nodes)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node, own in zip(self.nodes, self.deal(records, source), strict=True):
            found |= node.run({**known, **found}, own, source)
        return found


@dataclass(frozen=True, eq=False)
class RandomlyMany(Several):
    """The best of a random number of runs, each of a candidate that is drawn at random.

    ``run_each`` runs the candidates whose numbers it is given as ``_drawn``; its released lists
    have an entry for each run. ``count`` is the distribution of the number of runs, which nobody
    may learn. ``score`` names the noisy number that is least for the best run.
    """

    run_each: Node
    n_candidates: int
    count: RunCount
    score: str

    @property
    def cost(self) -> Cost:
        """Cost of the best run, whatever their number."""
        return random_runs_cost([self.run_each.cost], self.count)

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The node that each run executes."""
        return (self.run_each,)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        n_runs = self.count.draw(source)
        drawn = [uniform_below(self.n_candidates, source) for _ in range(n_runs)]
        return self.best(self.run_each.run({**known, "_drawn": drawn}, records, source), drawn)

    def best(self, found: Mapping[str, Any], drawn: Sequence[int]) -> dict[str, Any]:
        """Return the releases of the best run, and the number of its candidate as ``best``."""
        # The first among equals: the runs are exchangeable, so that this is a fair draw.
        best = int(np.argmin(found[self.score]))
        of_best = {k: v[best] if isinstance(v, list) else v for k, v in found.items()}
        return {**of_best, "best": drawn[best]}


Node = Measurement | Sequential | Total | Disjoint | RandomlyMany


def _require(cost: Cost, total: Price) -> None:
    whole = cost_of(total)
    within = cost.epsilon <= whole.epsilon
    if not whole.is_pure:
        within = cost.rho is not None and whole.rho is not None and cost.rho <= whole.rho
    if not within:
        raise ValueError("measurements must cost no more than their total.")


def leaves(node: Node) -> Iterator[Measurement]:
    """Yield the measurements of a node, from left to right."""
    if isinstance(node, Measurement):
        yield node
    else:
        yield from node.leaves()


def everything(node: Node) -> Iterator[Measurement]:
    """Yield the measurements of a node, and of all its possible choices."""
    if isinstance(node, Measurement):
        yield node
    else:
        for one in node.possible if isinstance(node, Total) else node.nodes:
            yield from everything(one)


def _weakest(measurements: Iterable[Measurement]) -> str:
    # Whatever a class says of itself, it must be registered.
    both = (s for one in measurements for s in (one.status, status_of([type(one)])))
    return weakest_status(["proved", *both])


@dataclass(frozen=True, eq=False)
class Plan:
    """Measurements of all records within a budget; a ValueError if they cost more.

    Parameters
    ----------
    tree : Node
    epsilon : float
        Budget, which is stated and charged.
    allowed_delta : float, default=0.0
        Delta that Gaussian noise may use.
    inputs : mapping
        Public values for the guarantee, beside those that measurements state.
    assumed : tuple of str
        Other conditions of the guarantee.
    words : str, default=""
        Name of the release; "" for the names of the measurements.
    status : str, default="proved"
        Status of the plan, if weaker than the measurements'.
    known : mapping
        Public values by name, for the measurements.
    same_group : bool, default=False
        Whether neighbours share the public group of the record that differs.
    """

    tree: Node
    epsilon: float
    allowed_delta: float = 0.0
    inputs: Mapping[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    words: str = ""
    status: str = "proved"
    known: Known = field(default_factory=dict)
    same_group: bool = False

    def __post_init__(self) -> None:
        if not self.cost.within(self.epsilon, self.allowed_delta):
            raise ValueError("measurements must cost no more than epsilon and delta together.")

    @cached_property
    def cost(self) -> Cost:
        """Cost of the measurements together."""
        return self.tree.cost

    @property
    def leaves(self) -> list[Measurement]:
        """The measurements; of choices, the first possible one."""
        return list(leaves(self.tree))

    @property
    def alone(self) -> Measurement | None:
        """The only measurement, or None."""
        found = self.leaves
        return found[0] if len(found) == 1 else None

    @property
    def delta(self) -> float:
        """Delta that is used: all that is allowed, or nothing."""
        return 0.0 if self.cost.is_pure else self.allowed_delta

    @property
    def mechanism(self) -> str:
        """Name of the release, in words."""
        return self.words or ", then ".join(dict.fromkeys(leaf.name for leaf in self.leaves))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Conditions of the guarantee."""
        of_leaves = (text for leaf in everything(self.tree) for text in leaf.assumptions)
        kinds = filter(is_asserted, self.unproved)
        asserted = (WORDS["assumptions"]["asserted"].format(name=name_of(kind)) for kind in kinds)
        return tuple(dict.fromkeys([*self.assumed, OWN_RECORD, *of_leaves, *asserted]))

    @property
    def unproved(self) -> list[type]:
        """Classes that a claim rests on, and no registered theorem is about."""
        every = [] if math.isinf(self.epsilon) else everything(self.tree)
        return unproved(k for e in every if e.claim != "none" for k in (type(e), *e.rests_on()))

    def public_inputs(self) -> dict[str, Any]:
        """Return the public values that the guarantee states."""
        return {**self.inputs, **self.tree.stated()}

    def scales(self) -> list[float]:
        """Return public numbers that must lie in the representable range."""
        return [span for leaf in self.leaves for span in leaf.scales()]

    def guarantee(self, status: str, *, people: bool = False) -> PrivacyGuarantee:
        """Return the guarantee, of the weakest status; about people if each has one record."""
        about = [WORDS["assumptions"]["person"]] if people else []
        return PrivacyGuarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.cost.rho,
            renyi=self.cost.renyi,
            neighbours=(PERSON if people else RECORD) + SAME_GROUP * self.same_group,
            mechanism=self.mechanism,
            status=weakest_status([status, self.status, _weakest(everything(self.tree))]),
            public_inputs=self.public_inputs(),
            assumptions=(*self.assumptions, *about),
            source="; ".join(dict.fromkeys(leaf.proof for leaf in self.leaves if leaf.proof)),
        )

    def run(self, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return released and known values by name, but for those with a leading underscore."""
        known = {**self.known, **self.tree.run(self.known, records, source)}
        return {name: value for name, value in known.items() if name[:1] != "_"}
