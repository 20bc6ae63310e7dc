"""Forecasts from public numbers, beside what private fits lost on real data.

python -m benchmarks.forecast --data-dir FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from lifelines import CoxPHFitter
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks._common import SurvivalData, save, sheet, split, table
from benchmarks._forecast_data import IN_VIEW, UNSEEN, LabelledData, as_frame, facts, real_sets
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    forecast_accuracy,
)
from skdpsurv.data.target import event_and_time

EPSILONS = (0.3, 1.0, 3.0)
INFERENCE_EPSILONS = (1.0, 3.0)
CURVE_EPSILONS = (0.1, 1.0)
ENDS = (0.1, 0.9)
PRODUCTS, SIZES = (1000, 5000), (5000, 20_000, setting(80_000, 10_000))
COLOURS = {"in view": "#56B4E9", "set aside": "#D55E00", "unseen": "#000000"}
N_STUDIES = setting(40, 2)

Data = SurvivalData | LabelledData


def estimator(data: Data, **options: Any) -> Any:
    """Return what is fitted: with default settings, as the guides have them."""
    if isinstance(data, SurvivalData):
        return DPDiscreteTimeSurvival(max_time=data.max_time, **options)
    norm = math.sqrt(data.X.shape[1]) / 2.0
    return DPLogisticRegression(classes=[0, 1], data_norm=norm, **options)


def ranked(data: Data, repetitions: int) -> dict[float, np.ndarray]:
    """Return C, or AUC, on held-out records by epsilon, for each split."""
    found: dict[float, list[float]] = {epsilon: [] for epsilon in (*EPSILONS, math.inf)}
    for repetition in range(repetitions):
        train, test = split(len(data.y), repetition)
        for epsilon, scores in found.items():
            model = estimator(data, epsilon=epsilon)
            if math.isinf(epsilon) and isinstance(data, LabelledData):
                model.set_params(alpha=1e-6)  # maximum likelihood, nearly
            model.fit(data.X[train], data.y[train])
            if isinstance(data, SurvivalData):
                scores.append(model.score(data.X[test], data.y[test]))
            else:
                predicted = model.decision_function(data.X[test])
                scores.append(float(roc_auc_score(data.y[test], predicted)))
    return {epsilon: np.array(scores) for epsilon, scores in found.items()}


def asked(data: Data, concordance: float | None, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """Return what a forecast is told."""
    known = facts(data)
    told: dict[str, Any] = {"event_rate": known.event_rate, "epsilons": epsilons}
    told |= {"n_repeats": N_STUDIES, "random_state": 0}
    if isinstance(data, SurvivalData):
        told["censoring"] = known.censoring
    if concordance is not None:
        told |= {"n_columns": known.n_columns, "concordance": concordance}
    return told


def losses(data: Data, repetitions: int) -> tuple[list[object], list[tuple[float, float]]]:
    """Return a row of the table, and forecast and measured losses by epsilon."""
    scores = ranked(data, repetitions)
    without = scores[math.inf]
    n_train = split(len(data.y), 0)[0].size
    forecast = forecast_accuracy(
        estimator(data), n_train, **asked(data, float(without.mean()), EPSILONS)
    ).table
    known = facts(data)
    row: list[object] = [data.name, view(data.name), f"{n_train:,}", known.n_columns]
    row += [f"{known.event_rate:.0%}", f"{without.mean():.2f}"]
    points = []
    for epsilon in EPSILONS:
        said, lost = forecast.loc[epsilon], without - scores[epsilon]
        row.append(ranged(said["loss"], said["loss_low"], said["loss_high"]))
        row.append(ranged(lost.mean(), *np.quantile(lost, ENDS)))
        points.append((float(said["loss"]), float(lost.mean())))
    return row, points


def ranged(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} ({low:.3f} to {high:.3f})".replace("-0.000", "0.000")


def view(name: str) -> str:
    return "in view" if name in IN_VIEW else "unseen" if name in UNSEEN else "set aside"


def exact_errors(data: Data) -> np.ndarray:
    """Return standard errors without privacy."""
    if isinstance(data, SurvivalData):
        event, time = event_and_time(data.y)
        frame = as_frame(data.X).assign(event=event & (time <= data.max_time))
        frame["time"] = np.clip(time, 1e-6 * data.max_time, data.max_time)
        return CoxPHFitter().fit(frame, "time", "event").standard_errors_.to_numpy()
    model = LogisticRegression(C=1e6, max_iter=10_000).fit(data.X, data.y)
    p = model.predict_proba(data.X)[:, 1]
    rows = np.column_stack([np.ones(len(data.X)), data.X])
    information = (rows.T * (p * (1.0 - p))) @ rows
    return np.sqrt(np.diag(np.linalg.inv(information)))[1:]


def inference_row(data: Data, concordance: float, repetitions: int) -> list[object]:
    """Return forecast and measured intervals of coefficients."""
    exact, model = exact_errors(data), estimator(data, inference_share=0.2)
    told = asked(data, concordance, INFERENCE_EPSILONS)
    forecast = forecast_accuracy(model, len(data.y), **told).table
    row: list[object] = [data.name, view(data.name)]
    for epsilon in INFERENCE_EPSILONS:
        finite, widths = [], []
        for _ in range(repetitions):
            fit = estimator(data, inference_share=0.2, epsilon=epsilon).fit(data.X, data.y)
            errors = np.full(exact.size, np.inf)
            if fit.inference_ is not None:
                errors = fit.inference_.standard_errors()[-exact.size :]
            finite.append(np.isfinite(errors).mean())
            widths.append(np.median(errors / exact))
        said = forecast.loc[epsilon]
        row += [f"{said['finite_intervals']:.0%}", f"{np.mean(finite):.0%}"]
        row += [f"{said['interval_width']:.1f}", f"{np.median(widths):.1f}"]
    return row


def curve_row(data: SurvivalData, repetitions: int) -> list[object]:
    """Return forecast and measured widths of intervals of curves, half-way."""
    event, time = event_and_time(data.y)
    row: list[object] = [data.name]
    for kind in (DPKaplanMeierFitter, DPWeibullFitter):
        told = asked(data, None, CURVE_EPSILONS)
        forecast = forecast_accuracy(kind(max_time=data.max_time), len(data.y), **told).table
        for epsilon in CURVE_EPSILONS:
            widths = []
            for _ in range(repetitions):
                curve = kind(epsilon, max_time=data.max_time).fit(time, event)
                band = curve.survival_band([data.max_time / 2.0], n_resamples=100)
                widths.append(float((band["upper"] - band["lower"]).iloc[0]))
            row += [f"{forecast.loc[epsilon, 'width_middle']:.3f}", f"{np.mean(widths):.3f}"]
    return row


def product_rows() -> Iterator[list[object]]:
    """Yield forecasts for equal products of the number of records and epsilon."""
    for kind, label in (("survival", "C-index"), ("logistic", "AUC")):
        for product in PRODUCTS:
            cells = []
            for n in SIZES:
                told = {"epsilons": [product / n], "n_repeats": N_STUDIES, "random_state": 0}
                row = forecast_accuracy(kind, n, **told).table.iloc[0]
                cells.append(ranged(row["loss"], row["loss_low"], row["loss_high"]))
            yield [label, f"{product:,}", *cells]


@part("figure")
def figure(points: dict[str, list[tuple[float, float]]]) -> None:
    """Draw forecast losses against measured ones."""
    drawn = sheet(6.6, 5.2)
    ax = drawn.subplots()
    least, most = 3e-4, 0.3
    for epsilon, marker in zip(range(len(EPSILONS)), "s^o", strict=True):
        for where, colour in COLOURS.items():
            chosen = [p[epsilon] for name, p in points.items() if view(name) == where]
            if chosen:
                said, lost = np.maximum(np.array(chosen), least).T
                label = f"ε = {EPSILONS[epsilon]:g}, {where}"
                ax.plot(lost, said, marker, color=colour, label=label, markersize=7)
    ax.plot([least, most], [least, most], color="0.35", linewidth=1.0)
    ax.set(xscale="log", yscale="log", xlim=(0.8 * least, most), ylim=(0.8 * least, most))
    ax.set_xlabel("Mean loss in C-index or AUC on real data")
    ax.set_ylabel("Mean loss that was forecast")
    ax.grid(color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    save(drawn, "forecast")


def main() -> None:
    """Four tables and a figure."""
    args = arguments(__doc__ or "", repetitions=number(40, quick=2), fits=number(10, quick=1))
    rows, inference, curves, points = [], [], [], {}
    for data in real_sets(args.data_dir):
        row, points[data.name] = losses(data, args.repetitions)
        print(*row, sep=" | ", flush=True)
        rows.append(row)
        inference.append(inference_row(data, float(str(row[5])), args.fits))
        print(*inference[-1], sep=" | ", flush=True)
        if isinstance(data, SurvivalData):
            curves.append(curve_row(data, args.fits))
            print(*curves[-1], sep=" | ", flush=True)
    heads = [f"ε = {e:g}, {what}" for e in EPSILONS for what in ("forecast", "measured")]
    table(
        "forecast",
        ("data", "shapes found", "fitted to", "columns", "events", "C or AUC", *heads),
        sorted(rows, key=lambda row: str(row[1])),
        "Loss in C-index or AUC against a fit without privacy: mean, and the middle 80 %; forecast "
        f"over {N_STUDIES} simulated studies, measured on held-out records of {args.repetitions} "
        "random splits 70/30, a private fit each. The forecast was told the number of records and "
        "columns, the shares of events and of censored records, and the C-index or AUC without "
        "privacy.",
    )
    heads = [
        f"ε = {e:g}, {what}, {how}"
        for e in INFERENCE_EPSILONS
        for what in ("finite", "width")
        for how in ("forecast", "measured")
    ]
    table(
        "forecast_intervals",
        ("data", "shapes found", *heads),
        sorted(inference, key=lambda row: str(row[1])),
        "Intervals of log hazard and odds ratios with `inference_share=0.2`: the share that is "
        "finite, and the median of their widths relative to those without privacy (Cox regression, "
        f"logistic regression), infinite ones included. Measured: {args.fits} fits to all records.",
    )
    heads = [
        f"{kind}, ε = {e:g}, {how}"
        for kind in ("Kaplan-Meier", "Weibull")
        for e in CURVE_EPSILONS
        for how in ("forecast", "measured")
    ]
    table(
        "forecast_curves",
        ("data", *heads),
        curves,
        "Width of the 95 % interval of survival half-way to the horizon; the forecast took the "
        f"hazard to be flat. Measured: means over {args.fits} fits to all records.",
    )
    products()
    figure(points)


def products() -> None:
    """Table: what is lost depends on the product of the number of records and epsilon."""
    table(
        "forecast_products",
        ("loss in", "n ε", *(f"n = {n:,}" for n in SIZES)),
        list(product_rows()),
        "Loss that is forecast with eight columns, three in ten with an event, and a C-index or "
        f"AUC of 0.7: mean, and the middle 80 % of {N_STUDIES} simulated studies.",
    )


if __name__ == "__main__":
    run(main)
