"""Recalibration beside known survival: scores of three values, each followed for another time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival

SIZES = (3_000, 10_000, 30_000, 100_000)
EPSILONS = (0.3, 1.0, 3.0, 10.0)
SHARES = {"not recalibrated": 0.0, "default": 0.1}
#: Parts of the people, their log hazards, and when their censoring begins and ends.
PARTS, LEVELS = (0.6, 0.3, 0.1), (-2.5, -1.5, -0.5)
BEGIN, END = np.array([0.2, 0.6, 0.1]), np.array([1.3, 1.2, 1.1])


def cases(setting: Setting) -> Iterator[Case]:
    for n in setting.of(SIZES, SIZES[:1]):
        for epsilon in setting.of(EPSILONS, (1.0,)):
            for share in SHARES.values():
                yield {"n": n, "epsilon": epsilon, "share": share}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the mean distance from true survival, at a half of the horizon and at it."""
    n, epsilon, share = int(case["n"]), case["epsilon"], case["share"]
    rng = np.random.default_rng(seed("atoms", n, repetition))
    atom = rng.choice(3, n, p=PARTS)
    rate = np.exp(LEVELS)
    time = rng.exponential(size=n) / rate[atom]
    lost = np.minimum(rng.uniform(BEGIN[atom], END[atom]), 1.0)
    y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= lost, np.minimum(time, lost)
    values = np.array([[-1.0], [0.0], [1.0]])
    model = DPDiscreteTimeSurvival(
        epsilon,
        max_time=1.0,
        recalibration_share=share,
        random_state=seed("noise", n, epsilon, share, repetition),
    ).fit(values[atom], y)
    survival = model.predict_survival_function(values, return_array=True)
    last = survival.shape[1]
    places = np.array([last // 2, last]) - 1
    truth = np.exp(-rate[:, None] * (places + 1) / last)
    return {"off": float(np.mean(np.abs(survival[:, places] - truth)))}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    mean = rows.groupby(["n", "share", "epsilon"]).off.mean()
    epsilons, sizes = sorted(rows.epsilon.unique()), sorted(rows.n.unique())
    raw, ours = (mean[sizes[-1], share, epsilons[-1]] for share in SHARES.values())
    pages.table(
        "absolute_risk_atoms",
        ("records", "fit", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        [
            (f"{n:,}", fit, *(f"{mean[n, share, epsilon]:.3f}" for epsilon in epsilons))
            for n in sizes
            for fit, share in SHARES.items()
        ],
        f"With {sizes[-1]:,} records at ε = {epsilons[-1]:g} survival is off by {ours:.3f}, and by "
        f"{raw:.3f} if not recalibrated, because of the cap of the hazard.",
        f"Mean distance from true survival, {rows.repetition.max() + 1} fits.",
    )


ATOMS = Experiment(cases, measure, report, repetitions=20)
