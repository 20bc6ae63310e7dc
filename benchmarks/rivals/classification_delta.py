"""Private classifiers that need a delta, and whether curved effects explain who is ahead.

All have delta = 1/n² for a replaced record. Rivals whose neighbours differ by an added or removed
record are asked for less, such that they keep this; *native* are they with epsilon and delta as
they state them, which is a weaker guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data import Labelled, labelled
from benchmarks.environments import Environment
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from benchmarks.rivals.classification import (
    EXACT,
    OURS,
    QUICK_SETS,
    SETS,
    Fit,
    epsilons,
    exact,
    here,
    private,
    there,
)
from benchmarks.rivals.classification_curves import curves
from benchmarks.rivals.classification_tables import NATIVE, Method, Report
from benchmarks.rivals.neighbours import ADD_OR_REMOVE, native
from benchmarks.rivals.newton import DoubleNoiseNewton, gaussian_rho
from benchmarks.rivals.worker import Prediction, logistic, with_constant
from skdpsurv import DPLogisticRegression, FeaturePartition, PrivateStackingClassifier

STACK, SQUARES, NEWTON, BOOSTING, DESCENT = "stack", "squares", "Newton", "DP-EBM", "DP-SGD"
EXACT_BOOSTING = "boosting, no privacy"
#: Of slow rivals: boosting has these with many columns, gradient descent everywhere.
FEW = (10.0, 1.0, 0.1)
COMPONENTS = ("MNIST 0 or 8", "MNIST 4 or 9", "NEWS20")
MANY_COLUMNS = (*COMPONENTS, "digits 0 or 8", "breast cancer")
TABLES = ("diabetes", "heart disease", "GUSTO-I", "readmission")
DESCENT_SETS = ("diabetes", "heart disease", "MNIST 0 or 8", "NEWS20")

INTERPRET = Environment(
    "interpret", ("interpret-core==0.7.8",), Path(__file__).with_name("interpret_fits.py")
)
OPACUS = Environment(
    "opacus", ("opacus==1.6.0", "torch==2.13.0"), Path(__file__).with_name("opacus_fits.py")
)
#: Double noise: is lambda_0 clipped, is the curvature that of the upper bound. First the default.
VARIANTS = {
    "add, Hessian": (False, False),
    "clip, Hessian": (True, False),
    "add, bound": (False, True),
    "clip, bound": (True, True),
}
#: Learning rates and steps of stochastic gradient descent, first the "default". Opacus has none:
#: a rate of 4 is one over the largest second derivative, as Ganesh et al. have it.
RATES = {f"{rate:g} x {n}": (rate, n) for n in (200, 50) for rate in (4.0, 1.0, 0.25, 16.0)}
BATCH = 256
DEFAULT_VARIANT, DEFAULT_RATE = next(iter(VARIANTS)), next(iter(RATES))
METHODS = (
    Method("skdpsurv", OURS, ("delta",)),
    Method("skdpsurv without delta", OURS, ("pure",)),
    Method("skdpsurv, stack by importance", STACK),
    Method("DP-EBM", BOOSTING),
    Method("DP-SGD, best of eight", DESCENT),
    Method("double-noise Newton, best of four", NEWTON),
)
#: Rivals at their defaults, and with the guarantee that they state.
OTHERS = (
    Method("DP-SGD, default", DESCENT, (DEFAULT_RATE,)),
    Method("double-noise Newton, default", NEWTON, (DEFAULT_VARIANT,)),
)
OTHERS_ALONE = (METHODS[0], *OTHERS)
WEAKER = (
    Method("DP-EBM, native", BOOSTING, (NATIVE,)),
    Method("DP-SGD, default, native", DESCENT, (NATIVE,)),
    Method("double-noise Newton, default, native", NEWTON, (NATIVE,)),
)
CURVED = (
    METHODS[0],
    Method("skdpsurv, with squares", SQUARES),
    Method("DP-EBM", BOOSTING),
    Method("DP-EBM, native", BOOSTING, (NATIVE,)),
)


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(tuple(SETS), QUICK_SETS):
        slow = name not in setting.of((), MANY_COLUMNS)
        families = [OURS, NEWTON, EXACT, *([BOOSTING] if slow else [])]
        families += [STACK] if name in COMPONENTS else []
        families += [SQUARES, *setting.of([EXACT_BOOSTING], [])] if name in TABLES else []
        families += [DESCENT] if slow and name in DESCENT_SETS else []
        for family in families:
            yield {"data": name, "family": family}


def repetitions(case: Case) -> int:
    repeated = SETS[case["data"]]
    if case["family"] == DESCENT:
        return min(repeated.repetitions, 8)
    slow = case["family"] in (BOOSTING, EXACT_BOOSTING)
    return repeated.slow if slow else repeated.repetitions


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return scores of a family's settings, at its epsilons."""
    data, family = labelled(setting, case["data"]), case["family"]
    delta = data.n_train**-2.0
    few = family == DESCENT or (family == BOOSTING and data.name in MANY_COLUMNS)
    asked = [epsilon for epsilon in epsilons(setting) if epsilon in FEW or not few]
    if family == BOOSTING:
        wishes = [(e, *wish) for e in asked for wish in budgets(e, delta)]
        return there(INTERPRET, setting, data, repetition, wishes, 1.0)
    if family == EXACT_BOOSTING:
        exact_wish = [(np.inf, "EBM", [0.0, 0.0])]
        return there(INTERPRET, setting, data, repetition, exact_wish, 1.0)
    if family == DESCENT:
        wishes = [(e, *wish) for e in asked for wish in descents(e, delta)]
        wishes = setting.of(wishes, wishes[:1])
        return there(OPACUS, setting, data, repetition, wishes, data.data_norm, batch=BATCH)
    if family == EXACT:
        return without_privacy(setting, data, repetition)
    make = {OURS: ours, STACK: stack, SQUARES: squares, NEWTON: newtons}[family]
    fits = [(e, name, fit) for e in asked for name, fit in make(data, e, delta).items()]
    return here(setting, data, repetition, fits)


def ours(data: Labelled, epsilon: float, delta: float) -> dict[str, Fit]:
    return {
        "pure": private(DPLogisticRegression, data, epsilon=epsilon),
        "delta": private(DPLogisticRegression, data, epsilon=epsilon, delta=delta),
    }


def stack(data: Labelled, epsilon: float, delta: float) -> dict[str, Fit]:
    partition = FeaturePartition(importances=data.importances)
    options = {"epsilon": epsilon, "delta": delta, "partition": partition}
    return {"delta": private(PrivateStackingClassifier, data, **options)}


def squares(data: Labelled, epsilon: float, delta: float) -> dict[str, Fit]:
    """Squares of columns that are no flags, scaled to [-1, 1] as the columns are."""
    norm = float(np.sqrt(data.X.shape[1] + np.sum(~np.array(data.flags))))
    fit = private(DPLogisticRegression, data, epsilon=epsilon, delta=delta, data_norm=norm)
    return {"delta": on_squares(data, fit)}


def on_squares(data: Labelled, fit: Fit) -> Fit:
    """Return a fit that sees squares, too."""
    curved = ~np.array(data.flags)

    def wide(X: np.ndarray) -> np.ndarray:
        return np.column_stack([X, 2.0 * X[:, curved] ** 2 - 1.0])

    return lambda X, y, rows, key: fit(wide(X), y, wide(rows), key)


def without_privacy(setting: Setting, data: Labelled, repetition: int) -> list[Row]:
    """Return scores of logistic regression; of tables with squares, too."""
    rows = here(setting, data, repetition, [(np.inf, "linear", exact)])
    if data.name in TABLES:
        rows += here(setting, data, repetition, [(np.inf, "squares", on_squares(data, exact))])
    return rows


def newtons(data: Labelled, epsilon: float, delta: float) -> dict[str, Fit]:
    """Rows with a constant, as the paper has them; of norm 1 at most."""
    rho = gaussian_rho(epsilon, delta)

    def fit_of(newton: DoubleNoiseNewton) -> Fit:
        def fit(X: np.ndarray, y: np.ndarray, rows: np.ndarray, key: int) -> Prediction:
            train, test = (with_constant(part / data.data_norm, 1.0) for part in (X, rows))
            return logistic(test @ newton.fit(train, y, np.random.default_rng(key)))

        return fit

    fits = {
        name: fit_of(DoubleNoiseNewton(rho, clip=clip, bound=bound))
        for name, (clip, bound) in VARIANTS.items()
    }
    return fits | {NATIVE: fit_of(DoubleNoiseNewton(rho, replaced=False))}


def budgets(epsilon: float, delta: float) -> list[tuple[str, list[float]]]:
    return [("default", [*native(epsilon, delta, ADD_OR_REMOVE)]), (NATIVE, [epsilon, delta])]


def descents(epsilon: float, delta: float) -> list[tuple[str, list[float]]]:
    kept = native(epsilon, delta, ADD_OR_REMOVE)
    wishes = [(name, [*kept, *rate]) for name, rate in RATES.items()]
    return [*wishes, (NATIVE, [epsilon, delta, *RATES[DEFAULT_RATE]])]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    note = (
        "delta = 1/n² for a replaced record. DP-EBM and DP-SGD are asked for "
        "(ε/2, δ/(1 + exp(ε/2))) for an added or removed one, which implies it; best: with the "
        "best mean on the test rows at this ε; DP-SGD's default, a rate of 4 and 200 steps, is no "
        "default of Opacus, which has none. The stack is told importances of columns."
    )
    found = Report(rows[rows["family"] != SQUARES], SETS, METHODS, pages)
    found.table("classification_delta_auc", "The default with this delta is", note)
    found.figure("classification_delta")
    found.compare(skip=("skdpsurv without delta", "skdpsurv, stack by importance"))
    every = Report(rows, SETS, (*METHODS, *OTHERS, *WEAKER), pages)
    every.differences("classification_delta", f"{note} Native: with ε and δ as rivals state them.")
    Report(rows, SETS, OTHERS_ALONE, pages).compare(skip=())
    curves(Report(rows, SETS, CURVED, pages), pages)


DELTA = Experiment(cases, measure, report, repetitions=repetitions)
