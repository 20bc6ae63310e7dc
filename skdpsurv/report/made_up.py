"""Predictions for a few people who do not exist: made of public bounds and categories alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdpsurv.plotting.survival_curves import plot_survival_curves
from skdpsurv.preprocessing import PublicBoundsScaler, PublicColumns
from skdpsurv.preprocessing.column_kinds import Boolean, Category, Date, Number
from skdpsurv.preprocessing.public_steps import branches, is_dropped, is_nothing, known_names
from skdpsurv.report.blocks import Block, Figure, Note, Table
from skdpsurv.report.figures import svg
from skdpsurv.report.text import by_end, distinct, short

__all__ = ["made_up_people"]

#: Values of a category that are tried.
MOST_LABELS = 50
#: Columns of which a table says what the people have.
MOST_COLUMNS = 40
N_TIMES = 5

MIDDLE = (
    "each number or date is the middle of its bounds, each category the first one, and each "
    "condition is absent."
)
TYPICAL = (
    "each value is what the description of its column calls typical. Where it says nothing, a "
    "number or date is the middle of its bounds, a category the first one, and a condition absent."
)


@dataclass(frozen=True)
class Range:
    """What a column may hold: a value in the middle, and others to compare it with."""

    middle: Any
    others: tuple[Any, ...]
    #: Whether the value is not in the middle, but called typical.
    typical: bool = False


def made_up_people(release: Any, model: Any) -> list[Block]:
    """Return predicted survival, or probabilities of classes, of people who do not exist."""
    curves = hasattr(model, "predict_survival_function")
    if not curves and not hasattr(model, "predict_proba"):
        return []
    names = known_names(release.feature_names_in, release.n_features_in)
    ranges = None if release.columns is None else ranges_of(release.transformer(), names)
    if release.guarantee.not_covered:
        return [Note("No predictions are shown: steps before the model learned from the records.")]
    if ranges is None:
        return [
            Note(
                "No predictions are shown: the release does not say of every column what it holds, "
                "so nobody can make up a row."
            )
        ]
    people, column = _people(release, model, ranges)
    typical = any(one.typical for one in ranges)
    labels = _labels(people, column, "typical" if typical else "in the middle")
    blocks: list[Block] = [
        Note(
            "The people below are made up, of stated bounds and categories and of no record: "
            + (TYPICAL if typical else MIDDLE)
            + (
                f" From there they differ in one column alone, {labels[0]}: of all columns it is "
                "the one in which stated values, each tried alone, move the prediction farthest."
                if column is not None
                else ""
            )
        )
    ]
    blocks += _predicted(model, people, labels[1:], curves, typical)
    rows = [
        (name, _cell(one.middle))
        for name, one in zip(distinct(people.columns), ranges, strict=True)
    ]
    blocks.append(
        Table(
            f"Values of the {'typical person' if typical else 'person in the middle'}",
            ("Column", "Value"),
            rows[:MOST_COLUMNS],
            numbers=False,
        )
    )
    return blocks


def ranges_of(step: Any, names: list[str]) -> list[Range] | None:
    """Return what each raw column may hold; None if that is not known of all."""
    found: list[Range | None] = [None] * len(names)
    if isinstance(step, Pipeline):
        inner = [one for _, one in step.steps if not is_nothing(one)]
        return ranges_of(inner[0], names) if inner else None
    if isinstance(step, ColumnTransformer):
        for _, one, places in branches(step, names):
            if is_dropped(one):  # nothing depends on it
                inside: list[Range] | None = [Range(0.0, ())] * len(places)
            else:
                inside = ranges_of(one, [names[j] for j in places])
            for j, place in enumerate(places):
                found[place] = None if inside is None else (found[place] or inside[j])
    elif isinstance(step, PublicColumns):
        kinds = {kind.column: _of_kind(kind) for kind in step._kinds()}
        found = [kinds.get(name) for name in names]
    elif isinstance(step, PublicBoundsScaler):
        ends = zip(*step._ends(names, len(names)), strict=True)
        found = [Range(float(low / 2 + high / 2), (float(low), float(high))) for low, high in ends]
    ranges = [one for one in found if one is not None]
    return ranges if len(ranges) == len(names) else None


def _of_kind(kind: Any) -> Range:
    example = kind.example
    match kind:
        case Number():
            others: tuple[Any, ...] = (kind.low, kind.high)
        case Date():
            others = (kind.first.isoformat(), kind.last.isoformat())
        case Boolean():
            others = (not example,)
        case Category():
            others = tuple(label for label in kind.labels if label != example)[: MOST_LABELS - 1]
        case _:
            name = type(kind).__name__
            raise TypeError(f"{name} is no kind of column that people can be made up of.")
    return Range(example, others, kind.typical is not None)


def _people(release: Any, model: Any, ranges: list[Range]) -> tuple[pd.DataFrame, int | None]:
    """Return a person in the middle, others, and the column in which they differ."""
    middle = [one.middle for one in ranges]
    rows, places = [middle], [-1]
    for j, one in enumerate(ranges):
        for value in one.others:
            rows.append([*middle[:j], value, *middle[j + 1 :]])
            places.append(j)
    names = known_names(release.feature_names_in, release.n_features_in)
    tried = pd.DataFrame(rows, columns=names, dtype=object)
    risk = np.asarray(_risk(model, _table(release, tried)), dtype=np.float64)
    which = np.array(places)
    reach = [np.ptp(risk[(which == j) | (which < 0)]) for j in range(len(ranges))]
    if not reach or not np.nanmax(reach) > 0.0:
        return tried.iloc[:1], None
    column = int(np.nanargmax(reach))
    own = np.flatnonzero(which == column)
    ends = {int(own[risk[own].argmin()]), int(own[risk[own].argmax()])}
    chosen = sorted([0, *ends], key=lambda row: risk[row])
    return tried.iloc[chosen].reset_index(drop=True), column


def _risk(model: Any, table: Any) -> Any:
    if hasattr(model, "predict_survival_function"):
        return model.predict(table)
    return model.predict_proba(table)[:, -1]


def _table(release: Any, people: pd.DataFrame) -> Any:
    """Return rows as the model takes them: by name, if its columns have names."""
    return people if release.feature_names_in is not None else people.to_numpy(dtype=object)


def _labels(people: pd.DataFrame, column: int | None, one: str) -> list[str]:
    """Return the name of the column, then of each person."""
    if column is None:
        return ["", one]
    name = distinct(people.columns)[column]
    return [name, *(f"{name}: {_cell(value)}" for value in people.iloc[:, column])]


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _predicted(
    model: Any, people: pd.DataFrame, labels: list[str], curves: bool, medians: bool
) -> list[Block]:
    table = _table(model.release_, people)
    if not curves:
        found = model.predict_proba(table)
        classes = distinct(model.classes_.tolist())
        rows = [
            (label, *(f"{p:.3f}" for p in row)) for label, row in zip(labels, found, strict=True)
        ]
        return [Table("Predicted probabilities of made-up people", ("Person", *classes), rows)]
    times = model.unique_times_
    # Steps are at the ends of intervals.
    ends = np.linspace(0, times.size, N_TIMES + 1)[1:].round().astype(int)
    places = np.unique(np.maximum(ends, 1)) - 1
    survival = model.predict_survival_function(table, return_array=True)[:, places]
    rows = [
        (label, *(f"{p:.3f}" for p in row)) for label, row in zip(labels, survival, strict=True)
    ]
    head = ("Person", *(f"at {short(time)}" for time in times[places].tolist()))
    if medians and hasattr(model, "predict_median"):
        end = float(times[-1])
        found = [by_end(time, end) for time in model.predict_median(table).tolist()]
        head, rows = (*head, "Median"), [(*row, one) for row, one in zip(rows, found, strict=True)]
    caption = "Predicted survival of made-up people. Times are in the unit of the fit."
    drawn = [label if len(label) <= 40 else f"{label[:39]}…" for label in labels]
    picture = svg(
        lambda ax: plot_survival_curves(model, table, labels=drawn, ax=ax),
        "people",
        3.6,
        caption,
    )
    figure: list[Block] = [] if picture is None else [Figure(picture, caption)]
    return [*figure, Table("Predicted probability to survive", head, rows)]
