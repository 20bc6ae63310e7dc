"""The survival curve of 228 patients with lung cancer, beside two papers on such curves.

Veeraragavan et al. (arXiv 2412.05164) report a root mean squared error "as low as 0.04" at
epsilon 10. Veeraragavan and Nygård (arXiv 2509.00615) add Laplace noise to the curve and denoise
it, which is run here from their abstract, at the grid and weight that are best in hindsight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, interval
from benchmarks.rivals import curve_methods as methods
from skdpsurv import DPKaplanMeierFitter

#: Days: three years.
MAX_TIME = 1096.0
EPSILONS = (0.5, 1.0, 3.0, 10.0)
PUBLISHED = {10.0: 0.04}
OURS = "ours"


def cases(setting: Setting) -> Iterator[Case]:
    for epsilon in setting.of(EPSILONS, EPSILONS[-1:]):
        yield {"epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return errors at the times of the records, of this package and of each setting."""
    from lifelines.datasets import load_lung

    frame, epsilon = load_lung(), case["epsilon"]
    time, event = frame["time"].to_numpy(dtype=float), frame["status"].to_numpy() == 1
    times = np.unique(time)
    kaplan_meier = methods.kaplan_meier(time, event)
    exact = kaplan_meier(times)
    key = seed("lung", epsilon, repetition)

    def error(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean((values - exact) ** 2)))

    ours = DPKaplanMeierFitter(epsilon, max_time=MAX_TIME, random_state=key).fit(time, event)
    rows: list[Row] = [{"setting": OURS, "rmse": error(ours.predict(times))}]
    rng = np.random.default_rng(key)
    for m in methods.GRIDS:
        ends = MAX_TIME * np.arange(1, m + 1) / m
        found = methods.veeraragavan_nygard(kaplan_meier(ends), time.size, epsilon, rng)
        for weight, values in found:
            between = methods.log_linear(times, ends, values)
            rows.append({"setting": f"{m} times, {weight:g}", "rmse": error(between)})
    return rows


def report(rows: pd.DataFrame, pages: Pages) -> None:
    table, said = [], ""
    for epsilon, own in rows.groupby("epsilon"):
        ours = own[own.setting == OURS].rmse.to_numpy()
        others = own[own.setting != OURS]
        best = others.groupby("setting").rmse.mean().idxmin()
        rival = others[others.setting == best].rmse.to_numpy()
        published = PUBLISHED.get(float(epsilon))
        known = "" if published is None else f"{published:g}"
        table.append((f"{epsilon:g}", known, cell(ours), cell(rival), best))
        mean, width = interval(ours)
        if published is not None:
            said = f"At ε = {epsilon:g} the error is {mean:.3f} ± {width:.3f}, beside “as low as "
            said += f"{published:g}”."
    pages.table(
        "lung_curve",
        ("ε", "arXiv 2412.05164", "skdpsurv", "arXiv 2509.00615, denoised", "grid, weight"),
        table,
        said,
        "Root mean squared error at the times of the records, against the estimate without "
        f"privacy; mean of {rows.repetition.max() + 1} draws of noise and half of its 95 % "
        "interval. Denoised: one site, from the abstract, best grid and weight in hindsight; its "
        "noise is too little for its ε where records are censored.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=40)
