"""The law of the shape that a ladder draws: the probability of each cell, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdpsurv.checks import integer
from skdpsurv.mechanisms.ladder import UNIT, Rungs, highest_level
from skdpsurv.privacy.plan import Plan, Sequential, Total, leaves
from skdpsurv.survival.weibull_counts import CountTable
from skdpsurv.survival.weibull_measurements import Ladder
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
    model: Any, arguments: Sequence[Mapping[str, Any]], n_cells: int
) -> tuple[Plan, list[CountTable]]:
    """Return the plan of two fits, and the counts of their records.

    Parameters
    ----------
    model : WeibullCurve
    arguments : sequence of mapping
        Of ``fit``.
    n_cells : int
    """
    integer(at_least=2)("n_cells", n_cells)
    model._check_parameters()
    shapes = [model._shape(**_of_fit(each)) for each in arguments]
    tables = [model._read(shapes[0], **_of_fit(each)) for each in arguments]
    plan = model._plan(shapes[0])
    if not any(isinstance(leaf, Ladder) for leaf in plan.leaves):
        raise ValueError("estimator must be a DPWeibullFitter, or another that has a ladder.")
    return plan, tables


def ladder_ratio(
    plan: Plan, tables: Sequence[CountTable], n_cells: int
) -> tuple[float, float, float]:
    """Return the largest log ratio of two laws, the shape where it is, and the ladder's epsilon."""
    ladder, knowns = _ladder(plan, tables[0])
    found = (-math.inf, math.nan, ladder.price)
    for known in knowns:
        rungs = [ladder.rungs(known, table) for table in tables]
        laws = [log_law(each, ladder.price, ladder.public.way.n_rungs, n_cells) for each in rungs]
        gaps = np.abs(laws[0] - laws[1])
        cell = int(np.argmax(gaps))
        if gaps[cell] > found[0]:
            node = (cell + 0.5) * grid_step(rungs[0], n_cells)
            found = (float(gaps[cell]), ladder.shape_at(node), ladder.price)
    return found


def _of_fit(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments.get(name) for name in ("X", "y", "durations", "event_observed")}


def _ladder(plan: Plan, table: CountTable) -> tuple[Ladder, list[dict[str, float]]]:
    """Return the ladder that may be drawn, and what may have been released before it."""
    node = plan.tree
    knowns: list[dict[str, float]] = [{}]
    if isinstance(node, Sequential) and isinstance(total := node.nodes[-1], Total):
        n_events = min(max(int(table.events.sum()), 1), table.n_records)
        follow_up = float(np.exp(table.log_time) @ table.records)
        node = total.choose({"n_events": n_events, "follow_up": follow_up})
        knowns = [{"mean_log_event": -part * table.omega} for part in MEANS]
    return next(leaf for leaf in leaves(node) if isinstance(leaf, Ladder)), knowns


def grid_step(rungs: Rungs, n_cells: int) -> int:
    """Return every how many nodes of the grid one is looked at."""
    return max(1, rungs.n_cells // n_cells)
