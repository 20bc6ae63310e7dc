"""Attempts to refute the guarantee, with the harness of the statistical tests.

python benchmarks/privacy_checks.py
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from _common import arguments, table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "statistical"))

import test_black_box as black_box
import test_density_ratio as density_ratio

EPSILONS = (0.1, 1.0, 8.0)


def exact_ratios() -> None:
    """Table: largest log density ratio over epsilon."""
    rows = []
    for link, cap in density_ratio.CASES:
        found = [density_ratio.largest_log_ratio(link, cap, e)[0] / e for e in EPSILONS]
        rows.append((link, "none" if cap is None else cap, *(f"{ratio:.3f}" for ratio in found)))
    table(
        "density_ratio",
        ("link", "cap", *(f"largest log ratio / ε, ε = {e:g}" for e in EPSILONS)),
        rows,
        "Objective perturbation, one covariate and a constant baseline.",
    )


def audits(trials: int) -> None:
    """Table: lower bounds on epsilon from black-box attacks."""
    rows = []
    for name, (parameters, one, other) in black_box.PAIRS.items():
        for method in ("obj_pert", "out_pert"):
            bound, epsilon = black_box.audit({**parameters, "method": method}, one, other, trials)
            rows.append((name, method, f"{epsilon:g}", f"{max(bound, 0.0):.2f}"))
    table(
        "black_box",
        ("neighbours", "method", "claimed epsilon", "lower bound found"),
        rows,
        f"{trials:,} fits of either data set.",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    args = arguments(__doc__ or "", trials={"type": int, "default": 3000})
    exact_ratios()
    audits(args.trials)
