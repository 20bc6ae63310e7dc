"""Coefficients of regressions: per unit of the columns, as ratios, with intervals if there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data import PublicColumns
from skdpsurv.data.feature import Feature
from skdpsurv.plotting.coefficient_plot import plot_coefficients
from skdpsurv.plotting.effect_plot import plot_effect, plot_effect_over_time
from skdpsurv.plotting.style import cut
from skdpsurv.report.explain import column_of, level_of, outputs_of, ratios_of
from skdpsurv.report.figures import Figure, figures
from skdpsurv.report.numbers import Shown, ShownNumber, between
from skdpsurv.report.text import WORDS, Table, distinct, escape_hidden, short

#: Most coefficients in a figure, else there is none; and in a table, else it is cut.
MOST_DRAWN, MOST_ROWS = 30, 300
ENDS = ["coef lower 95%", "coef upper 95%"]


def cautions(model: Any) -> list[str]:
    """Return how coefficients of a model with a release are to be read, and how they are not."""
    ratio = _ratio(model)
    return [
        _kind(model),
        f"{ratio['says']} {ratio['note']}".strip(),
        *getattr(model, "_reading", list)(),
    ]


def _has_errors(model: Any) -> bool:
    return getattr(model, "inference_", None) is not None


def _kind(model: Any) -> str:
    return str(WORDS["coefficients"]["intervals" if _has_errors(model) else "released"])


def _ratio(model: Any) -> dict[str, str]:
    """Return the words about exp(coefficient)."""
    found: dict[str, dict[str, str]] = WORDS["ratios"]
    name = model._card.ratio.format(**model.release_.parameters)
    is_capped = getattr(model, "max_residual_", 1.0) != 1.0 and not _has_errors(model)
    ratio = found["capped" if name == "odds" and is_capped else name]
    if getattr(model, "_changes", None) is not None:
        return {**ratio, "note": WORDS["coefficients"]["changing"]}
    return ratio


def coefficients(release: Any, model: Any) -> dict[str, Any] | None:
    """Return tables and a forest plot, or None for a model without coefficients of columns."""
    coef = getattr(model, "coef_", None)
    if coef is None or not release.features or np.shape(coef)[-1] != len(release.features):
        return None
    features, rows, ratio = release.features, np.atleast_2d(coef), _ratio(model)
    intervals = _has_errors(model)
    what, labels = outputs_of(model) if len(rows) > 1 else ("", [None])
    tables, numbers, frames, tests = [], [], {}, []
    for label, shown, row in zip(labels, distinct(labels), rows, strict=True):
        of_output = f" of the {what} {label}" if what else ""
        if intervals:
            one = model.of_cause(label) if hasattr(model, "of_cause") else model
            frame = one.summary[["coef", *ENDS]].iloc[: len(features)].reset_index(drop=True)
            tests.append(_tests(one, of_output))
            if one._changes is not None:
                tests.append(_hazards_test(one))
        else:
            steps = [1.0 if feature.per_unit is None else feature.per_unit for feature in features]
            frame = pd.DataFrame({"coef": row * np.array(steps)}).reindex(columns=["coef", *ENDS])
        frames[shown if what else ""] = frame
        found = _table(frame, features, ratio["name"], intervals, of_output)
        tables.append(found.table)
        numbers += found.numbers
    for found in tests:
        tables.append(found.table)
        numbers += found.numbers
    drawn = len(rows) * len(features) <= MOST_DRAWN
    forest = _forest(frames, features, ratio["name"], intervals) if drawn else []
    return {
        "notes": [_kind(model), ratio["note"], *getattr(model, "_reading", list)()],
        "caps": _caps(model) if intervals else [],
        "tables": tables,
        "numbers": numbers,
        "left": max(len(features) - MOST_ROWS, 0),
        "figures": forest + (_curves(release, model, ratio["name"]) if drawn and not what else []),
    }


def _caps(model: Any) -> list[float]:
    """Return the caps of a fit, one for each cause; none without."""
    caps = getattr(model, "max_cumulative_hazard_", None)
    return [] if caps is None else np.ravel(caps).tolist()


def _table(
    frame: pd.DataFrame, features: Any, ratio: str, intervals: bool, of_output: str
) -> Shown:
    of = f", interval of the {ratio.lower()}" if ratio and intervals else ""
    head = ["Column", "For a change of", "Coefficient"] + [ratio] * bool(ratio)
    head += ["95 % interval"] * intervals
    rows, numbers = [], []
    names = distinct(map(_label, features))
    for name, feature, row in zip(names, features, frame.to_numpy(), strict=True):
        change = _change(feature)
        whom = name if level_of(feature) is not None else f"{name}, {change}"
        found = [ShownNumber(f"coefficient{of_output}", whom, *row.tolist())]
        if ratio:
            ends = ratios_of(row).tolist()
            found.append(ShownNumber(f"{ratio.lower()}{of_output}", whom, *ends))
        cells = [name, change, *(short(one.estimate) for one in found)]
        rows.append(cells + [between(found[-1].low, found[-1].high)] * intervals)
        numbers += found
    return Shown(Table(f"Coefficients{of_output}{of}", head, rows[:MOST_ROWS]), numbers)


def _tests(model: Any, of_output: str = "") -> Shown:
    """Return the joint test of each term, as of R's anova."""
    caption = WORDS["tests"]["caption"].format(of_output)
    return _wald_table(model.test_terms(), f"Wald test{of_output}", caption)


def _hazards_test(model: Any) -> Shown:
    """Return the test of proportional hazards of each column, as of R's cox.zph."""
    found = model.proportional_hazards_test()
    return _wald_table(found, "test of proportional hazards", WORDS["tests"]["hazards"])


def _wald_table(terms: pd.DataFrame, what: str, caption: str) -> Shown:
    rows, numbers = [], []
    for name, row in zip(distinct(terms.index), terms.itertuples(index=False), strict=True):
        cells = [short(row.chi2), short(row.p)] if row.df else ["", WORDS["tests"]["none"]]
        rows.append([name, str(row.df), *cells, escape_hidden(row.hidden)])
        pairs = {"chi-squared": row.chi2, "p": row.p} if row.df else {}
        numbers += [ShownNumber(f"{key} of {what}", name, x) for key, x in pairs.items()]
    table = Table(caption, WORDS["tests"]["head"], rows[:MOST_ROWS])
    return Shown(table, numbers)


def _forest(
    frames: dict[str, pd.DataFrame], features: Any, ratio: str, intervals: bool
) -> list[Figure]:
    """Return a figure that compares columns, each for a step of it, and outputs side by side."""
    steps, names = [feature.per for feature in features], distinct(map(_drawn_label, features))
    over = {
        name: frame.mul(steps, axis=0).set_axis(names)
        for name, frame in zip(cut(frames, 24), frames.values(), strict=True)
    }
    name = ratio or "Coefficient"

    def draw(ax: Any) -> None:
        plot_coefficients(over, ratios=bool(ratio), ax=ax)
        low, high = ax.get_xlim()
        if ratio and high > 50.0 * low:  # ticks at 1, 2 and 5 would be too many
            ax.locator_params(axis="x", numticks=8, subs=(1.0,))
        ax.set_xlabel(f"{name}, {'95 % interval' if intervals else 'as released'}")

    caption = WORDS["captions"]["forest"].format(name)
    height = 1.1 + 0.34 * len(features) * max(1.0, 0.5 * len(over))
    return figures(draw, "coefficients", height, caption)


def _curves(release: Any, model: Any, ratio: str) -> list[Figure]:
    """Return a figure of each column that acts by a curve: its effect over its range."""
    if not (hasattr(model, "effect") and isinstance(release.transformer(), PublicColumns)):
        return []
    found, curved = [], (f.column for f in release.features if f.is_curved and f.column)
    for number, column in enumerate(dict.fromkeys(curved)):

        def draw(ax: Any, column: str = column) -> None:
            plot_effect(model, column, ratios=bool(ratio), ax=ax)
            against = ax.get_ylabel().partition(", ")[2]
            ax.set_ylabel(f"{ratio or 'Coefficient'}, {against}")

        caption = WORDS["captions"]["effect"].format(ratio or "Coefficient", column)
        found += figures(draw, f"effect-{number + 1}", 3.0, caption)
    changing = [f.name for f in release.features if f.over_time is not None]
    for number, name in enumerate(changing):

        def draw_over_time(ax: Any, name: str = name) -> None:
            plot_effect_over_time(model, name, ratios=bool(ratio), ax=ax)
            ax.set_ylabel(ratio or "Coefficient")

        caption = WORDS["captions"]["over_time"].format(ratio or "Coefficient", name)
        found += figures(draw_over_time, f"over-time-{number + 1}", 3.0, caption)
    return found


def _label(feature: Feature) -> str:
    """Name what a coefficient belongs to."""
    level = "yes" if feature.level is True else level_of(feature)
    named = feature.column is not None and level is not None
    return f"{feature.column}: {level}" if named else column_of(feature)


def _change(feature: Feature) -> str:
    if level_of(feature) is not None:
        return "no to yes"
    if feature.is_log:
        return feature.unit
    return "+1 of the feature" if feature.per_unit is None else f"+1 {feature.unit}".strip()


def _drawn_label(feature: Feature) -> str:
    (name,) = cut([_label(feature)], 24)
    return ", ".join(filter(None, [name, feature.change]))
