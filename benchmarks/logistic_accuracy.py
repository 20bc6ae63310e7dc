"""Private logistic regression against diffprivlib's: accuracy, AUC and log loss at equal epsilon.

python -m benchmarks.logistic_accuracy --data-dir FOLDER

diffprivlib needs an older scikit-learn and gets an environment of its own, which takes a network.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import minmax_scale, normalize

from benchmarks._common import save, sheet, split, table
from benchmarks._diffprivlib_env import OPTION, VERSION, Diffprivlib, diffprivlib
from benchmarks._diffprivlib_worker import METRICS, scores
from benchmarks._run import arguments, data_file, number, part, run, setting
from skdpsurv import DPLogisticRegression
from skdpsurv.classification import Perturbation
from skdpsurv.classification.private_classifier import LogisticModel
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.published import PublishedLogisticRegression

EPSILONS = setting((0.25, 0.5, 1.0, 2.0, 4.0, 8.0), quick=(0.5, 1.0))
#: The rival's C: the best on the rows that were held out, for each epsilon and score by itself.
CS = setting((0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), quick=(0.1, 1.0))
#: The same for the published algorithm's alpha.
ALPHAS = setting((1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0), quick=(0.1,))
METHODS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "max_residual=1": {"method": Perturbation(max_residual=1.0)},
    "out_pert": {"method": "out_pert"},
}
RIVAL, RIVAL_DEFAULT = "diffprivlib, best C", "diffprivlib, C = 1"
PUBLISHED = "published, best alpha"
STYLES = {
    "defaults": {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
    "max_residual=1": {"color": "#009E73", "marker": "s"},
    PUBLISHED: {"color": "#E69F00", "marker": "v"},
    "out_pert": {"color": "#CC79A7", "marker": "^", "linestyle": "--"},
    RIVAL: {"color": "#D55E00", "marker": "D"},
    RIVAL_DEFAULT: {"color": "0.45", "marker": "x", "linestyle": ":"},
}
TITLES = dict(zip(METRICS, ("Accuracy", "AUC", "Log loss"), strict=True))
LARGER_IS_BETTER = {"accuracy": True, "auc": True, "log_loss": False}


@dataclass(frozen=True)
class Labelled:
    """Rows of norm 1 at most, and labels 0 and 1."""

    name: str
    X: np.ndarray
    y: np.ndarray

    def head(self) -> str:
        """Return the name with the shape."""
        return f"{self.name}, {self.X.shape[0]:,} x {self.X.shape[1]}"


def digits(negative: int, positive: int) -> Labelled:
    """Two of scikit-learn's digits, as rows of norm 1."""
    X, y = load_digits(return_X_y=True)
    kept = (y == negative) | (y == positive)
    return Labelled(
        f"digits {negative} v {positive}", normalize(X[kept]), 1 * (y[kept] == positive)
    )


def min_max(name: str, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Columns to [-1, 1] by the data's own extremes, which is not private; rows of norm 1."""
    return Labelled(name, normalize(minmax_scale(X, (-1, 1))), 1 * y)


#: Files with bounds that were stated without looking at the records.
BOUNDS: dict[str, tuple[str, dict[str, tuple[float, float]]]] = {
    "heart disease": (
        "heart_disease_4sites.csv.gz",
        {
            "age": (20, 90),
            "sex": (0, 1),
            "cp": (1, 4),
            "trestbps": (80, 200),
            "chol": (100, 400),
            "fbs": (0, 1),
            "restecg": (0, 2),
            "thalach": (60, 200),
            "exang": (0, 1),
            "oldpeak": (0, 5),
            "slope": (1, 3),
            "ca": (0, 3),
            "thal": (3, 7),
        },
    ),
    "myocardial infarction": (
        "mi_edinburgh_webglore.csv.gz",
        {f"F{number}": (0, 1) for number in range(1, 10)},
    ),
    "diabetes": (
        "nhanes_diabetes.csv.gz",
        {
            "female": (0, 1),
            "age": (20, 80),
            "bmi": (15, 50),
            "weight": (40, 150),
            "height": (140, 200),
            "pulse": (40, 120),
            "bp_sys": (80, 200),
            "bp_dia": (40, 120),
            "chol_direct": (0.5, 3),
            "chol_total": (2, 9),
            "poverty": (0, 5),
            "smoke100": (0, 1),
            "phys_active": (0, 1),
            "race_black": (0, 1),
            "race_hispanic": (0, 1),
            "race_mexican": (0, 1),
            "race_other": (0, 1),
        },
    ),
}


def main_sets() -> list[Labelled]:
    """Return the two data sets that the tuning constants were chosen with in view."""
    X, y = load_breast_cancer(return_X_y=True)
    return [digits(0, 8), min_max("breast cancer", X, y)]


def more_sets(folder: Path | None) -> Iterator[Labelled]:
    """Yield the others: from scikit-learn and, with a folder, medical ones."""
    yield digits(3, 8)
    yield digits(1, 7)
    X, y = load_wine(return_X_y=True)
    yield min_max("wine, first v rest", X, y == 0)
    frames = {}
    for name, (file, _) in BOUNDS.items():
        with part(name):
            frames[name] = pd.read_csv(data_file(folder, file))
    for name, frame in frames.items():
        bounds = BOUNDS[name][1]
        scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
        X = np.asarray(scaler.fit_transform(frame[list(bounds)].astype(float)))
        # A column for the intercept, alike for both packages: these classes are unequal.
        X = np.column_stack([X, np.ones(len(X))])
        yield Labelled(name, normalize(X), frame["y"].to_numpy())


def ours(
    data: Labelled,
    epsilon: float,
    repetitions: int,
    make: type[LogisticModel] = DPLogisticRegression,
    **options: Any,
) -> np.ndarray:
    """Return scores, of shape (splits, metrics)."""
    found = []
    for repetition in range(repetitions):
        train, test = split(data.y.size, repetition)
        model = make(
            epsilon,
            fit_intercept=False,
            data_norm=1.0,
            classes=[0, 1],
            random_state=repetition,
            **options,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X[train], data.y[train])
        held_out, probability = data.X[test], model.predict_proba(data.X[test])[:, 1]
        found.append(scores(data.y[test], model.decision_function(held_out), probability))
    return np.array(found)


def theirs(
    rival: Diffprivlib, data: Labelled, epsilons: Sequence[float], repetitions: int
) -> np.ndarray:
    """Return scores, of shape (epsilons, Cs, splits, metrics)."""
    splits = [split(data.y.size, repetition) for repetition in range(repetitions)]
    found = rival.run(
        "accuracy",
        X=data.X,
        y=data.y,
        orders=np.array([np.concatenate(parts) for parts in splits]),
        cut=splits[0][0].size,
        epsilons=epsilons,
        Cs=CS,
    )
    return np.array(found)


def all_scores(
    rival: Diffprivlib,
    sets: Sequence[Labelled],
    methods: Sequence[str],
    epsilons: Sequence[float],
    repetitions: int,
    jobs: int,
) -> dict[tuple[str, str, float], np.ndarray]:
    """Return scores, of shape (candidates, splits, metrics), by data set, method and epsilon."""
    calls: dict[tuple[str, str, float], list[Any]] = {}
    for data in sets:
        for epsilon in epsilons:
            for method in methods:
                if method == PUBLISHED:
                    options = [{"make": PublishedLogisticRegression, "alpha": a} for a in ALPHAS]
                else:
                    options = [METHODS[method]]
                calls[data.name, method, epsilon] = [
                    delayed(ours)(data, epsilon, repetitions, **each) for each in options
                ]
    parallel = Parallel(n_jobs=jobs)
    found = iter(parallel(call for each in calls.values() for call in each))
    results = {key: np.array([next(found) for _ in each]) for key, each in calls.items()}
    rivals = parallel(delayed(theirs)(rival, data, epsilons, repetitions) for data in sets)
    for data, by_epsilon in zip(sets, rivals, strict=True):
        for epsilon, by_c in zip(epsilons, by_epsilon, strict=True):
            results[data.name, RIVAL, epsilon] = by_c
            results[data.name, RIVAL_DEFAULT, epsilon] = by_c[[CS.index(1.0)]]
    return results


def best(candidates: np.ndarray, metric: str) -> np.ndarray:
    """Return the scores, one for each split, of the candidate with the best mean."""
    values = candidates[:, :, METRICS.index(metric)]
    means = values.mean(axis=1)
    return values[np.argmax(means) if LARGER_IS_BETTER[metric] else np.argmin(means)]


def mean_and_interval(values: np.ndarray, signed: bool = False) -> str:
    """Return the mean, and half the width of its 95 % interval."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(values.size)
    return f"{values.mean():{'+' if signed else ''}.3f} ± {half:.3f}"


def table_of(
    file: str,
    sets: Sequence[Labelled],
    methods: Sequence[str],
    epsilons: Sequence[float],
    results: dict[tuple[str, str, float], np.ndarray],
    metric: str,
    repetitions: int,
) -> None:
    """Write a table, with the difference of the defaults and the rival's best."""
    rows = []
    for data in sets:
        for method in methods:
            cells = (best(results[data.name, method, e], metric) for e in epsilons)
            label = method if method in (RIVAL, RIVAL_DEFAULT) else f"skdpsurv, {method}"
            rows.append((data.head(), label, *map(mean_and_interval, cells)))
        gains = (
            best(results[data.name, "defaults", e], metric)
            - best(results[data.name, RIVAL, e], metric)
            for e in epsilons
        )
        cells = (mean_and_interval(gain, signed=True) for gain in gains)
        rows.append((data.head(), "defaults less diffprivlib's best", *cells))
    table(
        file,
        ("data", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        rows,
        f"{TITLES[metric]} on held-out rows: mean over {repetitions} splits 70/30, and half the "
        "width of a 95 % interval for it, which covers the luck of split and noise and not that of "
        "the data set. Differences are paired by split. The best C and alpha are those with the "
        f"best mean on the held-out rows, for each epsilon. diffprivlib {VERSION}.",
    )


@part("figure")
def figure(sets: Sequence[Labelled], results: dict[tuple[str, str, float], np.ndarray]) -> None:
    """Draw accuracy over epsilon, a panel for each data set."""
    drawn = sheet(4.4 * len(sets), 4.2)
    for ax, data in zip(np.atleast_1d(drawn.subplots(1, len(sets))), sets, strict=True):
        for method, style in STYLES.items():
            curve = [best(results[data.name, method, e], "accuracy").mean() for e in EPSILONS]
            ax.semilogx(EPSILONS, curve, **({"linewidth": 1.5, "markersize": 5} | style))
        ax.set_title(data.name, loc="left", fontweight="bold", fontsize=11)
        ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        ax.minorticks_off()
        ax.set_xlabel("ε")
        ax.set_ylabel("Accuracy on held-out rows")
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    names = [m if "diffprivlib" in m else f"skdpsurv, {m}" for m in STYLES]
    drawn.legend(ax.get_lines(), names, loc="outside lower center", ncols=3, frameon=False)
    save(drawn, "logistic_accuracy")


def main() -> None:
    """Tables and a figure."""
    args = arguments(
        __doc__ or "",
        rival_env=OPTION,
        repetitions=number(200, quick=2),
        more_repetitions=number(50, quick=2),
        jobs=number(1),
    )
    rival = diffprivlib(args.rival_env)
    sets, methods = main_sets(), ("defaults", "max_residual=1", PUBLISHED, "out_pert")
    results = all_scores(rival, sets, methods, EPSILONS, args.repetitions, args.jobs)
    shown = (*methods, RIVAL, RIVAL_DEFAULT)
    for metric in METRICS:
        file = f"logistic_{metric}"
        table_of(file, sets, shown, EPSILONS, results, metric, args.repetitions)
    figure(sets, results)
    more, few = list(more_sets(args.data_dir)), EPSILONS[1:5]
    results = all_scores(rival, more, ("defaults",), few, args.more_repetitions, args.jobs)
    shown = ("defaults", RIVAL)
    for metric in ("accuracy", "auc"):
        file = f"logistic_more_{metric}"
        table_of(file, more, shown, few, results, metric, args.more_repetitions)


if __name__ == "__main__":
    run(main)
