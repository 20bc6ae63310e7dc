"""Recalibration alone: sets that its priors were found on, sets kept apart, and hard simulations.

python -m benchmarks.recalibration --data-dir FOLDER

Most sets kept apart are those of the package SurvSet, which no extra of this package brings:
``pip install SurvSet``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sksurv.datasets import load_gbsg2, load_whas500

from benchmarks._common import SurvivalData, split, survival_sets, table
from benchmarks._run import arguments, number, run, setting
from benchmarks.absolute_risk import FOUND_ON as REAL_FOUND_ON
from benchmarks.absolute_risk import KEPT_APART as REAL_KEPT_APART
from benchmarks.absolute_risk import further, quality
from skdpsurv import DPDiscreteTimeSurvival

EPSILONS = setting((3.0, 1.0, 0.3), quick=(1.0,))
SIZES = setting((3_000, 10_000, 30_000, 100_000), quick=(3_000,))
SIMULATED_EPSILONS = setting((0.3, 1.0, 3.0, 10.0, 100.0), quick=(1.0,))
#: Larger sets are cut to this, for time.
MOST_RECORDS = setting(8_000, quick=2_000)
#: Law of the columns, law of censoring, records, columns and level of log hazards.
FOUND_ON = (
    ("uniform", "score", 4000, 6, 0.0),
    ("skewed", "uniform", 3000, 4, -1.0),
    ("two-valued", "entry", 8000, 8, -2.0),
    ("uniform", "score", 6000, 5, -0.5),
    ("skewed", "late", 5000, 10, 0.3),
    ("two-valued", "uniform", 3000, 5, -1.0),
    ("uniform", "entry", 10000, 6, -2.5),
)
KEPT_APART = (
    ("skewed", "score", 2500, 8, -1.5),
    ("two-valued", "late", 6000, 12, 0.5),
    ("uniform", "uniform", 1500, 20, -0.5),
)
#: Further sets of SurvSet that were kept apart, and one of ``small``.
SMALL = ("follic", "uis", "vlbw", "cost")
SEEN = ("GBSG2",)


def simulated(columns: str, leaving: str, n: int, d: int, level: float) -> SurvivalData:
    """Draw records with constant hazards, by the law of columns and of censoring."""
    rng = np.random.default_rng(n + d)
    X = {
        "uniform": lambda: rng.uniform(-1, 1, (n, d)),
        "skewed": lambda: 2.0 * np.clip(rng.exponential(0.25, (n, d)), 0, 1) - 1.0,
        "two-valued": lambda: np.where(rng.random((n, d)) < 0.3, 1.0, -1.0),
    }[columns]()
    score = X[:, :4] @ [1.2, -0.8, 0.5, 0.4]
    time = rng.exponential(size=n) / np.exp(level + score)
    lost = {
        "uniform": lambda: rng.uniform(0, 1.5, n),
        "score": lambda: rng.exponential(size=n) / np.exp(0.9 * score - 0.5),
        "entry": lambda: np.where(X[:, 0] > 0, rng.uniform(0.2, 0.5, n), rng.uniform(0.5, 1.2, n)),
        "late": lambda: rng.uniform(0.6, 1.0, n),
    }[leaving]()
    y = np.array(list(zip(time <= lost, np.minimum(time, lost), strict=True)), dtype="?,f8")
    return SurvivalData(f"{columns}, censoring by {leaving}, n = {n:,}", X, y, 1.0)


def small() -> list[SurvivalData]:
    """Return two small sets of scikit-survival that the priors were found on, with round bounds."""
    X, y = load_gbsg2()
    bounds = {"age": (20, 80), "estrec": (0, 500), "pnodes": (0, 20), "progrec": (0, 500)}
    bounds |= {"tsize": (0, 80)}
    columns = [np.where(X["horTh"] == "yes", 1.0, -1.0), np.where(X["tgrade"] == "III", 1.0, -1.0)]
    gbsg2 = SurvivalData("gbsg2", _scaled(X, bounds, columns), y, 2500.0)
    X, y = load_whas500()
    bounds = {"age": (30, 100), "bmi": (15, 45), "diasbp": (30, 150), "hr": (30, 150)}
    bounds |= {"sysbp": (60, 240), "los": (0, 30)}
    binary = [
        2.0 * X[name].astype(float).to_numpy() - 1.0
        for name in ("afb", "av3", "chf", "cvd", "gender", "miord", "mitype", "sho")
    ]
    return [gbsg2, SurvivalData("whas500", _scaled(X, bounds, binary), y, 2000.0)]


def _scaled(X: pd.DataFrame, bounds: dict, further: list[np.ndarray]) -> np.ndarray:
    scaled = [
        np.clip(2.0 * (X[name].astype(float) - low) / (high - low) - 1.0, -1.0, 1.0)
        for name, (low, high) in bounds.items()
    ]
    return np.column_stack([*scaled, *further])


def measure(data: SurvivalData, repetitions: int) -> dict[tuple[float, float], np.ndarray]:
    """Return the mean quality by epsilon and share."""
    if len(data.y) > MOST_RECORDS:
        rows = np.random.default_rng(0).permutation(len(data.y))[:MOST_RECORDS]
        data = SurvivalData(data.name, data.X[rows], data.y[rows], data.max_time)
    found: dict[tuple[float, float], list[np.ndarray]] = {}
    for repetition in range(repetitions):
        train, test = split(len(data.y), repetition)
        settings = [(epsilon, share) for epsilon in EPSILONS for share in (0.0, 0.1)]
        for epsilon, share in [(np.inf, 0.0), *settings]:
            model = DPDiscreteTimeSurvival(
                epsilon, max_time=data.max_time, recalibration_share=share, random_state=repetition
            ).fit(data.X[train], data.y[train])
            found.setdefault((epsilon, share), []).append(quality(model, data, test))
    return {key: np.mean(values, axis=0) for key, values in found.items()}


def three_atoms(n: int, epsilon: float, share: float, seed: int) -> float:
    """Return the mean distance from true survival over atoms, at a half of the horizon and at it.

    Each atom entered at another time, so that it is followed for another time.
    """
    rng = np.random.default_rng(seed)
    atom = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    rate = np.exp(np.array([-2.5, -1.5, -0.5]))
    time = rng.exponential(size=n) / rate[atom]
    lost = rng.uniform(np.array([0.2, 0.6, 0.1])[atom], np.array([1.3, 1.2, 1.1])[atom])
    y = np.array(list(zip(time <= lost, np.minimum(time, lost), strict=True)), dtype="?,f8")
    values = np.array([[-1.0], [0.0], [1.0]])
    model = DPDiscreteTimeSurvival(
        epsilon, max_time=1.0, recalibration_share=share, random_state=seed
    ).fit(values[atom], y)
    survival = model.predict_survival_function(values, return_array=True)
    last = survival.shape[1]
    places = np.array([last // 2, last]) - 1
    truth = np.exp(-rate[:, None] * (places + 1) / last)
    return float(np.mean(np.abs(survival[:, places] - truth)))


def main() -> None:
    """Tables of data sets, one by one and in sum, and of scores of three atoms."""
    args = arguments(__doc__ or "", repetitions=number(30, quick=1))
    unseen = tuple(name for name in REAL_KEPT_APART if name not in SEEN)
    groups = {
        "found on": [
            *survival_sets(args.data_dir),
            *small(),
            *further(REAL_FOUND_ON),
            *(simulated(*each) for each in FOUND_ON),
        ],
        "kept apart": [*further((*unseen, *SMALL)), *(simulated(*each) for each in KEPT_APART)],
    }
    rows, details = [], []
    for which, members in groups.items():
        seen = {data.name: measure(data, args.repetitions) for data in members}
        for key in next(iter(seen.values())):
            label = "without privacy" if np.isinf(key[0]) else f"{key[0]:g}"
            mean = np.mean([each[key] for each in seen.values()], axis=0)
            worse = max(each[key][2] - each[key[0], 0.0][2] for each in seen.values())
            rows.append((which, label, f"{key[1]:g}", *(f"{x:.3f}" for x in (*mean[1:], worse))))
            details += [
                (name, label, f"{key[1]:g}", *(f"{x:.3f}" for x in each[key]))
                for name, each in seen.items()
            ]
    note = f"{args.repetitions} random splits, 70/30."
    header = ("data sets", "ε", "share", "distance", "Brier score", "of Kaplan-Meier", "worst")
    table("recalibration", header, rows, f"Worst: Brier score above that of share 0. {note}")
    header = ("data", "ε", "share", "C", "distance", "Brier score", "of Kaplan-Meier")
    table("recalibration_sets", header, details, note)
    draws = setting(10, quick=1)
    rows = [
        (
            f"{n:,}",
            f"{share:g}",
            *(
                f"{np.mean([three_atoms(n, epsilon, share, s) for s in range(draws)]):.3f}"
                for epsilon in SIMULATED_EPSILONS
            ),
        )
        for n in SIZES
        for share in (0.0, 0.1)
    ]
    header = ("n", "share", *(f"ε = {epsilon:g}" for epsilon in SIMULATED_EPSILONS))
    table("recalibration_atoms", header, rows, f"Mean distance from true survival, {draws} fits.")


if __name__ == "__main__":
    run(main)
