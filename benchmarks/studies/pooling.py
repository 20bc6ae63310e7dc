"""Eight sites: their releases pooled, beside one private fit of all records in one place.

Simulated records, whose coefficients are known: log hazard ratios (cloglog), and log odds ratios.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, pool_releases
from skdpsurv.datasets import make_discrete_time_survival

N_SITES, EPSILON, SHARE = 8, 1.0, 0.3
#: Below 600 records at this epsilon a classifier has no standard errors.
SIZES = {"hazards": (300, 500, 1000), "odds": (700, 1000)}
#: By columns.
TRUTHS = {2: (0.8, -0.5), 4: (0.8, -0.5, 0.4, 0.0)}
ONE, ALL, FIXED, RANDOM = "one site", "all records", "pooled, fixed", "random"


def drawn(kind: str, n: int, coef: np.ndarray, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "hazards":
        made = make_discrete_time_survival(
            n, coef.size, coef=coef, event_rate=0.4, random_state=repetition
        )
        return made.X, made.y
    rng = np.random.default_rng(repetition)
    X = rng.uniform(-1.0, 1.0, (n, coef.size))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ coef))).astype(int)


def fitted(kind: str, X: np.ndarray, y: np.ndarray, key: int) -> Any:
    common: dict[str, Any] = {"inference_share": SHARE, "random_state": key}
    model: Any = DPDiscreteTimeSurvival(EPSILON, max_time=1.0, link="cloglog", **common)
    if kind == "odds":
        norm = float(np.sqrt(X.shape[1]) / 2.0)
        model = DPLogisticRegression(EPSILON, classes=[0, 1], data_norm=norm, **common)
    return model.fit(X, y)


def cases(setting: Setting) -> Iterator[Case]:
    for kind, sizes in SIZES.items():
        for d in setting.of(TRUTHS, (2,)):
            for n in setting.of(sizes, sizes[1:2]):
                yield {"model": kind, "columns": d, "n": n}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return distances from the truth, and how many intervals cover it and are finite."""
    kind, n, coef = case["model"], case["n"], np.asarray(TRUTHS[case["columns"]])
    X, y = drawn(kind, N_SITES * n, coef, repetition)
    key = (kind, coef.size, n, repetition)
    parts = np.split(np.arange(N_SITES * n), N_SITES)
    sites = [fitted(kind, X[p], y[p], seed(*key, k)) for k, p in enumerate(parts)]
    releases = [site.release_ for site in sites]
    summaries = {ONE: sites[0].summary, ALL: fitted(kind, X, y, seed(*key)).summary}
    for name, effects in ((FIXED, "fixed"), (RANDOM, "random")):
        summaries[name] = pool_releases(releases, effects=effects).to_estimator().summary
    return [{"method": name, **_judged(one, coef)} for name, one in summaries.items()]


def _judged(summary: pd.DataFrame, coef: np.ndarray) -> Row:
    """Return the distance, the share of intervals that cover, and the share with an estimate."""
    known = np.isfinite(summary["se(coef)"].to_numpy())
    estimate = np.where(known, summary["coef"].to_numpy(), 0.0)
    low, high = (summary[f"coef {end} 95%"].to_numpy() for end in ("lower", "upper"))
    return {
        "distance": float(np.linalg.norm(estimate - coef)),
        "covered": float(((low <= coef) & (coef <= high)).mean()),
        "known": float(known.mean()),
    }


def report(rows: pd.DataFrame, pages: Pages) -> None:
    keys = ["model", "columns", "n"]
    mean = rows.assign(square=rows.distance**2).groupby([*keys, "method"]).mean(numeric_only=True)
    distance = np.sqrt(mean.square).unstack()
    cover, known = mean.covered.unstack(), mean.known.unstack()
    ratio, gain = distance[FIXED] / distance[ALL], distance[ONE] / distance[FIXED]
    cells = [
        (
            *key,
            *(f"{distance.loc[key, name]:.2f}" for name in (ONE, ALL, FIXED, RANDOM)),
            f"{ratio[key]:.2f}",
            f"{known.loc[key, ONE]:.0%}",
            *(f"{cover.loc[key, name]:.1%}" for name in (ALL, FIXED, RANDOM)),
        )
        for key in distance.index
    ]
    pages.table(
        "pooling",
        (
            *(*keys[:2], "a site's n", ONE, ALL, FIXED, RANDOM),
            *("fixed / all", "known to a site", "cover, all", "fixed", "random"),
        ),
        cells,
        f"Coefficients of a pool are {ratio.min():.1f} to {ratio.max():.1f} times as far from the "
        f"truth as those of one fit of all records, and those of one site {gain.min():.1f} to "
        f"{gain.max():.1f} times as far as the pool's. Intervals with random effects cover "
        f"{cover[RANDOM].min():.0%} to {cover[RANDOM].max():.0%}, with fixed ones "
        f"{cover[FIXED].min():.0%} to {cover[FIXED].max():.0%}.",
        f"Root mean square distance of coefficients from the truth, of {N_SITES} sites with ε = "
        f"{EPSILON:g} each, inference_share = {SHARE:g}, and coverage of 95 % intervals, over "
        f"{rows.repetition.max() + 1} data sets. An estimate without a standard error counts as 0.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=100)
