"""Records that private curves are measured on: real ones, and simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sksurv.datasets import load_aids, load_gbsg2, load_whas500
from sksurv.nonparametric import kaplan_meier_estimator

from benchmarks._common import survival_sets
from benchmarks._curve_baselines import step
from skdpsurv import DPKaplanMeierFitter
from skdpsurv.data.target import event_and_time

#: Curves are compared, and intervals looked at, while this part is at risk.
LEAST_AT_RISK = 0.1
#: Simulated times are Weibull, in horizons, by shape and scale; censoring is uniform up to LAST.
SIMULATED = {"shape 0.5": (0.5, 0.8), "shape 1": (1.0, 0.8), "shape 3": (3.0, 0.8)}
LAST = 1.5

#: Times at which records have their event or are censored, and which of them are events.
Records = tuple[np.ndarray, np.ndarray]
Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class People:
    """A set of records, with a public horizon."""

    name: str
    durations: np.ndarray
    events: np.ndarray
    max_time: float

    def drawn(self, n: int, seed: int, replace: bool) -> Records:
        """Return n of the records."""
        rng = np.random.default_rng(seed)
        chosen = rng.choice(self.durations.size, n, replace=replace)
        return self.durations[chosen], self.events[chosen]


def real_sets(folder: Path | None) -> list[People]:
    """Return flchain, three sets of scikit-survival, and those of the folder."""
    found = [(data.name, data.y, data.max_time) for data in survival_sets(folder)]
    loaders = {"gbsg2": load_gbsg2, "whas500": load_whas500, "aids": load_aids}
    horizons = {"gbsg2": 2700.0, "whas500": 2400.0, "aids": 365.0}
    found += [(name, load()[1], horizons[name]) for name, load in loaders.items()]
    sets = []
    for name, y, max_time in found:
        event, durations = event_and_time(y)
        late = durations > max_time
        sets.append(People(name, np.minimum(durations, max_time), event & ~late, max_time))
    return sets


def kaplan_meier(durations: np.ndarray, events: np.ndarray) -> Curve:
    """Return the estimate without privacy, as a function of time."""
    at, survival = kaplan_meier_estimator(events, durations)
    return lambda times: step(times, at, survival)


def together(one: Records, two: Records) -> Records:
    """Return records of both."""
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])


def fit(
    records: Records, epsilon: float, max_time: float, seed: int, group: np.ndarray | None = None
) -> DPKaplanMeierFitter:
    """Return a private fit that can be repeated, with noise that records do not share."""
    groups = None if group is None else [0, 1]
    fitter = DPKaplanMeierFitter(
        epsilon, max_time=max_time, groups=groups, random_state=1_000_000 + seed
    )
    return fitter.fit(durations=records[0], event_observed=records[1], group=group)


def weibull(
    n: int, rng: np.random.Generator, shape: float, scale: float, last: float = LAST
) -> Records:
    """Return Weibull times, censored at random and at a horizon of 1."""
    times = scale * rng.weibull(shape, n)
    censored = np.minimum(last * rng.random(n), 1.0)
    return np.minimum(times, censored), times <= censored


@dataclass(frozen=True)
class Population:
    """Records can be drawn from it, and its survival is known."""

    name: str
    max_time: float
    draw: Callable[[int, int], Records]
    survival: Curve
    at_risk: Curve


def populations(folder: Path | None) -> Iterator[tuple[str, Population]]:
    """Yield what kind each is, and the population."""
    for name, (shape, scale) in SIMULATED.items():
        yield "simulated", weibull_population(name, shape, scale)
    for data in real_sets(folder):
        yield "real", real_population(data)


def weibull_population(name: str, shape: float, scale: float) -> Population:
    def draw(n: int, seed: int) -> Records:
        return weibull(n, np.random.default_rng(seed), shape, scale)

    def survival(times: np.ndarray) -> np.ndarray:
        return np.exp(-((times / scale) ** shape))

    return Population(name, 1.0, draw, survival, lambda t: survival(t) * (1.0 - t / LAST))


def real_population(data: People) -> Population:
    ordered = np.sort(data.durations)
    return Population(
        data.name,
        data.max_time,
        lambda n, seed: data.drawn(n, seed, replace=True),
        kaplan_meier(data.durations, data.events),
        lambda times: 1.0 - np.searchsorted(ordered, times) / ordered.size,
    )
