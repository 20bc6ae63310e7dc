"""Hybrid fits of estimators without a private version of their own: Huber, median, Poisson."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
)

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.papers.hybrid_records import PUBLIC, text, two_tables
from skdpsurv import HybridMEstimator

ESTIMATORS = {
    "linear": LinearRegression(),
    "Huber": HuberRegressor(max_iter=1000),
    "median": QuantileRegressor(quantile=0.5, alpha=0.0),
    "Poisson": PoissonRegressor(alpha=0.0, max_iter=1000),
}
COLUMNS, EPSILONS = (2, 10), (1.0, 6.0)


def cases(setting: Setting) -> Iterator[Case]:
    for name in ESTIMATORS:
        for p in COLUMNS:
            for epsilon in setting.of(EPSILONS, (1.0,)):
                yield {"estimator": name, "p": p, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return root mean square differences of private predictions from the non-private fit's."""
    name, p, epsilon = case["estimator"], case["p"], case["epsilon"]
    data = two_tables(p, setting.of(3000, 300), repetition, name)
    estimator = ESTIMATORS[name]
    theirs = clone(estimator).fit(data.X_private, data.y_private).predict(data.X_private)

    def error(model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(data.X_private) - theirs) ** 2)))

    found = {"public": error(clone(estimator).fit(data.X_public, data.y_public))}
    for method, option in (("cells", "cells"), ("default", "auto")):
        key = seed(name, p, epsilon, method, repetition)
        model = HybridMEstimator(estimator, epsilon, random_state=key, method=option)
        found[method] = error(model.fit(data.rows, data.outcomes, public=data.public))
    return found


def report(rows: pd.DataFrame, pages: Pages) -> None:
    epsilons, groups = sorted(rows.epsilon.unique()), rows.groupby(["estimator", "p", "epsilon"])
    values = dict(iter(groups))
    cells = [
        (
            name,
            p,
            text(values[name, p, epsilons[0]]["public"].to_numpy()),
            *(
                text(values[name, p, epsilon][method].to_numpy())
                for epsilon in epsilons
                for method in ("cells", "default")
            ),
        )
        for name in ESTIMATORS
        for p in COLUMNS
        if all((name, p, epsilon) in values for epsilon in epsilons)
    ]
    means = groups[["public", "cells", "default"]].mean()
    ratio = means["default"] / means["public"]
    ahead = int((means["default"] < means["cells"]).sum())
    pages.table(
        "hybrid_estimators",
        (
            "estimator",
            "p",
            PUBLIC,
            *(f"{m}, ε = {e:g}" for e in epsilons for m in ("cells", "**default**")),
        ),
        cells,
        f"The default has {ratio.min():.2f} to {ratio.max():.2f} times the error of public only, "
        f"and a smaller one than cells in {ahead} of {len(means)} rows and budgets.",
        "Root mean square difference of private predictions from those of the non-private fit, in "
        f"units of the outcome; {rows.repetition.max() + 1} repetitions of coefficients, records "
        f"and noise; {'300' if pages.quick else '3,000'} records of each kind; ± is half a 95 % "
        "interval.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=20)
