"""Forecasts of accuracy from public numbers, beside what private fits lost on real data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import Survival, split
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, panel, sheet
from benchmarks.studies.models import Data, estimator, ranking, real
from skdpsurv import forecast_accuracy

EPSILONS = (0.3, 1.0, 3.0)
#: Sets that the shapes of simulated columns were found on, those that led to one change of them,
#: and those that were looked at after the last.
VIEWS = dict.fromkeys(("flchain", "GBSG2", "unemployment", "infarction", "readmission"), "in view")
VIEWS |= dict.fromkeys(("third births", "child mortality", "WHAS500", "Rossi"), "set aside")
VIEWS |= dict.fromkeys(("heart disease", "diabetes", "GUSTO-I"), "set aside")
VIEWS |= dict.fromkeys(("AIDS", "veterans", "hdfail"), "unseen")
QUICK = ("GBSG2", "heart disease")
FORECAST, MEASURED = "forecast", "measured"
#: Simulated studies of a forecast, and splits of the records.
STUDIES = 40
#: Smaller losses, forecast and measured, are not told from chance.
LEAST = 0.005
#: Records times epsilon, and numbers of records.
PRODUCTS, SIZES = (1000, 5000), (5000, 20_000, 80_000)
COLOURS = {"in view": "#56B4E9", "set aside": "#D55E00", "unseen": "#000000"}
MARKERS = dict(zip(EPSILONS, "s^o", strict=True))


def known(data: Data) -> dict[str, float]:
    """Return what somebody who plans the study would say of it: here, what is true."""
    if not isinstance(data, Survival):
        return {"event_rate": float(np.mean(data.y))}
    stayed = data.time[~data.event] >= data.max_time
    return {"event_rate": float(data.event.mean()), "censoring": float(np.mean(~stayed))}


@cache
def exact(setting: Setting, name: str, repetition: int) -> float:
    """Return C or AUC without privacy on the records left out; nearly maximum likelihood."""
    data = real(setting, name)
    train, test = split(len(data.y), repetition)
    model = estimator(data, epsilon=math.inf)
    if not isinstance(data, Survival):
        model.set_params(alpha=1e-6)
    return ranking(model.fit(data.X[train], data.y[train]), data, test)


@cache
def told(setting: Setting, name: str) -> dict[str, Any]:
    """Return what a forecast for a regression is told."""
    data, studies = real(setting, name), setting.of(STUDIES, 2)
    concordance = float(np.mean([exact(setting, name, r) for r in range(studies)]))
    return {
        **known(data),
        "n_columns": data.X.shape[1],
        "concordance": min(max(concordance, 0.5), 0.99),
        "n_repeats": studies,
        "random_state": 0,
    }


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(VIEWS, QUICK):
        for what in (FORECAST, MEASURED):
            yield {"data": name, "what": what}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return losses: forecast, with the middle 80 %, or of one split into 70 and 30 %."""
    name = case["data"]
    data = real(setting, name)
    train, test = split(len(data.y), repetition)
    if case["what"] == FORECAST:
        asked = told(setting, name)
        found = forecast_accuracy(estimator(data), train.size, epsilons=EPSILONS, **asked).table
        about = {"n": train.size, "columns": data.X.shape[1]}
        about |= {key: asked[key] for key in ("event_rate", "concordance")}
        return [
            {"epsilon": e, **about, **found.loc[e, ["loss", "loss_low", "loss_high"]]}
            for e in EPSILONS
        ]
    rows = []
    for epsilon in EPSILONS:
        model = estimator(data, epsilon=epsilon, random_state=seed(name, epsilon, repetition))
        private = ranking(model.fit(data.X[train], data.y[train]), data, test)
        rows.append({"epsilon": epsilon, "loss": exact(setting, name, repetition) - private})
    return rows


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each data set and epsilon, in the order of `VIEWS`."""
    said = rows[rows.what == FORECAST].set_index(["data", "epsilon"])
    lost = rows[rows.what == MEASURED].groupby(["data", "epsilon"]).loss
    said = said.assign(measured=lost.mean(), low=lost.quantile(0.1), high=lost.quantile(0.9))
    order = [(name, e) for name in VIEWS for e in EPSILONS if (name, e) in said.dropna().index]
    return said.loc[order].assign(group=[VIEWS[name] for name, _ in order])


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = summary(rows.drop(columns="repetition"))
    cells = []
    for name, lines in found.groupby(level="data", sort=False):
        first = lines.iloc[0]
        row = [name, first.group, f"{first.n:,.0f}", f"{first.columns:.0f}"]
        row += [f"{first.event_rate:.0%}", f"{first.concordance:.2f}"]
        for _, line in lines.iterrows():
            row.append(ranged(line.loss, line.loss_low, line.loss_high))
            row.append(ranged(line.measured, line.low, line.high))
        cells.append(row)
    pages.table(
        "forecast",
        (
            *("data", "shapes found", "fitted to", "columns", "events", "C or AUC"),
            *(f"ε = {e:g}, {what}" for e in EPSILONS for what in (FORECAST, MEASURED)),
        ),
        cells,
        _judgement(found, pages),
        "Loss in C-index or AUC against a fit without privacy: mean, and the middle 80 %. Forecast "
        f"over {STUDIES} simulated studies; measured on held-out records of "
        f"{rows[rows.what == MEASURED].repetition.max() + 1} random splits 70/30. The forecast was "
        "told the numbers of records and columns, the shares of events and of censored records, "
        "and the C-index or AUC without privacy. In view: shapes of simulated columns were found "
        "on it; set aside: led to one change of them; unseen: to none.",
    )
    _figure(found, pages)


def _judgement(found: pd.DataFrame, pages: Pages) -> str:
    clear = found[np.maximum(found.measured, found.loss) >= LEAST]
    ratio = clear.measured / clear.loss
    apart = ratio[clear.group != "in view"]
    inside = ((apart >= 2.0 / 3.0) & (apart <= 2.0)).sum()
    above = clear[clear.measured > clear.loss_high].index
    pages.fact("forecast_two_thirds_to_twice", f"{inside} of {apart.size}")
    pages.fact("forecast_worst_ratio", f"{ratio.max():.1f}")
    where = f" ({', '.join(map(place, above))})" if len(above) else ""
    return (
        "On sets that no shape was found on, the measured loss is two thirds to twice the "
        f"forecast in {inside} of {apart.size} pairs of set and ε where either is {LEAST:g} or "
        f"more, and {apart.median():.2f} times the forecast in the median. Of all such pairs, the "
        f"forecast is most pessimistic for {place(ratio.idxmin())} ({ratio.min():.1f} times) and "
        f"most optimistic for {place(ratio.idxmax())} ({ratio.max():.1f} times); the mean "
        f"measured loss is above the forecast's middle 80 % in {len(above)} of {len(clear)}{where}."
    )


def place(key: Hashable) -> str:
    """Say which data set and epsilon."""
    name, epsilon = key  # type: ignore[misc]
    return f"{name} at ε = {epsilon:g}"


def ranged(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} ({low:.3f} to {high:.3f})".replace("-0.000", "0.000")


def _figure(found: pd.DataFrame, pages: Pages) -> None:
    """Draw forecast losses over measured ones."""
    drawn = sheet(6.6, 5.2)
    ax = drawn.subplots()
    least, most = 3e-4, 0.4
    for (epsilon, group), lines in found.groupby([found.index.get_level_values(1), "group"]):
        ax.loglog(
            np.maximum(lines.measured, least),
            np.maximum(lines.loss, least),
            MARKERS[epsilon],
            color=COLOURS[group],
            label=f"ε = {epsilon:g}, {group}",
            markersize=7,
        )
    ax.plot([least, most], [least, most], color="0.35", linewidth=1.0)
    ax.set(xlim=(0.8 * least, most), ylim=(0.8 * least, most))
    ax.set_xlabel("Mean loss in C-index or AUC on real data")
    ax.set_ylabel("Mean loss that was forecast")
    panel(ax)
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    pages.figure("forecast", drawn)


RANKING = Experiment(
    cases,
    measure,
    report,
    repetitions=lambda case: 1 if case["what"] == FORECAST else STUDIES,
    quick=1,
)


def product_cases(setting: Setting) -> Iterator[Case]:
    for kind in ("survival", "logistic"):
        for product in PRODUCTS:
            for n in setting.of(SIZES, SIZES[:2]):
                yield {"kind": kind, "product": product, "n": n}


def measure_product(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the loss that is forecast, and its middle 80 %."""
    found = forecast_accuracy(
        case["kind"],
        case["n"],
        epsilons=[case["product"] / case["n"]],
        n_repeats=setting.of(STUDIES, 2),
        random_state=0,
    ).table.iloc[0]
    return {name: float(found[name]) for name in ("loss", "loss_low", "loss_high")}


def report_products(rows: pd.DataFrame, pages: Pages) -> None:
    sizes, names = sorted(rows.n.unique()), {"survival": "C-index", "logistic": "AUC"}
    means = rows.pivot(index=["kind", "product"], columns="n", values="loss")
    spread = (means.max(axis=1) / means.min(axis=1)).max()
    cells = []
    for (kind, product), lines in rows.groupby(["kind", "product"], sort=False):
        here = [
            ranged(*line)
            for line in lines.sort_values("n")[["loss", "loss_low", "loss_high"]].values
        ]
        cells.append((names[kind], f"{product:,}", *here))
    pages.table(
        "forecast_products",
        ("loss in", "n ε", *(f"n = {n:,}" for n in sizes)),
        cells,
        "The loss depends nearly on the product of n and ε alone: forecasts for the same product "
        f"differ by a factor of {spread:.1f} at most.",
        "Loss that is forecast with eight columns, three in ten with an event, and a C-index or "
        f"AUC of 0.7: mean, and the middle 80 % of {STUDIES} simulated studies.",
    )


PRODUCT = Experiment(product_cases, measure_product, report_products)
