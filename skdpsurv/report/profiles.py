"""Predictions for example profiles, which are made of public bounds and categories alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import known_names
from skdpsurv.data.public_steps import raw_kinds
from skdpsurv.plotting.incidence_plot import plot_stacked_incidences
from skdpsurv.plotting.style import cut
from skdpsurv.plotting.survival_curves import plot_survival_curves
from skdpsurv.report.figures import Figure, figures
from skdpsurv.report.numbers import MOST_TIMES, ShownNumber, probability, round_times
from skdpsurv.report.text import WORDS, Table, by_end, distinct, short, value

#: Most other values of a category that are tried, and most columns of the table of a profile.
MOST_TRIED, MOST_COLUMNS = 49, 40


def example_predictions(release: Any, model: Any, unit: str = "") -> dict[str, Any] | None:
    """Return predicted survival, or class probabilities, for example profiles.

    None for a model that predicts neither; the reason if no profile can be made.
    """
    if not hasattr(model, "predict_survival_function") and not hasattr(model, "predict_proba"):
        return None
    if release.guarantee.not_covered:
        return {"refused": "learned"}
    names = known_names(release.feature_names_in, release.n_features_in)
    found = raw_kinds(release.transformer(), names)
    kinds = [kind for kind in found if kind is not None]
    if len(kinds) < len(found) or not found:
        return {"refused": "undescribed"}
    rows, column = _profiles(model, kinds, names)
    typical = any(kind.typical is not None for kind in kinds)
    labels, shown, example = ["typical" if typical else "in the middle"], distinct(names), 0
    if column is not None:
        kind, own = kinds[column], kinds[column].example
        origin = " (middle of the bounds)" if kind.bounded else ""
        origin = origin if kind.typical is None else " (typical)"
        example = rows.iloc[:, column].tolist().index(own)
        labels = [
            f"{shown[column]}: {value(cell)}{origin if cell == own else ''}"
            for cell in rows.iloc[:, column]
        ]
    cells = [(name, value(kind.example)) for name, kind in zip(shown, kinds, strict=True)]
    caption = f"Values of the {'typical person' if typical else 'person in the middle'}"
    return {
        "typical": typical,
        "column": None if column is None else shown[column],
        "person": Table(caption, ("Column", "Value"), cells[:MOST_COLUMNS], numbers=False),
        **_predicted(model, _rows(model, rows), labels, typical, unit, example),
    }


def _rows(model: Any, rows: pd.DataFrame) -> Any:
    """Return rows as a model takes them: by name, if its columns have names."""
    named = model.release_.feature_names_in is not None
    return rows if named else rows.to_numpy(dtype=object)


def _profiles(
    model: Any, kinds: list[ColumnKind], names: list[str]
) -> tuple[pd.DataFrame, int | None]:
    """Return an example profile, others, and the column in which they differ."""
    example = [kind.example for kind in kinds]
    tried = [(-1, example)] + [
        (j, [*example[:j], other, *example[j + 1 :]])
        for j, kind in enumerate(kinds)
        for other in kind.others()[:MOST_TRIED]
    ]
    rows = pd.DataFrame([row for _, row in tried], columns=names, dtype=object)
    if hasattr(model, "predict_survival_function"):
        risk = np.asarray(model.predict(_rows(model, rows)), dtype=np.float64)
    else:
        risk = model.predict_proba(_rows(model, rows))[:, -1]
    changed = np.array([j for j, _ in tried])
    ranges = [np.ptp(risk[(changed == j) | (changed < 0)]) for j in range(len(kinds))]
    if not np.nanmax(ranges) > 0.0:
        return rows.iloc[:1], None
    column = int(np.nanargmax(ranges))
    own = np.flatnonzero(changed == column)
    ends = {0, own[risk[own].argmin()], own[risk[own].argmax()]}
    return rows.iloc[sorted(ends, key=risk.__getitem__)].reset_index(drop=True), column


def _predicted(
    model: Any, table: Any, labels: list[str], medians: bool, unit: str, example: int
) -> dict[str, Any]:
    """Return a table of predictions, and figures: of survival, and of causes of the example."""
    drawn: list[Figure] = []
    bands: list[Any] = []
    if not hasattr(model, "predict_survival_function"):
        found, heads = model.predict_proba(table), distinct(model.classes_.tolist())
        caption, quantity = "Predicted probabilities of example profiles", "probability of "
    else:
        steps = model.unique_times_
        times = steps if steps.size <= MOST_TIMES else round_times(float(steps[-1]))
        indices = np.maximum(np.searchsorted(steps, times, side="right") - 1, 0)
        found = model.predict_survival_function(table, return_array=True)[:, indices]
        if getattr(model, "inference_", None) is not None and hasattr(model, "survival_band"):
            bands = [ends[:, indices] for ends in model.survival_band(table)]
        heads = [f"at {short(t)}" for t in times.tolist()]
        caption, quantity = "Predicted probability to survive", "predicted survival "
        if causes := getattr(model, "causes_", None):
            named = zip(distinct(causes), causes, strict=True)
            incidence = model.predict_cumulative_incidence_function
            curves = {name: incidence(table, cause, return_array=True) for name, cause in named}
            found = np.hstack([found, *(curve[:, indices] for curve in curves.values())])
            heads = [f"{name} {head}" for name in ("no event", *curves) for head in heads]
            caption = "Predicted probabilities of no event, and of each event before any other"
            quantity = "predicted probability of "
        options: Any = {"labels": cut(labels), "time_unit": unit or None}

        def draw(ax: Any) -> None:
            plot_survival_curves(model, table, ax=ax, **options)
            if causes:
                ax.set_ylabel("Probability of no event")

        words = WORDS["captions"]
        drawn = figures(draw, "people", 3.6, words["profiles_free" if causes else "profiles"])
        if causes:
            stacked = {**options, "labels": cut(distinct(causes), 24)}
            person = table[example : example + 1]
            plot = partial(plot_stacked_incidences, model, person, **stacked)
            drawn += figures(plot, "incidences", 3.6, words["stacked"].format(labels[example]))
    cells = np.stack([found, *bands], axis=-1).tolist()
    numbers = [
        [
            ShownNumber(f"{quantity}{head}", label, *cell)
            for head, cell in zip(heads, row, strict=True)
        ]
        for label, row in zip(labels, cells, strict=True)
    ]
    # Where noise hides all of them, a sentence says so.
    hidden = bool(bands) and bool((bands[1] - bands[0] == 1.0).all())
    rows = [
        [head, *(probability(one, with_ends=not hidden) for one in column)]
        for head, column in zip(heads, zip(*numbers, strict=True), strict=True)
    ]
    if medians and hasattr(model, "predict_median"):
        end, found = float(model.unique_times_[-1]), model.predict_median(table).tolist()
        rows.append(["Median", *(by_end(time, end) for time in found)])
        numbers.append(list(map(partial(ShownNumber, "predicted median"), labels, found)))
    return {
        "intervals": "hidden" if hidden else "shown" if bands else "none",
        "figures": drawn,
        "predicted": Table(caption, ["", *labels], rows),
        "numbers": [number for row in numbers for number in row],
    }
