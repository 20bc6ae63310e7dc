"""Eight sites: their releases pooled, beside one private fit of all records in one place.

python -m benchmarks.pooling

Simulated records, whose coefficients are known: log hazard ratios (cloglog), and log odds ratios.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._common import table
from benchmarks._run import arguments, number, run, setting
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PrivacyLeakWarning, pool_releases
from skdpsurv.datasets import make_discrete_time_survival

N_SITES, EPSILON = 8, 1.0
#: Below 600 records at this epsilon a classifier has no standard errors.
SIZES = {
    "hazards": setting((300, 500, 1000), quick=(500,)),
    "odds": setting((700, 1000), quick=(700,)),
}
#: By columns.
TRUTHS = {2: (0.8, -0.5), 4: (0.8, -0.5, 0.4, 0.0)}
SHARE = 0.3


def hazards(n: int, coef: Any, seed: int) -> tuple[Any, Any]:
    made = make_discrete_time_survival(n, len(coef), coef=coef, event_rate=0.4, random_state=seed)
    return made.X, made.y


def labels(n: int, coef: Any, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, len(coef)))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ np.asarray(coef)))).astype(int)


def fitted(kind: str, X: Any, y: Any, seed: int) -> Any:
    common: dict[str, Any] = {"inference_share": SHARE, "random_state": seed}
    model: Any = DPDiscreteTimeSurvival(EPSILON, max_time=1.0, link="cloglog", **common)
    if kind == "odds":
        norm = float(np.sqrt(X.shape[1]) / 2.0)
        model = DPLogisticRegression(EPSILON, classes=[0, 1], data_norm=norm, **common)
    return model.fit(X, y)


def error_and_cover(summary: Any, coef: Any) -> tuple[float, float, float]:
    """Return the distance, the share of intervals that cover, and the share with an estimate."""
    known = np.isfinite(summary["se(coef)"].to_numpy())
    estimate = np.where(known, summary["coef"].to_numpy(), 0.0)
    low, high = (summary[f"coef {end} 95%"].to_numpy() for end in ("lower", "upper"))
    covered = (low <= coef) & (coef <= high)
    return float(np.linalg.norm(estimate - coef)), float(covered.mean()), float(known.mean())


def once(kind: str, n: int, d: int, repetition: int) -> np.ndarray:
    make, coef = {"hazards": hazards, "odds": labels}[kind], np.asarray(TRUTHS[d])
    X, y = make(N_SITES * n, coef, repetition)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        parts = np.split(np.arange(N_SITES * n), N_SITES)
        sites = [fitted(kind, X[p], y[p], 100 * repetition + k) for k, p in enumerate(parts)]
        whole = fitted(kind, X, y, repetition)
    releases = [site.release_ for site in sites]
    pooled = [pool_releases(releases, effects=effects) for effects in ("fixed", "random")]
    found = [sites[0].summary, whole.summary, *(one.to_estimator().summary for one in pooled)]
    return np.array([error_and_cover(one, coef) for one in found])


def main() -> None:
    args = arguments(__doc__ or "", repetitions=number(100, quick=2))
    rows = []
    for kind in SIZES:
        for d in TRUTHS:
            for n in SIZES[kind]:
                repetitions = range(args.repetitions)
                found = np.array(
                    Parallel(n_jobs=2)(delayed(once)(kind, n, d, r) for r in repetitions)
                )
                distance = np.sqrt(np.mean(found[:, :, 0] ** 2, axis=0))
                cover, known = found[:, :, 1].mean(axis=0), found[:, :, 2].mean(axis=0)
                cells = [f"{one:.2f}" for one in (*distance, distance[2] / distance[1])]
                shares = [f"{known[0]:.0%}", *(f"{one:.1%}" for one in cover[1:])]
                rows.append((kind, d, n, *cells, *shares))
    header = ("model", "columns", "a site's n", "one site", "all records", "pooled, fixed")
    header += ("random", "fixed / all", "known to a site", "cover, all", "fixed", "random")
    table(
        "pooling",
        header,
        rows,
        f"Root mean square distance of coefficients from the truth, of {N_SITES} sites with ε = "
        f"{EPSILON:g} each, inference_share = {SHARE:g}, and coverage of 95 % intervals, over "
        f"{args.repetitions} data sets.",
    )


if __name__ == "__main__":
    run(main)
