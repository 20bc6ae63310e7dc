"""What was found of each part of a fit, and what it may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skdpsurv.audit.subject import at_most
from skdpsurv.dp.privacy_cost import epsilon_or_mu
from skdpsurv.mechanisms.descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.mechanisms.sums import Sum
from tests.support.draw_ratio import is_gaussian, ratio
from tests.support.replay import DrawnOnce, Replay, ReplayedPart

__all__ = ["AuditedPart", "audited_parts"]


@dataclass(frozen=True)
class AuditedPart:
    """One part of a fit."""

    name: str
    law: str
    found: float
    allowed: float
    unit: str
    source: int = 0

    @property
    def share(self) -> float:
        """How much of what is allowed was found."""
        return self.found / self.allowed

    @property
    def passed(self) -> bool:
        """Whether it does not cost more than it may."""
        return at_most(self.found, self.allowed)

    @property
    def rho(self) -> float:
        """What was found, in zCDP."""
        return 0.5 * self.found**2


def audited_parts(one: Replay, other: Replay, n_cells: int) -> list[AuditedPart]:
    """Return what was found of all parts that either replay has begun."""
    found = []
    groups = [_grouped(one.parts), _grouped(other.parts)]
    for mine, theirs in zip(*groups, strict=False):
        if isinstance(mine[0].what, Problem):
            found += _of_problems(mine, theirs, n_cells)
        elif mine[0].what is not None or mine[0].drawn:
            found.append(_of_query(mine[0], theirs[0], n_cells))
    return found


def _grouped(parts: Sequence[ReplayedPart]) -> list[list[ReplayedPart]]:
    """Return parts, those of problems that share a price together."""
    groups: dict[Any, list[ReplayedPart]] = {}
    for place, part in enumerate(parts):
        shared = part.what.price if isinstance(part.what, Problem) else None
        groups.setdefault(place if shared is None else shared, []).append(part)
    return list(groups.values())


def _of_query(one: ReplayedPart, other: ReplayedPart, n_cells: int) -> AuditedPart:
    # Of several sums that are released at once each has the price for itself.
    each = isinstance(one.what, Sum)
    law = one.drawn[0].draw.law if one.drawn else "nothing drawn"
    return _priced(
        one.what if isinstance(one.what, str) else type(one.what).__name__,
        law,
        _ratio_of(one.drawn, other.drawn, n_cells, each=each),
        one,
        other,
    )


def _ratio_of(
    one: Sequence[DrawnOnce], other: Sequence[DrawnOnce], n_cells: int, *, each: bool = False
) -> float:
    if not one or len(one) != len(other):
        return math.inf
    if len({is_gaussian(draw) for draw in one}) > 1:
        return math.inf
    ratios = [ratio(a, b, n_cells, each=each) for a, b in zip(one, other, strict=True)]
    total = math.fsum(ratios)
    return math.sqrt(total) if is_gaussian(one[0]) else total


def _priced(
    name: str, law: str, found: float, one: ReplayedPart, other: ReplayedPart
) -> AuditedPart:
    allowed = math.inf if one.price is None else epsilon_or_mu(one.price)
    if one.price != other.price:  # what is public must not depend on records
        found = math.inf
    unit = "mu" if "Gaussian" in law else "epsilon"
    return AuditedPart(name, law, found, allowed, unit, one.source)


def _of_problems(
    one: Sequence[ReplayedPart], other: Sequence[ReplayedPart], n_cells: int
) -> list[AuditedPart]:
    """Return what was found of minimisers that share a price, and of what hides their solvers."""
    if len(one) != len(other):
        return [_priced("minimisers", "other in number", math.inf, one[0], other[0])]
    mine, theirs, solvers, spent = [], [], [], 0.0
    for a, b in zip(one, other, strict=True):
        how = a.what.calibration
        descends = isinstance(how, DescentCalibration)
        hides_solver = how.output is not None and how.linear is not None
        wanted = how.n_steps if descends else (how.linear is not None) + (how.output is not None)
        if len(a.drawn) != wanted or len(b.drawn) != wanted:
            return [_priced("minimiser", "not all drawn", math.inf, one[0], other[0])]
        end = wanted - hides_solver
        mine += a.drawn[:end]
        theirs += b.drawn[:end]
        if hides_solver:
            solvers.append(_solver(a, a.drawn[-1], b.drawn[-1]))
            spent += how.epsilon_solver
    name = (
        "noisy gradients"
        if isinstance(one[0].what.calibration, DescentCalibration)
        else ("minimiser" if len(one) == 1 else f"{len(one)} minimisers")
    )
    whole = _priced(name, mine[0].draw.law, _ratio_of(mine, theirs, n_cells), one[0], other[0])
    rest = whole.allowed - spent
    whole = AuditedPart(name, whole.law, whole.found, rest, whole.unit, whole.source)
    if not whole.found:  # the records are other people's, and so were the solvers'
        solvers = [AuditedPart(s.name, s.law, 0.0, s.allowed, s.unit, s.source) for s in solvers]
    return [whole, *solvers]


def _solver(part: ReplayedPart, one: DrawnOnce, other: DrawnOnce) -> AuditedPart:
    """Return how far apart solvers may end that are certified, in the scale of what hides it."""
    how = part.what.calibration
    apart = 2.0 * how.certificate.tolerance / how.kappa
    found = ratio(one, other, 1)
    if not math.isinf(found):
        found = max(found, apart / one.draw.scale)
    return AuditedPart("solver", one.draw.law, found, how.epsilon_solver, "epsilon", part.source)
