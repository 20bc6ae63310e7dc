"""Figures 3 and 4 of Nguyen and Hui (2017): errors of private Weibull shapes and scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import survival
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, panel, sheet
from skdpsurv import DPWeibullFitter
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.survival.weibull.log_time_counts import CountTable

#: The paper's.
OMEGA = 6.0
LEAST = math.exp(-OMEGA)
EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
SETS = ("flchain", "third births", "unemployment")
PUBLISHED, AGGREGATE, LAPLACE = "ladder, published", "sample and aggregate", "Laplace"
METHODS: dict[str, Callable[..., Any]] = {
    "ladder, tight": DPWeibullFitter,
    "ladder, exact": partial(PublishedWeibullFitter, ladder="exact"),
    PUBLISHED: PublishedWeibullFitter,
    AGGREGATE: SampleAggregateWeibullFitter,
    LAPLACE: LaplaceWeibullFitter,
}
#: Median absolute errors that the paper states in its text, at a total epsilon of 0.1 on flchain.
PAPER = {"shape": 0.1, "scale": 0.297}
#: And its ratios: error of sample and aggregate over that of the ladder.
RATIOS = {
    "shape": {"flchain": "100", "third births": "7 to 13", "unemployment": "300"},
    "scale": {"flchain": "30", "third births": "above 1", "unemployment": "1,000"},
}
STYLES = {
    "ladder, tight": {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
    "ladder, exact": {"color": "#009E73", "marker": "s"},
    PUBLISHED: {"color": "#D55E00", "marker": "D"},
    AGGREGATE: {"color": "#CC79A7", "marker": "^", "linestyle": "--"},
    LAPLACE: {"color": "0.35", "marker": "v", "linestyle": ":"},
}


@cache
def records(setting: Setting, name: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return durations in (0, 1], events, and the fit without privacy.

    As in the paper, times are mapped to [e^-6, 1] linearly, by the data set's own largest
    time. That time is a statistic of the records: good for this comparison, and not private.
    """
    data = survival(setting, name)
    durations = LEAST + (1.0 - LEAST) * data.time / data.time.max()
    exact = DPWeibullFitter(math.inf, max_time=1.0, omega=OMEGA).fit(durations, data.event)
    return durations, data.event, exact


@cache
def remember_published_levels() -> None:
    """Let repeated fits of the same records share the published levels, which take 0.1 s."""
    make = published_plans.PublishedLevels

    @cache
    def remembered(
        records: bytes, events: bytes, *public: float
    ) -> published_plans.PublishedLevels:
        omega, max_shape, top = public
        counts = (np.frombuffer(part, dtype=np.int64) for part in (records, events))
        return make(CountTable(omega, *counts), max_shape, int(top))

    published_plans.PublishedLevels = lambda counts, max_shape, top: remembered(  # type: ignore[misc]
        counts.records.tobytes(), counts.events.tobytes(), counts.omega, max_shape, top
    )


def cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for epsilon in setting.of(EPSILONS, (0.1, 1.6)):
            for method in METHODS:
                yield {"data": name, "epsilon": epsilon, "method": method}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the distances from the fit without privacy."""
    remember_published_levels()
    durations, events, exact = records(setting, case["data"])
    make = METHODS[case["method"]]
    fitter = make(case["epsilon"], max_time=1.0, omega=OMEGA).fit(durations, events)
    return {
        "shape": abs(fitter.rho_ - exact.rho_),
        "scale": abs(fitter.lambda_ - exact.lambda_),
        "exact_shape": exact.rho_,
        "exact_scale": exact.lambda_,
    }


def report(rows: pd.DataFrame, pages: Pages) -> None:
    for kind, number in (("shape", 3), ("scale", 4)):
        median = rows.groupby(["data", "method", "epsilon"])[kind].median()
        _table(rows, median, kind, number, pages)
        _figure(median, kind, pages)
        _verdicts(median, kind, number, pages)


def _table(rows: pd.DataFrame, median: pd.Series, kind: str, number: int, pages: Pages) -> None:
    epsilons, sets = sorted(rows.epsilon.unique()), [s for s in SETS if s in set(rows.data)]
    exact = rows.groupby("data")[f"exact_{kind}"].first()
    cells = [
        (name, f"{exact[name]:.3f}", method, *(_short(median[name, method, e]) for e in epsilons))
        for name in sets
        for method in METHODS
    ]
    tight = median.xs("ladder, tight", level="method") / median.xs(PUBLISHED, level="method")
    pages.table(
        f"weibull_{kind}_error",
        ("data", "without privacy", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        cells,
        f"Figure {number}. As in the paper, the ladder has a far smaller error than sample and "
        f"aggregate, and that than Laplace noise. The default (tight) has {tight.min():.2f} to "
        f"{tight.max():.2f} times the error of the published ladder.",
        f"Median absolute error of the {kind} over {rows.repetition.max() + 1} private fits; shape "
        "and scale together cost ε; omega = 6, max_shape = 10. Results of Laplace noise, and of "
        "sample and aggregate, are moved into the allowed range, which the paper does not do.",
    )


def _verdicts(median: pd.Series, kind: str, number: int, pages: Pages) -> None:
    ladder = median.xs(PUBLISHED, level="method")
    names = [name for name in SETS if name in ladder.index.get_level_values("data")]
    ratios = [median[name].xs(AGGREGATE, level="method") / ladder[name] for name in names]
    item = f"Weibull, figure {number}: {kind}, error of sample and aggregate over the ladder's"
    pages.verdict(
        item,
        ", ".join(names),
        "; ".join(f"{ratio.min():.0f} to {ratio.max():.0f}" for ratio in ratios),
        "; ".join(RATIOS[kind][name] for name in names),
        "reproduced" if min(ratio.min() for ratio in ratios) > 1.0 else "in part",
    )
    if "flchain" in names:
        least = ladder["flchain"].index[0]
        letter, ours = ladder["flchain"].iloc[0], median["flchain", "ladder, tight", least]
        ratio = ours / PAPER[kind]
        pages.verdict(
            f"Weibull, figure {number}: error of the {kind} at ε = {least:g}",
            "flchain",
            f"{ours:.3f} (to the letter {letter:.3f})",
            f"{PAPER[kind]:g}",
            "better" if ratio < 0.9 else "worse" if ratio > 1.1 else "reproduced",
        )
    pages.verdict(
        f"Weibull, figure {number}: {kind}", "SB", "no data", "not readable", "cannot be had"
    )


def _short(error: float) -> str:
    return f"{error:.2g}" if error < 10 else f"{error:.0f}"


def _figure(median: pd.Series, kind: str, pages: Pages) -> None:
    """Draw error over epsilon, a panel for each data set."""
    sets = [s for s in SETS if s in median.index.get_level_values("data")]
    drawn = sheet(3.4 * len(sets) + 0.6, 4.1)
    panels = drawn.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, name in zip(panels, sets, strict=True):
        for method, style in STYLES.items():
            curve = median[name, method]
            ax.loglog(curve.index, curve, **({"linewidth": 1.5, "markersize": 5} | style))
        if name == "flchain":
            ax.plot(0.1, PAPER[kind], "*", color="black", markersize=11, zorder=5, linestyle="none")
        ax.set_title(name, loc="left", fontweight="bold", fontsize=11)
        ax.set_xticks(list(curve.index), [f"{epsilon:g}" for epsilon in curve.index])
        ax.minorticks_off()
        ax.set_xlabel("ε of shape and scale together")
        panel(ax)
    panels[0].set_ylabel(f"Median absolute error of the {kind}")
    lines = panels[0].get_lines()
    labels = [*STYLES, "the paper's ladder, as stated in its text"][: len(lines)]
    drawn.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
    pages.figure(f"weibull_{kind}_error", drawn)


ERROR = Experiment(cases, measure, report, repetitions=200, quick=3)
