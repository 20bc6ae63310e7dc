"""Coverage of the 95 % intervals for a private Weibull shape and scale, by simulation.

python -m benchmarks.weibull_intervals --jobs 2
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from lifelines import WeibullFitter

import skdpsurv.survival.weibull.intervals as simulation
from benchmarks._common import table
from benchmarks._run import arguments, number, run, setting
from skdpsurv import DPWeibullFitter
from skdpsurv.dp import RandomSource, random_source

EPSILONS = setting((0.3, 1.0, 3.0, math.inf), quick=(1.0, math.inf))
SIZES = setting((500, 5_000), quick=(500,))
SHAPE, SCALE = 1.3, 0.8
#: With these, 1 to 16 per cent of times are below the least.
SMALL_SHAPES = setting((0.4, 0.5, 0.7), quick=(0.4,))
#: Where errors grow with the shape, or where it is not known how many events there are: shape,
#: scale, censoring, records, epsilon. No default was found on those with 2,500 records.
CHANGING = setting(
    (
        (3.0, 0.3, "horizon only", 1_000, 1.0),
        (3.0, 2.5, "uniform", 1_000, 1.0),
        (1.5, 0.8, "uniform", 5_000, 0.3),
        (3.0, 2.5, "horizon only", 5_000, 1.0),
        (0.7, 0.5, "exponential", 2_500, 0.5),
        (2.2, 0.4, "horizon only", 2_500, 0.5),
        (2.2, 1.5, "uniform", 2_500, 0.5),
    ),
    quick=((3.0, 0.3, "horizon only", 1_000, 1.0),),
)
#: Times are in units of the horizon.
MAX_TIME = 1.0
#: Of 79 draws from the right distribution, the second smallest and the second largest hold 95 %.
#: ``confidence_interval`` takes quantiles p at the ranks 1 + p (79 - 1).
N_RESAMPLES = setting(79, quick=9)
LEVEL = 1.0 - 2.0 / (N_RESAMPLES - 1)

Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Case:
    """Quantile function of the times, how they are censored, how many there are."""

    times: str
    censoring: str
    n: int
    shape: float = SHAPE
    scale: float = SCALE

    def records(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return durations and events."""
        rng = np.random.default_rng(seed)
        return observed(self.quantile(rng.random(self.n)), CENSORING[self.censoring], rng)

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return times by which a part of the records have their events."""
        if self.times == "Weibull":
            return self.scale * (-np.log1p(-p)) ** (1.0 / self.shape)
        # Hazard that rises and then falls: no Weibull distribution has that.
        return 0.5 * (p / (1.0 - p)) ** 0.5

    def truth(self) -> tuple[float, float]:
        """Return lambda and rho; for other than Weibull times, those nearest in likelihood."""
        if self.times == "Weibull":
            return self.scale, self.shape
        rng = np.random.default_rng(0)
        n = 2_000_000
        time = self.quantile((np.arange(n) + 0.5) / n)
        durations, events = observed(time, CENSORING[self.censoring], rng)
        fit = DPWeibullFitter(math.inf, max_time=MAX_TIME).fit(durations, events)
        return fit.lambda_, fit.rho_


def observed(
    time: np.ndarray, censoring: Draw, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Censor times at random, and at the horizon."""
    last = np.minimum(censoring(rng, time.size), MAX_TIME)
    return np.minimum(time, last), time <= last


CENSORING: dict[str, Draw] = {
    "horizon only": lambda rng, n: np.full(n, np.inf),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.exponential(0.7, n),
}


def one_repetition(case: Case, seed: int, epsilons: tuple[float, ...] = EPSILONS) -> np.ndarray:
    """Return intervals, by method (lifelines is last), parameter (lambda, rho) and side."""
    warnings.simplefilter("ignore")
    durations, events = case.records(seed)
    intervals = []
    for epsilon in epsilons:
        fit = DPWeibullFitter(epsilon, max_time=MAX_TIME).fit(durations, events)
        # An interval's simulation has a fixed seed. With few resamples its luck would show in all
        # intervals alike, so that here each data set has its own.
        with patch.object(simulation, "random_source", partial(_seeded, seed)):
            intervals.append(fit.confidence_interval(LEVEL, N_RESAMPLES).to_numpy())
    reference = WeibullFitter().fit(durations, events).summary
    columns = ["coef lower 95%", "coef upper 95%"]
    intervals.append(reference.loc[["lambda_", "rho_"], columns].to_numpy())
    return np.array(intervals)


def _seeded(seed: int, random_state: int, *, purpose: str) -> RandomSource:
    return random_source(seed, purpose=purpose)


def small_shapes(parallel: Parallel, repetitions: int) -> None:
    """Table: coverage where many events are before the least time."""
    rows = []
    for shape in SMALL_SHAPES:
        for censoring, scale in (("horizon only", 0.8), ("uniform", 1.5)):
            case = Case("Weibull", censoring, SIZES[-1], shape, scale)
            tasks = (delayed(one_repetition)(case, seed) for seed in range(repetitions))
            low, high = np.moveaxis(np.array(parallel(tasks))[:, :-1], -1, 0)
            truth = case.truth()
            inside = 100.0 * ((low <= truth) & (truth <= high)).mean(axis=0)
            head = (f"{shape:g}", f"{scale:g}", censoring, f"{case.n:,}")
            rows.append((*head, *(f"{rho:.0f} / {scale_:.0f}" for scale_, rho in inside)))
            print(rows[-1], flush=True)
    columns = [f"ε = {epsilon:g}".replace("inf", "∞") for epsilon in EPSILONS]
    table(
        "weibull_small_shapes",
        ("shape", "scale", "censoring", "records", *columns),
        rows,
        "Per cent of 95 % intervals that hold the true shape / scale. "
        f"{repetitions} data sets each.",
    )


def changing_errors(parallel: Parallel, repetitions: int) -> None:
    """Table: coverage, and width on the log scale, where errors depend on the truth."""
    rows = []
    for shape, scale, censoring, n, epsilon in CHANGING:
        case = Case("Weibull", censoring, n, shape, scale)
        tasks = (delayed(one_repetition)(case, seed, (epsilon,)) for seed in range(repetitions))
        low, high = np.moveaxis(np.array(parallel(tasks))[:, 0], -1, 0)
        truth = case.truth()
        inside = 100.0 * ((low <= truth) & (truth <= high)).mean(axis=0)
        width = np.log(high / low)
        sizes = np.stack([width.mean(axis=0), np.median(width, axis=0)], axis=1)
        head = (f"{shape:g}", f"{scale:g}", censoring, f"{n:,}", f"{epsilon:g}")
        cells = (f"{mean:.2f}, {middle:.2f}" for mean, middle in sizes[::-1])
        rows.append((*head, f"{inside[1]:.0f} / {inside[0]:.0f}", *cells))
        print(rows[-1], flush=True)
    widths = ("width for shape: mean, median", "for scale")
    table(
        "weibull_changing_errors",
        ("shape", "scale", "censoring", "records", "ε", "coverage", *widths),
        rows,
        "Per cent of 95 % intervals that hold the true shape / scale, and log of the ratio of "
        f"their ends. {repetitions} data sets each.",
    )


def main() -> None:
    """Tables: how often intervals hold the truth, and how wide they are."""
    args = arguments(__doc__ or "", repetitions=number(300, quick=2), jobs=number(1))
    repetitions = args.repetitions
    cases = [Case("Weibull", censoring, n) for censoring in CENSORING for n in SIZES]
    cases += [Case("log-logistic", "horizon only", n) for n in SIZES]
    coverage, width = [], []
    parallel = Parallel(n_jobs=args.jobs)
    small_shapes(parallel, repetitions)
    changing_errors(parallel, repetitions)
    for case in cases:
        tasks = (delayed(one_repetition)(case, seed) for seed in range(repetitions))
        low, high = np.moveaxis(np.array(parallel(tasks)), -1, 0)
        truth = case.truth()
        inside = 100.0 * ((low <= truth) & (truth <= high)).mean(axis=0)
        size = np.median(high - low, axis=0)
        events = np.mean([case.records(seed)[1].mean() for seed in range(20)])
        head = (case.times, case.censoring, f"{case.n:,}", f"{100 * events:.0f} %")
        coverage.append((*head, *(f"{rho:.0f} / {scale:.0f}" for scale, rho in inside)))
        ratio = size[:-1] / size[-1]
        width.append((*head, *(f"{rho:.2f} / {scale:.2f}" for scale, rho in ratio)))
        print(coverage[-1], width[-1], flush=True)

    head = ("times", "censoring", "records", "events")
    columns = [f"ε = {epsilon:g}".replace("inf", "∞") for epsilon in EPSILONS]
    error = 100.0 * math.sqrt(0.95 * 0.05 / repetitions)
    note = (
        f"{repetitions} data sets each; {N_RESAMPLES} simulated fits an interval, in place of 500, "
        "at ranks that make up for it. Weibull times: "
        f"shape {SHAPE}, scale {SCALE} horizons."
    )
    table(
        "weibull_coverage",
        (*head, *columns, "lifelines"),
        coverage,
        f"Per cent of 95 % intervals that hold the true shape / scale (standard error {error:.0f} "
        f"points). {note} Log-logistic times: the Weibull parameters nearest in likelihood count "
        "as true.",
    )
    table(
        "weibull_width",
        (*head, *columns),
        width,
        f"Median width of the intervals for shape / scale relative to lifelines'. {note}",
    )


if __name__ == "__main__":
    run(main)
