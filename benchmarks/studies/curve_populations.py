"""Populations with known survival: simulated ones, and real ones that are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.data import survival
from benchmarks.harness import Setting
from benchmarks.rivals.curve_methods import Curve, kaplan_meier

#: Simulated times are Weibull, in horizons, by shape and scale; censoring is uniform up to LAST.
SIMULATED = {"shape 0.5": (0.5, 0.8), "shape 1": (1.0, 0.8), "shape 3": (3.0, 0.8)}
LAST = 1.5

#: Times at which records have their event or are censored, and which of them are events.
Records = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Population:
    """Records can be drawn from it, and its survival is known."""

    max_time: float
    draw: Callable[[int, int], Records]
    survival: Curve
    at_risk: Curve


@cache
def population(setting: Setting, name: str) -> Population:
    """Return a simulated population, or a data set of which records are drawn with replacement."""
    if name in SIMULATED:
        return weibull_population(*SIMULATED[name])
    data = survival(setting, name)
    ordered = np.sort(data.time)

    def draw(n: int, key: int) -> Records:
        chosen = np.random.default_rng(key).choice(data.time.size, n)
        return data.time[chosen], data.event[chosen]

    return Population(
        data.max_time,
        draw,
        kaplan_meier(data.time, data.event),
        lambda times: 1.0 - np.searchsorted(ordered, times) / ordered.size,
    )


def weibull_population(shape: float, scale: float) -> Population:
    def survives(times: np.ndarray) -> np.ndarray:
        return np.exp(-((times / scale) ** shape))

    return Population(
        1.0,
        lambda n, key: weibull(n, np.random.default_rng(key), shape, scale),
        survives,
        lambda times: survives(times) * (1.0 - times / LAST),
    )


def weibull(
    n: int, rng: np.random.Generator, shape: float, scale: float, last: float = LAST
) -> Records:
    """Return Weibull times, censored at random and at a horizon of 1."""
    times = scale * rng.weibull(shape, n)
    censored = np.minimum(last * rng.random(n), 1.0)
    return np.minimum(times, censored), times <= censored


def together(one: Records, two: Records) -> Records:
    """Return records of both."""
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
