"""Forecast widths of intervals, of ratios and of curves, beside those of private fits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from sklearn.linear_model import LogisticRegression

from benchmarks.data import SURVIVAL, Survival, survival
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.forecast import FORECAST, MEASURED, STUDIES, VIEWS, known, place, told
from benchmarks.studies.models import estimator, real
from skdpsurv import DPKaplanMeierFitter, DPWeibullFitter, forecast_accuracy

EPSILONS, CURVE_EPSILONS = (1.0, 3.0), (0.1, 1.0)
SHARE = 0.2
CURVES = {"Kaplan-Meier": DPKaplanMeierFitter, "Weibull": DPWeibullFitter}
SETS = tuple(name for name in VIEWS if name in SURVIVAL)
#: A Cox regression of hdfail does not converge.
WITH_RATIOS = tuple(name for name in VIEWS if name != "hdfail")


@cache
def exact_errors(setting: Setting, name: str) -> np.ndarray:
    """Return standard errors of Cox regression, or logistic regression, without privacy."""
    data = real(setting, name)
    if isinstance(data, Survival):
        time = np.maximum(data.time, 1e-6 * data.max_time)
        frame = pd.DataFrame(data.X).add_prefix("x").assign(event=data.event, time=time)
        return CoxPHFitter().fit(frame, "time", "event").standard_errors_.to_numpy()
    model = LogisticRegression(C=1e6, max_iter=10_000).fit(data.X, data.y)
    p = model.predict_proba(data.X)[:, 1]
    rows = np.column_stack([np.ones(len(data.X)), data.X])
    return np.sqrt(np.diag(np.linalg.inv((rows.T * (p * (1.0 - p))) @ rows)))[1:]


def ratio_cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(WITH_RATIOS, ("GBSG2", "heart disease")):
        for what in (FORECAST, MEASURED):
            yield {"data": name, "what": what}


def measure_ratios(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the share of intervals that are finite, and the median width beside no privacy."""
    name = case["data"]
    data = real(setting, name)
    if case["what"] == FORECAST:
        model, asked = estimator(data, inference_share=SHARE), told(setting, name)
        found = forecast_accuracy(model, len(data.y), epsilons=EPSILONS, **asked).table
        return [
            {"epsilon": e, **found.loc[e, ["finite_intervals", "interval_width"]].astype(float)}
            for e in EPSILONS
        ]
    exact, rows = exact_errors(setting, name), []
    for epsilon in EPSILONS:
        key = seed(name, epsilon, repetition)
        fit = estimator(data, epsilon=epsilon, inference_share=SHARE, random_state=key)
        fit.fit(data.X, data.y)
        errors = np.full(exact.size, np.inf)
        if fit.inference_ is not None:
            errors = fit.inference_.standard_errors()[-exact.size :]
        finite, width = np.isfinite(errors).mean(), np.median(errors / exact)
        rows.append({"epsilon": epsilon, "finite_intervals": finite, "interval_width": width})
    return rows


def report_ratios(rows: pd.DataFrame, pages: Pages) -> None:
    groups = rows.groupby(["data", "epsilon", "what"])
    finite, width = groups.finite_intervals.mean(), groups.interval_width.median()
    names = [name for name in VIEWS if name in set(rows.data)]
    both = [(name, e) for name in names for e in EPSILONS]
    both = [key for key in both if (*key, FORECAST) in finite and (*key, MEASURED) in finite]
    off = pd.Series({key: finite[(*key, FORECAST)] - finite[(*key, MEASURED)] for key in both})
    few = [(name, e) for name, e in both if np.isfinite(width[name, e].to_numpy()).all()]
    wide = pd.Series({key: width[(*key, MEASURED)] / width[(*key, FORECAST)] for key in few})
    said = (
        f"The forecast share of finite intervals is within .15 of the measured one in "
        f"{(off.abs() <= 0.15).sum()} of {len(off)} pairs of set and ε, too large by more in "
        f"{(off > 0.15).sum()}{_few(off[off > 0.15])} and too small in "
        f"{(off < -0.15).sum()}{_few(off[off < -0.15])}."
    )
    if few:
        said += (
            f" Where both medians are finite, measured widths are {wide.median():.2f} times the "
            f"forecast in the median, {wide.min():.2f} times at the least ({place(wide.idxmin())}) "
            f"and {wide.max():.1f} at the most ({place(wide.idxmax())})."
        )
    parts = [(e, part) for e in EPSILONS for part in ("finite", "width")]
    columns = [(*part, what) for part in parts for what in (FORECAST, MEASURED)]

    def shown(name: str, epsilon: float, part: str, what: str) -> str:
        key = (name, epsilon, what)
        return (
            f"{finite.get(key, np.nan):.0%}"
            if part == "finite"
            else f"{width.get(key, np.nan):.1f}"
        )

    pages.table(
        "forecast_intervals",
        ("data", "shapes found", *(f"ε = {e:g}, {part}, {what}" for e, part, what in columns)),
        [(name, VIEWS[name], *(shown(name, *column) for column in columns)) for name in names],
        said,
        f"Intervals of log hazard and odds ratios with `inference_share={SHARE:g}`: the share that "
        "is finite, and the median of their widths relative to those without privacy (Cox "
        f"regression, logistic regression), infinite ones included. Forecast over {STUDIES} "
        f"simulated studies; measured: {rows.repetition.max() + 1} fits to all records.",
    )


def _few(off: pd.Series) -> str:
    return f" ({', '.join(dict.fromkeys(name for name, _ in off.index))})" if len(off) else ""


RATIOS = Experiment(
    ratio_cases,
    measure_ratios,
    report_ratios,
    repetitions=lambda case: 1 if case["what"] == FORECAST else 20,
    quick=1,
)


def curve_cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(SETS, ("GBSG2",)):
        for kind in CURVES:
            for what in (FORECAST, MEASURED):
                yield {"data": name, "kind": kind, "what": what}


def measure_curve(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the width of the 95 % interval of survival half-way to the horizon."""
    data, make = survival(setting, case["data"]), CURVES[case["kind"]]
    if case["what"] == FORECAST:
        asked = {**known(data), "n_repeats": setting.of(20, 2), "random_state": 0}
        model = make(max_time=data.max_time)
        found = forecast_accuracy(model, len(data.y), epsilons=CURVE_EPSILONS, **asked).table
        return [{"epsilon": e, "width": found.loc[e, "width_middle"]} for e in CURVE_EPSILONS]
    rows = []
    for epsilon in CURVE_EPSILONS:
        key = seed(case["data"], case["kind"], epsilon, repetition)
        curve = make(epsilon, max_time=data.max_time, random_state=key).fit(data.time, data.event)
        band = curve.survival_band([data.max_time / 2.0], n_resamples=100)
        rows.append({"epsilon": epsilon, "width": float((band["upper"] - band["lower"]).iloc[0])})
    return rows


def report_curves(rows: pd.DataFrame, pages: Pages) -> None:
    width = rows.groupby(["data", "kind", "epsilon", "what"]).width.mean().unstack()
    ratio = width[MEASURED] / width[FORECAST]
    said = []
    for kind in CURVES:
        here = ratio.xs(kind, level="kind")
        wrong = here[(here > 1.5) | (here < 1.0 / 1.5)]
        text = f"{kind} intervals are {here.median():.2f} times as wide as forecast in the median"
        sets = ", ".join(dict.fromkeys(wrong.index.get_level_values("data")))
        if sets:
            text += (
                ", and less than two thirds or more than one and a half times as wide in "
                f"{len(wrong)} of {len(here)} pairs of set and ε ({sets})"
            )
        said.append(text)
    columns = [(kind, e, what) for kind in CURVES for e in CURVE_EPSILONS for what in width.columns]
    pages.table(
        "forecast_curves",
        ("data", *(f"{kind}, ε = {e:g}, {what}" for kind, e, what in columns)),
        [
            (name, *(f"{width.loc[(name, kind, e), what]:.3f}" for kind, e, what in columns))
            for name in SETS
            if name in set(rows.data)
        ],
        f"{'; '.join(said)}.",
        "Width of the 95 % interval of survival half-way to the horizon; the forecast took the "
        f"hazard to be flat. Measured: means over {rows.repetition.max() + 1} fits to all records.",
    )


BANDS = Experiment(
    curve_cases,
    measure_curve,
    report_curves,
    repetitions=lambda case: 1 if case["what"] == FORECAST else 10,
    quick=1,
)
