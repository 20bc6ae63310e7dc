"""Hybrid fits on real data with organisations in both roles, and other estimators on simulations.

python -m benchmarks.hybrid_data --data-dir FOLDER

FOLDER holds heart_disease_4sites.csv.gz, gusto1_16regions.csv.gz and mi_edinburgh_webglore.csv.gz
(1,253 records of infarction in four parts, nine unnamed 0/1 columns). Without it: simulations only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks._classification import interval, repeated, seed
from benchmarks._common import table
from benchmarks._hybrid import TwoTables, likely, rival, simulated, text
from benchmarks._run import arguments, data_file, number, part, run, setting
from benchmarks.transfer import gusto, heart
from skdpsurv import HybridMEstimator

EPSILONS = setting((1.0, 6.0), quick=(1.0,))
PUBLIC, DEFAULT, RIVAL, WITHOUT = "public only", "default", "DPLogisticRegression", "non-private"
HYBRID = {
    DEFAULT: {},
    "cells": {"method": "cells"},
    "all points": {"method": "all"},
    "subset": {"method": "subset"},
}
ORDER = (PUBLIC, *HYBRID, RIVAL, WITHOUT)

N, COLUMNS = setting(3000, quick=300), (2, 10)
ESTIMATORS = {
    "linear": LinearRegression(),
    "Huber": HuberRegressor(max_iter=1000),
    "median": QuantileRegressor(quantile=0.5, alpha=0.0),
    "Poisson": PoissonRegressor(alpha=0.0, max_iter=1000),
}


Pair = tuple[str, str, TwoTables]


def pair(X: np.ndarray, y: np.ndarray, site: np.ndarray, public: list, private: list) -> TwoTables:
    """Return the tables of two groups of organisations; constant public columns are left out."""
    theirs, ours = np.isin(site, public), np.isin(site, private)
    varied = np.ptp(X[theirs], axis=0) > 0
    return TwoTables(X[theirs][:, varied], y[theirs], X[ours][:, varied], y[ours])


def both_roles(name: str, X: np.ndarray, y: np.ndarray, site: np.ndarray) -> Iterator[Pair]:
    """Yield each organisation as the public one, and as the private one."""
    names = np.unique(site).tolist()
    for one in names:
        rest = [other for other in names if other != one]
        yield name, f"{one} → others", pair(X, y, site, [one], rest)
    for one in names:
        rest = [other for other in names if other != one]
        yield name, f"others → {one}", pair(X, y, site, rest, [one])


def heart_pairs(folder: Path | None) -> Iterator[Pair]:
    """Yield data set, which is public and which private, and the tables."""
    hospitals = heart(folder)
    yield from both_roles("heart", hospitals.X, hospitals.y, hospitals.site)


def infarction_pairs(folder: Path | None) -> Iterator[Pair]:
    """The same for four parts of one data set."""
    frame = pd.read_csv(data_file(folder, "mi_edinburgh_webglore.csv.gz"))
    X = frame.filter(regex="^F").to_numpy(dtype=float)
    site = ("part " + frame["part"].astype(str)).to_numpy(dtype=str)
    yield from both_roles("infarction", X, frame["y"].to_numpy(), site)


def gusto_pairs(folder: Path | None) -> Iterator[Pair]:
    """The same for regions, of which some pairs."""
    regions = gusto(folder)
    names = [regions.source, *regions.targets]
    for roles, public, private in (
        ("largest region → next three", names[:1], names[1:4]),
        ("next three → largest region", names[1:4], names[:1]),
        ("four smallest → largest region", names[-4:], names[:1]),
        ("largest region → four smallest", names[:1], names[-4:]),
    ):
        yield "gusto", roles, pair(regions.X, regions.y, regions.site, public, private)


REAL_DATA = {"heart": heart_pairs, "infarction": infarction_pairs, "gusto": gusto_pairs}


def measure(task: Pair, repetition: int) -> dict[tuple[Hashable, ...], float]:
    """Return log loss and AUC on the private records."""
    name, roles, data = task
    found: dict[tuple[Hashable, ...], float] = {}

    def add(epsilon: float, method: str, model: LogisticRegression) -> None:
        p = np.clip(likely(model, data.X_private), 1e-6, 1.0 - 1e-6)
        found[name, roles, epsilon, method, "log loss"] = log_loss(data.y_private, p)
        found[name, roles, epsilon, method, "AUC"] = roc_auc_score(data.y_private, p)

    public = LogisticRegression(max_iter=1000).fit(data.X_public, data.y_public)
    private = LogisticRegression(max_iter=1000).fit(data.X_private, data.y_private)
    for epsilon in EPSILONS:
        add(epsilon, PUBLIC, public)
        add(epsilon, WITHOUT, private)
        for method, options in HYBRID.items():
            model = HybridMEstimator(
                LogisticRegression(max_iter=1000),
                epsilon,
                random_state=seed(roles, method, epsilon, repetition),
                **options,
            )
            try:
                add(epsilon, method, model.fit(data.rows, data.outcomes, public=data.public))
            except ValueError:  # a small subset may hold one class only
                for score in ("log loss", "AUC"):
                    found[name, roles, epsilon, method, score] = np.nan
        add(epsilon, RIVAL, rival(data, epsilon, seed(roles, epsilon, repetition)))
    return found


def judged(values: np.ndarray, public: float) -> str:
    """Return a mean loss; in bold where it is beyond doubt worse than the public fit's."""
    fits = values[~np.isnan(values)]
    failed = f" ({values.size - fits.size} failed)" if fits.size < values.size else ""
    if fits.size < 2:
        return f"–{failed}"
    mean, width = interval(fits)
    said = text(fits, 3)
    return (f"**{said}**" if mean - width > public else said) + failed


def real_tables(tasks: list[Pair], found: pd.DataFrame, repetitions: int) -> None:
    """Write log losses and AUCs of each data set."""
    values = found.set_index(["data", "roles", "epsilon", "method", "measure"])["score"]
    values = values.sort_index()
    for name in dict.fromkeys(task[0] for task in tasks):
        losses, areas = [], []
        for _, roles, data in (task for task in tasks if task[0] == name):
            sizes = (roles, f"{data.y_public.size:,}", f"{data.y_private.size:,}")
            for epsilon in EPSILONS:
                mine = values[name, roles, epsilon]
                public = float(mine[PUBLIC, "log loss"].mean())
                cells = [f"{public:.3f}"]
                cells += [judged(mine[m, "log loss"].to_numpy(), public) for m in ORDER[1:-1]]
                cells.append(f"{mine[WITHOUT, 'log loss'].mean():.3f}")
                losses.append((*sizes, f"{epsilon:g}", *cells))
            cells = []
            for method in ORDER:
                means = [values[name, roles, e, method, "AUC"].mean() for e in EPSILONS]
                one = method in (PUBLIC, WITHOUT)
                cells.append(f"{means[0]:.3f}" if one else " / ".join(f"{m:.3f}" for m in means))
            areas.append((*sizes, *cells))
        head = ("public → private", "public rows", "private rows")
        note = (
            f"{repetitions} repetitions of the noise. The non-private fit is of the same private "
            "records that it is measured on."
        )
        table(
            f"hybrid_{name}",
            (*head, "ε", *ORDER),
            losses,
            "Mean log loss of private records; ± is half a 95 % interval of the mean over the "
            f"noise; bold where it is worse than public only beyond doubt. {note}",
        )
        both = " / ".join(f"{epsilon:g}" for epsilon in EPSILONS)
        table(f"hybrid_{name}_auc", (*head, *ORDER), areas, f"AUC, ε = {both}. {note}")


def measure_other(task: tuple[str, int], repetition: int) -> dict[tuple[Hashable, ...], float]:
    """Return prediction errors of another estimator."""
    name, p = task
    data = simulated(p, N, N, repetition, name)
    estimator = ESTIMATORS[name]
    predict: Callable[..., np.ndarray] = lambda model: model.predict(data.X_private)  # noqa: E731
    theirs = predict(estimator.fit(data.X_private, data.y_private))
    error = lambda model: float(np.sqrt(np.mean((predict(model) - theirs) ** 2)))  # noqa: E731
    public = error(estimator.fit(data.X_public, data.y_public))
    found: dict[tuple[Hashable, ...], float] = {}
    for epsilon in EPSILONS:
        found[name, p, epsilon, PUBLIC] = public
        for method in ("cells", DEFAULT):
            key = seed(name, p, epsilon, method, repetition)
            model = HybridMEstimator(
                estimator, epsilon, random_state=key, method="auto" if method == DEFAULT else method
            )
            found[name, p, epsilon, method] = error(
                model.fit(data.rows, data.outcomes, public=data.public)
            )
    return found


def other_table(repetitions: int, jobs: int) -> None:
    """Write the errors of other estimators."""
    tasks = [(name, p) for name in ESTIMATORS for p in COLUMNS]
    columns = ("estimator", "p", "epsilon", "method")
    found = repeated(measure_other, tasks, repetitions, columns, jobs)
    values = found.set_index(["estimator", "p", "epsilon", "method"])["auc"].sort_index()
    rows = []
    for name, p in tasks:
        cells = [text(values[name, p, EPSILONS[0], PUBLIC].to_numpy())]
        for epsilon in EPSILONS:
            cells += [text(values[name, p, epsilon, m].to_numpy()) for m in ("cells", DEFAULT)]
        rows.append((name, p, *cells))
    heads = [f"{method}, ε = {e:g}" for e in EPSILONS for method in ("cells", DEFAULT)]
    table(
        "hybrid_estimators",
        ("estimator", "p", PUBLIC, *heads),
        rows,
        "Root mean square difference of private predictions from those of the non-private fit, in "
        f"units of the outcome; {repetitions} repetitions of coefficients, records and noise; "
        f"n_D = n_E = {N:,}; ± is half a 95 % interval.",
    )


def main() -> None:
    """Other estimators; with a folder, real data."""
    args = arguments(__doc__ or "", repetitions=number(10, quick=2), jobs=number(2))
    other_table(args.repetitions, args.jobs)
    tasks: list[Pair] = []
    for name, pairs in REAL_DATA.items():
        with part(name):
            tasks += pairs(args.data_dir)
    if not tasks:
        return
    columns = ("data", "roles", "epsilon", "method", "measure")
    found = repeated(measure, tasks, args.repetitions, columns, args.jobs)
    real_tables(tasks, found.rename(columns={"auc": "score"}), args.repetitions)


if __name__ == "__main__":
    run(main)
