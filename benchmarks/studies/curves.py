"""Intervals of private survival curves: how often they hold the truth, and how wide they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, panel, sheet
from benchmarks.studies.curve_populations import (
    SIMULATED,
    Population,
    population,
    together,
    weibull_population,
)
from skdpsurv import DPKaplanMeierFitter
from skdpsurv.survival.comparisons import compare_restricted_means

SETS = ("flchain", "third births", "unemployment", "child mortality", "GBSG2", "WHAS500", "AIDS")
SIZES = (200, 2_000, 20_000)
EPSILONS = (0.3, 1.0, 3.0)
#: Parts of the horizon at which intervals are looked at, while enough people are at risk.
PARTS = np.array([0.05, 0.10, 0.25, 0.50, 0.75, 0.95])
LEAST_AT_RISK = 0.1
ENDS, BETWEEN, EXACT = "ends of bands", "any times", "lifelines"
STYLES = {ENDS: ("#0072B2", "o"), BETWEEN: ("#E69F00", "s"), EXACT: ("0.45", "^")}
#: Shape and scale of two groups, and the share of the first.
LAWS, FIRST_SHARE = ((1.0, 0.8), (1.5, 1.2)), 0.3
#: Data sets of one measurement.
DRAWS = 50


def coverage_cases(setting: Setting) -> Iterator[Case]:
    simulated = tuple(SIMULATED)
    for kind, names in (("simulated", simulated), ("real", SETS)):
        for name in setting.of(names, names[:1]):
            for n in setting.of(SIZES, SIZES[:1]):
                yield {"kind": kind, "people": name, "n": n}


def measure_coverage(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return by method and time how many intervals there are, and how many hold the truth.

    Private ones at the ends of bands next to each time, and at the times.
    """
    from lifelines import KaplanMeierFitter

    one, n = population(setting, case["people"]), int(case["n"])
    times = PARTS * one.max_time
    times = times[one.at_risk(times) >= LEAST_AT_RISK]
    found = defaultdict(list)
    for number in range(setting.of(DRAWS, 2)):
        key = seed(*case.values(), repetition, number)
        records = one.draw(n, key)
        exact = KaplanMeierFitter().fit(*records).confidence_interval_
        found[EXACT, 0.0].append(judged(one, times, exact.asof(times).to_numpy()))
        for epsilon in EPSILONS:
            fitter = DPKaplanMeierFitter(
                epsilon, max_time=one.max_time, random_state=seed(key, epsilon)
            ).fit(*records)
            for what, at in ((ENDS, _nearest(fitter, times)), (BETWEEN, times)):
                found[what, epsilon].append(judged(one, at, fitter.survival_band(at).to_numpy()))
    return [
        {"intervals": what, "epsilon": epsilon, **_counted(each)}
        for (what, epsilon), each in found.items()
    ]


def _nearest(fitter: DPKaplanMeierFitter, times: np.ndarray) -> np.ndarray:
    """Return the end of a band next to each time."""
    ends = fitter.timeline[1:]
    return ends[np.abs(ends - times[:, None]).argmin(axis=1)]  # type: ignore[no-any-return]


def judged(one: Population, times: np.ndarray, band: np.ndarray) -> np.ndarray:
    """Return whether intervals hold the truth, and how wide they are.

    NaN where there is no interval, or no truth because hardly anybody is at risk.
    """
    lower, upper = np.where(one.at_risk(times)[:, None] < LEAST_AT_RISK, np.nan, band).T
    truth = one.survival(times)
    held = (lower <= truth + 1e-12) & (truth - 1e-12 <= upper)
    return np.array([np.where(np.isnan(lower), np.nan, held), upper - lower])


def _counted(each: list[np.ndarray]) -> Row:
    """Return numbers of intervals, and of those that hold, by time; and the mean width."""
    held, width = np.moveaxis(np.array(each), 1, 0)
    there = (~np.isnan(held)).sum(axis=0)
    row: Row = {"width": np.nanmean(width)}
    for j, (total, good) in enumerate(zip(there, np.nansum(held, axis=0), strict=True)):
        row |= {f"all{j}": int(total), f"held{j}": int(good)}
    return row


def cells(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the per cent that hold, a row for each key and time, and the mean width."""
    sums = rows.groupby(keys, sort=False).sum(numeric_only=True)
    width = rows.groupby(keys, sort=False)["width"].mean()
    parts = []
    for j in range(PARTS.size):
        if f"all{j}" in sums:
            part = pd.DataFrame({"held": 100.0 * sums[f"held{j}"] / sums[f"all{j}"]})
            parts.append(part.assign(width=width)[sums[f"all{j}"] > 0])
    return pd.concat(parts).reset_index()


def report_coverage(rows: pd.DataFrame, pages: Pages) -> None:
    found = cells(rows, ["kind", "people", "n", "intervals", "epsilon"])
    told = found.groupby(["kind", "n", "intervals", "epsilon"])
    mean, least, width = told.held.mean(), told.held.min(), told["width"].mean()
    table = []
    for kind, n in sorted({(k, n) for k, n, *_ in mean.index}, key=lambda x: (x[0] == "real", x)):
        for epsilon in EPSILONS:
            at = {what: (kind, n, what, 0.0 if what == EXACT else epsilon) for what in STYLES}
            shown = [f"{mean[place]:.1f}, {least[place]:.0f}" for place in at.values()]
            widths = [f"{width[at[what]]:.3f}" for what in (ENDS, EXACT)]
            table.append((kind, f"{n:,}", f"{epsilon:g}", *shown, *widths))
    ours, between, exact = (mean.xs(what, level="intervals") for what in STYLES)
    low, low_between, low_exact = (least.xs(what, level="intervals").min() for what in STYLES)
    pages.table(
        "curves_coverage",
        ("people", "records", "ε", *STYLES, "width at ends", "lifelines' width"),
        table,
        f"At the ends of bands {ours.min():.1f} to {ours.max():.1f} % of intervals hold the truth, "
        f"and {low:.0f} % in the worst population and time; between them {between.min():.1f} to "
        f"{between.max():.1f} %, at worst {low_between:.0f} %; without privacy lifelines' "
        f"{exact.min():.1f} to {exact.max():.1f} %, at worst {low_exact:.0f} %.",
        "Per cent of pointwise 95 % intervals that hold the truth, mean and least of all "
        f"populations and times, {DRAWS * (rows.repetition.max() + 1)} data sets each; mean width.",
    )
    _figure(mean, least, pages)


def _figure(mean: pd.Series, least: pd.Series, pages: Pages) -> None:
    """Draw the mean and the least coverage at epsilon 1, a panel for each kind of people."""
    kinds = [kind for kind in ("simulated", "real") if kind in mean.index.get_level_values("kind")]
    drawn = sheet(4.2 * len(kinds) + 0.4, 3.9)
    panels = drawn.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for ax, kind in zip(panels, kinds, strict=True):
        lines = []
        for place, (what, (colour, marker)) in enumerate(STYLES.items()):
            epsilon = 0.0 if what == EXACT else 1.0
            middle, low = (x.loc[kind, :, what, epsilon] for x in (mean, least))
            at = middle.index.to_numpy(dtype=float) * 1.25 ** (place - 1)
            ax.vlines(at, low, middle, color=colour, linewidth=1.5)
            lines += ax.plot(at, middle, marker, color=colour, markersize=6)
            ax.plot(at, low, "_", color=colour, markersize=9)
        ax.axhline(95.0, color="black", linewidth=0.8, zorder=0)
        ax.set_xscale("log")
        ax.set_xticks(middle.index.to_list(), [f"{n:,}" for n in middle.index])
        ax.minorticks_off()
        ax.set_title(f"{kind} people", loc="left", fontweight="bold", fontsize=11)
        ax.set_xlabel("Records")
        panel(ax)
    panels[0].set_ylabel("Intervals that hold the truth (%)")
    labels = [f"ε = 1, {ENDS}", f"ε = 1, {BETWEEN}", f"{EXACT}, without privacy"]
    drawn.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
    pages.figure("curves_coverage", drawn)


def group_cases(setting: Setting) -> Iterator[Case]:
    for n in setting.of(SIZES, SIZES[:1]):
        for epsilon in setting.of(EPSILONS, (1.0,)):
            yield {"n": n, "epsilon": epsilon}


def measure_groups(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the same for two groups of one fit, and for what their means differ by."""
    laws = [weibull_population(*law) for law in LAWS]
    n, epsilon, truth = int(case["n"]), case["epsilon"], difference()
    sizes = round(FIRST_SHARE * n), n - round(FIRST_SHARE * n)
    found = defaultdict(list)
    for number in range(setting.of(DRAWS, 2)):
        key = seed(n, repetition, number)
        draws = [
            law.draw(size, key + k) for k, (law, size) in enumerate(zip(laws, sizes, strict=True))
        ]
        fitter = DPKaplanMeierFitter(
            epsilon, max_time=1.0, groups=[0, 1], random_state=seed(key, epsilon)
        ).fit(*together(*draws), group=np.repeat([0, 1], sizes))
        for k, law in enumerate(laws):
            at = _nearest(fitter, PARTS)
            band = fitter.of_group(k).survival_band(at).to_numpy()
            found[f"group {k + 1}"].append(judged(law, at, band))
        means = compare_restricted_means(
            fitter.of_group(0), fitter.of_group(1), n_resamples=400
        ).loc["difference"]
        low, high = means["lower"], means["upper"]
        found["difference"].append(np.array([[low <= truth <= high], [high - low]], dtype=float))
    return [{"intervals": what, **_counted(each)} for what, each in found.items()]


def difference() -> float:
    """Return the difference of the true restricted means."""
    grid = (np.arange(100_000) + 0.5) / 100_000
    one, two = (weibull_population(*law).survival(grid).mean() for law in LAWS)
    return float(one - two)


def report_groups(rows: pd.DataFrame, pages: Pages) -> None:
    told = cells(rows, ["n", "epsilon", "intervals"]).groupby(["n", "epsilon", "intervals"])
    mean, least, width = told.held.mean(), told.held.min(), told["width"].mean()
    names = ("group 1", "group 2", "difference")
    table = [
        (
            *(f"{n:,}", f"{epsilon:g}"),
            *(f"{mean[n, epsilon, w]:.1f}, {least[n, epsilon, w]:.0f}" for w in names[:2]),
            *(f"{mean[n, epsilon, names[2]]:.1f}", f"{width[n, epsilon, names[2]]:.3f}"),
        )
        for n, epsilon in sorted({(n, epsilon) for n, epsilon, _ in mean.index})
    ]
    by_group, of_means = (
        mean.drop(names[2], level="intervals"),
        mean.xs(names[2], level="intervals"),
    )
    pages.table(
        "curves_groups",
        ("records", "ε", "group of 30 %", "group of 70 %", "difference of means", "width"),
        table,
        f"{by_group.min():.1f} to {by_group.max():.1f} % of intervals of each curve hold the truth "
        f"in the mean over times, and {of_means.min():.1f} to {of_means.max():.1f} % of those of "
        "the difference.",
        "Per cent of 95 % intervals: pointwise ones at the ends of bands, mean and least of all "
        "times, and those of the difference of restricted means, which is "
        f"{difference():.3f} horizons. {DRAWS * (rows.repetition.max() + 1)} data sets each.",
    )


COVERAGE = Experiment(coverage_cases, measure_coverage, report_coverage, repetitions=4)
GROUPS = Experiment(group_cases, measure_groups, report_groups, repetitions=8)
