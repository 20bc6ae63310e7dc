"""Classifiers of sites: alone, from another site's release, pooled, and of all rows together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.data import Organisations, organisations
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, interval
from skdpsurv import DPLogisticRegression, pool_releases
from skdpsurv.classification import Perturbation
from skdpsurv.classification.logistic_regression import ENOUGH

EPSILON = 1.0
#: Of epsilon, at sites whose releases are pooled.
SHARE = 0.3
#: As for stacks that are transferred, where events are rare.
INTERCEPT = 0.3
#: Of each site's records, to judge by.
JUDGED = 0.3
#: At each site but the largest at most so many to fit, or all that it has; and how it is called.
SIZES = {"GUSTO-I": (400, 700, 10_000), "heart disease": (10_000,), "infarction": (10_000,)}
#: Public importance of a column that is used, in points of `benchmarks.data.organisations`.
IMPORTANT = {"GUSTO-I": 2.0, "heart disease": 2.0, "infarction": 1.0}
ALONE, LARGEST, PRIOR, POOLED, ALL = "alone", "largest", "from the largest", "pooled", "all rows"
ONE_WITHOUT, WITHOUT = "alone, no privacy", "all rows, no privacy"
METHODS = (ALONE, LARGEST, PRIOR, POOLED, ALL, ONE_WITHOUT, WITHOUT)


@cache
def data_of(setting: Setting, name: str) -> tuple[Organisations, np.ndarray]:
    """Return records of several organisations, and the columns that are used."""
    found = organisations(setting, name)
    return found, found.X[:, found.importances >= IMPORTANT[name]]


def cases(setting: Setting) -> Iterator[Case]:
    for name, sizes in SIZES.items():
        for at_most in setting.of(sizes, sizes[-1:] if name != "GUSTO-I" else ()):
            yield {"data": name, "at_most": at_most}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return areas under the curve of records that were set aside at every site."""
    data, X = data_of(setting, case["data"])
    norm, y = math.sqrt(X.shape[1]) / 2.0, data.y
    rng = np.random.default_rng(repetition)
    names, sizes = np.unique(data.site, return_counts=True)
    largest = str(names[sizes.argmax()])
    parts: dict[str, np.ndarray] = {}
    judged: list[np.ndarray] = []
    for name in map(str, names):
        rows = rng.permutation(np.flatnonzero(data.site == name))
        cut = int(JUDGED * rows.size)
        judged.append(rows[:cut])
        parts[name] = rows[cut:][: None if name == largest else case["at_most"]]
    test, whole = np.concatenate(judged), np.concatenate(list(parts.values()))
    others = [name for name in parts if name != largest]

    def fit(rows: np.ndarray, *key: object, **options: Any) -> DPLogisticRegression:
        model = DPLogisticRegression(
            EPSILON,
            classes=[0, 1],
            data_norm=norm,
            method=Perturbation(intercept_scaling=INTERCEPT),
            random_state=seed(*case.values(), repetition, *key),
            **options,
        )
        return model.fit(X[rows], y[rows])

    def judge(model: Any) -> float:
        return float(roc_auc_score(y[test], model.decision_function(X[test])))

    def without(rows: np.ndarray) -> float:
        if np.ptp(y[rows]) == 0:
            return 0.5
        return judge(LogisticRegression(max_iter=1000).fit(X[rows], y[rows]))

    def pooled() -> float:
        # With less there are no standard errors.
        if min(rows.size for rows in parts.values()) * EPSILON < ENOUGH:
            return math.nan
        shared = [fit(p, name, POOLED, inference_share=SHARE) for name, p in parts.items()]
        return judge(pool_releases([one.release_ for one in shared]).to_estimator())

    alone = {name: fit(rows, name) for name, rows in parts.items()}
    prior = alone[largest].release_
    return {
        "n": round(np.mean([parts[name].size for name in others])),
        "n_largest": parts[largest].size,
        ALONE: float(np.mean([judge(alone[name]) for name in others])),
        LARGEST: judge(alone[largest]),
        PRIOR: float(np.mean([judge(fit(parts[one], one, prior=prior)) for one in others])),
        POOLED: pooled(),
        ALL: judge(fit(whole, ALL)),
        ONE_WITHOUT: float(np.mean([without(parts[name]) for name in others])),
        WITHOUT: without(whole),
    }


def difference(values: np.ndarray) -> str:
    """Return a mean difference and its interval as text; in bold where 0 is outside."""
    mean, width = interval(values)
    text = f"{mean:+.3f} ± {width:.3f}"
    return f"**{text}**" if abs(mean) > width else text


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells, lines = [], []
    for (name, _), here in rows.groupby(["data", "at_most"]):

        def shown(written: Callable[[np.ndarray], str], scores: pd.Series) -> str:
            return "too few records" if scores.isna().any() else written(scores.to_numpy())

        gains = (shown(difference, here[one] - here[ALONE]) for one in (PRIOR, POOLED))
        n, most = here.n.iloc[0], here.n_largest.iloc[0]
        label = f"{name}, n = {n:,.0f}"
        cells.append(
            (name, f"{n:,.0f}", f"{most:,.0f}", *(shown(cell, here[m]) for m in METHODS), *gains)
        )
        lines.append((label, here[list(METHODS)].mean(), here))
    pages.table(
        "sites",
        ("data", "n", "n of the largest", *METHODS, f"{PRIOR} - {ALONE}", f"{POOLED} - {ALONE}"),
        cells,
        _judgement(lines),
        f"Area under the curve on {100 * JUDGED:.0f} % of the records of every site, which no "
        f"model saw, at ε = {EPSILON:g}: mean over {rows.repetition.max() + 1} divisions, and 95 % "
        "interval. "
        '"Alone" and "from the largest" are means over all sites but the largest. Sites that are '
        f"pooled have inference_share = {SHARE:g}; intercept_scaling is {INTERCEPT:g}; columns are "
        "those that medicine finds most important. Too few: a site has less than the "
        f"{ENOUGH / EPSILON:g} records that standard errors need.",
    )


def _judgement(lines: list[tuple[str, pd.Series, pd.DataFrame]]) -> str:
    gains = {label: interval((here[PRIOR] - here[ALONE]).to_numpy()) for label, _, here in lines}
    helped = [mean for mean, width in gains.values() if mean > width]
    level = [label for label, (mean, width) in gains.items() if not mean > width]
    said = "One private fit of all rows in one place is ahead of everything else" + (
        f" in all {len(lines)} rows"
        if (first := sum(mean[ALL] >= mean[[LARGEST, PRIOR, POOLED]].max() for _, mean, _ in lines))
        == len(lines)
        else f" in {first} of {len(lines)} rows"
    )
    said += f". A prior helps beyond doubt in {len(helped)}"
    if helped:
        said += f", by {min(helped):.3f} to {max(helped):.3f}"
    if level:
        said += f" (not on {'; '.join(level)})"
    used = sum(mean[LARGEST] >= mean[PRIOR] for _, mean, _ in lines)
    said += (
        f", and the largest site's release, used as it is, is at least as good in {used} of "
        f"{len(lines)}."
    )
    pools = [mean for _, mean, here in lines if not here[POOLED].isna().any()]
    if pools:
        gain = [mean[POOLED] - mean[ALONE] for mean in pools]
        behind = sum(mean[POOLED] < mean[LARGEST] for mean in pools)
        said += (
            f" A pool gains {min(gain):.3f} to {max(gain):.3f} over a site alone, and is behind "
            f"the largest alone in {behind} of {len(pools)}."
        )
    return said


EXPERIMENT = Experiment(cases, measure, report, repetitions=20)
