r"""The ratio of two whole fits of a Weibull distribution: of all draws that they make, in turn.

A fit is replayed with a source that is asked instead of drawn from. On one data set each sum is
answered by itself, without noise; on its neighbour the same answers are given. A noisy sum has
:math:`P(k) \propto e^{-|k - v|/s}`, so that at :math:`k = v` the log ratio of the two laws is
:math:`|v - v'|/s`, the largest that there is; of the ladder's cells the one with the largest ratio
is taken. All draws are independent given what was released before: their log ratios add up.
Whatever a fit returns must follow from the answers. If it does not, or noise has another scale on
the neighbour, the records show without bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.audit.ladder_law import grid_step, log_law
from skdpsurv.privacy.randomness import AskedSource
from skdpsurv.survival.weibull_counts import CountTable
from skdpsurv.survival.weibull_plans import Estimate, WeibullPlan

__all__ = ["fit_ratio"]


class Question(NamedTuple):
    """A draw: of numbers around their exact values, or of a cell between rungs."""

    exact: Sequence[int]
    scale: float
    rungs: Any = None
    n_rungs: int | None = None


@dataclass
class Replay:
    """Answers to one fit's questions: those that were given before or, without these, its own.

    Parameters
    ----------
    cell : int
        The answer to what cell is drawn.
    given : list of list of int, or None
    """

    cell: int
    given: list[list[int]] | None = None
    asked: list[Question] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)

    def laplace(self, exact: list[int], scale: float) -> list[int]:
        """Answer what numbers with noise are released."""
        return self._answered(Question(exact, scale), exact)

    def draw_cell(self, rungs: Any, epsilon: float, n_rungs: int | None) -> int:
        """Answer what cell is drawn."""
        return self._answered(Question((), epsilon, rungs, n_rungs), [self.cell])[0]

    def _answered(self, question: Question, own: list[int]) -> list[int]:
        place = len(self.asked)
        self.asked.append(question)
        known = self.given is not None and place < len(self.given)
        self.answers.append(self.given[place] if known and self.given else own)
        return self.answers[-1]

    def of(self, plan: WeibullPlan, table: CountTable) -> Estimate:
        """Run the fit."""
        return plan.run_on_counts(table, AskedSource(self.laplace, self.draw_cell))


def fit_ratio(
    plan: WeibullPlan, tables: Sequence[CountTable], n_cells: int
) -> tuple[float, tuple[float, ...]]:
    """Return the largest log ratio of two fits that was found, and the estimate that it is at.

    Parameters
    ----------
    plan : WeibullPlan
    tables : sequence of CountTable
        Of both data sets.
    n_cells : int
        Of the ladder, that are looked at.
    """
    found = [_one_way(plan, one, other, n_cells) for one, other in (tables, tables[::-1])]
    return max(found, key=lambda each: each[0])


def _one_way(
    plan: WeibullPlan, table: CountTable, neighbour: CountTable, n_cells: int
) -> tuple[float, tuple[float, ...]]:
    # What follows the cell depends on it; what comes before does not.
    first, second, *_ = _both(plan, table, neighbour, 0)
    cell = 0
    for one, other in zip(first, second, strict=False):
        if one.rungs is not None and other.rungs is not None:
            cell = int(np.argmax(_gaps(one, other, n_cells))) * grid_step(one.rungs, n_cells)
    first, second, estimates = _both(plan, table, neighbour, cell)
    where = tuple(math.nan if value is None else float(value) for value in estimates[0])
    if estimates[0] != estimates[1] or len(first) != len(second):
        return math.inf, where
    pairs = list(zip(first, second, strict=True))
    return sum(_ratio(one, other, cell, n_cells) for one, other in pairs), where


def _both(
    plan: WeibullPlan, table: CountTable, neighbour: CountTable, cell: int
) -> tuple[list[Question], list[Question], tuple[Estimate, Estimate]]:
    own = Replay(cell)
    estimate = own.of(plan, table)
    again = Replay(cell, own.answers)
    return own.asked, again.asked, (estimate, again.of(plan, neighbour))


def _ratio(one: Question, other: Question, cell: int, n_cells: int) -> float:
    if one.scale != other.scale or (one.rungs is None) != (other.rungs is None):
        return math.inf
    if one.rungs is not None:
        return float(_gaps(one, other, n_cells)[cell // grid_step(one.rungs, n_cells)])
    return sum(abs(a - b) for a, b in zip(one.exact, other.exact, strict=True)) / one.scale


def _gaps(one: Question, other: Question, n_cells: int) -> Any:
    laws = [log_law(each.rungs, each.scale, each.n_rungs, n_cells) for each in (one, other)]
    return laws[0] - laws[1]
