"""What a private search for parameters finds at epsilon = 1, beside the best that are fixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, ParameterGrid

from benchmarks.data import Survival, split
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, interval
from benchmarks.studies.models import Data, estimator, half_norm, real
from skdpsurv.model_selection import PrivateSearchCV, RepeatedRuns

EPSILON = 1.0
FOLDS, SHARE = 3, 0.8
SETS = ("flchain", "unemployment", "heart disease", "MNIST 0 or 8", "MNIST 4 or 9", "NEWS20")
DEFAULTS, GRID = "defaults, no search", "grid search"
SEARCHES: dict[str, dict[str, Any]] = {
    "repeat, η = 1": {},
    "repeat, η = 0": {"strategy": RepeatedRuns(eta=0.0)},
    "split": {"strategy": "split"},
    "split, refit = 0.5": {"strategy": "split", "refit": 0.5},
}
OURS = next(iter(SEARCHES))
FIXED = [f"candidate {k}" for k in range(6)]


def grid(data: Data) -> dict[str, list[float]]:
    """Return six candidates, all of which somebody might want to try."""
    if isinstance(data, Survival):
        return {"data_norm": [0.5, 2.0, 8.0], "max_cumulative_hazard": [1.0, 4.0]}
    norm = half_norm(data)
    return {"alpha": [1e-3, 1e-2, 1e-1], "data_norm": [norm / 4.0, norm]}


def cases(setting: Setting) -> Iterator[Case]:
    yield from ({"data": name} for name in setting.of(SETS, ("flchain", "heart disease")))


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return accuracy, or C, of each candidate, the defaults and each search, on a fifth."""
    data = real(setting, case["data"])
    train, test = split(len(data.y), repetition, SHARE)
    candidates = list(ParameterGrid(grid(data)))

    def key(*what: object) -> int:
        return seed(case["data"], repetition, *what)

    def fitted(rows: np.ndarray, epsilon: float, params: dict, *what: object) -> BaseEstimator:
        model = estimator(data, epsilon=epsilon, random_state=key(*what)).set_params(**params)
        return model.fit(data.X[rows], data.y[rows])

    def score(model: BaseEstimator, rows: np.ndarray) -> float:
        return float(model.score(data.X[rows], data.y[rows]))

    def charged() -> BaseEstimator:
        """Search by cross-validation where each fit has its share of epsilon.

        Even so the scores that it compares are those of private records, without noise.
        """
        share = EPSILON / (len(candidates) * FOLDS + 1)
        means = np.zeros(len(candidates))
        folds = KFold(FOLDS, shuffle=True, random_state=0).split(train)
        for fold, (inside, outside) in enumerate(folds):
            for k, params in enumerate(candidates):
                model = fitted(train[inside], share, params, "fold", fold, k)
                means[k] += score(model, train[outside])
        return fitted(train, share, candidates[int(np.argmax(means))], "chosen")

    row: Row = {"n": train.size}
    for name, params in zip(FIXED, candidates, strict=True):
        row[name] = score(fitted(train, EPSILON, params, name), test)
    row[DEFAULTS] = score(fitted(train, EPSILON, {}, DEFAULTS), test)
    for name, options in SEARCHES.items():
        search = PrivateSearchCV(
            estimator(data), grid(data), epsilon=EPSILON, random_state=key(name), **options
        )
        row[name] = score(search.fit(data.X[train], data.y[train]), test)
    return row | {GRID: score(charged(), test)}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells, better, losses, rivals = [], [], {}, []
    for name in SETS:
        here = rows[rows.data == name]
        if here.empty:
            continue
        order = here[FIXED].mean().sort_values()
        best, worst = order.index[-1], order.index[0]
        columns = (best, worst, DEFAULTS, *SEARCHES, GRID)
        cells.append((f"{name}, n = {here.n.iloc[0]:,}", *(cell(here[c]) for c in columns)))
        losses[name] = here[best].mean() - here[OURS].mean()
        better.append(interval((here[DEFAULTS] - here[OURS]).to_numpy()))
        rivals.append(
            pages.comparison(
                "search for parameters",
                name,
                EPSILON,
                "grid search, every fit charged",
                here[OURS],
                here[GRID],
            )
        )
    near = [name for name, loss in losses.items() if loss <= 0.02]
    ahead = sum(row.outcome == "ahead" for row in rivals)
    behind = sum(row.outcome == "behind" for row in rivals)
    pages.table(
        "private_search",
        ("data", "best fixed", "worst fixed", DEFAULTS, *SEARCHES, f"{GRID}, {FOLDS} folds"),
        cells,
        f"The default search ({OURS}) is within 0.02 of the best fixed candidate on {len(near)} of "
        f"{len(losses)} sets, and at most {max(losses.values()):.3f} behind it. A grid search that "
        f"is charged for every fit is beyond doubt worse on {ahead} of {len(rivals)} sets and "
        f"better on {behind or 'none'}. The defaults without any search are beyond doubt better "
        f"than the search on {sum(mean > width for mean, width in better)} and worse on "
        f"{sum(-mean > width for mean, width in better) or 'none'}.",
        f"ε = {EPSILON:g} in all, six candidates. Accuracy, or Harrell's C for flchain and "
        f"unemployment, on the {100 * (1 - SHARE):.0f} % left out; mean of "
        f"{rows.repetition.max() + 1} random splits and 95 % interval. Fixed: the "
        "candidate that is best (worst) on average at the same ε, which nobody knows beforehand. "
        "Grid search: each of its fits has its share of ε; its choice is not private even so.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=20)
