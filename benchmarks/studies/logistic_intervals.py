"""Intervals of private log odds ratios: how often they hold the truth, and how wide they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPLogisticRegression

SHARE, INTERCEPT = 0.2, -0.5
#: Fits of a repetition, whose counts are added up.
FITS = 50
#: Of fewer finite intervals the share that holds the truth is not told.
FEWEST = 20
DECLARED = {"uniform": "obj_pert", "skewed": "obj_pert", "uniform, out_pert": "out_pert"}


def people(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return rows; skewed ones are rare or frequent ones, or exponential."""
    n, d = case["n"], case["columns"]
    rows = rng.uniform(-1.0, 1.0, (n, d))
    if case["people"] == "skewed":
        for j, column in enumerate(rows.T):
            exponential = np.minimum(rng.exponential(0.3, n), 1.0)
            column[:] = (rng.random(n) < 0.05, exponential, rng.random(n) < 0.2)[j % 3]
    return rows


def cases(setting: Setting) -> Iterator[Case]:
    for kind in DECLARED:
        for d in (3, 8):
            for n in (2_000, 20_000) if "out" not in kind else (20_000,):
                for epsilon in (1.0, 3.0, 10.0) if "out" not in kind else (3.0,):
                    if not setting.quick or (n == 2_000 and epsilon == 3.0):
                        yield {"people": kind, "columns": d, "n": n, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return, by column, counts of intervals, and medians of widths over statsmodels'."""
    import statsmodels.api as sm

    d = case["columns"]
    coef = np.linspace(1.0, -1.0, d)
    errors, widths, exact = [], [], []
    for i in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, i)
        rng = np.random.default_rng(key)
        X = people(case, rng)
        y = (rng.random(len(X)) < expit(INTERCEPT + X @ coef)).astype(int)
        summary = (
            DPLogisticRegression(
                case["epsilon"],
                method=DECLARED[case["people"]],
                classes=[0, 1],
                data_norm=math.sqrt(d) / 2.0,
                inference_share=SHARE,
                random_state=key,
            )
            .fit(X, y)
            .summary
        )
        errors.append(summary["coef"] - coef)
        widths.append(summary["se(coef)"])
        exact.append(sm.Logit(y, sm.add_constant(X)).fit(disp=0).bse[1:])
    error, se = np.array(errors), np.array(widths)
    finite = np.isfinite(se)
    inside = finite & (np.abs(error) <= 1.959964 * np.where(finite, se, 0.0))
    ratio = np.median(se, axis=0) / np.median(exact, axis=0)
    return [
        {
            "column": f"x{j}",
            "fits": len(se),
            "finite": int(finite[:, j].sum()),
            "inside": int(inside[:, j].sum()),
            "width": float(ratio[j]),
        }
        for j in range(d)
    ]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    cells, least, wide = [], {}, {}
    for key, part in rows.groupby(["people", "columns", "n", "epsilon"], sort=False):
        column = part.groupby("column")[["fits", "finite", "inside"]].sum()
        finite = 100.0 * column.finite.sum() / column.fits.sum()
        enough = column[column.finite >= FEWEST]
        holds = 100.0 * column.inside.sum() / max(column.finite.sum(), 1)
        width = part.groupby("column").width.median()
        texts = [f"{finite:.1f}", "", ""]
        if len(enough):
            least[key] = float(100.0 * (enough.inside / enough.finite).min())
            texts = [f"{finite:.1f}", f"{holds:.1f}", f"{least[key]:.1f}"]
        ends = (f"{v:.1f}" if np.isfinite(v) else "∞" for v in (width.min(), width.max()))
        if finite > 99.0:
            wide[key] = float(width.median())
        name, d, n, epsilon = key
        cells.append((name, d, f"{n:,}", f"{epsilon:g}", *texts, " to ".join(ends)))
    said = []
    for name in DECLARED:
        mine = {key: value for key, value in least.items() if key[0] == name}
        if mine:
            worst = min(mine, key=mine.__getitem__)
            said.append(
                f"{name}: at least {mine[worst]:.1f} % ({worst[1]} columns, n = {worst[2]:,}, "
                f"ε = {worst[3]:g})"
            )
    text = f"The truth is in the finite 95 % intervals of a column: {'; '.join(said)}."
    if wide:
        text += (
            " Where nearly all are finite, they are typically "
            f"{np.median(list(wide.values())):.1f} times as wide as without privacy."
        )
    fits = int(rows.groupby(["people", "columns", "n", "epsilon", "column"]).fits.sum().max())
    pages.table(
        "logistic_intervals",
        ("people", "columns", "n", "ε", "finite", "hold", "least", "width"),
        cells,
        text,
        f"Per cent of {fits} fits with inference_share={SHARE:g}: of intervals that "
        "are finite; of finite 95 % intervals that hold the truth; the same for the column where "
        "it is least. Width: median standard error over statsmodels', least and largest over the "
        "columns. Skewed: columns of 5 and 20 per cent ones, and exponential ones.",
    )


INTERVALS = Experiment(cases, measure, report, repetitions=12)
