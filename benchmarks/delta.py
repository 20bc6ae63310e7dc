"""What a delta gives: where Gaussian noise is less, and what becomes of ranking and accuracy.

python -m benchmarks.delta --data-dir FOLDER

Delta is 1/n^2. Ridge and steps of the descent were found on the sets "found on" and on news and
digits at epsilon = 1; the other sets were looked at once, after.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._classification import LabelledData, benchmark_sets
from benchmarks._common import SurvivalData, flchain, split, table
from benchmarks._run import arguments, number, part, run, setting
from benchmarks.absolute_risk import survset
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PrivacyLeakWarning
from skdpsurv.evaluation import concordance_index

FOUND_ON = ("rhc", "support2", "smarto")
KEPT_APART = ("LeukSurv", "Framingham", "dataDIVAT1", "actg", "rott2")
EPSILONS = setting((0.5, 1.0, 3.0), quick=(1.0,))
SIZES = setting((500, 2000, 10_000, 100_000), quick=(2000,))
COLUMNS = setting((5, 10, 20, 30, 60, 100), quick=(10, 60))


def noise(model: Any, n: int, d: int) -> float:
    """Return the noise on a gradient, in units of what one record can do; nothing is fitted."""
    rows = np.zeros((n, d))
    target = np.array([(False, 1.0)] * n, dtype="?,f8")
    y = target if isinstance(model, DPDiscreteTimeSurvival) else np.zeros(n)
    return float(model._planned(rows, y)[1].noise)


def crossing() -> None:
    """Write the ratio of Laplace noise to what delta makes of it."""
    rows = []
    for epsilon in EPSILONS:
        for n in SIZES:
            ratios = []
            for d in COLUMNS:
                make = [
                    DPDiscreteTimeSurvival(epsilon, max_time=1.0, delta=delta)
                    for delta in (0.0, float(n) ** -2)
                ]
                without, with_it = (noise(model, n, d) for model in make)
                ratios.append("1" if with_it == without else f"{without / with_it:.2f}")
            rows.append((f"{epsilon:g}", f"{n:,}", *ratios))
    table(
        "delta_crossing",
        ("epsilon", "n", *(f"{d} columns" for d in COLUMNS)),
        rows,
        "How many times as large the noise of objective perturbation is as that of a fit with "
        "delta = 1/n², for hazards; 1 where the pure fit is kept.",
    )


def survival_fits(data: SurvivalData, epsilon: float, repetition: int) -> list[float]:
    """Return C without privacy, with epsilon, and with delta beside it; and seconds of both."""
    train, test = split(len(data.y), repetition)
    found, seconds = [], []
    for budget, delta in ((math.inf, 0.0), (epsilon, 0.0), (epsilon, float(len(train)) ** -2)):
        begun = time.perf_counter()
        model = DPDiscreteTimeSurvival(budget, delta=delta, max_time=data.max_time)
        model.fit(data.X[train], data.y[train])
        seconds.append(time.perf_counter() - begun)
        found.append(float(concordance_index(data.y[test], model.predict(data.X[test]))))
    return [*found, *seconds[1:]]


def survival_sets() -> list[tuple[str, SurvivalData]]:
    sets = [("kept apart", flchain())]
    with part("the data sets of SurvSet"):
        sets += [("found on", survset(name)) for name in FOUND_ON]
        sets += [("kept apart", survset(name)) for name in KEPT_APART]
    return sets


def hazards(repetitions: int, jobs: int) -> None:
    """Write losses in C."""
    rows = []
    for kind, data in survival_sets():
        for epsilon in EPSILONS:
            found = Parallel(n_jobs=jobs)(
                delayed(survival_fits)(data, epsilon, r) for r in range(repetitions)
            )
            exact, pure, with_it, first, second = np.mean(found, axis=0)
            losses = exact - pure, exact - with_it
            ratio = f"{losses[1] / losses[0]:.2f}" if losses[0] > 0.005 else ""
            each = np.array(found)
            error = np.std(each[:, 2] - each[:, 1], ddof=1) / math.sqrt(repetitions)
            rows.append(
                (
                    *(data.name, kind, f"{len(data.y):,}", data.X.shape[1], f"{epsilon:g}"),
                    *(f"{exact:.3f}", f"{losses[0]:.3f}", f"{losses[1]:.3f}"),
                    *(f"{error:.3f}", ratio, f"{second / first:.1f}"),
                )
            )
    header = ("data", "set", "n", "columns", "epsilon", "C", "loss", "loss with delta")
    table(
        "delta_hazards",
        (*header, "±", "ratio", "time"),
        rows,
        f"Loss in C-index against the fit without privacy, mean of {repetitions} random halves; ±: "
        "one standard error of the difference between both; time: of the fit with delta, relative.",
    )


def label_fits(data: LabelledData, epsilon: float, repetition: int) -> list[float]:
    """Return accuracy without privacy, with epsilon, and with delta beside it."""
    train, test = data.split(repetition)
    found = []
    for budget, delta in ((math.inf, 0.0), (epsilon, 0.0), (epsilon, float(len(train)) ** -2)):
        model = DPLogisticRegression(budget, delta=delta, classes=[0, 1])
        model.fit(data.X[train], data.y[train])
        found.append(float(model.score(data.X[test], data.y[test])))
    return found


def classifiers(sets: list[LabelledData], repetitions: int, jobs: int) -> None:
    """Write accuracies."""
    rows = []
    for data in sets:
        for epsilon in (0.25, *EPSILONS):
            found = Parallel(n_jobs=jobs)(
                delayed(label_fits)(data, epsilon, r) for r in range(repetitions)
            )
            exact, pure, with_it = np.mean(found, axis=0)
            each = np.array(found)
            error = np.std(each[:, 2] - each[:, 1], ddof=1) / math.sqrt(repetitions)
            shown = [f"{one:.3f}" for one in (exact, pure, with_it, error)]
            rows.append((data.name, f"{data.n_train:,}", data.X.shape[1], f"{epsilon:g}", *shown))
    header = ("data", "n", "columns", "epsilon", "no privacy", "accuracy", "with delta", "±")
    table(
        "delta_classifiers",
        header,
        rows,
        f"Accuracy, mean of {repetitions} random splits; ±: one standard error of the difference.",
    )


def main() -> None:
    args = arguments(__doc__ or "", repetitions=number(12, quick=1), jobs=number(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        crossing()
        hazards(args.repetitions, args.jobs)
        classifiers(benchmark_sets(args.data_dir), args.repetitions, args.jobs)


if __name__ == "__main__":
    run(main)
