"""The noise that a release states: query, law, scale, lattice and price of each measurement.

All is public: it follows from the plan, and from what was released before. Numbers are those that
were used, to the last bit, so that a reader can compute the guarantee from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Protocol

from skdpsurv.dp.guarantee import as_json, immutable
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.privacy_cost import Concentrated, Cost, Price, epsilon_or_mu

#: Comparisons of neighbours: name, distance found, distance allowed.
Distances = list[tuple[str, float, float]]
#: Names of distributions of noise on numbers; other mechanisms have names of their own.
LAPLACE, GAUSSIAN, NONE, SUM = "laplace", "gaussian", "none", "sum"
#: Norm of a symmetric matrix: the least S such that it is a difference of semidefinite matrices of
#: trace at most S.
TRACES = "traces"
#: Most levels of a plan in a file.
DEEPEST = 100


@dataclass(frozen=True)
class Noise:
    """The noise that is added to each number of an answer.

    Parameters
    ----------
    law : str
        "laplace" or "gaussian": discrete, on integers; the same after "spherical": on a vector;
        "semidefinite laplace": on a symmetric matrix; "none"; or the name of another law.
    scale : float or tuple of float
        Scale or deviation, as it was drawn; several for histograms with a noise of their own.
    sensitivity : float or tuple of float
        Largest move by one record, in the units of the scale and by the ``norm``.
    norm : {"L1", "L2", "squared L2", "traces"}
    lattice : float or tuple of float
        Spacing of the released numbers, in their unit.
    variance : float
        The largest of a released number, or slightly more.
    """

    law: str
    scale: float | tuple[float, ...]
    sensitivity: float | tuple[float, ...]
    norm: str
    lattice: float | tuple[float, ...]
    variance: float


class Query(Protocol):
    """A question to the records, and the release of its answer."""

    def release(self, exact: Any, price: Price, source: RandomSource) -> Any:
        """Return the exact answer with noise that hides one record at the price."""

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number, in units of the answer."""

    def noise_at(self, price: Price) -> Noise:
        """Return the noise that is added to the answer at a price."""

    def distances(self, one: Any, other: Any) -> Distances:
        """Return distances of the exact answers of neighbours, found and allowed."""


def stated_noise(query: Query, price: Price) -> dict[str, Any]:
    """Return a query and its noise, by name."""
    names: list[str] = [one.name for one in fields(query)] if is_dataclass(query) else []
    own = {"kind": type(query).__name__, **{name: getattr(query, name) for name in names}}
    return {"query": own, **asdict(query.noise_at(price))}


def stated_cost(cost: Cost) -> dict[str, Any]:
    """Return prices, one after another or on records that share nobody, as JSON holds them."""
    each = [_together("sequence", [_price(price) for price in one]) for one in cost.each]
    return _together("disjoint", each)


def noise_of(plan: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return law and variance of the noise on each result of a plan, by its name."""
    found = [] if plan is None else _giving(plan)
    return {one["gives"]: {name: one[name] for name in ("law", "variance")} for one in found}


def _giving(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the measurements of a stated plan whose noisy answer is a value of the release."""
    if "gives" in node:
        yield node
    for one in node.get("nodes", ()):
        yield from _giving(one)


def checked_noise(stated: Any, plan: Mapping[str, Any] | None, *, pooled: bool) -> Any:
    """Return laws and variances by name, frozen; ValueError if they are none, or not the plan's.

    Of a pool they are those of sums, and its plan is made of the plans of its sites. Files of older
    layouts have no plan to follow from.
    """
    found = immutable("noise", stated)
    if not isinstance(found, Mapping) or not all(isinstance(e, Mapping) for e in found.values()):
        raise TypeError("noise of a release must be a mapping of names to mappings.")
    for name, one in found.items():
        law, variance = one.get("law"), one.get("variance")
        is_variance = type(variance) in (int, float) and 0.0 <= variance < 1e300
        is_law = law == SUM if pooled else isinstance(law, str) and law != SUM
        if {*one} != {"law", "variance"} or not is_law or not is_variance:
            raise ValueError(f"noise of a release must hold law and variance of {name[:40]!r}.")
    if plan is None:
        return found
    own = noise_of(plan)
    if pooled:
        each = [(one["gives"], float(one["variance"])) for one in _giving(plan)]
        sums = {name: math.fsum(v for of, v in each if of == name) for name in own}
        own = {name: {"law": SUM, "variance": variance} for name, variance in sums.items()}
    near = all(
        name in own
        and one["law"] == own[name]["law"]
        and math.isclose(one["variance"], own[name]["variance"], rel_tol=1e-9)
        for name, one in found.items()
    )
    if not near or (not pooled and {*found} != {*own}):
        raise ValueError("noise of a release must be that of its plan.")
    return found


def checked_plan(plan: Any) -> Any:
    """Return a frozen plan as releases state it, or refuse what is none."""
    if not isinstance(plan, Mapping | None):
        raise TypeError("plan of a release must be a mapping.")
    try:
        found = immutable("plan", plan)
    except RecursionError:
        raise ValueError("plan of a release must not be so deep.") from None
    if found is not None:
        _require_finite(found, DEEPEST)
        _require_nodes(found)
    return found


def _require_finite(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError("plan of a release must not be so deep.")
    if isinstance(value, float) and math.isinf(value):
        raise ValueError('plan of a release must hold numbers, or "inf".')
    if isinstance(value, Mapping | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            _require_finite(one, levels - 1)


def _require_nodes(node: Any) -> None:
    """Refuse nodes that are no measurements, nor made of nodes."""
    nodes = node.get("nodes", ()) if isinstance(node, Mapping) else None
    given = {"law", "variance"} if isinstance(nodes, tuple) and "gives" in node else set()
    if not isinstance(nodes, tuple) or not {"node", *given} <= {*node}:
        raise ValueError("plan of a release must be made of nodes, as its schema has them.")
    for one in nodes:
        _require_nodes(one)


def plain(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return public values as JSON holds them, with "inf" for infinity."""
    found: dict[str, Any] = as_json(
        immutable("plan", stated), lambda x: "inf" if isinstance(x, float) and math.isinf(x) else x
    )
    return found


def _together(how: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {how: parts}


def _price(price: Any) -> dict[str, Any]:
    unit = "mu" if isinstance(price, Concentrated) else "epsilon"
    return plain({unit: float(epsilon_or_mu(price))})
