"""Joint Wald tests of terms: how often they reject what is true, and find what is there.

People have a category of three labels and six columns, all correlated. In the null cases the
category and two of the columns have no effect. The same tests of Cox regression, or of maximum
likelihood, see the records without privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.populations import LOSS, MAX_TIME, SHAPE
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PublicColumns

SHARE = 0.3
#: Fits of one measurement, in null cases and in others.
FITS = 20
CORRELATION, RATE, INTERCEPT = 0.6, 0.7, -0.5
LABELS, SHARES, RARE = ("a", "b", "c"), (0.5, 0.3, 0.2), (0.004, 0.6, 0.396)
NUMBERS = tuple(f"x{j}" for j in range(1, 7))
#: Effects of the columns, of which the last two are 0; and of labels, where they have any.
EFFECTS, OF_LABELS = (0.8, -0.5, 0.3, 0.2, 0.0, 0.0), (0.0, 0.12, -0.08)
TESTS = {"category": ["arm"], "two columns": ["x5", "x6"], "both": ["arm", "x5", "x6"]}
#: Model, records, epsilon, delta.
TRIED = (
    ("hazard", 5_000, 3.0, 1e-7),
    ("logistic", 5_000, 3.0, 0.0),
    ("logistic", 10_000, 1.0, 0.0),
    ("logistic, rare reference", 5_000, 3.0, 0.0),
)
KEYS = ["model", "n", "epsilon", "delta", "effect"]
LEVELS = {"0.05": 0.05, "0.01": 0.01}


def cases(setting: Setting) -> Iterator[Case]:
    for effect in (0, 1):
        for case in setting.of(TRIED, TRIED[::3]):
            yield dict(zip(KEYS, (*case, effect), strict=True))


def sample(case: Case, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, np.ndarray]:
    """Return columns, their target, and rows with an indicator of each label but the first."""
    n, d = case["n"], 1 + len(NUMBERS)
    root = np.linalg.cholesky(CORRELATION + (1.0 - CORRELATION) * np.eye(d))
    latent = rng.normal(size=(n, d)) @ root.T
    shares = RARE if "rare" in case["model"] else SHARES
    label = np.searchsorted(special.ndtri(np.cumsum(shares)[:-1]), latent[:, 0])
    numbers = np.clip(0.4 * latent[:, 1:], -1.0, 1.0)
    score = numbers @ EFFECTS + case["effect"] * np.array(OF_LABELS)[label]
    X = pd.DataFrame(numbers, columns=list(NUMBERS))
    X.insert(0, "arm", np.array(LABELS)[label])
    rows = np.column_stack([label == 1, label == 2, numbers]).astype(float)
    if case["model"].startswith("logistic"):
        return X, (rng.random(n) < special.expit(INTERCEPT + score)).astype(int), rows
    time = MAX_TIME * (rng.exponential(size=n) / (RATE * np.exp(score))) ** (1.0 / SHAPE)
    last = np.minimum(rng.exponential(1.0 / LOSS, n), MAX_TIME)
    y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return X, y, rows


def private(case: Case, X: pd.DataFrame, y: Any, key: int) -> Any:
    """Return the fitted model."""
    columns = PublicColumns({"arm": list(LABELS), **dict.fromkeys(NUMBERS, (-1.0, 1.0))})
    options = {"delta": case["delta"], "columns": columns, "inference_share": SHARE}
    options["random_state"] = key
    if case["model"].startswith("logistic"):
        return DPLogisticRegression(case["epsilon"], classes=[0, 1], **options).fit(X, y)
    return DPDiscreteTimeSurvival(
        case["epsilon"], link="cloglog", max_time=MAX_TIME, **options
    ).fit(X, y)


def without_privacy(case: Case, y: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and their covariance, of Cox regression or of statsmodels."""
    if case["model"].startswith("logistic"):
        import statsmodels.api as sm

        fit = sm.Logit(y, sm.add_constant(rows)).fit(disp=0)
        return fit.params[1:], fit.cov_params()[1:, 1:]
    from lifelines import CoxPHFitter

    frame = pd.DataFrame(rows).assign(time=y["time"], event=y["event"])
    cox = CoxPHFitter().fit(frame, "time", "event")
    return cox.params_.to_numpy(), cox.variance_matrix_.to_numpy()


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each test how often it had all coefficients, and how often it rejected."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in TESTS}
    for number in range(setting.of(FITS, 1)):
        key = seed(*case.values(), repetition, number)
        X, y, rows = sample(case, np.random.default_rng(key))
        model = private(case, X, y, key + 1)
        features = model.release_.feature_names
        coef, covariance = without_privacy(case, y, rows)
        for name, columns in TESTS.items():
            test = model.test(columns)
            at = [j for j, one in enumerate(features) if one.split("_")[0] in columns]
            z = coef[at] @ np.linalg.solve(covariance[np.ix_(at, at)], coef[at])
            exact = float(special.chdtrc(len(at), z))
            found[name].append((test.degrees_of_freedom / len(at), test.p_value, exact))
    return [_counts(name, np.array(tests)) for name, tests in found.items()]


def _counts(name: str, tests: np.ndarray) -> Row:
    part, p, exact = tests.T
    row: Row = {"test": name, "fits": len(p), "whole": int((part == 1.0).sum())}
    row["some"] = int((part > 0.0).sum())
    for level, size in LEVELS.items():
        row |= {f"p{level}": int((p < size).sum()), f"exact{level}": int((exact < size).sum())}
    return row


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = rows.groupby([*KEYS, "test"], sort=False).sum(numeric_only=True).reset_index()
    table, level = [], []
    for key, own in found.groupby([*KEYS[:-1], "test"], sort=False):
        model, n, epsilon, delta, test = key
        # Two columns have no effect in any case.
        is_null = (own.effect == 0) | (test == "two columns")
        null, real = own[is_null].sum(numeric_only=True), own[~is_null].sum(numeric_only=True)
        level.append(null["p0.05"] / null["some"])
        other = "Cox" if model.startswith("hazard") else "statsmodels"
        table.append(
            (
                *(f"{model}, {n:,.0f}", f"{epsilon:g}", f"{delta:g}", test),
                *(f"{null.fits:,.0f}", _share(null["whole"], null.fits)),
                *(_error(null[f"p{one}"], null["some"]) for one in LEVELS),
                f"{_share(null['exact0.05'], null.fits)} ({other})",
                *(_share(real["p0.05"], real["some"]), _share(real["exact0.05"], real.fits)),
            )
        )
    worst = f"{100.0 * max(level):.1f}"
    with_effect = found[(found.effect == 1) & (found.test != "two columns")].fits
    pages.fact("joint_tests_level", worst)
    pages.table(
        "joint_tests",
        (
            *("model, n", "ε", "δ", "test", "fits", "whole", "5 %", "1 %", "exact"),
            *("power", "exact power"),
        ),
        table,
        f"At level 5 %, joint tests reject a true hypothesis in at most {worst} % of fits.",
        f"Per cent of fits with inference_share={SHARE:g}, each to new people: in which all "
        "coefficients are tested; rejections of what is true at levels 5 and 1 %, with the "
        "standard error; the same at 5 % of the Wald test without privacy; rejections at 5 % where "
        f"the labels have log ratios of {OF_LABELS[1]:g} and {OF_LABELS[2]:g} "
        f"(at least {with_effect.min()} fits). The category has two coefficients, "
        f"both are four. Rare reference: {100.0 * RARE[0]:g} % of people, else {100 * SHARES[0]:g} "
        "%; noise may then leave the difference of the two other labels alone.",
    )


def _error(count: float, of: float) -> str:
    share = count / of if of else math.nan
    return (
        f"{_share(count, of)} ± {100.0 * math.sqrt(share * (1.0 - share) / of):.1f}" if of else ""
    )


def _share(count: float, of: float) -> str:
    return f"{100.0 * count / of:.1f}" if of else ""


def repetitions(case: Case) -> int:
    return 15 if case["effect"] else 100


EXPERIMENT = Experiment(cases, measure, report, repetitions)
