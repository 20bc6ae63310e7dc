"""Simulated records whose times, columns and censoring are hard for recalibration."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.data import Survival

#: Law of the columns, what censoring depends on, records, columns and level of log hazards; those
#: that constants were found on, and those kept apart.
LAWS = {
    "found on": (
        ("uniform", "score", 4000, 6, 0.0),
        ("skewed", "uniform", 3000, 4, -1.0),
        ("two-valued", "entry", 8000, 8, -2.0),
        ("uniform", "score", 6000, 5, -0.5),
        ("skewed", "late", 5000, 10, 0.3),
        ("two-valued", "uniform", 3000, 5, -1.0),
        ("uniform", "entry", 10000, 6, -2.5),
    ),
    "kept apart": (
        ("skewed", "score", 2500, 8, -1.5),
        ("two-valued", "late", 6000, 12, 0.5),
        ("uniform", "uniform", 1500, 20, -0.5),
    ),
}
SIMULATED = {
    which: {f"{law[0]}, {law[1]}, {law[2]:,}": law for law in laws} for which, laws in LAWS.items()
}


@cache
def simulated(name: str) -> Survival:
    """Draw records with constant hazards."""
    columns, leaving, n, d, level = {**SIMULATED["found on"], **SIMULATED["kept apart"]}[name]
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
    observed = np.minimum(np.minimum(time, lost), 1.0)
    names = tuple(f"x{j}" for j in range(d))
    return Survival(name, X, time <= np.minimum(lost, 1.0), observed, 1.0, names, (False,) * d)
