"""The law of the shape that a ladder draws: the probability of each cell, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdpsurv.blocks import InMemory
from skdpsurv.checks import integer
from skdpsurv.mechanisms.ladder import UNIT, Rungs, highest_level
from skdpsurv.shape import Shape
from skdpsurv.survival import weibull_plans, weibull_published, weibull_rungs
from skdpsurv.survival.weibull_counts import CountTable, count_table
from skdpsurv.target import fit_target
from skdpsurv.types import FloatArray

__all__ = ["grid_step", "ladder_ratio", "log_law", "plan_and_tables"]


#: Means of log event times, in parts of omega, that the tight ladder may have been given.
MEANS = (0.02, 0.1, 0.2, 0.4, 0.7, 0.95)


def log_law(rungs: Rungs, epsilon: float, n_rungs: int | None, n_cells: int) -> FloatArray:
    """Return the log probabilities of a draw among every so many nodes of the grid.

    Parameters
    ----------
    rungs : Rungs
    epsilon : float
    n_rungs : int or None
        As for :func:`~skdpsurv.mechanisms.ladder.draw_cell`.
    n_cells : int
        How many cells there are, or a few more if that does not divide those of the grid.
    """
    top = highest_level(epsilon, n_rungs)
    step = grid_step(rungs, n_cells)
    n_cells = rungs.n_cells // step
    levels = np.zeros(n_cells)

    # The level of a cell is the largest bound on the way to it, as the mechanism defines it.
    blocks = [(0, n_cells)]
    while blocks:
        start, end = blocks.pop()
        if end - start > 1:
            middle = (start + end) // 2
            below, above = levels[start:middle], levels[middle:end]
            np.maximum(below, min(rungs.down_to(middle * step), top), out=below)
            np.maximum(above, min(rungs.up_to(middle * step), top), out=above)
            blocks += [(start, middle), (middle, end)]
    logs = -0.5 * epsilon * levels / UNIT
    return np.asarray(logs - np.log(np.sum(np.exp(logs))))


def plan_and_tables(
    models: Sequence[Any], arguments: Sequence[Mapping[str, Any]], n_cells: int
) -> tuple[Any, list[CountTable]]:
    """Return the plan of two fits, and the counts of their records.

    Parameters
    ----------
    models : sequence of DPWeibullFitter
        Two, with the same parameters.
    arguments : sequence of mapping
        Of ``fit``.
    n_cells : int
    """
    integer(at_least=2)("n_cells", n_cells)
    model = models[0]
    model._check_parameters()
    if model.method != "ladder":
        raise ValueError("estimator must have method='ladder'.")
    targets = [fit_target(*(each.get(n) for n in _NAMES)) for each in arguments]
    plan = model._plan(Shape(targets[0][1].size, 0))
    tables = [count_table(InMemory([one]), plan.max_time, plan.omega) for one in targets]
    return plan, tables


def ladder_ratio(
    plan: Any, tables: Sequence[CountTable], n_cells: int
) -> tuple[float, float, float]:
    """Return the largest log ratio of two laws, the shape where it is, and the ladder's epsilon."""
    found = (-math.inf, math.nan, math.nan)
    for rungs, epsilon in _ladders(plan, tables):
        one, other = (log_law(each, epsilon, plan.n_rungs, n_cells) for each in rungs)
        gaps = np.abs(one - other)
        cell = int(np.argmax(gaps))
        # In parts of what each ladder may spend, which differs between a tight one's.
        if math.isinf(found[0]) or gaps[cell] / epsilon > found[0] / found[2]:
            node = (cell + 0.5) * grid_step(rungs[0], n_cells)
            found = (float(gaps[cell]), _shape(rungs[0], node, plan.max_shape), epsilon)
    return found


_NAMES = ("X", "y", "durations", "event_observed")


def _ladders(plan: Any, tables: Sequence[CountTable]) -> list[tuple[list[Any], float]]:
    """Return the rungs of both data sets, and epsilon, for each ladder that may be drawn."""
    if isinstance(plan, weibull_plans.Ladder):
        epsilon = plan._shape_share * plan.spendable
        published = isinstance(plan, weibull_plans.PublishedLadder)
        make = weibull_published.PublishedRungs if published else weibull_rungs.ExactRungs
        top = plan._highest_rung(epsilon)
        before = () if published else (plan.left_censored,)
        return [([make(table, plan.max_shape, top, *before) for table in tables], epsilon)]
    n_events = min(max(int(tables[0].events.sum()), 1), plan.n_records)
    follow_up = float(np.exp(tables[0].log_time) @ tables[0].records)
    shares = plan._later_shares(n_events, n_events / follow_up)
    epsilon = shares[1] * plan.spendable
    return [
        (
            [
                weibull_rungs.ReleasedMeanRungs(
                    table, -part * plan.omega, plan.max_shape, plan.left_censored
                )
                for table in tables
            ],
            epsilon,
        )
        for part in MEANS
    ]


def grid_step(rungs: Rungs, n_cells: int) -> int:
    """Return every how many nodes of the grid one is looked at."""
    return max(1, rungs.n_cells // n_cells)


def _shape(rungs: Any, node: float, max_shape: float) -> float:
    if hasattr(rungs, "shape_at"):
        return float(rungs.shape_at(node))
    return weibull_rungs.shape_at(node, max_shape)
