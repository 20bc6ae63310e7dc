"""Absolute risk: how far predicted survival is from what happens, with and without recalibration.

python -m benchmarks.absolute_risk --data-dir FOLDER

The further sets are those of the package SurvSet, which no extra of this package brings:
``pip install SurvSet``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sksurv.nonparametric import kaplan_meier_estimator

from benchmarks._common import SurvivalData, split, survival_sets, table
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.target import event_and_time
from skdpsurv.evaluation import concordance_index

EPSILONS = setting((3.0, 1.0, 0.3), quick=(1.0,))
SHARES = (0.0, 0.1)
#: Sets that defaults were found on, beside those of the papers; all others of SurvSet that have
#: 600 records or more and at most 100 columns were kept apart.
FOUND_ON = ("support2", "dataDIVAT1", "nwtco", "UnempDur", "rott2", "acath", "TRACE", "colon")
KEPT_APART = (
    *("prostateSurvival", "Dialysis", "rhc", "Framingham", "dataDIVAT3", "smarto", "divorce"),
    *("Aids2", "scania", "dataDIVAT2", "actg", "LeukSurv", "rdata", "grace", "GBSG2"),
)
#: Sets with so many records have fifths in which Kaplan-Meier says something.
LARGE = 1900
#: Larger ones are cut to this, for time.
MOST_RECORDS = 12_000
HORIZONS = (0.25, 0.5, 0.75)


def survset(name: str) -> SurvivalData:
    """Return a data set with round bounds, wide enough for all but 1 % of each column."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset(name)["df"]
    columns = []
    for column in frame.columns.difference(["pid", "event", "time"], sort=False):
        values = frame[column]
        if column.startswith("fac_"):
            levels = sorted(values.dropna().astype(str).unique())
            if len(levels) <= 30:
                columns += [np.where(values.astype(str) == one, 1.0, -1.0) for one in levels[1:]]
        else:
            low, high = _round_bounds(*np.nanquantile(values, [0.005, 0.995]))
            scaled = np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)
            columns.append(scaled.fillna(0.0).to_numpy())
    horizon = _round_bounds(0.0, float(frame.time.quantile(0.98)))[1]
    time = np.maximum(frame.time.astype(float), 1e-9 * horizon)
    y = np.array(list(zip(frame.event.astype(bool), time, strict=True)), dtype="?,f8")
    return SurvivalData(name, np.column_stack(columns), y, horizon)


def _round_bounds(low: float, high: float) -> tuple[float, float]:
    if high <= low:
        return low - 1.0, high + 1.0
    unit = 10.0 ** math.floor(math.log10(high - low)) / 2.0
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit


def quality(model: DPDiscreteTimeSurvival, data: SurvivalData, rows: np.ndarray) -> np.ndarray:
    """Return C, mean distance from Kaplan-Meier by fifths, Brier score, and that of Kaplan-Meier.

    At the quartiles of event times; and integrated to the ninth tenth of follow-up.
    """
    event, time = event_and_time(data.y[rows])
    event, time = event & (time <= data.max_time), np.minimum(time, data.max_time)
    X, risk = data.X[rows], model.predict(data.X[rows])
    curves = model.predict_survival_function(X, return_array=True)
    curves = np.concatenate([np.ones((len(X), 1)), curves], axis=1)
    grid = np.concatenate([[0.0], model.unique_times_])

    def predicted(at: float) -> np.ndarray:
        # Straight between the ends of intervals.
        place = int(np.clip(np.searchsorted(grid, at), 1, grid.size - 1))
        part = (at - grid[place - 1]) / (grid[place] - grid[place - 1])
        return curves[:, place - 1] ** (1.0 - part) * curves[:, place] ** part

    fifth = np.argsort(np.argsort(risk, kind="stable"), kind="stable") * 5 // risk.size
    distances = []
    for at in np.quantile(time[event], HORIZONS):
        survival = predicted(at)
        for k in range(5):
            seen = _step(*kaplan_meier_estimator(event[fifth == k], time[fifth == k]), at)
            distances.append(abs(survival[fifth == k].mean() - seen))
    whole, censoring = kaplan_meier_estimator(event, time), kaplan_meier_estimator(~event, time)
    before = np.maximum([_step(*censoring, t, side="left") for t in time], 0.05)
    scores = []
    for at in np.linspace(0.0, 0.999 * np.quantile(time, 0.9), 41)[1:]:
        later = max(_step(*censoring, at), 0.05)
        weight = np.where(time > at, 1.0 / later, np.where(event, 1.0 / before, 0.0))
        target = (time > at).astype(float)
        reference = _step(*whole, at)
        scores.append([np.mean(weight * (target - s) ** 2) for s in (predicted(at), reference)])
    own, of_kaplan_meier = np.mean(scores, axis=0)
    c_index = concordance_index(data.y[rows], risk)
    return np.array([c_index, np.mean(distances), own, of_kaplan_meier])


def _step(times: np.ndarray, values: np.ndarray, at: float, side: str = "right") -> float:
    place = int(np.searchsorted(times, at, side=side)) - 1
    return float(values[place]) if place >= 0 else 1.0


def fits(data: SurvivalData, epsilon: float, repetitions: int, share: float) -> np.ndarray:
    """Return the mean quality over random splits."""
    if len(data.y) > MOST_RECORDS:
        rows = np.random.default_rng(0).permutation(len(data.y))[:MOST_RECORDS]
        data = SurvivalData(data.name, data.X[rows], data.y[rows], data.max_time)
    found = []
    for repetition in range(repetitions):
        train, test = split(len(data.y), repetition)
        model = DPDiscreteTimeSurvival(
            epsilon, max_time=data.max_time, recalibration_share=share
        ).fit(data.X[train], data.y[train])
        found.append(quality(model, data, test))
    return np.mean(found, axis=0)


def further(names: tuple[str, ...]) -> Iterator[SurvivalData]:
    """Yield the data sets of SurvSet."""
    for name in names:
        with part(f"{name} of SurvSet"):
            yield survset(name)


def real(sets: list[SurvivalData], which: str, repetitions: int) -> list[tuple[object, ...]]:
    """Return rows of the summary, and write a table of all data sets."""
    details, rows = [], []
    exact = {data.name: fits(data, np.inf, min(repetitions, 2), 0.0) for data in sets}
    large = [data.name for data in sets if len(data.y) >= LARGE]
    for epsilon in (np.inf, *EPSILONS):
        for share in SHARES if np.isfinite(epsilon) else (0.0,):
            seen = {
                data.name: fits(data, epsilon, repetitions, share)
                if np.isfinite(epsilon)
                else exact[data.name]
                for data in sets
            }
            loss = np.mean([exact[name][0] - one[0] for name, one in seen.items()])
            mean = np.mean([seen[name] for name in large], axis=0)
            label = "without privacy" if np.isinf(epsilon) else f"{epsilon:g}"
            used = "" if np.isinf(epsilon) else f"{share:g}"
            rows.append((which, label, used, f"{loss:.3f}", *(f"{x:.3f}" for x in mean[1:])))
            details += [
                (name, label, used, *(f"{x:.3f}" for x in one)) for name, one in seen.items()
            ]
    name = which.replace(" ", "_")
    header = ("data", "ε", "share", "C", "distance", "Brier score", "of Kaplan-Meier")
    table(f"absolute_risk_{name}", header, details, f"{repetitions} random splits, 70/30.")
    return rows


def simulated(repetitions: int) -> None:
    """Table: survival by fifths of true risk."""
    rows = []
    for shape, d in ((1.0, 10), (0.5, 26)):
        rng = np.random.default_rng(2)
        X = rng.uniform(-1, 1, (7000, d))
        eta = X[:, :5] @ np.array([1.0, -1.0, 0.5, -0.5, 0.25]) * (1.0 if d == 10 else 1.5)
        time = (rng.exponential(size=7000) / (1.75 * np.exp(eta))) ** (1.0 / shape)
        y = np.array(list(zip(time <= 1, np.minimum(time, 1), strict=True)), dtype="?,f8")
        fifth = np.argsort(np.argsort(eta)) * 5 // eta.size

        def by_fifth(survival: np.ndarray, fifth: np.ndarray = fifth) -> list[float]:
            return [survival[fifth == k].mean() for k in reversed(range(5))]

        name = f"shape {shape:g}, {d} columns, {np.mean(time <= 1):.0%} events"
        truth = by_fifth(np.exp(-1.75 * np.exp(eta) * (67 / 200) ** shape))
        rows.append((name, "truth", "", *(f"{x:.2f}" for x in truth)))
        for epsilon in EPSILONS:
            for share in SHARES:
                found = []
                for _ in range(repetitions):
                    model = DPDiscreteTimeSurvival(
                        epsilon, max_time=1.0, recalibration_share=share
                    ).fit(X, y)
                    found.append(
                        by_fifth(model.predict_survival_function(X, return_array=True)[:, 66])
                    )
                values = (f"{x:.2f}" for x in np.mean(found, axis=0))
                rows.append((name, f"{epsilon:g}", f"{share:g}", *values))
    header = ("simulated, n = 7,000", "ε", "share", *(f"fifth {k}" for k in range(1, 6)))
    table(
        "absolute_risk_simulated",
        header,
        rows,
        "Survival at a third of the horizon by fifths of true risk, highest first; "
        f"{repetitions} fits.",
    )


def main() -> None:
    """Tables of real data sets, one by one and in sum, and of simulated ones."""
    args = arguments(__doc__ or "", repetitions=number(4, quick=1))
    folder: Path | None = args.data_dir
    rows = real([*survival_sets(folder), *further(FOUND_ON)], "found on", args.repetitions)
    if apart := list(further(KEPT_APART)):
        rows += real(apart, "kept apart", args.repetitions)
    header = ("data sets", "ε", "share", "loss in C", "distance", "Brier score", "of Kaplan-Meier")
    table(
        "absolute_risk",
        header,
        rows,
        "Loss in C against the fit without privacy, mean over all sets; distance of predicted "
        "survival from Kaplan-Meier, by fifths of predicted risk at three times, and integrated "
        f"Brier scores, means over sets of {LARGE:,} records or more. Share: recalibration_share.",
    )
    simulated(args.repetitions)


if __name__ == "__main__":
    run(main)
