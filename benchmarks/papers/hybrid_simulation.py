"""Figures 5 and 6 of Wang et al. (2018): simulated records, p = 2 and p = 100."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, interval, sheet
from benchmarks.papers.hybrid_records import (
    CURVES,
    DEFAULT,
    DIVIDED,
    EACH,
    HISTOGRAM,
    PUBLIC,
    RIVAL,
    Candidates,
    Errors,
    TwoTables,
    draw,
    logistic,
    private_rows,
    some_of,
    text,
    two_tables,
)
from skdpsurv import HybridMEstimator
from skdpsurv.published import PerturbedHistogramMEstimator

#: The paper's epsilon; (0.8, 0.2, 1) times this is the price of order, weights and choice.
EPSILONS = (0.5, 1.0, 3.0)
#: Sizes of the public subset that it tries: first, last, step.
SIZES = {2: (10, 3000, 50), 100: (100, 10_000, 200)}
MOST_KEPT = 12
WHOLE_HISTOGRAM = "histogram, 2ε"
LETTER, SUBSET, ALL = "Algorithm 2 to the letter", "subset", "all points, no noise"
HYBRID: dict[str, dict[str, object]] = {
    "all points, signed": {"method": "all", "weights": "signed"},
    SUBSET: {"method": "subset"},
    "cells": {"method": "cells"},
    "residuals": {"method": "residuals"},
    DEFAULT: {},
}
BINS = 10
ORDER = (PUBLIC, ALL, HISTOGRAM, WHOLE_HISTOGRAM, LETTER, *HYBRID, RIVAL)


def cases(setting: Setting) -> Iterator[Case]:
    for p in SIZES:
        for epsilon in setting.of(EPSILONS, (1.0,)):
            yield {"p": p, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the error t of each method, and of Algorithm 2's candidates by their size."""
    p, epsilon = case["p"], case["epsilon"]
    data = two_tables(p, setting.of(10_000, 500), repetition)
    errors = Errors(data)
    found = {PUBLIC: errors(logistic().fit(data.X_public, data.y_public))}
    options = {ALL: {"method": "all"}, **HYBRID}
    for name, wishes in options.items():
        model = HybridMEstimator(
            logistic(),
            np.inf if name == ALL else 2.0 * epsilon,
            random_state=seed(p, repetition, epsilon, name),
            **wishes,  # type: ignore[arg-type]
        )
        found[name] = errors(model.fit(data.rows, data.outcomes, public=data.public))
    if p == 2:
        found |= histograms(data, errors, epsilon, repetition)
    found[RIVAL] = errors(private_rows(data, 2.0 * epsilon, seed(p, repetition, epsilon)))
    rows, found[LETTER] = subsets(data, errors, case, repetition)
    return rows + [{"method": name, "size": 0, "error": value} for name, value in found.items()]


def histograms(
    data: TwoTables, errors: Errors, epsilon: float, repetition: int
) -> dict[str, float]:
    """Return errors of Lei's histogram, with the paper's budget for it and with all."""
    found = {}
    for name, total in ((HISTOGRAM, epsilon), (WHOLE_HISTOGRAM, 2.0 * epsilon)):
        histogram = PerturbedHistogramMEstimator(
            logistic(),
            epsilon=total,
            bounds=[(-4.0, 4.0)] * data.X_private.shape[1],
            n_bins=BINS,
            outcome=[0, 1],
            random_state=seed(repetition, epsilon, name),
        )
        found[name] = errors(histogram.fit(data.X_private, data.y_private))
    return found


def subsets(
    data: TwoTables, errors: Errors, case: Case, repetition: int
) -> tuple[list[Row], float]:
    """Return the error of some of the paper's candidates, and that of the one it would choose.

    Its choice adds Laplace(1/epsilon_3) to each error, which is not private (errata 3 and 4).
    """
    p, epsilon = case["p"], case["epsilon"]
    candidates = Candidates(data, errors)
    first, last, step = SIZES[p]
    sizes = range(first, min(last, candidates.index.size) + 1, step)
    key = seed("curve", p, repetition, epsilon)
    curves = candidates.curves((0.8 * epsilon, 0.2 * epsilon), sizes, len(sizes), key)
    rng = np.random.default_rng(key)
    noisy = curves[DIVIDED] + rng.laplace(scale=1.0 / epsilon, size=len(sizes))
    rows: list[Row] = [
        {"method": name, "size": sizes[place], "error": float(curves[name][place])}
        for name in CURVES
        for place in some_of(len(sizes), MOST_KEPT)
    ]
    return rows, float(curves[DIVIDED][noisy.argmin()])


def report(rows: pd.DataFrame, pages: Pages) -> None:
    values = rows.pivot_table(
        index=["p", "epsilon", "method", "size"], columns="repetition", values="error"
    ).dropna(axis=1)
    _simulation(values, pages)
    shapes = {key: Shape(values, *key) for key in values.index.droplevel(["method", "size"])}
    _subsets(shapes, values.shape[1], pages)
    for p in sorted({p for p, _ in shapes}):
        _verdicts({e: shape for (q, e), shape in shapes.items() if q == p}, p, pages)
        _figure(values.loc[p], p, pages)


class Shape:
    """One panel: the mean curve of Algorithm 2 if each candidate had epsilon_2, and its minimum."""

    def __init__(self, values: pd.DataFrame, p: int, epsilon: float) -> None:
        here = values.loc[p, epsilon]
        self.here = here
        self.best = {name: here.loc[name].mean(axis=1).idxmin() for name in CURVES}
        self.sizes = list(here.loc[EACH].index)

    def at_best(self, curve: str = EACH) -> np.ndarray:
        """Return errors at the size with the least mean error."""
        return self.here.loc[(curve, self.best[curve])].to_numpy()

    def of(self, method: str) -> np.ndarray:
        """Return errors of a method."""
        return self.here.loc[(method, 0)].to_numpy()

    def u_shaped(self, curve: str = EACH) -> bool:
        """Return whether the error falls, then rises, both beyond doubt."""
        ends = (self.here.loc[(curve, size)].to_numpy() for size in (self.sizes[0], self.sizes[-1]))
        return all(_above(end, self.at_best(curve)) for end in ends)

    def below(self, method: str, curve: str = EACH) -> bool:
        """Return whether the optimum is below a method's error beyond doubt."""
        return _above(self.of(method), self.at_best(curve))


def _above(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether paired errors are larger beyond doubt; one pair never is."""
    mean, width = interval(one - other)
    return mean > width


def _simulation(values: pd.DataFrame, pages: Pages) -> None:
    """Write the error of each method."""
    columns, epsilons = (sorted(set(values.index.get_level_values(k))) for k in ("p", "epsilon"))
    cells = [
        (p, name, *(text(values.loc[(p, e, name, 0)].to_numpy()) for e in epsilons))
        for p in columns
        for name in ORDER
        if (p, epsilons[0], name, 0) in values.index
    ]
    mean = values.mean(axis=1).xs(0, level="size").unstack("method")
    said = [
        f"At p = {p} the default has {_range(mean.loc[p, DEFAULT] / mean.loc[p, PUBLIC])} times "
        f"the error of public records alone, {_range(mean.loc[p, DEFAULT] / mean.loc[p, LETTER])} "
        "times that of Algorithm 2 to the letter and "
        f"{_range(mean.loc[p, DEFAULT] / mean.loc[p, RIVAL])} times that of "
        "`DPLogisticRegression`"
        for p in columns
    ]
    pages.table(
        "hybrid_simulation",
        ("p", "fit", *(f"total ε = {2.0 * epsilon:g}" for epsilon in epsilons)),
        cells,
        f"{'. '.join(said)}.",
        f"Error t; {values.shape[1]} repetitions of coefficients, records and noise; "
        f"{_records(pages)} records of each kind; ± is half a 95 % interval of the mean. "
        f"Histograms have {BINS} × {BINS} cells on bounds ±4. Algorithm 2 to the letter gives each "
        "of its k candidates ε₂/k, and chooses by a curve that is not private.",
    )


def _records(pages: Pages) -> str:
    return "500" if pages.quick else "10,000"


def _range(ratio: pd.Series) -> str:
    low, high = f"{ratio.min():.2g}", f"{ratio.max():.2g}"
    return low if low == high else f"{low} to {high}"


def _subsets(shapes: dict[tuple[int, float], Shape], repetitions: int, pages: Pages) -> None:
    """Write where each curve is least."""
    cells = []
    for (p, epsilon), shape in shapes.items():
        for curve in (EACH, DIVIDED):
            histogram = _word(shape.below(HISTOGRAM, curve)) if p == 2 else "–"
            cells.append(
                (
                    p,
                    f"{2.0 * epsilon:g}",
                    curve,
                    f"{shape.best[curve]:,}",
                    text(shape.at_best(curve)),
                    _word(shape.u_shaped(curve)),
                    _word(shape.below(PUBLIC, curve)),
                    histogram,
                )
            )
    told = []
    for curve in (EACH, DIVIDED):
        shaped = sum(shape.u_shaped(curve) for shape in shapes.values())
        below = sum(shape.below(PUBLIC, curve) for shape in shapes.values())
        told.append(
            f"the curve is a U in {shaped} and its optimum below public only in {below} of "
            f"{len(shapes)} panels"
        )
    pages.table(
        "hybrid_subsets",
        (
            "p",
            "total ε",
            "weights cost",
            "best size",
            "its error",
            "a U?",
            "below public only?",
            "below the histogram?",
        ),
        cells,
        f"If each candidate's weights cost ε₂, {told[0]}; if they cost ε₂/k, as Algorithm 2 "
        f"says and as privacy needs, {told[1]}.",
        f"{repetitions} repetitions. The best size has the least mean error, in hindsight; yes: "
        "by more than half a 95 % interval of paired differences. A U is above its optimum "
        f"at both ends. The histogram, of {BINS} × {BINS} cells, costs ε₁ + ε₂, as in the paper.",
    )


def _word(true: bool) -> str:
    return "yes" if true else "no"


def _verdicts(shapes: dict[float, Shape], p: int, pages: Pages) -> None:
    """Compare with what the text says of a figure; the first panel has the smallest epsilon."""
    number, data = (5 if p == 2 else 6), f"simulated, p = {p}"
    panels = list(shapes.values())

    def add(claim: str, theirs: str, holds: Callable[[Shape, str], bool], but: int = 0) -> None:
        found = {curve: [holds(shape, curve) for shape in panels] for curve in (EACH, DIVIDED)}
        told = (f"in {sum(each)} ({curve})" for curve, each in found.items())
        each, divided = found.values()
        # The paper does not say which of the two its curve is.
        verdict = "in part" if any(each) or any(divided) else "not reproduced"
        if all(each[but:]) or all(divided[but:]):
            verdict = "reproduced"
        ours = f"{', '.join(told)} of {len(panels)} panels"
        pages.verdict(f"Hybrid data, figure {number}: {claim}", data, ours, theirs, verdict)

    but = 1 if len(panels) > 1 else 0
    add("a U", "yes, if ε is not too small", lambda shape, curve: shape.u_shaped(curve), but)
    add("optimum below public only", "yes", lambda shape, curve: shape.below(PUBLIC, curve))
    if p == 2:
        add("optimum below histogram", "yes", lambda shape, curve: shape.below(HISTOGRAM, curve))
    if not pages.quick:
        share = panels[0].best[EACH] / 10_000
        pages.verdict(
            f"Hybrid data, figure {number}: public records at the optimum, smallest ε",
            data,
            f"{share:.1%} ({EACH}), {panels[0].best[DIVIDED] / 10_000:.1%} ({DIVIDED})",
            "about 10 %",
            "reproduced" if 0.05 <= share <= 0.2 else "not reproduced",
        )
    below = [_above(shape.at_best(EACH), shape.of(DEFAULT)) for shape in panels]
    above = [_above(shape.of(DEFAULT), shape.at_best(EACH)) for shape in panels]
    pages.verdict(
        f"Hybrid data, figure {number}: default below the optimum",
        data,
        f"below in {sum(below)}, above in {sum(above)} of {len(panels)} panels ({EACH})",
        "not in the paper",
        "better" if all(below) else "worse" if all(above) else "in part",
    )


def _figure(values: pd.DataFrame, p: int, pages: Pages) -> None:
    """Draw errors over the size of the subset."""
    epsilons = sorted(set(values.index.get_level_values("epsilon")))
    drawn = sheet(3.5 * len(epsilons) + 0.5, 4.8)
    panels = drawn.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
    for ax, epsilon in zip(panels, epsilons, strict=True):
        here = values.loc[epsilon]
        ax.set_xscale("log")
        curves = {}
        for name in CURVES:
            middle, width = np.array([interval(row) for row in here.loc[name].to_numpy()]).T
            curves[name] = (here.loc[name].index.to_numpy(), middle, width)
        levels = here.xs(0, level="size").mean(axis=1).to_dict()
        draw(ax, curves, levels, f"total ε = {2.0 * epsilon:g}")
        ax.set_xlabel("Size of the public subset")
    if p == 2:
        ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
        panels[0].set_yscale("log")
        panels[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panels[0].set_yticks([], minor=True)
    else:
        panels[0].set_ylim(bottom=0.0)
    panels[0].set_ylabel(f"Error t, p = {p}")
    handles, names = panels[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    pages.figure(f"hybrid_subset_p{p}", drawn)


EXPERIMENT = Experiment(cases, measure, report, repetitions=30)
