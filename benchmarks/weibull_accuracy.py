"""Error of private Weibull shapes and scales over epsilon, as in figures 3 and 4 of Nguyen and Hui.

python -m benchmarks.weibull_accuracy --data-dir FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks._common import save, sheet, table
from benchmarks._run import arguments, data_file, number, part, run, setting
from skdpsurv import DPWeibullFitter
from skdpsurv.data.target import event_and_time
from skdpsurv.datasets import load_flchain, load_survival_csv
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)
from skdpsurv.published import weibull as published_plans
from skdpsurv.survival.weibull.counts import CountTable
from skdpsurv.survival.weibull.fitter import WeibullCurve

#: The paper's.
OMEGA = 6.0
LEAST = math.exp(-OMEGA)
EPSILONS = setting((0.1, 0.2, 0.4, 0.8, 1.6, 3.2), quick=(0.1, 1.6))
METHODS: dict[str, Callable[..., WeibullCurve]] = {
    "ladder, tight": DPWeibullFitter,
    "ladder, exact": partial(PublishedWeibullFitter, ladder="exact"),
    "ladder, published": PublishedWeibullFitter,
    "sample and aggregate": SampleAggregateWeibullFitter,
    "Laplace": LaplaceWeibullFitter,
}
FILES = {"third births": "tb_third_births.csv.gz", "unemployment": "wt_unemployment_de.csv.gz"}
#: Median absolute errors that the paper states in its text, at a total epsilon of 0.1 on flchain.
PAPER = {"shape": 0.1, "scale": 0.297}
STYLES = {
    "ladder, tight": {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
    "ladder, exact": {"color": "#009E73", "marker": "s"},
    "ladder, published": {"color": "#D55E00", "marker": "D"},
    "sample and aggregate": {"color": "#CC79A7", "marker": "^", "linestyle": "--"},
    "Laplace": {"color": "0.35", "marker": "v", "linestyle": ":"},
}


def data_sets(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, durations in (0, 1] and events.

    As in the paper, times are mapped to [e^-6, 1] linearly, by the data set's own largest
    time. That time is a statistic of the records: good for this comparison, and not private.
    """
    found = {"flchain": load_flchain().y}
    for name, file in FILES.items():
        with part(name):
            found[name] = load_survival_csv(data_file(folder, file))[1]
    for name, y in found.items():
        event, time = event_and_time(y)
        yield name, LEAST + (1.0 - LEAST) * time / time.max(), event


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


def errors(
    durations: np.ndarray,
    events: np.ndarray,
    epsilon: float,
    repetitions: int,
    make: Callable[..., WeibullCurve],
) -> dict[str, float]:
    """Return median absolute errors against the fit without privacy."""
    exact = DPWeibullFitter(math.inf, max_time=1.0, omega=OMEGA).fit(durations, events)
    fitter = make(epsilon, max_time=1.0, omega=OMEGA)
    off = []
    for _ in range(repetitions):
        fitter.fit(durations, events)
        off.append((fitter.rho_ - exact.rho_, fitter.lambda_ - exact.lambda_))
    return dict(zip(("shape", "scale"), np.median(np.abs(off), axis=0), strict=True))


@part("figure")
def figure(
    name: str, results: dict[str, dict[str, np.ndarray]], what: str, paper: float | None
) -> None:
    """Draw error over epsilon, a panel for each data set."""
    drawn = sheet(3.4 * len(results) + 0.6, 4.1)
    panels = drawn.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for ax, (data, curves) in zip(panels, results.items(), strict=True):
        for method, style in STYLES.items():
            ax.loglog(EPSILONS, curves[method], **({"linewidth": 1.5, "markersize": 5} | style))
        if data == "flchain" and paper is not None:
            ax.plot(0.1, paper, "*", color="black", markersize=11, zorder=5, linestyle="none")
        ax.set_title(data, loc="left", fontweight="bold", fontsize=11)
        ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        ax.minorticks_off()
        ax.set_xlabel("ε of shape and scale together")
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"Median absolute error of the {what}")
    lines = panels[0].get_lines()
    labels = [*STYLES, "the paper's ladder, as stated in its text"][: len(lines)]
    drawn.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
    save(drawn, name)


def main() -> None:
    """Tables and figures: shape and scale."""
    args = arguments(__doc__ or "", repetitions=number(500, quick=3))
    remember_published_levels()
    results: dict[str, dict[str, dict[str, np.ndarray]]] = {"shape": {}, "scale": {}}
    rows: dict[str, list[tuple[str, ...]]] = {"shape": [], "scale": []}
    for data, durations, events in data_sets(args.data_dir):
        exact = DPWeibullFitter(math.inf, max_time=1.0, omega=OMEGA).fit(durations, events)
        fitted = {"shape": exact.rho_, "scale": exact.lambda_}
        for method, make in METHODS.items():
            found = [
                errors(durations, events, epsilon, args.repetitions, make) for epsilon in EPSILONS
            ]
            for kind in rows:
                curve = np.array([each[kind] for each in found])
                results[kind].setdefault(data, {})[method] = curve
                head = f"{data}, n = {len(events):,}, {events.sum():,} events"
                cells = (f"{error:.2g}" if error < 10 else f"{error:.0f}" for error in curve)
                rows[kind].append((head, f"{fitted[kind]:.3f}", method, *cells))
            print(data, method, found, flush=True)
    note = (
        f"Median of {args.repetitions} private fits; shape and scale together cost ε. As in the "
        "paper, times are mapped to [exp(-6), 1] by the data set's largest time, omega = 6 and "
        "max_shape = 10. The largest time is a statistic of the records; it is used only to "
        "compare with the paper."
    )
    for kind in rows:
        table(
            f"weibull_{kind}_error",
            ("data", "without privacy", "method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
            rows[kind],
            f"Median absolute error of the {kind}. {note}",
        )
        figure(f"weibull_{kind}_error", results[kind], kind, PAPER[kind])


if __name__ == "__main__":
    run(main)
