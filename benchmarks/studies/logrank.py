"""Private log-rank tests: how often they reject where nothing differs, and where hazards do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.curve_populations import LAST, Records, together, weibull
from skdpsurv import DPKaplanMeierFitter
from skdpsurv.survival.comparisons import logrank_test

#: Infinite: lifelines' test without privacy.
EPSILONS = (0.1, 0.5, 1.0, 3.0, math.inf)
#: Shape and scale: hazards fall, so that who is censored when matters.
SHAPE, SCALE = 0.7, 0.8
#: Where censoring of the second group ends; the first is censored up to LAST.
CENSORING = {"equal": LAST, "different": 0.6}
#: Hazard ratio, censoring, share of the first group, records.
NULL = tuple(
    (1.0, how, share, n) for how in CENSORING for share in (0.5, 0.2) for n in (300, 5_000)
)
POWER = ((1.3, "equal", 0.5, 1_000), (1.3, "equal", 0.5, 5_000), (1.5, "equal", 0.5, 1_000))
NAMES = ("ratio", "censoring", "share", "n")
#: Tests of one measurement.
DRAWS = 100


def cases(setting: Setting) -> Iterator[Case]:
    for law in setting.of((*NULL, *POWER), (NULL[0], POWER[0])):
        for epsilon in setting.of(EPSILONS, (1.0, math.inf)):
            yield {**dict(zip(NAMES, law, strict=True)), "epsilon": epsilon}


def records(case: Case, key: int) -> tuple[Records, np.ndarray]:
    """Return records of two groups, the first of which has a hazard larger by the ratio."""
    rng = np.random.default_rng(key)
    first = round(case["share"] * case["n"])
    sizes = first, case["n"] - first
    faster = SCALE * case["ratio"] ** (-1.0 / SHAPE)
    one = weibull(sizes[0], rng, SHAPE, faster, LAST)
    two = weibull(sizes[1], rng, SHAPE, SCALE, CENSORING[case["censoring"]])
    return together(one, two), np.repeat([0, 1], sizes)


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return how many tests reject at 5 %."""
    from lifelines.statistics import logrank_test as exact_test

    n_tests, rejected = setting.of(DRAWS, 5), 0
    for number in range(n_tests):
        # The same records for every epsilon.
        key = seed(*(case[name] for name in NAMES), repetition, number)
        (durations, events), group = records(case, key)
        if math.isinf(case["epsilon"]):
            parts = (x[group == g] for x in (durations, events) for g in (0, 1))
            p_value = exact_test(*parts).p_value
        else:
            fitter = DPKaplanMeierFitter(
                case["epsilon"],
                max_time=1.0,
                groups=[0, 1],
                random_state=seed(key, case["epsilon"]),
            ).fit(durations, events, group=group)
            p_value = logrank_test(fitter.of_group(0), fitter.of_group(1)).p_value
        rejected += int(p_value < 0.05)
    return {"tests": n_tests, "rejected": rejected}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    sums = rows.groupby([*NAMES, "epsilon"], sort=False)[["tests", "rejected"]].sum()
    share = (100.0 * sums.rejected / sums.tests).unstack("epsilon")
    share = share[sorted(share.columns)]
    null, power = (
        share[(share.index.get_level_values("ratio") == 1.0) == same] for same in (True, False)
    )
    private = [epsilon for epsilon in share if np.isfinite(epsilon)]
    private_null = null[private].stack()
    columns = [f"ε = {epsilon:g}" for epsilon in private] + ["lifelines"]
    tests = int(sums.tests.min())
    note = (
        f"Weibull times of shape {SHAPE} and scale {SCALE} horizons, uniform censoring up to "
        f"{LAST} horizons"
    )
    pages.table(
        "curves_logrank",
        ("censoring", "share of the first group", "records", *columns),
        [
            (censoring, f"{part:g}", f"{n:,}", *(f"{x:.1f}" for x in values))
            for (_, censoring, part, n), values in zip(null.index, null.to_numpy(), strict=True)
        ],
        f"Private tests reject a true null hypothesis in {private_null.min():.1f} to "
        f"{private_null.max():.1f} % (mean {private_null.mean():.1f}), "
        f"lifelines' in {null[math.inf].min():.1f} to {null[math.inf].max():.1f} %.",
        f"Per cent of {tests} tests that reject at 5 % (standard error "
        f"{100.0 * math.sqrt(0.05 * 0.95 / tests):.1f}). {note}; different: up to "
        f"{CENSORING['different']} in the second group. lifelines: without privacy.",
    )
    lost = (power[math.inf] - power[1.0]).dropna()
    if lost.empty:
        return
    ratio, _, _, n = lost.idxmax()
    pages.table(
        "curves_power",
        ("hazard ratio", "records", *columns),
        [
            (f"{ratio:g}", f"{n:,}", *(f"{x:.0f}" for x in values))
            for (ratio, _, _, n), values in zip(power.index, power.to_numpy(), strict=True)
        ],
        f"At ε = 1 privacy costs at most {lost.max():.0f} points of power, with {n:,} records and "
        f"a hazard ratio of {ratio:g}.",
        f"Per cent of {tests} tests that reject at 5 % where hazards differ; groups of one size. "
        f"{note}.",
    )


TESTS = Experiment(cases, measure, report, repetitions=6)
