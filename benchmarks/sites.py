"""Classifiers of sites: alone, from another site's release, pooled, and of all rows together.

python -m benchmarks.sites --data-dir FOLDER

FOLDER holds gusto1_16regions.csv.gz, heart_disease_4sites.csv.gz and mi_edinburgh_webglore.csv.gz.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks._classification import auc, cell, difference, repeated, seed
from benchmarks._common import table
from benchmarks._run import arguments, data_file, number, part, run, setting
from skdpsurv import DPLogisticRegression, PublicColumns, pool_releases
from skdpsurv.classification import Perturbation
from skdpsurv.classification.logistic_regression import ENOUGH

EPSILON = 1.0
#: Of epsilon, at sites whose releases are pooled.
SHARE = 0.3
#: As in `benchmarks.transfer`, where events are rare.
INTERCEPT = 0.3
#: Of each site's records, to judge by.
JUDGED = 0.3
#: At each region of the trial but the largest; None: all that it has.
FEW = setting((400, 700, None), quick=(400, 700))
ALONE, PRIOR, LARGEST, POOLED, ALL = "alone", "from a prior", "the prior", "pooled", "all rows"
WITHOUT, ONE_WITHOUT = "all rows, no privacy", "alone, no privacy"

#: What the TIMI risk score (Morrow et al., Circulation 2000) has that is in this trial, too, which
#: it was not made from. Bounds have what is typical in their middle.
GUSTO = {
    "age": {"bounds": [20, 100], "unit": "years"},
    "sysbp": {"bounds": [60, 200], "unit": "mmHg"},
    "pulse": {"bounds": [25, 125], "unit": "1/min"},
    "killip": (-2, 4),
    "weight": {"bounds": [40, 120], "unit": "kg"},
    "ant": bool,
}
#: Chest pain, age and sex (Diamond and Forrester 1979), and what a treadmill shows (Mark et al.
#: 1987); not every hospital had one for everybody.
HEART = {
    "asymptomatic": bool,
    "age": {"bounds": [20, 90], "unit": "years"},
    "sex": bool,
    "exang": {"boolean": True, "missing": "midpoint"},
    "oldpeak": {"bounds": [-4, 6], "missing": "midpoint"},
    "thalach": {"bounds": [80, 200], "unit": "1/min", "missing": "midpoint"},
}


@dataclass(frozen=True)
class Sites:
    """Raw columns, what is publicly known of them, labels, and whose each record is."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    site: np.ndarray
    columns: PublicColumns

    @property
    def data_norm(self) -> float:
        """Half of the largest norm that features in [-1, 1] could have; longer rows are scaled."""
        return math.sqrt(self.X.shape[1]) / 2.0


def _sites(name: str, frame: pd.DataFrame, site: str, columns: dict[str, Any]) -> Sites:
    labels = frame[site].astype(str).to_numpy(dtype=str)
    public = PublicColumns(columns)
    return Sites(name, frame[list(columns)], frame["y"].to_numpy(dtype=int), labels, public)


def gusto(folder: Path | None) -> Sites:
    frame = pd.read_csv(data_file(folder, "gusto1_16regions.csv.gz"))
    return _sites("GUSTO-I, 16 regions", frame, "region", GUSTO)


def heart(folder: Path | None) -> Sites:
    frame = pd.read_csv(data_file(folder, "heart_disease_4sites.csv.gz"))
    frame["asymptomatic"] = frame["cp"] == 4
    return _sites("heart disease, 4 hospitals", frame, "site", HEART)


def infarction(folder: Path | None) -> Sites:
    frame = pd.read_csv(data_file(folder, "mi_edinburgh_webglore.csv.gz"))
    columns = dict.fromkeys((f"F{k}" for k in range(1, 10)), bool)
    return _sites("infarction, 4 parts", frame, "part", columns)


LOADERS: tuple[Callable[[Path | None], Sites], ...] = (gusto, heart, infarction)


def all_sites(folder: Path | None) -> Iterator[tuple[Sites, int | None]]:
    """Yield sites, and how many records each has to fit: None for all that are not to judge by."""
    for load in LOADERS:
        with part(load.__name__):
            found = load(folder)
            for few in FEW if load is gusto else (None,):
                yield found, few


def measure(task: tuple[Sites, int | None], repetition: int) -> dict[tuple[Hashable, ...], float]:
    """Return areas under the curve of records that were set aside at every site."""
    data, few = task
    rng = np.random.default_rng(repetition)
    parts: dict[str, np.ndarray] = {}
    judged: list[np.ndarray] = []
    names, sizes = np.unique(data.site, return_counts=True)
    largest = str(names[sizes.argmax()])
    for name in map(str, names):
        rows = rng.permutation(np.flatnonzero(data.site == name))
        cut = int(JUDGED * rows.size)
        judged.append(rows[:cut])
        parts[name] = rows[cut:][: None if name == largest else few]
    test = np.concatenate(judged)
    whole = np.concatenate(list(parts.values()))
    others = [name for name in parts if name != largest]
    n, most = round(np.mean([parts[name].size for name in others])), parts[largest].size
    label = data.name, n, most

    def fit(rows: np.ndarray, *key: object, **options: Any) -> DPLogisticRegression:
        model = DPLogisticRegression(
            EPSILON,
            columns=data.columns,
            classes=[0, 1],
            data_norm=data.data_norm,
            method=Perturbation(intercept_scaling=INTERCEPT),
            random_state=seed(label, repetition, *key),
            **options,
        )
        return model.fit(data.X.iloc[rows], data.y[rows])

    def judge(model: Any) -> float:
        return auc(model, data.X.iloc[test], data.y[test])

    def without(rows: np.ndarray) -> float:
        features = data.columns.fit_transform(data.X)
        model = LogisticRegression(max_iter=1000).fit(features[rows], data.y[rows])
        return auc(model, features[test], data.y[test])

    alone = {name: fit(rows, name) for name, rows in parts.items()}
    prior = alone[largest].release_
    helped = [fit(parts[name], name, prior=prior) for name in others]

    def pooled() -> float:
        # With less there are no standard errors.
        if min(rows.size for rows in parts.values()) * EPSILON < ENOUGH:
            return math.nan
        releases = [
            fit(rows, name, POOLED, inference_share=SHARE).release_ for name, rows in parts.items()
        ]
        return judge(pool_releases(releases).to_estimator())

    found = {
        ALONE: float(np.mean([judge(alone[name]) for name in others])),
        LARGEST: judge(alone[largest]),
        PRIOR: float(np.mean([judge(model) for model in helped])),
        POOLED: pooled(),
        ALL: judge(fit(whole, "all")),
        WITHOUT: without(whole),
        ONE_WITHOUT: float(np.mean([without(parts[name]) for name in others])),
    }
    return {(*label, method): score for method, score in found.items()}


def shown(written: Callable[[np.ndarray], str], scores: pd.Series) -> str:
    return "too few records" if scores.isna().any() else written(scores.to_numpy())


def main() -> None:
    args = arguments(__doc__ or "", repetitions=number(20, quick=1), jobs=number(1))
    tasks = list(all_sites(args.data_dir))
    if not tasks:
        return
    names = ("data", "n", "most", "method")
    found = repeated(measure, tasks, args.repetitions, names, args.jobs)
    found = found.pivot(index=[*names[:3], "repetition"], columns="method", values="auc")
    rows = []
    for key, scores in found.groupby(level=names[:3], sort=False):
        methods = (ALONE, LARGEST, PRIOR, POOLED, ALL, ONE_WITHOUT, WITHOUT)
        cells = (shown(cell, scores[one]) for one in methods)
        gains = (shown(difference, scores[one] - scores[ALONE]) for one in (PRIOR, POOLED))
        rows.append((*key, *cells, *gains))
    header = (
        "data",
        "n",
        "n of the largest",
        "alone",
        "the largest, alone",
        "from the largest",
        "pooled",
    )
    header += ("all rows", "alone, no privacy", "all rows, no privacy")
    header += ("from the largest - alone", "pooled - alone")
    table(
        "sites",
        header,
        rows,
        f"Area under the curve on {JUDGED:.0%} of the records of every site, which no model saw, "
        f"at ε = {EPSILON:g}: mean over {args.repetitions} divisions, and 95 % interval of it. "
        '"Alone" and "from the largest" are means over all sites but the largest. Sites that '
        f"are pooled have inference_share = {SHARE:g}; intercept_scaling is {INTERCEPT:g}.",
    )


if __name__ == "__main__":
    run(main)
