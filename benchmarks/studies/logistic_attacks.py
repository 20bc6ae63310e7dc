"""Attacks on private logistic regression, diffprivlib's too, with the tests' own harness.

Two neighbouring data sets are fitted many times; a forest learns from half of the releases to tell
them apart, and the rest give a lower bound on epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from benchmarks.rivals.classification import ENVIRONMENT
from tests.support import logistic_attacks as attacks

#: Chance that a private mechanism has a bound above its epsilon, for each line of the table.
ERROR = 1e-3
RIVAL, OURS = "diffprivlib", "skdpsurv"
#: Record that differs, its norm, fits of either data set.
PAIRS = {
    "data_norm = 100": ("0 or 100", 6000),
    "data_norm = 1000": ("0 or 1000", 8000),
    "with an intercept, data_norm = 1": ("0 or 1", 8000),
}


def pair(name: str) -> attacks.Pair:
    """Return two data sets of two records, the first a row of zeros, with labels 0 and 1."""
    if "intercept" in name:
        return attacks.moved((0, 0), (0, 1), attacks.with_constant(1.0))
    norm = float(name.rpartition(" ")[2])
    return attacks.moved((0, 0), (0, norm), attacks.without_intercept(norm))


def cases(setting: Setting) -> Iterator[Case]:
    for name in list(PAIRS)[: setting.of(None, 1)]:
        for epsilon in (1.0, 4.0) if name == "data_norm = 1000" else (1.0,):
            for method in (OURS, RIVAL):
                yield {"setting": name, "epsilon": epsilon, "method": method}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the bound that was found."""
    known, epsilon = pair(case["setting"]), case["epsilon"]
    trials = setting.of(PAIRS[case["setting"]][1], 60)
    if case["method"] == OURS:
        found = attacks.releases(known, trials, epsilon=epsilon, alpha=0.0)
    else:
        model = {"epsilon": epsilon, "C": 1.0}
        model |= {name: known.parameters[name] for name in ("data_norm", "fit_intercept")}
        arrays = {f"X{i}": known.X[i] for i in range(2)} | {f"y{i}": known.y[i] for i in range(2)}
        told = {"model": model, "trials": trials}
        found = np.array(ENVIRONMENT.run(setting, "releases", arrays, **told))
    return {"bound": max(attacks.attack(found, known, ERROR), 0.0), "fits": trials}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells = []
    for (name, epsilon), part in rows.groupby(["setting", "epsilon"], sort=False):
        bounds = part.set_index("method").bound
        texts = [f"{bounds[m]:.2f}" if m in bounds else "" for m in (RIVAL, OURS)]
        n = f"{part.fits.max():,}"
        cells.append((name, PAIRS[name][0], f"{epsilon:g}", *texts, n))
    broken = rows[rows.bound > rows.epsilon]
    said = []
    for method in (RIVAL, OURS):
        mine = rows[rows.method == method]
        if len(mine):
            over = broken[broken.method == method]
            most = f", by {np.max(over.bound - over.epsilon):.2f} at most" if len(over) else ""
            said.append(f"{method}'s in {len(over)} of {len(mine)}{most}")
    pages.table(
        "logistic_attacks",
        (
            *("setting", "record that differs", "claimed ε"),
            *(f"found, {RIVAL}", f"found, {OURS}", "fits of either data set"),
        ),
        cells,
        f"A bound above the claimed ε is a broken promise: {'; '.join(said)}.",
        "Lower bounds on epsilon that a mechanism with the claimed epsilon passes with probability "
        f"at least 1 - {ERROR:g} each. Two records, the first a row of zeros, with labels 0 and 1; "
        "alpha=0, the weakest penalty allowed, and intercept_scaling=1 for skdpsurv, C = 1 for "
        "diffprivlib 0.6.6.",
    )


ATTACKS = Experiment(cases, measure, report)
