"""Attempts to refute the guarantee, with the harness of the statistical tests.

python -m benchmarks.privacy_checks
"""

from __future__ import annotations

from benchmarks._common import table
from benchmarks._run import arguments, number, run, setting
from tests.support import hazard_attacks, hazard_density

EPSILONS = setting((0.1, 1.0, 8.0), quick=(1.0,))
CASES = setting(hazard_density.CASES, quick=hazard_density.CASES[:2])


def exact_ratios() -> None:
    """Table: largest log density ratio over epsilon."""
    rows = []
    for link, cap in CASES:
        found = [hazard_density.largest_log_ratio(link, cap, e)[0] / e for e in EPSILONS]
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
    for name, (parameters, one, other) in hazard_attacks.PAIRS.items():
        for method in ("obj_pert", "out_pert"):
            bound, epsilon = hazard_attacks.audit(
                {**parameters, "method": method}, one, other, trials
            )
            rows.append((name, method, f"{epsilon:g}", f"{max(bound, 0.0):.2f}"))
    table(
        "black_box",
        ("neighbours", "method", "claimed epsilon", "lower bound found"),
        rows,
        f"{trials:,} fits of either data set.",
    )


def main() -> None:
    """Two tables."""
    args = arguments(__doc__ or "", trials=number(3000, quick=40))
    exact_ratios()
    audits(args.trials)


if __name__ == "__main__":
    run(main)
