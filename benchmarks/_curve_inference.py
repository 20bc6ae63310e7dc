"""What intervals and tests of private Kaplan-Meier curves are worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lifelines import KaplanMeierFitter
from lifelines.statistics import logrank_test as exact_logrank_test

from benchmarks._common import table
from benchmarks._curve_data import (
    LAST,
    LEAST_AT_RISK,
    Population,
    Records,
    fit,
    populations,
    together,
    weibull,
    weibull_population,
)
from benchmarks._run import setting
from skdpsurv.survival.comparisons import compare_restricted_means, logrank_test

SIZES = setting((200, 2_000, 20_000), quick=(200,))
EPSILONS = setting((0.3, 1.0, 3.0), quick=(1.0,))
TEST_SIZES = setting((300, 1_000, 5_000), quick=(300,))
TEST_EPSILONS = setting((0.1, 0.5, 1.0, 3.0, np.inf), quick=(1.0, np.inf))
#: Parts of the horizon at which intervals are looked at.
PARTS = np.array([0.05, 0.10, 0.25, 0.50, 0.75, 0.95])
#: Shape and scale of the log-rank tests: hazards fall, so that who is censored when matters.
NULL = (0.7, 0.8)

Rows = list[tuple[str, ...]]


def intervals_of(one: Population, n: int, repetitions: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a method, and whether intervals held the truth, and widths, of shape (2, reps, times).

    Private ones at the ends of bands next to each time, and at the times.
    """
    times = PARTS * one.max_time
    times = times[one.at_risk(times) >= LEAST_AT_RISK]
    found = defaultdict(list)
    for seed in range(repetitions):
        records = one.draw(n, seed)
        exact = KaplanMeierFitter().fit(*records).confidence_interval_
        found["lifelines"].append(judged(one, times, exact.asof(times).to_numpy()))
        for epsilon in EPSILONS:
            private = fit(records, epsilon, one.max_time, seed)
            ends = private.timeline[1:]
            nearest = ends[np.abs(ends - times[:, None]).argmin(axis=1)]
            for what, t in ((f"{epsilon:g}", nearest), (f"{epsilon:g}, between", times)):
                # No truth is known where hardly anybody is at risk.
                band = private.survival_band(t).to_numpy()
                band[one.at_risk(t) < LEAST_AT_RISK] = np.nan
                found[what].append(judged(one, t, band))
    for name, each in found.items():
        yield name, np.moveaxis(np.array(each), 1, 0)


def judged(one: Population, times: np.ndarray, band: np.ndarray) -> np.ndarray:
    """Return whether intervals hold the truth, and how wide they are; NaN where there is none."""
    lower, upper = band.T
    truth = one.survival(times)
    held = (lower <= truth + 1e-12) & (truth - 1e-12 <= upper)
    return np.array([np.where(np.isnan(lower), np.nan, held), upper - lower])


def coverage(folder: Path | None, repetitions: int) -> None:
    """Table: how often bands hold the truth, and how wide they are."""
    rows: Rows = []
    every = list(populations(folder))
    for kind in ("simulated", "real"):
        for n in SIZES:
            held, width = defaultdict(list), defaultdict(list)
            for _, one in (each for each in every if each[0] == kind):
                for name, (inside, size) in intervals_of(one, n, repetitions):
                    # A cell is a population and a time.
                    cells = 100.0 * np.nanmean(inside, axis=0)
                    held[name].append(cells[~np.isnan(cells)])
                    width[name].append(np.nanmean(size, axis=0)[~np.isnan(cells)])
                    print(kind, n, one.name, name, np.round(held[name][-1]), flush=True)
            cell = {name: np.concatenate(each) for name, each in held.items()}
            wide = {name: np.concatenate(each).mean() for name, each in width.items()}
            for epsilon in EPSILONS:
                names = (f"{epsilon:g}", f"{epsilon:g}, between", "lifelines")
                shown = (f"{cell[name].mean():.1f}, {cell[name].min():.0f}" for name in names)
                widths = (f"{wide[name]:.3f}" for name in (names[0], names[2]))
                rows.append((kind, f"{n:,}", names[0], *shown, *widths))
                print(rows[-1], flush=True)
    table(
        "curves_coverage",
        (
            *("people", "records", "ε", "ends of bands", "any times", "lifelines"),
            *("width at ends", "lifelines' width"),
        ),
        rows,
        "Per cent of pointwise 95 % intervals that hold the truth, mean and least of all "
        f"populations and times, {repetitions} data sets each; mean width. lifelines: without "
        "privacy.",
    )
    groups(repetitions)


def groups(repetitions: int) -> None:
    """Table: coverage for two groups of one fit, and for what they differ by."""
    laws = [(1.0, 0.8), (1.5, 1.2)]
    one, two = (weibull_population("", *law) for law in laws)
    grid = (np.arange(100_000) + 0.5) / 100_000
    truth = float(np.mean(one.survival(grid) - two.survival(grid)))
    rows: Rows = []
    for n in SIZES:
        parts = int(0.3 * n), n - int(0.3 * n)
        for epsilon in EPSILONS:
            held: list[list[np.ndarray]] = [[], []]
            difference, width = [], []
            for seed in range(repetitions):
                both = one.draw(parts[0], 2 * seed), two.draw(parts[1], 2 * seed + 1)
                fitted = fit(together(*both), epsilon, 1.0, seed, np.repeat([0, 1], parts))
                ends = fitted.timeline[1:]
                for k, law in enumerate((one, two)):
                    at = ends[np.abs(ends - PARTS[:, None]).argmin(axis=1)]
                    band = fitted.of_group(k).survival_band(at).to_numpy()
                    band[law.at_risk(at) < LEAST_AT_RISK] = np.nan
                    held[k].append(judged(law, at, band)[0])
                found = compare_restricted_means(
                    fitted.of_group(0), fitted.of_group(1), n_resamples=400
                ).loc["difference"]
                difference.append(found["lower"] <= truth <= found["upper"])
                width.append(found["upper"] - found["lower"])
            cells = [100.0 * np.nanmean(each, axis=0) for each in held]
            shown = [f"{np.nanmean(each):.1f}, {np.nanmin(each):.0f}" for each in cells]
            means = f"{100.0 * np.mean(difference):.1f}", f"{np.mean(width):.3f}"
            rows.append((f"{n:,}", f"{epsilon:g}", *shown, *means))
            print(rows[-1], flush=True)
    table(
        "curves_groups",
        ("records", "ε", "group of 30 %", "group of 70 %", "difference of means", "width"),
        rows,
        "Per cent of 95 % intervals that hold the truth: pointwise ones of each curve at the ends "
        "of bands, mean and least of all times, and those of the difference of restricted means, "
        f"which is {truth:.3f} horizons. {repetitions} data sets each.",
    )


def two_groups(
    n: int, share: float, seed: int, ratio: float, last: tuple[float, float]
) -> tuple[Records, np.ndarray]:
    """Return records of two groups, the first of which has a hazard larger by a ratio."""
    rng = np.random.default_rng(seed)
    shape, scale = NULL
    sizes = round(share * n), n - round(share * n)
    scales = scale * ratio ** (-1.0 / shape), scale
    one, two = (
        weibull(*each[:1], rng, shape, *each[1:]) for each in zip(sizes, scales, last, strict=True)
    )
    return together(one, two), np.repeat([0, 1], sizes)


def rejections(
    epsilon: float | None,
    repetitions: int,
    n: int,
    share: float,
    ratio: float,
    last: tuple[float, float],
) -> float:
    """Return the per cent of tests that reject at 5 %; None: lifelines' without privacy."""
    count = 0
    for seed in range(repetitions):
        records, group = two_groups(n, share, seed, ratio, last)
        if epsilon is None:
            durations, events = ([column[group == g] for g in (0, 1)] for column in records)
            p_value = exact_logrank_test(*durations, *events).p_value
        else:
            fitted = fit(records, epsilon, 1.0, seed, group)
            p_value = logrank_test(fitted.of_group(0), fitted.of_group(1)).p_value
        count += int(p_value < 0.05)
    return 100.0 * count / repetitions


def tests(repetitions: int) -> None:
    """Tables: rejections where nothing differs, and where hazards do."""
    columns = [f"ε = {epsilon:g}".replace("inf", "∞") for epsilon in TEST_EPSILONS]
    standard = 100.0 * np.sqrt(0.05 * 0.95 / repetitions)
    rows: Rows = []
    for censoring, last in (("equal", (LAST, LAST)), ("different", (LAST, 0.6))):
        for share in (0.5, 0.2):
            for n in TEST_SIZES:
                found = [
                    rejections(epsilon, repetitions, n, share, 1.0, last)
                    for epsilon in (*TEST_EPSILONS, None)
                ]
                cells = (f"{value:.1f}" for value in found)
                rows.append((censoring, f"{share:g}", f"{n:,}", *cells))
                print(rows[-1], flush=True)
    note = (
        f"Weibull times of shape {NULL[0]} and scale {NULL[1]} horizons, uniform censoring up to "
        f"{LAST} horizons"
    )
    table(
        "curves_logrank",
        ("censoring", "share of the first group", "records", *columns, "lifelines"),
        rows,
        f"Per cent of {repetitions} log-rank tests that reject at 5 % where nothing differs "
        f"(standard error {standard:.1f}). {note}; different: up to 0.6 in the second group. "
        "lifelines: without privacy.",
    )
    rows = []
    repetitions = max(2, repetitions // 2)
    for ratio in (1.3, 1.5):
        for n in TEST_SIZES[1:] or TEST_SIZES:
            found = [
                rejections(epsilon, repetitions, n, 0.5, ratio, (LAST, LAST))
                for epsilon in (*TEST_EPSILONS, None)
            ]
            rows.append((f"{ratio:g}", f"{n:,}", *(f"{value:.0f}" for value in found)))
            print(rows[-1], flush=True)
    table(
        "curves_power",
        ("hazard ratio", "records", *columns, "lifelines"),
        rows,
        f"Per cent of {repetitions} log-rank tests that reject at 5 % where hazards differ; groups "
        f"of one size. {note}. lifelines: without privacy.",
    )
