"""With 40 columns, what a delta of 1/n² gains in C-index and AUC: when a fit should say so.

Columns are 40 of those of a data set, drawn once. Labels of the classifier are whether there was
an event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import simulated, survset
from benchmarks.data.survival import Survival
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, interval
from benchmarks.rivals.worker import logistic, scores
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression
from skdpsurv.data.shape import helpful_delta
from skdpsurv.evaluation import concordance_index

N_COLUMNS = 40
SETS = ("rhc", "support2", "simulated")
#: Records for training and epsilon.
BUDGETS = ((500, 0.5), (500, 1.0), (500, 3.0), (1500, 0.5), (1500, 1.0), (4000, 0.5), (4000, 1.0))
MODELS = ("hazard", "logistic")
#: A gain that is worth a sentence, in the mean of the sets.
LARGE = 0.03


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(SETS, SETS[-1:]):
        for n, epsilon in setting.of(BUDGETS, BUDGETS[:2]):
            for model in MODELS:
                yield {"data": name, "n": n, "epsilon": epsilon, "model": model}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return scores on records left out, without and with a delta."""
    name, n, epsilon = case["data"], case["n"], case["epsilon"]
    data = simulated(8_000, N_COLUMNS) if name == "simulated" else survset(name)
    X = data.X[:, np.random.default_rng(0).permutation(data.X.shape[1])[:N_COLUMNS]]
    order = np.random.default_rng(seed(name, n, repetition)).permutation(data.time.size)
    found = {}
    for what, delta in (("pure", 0.0), ("delta", float(n) ** -2)):
        options = {"delta": delta, "random_state": seed(*case.values(), repetition, what)}
        found[what] = _score(case["model"], data, X, order[:n], order[n:], epsilon, options)
    return found


def _score(
    model: str,
    data: Survival,
    X: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    epsilon: float,
    options: dict[str, Any],
) -> float:
    if model == "hazard":
        hazard = DPDiscreteTimeSurvival(epsilon, max_time=data.max_time, **options)
        hazard.fit(X[train], data.y[train])
        return concordance_index(data.y[test], hazard.predict(X[test]))
    norm, y = np.sqrt(N_COLUMNS) / 2.0, data.event.astype(int)
    classifier = DPLogisticRegression(epsilon, classes=[0, 1], data_norm=norm, **options)
    odds = classifier.fit(X[train], y[train]).decision_function(X[test])
    return scores(y[test], *logistic(odds))[0]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    table, told = [], []
    for (model, n, epsilon), own in rows.groupby(["model", "n", "epsilon"]):
        gains = own.assign(gain=own.delta - own.pure).pivot(
            index="repetition", columns="data", values="gain"
        )
        is_said = bool(helpful_delta(int(n), epsilon, N_COLUMNS, N_COLUMNS))
        told.append((is_said, gains.mean().mean()))
        cells = [cell(gains[name].dropna().to_numpy()) if name in gains else "" for name in SETS]
        overall, width = interval(gains.mean(axis=1).to_numpy())
        size = f"{n:,}", f"{epsilon:g}", f"{n * epsilon / N_COLUMNS:.3g}"
        mean = f"{overall:.3f} ± {width:.3f}"
        table.append((model, *size, *cells, mean, "yes" if is_said else "no"))
    found = pd.DataFrame(told, columns=["said", "mean"])
    quiet, loud = (found[found.said == said]["mean"] for said in (False, True))
    pages.table(
        "delta_columns",
        ("model", "records", "ε", "n ε for each column", *SETS, "mean", "said"),
        table,
        f"Where a fit says so, the mean gain is {loud.min():.3f} to {loud.max():.3f} "
        f"({loud.mean():.3f} on average), elsewhere at most {quiet.max():.3f}. It is "
        f"at least {LARGE:g} in {int((loud >= LARGE).sum())} of {len(loud)} such rows, and in "
        f"{int((quiet >= LARGE).sum())} of {len(quiet)} others.",
        f"Gain in C-index, or in the classifier's AUC, by δ = 1/n², {N_COLUMNS} columns, "
        f"{rows.repetition.max() + 1} divisions and draws of noise, ± 95 %. Said: whether a fit "
        "without a delta says so.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=40, quick=2)
