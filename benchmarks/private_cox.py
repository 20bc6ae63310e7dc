r"""Private hazard regression beside a private Cox regression, on breast cancer in Rotterdam.

python -m benchmarks.private_cox --data-dir FOLDER

The rival is noisy gradient ascent of Cox's partial likelihood (Hung and Yu 2025, arXiv 2508.19640,
central case; written from the paper's statement of the algorithm, with the numbers of its published
experiment: 300 steps of length 1/2 from 0, coefficients within a ball of radius 3, rows of norm at
most 1, delta = 1e-3). The sensitivity of the mean gradient at coefficients b is

.. math:: \frac{4C}n + e^{2C\|b\|}\,\frac{(2C + C^2)\log(n + 1)}n,

at every iterate, as the algorithm states it; the published program takes that of the first iterate
for all of them, whose noise does not give the guarantee. Both are shown. Errors are squared
distances from the coefficients of Cox regression without privacy, over their squared length.

Data: ``rotterdam.csv`` of R's survival (relapse-free survival), as Rdatasets has it; without it,
the same people's deaths from the package SurvSet (rott2).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sksurv.linear_model import CoxPHSurvivalAnalysis

from benchmarks._common import table
from benchmarks._run import Missing, arguments, data_file, number, run, setting
from skdpsurv import DPDiscreteTimeSurvival

EPSILONS = setting((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 15.0), quick=(3.0,))
DELTA, STEPS, STEP, RADIUS = 1e-3, 300, 0.5, 3.0
HORIZON = 7000.0
METHODS = ("skdpsurv", "skdpsurv, with delta", "noisy Cox", "noisy Cox, published program")


def rotterdam(folder: Path | None) -> tuple[np.ndarray, np.ndarray, str]:
    """Return six binary columns over the root of 5, times in days and events, and their name."""
    try:
        frame = pd.read_csv(data_file(folder, "rotterdam.csv"))
    except Missing:
        return *_deaths(), "death"
    columns = [
        *(frame[name] for name in ("hormon", "chemo", "meno")),
        frame.grade == 3,
        frame["size"] == "20-50",
        frame["size"] == ">50",
    ]
    event = np.maximum(frame.recur, frame.death).to_numpy().astype(bool)
    time = np.where(frame.recur == 1, frame.rtime, frame.dtime).astype(float)
    return *_target(columns, event, time), "relapse or death"


def _deaths() -> tuple[np.ndarray, np.ndarray]:
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset("rott2")["df"]
    columns = [
        frame.fac_hormon == "yes",
        frame.fac_chemo == "yes",
        frame.fac_meno == "post",
        frame.fac_grade.astype(str) == "3",
        frame.fac_tsize.str.startswith(">20"),
        frame.fac_tsize.str.startswith(">50"),
    ]
    days = frame.time.to_numpy() * 365.25 / 12.0
    return _target(columns, frame.event.to_numpy().astype(bool), days)


def _target(
    columns: list[pd.Series], event: np.ndarray, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns]) / math.sqrt(5.0)
    event, time = event & (time <= HORIZON), np.minimum(time, HORIZON)
    return X, np.array(list(zip(event, time, strict=True)), dtype="?,f8")


class NoisyCox:
    """The rival on one data set, its risk sets worked out once."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        event, time = y["f0"], y["f1"]
        order = np.argsort(-time, kind="stable")
        self.X, self.event = X[order], event[order]
        # Who is at risk at a time: all that leave then or later.
        self.last = np.searchsorted(-time[order], -time[order], side="right") - 1

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        """Return that of the mean log partial likelihood."""
        weight = np.exp(self.X @ coef)
        total = np.cumsum(weight)[self.last]
        mean = np.cumsum(weight[:, None] * self.X, axis=0)[self.last] / total[:, None]
        return np.asarray((self.X - mean)[self.event].sum(axis=0) / len(self.X))

    def fit(self, epsilon: float, at_each: bool, rng: np.random.Generator) -> np.ndarray:
        """Return coefficients, with the sensitivity at each iterate or at the first for all."""
        n, coef = len(self.X), np.zeros(self.X.shape[1])
        for _ in range(STEPS):
            reach = float(np.linalg.norm(coef)) if at_each else 0.0
            apart = (4.0 + 3.0 * math.exp(2.0 * reach) * math.log(n + 1.0)) / n
            variance = apart**2 * STEPS / epsilon * (2.0 * math.log(1.0 / DELTA) / epsilon + 1.0)
            noise = rng.normal(size=coef.size) * math.sqrt(variance)
            coef = coef + STEP * (self.gradient(coef) + noise)
            coef *= min(1.0, RADIUS / max(float(np.linalg.norm(coef)), 1e-300))
        return coef


def errors(X: np.ndarray, y: np.ndarray, epsilon: float, repetition: int) -> list[float]:
    """Return the error of each method."""
    exact = CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).coef_
    rival = NoisyCox(X, y)
    found = []
    for delta in (0.0, DELTA):
        model = DPDiscreteTimeSurvival(
            epsilon, delta=delta, max_time=HORIZON, link="cloglog", data_norm=1.0
        )
        found.append(model.fit(X, y).coef_)
    for at_each in (True, False):
        rng = np.random.default_rng([repetition, int(10 * epsilon)])
        found.append(rival.fit(epsilon, at_each, rng))
    return [float(np.sum((coef - exact) ** 2) / np.sum(exact**2)) for coef in found]


def main() -> None:
    args = arguments(__doc__ or "", repetitions=number(40, quick=2), jobs=number(2))
    X, y, event = rotterdam(args.data_dir)
    rows = []
    for epsilon in EPSILONS:
        found = Parallel(n_jobs=args.jobs)(
            delayed(errors)(X, y, epsilon, r) for r in range(args.repetitions)
        )
        mean = np.mean(found, axis=0)
        rows.append((f"{epsilon:g}", *(f"{one:.2f}" for one in mean)))
    table(
        "private_cox",
        ("epsilon", *METHODS),
        rows,
        f"Relative squared error of coefficients, mean of {args.repetitions} fits; event: {event}; "
        f"delta = {DELTA:g} of all but the first.",
    )


if __name__ == "__main__":
    run(main)
