"""Complete cases of flchain, beside the Cox regressions of Fukuyama et al. (arXiv 2604.21491).

Of each number their summary tells what it was on most settings: at epsilon 1 and below, C near 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.data import split, survival
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import INTERVAL, Pages, cell, interval
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.datasets import load_flchain
from skdpsurv.evaluation import concordance_index

EPSILONS = (0.1, 0.2, 0.5, 1.0, math.inf)
#: "Test C-index approximately 0.5 under many conditions" at epsilon 1 and below.
THEIRS = "near 0.5"


def cases(setting: Setting) -> Iterator[Case]:
    for epsilon in setting.of(EPSILONS, EPSILONS[-2:]):
        yield {"epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the C-index on the records left out."""
    data = survival(setting, "flchain")
    complete = np.flatnonzero(load_flchain().X.notna().all(axis=1))
    train, test = (complete[rows] for rows in split(complete.size, repetition))
    model = DPDiscreteTimeSurvival(
        case["epsilon"],
        max_time=data.max_time,
        random_state=seed("complete", *case.values(), repetition),
    ).fit(data.X[train], data.y[train])
    found = concordance_index(data.y[test], model.predict(data.X[test]))
    return {"c": found, "records": complete.size}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    table = []
    for epsilon, own in rows.groupby("epsilon"):
        label = f"{epsilon:g}" if np.isfinite(epsilon) else "no privacy"
        table.append((label, THEIRS if np.isfinite(epsilon) else "", cell(own.c.to_numpy())))
    least = rows.epsilon.min()
    mean, width = interval(rows[rows.epsilon == least].c.to_numpy())
    pages.table(
        "flchain_complete",
        ("ε", "Fukuyama et al.", "skdpsurv"),
        table,
        f"At ε = {least:g} the C-index is {mean:.3f} ± {width:.3f}. Theirs is a summary's “under "
        "many conditions”, with bounds read off the records, which promises less.",
        f"C-index on records left out, {rows.records.max():,.0f} complete cases, "
        f"{rows.repetition.max() + 1} random splits, 70/30. {INTERVAL}",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=40, quick=2)
