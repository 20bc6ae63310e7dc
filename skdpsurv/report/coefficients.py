"""Coefficients of regressions: per unit of the columns, as ratios, with intervals if there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.plotting.coefficient_plot import plot_coefficients
from skdpsurv.preprocessing.feature import Feature
from skdpsurv.report.blocks import Block, Figure, Note, Table
from skdpsurv.report.figures import svg
from skdpsurv.report.text import distinct, short
from skdpsurv.types import FloatArray

__all__ = ["cautions", "coefficients"]

#: More rows than this are no figure, and no table that somebody reads.
MOST_DRAWN, MOST_ROWS = 30, 300
#: Of an interval, in logarithms of ratios: beyond, an arrow says as much.
LONGEST = 8.0
ENDS = ("coef lower 95%", "coef upper 95%")
UNBENT = (
    "These are estimates with 95 % intervals, which allow for sampling and for the noise. What "
    "the mechanism does to coefficients on purpose (penalties, caps) is undone in them. Of several "
    "intervals some may miss the truth. An interval without end says that noise hides the answer."
)
AT_CAP = (
    "They estimate the coefficients that minimise the expected loss at the cap H = {cap:.4g} that "
    "was used (max_cumulative_hazard). Where effects change over time they depend on H."
)
AS_RELEASED = (
    "No standard errors were released with these coefficients, so there are no intervals. Noise "
    "and a penalty may have moved each of them, and this release does not say how far. Do not "
    "conclude from one of them that a column matters or does not."
)


@dataclass(frozen=True)
class Ratio:
    """What exp(coefficient) is called, and how it is read; no name where it is no ratio."""

    name: str
    note: str


def cautions(model: Any) -> list[str]:
    """Return how coefficients of a model with a release are to be read, and how they are not."""
    known = getattr(model, "inference_", None) is not None
    ratio = _ratio(model, known)
    named = [f"exp(coef) is {_article(ratio.name)}."] if ratio.name else []
    return [UNBENT if known else AS_RELEASED, " ".join([*named, ratio.note])]


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name.lower()}"


def coefficients(release: Any, model: Any) -> list[Block]:
    """Return a table and a forest figure; nothing of a model without coefficients of columns."""
    coef = getattr(model, "coef_", None)
    features = release.features if coef is not None else ()
    table = np.atleast_2d(np.empty((0, 0)) if coef is None else coef)
    if not features or table.shape[1] != len(features):
        return []
    known = getattr(model, "inference_", None) is not None
    ratio = _ratio(model, known)
    names = distinct(map(_label, features))
    blocks: list[Block] = [Note(UNBENT if known else AS_RELEASED), Note(ratio.note)]
    if (cap := getattr(model, "max_cumulative_hazard_", None)) is not None:
        blocks.append(Note(AT_CAP.format(cap=cap)))
    several = len(table) > 1
    for label, row in zip(model.classes_.tolist() if several else [""], table, strict=True):
        frame = _estimates(model, features, row, known)
        what = f"Coefficients of the class {label}" if several else "Coefficients"
        blocks += _table(frame, names, features, ratio, known, what)
    if not several and len(features) <= MOST_DRAWN:
        blocks += _forest(frame, features, ratio, known)
    return blocks


def _ratio(model: Any, known: bool) -> Ratio:
    link = model.release_.parameters.get("link")
    unclear = "They are read as the model’s documentation says."
    match model.release_.estimator:
        case "DPDiscreteTimeSurvival" | "PublishedDiscreteTimeSurvival" if link == "cloglog":
            return Ratio("Hazard ratio", "The model is one of proportional hazards, as Cox’s is.")
        case "DPDiscreteTimeSurvival" | "PublishedDiscreteTimeSurvival" if link == "logit":
            return Ratio(
                "Odds ratio",
                "Ratios are those of the odds to have the event within one interval of time, for "
                "whoever has come so far. Where intervals are short they are close to hazard "
                "ratios.",
            )
        case "DPDiscreteTimeSurvival" | "PublishedDiscreteTimeSurvival":
            return Ratio(
                "",
                "The link is probit: coefficients move the quantile of a normal law, and "
                "are no logarithms of ratios. Positive ones raise the risk.",
            )
        case "PublishedLogisticRegression":
            return Ratio("Odds ratio", "Ratios are those of the odds of the class.")
        case "DPLogisticRegression" if known or model.max_residual_ == 1.0:
            return Ratio("Odds ratio", "Ratios are those of the odds of the class.")
        case "DPLogisticRegression":
            return Ratio(
                "",
                "The pull of one record was capped in the fit. So these coefficients are not "
                "logarithms of odds ratios; their signs are read as usual.",
            )
    return Ratio("", unclear)


def _estimates(model: Any, features: Any, row: FloatArray, known: bool) -> pd.DataFrame:
    """Return estimates and ends of intervals, per unit of a column where there is one."""
    if known:
        return model.summary[["coef", *ENDS]].reset_index(drop=True)
    steps = np.array([1.0 if f.per_unit is None else f.per_unit for f in features])
    columns = {"coef": row * steps, **dict.fromkeys(ENDS, np.full(row.size, np.nan))}
    return pd.DataFrame(columns)


def _table(
    frame: pd.DataFrame,
    names: list[str],
    features: Any,
    ratio: Ratio,
    known: bool,
    what: str,
) -> list[Block]:
    head = ["Column", "For a change of", "Coefficient"]
    head += [f"{ratio.name}"] if ratio.name else []
    head += ["95 % interval"] if known else []
    rows = []
    for name, feature, (point, lower, upper) in zip(
        names, features, frame.to_numpy().tolist(), strict=True
    ):
        cells = [name, _change(feature), short(point)]
        if ratio.name:
            cells.append(short(_exp(point)))
            lower, upper = _exp(lower), _exp(upper)
        if known:
            cells.append(f"{short(lower)} to {short(upper)}")
        rows.append(tuple(cells))
    of = f", interval of the {ratio.name.lower()}" if ratio.name and known else ""
    blocks: list[Block] = [Table(f"{what}{of}", tuple(head), rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        blocks.append(Note(f"{len(rows) - MOST_ROWS:,} more are in the release."))
    return blocks


def _forest(frame: pd.DataFrame, features: Any, ratio: Ratio, known: bool) -> list[Block]:
    """Return a figure in which columns can be compared: each for all of its public range."""
    spans = np.array([_span(feature) for feature in features])
    over = frame.mul(spans, axis=0)
    over.index = pd.Index(distinct(map(_drawn_label, features)))
    drawn = partial(plot_coefficients, over, ratios=bool(ratio.name), limits=_limits(over, ratio))
    called = ratio.name or "Coefficient"

    def draw(ax: Any) -> None:
        drawn(ax=ax)
        low, high = ax.get_xlim()
        if ratio.name and high > 50.0 * low:  # ticks at 1, 2 and 5 would be too many
            ax.locator_params(axis="x", numticks=8, subs=(1.0,))
        ax.set_xlabel(f"{called}, {'95 % interval' if known else 'as released'}")

    caption = (
        f"{called} of each column: of a number from its lowest to its highest public value, where "
        "that is known, of a category or a condition from no to yes."
    )
    height = 1.1 + 0.34 * len(spans)
    found = svg(draw, "coefficients", height, caption)
    return [] if found is None else [Figure(found, caption)]


def _limits(table: pd.DataFrame, ratio: Ratio) -> tuple[float, float]:
    """Return ends that hold all points, no effect, and intervals as far as they say something."""
    points, ends = table["coef"].to_numpy(), table[list(ENDS)].to_numpy().ravel()
    if ratio.name:
        ends = np.clip(ends, -LONGEST, LONGEST)
    held = np.concatenate([points, ends, [0.0]])
    held = held[np.isfinite(held)]
    room = 0.05 * float(np.ptp(held)) or 1.0
    low, high = float(held.min()) - room, float(held.max()) + room
    return (_exp(low), _exp(high)) if ratio.name else (low, high)


def _exp(number: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(number))


def _label(feature: Feature) -> str:
    """Name what a coefficient belongs to."""
    if feature.column is None:
        return feature.name
    if feature.expression.kind == "missing" or feature.level == "missing":
        return f"{feature.column}: missing"
    if feature.level is None:
        return feature.column
    return f"{feature.column}: {'yes' if feature.level is True else feature.level}"


def _change(feature: Feature) -> str:
    if feature.level is not None or feature.expression.kind == "missing":
        return "no to yes"
    if feature.per_unit is None:
        return "+1 of the feature"
    return f"+1 {feature.unit}" if feature.unit else "+1"


def _span(feature: Feature) -> float:
    """Return how many units of a column its public range is; 1 where that is not known."""
    wide = feature.high - feature.low
    if feature.level is not None or not feature.per_unit or not np.isfinite(wide):
        return 1.0
    return float(wide / feature.per_unit)


def _drawn_label(feature: Feature) -> str:
    name, span = _label(feature), _span(feature)
    name = name if len(name) <= 24 else f"{name[:23]}…"
    if span == 1.0:
        return name
    unit = f" {feature.unit}" if feature.unit and len(feature.unit) <= 12 else ""
    return f"{name}, +{short(span, 3)}{unit}"
