"""Intervals of coefficients of two competing causes, of which one has a fifth of the events.

The truth is the estimand of many people, with the centre, scales, radius and caps of that very
release.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.class_intervals import KEYS, SHARE, counts_by_column, write
from skdpsurv import DPCompetingRisks, PublicColumns

#: Fits of one measurement, and people whose estimand is the truth.
FITS, EVERYBODY = 10, 20_000
#: People, records, epsilon, delta.
TRIED = (("clinic", 5_000, 3.0, 0.0), ("registry", 5_000, 3.0, 0.0))
CAUSES = np.array(["alive", "relapse", "death"])
BOUNDS: dict[str, dict[str, Any]] = {
    "clinic": {"age": (30, 100), "treated": bool, "creatinine": (0, 3)},
    "registry": {"a": (-4, 4), "b": (-4, 4), "g": (0, 4)},
}
MAX_TIME = {"clinic": 5.0, "registry": 2.0}


class Sample(NamedTuple):
    """People, and what happened to them at what time."""

    X: pd.DataFrame
    y: tuple[np.ndarray, np.ndarray]


def cases(setting: Setting) -> Iterator[Case]:
    for case in setting.of(TRIED, TRIED[:1]):
        yield dict(zip(KEYS, case, strict=True))


def sample(people: str, n: int, rng: np.random.Generator) -> Sample:
    """Return new people."""
    shape = 1.0
    if people == "clinic":
        age, treated, marker = rng.normal(size=n), rng.random(n) < 0.5, rng.normal(0.0, 0.6, n)
        X = pd.DataFrame({"age": 65.0 + 10.0 * age, "treated": treated})
        X["creatinine"] = np.exp(marker)
        z = np.column_stack([age, treated, np.minimum(np.exp(marker), 3.0)])
        first = 0.25 * np.exp(z @ [0.7, -0.4, 0.3] - 0.4)
        second = 0.035 * np.exp(z @ [-0.3, 0.5, 0.4] - 0.4)
        last = rng.uniform(0.0, 8.0, n)
    else:
        both = rng.normal(size=(n, 2)) @ [[1.0, 0.6], [0.0, 0.8]]
        z, shape = np.column_stack([both, np.minimum(rng.gamma(1.5, 1.0, n), 4.0)]), 1.5
        X = pd.DataFrame(z, columns=[*BOUNDS[people]])
        first = 0.4 * np.exp(z @ [0.5, 0.3, -0.4])
        second = 0.07 * np.exp(z @ [0.6, -0.6, 0.3] - 0.3)
        last = rng.exponential(2.5 * np.exp(-0.3 * z[:, 0]))
    time = rng.exponential(1.0 / (first + second)) ** (1.0 / shape)
    cause = np.where(rng.random(n) < first / (first + second), 1, 2)
    last = np.minimum(last, MAX_TIME[people])
    return Sample(X, (CAUSES[np.where(time > last, 0, cause)], np.minimum(time, last)))


@cache
def everybody(people: str) -> Sample:
    """Return the people whose estimand is the truth."""
    return sample(people, EVERYBODY, np.random.default_rng(seed(people, EVERYBODY)))


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each cause and column how many intervals are finite and hold the truth."""
    found, people = [], case["people"]
    for number in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, number)
        X, y = sample(people, case["n"], np.random.default_rng(key))
        model = DPCompetingRisks(
            case["epsilon"],
            causes=CAUSES[1:].tolist(),
            censored=str(CAUSES[0]),
            max_time=MAX_TIME[people],
            columns=PublicColumns(BOUNDS[people]),
            inference_share=SHARE,
            random_state=key + 1,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        truth = model.estimand(*everybody(people))
        found.append(model.summary[["coef", "se(coef)"]].assign(truth=truth))
    return counts_by_column(found)


def report(rows: pd.DataFrame, pages: Pages) -> None:
    write(rows, pages, "cause_intervals", "Of competing causes")


EXPERIMENT = Experiment(cases, measure, report, repetitions=10)
