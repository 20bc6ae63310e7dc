"""People who enter late, with age as the time scale: private hazard models beside Cox regression.

Both are told when each person entered. A Cox regression that is not counts the years before the
entry as survived, for which columns that go with the entry have to pay.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.data import survset_frame
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
from skdpsurv.data.target import survival_target

EPSILONS = (np.inf, 3.0, 1.0)


class Aged(NamedTuple):
    """People by age: covariates with public bounds, ages of entry and exit, and the last age."""

    X: pd.DataFrame
    bounds: dict[str, tuple[float, float]]
    entry: np.ndarray
    exit: np.ndarray
    event: np.ndarray
    last: float


@cache
def _oldmort() -> Aged:
    """People of Skelleftea from their 60th birthday on (``oldmort`` of SurvSet): first rows."""
    frame = survset_frame("oldmort").sort_values(["pid", "time"]).drop_duplicates("pid")
    X = pd.DataFrame(
        {
            "man": (frame.fac_sex == "male").astype(float),
            "decade of birth": (frame.num_birthdate - 1805.0) / 10.0,
            "infants' deaths / 5": (frame.num_imr_birth - 15.0) / 5.0,
            "town": (frame.fac_region == "town").astype(float),
            "rural": (frame.fac_region == "rural").astype(float),
            "married": (frame.fac_civ == "married").astype(float),
        }
    )
    flags = ("man", "town", "rural", "married")
    bounds = {name: (0.0, 1.0) if name in flags else (-4.0, 4.0) for name in X}
    ages = (frame[name].to_numpy(float) - 60.0 for name in ("time", "time2"))
    return Aged(X, bounds, *ages, frame.event.to_numpy().astype(bool), 40.0)


@cache
def _flchain() -> Aged:
    """People of Olmsted County aged 50 and more (``flchain``), from their age at the sample."""
    from sksurv.datasets import load_flchain

    frame, y = load_flchain()
    age = frame["age"].to_numpy(float) - 50.0 + 0.5  # whole years
    X = pd.DataFrame(
        {
            "man": (frame["sex"] == "M").to_numpy(float),
            "log kappa": np.log(frame["kappa"].to_numpy(float)),
            "log lambda": np.log(frame["lambda"].to_numpy(float)),
            "MGUS": (frame["mgus"].astype(str) == "yes").to_numpy(float),
        }
    )
    bounds = {name: (0.0, 1.0) if name in ("man", "MGUS") else (-3.0, 3.0) for name in X}
    return Aged(X, bounds, age, age + y["futime"] / 365.25, y["death"], 50.0)


SETS = {"oldmort": _oldmort, "flchain": _flchain}


@cache
def cox(name: str) -> dict[str, np.ndarray]:
    """Return coefficients and errors of Cox regression, and coefficients without entries."""
    from lifelines import CoxPHFitter

    data = SETS[name]()
    frame = data.X.assign(entry=data.entry, exit=data.exit, event=data.event)
    frame = frame[frame.entry < frame.exit]
    fit = CoxPHFitter().fit(frame, "exit", "event", entry_col="entry")
    naive = CoxPHFitter().fit(frame.drop(columns="entry"), "exit", "event")
    found = {"cox": fit.params_, "error": fit.standard_errors_, "without": naive.params_}
    return {key: values.to_numpy() for key, values in found.items()}


def cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for epsilon in EPSILONS:
            yield {"data": name, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return of each column Cox's coefficients and ours, on one scale, and how we rank."""
    data, theirs = SETS[case["data"]](), cox(case["data"])
    y = survival_target(data.event, data.exit)
    model: Any = DPDiscreteTimeSurvival(
        case["epsilon"],
        columns=PublicColumns(data.bounds),
        max_time=data.last,
        link="cloglog",
        n_knots=3,
        recalibration_share=0.0,
        random_state=seed(*case.values(), repetition),
    ).fit(data.X, y, entry=data.entry)
    score = model.score(data.X, y, entry=data.entry)
    # Columns are scaled to [-1, 1].
    half = np.array([(high - low) / 2.0 for low, high in data.bounds.values()])
    return [
        {"column": column, "coef": float(coef), "score": score}
        | {key: float(values[j]) for key, values in theirs.items()}
        for j, (column, coef) in enumerate(zip(data.X, model.coef_ / half, strict=True))
    ]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    table, exact, ignored = [], [], []
    for (name, column), own in rows.groupby(["data", "column"], sort=False):
        first, off = own.iloc[0], (own.coef - own.cox) / own.error
        exact.append(off[np.isinf(own.epsilon)].abs().max())
        ignored.append(abs(first.without - first.cox) / first.error)
        noisy = [np.sqrt(np.mean(off[own.epsilon == epsilon] ** 2)) for epsilon in EPSILONS[1:]]
        mean = own.coef[np.isinf(own.epsilon)].mean()
        table.append(
            (
                *(name, column, f"{first.cox:.3f} ± {first.error:.3f}", f"{mean:.3f}"),
                *(f"{value:.1f}" for value in noisy),
                f"{first.without:.3f}",
            )
        )
    ranks = rows.groupby(["data", "epsilon"], sort=False).score.mean()
    by = [
        f"{name} " + ", ".join(f"{ranks[name, epsilon]:.3f}" for epsilon in EPSILONS)
        for name in dict.fromkeys(rows.data)
    ]
    pages.fact("late_entry_off", f"{max(exact):.2f}")
    pages.fact("late_entry_ignored", f"{max(ignored):.0f}")
    pages.table(
        "late_entry",
        (
            *("data", "column", "Cox ± error", "no noise"),
            *(f"off at ε = {epsilon:g}" for epsilon in EPSILONS[1:]),
            "Cox, entries ignored",
        ),
        table,
        f"Without noise, coefficients are within {max(exact):.2f} of Cox's standard errors of "
        f"Cox's. A Cox regression that ignores entries is off by up to {max(ignored):.1f}.",
        "Log hazard ratios, of columns in the units named. Off: root mean square distance to Cox's "
        "coefficient, in its standard errors, over "
        f"{rows[np.isfinite(rows.epsilon)].groupby(['data', 'epsilon', 'column']).size().min()} "
        f"fits; it has privacy's noise and the ridge in it. Concordance at ε = ∞, 3, 1: "
        f"{'; '.join(by)}.",
    )


def repetitions(case: Case) -> int:
    return 1 if np.isinf(case["epsilon"]) else 50


EXPERIMENT = Experiment(cases, measure, report, repetitions)
