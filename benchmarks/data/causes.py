"""Competing causes of events: raw columns with public bounds, times, and the number of a cause.

Simulated people have a hazard of each cause, exponential in columns that are uniform on [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.data.survival import survset_frame
from benchmarks.harness import Missing

#: Larger sets are cut to this, for time.
MOST_RECORDS = 12_000


class Competing(NamedTuple):
    """People: columns with what is stated of each, times, causes (0 none), horizon and intervals.

    ``labels`` are the names of causes 1, 2 and so on.
    """

    X: pd.DataFrame
    stated: dict[str, Any]
    time: np.ndarray
    cause: np.ndarray
    labels: tuple[str, ...]
    max_time: float
    n_intervals: int

    @property
    def causes(self) -> list[int]:
        """Numbers of the causes."""
        return list(range(1, len(self.labels) + 1))


def _flchain() -> Competing:
    """People of Olmsted County, by chapter of death, in years since their sample."""
    from sksurv.datasets import load_flchain

    frame, y = load_flchain()
    labels = ("Circulatory", "Neoplasms", "other")
    chapter = np.where(frame.chapter.isin(labels[:2]), frame.chapter.astype(str), labels[2])
    cause = np.where(y["death"], [1 + labels.index(one) for one in chapter], 0)
    X = frame[["age", "kappa", "lambda", "creatinine", "sex"]].assign(sex=frame.sex.astype(str))
    stated = {
        "age": (50, 100),
        "kappa": {"log": (0.1, 10)},
        "lambda": {"log": (0.1, 10)},
        "creatinine": {"log": (0.3, 5), "missing": "midpoint"},
        "sex": ["F", "M"],
    }
    return Competing(X, stated, y["futime"] / 365.25, cause, labels, 14.0, 200)


def _stays() -> Competing:
    """Days in hospital until death or discharge: made-up people of the package pydts."""
    try:
        from pydts.examples_utils.generate_simulations_data import __file__ as package
    except ImportError as error:
        raise Missing("needs pydts") from error
    from pathlib import Path

    folder = Path(package).parent.parent / "datasets"
    frame = pd.read_csv(folder / "LOS_simulated_data.csv").iloc[:MOST_RECORDS]
    died = frame.In_hospital_death.to_numpy() == 1
    time = np.where(died, frame.Death_relative_date_in_hosp, frame.Discharge_relative_date)
    flags = ["Sex", "Firstadm", "Hypertension", "Diabetes", "AF", "COPD", "CRF"]
    stated = {"Age": (20, 100), "Smoking": (0, 2)} | dict.fromkeys(flags, (0, 1))
    cause = np.where(died, 1, 2)
    return Competing(frame[list(stated)], stated, time, cause, ("death", "discharge"), 28.0, 28)


def _follic() -> Competing:
    """Follicular lymphoma: relapse, or death without one, in years (SurvSet)."""
    frame = survset_frame("follic")
    X = pd.DataFrame(
        {
            "age": frame.num_age,
            "haemoglobin": frame.num_hgb,
            "stage": frame.fac_clinstg.astype(str),
            "chemotherapy": frame.fac_ch.astype(str),
        }
    )
    stated: dict[str, Any] = {"age": (15, 95), "haemoglobin": (50, 200)}
    stated |= {name: sorted(X[name].unique()) for name in ("stage", "chemotherapy")}
    time, cause = frame.time.to_numpy(float), frame.event.to_numpy(int)
    return Competing(X, stated, time, cause, ("relapse", "death"), 20.0, 200)


def _simulated(n: int, d: int, hazards: tuple[float, ...], losses: float) -> Competing:
    rng = np.random.default_rng(n + d)
    X = rng.uniform(-1.0, 1.0, (n, d))
    coef = rng.normal(0.0, 1.5 / np.sqrt(d), (len(hazards), d))
    times = [
        rng.exponential(np.exp(-X @ own) / hazard)
        for own, hazard in zip(coef, hazards, strict=True)
    ]
    times = np.array([rng.exponential(1.0 / losses, n), *times])
    names = [f"x{j + 1}" for j in range(d)]
    labels = tuple("abcdef"[: len(hazards)])
    frame, stated = pd.DataFrame(X, columns=names), dict.fromkeys(names, (-1, 1))
    return Competing(frame, stated, times.min(axis=0), times.argmin(axis=0), labels, 1.0, 200)


_READ: dict[str, Callable[[], Competing]] = {
    "flchain": _flchain,
    "two alike, 5,000": lambda: _simulated(5_000, 4, (0.4, 0.4), 0.3),
    "one rare, 5,000": lambda: _simulated(5_000, 4, (0.6, 0.06), 0.3),
    "hospital stays": _stays,
    "follic": _follic,
    "three, 10,000": lambda: _simulated(10_000, 8, (0.8, 0.4, 0.2), 0.5),
    "many events, 3,000": lambda: _simulated(3_000, 3, (1.5, 1.0), 0.2),
}


@cache
def competing(name: str) -> Competing:
    """Return a data set; events beyond the horizon count as none."""
    found = _READ[name]()
    time = np.maximum(np.asarray(found.time, dtype=float), 1e-9 * found.max_time)
    cause = np.where(time <= found.max_time, found.cause, 0)
    return found._replace(time=np.minimum(time, found.max_time), cause=cause)
