"""What all parts of a fit cost together, and what they may: as its theorem composes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from skdpsurv.audit.subject import private_step
from skdpsurv.dp.privacy_cost import rho_for, search_epsilon
from skdpsurv.dp.selection import RunCount
from skdpsurv.model_selection import PrivateSearchCV
from tests.support.part_ratio import AuditedPart

__all__ = ["Whole", "whole_of"]

Cost = Callable[[AuditedPart], float]


class Whole(NamedTuple):
    """What was found of all parts, what is claimed, and what those that were moved may cost."""

    total: float
    claimed: float
    price: float
    unit: str


def whole_of(fitted: Any, parts: Sequence[AuditedPart], epsilon: float) -> Whole:
    """Return the price of a transcript."""
    step = private_step(fitted)
    if isinstance(step, PrivateSearchCV) and "expected_runs" in step.guarantee_.public_inputs:
        return _best_of_runs(step, parts, epsilon)
    # Parts whose records are other people's cost nothing: each record is in one of them.
    moved = [part for part in parts if part.found > 0.0]
    if all(part.unit == "epsilon" for part in moved):
        return Whole(_sum(moved, _found), epsilon, _sum(moved, _allowed), "epsilon")
    promise = getattr(step, "guarantee_", None) or step.guarantee
    rho = promise.rho or rho_for(epsilon, promise.delta)
    return Whole(_sum(moved, _found_rho), rho, _sum(moved, _allowed_rho), "rho")


def _best_of_runs(step: Any, parts: Sequence[AuditedPart], epsilon: float) -> Whole:
    """Return the price of the best of a random number of runs, and of a last fit to all records."""
    public = step.guarantee_.public_inputs
    count = RunCount.with_mean(float(public["eta"]), float(public["expected_runs"]))
    sources = sorted({part.source for part in parts} - {0})
    last = sources.pop() if step.refit is not None and sources else None
    scoring = [part for part in parts if part.source == 0]
    again = [part for part in parts if part.source == last]

    def of_run(cost: Cost) -> float:
        runs = [_sum([p for p in parts if p.source == s and p.found > 0], cost) for s in sources]
        return max([*runs, *(cost(part) for part in scoring)], default=0.0)

    moved = [part for part in again if part.found > 0.0]
    if "rho_run" in public:
        delta = step.guarantee_.delta

        def whole(found: Cost) -> float:
            return search_epsilon(of_run(found), delta, count, _sum(moved, found))

        return Whole(whole(_found_rho), epsilon, whole(_allowed_rho), "epsilon")
    times = 2.0 + count.eta
    return Whole(
        times * of_run(_found) + _sum(moved, _found),
        epsilon,
        times * of_run(_allowed) + _sum(moved, _allowed),
        "epsilon",
    )


def _sum(parts: Sequence[AuditedPart], cost: Cost) -> float:
    return math.fsum(cost(part) for part in parts)


def _found(part: AuditedPart) -> float:
    return part.found


def _allowed(part: AuditedPart) -> float:
    return 0.0 if math.isinf(part.allowed) else part.allowed


def _found_rho(part: AuditedPart) -> float:
    return part.rho


def _allowed_rho(part: AuditedPart) -> float:
    return 0.5 * _allowed(part) ** 2
