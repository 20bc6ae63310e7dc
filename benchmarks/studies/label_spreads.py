"""Stated spreads of columns: what they gain for classifiers, with careful and careless bounds.

Spreads, means and shares are rounded to one digit, from the rows that are not trained on. Labels of
survival data are whether there was an event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.data import split
from benchmarks.data.labelled import TABLE_BOUNDS, labelled
from benchmarks.data.survset import survset, with_spreads
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPLogisticRegression, PrivateStackingClassifier, PublicColumns

#: Data sets of SurvSet whose name has an even SHA-256, and tables of labelled records.
SURVSET = ("grace", "dataDIVAT1", "prostateSurvival", "colon", "Aids2", "UnempDur", "rott2")
SETS = (*SURVSET, "dataDIVAT2", "GBSG2", *TABLE_BOUNDS)
MOST_RECORDS = 8_000
MODELS = {
    "logistic": (DPLogisticRegression, {}),
    "groups of columns": (PrivateStackingClassifier, {}),
    "parts of rows, stacked": (
        PrivateStackingClassifier,
        {"partition": "samples", "combiner": "logistic"},
    ),
}


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(SETS, ("grace",)):
        for epsilon in setting.of((0.3, 1.0, 3.0), (1.0,)):
            for careless in (False, True):
                yield {"data": name, "epsilon": epsilon, "careless": careless}


def _described(
    setting: Setting, name: str, careless: bool
) -> tuple[pd.DataFrame, np.ndarray, dict]:  # type: ignore[type-arg]
    """Return columns in [-1, 1], labels, and what is stated; careless bounds are thrice as wide."""
    if name in TABLE_BOUNDS:
        data = labelled(setting, name)
        X, y, flags = data.X, data.y, data.flags
    else:
        times = survset(name)
        X, y, flags = times.X, np.asarray(times.event).astype(int), times.flags
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_RECORDS]
    frame = pd.DataFrame(X[rows]).rename(columns="x{}".format)
    stated: dict[str, dict[str, Any]] = {}
    sides = np.random.default_rng(seed(name)).random(len(flags)) < 0.5
    for column, flag, low in zip(frame, flags, sides, strict=True):
        wide = ((-5.0, 1.0) if low else (-1.0, 5.0)) if careless else (-1.0, 1.0)
        stated[column] = {"categories": [0, 1]} if flag else {"bounds": wide}
        if flag:
            frame[column] = (frame[column] > 0).astype(int)
    return frame, np.asarray(y)[rows], stated


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return AUC and log loss of all models, without and with spreads."""
    X, y, stated = _described(setting, case["data"], case["careless"])
    train, test = split(len(X), repetition)
    row: Row = {}
    for spreads, columns in (("", stated), (", spreads", with_spreads(stated, X.iloc[test]))):
        for name, (kind, options) in MODELS.items():
            key = seed(*case.values(), repetition, name)
            model = kind(case["epsilon"], classes=[0, 1], random_state=key, **options)
            model.set_params(columns=PublicColumns(columns)).fit(X.iloc[train], y[train])
            likely = model.predict_proba(X.iloc[test])[:, 1]
            row[f"{name} auc{spreads}"] = roc_auc_score(y[test], likely)
            row[f"{name} loss{spreads}"] = log_loss(y[test], np.clip(likely, 1e-6, 1.0 - 1e-6))
    return row


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells = []
    for name in MODELS:
        for (careless, epsilon), own in rows.groupby(["careless", "epsilon"]):
            cell = [name, f"{epsilon:g}", "careless" if careless else "careful"]
            for what in ("auc", "loss"):
                plain, better = own[f"{name} {what}"], own[f"{name} {what}, spreads"]
                each = (better - plain).groupby(own.data)
                error = math.sqrt((each.var() / each.count()).sum()) / each.ngroups
                mean = [column.groupby(own.data).mean().mean() for column in (plain, better)]
                cell += [f"{mean[0]:.3f}", f"{mean[1]:.3f}", f"{error:.3f}"]
            cells.append(tuple(cell))
    pages.table(
        "label_spreads",
        (
            "model",
            "ε",
            "bounds",
            "AUC",
            "with spreads",
            "error",
            "log loss",
            "with spreads",
            "error",
        ),
        cells,
        "",
        f"Means over {rows.data.nunique()} data sets; {rows.repetition.max() + 1} divisions; a "
        "standard error is that of the difference, by noise and division.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=4)
