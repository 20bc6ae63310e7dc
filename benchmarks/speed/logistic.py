"""A private logistic fit beside diffprivlib's, and scikit-learn's without privacy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from benchmarks.rivals.classification import ENVIRONMENT, VERSION
from benchmarks.speed.fits import seconds
from skdpsurv import DPLogisticRegression, PrivateStackingClassifier

OURS, RIVAL, STACK = "skdpsurv", "diffprivlib", "skdpsurv, stack of 5 groups"
MODELS: dict[str, Any] = {
    OURS: DPLogisticRegression(1.0, classes=[0, 1]),
    "skdpsurv, out_pert": DPLogisticRegression(1.0, classes=[0, 1], method="out_pert"),
    STACK: PrivateStackingClassifier(1.0, n_partitions=5, classes=[0, 1]),
    "scikit-learn, no privacy": LogisticRegression(),
}
#: Rows and columns, and diffprivlib's fits in a round. An audit fits a few rows thousands of times.
SIZES = {(6, 2): 20, (3_000, 100): 9, (100_000, 20): 3, (100_000, 499): 1}
#: So many columns are the indicators of the levels of one category.
LEVELS = 500


@cache
def rows_of_norm_one(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, at most of norm 1, and labels that depend on them; both classes occur."""
    rng = np.random.default_rng(0)
    if p == LEVELS - 1:
        X = (rng.integers(LEVELS, size=(n, 1)) == np.arange(1, LEVELS)).astype(float)
    else:
        X = rng.normal(size=(n, p))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ rng.normal(size=p) + 0.3 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def cases(setting: Setting) -> Iterator[Case]:
    for n, p in setting.of(list(SIZES), [(3_000, 100)]):
        for name in (RIVAL, *MODELS):
            if name != STACK or p >= 5:
                yield {"rows": n, "columns": p, "fit": name}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the processor time of a fit, the median of some after one that does not count."""
    size = int(case["rows"]), int(case["columns"])
    X, y = rows_of_norm_one(*size)
    if case["fit"] == RIVAL:
        return {"seconds": ENVIRONMENT.run(setting, "seconds", {"X": X, "y": y}, fits=SIZES[size])}
    model = MODELS[case["fit"]].fit(X, y)
    return {"seconds": seconds(lambda: model.fit(X, y))}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    median = rows.groupby(["rows", "columns", "fit"]).seconds.median().unstack()
    theirs = median[RIVAL] if RIVAL in median else pd.Series(np.nan, median.index)
    table = [
        (f"{n:,} x {p}", name, f"{1e3 * times[name]:.1f} ms", f"{times[name] / theirs[n, p]:.2f}")
        for (n, p), times in median.iterrows()  # type: ignore[misc]
        for name in (RIVAL, *MODELS)
        if times.notna().get(name, False)
    ]
    ratio = (median[OURS] / theirs).dropna()
    said = ", ".join(f"{value:.1f} with {n:,} x {p}" for (n, p), value in ratio.items())  # type: ignore[misc]
    pages.table(
        "speed_logistic",
        ("rows", "fit", "time", "over diffprivlib's"),
        table,
        f"A private fit takes {said} times as long as diffprivlib's."
        if len(ratio)
        else "diffprivlib was not there.",
        f"Simulated rows of norm 1; epsilon = 1, otherwise defaults, with an intercept; median of "
        f"{rows.repetition.max() + 1} rounds, in turn, of processor time on one thread. "
        f"diffprivlib {VERSION}."
        + f" {LEVELS - 1} columns are those of {LEVELS} levels."
        * (LEVELS - 1 in rows["columns"].values),
    )


LOGISTIC_SPEED = Experiment(cases, measure, report, repetitions=5, timed=True)
