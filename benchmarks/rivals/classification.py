"""Private logistic regression and its rivals that are purely epsilon-private.

All see the same rows, norms and splits. diffprivlib's C, and alpha of Chaudhuri's algorithm as
published, are also chosen in hindsight, by the mean score on the test rows: no private user can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.data import Labelled, labelled
from benchmarks.environments import Environment
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.rivals.classification_tables import Method, Report
from benchmarks.rivals.worker import SCORES, Prediction, logistic, scores
from skdpsurv import DPLogisticRegression
from skdpsurv.classification import Perturbation
from skdpsurv.published import PublishedLogisticRegression

EPSILONS = (10.0, 3.0, 1.0, 0.3, 0.1)
QUICK_EPSILONS = (1.0,)


@dataclass(frozen=True)
class Repeated:
    """Splits whose mean is a repetition; repetitions, and those of slow rivals."""

    splits: int
    repetitions: int
    slow: int


SETS = {
    "diabetes": Repeated(1, 12, 12),
    "heart disease": Repeated(5, 12, 6),
    "infarction": Repeated(5, 12, 6),
    "GUSTO-I": Repeated(1, 6, 4),
    "readmission": Repeated(1, 6, 4),
    "breast cancer": Repeated(5, 12, 6),
    "digits 0 or 8": Repeated(5, 12, 3),
    "MNIST 0 or 8": Repeated(1, 10, 4),
    "MNIST 4 or 9": Repeated(1, 10, 4),
    "NEWS20": Repeated(1, 10, 4),
}
QUICK_SETS = ("heart disease", "MNIST 0 or 8")

OURS, DIFFPRIVLIB, CHAUDHURI, EXACT = "ours", "diffprivlib", "Chaudhuri", "no privacy"
#: Size of the constant column that makes an intercept: that of our default.
CONSTANT = Perturbation().intercept_scaling
#: Wide: with few records and a small epsilon, the strongest penalties are best.
CS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
ALPHAS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
VERSION = "0.6.6"
ENVIRONMENT = Environment(
    "diffprivlib",
    (f"diffprivlib=={VERSION}", "scikit-learn>=1.6,<1.8"),
    Path(__file__).with_name("diffprivlib_fits.py"),
)
METHODS = (
    Method("skdpsurv", OURS, ("default",)),
    Method("diffprivlib, C = 1", DIFFPRIVLIB, ("C=1",)),
    Method("diffprivlib, best C", DIFFPRIVLIB),
    Method("Chaudhuri, best alpha", CHAUDHURI),
)

#: Fit on rows and labels, predict other rows, with this seed.
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Prediction]


def epsilons(setting: Setting) -> tuple[float, ...]:
    """Return those of this run."""
    return tuple(setting.of(EPSILONS, QUICK_EPSILONS))


def splits(setting: Setting, data: Labelled, repetition: int) -> list[tuple[np.ndarray, ...]]:
    """Return the splits of a repetition."""
    of_each = setting.of(SETS[data.name].splits, 1)
    return [data.split(of_each * repetition + i) for i in range(of_each)]


def here(
    setting: Setting, data: Labelled, repetition: int, fits: list[tuple[float, str, Fit]]
) -> list[Row]:
    """Return mean scores over the splits, of each (epsilon, name, fit)."""
    rows = []
    for epsilon, name, fit in fits:
        found = []
        for i, (train, test) in enumerate(splits(setting, data, repetition)):
            key = seed(data.name, epsilon, name, repetition, i)
            predicted = fit(data.X[train], data.y[train], data.X[test], key)
            found.append(scores(data.y[test], *predicted))
        rows.append(_row(epsilon, name, np.mean(found, axis=0)))
    return rows


def there(
    environment: Environment,
    setting: Setting,
    data: Labelled,
    repetition: int,
    fits: list[tuple[float, str, list[float]]],
    norm: float,
    **options: Any,
) -> list[Row]:
    """Return the same of a rival in its environment: (epsilon, name, what its script is told).

    Rows are divided by ``norm``.
    """
    parts = splits(setting, data, repetition)
    arrays = {
        "X": data.X / norm,
        "y": data.y,
        "orders": np.array([np.concatenate(part) for part in parts]),
        "cut": parts[0][0].size,
    }
    told = [wish for _, _, wish in fits]
    found = environment.run(setting, "accuracy", arrays, settings=told, **options)
    return [_row(e, name, each) for (e, name, _), each in zip(fits, found, strict=True)]


def _row(epsilon: float, name: str, found: Any) -> Row:
    return {"epsilon": epsilon, "setting": name, **dict(zip(SCORES, found, strict=True))}


def private(make: Callable[..., Any], data: Labelled, **options: Any) -> Fit:
    """Return the fit of an estimator of this package."""

    def fit(X: np.ndarray, y: np.ndarray, rows: np.ndarray, key: int) -> Prediction:
        model = make(**({"data_norm": data.data_norm} | options), classes=[0, 1], random_state=key)
        model.fit(X, y)
        return model.decision_function(rows), model.predict_proba(rows)[:, 1]

    return fit


def exact(X: np.ndarray, y: np.ndarray, rows: np.ndarray, key: int) -> Prediction:
    """Fit without privacy."""
    model = LogisticRegression(C=10.0, max_iter=1000).fit(X, y)
    return logistic(model.decision_function(rows))


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(tuple(SETS), QUICK_SETS):
        for family in (OURS, CHAUDHURI, DIFFPRIVLIB, EXACT):
            yield {"data": name, "family": family}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return scores of a family's settings, at every epsilon."""
    data, family = labelled(setting, case["data"]), case["family"]
    if family == EXACT:
        return here(setting, data, repetition, [(np.inf, "linear", exact)])
    if family == DIFFPRIVLIB:
        wishes = [(e, f"C={C:g}", [e, C]) for e in epsilons(setting) for C in CS]
        return there(
            ENVIRONMENT, setting, data, repetition, wishes, data.data_norm, constant=CONSTANT
        )
    if family == CHAUDHURI:
        fits = [
            (e, f"alpha={a:g}", private(PublishedLogisticRegression, data, epsilon=e, alpha=a))
            for e in epsilons(setting)
            for a in ALPHAS
        ]
        return here(setting, data, repetition, fits)
    fits = [
        (e, "default", private(DPLogisticRegression, data, epsilon=e)) for e in epsilons(setting)
    ]
    return here(setting, data, repetition, fits)


def repetitions(case: Case) -> int:
    return SETS[case["data"]].repetitions


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = Report(rows, SETS, METHODS, pages)
    note = (
        f"Best: the C of {len(CS)}, or alpha of {len(ALPHAS)}, with the best mean on the test rows "
        "at this ε. All "
        "have an intercept by the same constant column. Bounds of breast cancer, and components of "
        "MNIST and NEWS20, are computed from the records."
    )
    found.table("classification_pure_auc", "The default is", note)
    found.differences("classification_pure", note)
    found.figure("classification_pure")
    found.compare(skip=())


PURE = Experiment(cases, measure, report, repetitions=repetitions)
