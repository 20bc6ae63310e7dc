"""Time over the number of records, columns, intervals, knots and candidates: fitted slopes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.data import simulated
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, panel, sheet
from benchmarks.speed.fits import (
    MAXIMUM_LIKELIHOOD,
    PRIVATE,
    Call,
    Problem,
    curve_calls,
    hazard_call,
    in_turn,
    logistic_calls,
    seconds,
    weibull_calls,
)
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.model_selection import PrivateSearchCV

AXES: dict[str, tuple[int, ...]] = {
    "records": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "columns": (2, 8, 32, 128),
    "intervals": (10, 50, 200, 1_000),
    "knots": (3, 6, 12),
    "candidates": (2, 4, 8, 16),
}
#: What is not varied, but for the number of records.
N, COLUMNS = 20_000, 8
#: Up to how many records others are timed: beyond, they take minutes or all the memory.
MOST = {
    "person-period, statsmodels": 10_000,
    "Cox, lifelines": 100_000,
    "Cox, scikit-survival": 100_000,
    "lifelines": 1_000_000,
    "scikit-survival": 1_000_000,
    "scikit-learn": 1_000_000,
}
#: The same method has the same colour in all panels.
COLOURS = {
    PRIVATE: "#0072B2",
    MAXIMUM_LIKELIHOOD: "#009E73",
    "lifelines": "#D55E00",
    "Cox, lifelines": "#D55E00",
    "scikit-survival": "#CC79A7",
    "Cox, scikit-survival": "#CC79A7",
    "person-period, statsmodels": "#E69F00",
    "scikit-learn": "0.45",
}
COST = "private over own fit without privacy"


def cases(setting: Setting) -> Iterator[Case]:
    for axis, values in AXES.items():
        for value in setting.of(values, values[:1] if axis != "records" else values[:2]):
            yield {"axis": axis, "value": value}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the time of each fit, in turn."""
    axis, value = case["axis"], int(case["value"])
    n = value if axis == "records" else setting.of(N, 500)
    data = simulated(n, value if axis == "columns" else COLUMNS)
    if axis == "candidates":
        return [{"fit": "search of hazards", "seconds": seconds(_search(data, value))}]
    tried = Problem(
        data, q=value if axis == "intervals" else 200, knots=value if axis == "knots" else 3
    )
    others = ("Cox, scikit-survival",) if axis in ("records", "columns") else ()
    if axis == "records":
        others += ("Cox, lifelines", "person-period, statsmodels")
    kinds = {"hazards": {m: hazard_call(m, tried) for m in (MAXIMUM_LIKELIHOOD, PRIVATE, *others)}}
    if axis in ("records", "columns"):
        kinds["logistic"] = logistic_calls(data)
    if axis == "records":
        kinds |= {"Kaplan-Meier": curve_calls(data), "Weibull": weibull_calls(data)}
    calls: dict[str, Call] = {
        f"{kind}: {name}": call
        for kind, named in kinds.items()
        for name, call in named.items()
        if n <= MOST.get(name, n)
    }
    return in_turn(calls, "fit")


def _search(data: object, n_candidates: int) -> Call:
    """Return a private search over penalties."""
    alphas = list(np.logspace(-3, 0, n_candidates))
    search = PrivateSearchCV(DPDiscreteTimeSurvival(max_time=1.0), {"alpha": alphas}, epsilon=1.0)
    X, y = data.X, data.y  # type: ignore[attr-defined]
    return lambda: search.fit(X, y)


def slope(times: pd.Series) -> float:
    """Return the power of the axis by which times grow, over its last three values."""
    last = times.sort_index().iloc[-3:]
    if last.size < 2:
        return float("nan")
    return float(np.polyfit(np.log(last.index.to_numpy(dtype=float)), np.log(last), 1)[0])


def report(rows: pd.DataFrame, pages: Pages) -> None:
    median = rows.groupby(["axis", "fit", "value"]).seconds.median()
    for axis in AXES:
        if axis in median.index.get_level_values("axis"):
            _table(axis, median[axis], pages)
    _cost(median["records"], pages)
    _figure(median["records"], pages)


def _table(axis: str, median: pd.Series, pages: Pages) -> None:
    values = sorted(median.index.get_level_values("value").unique())
    fits = list(dict.fromkeys(median.index.get_level_values("fit")))
    slopes = {fit: slope(median[fit]) for fit in fits}
    private = [s for fit, s in slopes.items() if PRIVATE in fit or "search" in fit]
    pages.table(
        f"speed_{axis}",
        ("fit", *(f"{value:,}" for value in values), "slope"),
        [
            (fit, *(_seconds(median[fit].get(value, np.nan)) for value in values), f"{s:.2f}")
            for fit, s in sorted(slopes.items())
        ],
        f"Time of private fits grows by the number of {axis} to the power of "
        f"{min(private):.2f} to {max(private):.2f}.",
        f"Simulated, {COLUMNS} columns, {N:,} records, 200 intervals and 3 knots but for what is "
        "varied; processor time, in turn, one thread. The slope is that of logarithms over the "
        "last three values.",
    )


def _seconds(value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:.2f} s" if value >= 1.0 else f"{1e3 * value:.1f} ms"


def _cost(median: pd.Series, pages: Pages) -> None:
    kinds = [fit.removesuffix(f": {PRIVATE}") for fit in median.index.get_level_values("fit")]
    kinds = [kind for kind in dict.fromkeys(kinds) if f"{kind}: {PRIVATE}" in median]
    values = sorted(median.index.get_level_values("value").unique())
    ratios = {
        kind: median[f"{kind}: {PRIVATE}"] / median[f"{kind}: {MAXIMUM_LIKELIHOOD}"]
        for kind in kinds
    }
    at = 100_000 if 100_000 in values else values[-1]
    worst = max(ratio[at] for ratio in ratios.values())
    pages.table(
        "speed_privacy",
        (COST, *(f"{value:,}" for value in values)),
        [(kind, *(f"{ratio[value]:.2f}" for value in values)) for kind, ratio in ratios.items()],
        f"With {at:,} records a private fit takes at most {worst:.1f} times as long as the same "
        "estimator without privacy.",
        "Times as above, over those of the same estimator with epsilon=inf.",
    )


def _figure(median: pd.Series, pages: Pages) -> None:
    """Draw time over the number of records, a panel for each kind of fit."""
    fits = list(dict.fromkeys(median.index.get_level_values("fit")))
    kinds = list(dict.fromkeys(fit.partition(": ")[0] for fit in fits))
    drawn = sheet(3.0 * len(kinds) + 0.4, 3.9)
    for ax, kind in zip(drawn.subplots(1, len(kinds), sharey=True), kinds, strict=True):
        for fit in fits:
            name = fit.partition(": ")[2]
            if fit.startswith(f"{kind}: "):
                ours = name in (PRIVATE, MAXIMUM_LIKELIHOOD)
                times = median[fit]
                line = "-" if ours else "--"
                ax.loglog(
                    times.index,
                    times,
                    line,
                    marker="o",
                    markersize=4,
                    label=name,
                    color=COLOURS[name],
                )
        ax.set_title(kind, loc="left", fontweight="bold", fontsize=11)
        ax.set_xlabel("Records")
        panel(ax)
        ax.legend(frameon=False, fontsize=7, loc="upper left")
    # The legends have room above the lines.
    drawn.axes[0].set(ylabel="Seconds", ylim=(3e-4, 4e2))
    pages.figure("speed_records", drawn)


GROWTH = Experiment(cases, measure, report, repetitions=3, timed=True)
