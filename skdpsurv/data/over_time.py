"""How the effect of a public column changes over time, as its specification states it.

``"over_time"`` is ``"log"``, ``{"steps": [2, 5]}`` or ``{"spline": 3}``: an effect changes with the
logarithm of time, at stated times, or along a natural cubic spline up to the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from skdpsurv.data.natural_spline import curve, natural_basis
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.checks import is_integer, is_real
from skdpsurv.dp.types import FloatArray

#: Degrees of freedom of splines of time, and steps, at most.
LARGEST_DF, MOST_STEPS = 4, 8
RULE = (
    "have over_time as 'log', {'steps': times} with increasing positive times, at most "
    f"{MOST_STEPS}, or {{'spline': df}} with df from 2 to {LARGEST_DF}"
)


@dataclass(frozen=True)
class OverTime:
    """Public functions of time by which an effect changes.

    Parameters
    ----------
    kind : {"log", "steps", "spline"}
    numbers : tuple of float
        Times of steps, or degrees of freedom.
    """

    kind: str
    numbers: tuple[float, ...] = ()

    @classmethod
    def specified(cls, column: str, stated: Any) -> Self:
        """Return the functions that a specification states, or refuse it."""
        if isinstance(stated, str):
            require(stated == "log", column, RULE)
            return cls("log")
        require(isinstance(stated, Mapping) and len(stated) == 1, column, RULE)
        ((kind, content),) = stated.items()
        if isinstance(kind, str) and kind == "spline":
            require(is_integer(content) and 2 <= content <= LARGEST_DF, column, RULE)
            return cls("spline", (float(content),))
        require(isinstance(kind, str) and kind == "steps", column, RULE)
        times = items(column, "over_time", content)
        fits = 1 <= len(times) <= MOST_STEPS and all(map(is_real, times))
        numbers = [float(one) for one in times] if fits else []
        rising = all(one < other for one, other in pairwise([0.0, *numbers]))
        require(fits and rising and numbers[-1] < np.inf, column, RULE)
        return cls("steps", tuple(numbers))

    def described(self) -> Any:
        """Return the specification, as JSON has it."""
        if self.kind == "log":
            return "log"
        return {self.kind: int(self.numbers[0]) if self.kind == "spline" else list(self.numbers)}

    @property
    def names(self) -> list[str]:
        """Names of the functions, which follow that of a covariate."""
        if self.kind == "log":
            return ["log(time)"]
        if self.kind == "steps":
            return [f"after {time:.6g}" for time in self.numbers]
        return [f"time spline {j}" for j in range(1, int(self.numbers[0]) + 1)]

    @property
    def _curves(self) -> tuple[tuple[float, ...], ...]:
        """Curves of a spline, over [-1, 1]."""
        inner = np.linspace(-1.0, 1.0, int(self.numbers[0]) + 1)[1:-1].tolist()
        return natural_basis(tuple(inner))

    def _raw(self, n_intervals: int, max_time: float) -> FloatArray:
        share = np.arange(1, n_intervals + 1) / n_intervals
        if self.kind == "log":
            return np.asarray(np.log(share)[:, None])
        if self.kind == "steps":
            return (share[:, None] * max_time > np.array(self.numbers)).astype(np.float64)
        return np.column_stack([curve(one, 2.0 * share - 1.0) for one in self._curves])

    def values(self, n_intervals: int, max_time: float) -> FloatArray:
        """Return the functions in each interval, shape (n_intervals, n_functions); means are 0.

        An interval is after a time if its right end is.
        """
        found = self._raw(n_intervals, max_time)
        return np.asarray(found - found.mean(axis=0))

    def written(self, n_intervals: int, max_time: float, number: Callable[[Any], str]) -> list[str]:
        """Return the functions as formulas of t, a share of the horizon."""
        if self.kind == "log":
            found = ["log(t)"]
        elif self.kind == "steps":
            found = [f"indicator(t * {number(max_time)} > {number(one)})" for one in self.numbers]
        else:
            found = []
            for a, b, *rest in self._curves:
                cubes = [
                    f"{number(size)} * cube(2 * t - 1 - {number(knot)})"
                    for knot, size in zip(rest[::2], rest[1::2], strict=True)
                ]
                found.append(" + ".join([number(a), f"{number(b)} * (2 * t - 1)", *cubes]))
        means = self._raw(n_intervals, max_time).mean(axis=0)
        return [f"{one} - {number(mean)}" for one, mean in zip(found, means, strict=True)]

    def check(self, column: str, n_intervals: int, max_time: float) -> None:
        """Refuse functions that the grid cannot tell apart."""
        found = self.values(n_intervals, max_time)
        rank = int(np.linalg.matrix_rank(found, tol=1e-9 * n_intervals))
        rule = "have over_time with steps before max_time, and enough intervals to tell its "
        require(rank == found.shape[1], column, f"{rule}functions apart")
