"""Attacks on private logistic regression, diffprivlib's too, with the tests' own harness.

python -m benchmarks.logistic_audit

diffprivlib needs an older scikit-learn and gets an environment of its own, which takes a network.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._common import table
from benchmarks._diffprivlib_env import OPTION, VERSION, Diffprivlib, diffprivlib
from benchmarks._run import arguments, number, run
from tests.support import logistic_attacks as attacks

#: Chance that a private mechanism has a bound above its epsilon, for each line of the table.
ERROR = 1e-3
#: (setting, record that differs, pair, epsilon, the rival's C, fits of either data set).
#: C = 1 is the default.
CASES: tuple[tuple[str, str, str, float, float, int], ...] = (
    ("data_norm = 100", "0 or 100", "norm 100", 1.0, 1.0, 6000),
    ("data_norm = 1000", "0 or 1000", "norm 1000", 1.0, 1.0, 6000),
    ("data_norm = 1000", "0 or 1000", "norm 1000", 4.0, 1.0, 8000),
    ("with an intercept, data_norm = 1", "0 or 1", "intercept", 1.0, 1.0, 8000),
)
PAIRS = {
    "norm 100": attacks.moved((0, 0), (0, 100), attacks.without_intercept(100.0)),
    "norm 1000": attacks.moved((0, 0), (0, 1000), attacks.without_intercept(1000.0)),
    "intercept": attacks.moved((0, 0), (0, 1), attacks.with_constant(1.0)),
}


def theirs(rival: Diffprivlib, name: str, epsilon: float, C: float, trials: int) -> float:
    """Return the bound found for diffprivlib."""
    pair = PAIRS[name]
    options = {
        "epsilon": epsilon,
        "C": C,
        "data_norm": pair.parameters["data_norm"],
        "fit_intercept": pair.parameters["fit_intercept"],
    }
    found = rival.run(
        "audit",
        X0=pair.X[0],
        X1=pair.X[1],
        y0=np.array(pair.y[0]),
        y1=np.array(pair.y[1]),
        options=json.dumps(options),
        trials=trials,
    )
    return attacks.attack(np.array(found), pair, ERROR)


def ours(name: str, epsilon: float, trials: int, **parameters: Any) -> float:
    """Return the bound found for skdpsurv."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pair = PAIRS[name]
        found = attacks.releases(pair, trials, epsilon=epsilon, **parameters)
        return attacks.attack(found, pair, ERROR)


def main() -> None:
    """Table: claimed epsilon and lower bounds found."""
    args = arguments(
        __doc__ or "",
        rival_env=OPTION,
        jobs=number(1),
        share=number(1.0, quick=0.01) | {"help": "of the fits, for a quick look"},
    )
    calls = []
    rival = diffprivlib(args.rival_env)
    for _, _, name, epsilon, C, trials in CASES:
        n = int(args.share * trials)
        calls += [
            delayed(theirs)(rival, name, epsilon, C, n),
            delayed(ours)(name, epsilon, n, alpha=0.0),
        ]
    found = iter(Parallel(n_jobs=args.jobs)(calls))
    rows = []
    for setting, record, _, epsilon, C, trials in CASES:
        bounds = (f"{max(next(found), 0.0):.2f}" for _ in range(2))
        n = f"{int(args.share * trials):,}"
        rows.append((setting, record, f"{C:g}", f"{epsilon:g}", *bounds, n))
    table(
        "logistic_audit",
        (
            "setting",
            "record that differs",
            "diffprivlib's C",
            "claimed ε",
            "found, diffprivlib",
            "found, skdpsurv",
            "fits of either data set",
        ),
        rows,
        "Lower bounds on epsilon that a mechanism with the claimed epsilon passes with probability "
        f"at least 1 - {ERROR:g} each. Two records, the first a row of zeros, with labels 0 and 1; "
        "alpha=0, the weakest ridge allowed, and intercept_scaling=1 for skdpsurv. "
        f"diffprivlib {VERSION}.",
    )


if __name__ == "__main__":
    run(main)
