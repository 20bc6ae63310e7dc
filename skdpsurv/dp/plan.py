"""Plans: trees of measurements of private records, made for a budget.

Nodes say how measurements compose: in sequence; within a total that is divided in view of earlier
results; on disjoint people; the best of a random number of runs. A plan is made from public numbers
alone, before anything is charged, and computes its guarantee. Neighbours: replace-one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee, weakest_status
from skdpsurv.dp.measurement import GAUSSIAN, Context, Measurement, Mechanism, NoisySum, one_drawn
from skdpsurv.dp.noise import RandomSource, uniform_below
from skdpsurv.dp.privacy_cost import (
    Cost,
    Price,
    cost_of,
    disjoint_cost,
    random_runs_cost,
    sequential_cost,
    stated_price,
)
from skdpsurv.dp.proofs import is_asserted, name_of, status_of, unproved
from skdpsurv.dp.references import OWN_RECORD, WORDS
from skdpsurv.dp.selection import RunCount
from skdpsurv.dp.stated_noise import Distances, stated_cost

__all__ = [
    "GAUSSIAN",
    "AdaptiveChoice",
    "Composite",
    "Context",
    "Disjoint",
    "Distances",
    "Measurement",
    "Mechanism",
    "Node",
    "NoisySum",
    "Plan",
    "PrivateSelection",
    "Sequential",
]  # fmt: skip

#: Draws of a node, as JSON holds them; and the list that they are appended to.
Drawn = dict[str, Any]
Log = list[Drawn] | None


class Composite:
    """Base of nodes that are made of nodes."""

    nodes: tuple[Node, ...]

    def stated(self) -> dict[str, Any]:
        """Return the public numbers of all nodes."""
        return {name: value for node in self.nodes for name, value in node.stated().items()}

    #: Name of this way to compose, in releases.
    word: ClassVar[str]

    def composed(self, drawn: Sequence[Drawn]) -> Drawn:
        """Combine the draws of the nodes into one entry for this node."""
        return {"node": self.word, "nodes": list(drawn)}

    def parts(self, context: Context, records: Any, source: RandomSource) -> Iterable[Part]:
        """Return the nodes to run, each with its records."""
        raise NotImplementedError

    def run(
        self, context: Context, records: Any, source: RandomSource, log: Log = None
    ) -> dict[str, Any]:
        """Return released values by name, and append to the log what was drawn."""
        found: dict[str, Any] = {}
        drawn: Log = None if log is None else []
        for node, own in self.parts(context, records, source):
            found |= _run(node, {**context, **found}, own, source, drawn)
        if log is not None and drawn is not None:
            log.append(self.composed(drawn))
        return found


@dataclass(frozen=True, eq=False)
class Sequential(Composite):
    """Measurements of the same records, one after another.

    They count for their ``total``, if there is one, and may not cost more than that. A guarantee
    states it under ``name``.
    """

    nodes: tuple[Node, ...]
    total: Price | None = None
    name: str = ""

    word = "sequence"

    def __post_init__(self) -> None:
        if self.total is not None:
            _require(sequential_cost(node.cost for node in self.nodes), self.total)

    @property
    def cost(self) -> Cost:
        """Cost of all nodes: the stated total, or else the sum."""
        if self.total is not None:
            return cost_of(self.total)
        return sequential_cost(node.cost for node in self.nodes)

    def stated(self) -> dict[str, Any]:
        if self.total is None or not self.name:
            return super().stated()
        return super().stated() | stated_price(self.name, self.total)

    def composed(self, drawn: Sequence[Drawn]) -> Drawn:
        total = {} if self.total is None else {"total": stated_cost(self.cost)}
        return super().composed(drawn) | total

    def parts(self, context: Context, records: Any, source: RandomSource) -> Iterable[Part]:
        return [(node, records) for node in self.nodes]


@dataclass(frozen=True, eq=False)
class AdaptiveChoice(Composite):
    """A node that ``choose`` makes within a total price, in view of earlier releases.

    ``possible`` holds some nodes that may be chosen, for use before anything is released.
    """

    total: Price
    choose: Callable[[Context], Node]
    possible: tuple[Node, ...]

    word = "choice"

    def __post_init__(self) -> None:
        for node in self.possible:
            _require(node.cost, self.total)

    @property
    def cost(self) -> Cost:
        """The stated total, whichever node is chosen."""
        return cost_of(self.total)

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The first node that may be chosen, in place of all."""
        return self.possible[:1]

    def composed(self, drawn: Sequence[Drawn]) -> Drawn:
        return super().composed(drawn) | {"total": stated_cost(self.cost)}

    def parts(self, context: Context, records: Any, source: RandomSource) -> Iterable[Part]:
        return [(self.resolve(context), records)]

    @cached_property
    def _status(self) -> str:
        """The weakest status of what may be chosen."""
        return _weakest(self)

    def resolve(self, context: Context) -> Node:
        """Return the node for earlier releases, or refuse one that costs or assumes too much."""
        node = self.choose(context)
        _require(node.cost, self.total)
        if weakest_status([self._status, _weakest(node)]) != self._status:
            raise ValueError("a choice must be as private as what may be chosen is stated to be.")
        return node


@dataclass(frozen=True, eq=False)
class Disjoint(Composite):
    """Measurements of records that share nobody.

    ``split`` takes all records and a source for their order, and returns the records of each node.
    It looks at their number alone.
    """

    nodes: tuple[Node, ...]
    split: Callable[[Any, RandomSource], Iterable[Any]]

    word = "disjoint"

    @property
    def cost(self) -> Cost:
        """The largest cost: a replaced record is in one of the sets."""
        return disjoint_cost(node.cost for node in self.nodes)

    def parts(self, context: Context, records: Any, source: RandomSource) -> Iterable[Part]:
        return zip(self.nodes, self.split(records, source), strict=True)


@dataclass(frozen=True, eq=False)
class PrivateSelection(Composite):
    """The best of a random number of runs, each of a candidate that is drawn at random.

    ``run_each`` runs the candidates whose numbers it is given as ``_drawn``; its released lists
    have an entry for each run. ``count`` is the distribution of the number of runs, which nobody
    may learn. ``score`` names the noisy number that is least for the best run.
    """

    run_each: Node
    n_candidates: int
    count: RunCount
    score: str

    word = "random number of runs"

    @property
    def cost(self) -> Cost:
        """Cost of all runs and the choice of the best, however many there are."""
        return random_runs_cost([self.run_each.cost], self.count)

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The node that each run executes."""
        return (self.run_each,)

    def composed(self, drawn: Sequence[Drawn]) -> Drawn:
        return super().composed(drawn) | {"eta": self.count.eta, "gamma": self.count.gamma}

    def run(
        self, context: Context, records: Any, source: RandomSource, log: Log = None
    ) -> dict[str, Any]:
        n_runs = self.count.draw(source)
        drawn = [uniform_below(self.n_candidates, source) for _ in range(n_runs)]
        if log is not None:  # as it was planned: the number of runs is secret, and so are others
            log.append(all_drawn(self))
        return self.best(self.run_each.run({**context, "_drawn": drawn}, records, source), drawn)

    def best(self, found: Mapping[str, Any], drawn: Sequence[int]) -> dict[str, Any]:
        """Return the releases of the best run, and the number of its candidate as ``best``."""
        # The first among equals: the runs are exchangeable, so that this is a fair draw.
        best = int(np.argmin(found[self.score]))
        of_best = {k: v[best] if isinstance(v, list) else v for k, v in found.items()}
        return {**of_best, "best": drawn[best]}


Node = Measurement | Sequential | AdaptiveChoice | Disjoint | PrivateSelection


#: A node, and the records that it measures.
Part = tuple[Node, Any]


def _run(node: Node, context: Context, records: Any, source: RandomSource, log: Log) -> Any:
    """Run a node, and note what it draws."""
    if not isinstance(node, Measurement):
        return node.run(context, records, source, log)
    if log is not None:
        log.append(one_drawn(node, context))
    return source.measure(node, context, records)


def all_drawn(node: Node) -> Drawn:
    """Describe the draws of a node, as far as these are fixed before anything is released."""
    if isinstance(node, Measurement):
        return one_drawn(node, None)
    return node.composed([all_drawn(one) for one in node.nodes])


def _require(cost: Cost, total: Price) -> None:
    whole = cost_of(total)
    within = cost.epsilon <= whole.epsilon
    if not whole.is_pure:
        within = cost.rho is not None and whole.rho is not None and cost.rho <= whole.rho
    if not within:
        raise ValueError("measurements must cost no more than their total.")


def leaves(node: Node, *, possible: bool = False) -> Iterator[Measurement]:
    """Yield the measurements of a node, from left to right; perhaps of all possible choices."""
    if isinstance(node, Measurement):
        yield node
    else:
        for one in node.possible if possible and isinstance(node, AdaptiveChoice) else node.nodes:
            yield from leaves(one, possible=possible)


def _weakest(node: Node) -> str:
    """Return the weakest status of a node and all its possible choices."""
    # Whatever a class says of itself, it must be registered.
    every = leaves(node, possible=True)
    both = (s for one in every for s in (one.status, status_of([type(one)])))
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
    context : mapping
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
    context: Context = field(default_factory=dict)
    same_group: bool = False

    def __post_init__(self) -> None:
        if not self.cost.within(self.epsilon, self.allowed_delta):
            raise ValueError("measurements must cost no more than epsilon and delta together.")

    @cached_property
    def cost(self) -> Cost:
        """Cost of all measurements together."""
        return self.tree.cost

    @property
    def leaves(self) -> list[Measurement]:
        """The measurements; of each choice, those of the first possible node."""
        return list(leaves(self.tree))

    @property
    def only_measurement(self) -> Measurement | None:
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
        of_leaves = (text for leaf in leaves(self.tree, possible=True) for text in leaf.assumptions)
        kinds = filter(is_asserted, self.unproved)
        asserted = (WORDS["assumptions"]["asserted"].format(name=name_of(kind)) for kind in kinds)
        return tuple(dict.fromkeys([*self.assumed, OWN_RECORD, *of_leaves, *asserted]))

    @property
    def unproved(self) -> list[type]:
        """Classes that a claim rests on, and no registered theorem is about."""
        every = [] if math.isinf(self.epsilon) else leaves(self.tree, possible=True)
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
            status=weakest_status([status, self.status, _weakest(self.tree)]),
            public_inputs=self.public_inputs(),
            assumptions=(*self.assumptions, *about),
            source="; ".join(dict.fromkeys(leaf.proof for leaf in self.leaves if leaf.proof)),
        )

    def run(self, records: Any, source: RandomSource, log: Log = None) -> dict[str, Any]:
        """Return released values and the context, but for names with a leading underscore.

        What was drawn is appended to the log.
        """
        context = {**self.context, **_run(self.tree, self.context, records, source, log)}
        return {name: value for name, value in context.items() if name[:1] != "_"}
