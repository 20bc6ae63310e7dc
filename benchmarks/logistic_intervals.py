"""Intervals of private log odds ratios: how often they hold the truth, and how wide they are.

python -m benchmarks.logistic_intervals --jobs 2
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
import statsmodels.api as sm
from joblib import Parallel, delayed
from scipy.special import expit

from benchmarks._common import table
from benchmarks._run import arguments, number, run
from skdpsurv import DPLogisticRegression

SHARE, INTERCEPT = 0.2, -0.5
#: Of fewer finite intervals the share that holds the truth is not told.
FEWEST = 20


@dataclass(frozen=True)
class Case:
    """A population with known log odds ratios, and what is asked of how many of them."""

    columns: str
    n_columns: int
    n: int
    epsilon: float
    method: str = "obj_pert"

    @property
    def coef(self) -> np.ndarray:
        return np.linspace(1.0, -1.0, self.n_columns)

    def rows(self, rng: np.random.Generator) -> np.ndarray:
        rows = rng.uniform(-1.0, 1.0, (self.n, self.n_columns))
        if self.columns == "skewed":
            for j, column in enumerate(rows.T):
                rare, skewed = (
                    rng.random(self.n) < 0.05,
                    np.minimum(rng.exponential(0.3, self.n), 1),
                )
                column[:] = (rare, skewed, rng.random(self.n) < 0.2)[j % 3]
        return rows

    def one(self, seed: int) -> np.ndarray:
        """Return estimates less the truth, standard errors, and those without privacy."""
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(seed)
        X = self.rows(rng)
        y = (rng.random(self.n) < expit(INTERCEPT + X @ self.coef)).astype(int)
        norm = math.sqrt(self.n_columns) / 2.0
        model = DPLogisticRegression(
            self.epsilon, method=self.method, classes=[0, 1], data_norm=norm, inference_share=SHARE
        )
        summary = model.fit(X, y).summary
        reference = sm.Logit(y, sm.add_constant(X)).fit(disp=0).bse[1:]
        return np.stack([summary["coef"] - self.coef, summary["se(coef)"], reference])


def row(case: Case, parallel: Parallel, repetitions: int) -> tuple[str, ...]:
    """Return a row of the table."""
    found = np.array(parallel(delayed(case.one)(seed) for seed in range(repetitions)))
    errors, se, reference = np.moveaxis(found, 1, 0)
    finite = np.isfinite(se)
    inside = np.where(finite, np.abs(errors) <= 1.959964 * se, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_column = np.nanmean(inside, axis=0)
        by_column[finite.sum(axis=0) < FEWEST] = np.nan
        values = 100.0 * np.array([finite.mean(), np.nanmean(inside), np.nanmin(by_column)])
    wide = np.median(se, axis=0) / np.median(reference, axis=0)
    ends = (f"{v:.1f}" if np.isfinite(v) else "∞" for v in (wide.min(), wide.max()))
    kind = case.columns + (f", {case.method}" if case.method != "obj_pert" else "")
    head = (kind, str(case.n_columns), f"{case.n:,}", f"{case.epsilon:g}")
    return (*head, *(f"{v:.1f}" if np.isfinite(v) else "" for v in values), " to ".join(ends))


def main() -> None:
    """Table: coverage of 95 % intervals, and their width."""
    args = arguments(__doc__ or "", repetitions=number(1000, quick=4), jobs=number(1))
    parallel, rows = Parallel(n_jobs=args.jobs, batch_size=8), []
    cases = [
        Case(columns, d, n, epsilon)
        for columns, d, n, epsilon in product(
            ("uniform", "skewed"), (3, 8), (2_000, 20_000), (1.0, 3.0, 10.0)
        )
    ]
    cases += [Case("uniform", d, 20_000, 3.0, "out_pert") for d in (3, 8)]
    for case in cases:
        rows.append(row(case, parallel, args.repetitions))
        print(*rows[-1], sep=" | ", flush=True)
    table(
        "logistic_intervals",
        ("people", "columns", "n", "ε", "finite", "hold", "least", "width"),
        rows,
        f"Per cent of {args.repetitions} fits with inference_share={SHARE:g}: of intervals that "
        "are finite; of finite 95 % intervals that hold the truth; the same for the column where "
        "it is least. Width: median standard error over statsmodels', least and largest over the "
        "columns. Skewed: columns of 5 and 20 per cent ones, and exponential ones.",
    )


if __name__ == "__main__":
    run(main)
