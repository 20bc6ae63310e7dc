"""Accuracy of private fits over epsilon, on real data, beside the published algorithms.

python -m benchmarks.accuracy --data-dir FOLDER
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._common import SurvivalData, split, survival_sets, table
from benchmarks._run import arguments, number, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.reference import relative_error

EPSILONS = setting((0.1, 0.4, 1.0, 1.6, 6.4), quick=(1.0,))
Make = Callable[..., Any]
VARIANTS: dict[str, Make] = {
    "obj_pert": DPDiscreteTimeSurvival,
    "out_pert": partial(DPDiscreteTimeSurvival, method="out_pert"),
    "published Ext-Obj-Pert": PublishedDiscreteTimeSurvival,
    "published Ext-Out-Pert": partial(PublishedDiscreteTimeSurvival, method="out_pert"),
}
#: The paper picks the Lambda with the smallest error; so do we, for its algorithms only.
LAMBDAS = setting((1e-3, 1e-2, 1e-1, 1.0), quick=(1e-1,))


def fits(
    data: SurvivalData, epsilon: float, repetitions: int, make: Make = DPDiscreteTimeSurvival
) -> Iterator[tuple[Any, float]]:
    """Yield fitted models with their C-index on the part that they have not seen."""
    for repetition in range(repetitions):
        train, test = split(len(data.y), repetition)
        model = make(epsilon, max_time=data.max_time)
        model.fit(data.X[train], data.y[train])
        yield model, model.score(data.X[test], data.y[test])


def concordance(sets: list[SurvivalData], repetitions: int) -> None:
    """Table: C-index on test records by data set, variant and epsilon."""
    rows = []
    for data in sets:
        reference = np.median([c for _, c in fits(data, np.inf, min(repetitions, 20))])
        for name in VARIANTS:
            cells = []
            for epsilon in EPSILONS:
                scores = _best_lambda(data, epsilon, name, repetitions)
                cells.append(f"{np.median(scores):.3f} ({np.quantile(scores, 0.1):.3f})")
            n = int(0.7 * len(data.y))
            rows.append((f"{data.name}, n = {n:,}", name, f"{reference:.3f}", *cells))
    table(
        "concordance",
        ("data", "method", "non-private", *(f"ε = {e:g}" for e in EPSILONS)),
        rows,
        f"Harrell's C on the 30 % left out; median (lowest tenth) of {repetitions} random splits, "
        "default settings; for the published algorithms the best of "
        f"Lambda = {', '.join(f'{x:g}' for x in LAMBDAS)}, chosen without privacy.",
    )


def lambdas(name: str) -> tuple[float, ...]:
    """Return the ridges that a variant is tried with."""
    return LAMBDAS if name.startswith("published") else (0.0,)


def _best_lambda(data: SurvivalData, epsilon: float, name: str, repetitions: int) -> list[float]:
    runs = [
        [c for _, c in fits(data, epsilon, repetitions, partial(VARIANTS[name], alpha=alpha))]
        for alpha in lambdas(name)
    ]
    return max(runs, key=lambda run: float(np.median(run)))


def coefficients(sets: list[SurvivalData], repetitions: int) -> None:
    """Table: mean relative error of the coefficients, all records."""
    rows = []
    for data in sets:
        exact = DPDiscreteTimeSurvival(np.inf, max_time=data.max_time).fit(data.X, data.y)
        for name, make in VARIANTS.items():
            cells = []
            for epsilon in EPSILONS:
                errors = []
                for alpha in lambdas(name):
                    model = make(epsilon, max_time=data.max_time, alpha=alpha)
                    coefs = [model.fit(data.X, data.y).coef_ for _ in range(repetitions)]
                    errors.append(np.mean([relative_error(coef, exact.coef_) for coef in coefs]))
                cells.append(f"{min(errors):.2f}")
            rows.append((data.name, name, *cells))
    table(
        "mean_relative_error",
        ("data", "method", *(f"ε = {e:g}" for e in EPSILONS)),
        rows,
        "Mean over repetitions of the distance between private and non-private coefficients, "
        f"relative to the latter's length; {repetitions} repetitions; Lambda as above.",
    )


def main() -> None:
    """Two tables."""
    args = arguments(__doc__ or "", repetitions=number(40, quick=2))
    real = survival_sets(args.data_dir)
    concordance(real, args.repetitions)
    coefficients(real, args.repetitions)


if __name__ == "__main__":
    run(main)
