"""What was found of each part of a fit, what it may cost, and what all parts cost together."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from skdpsurv.audit.subject import at_most
from skdpsurv.base.pipelines import last_step
from skdpsurv.dp.privacy_cost import epsilon_or_mu, rho_for, search_epsilon
from skdpsurv.dp.selection import RunCount
from skdpsurv.mechanisms.descent import DescentCalibration
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.mechanisms.sums import Sum
from skdpsurv.model_selection import PrivateSearchCV
from tests.support.draw_ratio import ratio


@dataclass(frozen=True)
class AuditedPart:
    name: str
    law: str
    found: float
    allowed: float
    unit: str
    source: int = 0

    @property
    def share(self):
        return self.found / self.allowed

    @property
    def passed(self):
        return at_most(self.found, self.allowed)


def audited_parts(one, other, n_cells):
    """Return what was found of all parts that either replay has begun."""
    found = []
    groups = [_grouped(one.parts), _grouped(other.parts)]
    for mine, theirs in zip(*groups, strict=False):
        if isinstance(mine[0].what, Problem):
            found += _of_problems(mine, theirs, n_cells)
        elif mine[0].what is not None or mine[0].drawn:
            found.append(_of_query(mine[0], theirs[0], n_cells))
    return found


def _grouped(parts):
    groups = {}
    for place, part in enumerate(parts):
        shared = part.what.price if isinstance(part.what, Problem) else None
        groups.setdefault(place if shared is None else shared, []).append(part)
    return list(groups.values())


def _of_query(one, other, n_cells):
    name = one.what if isinstance(one.what, str) else type(one.what).__name__
    law = one.drawn[0].draw.law if one.drawn else "nothing drawn"
    # Of several sums that are released at once each has the price for itself.
    found = _ratio_of(one.drawn, other.drawn, n_cells, each=isinstance(one.what, Sum))
    return _priced(name, law, found, one, other)


def _ratio_of(one, other, n_cells, *, each=False):
    if not one or len(one) != len(other) or len({draw.is_gaussian for draw in one}) > 1:
        return math.inf
    total = math.fsum(ratio(a, b, n_cells, each=each) for a, b in zip(one, other, strict=True))
    return math.sqrt(total) if one[0].is_gaussian else total


def _priced(name, law, found, one, other):
    allowed = math.inf if one.price is None else epsilon_or_mu(one.price)
    if one.price != other.price:  # what is public must not depend on records
        found = math.inf
    unit = "mu" if "Gaussian" in law else "epsilon"
    return AuditedPart(name, law, found, allowed, unit, one.source)


def _of_problems(one, other, n_cells):
    """Return what was found of minimisers that share a price, and of what hides their solvers."""
    if len(one) != len(other):
        return [_priced("minimisers", "other in number", math.inf, one[0], other[0])]
    mine, theirs, solvers, spent = [], [], [], 0.0
    descends = isinstance(one[0].what.calibration, DescentCalibration)
    for a, b in zip(one, other, strict=True):
        how = a.what.calibration
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
    several = "minimiser" if len(one) == 1 else f"{len(one)} minimisers"
    name = "noisy gradients" if descends else several
    whole = _priced(name, mine[0].draw.law, _ratio_of(mine, theirs, n_cells), one[0], other[0])
    whole = replace(whole, allowed=whole.allowed - spent)
    if not whole.found:  # the records are other people's, and so were the solvers'
        solvers = [replace(each, found=0.0) for each in solvers]
    return [whole, *solvers]


def _solver(part, one, other):
    """Return how far apart solvers may end that are certified, in the scale of what hides it."""
    how = part.what.calibration
    apart = 2.0 * how.certificate.tolerance / how.kappa
    found = ratio(one, other, 1)
    if not math.isinf(found):
        found = max(found, apart / one.draw.scale)
    return AuditedPart("solver", one.draw.law, found, how.epsilon_solver, "epsilon", part.source)


# ---- All parts together, as their theorem composes them.


class Whole(NamedTuple):
    """What was found of all parts, what is claimed, and what those that were moved may cost."""

    total: float
    claimed: float
    price: float
    unit: str


def whole_of(fitted, parts, epsilon):
    _, step = last_step(fitted)
    if isinstance(step, PrivateSearchCV) and "expected_runs" in step.guarantee_.public_inputs:
        return _best_of_runs(step, parts, epsilon)
    # Parts whose records are other people's cost nothing: each record is in one of them.
    moved = [part for part in parts if part.found > 0.0]
    if all(part.unit == "epsilon" for part in moved):
        return Whole(_sum(moved, _found), epsilon, _sum(moved, _allowed), "epsilon")
    promise = getattr(step, "guarantee_", None) or step.guarantee
    rho = promise.rho or rho_for(epsilon, promise.delta)
    return Whole(_sum(moved, _rho(_found)), rho, _sum(moved, _rho(_allowed)), "rho")


def _best_of_runs(step, parts, epsilon):
    """Return the price of the best of a random number of runs, and of a last fit to all records."""
    public = step.guarantee_.public_inputs
    count = RunCount.with_mean(float(public["eta"]), float(public["expected_runs"]))
    sources = sorted({part.source for part in parts} - {0})
    last = sources.pop() if step.refit is not None and sources else None
    scoring = [part for part in parts if part.source == 0]
    again = [part for part in parts if part.source == last and part.found > 0.0]

    def of_run(cost):
        runs = [_sum([p for p in parts if p.source == s and p.found > 0], cost) for s in sources]
        return max([*runs, *(cost(part) for part in scoring)], default=0.0)

    def whole(cost):
        if "rho_run" not in public:
            return (2.0 + count.eta) * of_run(cost) + _sum(again, cost)
        rho = _rho(cost)
        return search_epsilon(of_run(rho), step.guarantee_.delta, count, _sum(again, rho))

    return Whole(whole(_found), epsilon, whole(_allowed), "epsilon")


def _sum(parts, cost):
    return math.fsum(cost(part) for part in parts)


def _found(part):
    return part.found


def _allowed(part):
    return 0.0 if math.isinf(part.allowed) else part.allowed


def _rho(cost):
    """What costs a mu, in zCDP."""
    return lambda part: 0.5 * cost(part) ** 2
