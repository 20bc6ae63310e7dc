"""Measurements of private records, and plans: trees of measurements made for a budget.

A *noisy sum* is made of integers that add up over blocks of records. It says what is asked and how
far one record can move the answer (its query); whoever runs it adds the noise that this query has
at its price, so that no measurement can have a wrong one. A *mechanism* has a theorem of its own,
and noise of its own. What either asks may depend on what was released before it (``known``), and
what becomes known goes to those that follow. Neighbours: replace-one.

Leaves of a plan are measurements. Nodes say how they compose: one after another; within a total
that is divided in view of what was released; on records that share nobody; the best of a random
number of runs. A plan is made from public numbers alone, before anything is charged. Its guarantee
is computed: it states the budget, and a delta only if a measurement needs one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status
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
from skdpsurv.dp.references import reference
from skdpsurv.dp.selection import RunCount

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
        return cost_of(self.price)

    def scales(self) -> Iterable[float]:
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

    def scales(self) -> Iterable[float]:
        """Return the inverse of the price."""
        return [1.0 / epsilon_or_mu(self.price)]


class Mechanism(Measurement):
    """What has a theorem of its own: a perturbed minimiser, a descent, a chain, a choice."""


#: Ridges and scales of noise that double precision can work with.
REPRESENTABLE_RANGE = (1e-12, 1e12)


class Several:
    """What is made of nodes: what holds of each kind, as far as it is known beforehand."""

    nodes: tuple[Node, ...]

    def leaves(self) -> Iterator[Measurement]:
        """Yield the measurements."""
        for node in self.nodes:
            yield from leaves(node)

    def stated(self) -> dict[str, Any]:
        """Return what each states."""
        return {name: value for node in self.nodes for name, value in node.stated().items()}


@dataclass(frozen=True, eq=False)
class Sequential(Several):
    """Measurements of the same records, one after another.

    Parameters
    ----------
    nodes : tuple of Node
    total : float, Concentrated or None, default=None
        What they may cost together, and count for; None: what they cost.
    name : str, default=""
        Under which a guarantee states the total.

    Raises
    ------
    ValueError
        If they cost more than the total.
    """

    nodes: tuple[Node, ...]
    total: Price | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.total is not None:
            _require(sequential_cost(node.cost for node in self.nodes), self.total)

    @property
    def cost(self) -> Cost:
        """All together."""
        if self.total is not None:
            return cost_of(self.total)
        return sequential_cost(node.cost for node in self.nodes)

    def stated(self) -> dict[str, Any]:
        """Return what each states, and the total."""
        if self.total is None or not self.name:
            return super().stated()
        return super().stated() | stated_price(self.name, self.total)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return what is released: each sees what came before."""
        found: dict[str, Any] = {}
        for node in self.nodes:
            found |= node.run({**known, **found}, records, source)
        return found


@dataclass(frozen=True, eq=False)
class Total(Several):
    """Measurements that a total price is divided among, in view of what was released before.

    Parameters
    ----------
    total : float or Concentrated
    choose : callable
        Of what is known: the measurements, which may cost no more than the total together.
    possible : tuple of Node
        Some that may be chosen, for those who do not know yet.
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
        """The choice that is stated first."""
        return self.possible[:1]

    def run(self, known: Known, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Choose, and return what is released."""
        return self.chosen(known).run(known, records, source)

    def chosen(self, known: Known) -> Node:
        """Return the measurements, once it is known what was released before."""
        node = self.choose(known)
        _require(node.cost, self.total)
        stated, found = (_weakest(everything(one)) for one in (self, node))
        if weakest_status([stated, found]) != stated:
            raise ValueError("a choice must be as private as what may be chosen is stated to be.")
        return node


@dataclass(frozen=True, eq=False)
class Disjoint(Several):
    """Measurements of records that share nobody.

    Parameters
    ----------
    nodes : tuple of Node
    deal : callable
        Of all records and a source for their order: the records of each, by their number alone.
    """

    nodes: tuple[Node, ...]
    deal: Callable[[Any, RandomSource], Iterable[Any]]

    @property
    def cost(self) -> Cost:
        """The dearest: a replaced record is in one of the sets."""
        return disjoint_cost(node.cost for node in self.nodes)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return what is released of each set: later ones see what came before."""
        found: dict[str, Any] = {}
        for node, own in zip(self.nodes, self.deal(records, source), strict=True):
            found |= node.run({**known, **found}, own, source)
        return found


@dataclass(frozen=True, eq=False)
class RandomlyMany(Several):
    """The best of a random number of runs, each of a candidate that is drawn at random.

    Parameters
    ----------
    run_each : Node
        What a run asks, whatever its candidate is. It is given candidates by their number, as
        ``_drawn``, and runs each of them: of all that it releases as a list, each run has an entry.
    n_candidates : int
    count : RunCount
        The law of the number of runs, which nobody may learn.
    score : str
        The name of the noisy number that is least for the best run.
    """

    run_each: Node
    n_candidates: int
    count: RunCount
    score: str

    @property
    def cost(self) -> Cost:
        """What the best of all runs costs: how many there were does not matter."""
        return random_runs_cost([self.run_each.cost], self.count)

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """What a run asks."""
        return (self.run_each,)

    def run(self, known: Known, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return what the best run released, and the number of its candidate, as ``best``."""
        n_runs = self.count.draw(source)
        drawn = [uniform_below(self.n_candidates, source) for _ in range(n_runs)]
        return self.best(self.run_each.run({**known, "_drawn": drawn}, records, source), drawn)

    def best(self, found: Mapping[str, Any], drawn: Sequence[int]) -> dict[str, Any]:
        """Return what the best run released, of all, whose candidates have these numbers."""
        # The first among equals: the runs are exchangeable, so that this is a fair draw.
        best = int(np.argmin(found[self.score]))
        of_best = {k: v[best] if isinstance(v, list) else v for k, v in found.items()}
        return {**of_best, "best": drawn[best]}


Node = Measurement | Sequential | Total | Disjoint | RandomlyMany


def _require(cost: Cost, total: Price) -> None:
    """Refuse what costs more than a total."""
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
    """Yield the measurements of a node, and of all that may be chosen in it."""
    if isinstance(node, Measurement):
        yield node
    else:
        for one in node.possible if isinstance(node, Total) else node.nodes:
            yield from everything(one)


def _weakest(measurements: Iterable[Measurement]) -> str:
    return weakest_status(["proved", *(one.status for one in measurements)])


@dataclass(frozen=True, eq=False)
class Plan:
    """Measurements of all records, and what is public of them.

    Parameters
    ----------
    tree : Node
    epsilon : float
        What the whole may cost: this is what is stated, and charged.
    allowed_delta : float, default=0.0
        What Gaussian noise may use.
    inputs : mapping
        Values that the guarantee takes to be public, beside those that measurements state.
    assumed : tuple of str
        What else must be true.
    words : str, default=""
        What is released; "" for the names of the measurements.
    status : str, default="proved"
        Of the plan, should that be weaker than the measurements'.
    known : mapping
        What is public by name, for the measurements and beside what they release.

    Raises
    ------
    ValueError
        If the measurements cost more than that together.
    """

    tree: Node
    epsilon: float
    allowed_delta: float = 0.0
    inputs: Mapping[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    words: str = ""
    status: str = "proved"
    known: Known = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.cost.within(self.epsilon, self.allowed_delta):
            raise ValueError("measurements must cost no more than epsilon and delta together.")

    @cached_property
    def cost(self) -> Cost:
        """What the measurements cost together."""
        return self.tree.cost

    @property
    def leaves(self) -> list[Measurement]:
        """The measurements, as far as they are known beforehand."""
        return list(leaves(self.tree))

    @property
    def alone(self) -> Measurement | None:
        """The measurement, where there is but one."""
        found = self.leaves
        return found[0] if len(found) == 1 else None

    @property
    def delta(self) -> float:
        """What is used of the delta allowed: all of it, or nothing."""
        return 0.0 if self.cost.is_pure else self.allowed_delta

    @property
    def rho(self) -> float | None:
        """The price in zCDP, where all noise is Gaussian."""
        return self.cost.rho

    @property
    def renyi(self) -> tuple[tuple[float, float], ...]:
        """Orders and divergences of what has a curve and no rho."""
        return self.cost.renyi

    @property
    def mechanism(self) -> str:
        """What is released, in words."""
        return self.words or ", then ".join(_once(leaf.name for leaf in self.leaves))

    @property
    def proof(self) -> str:
        """Where it is proved."""
        return "; ".join(_once(leaf.proof for leaf in self.leaves if leaf.proof))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What else must be true."""
        of_leaves = (text for leaf in everything(self.tree) for text in leaf.assumptions)
        return tuple(_once([*self.assumed, *of_leaves]))

    def public_inputs(self) -> dict[str, Any]:
        """Return the values that the guarantee takes to be public."""
        return {**self.inputs, **self.tree.stated()}

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [span for leaf in self.leaves for span in leaf.scales()]

    def guarantee(self, status: str) -> PrivacyGuarantee:
        """Return what the whole promises; the status is the weakest of all."""
        return PrivacyGuarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            renyi=self.renyi,
            mechanism=self.mechanism,
            status=weakest_status([status, self.status, _weakest(everything(self.tree))]),
            public_inputs=self.public_inputs(),
            assumptions=self.assumptions,
            source=self.proof,
        )

    def run(self, records: Any, source: RandomSource) -> dict[str, Any]:
        """Return what is released of the records, by name, and what was known before.

        Names with an underscore in front are of what later measurements needed to know.
        """
        known = {**self.known, **self.tree.run(self.known, records, source)}
        return {name: value for name, value in known.items() if not name.startswith("_")}


def checked_plan(make: Callable[[], Plan], names: Sequence[str]) -> Plan:
    """Return the plan that ``make`` makes of public numbers.

    Parameters
    ----------
    make : callable
    names : sequence of str
        The parameters that decide, for the message.

    Raises
    ------
    ValueError
        If double precision cannot work with the numbers.
    """
    low, high = REPRESENTABLE_RANGE
    try:
        plan = make()
        fits = all(low <= scale <= high for scale in plan.scales())
    except ArithmeticError:
        fits = False
    if not fits:
        raise ValueError(
            f"{', '.join(names)} must be such that ridge and noise lie between {low:g} and "
            f"{high:g}; they are too extreme for double precision."
        )
    return plan


def _once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
