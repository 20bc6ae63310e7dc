"""Section 5.1 of Wang et al. (2018): prediction error of hybrid fits, and its U shape.

python -m benchmarks.hybrid_simulation
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks._classification import interval, repeated, seed
from benchmarks._common import save, sheet, table
from benchmarks._hybrid import TwoTables, likely, rival, simulated, text
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import HybridMEstimator
from skdpsurv.dp import random_source
from skdpsurv.hybrid.hybrid_plan import SPLITS, candidates
from skdpsurv.hybrid.hybrid_records import PointMap, distinct, nearest, nested_counts, read_table
from skdpsurv.hybrid.meta_estimator import fit_weighted
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.published import PerturbedHistogramMEstimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N = setting(10_000, quick=500)
COLUMNS = (2, 100)
EPSILONS = setting((1.0, 2.0, 6.0), quick=(1.0,))
PUBLIC, NOISELESS = "public only", "all points, no noise"
DEFAULT, SUBSET, PUBLISHED = "**default**", "subset", "subset, published truncation"
HISTOGRAMS = {bins: f"histogram, {bins} × {bins} cells" for bins in (10, 20)}
RIVAL = "DPLogisticRegression, private rows"
HYBRID: dict[str, dict[str, object]] = {
    "all points, signed": {"method": "all", "weights": "signed"},
    "all points, nonnegative": {"method": "all", "weights": "nonnegative"},
    PUBLISHED: {"method": "subset", "weights": "nonnegative", "budget_split": (0.4, 0.1, 0.5)},
    SUBSET: {"method": "subset"},
    "cells": {"method": "cells"},
    "residuals": {"method": "residuals"},
    DEFAULT: {},
}
CURVES = {"with noise": "#D55E00", "without noise": "black"}
LINES = {
    PUBLIC: ("#0072B2", "-"),
    HISTOGRAMS[10]: ("#CC79A7", "-."),
    HISTOGRAMS[20]: ("#CC79A7", ":"),
    DEFAULT: ("#009E73", "--"),
}


class Errors:
    """Distance of predicted probabilities, on the private rows, from the non-private fit's."""

    def __init__(self, data: TwoTables) -> None:
        self.X = data.X_private
        self.theirs = likely(LogisticRegression().fit(data.X_private, data.y_private), self.X)

    def __call__(self, model: LogisticRegression) -> float:
        return float(np.linalg.norm(likely(model, self.X) - self.theirs))


def measure(p: int, repetition: int) -> dict[tuple[Hashable, ...], float]:
    """Return the error of each method and each candidate, and the size that was chosen."""
    data = simulated(p, N, N, repetition)
    error = Errors(data)
    public = error(LogisticRegression().fit(data.X_public, data.y_public))
    whole = HybridMEstimator(epsilon=np.inf, method="all", random_state=0)
    noiseless = error(whole.fit(data.rows, data.outcomes, public=data.public))
    found: dict[tuple[Hashable, ...], float] = {}
    for epsilon in EPSILONS:
        found[p, epsilon, PUBLIC, 0], found[p, epsilon, NOISELESS, 0] = public, noiseless
        for name, options in HYBRID.items():
            key = seed(p, repetition, epsilon, name)
            model = HybridMEstimator(epsilon=epsilon, random_state=key, **options)
            model.fit(data.rows, data.outcomes, public=data.public)
            found[p, epsilon, name, 0] = error(model)
            if name == SUBSET:
                found[p, epsilon, "chosen size", 0] = float(model.weights_.size)
        for bins in HISTOGRAMS if p == 2 else ():
            histogram = PerturbedHistogramMEstimator(
                epsilon=epsilon,
                bounds=[(-4.0, 4.0)] * p,
                n_bins=bins,
                outcome=[0, 1],
                random_state=seed(p, repetition, epsilon, bins),
            )
            found[p, epsilon, HISTOGRAMS[bins], 0] = error(
                histogram.fit(data.X_private, data.y_private)
            )
        found[p, epsilon, RIVAL, 0] = error(rival(data, epsilon, seed(p, repetition, epsilon)))
        found |= curve(data, error, p, epsilon, repetition)
    return found


def curve(
    data: TwoTables, error: Errors, p: int, epsilon: float, repetition: int
) -> dict[tuple[Hashable, ...], float]:
    """Return the error of each candidate of Algorithm 2, with its noise and without."""
    public = read_table(data.X_public, ()), data.y_public
    point_map = PointMap.of(*public, True)
    theirs = point_map.points(*public)
    ours = point_map.points(read_table(data.X_private, ()), data.y_private)
    index = distinct(theirs)
    source = random_source(seed("curve", p, repetition, epsilon))
    to_order, to_count, _ = (epsilon * share for share in SPLITS["subset"])
    counts = np.bincount(nearest(ours, theirs[index]), minlength=index.size)
    index = index[np.argsort(-HISTOGRAM.release(counts, to_order, source), kind="stable")]
    sizes = candidates(None, index.size)
    equal = LogisticRegression().fit(data.X_public, data.y_public)
    found: dict[tuple[Hashable, ...], float] = {}
    for size, held in zip(sizes, nested_counts(ours, theirs[index], sizes), strict=True):
        rows = index[:size]
        for name, each in (("with noise", to_count / len(sizes)), ("without noise", np.inf)):
            weights = HISTOGRAM.release(held, each, source)
            X, y = data.X_public[rows], data.y_public[rows]
            model = fit_weighted(LogisticRegression(), X, y, weights, False, lambda: equal)
            found[p, epsilon, name, size] = error(model)
    return found


def tables(found: pd.DataFrame, repetitions: int) -> None:
    """Write the errors, and what the default is compared with."""
    keys = ["p", "epsilon", "method", "repetition"]
    wide = found[found["size"] == 0].set_index(keys)["error"].sort_index()
    order = [PUBLIC, NOISELESS, *HISTOGRAMS.values(), *HYBRID, RIVAL]
    rows = [
        (p, name, *(text(wide[p, epsilon, name].to_numpy()) for epsilon in EPSILONS))
        for p in COLUMNS
        for name in order
        if (p, EPSILONS[0], name) in wide
    ]
    header = [f"total ε = {epsilon:g}" for epsilon in EPSILONS]
    note = (
        f"{repetitions} repetitions of coefficients, records and noise; n_D = n_E = {N:,}; ± is "
        "half a 95 % interval of the mean."
    )
    table("hybrid_simulation", ("p", "fit", *header), rows, f"Prediction error. {note}")

    def ratio(p: int, epsilon: float, name: str) -> str:
        mine, other = wide[p, epsilon, DEFAULT], wide[p, epsilon, name]
        won = int((mine.to_numpy() < other.to_numpy()).sum())
        return f"{mine.mean() / other.mean():.2f} ({won} of {mine.size})"

    rows = [
        (p, name, *(ratio(p, epsilon, name) for epsilon in EPSILONS))
        for p in COLUMNS
        for name in (PUBLIC, HISTOGRAMS[10], HISTOGRAMS[20], PUBLISHED, SUBSET, RIVAL)
        if (p, EPSILONS[0], name) in wide
    ]
    table(
        "hybrid_ratios",
        ("p", "default's error over that of", *header),
        rows,
        "Ratio of mean errors, and in how many repetitions the default's is the smaller one. "
        f"{note}",
    )


def draw(ax: Axes, here: pd.DataFrame) -> None:
    """Draw the curves at one epsilon, the lines and the choice."""
    for name, colour in CURVES.items():
        groups = here[here["method"] == name].groupby("size")["error"]
        middle, width = np.array([interval(group.to_numpy()) for _, group in groups]).T
        style = {"color": colour, "marker": "o", "markersize": 4, "elinewidth": 1.0}
        label = f"subset, {name}"
        ax.errorbar(list(groups.groups), middle, yerr=width, linewidth=1.5, label=label, **style)
    values = here.groupby("method")["error"].mean()
    for name, (colour, dashes) in LINES.items():
        if name in values:
            label = name.strip("*")
            ax.axhline(values[name], color=colour, linestyle=dashes, linewidth=1.8, label=label)
    size = np.exp(np.log(here[here["method"] == "chosen size"]["error"]).mean())
    star = {"marker": "*", "markersize": 15, "color": "#E69F00", "markeredgecolor": "black"}
    label = "subset, as chosen (mean)"
    ax.plot(size, values[SUBSET], linestyle="none", zorder=5, label=label, **star)
    ax.set_xscale("log")
    ax.grid(color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


@part("figure")
def figure(found: pd.DataFrame, p: int) -> None:
    """Draw errors over the size of the subset; with many columns the default is far below."""
    part = found[found["p"] == p]
    drawn = sheet(11.0, 4.6 if p == 2 else 5.6)
    heights = (1,) if p == 2 else (3, 1)
    panels = drawn.subplots(
        len(heights), len(EPSILONS), sharex=True, sharey="row", height_ratios=heights, squeeze=False
    )
    for column, epsilon in zip(panels.T, EPSILONS, strict=True):
        for ax in column:
            draw(ax, part[part["epsilon"] == epsilon])
        column[0].set_title(f"total ε = {epsilon:g}", loc="left", fontsize=11, fontweight="bold")
        column[-1].set_xlabel("Size of the public subset")
    top, bottom = panels[0, 0], panels[-1, 0]
    if p == 2:
        top.set_yscale("log")
        ticks = (0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20, 50)
        top.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        top.set_yticks([], minor=True)
    else:
        top.set_ylim(46.0, 68.0)
        bottom.set_ylim(5.0, 40.0)
        bottom.set_yticks((10, 20, 30))
    top.set_ylabel(f"Prediction error, p = {p}")
    handles, names = top.get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    save(drawn, f"hybrid_subset_p{p}")


def main() -> None:
    """Two tables and two figures."""
    args = arguments(__doc__ or "", repetitions=number(10, quick=2), jobs=number(2))
    columns = ("p", "epsilon", "method", "size")
    found = repeated(measure, COLUMNS[::-1], args.repetitions, columns, args.jobs)
    found = found.rename(columns={"auc": "error"})
    tables(found, args.repetitions)
    for p in COLUMNS:
        figure(found, p)


if __name__ == "__main__":
    run(main)
