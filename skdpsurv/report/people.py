"""Predictions for a few people who do not exist: made of public bounds and categories alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kinds import ColumnKind
from skdpsurv.data.feature import known_names
from skdpsurv.data.public_steps import raw_kinds
from skdpsurv.plotting.survival_curves import plot_survival_curves
from skdpsurv.report.figures import cut, figures
from skdpsurv.report.text import Table, by_end, distinct, short, value

#: Other values of a category that are tried.
MOST_TRIED = 49
#: Columns of which a table says what the people have.
MOST_COLUMNS = 40
N_TIMES = 5


def people(release: Any, model: Any) -> dict[str, Any] | None:
    """Return predicted survival, or probabilities of classes, of people who do not exist.

    None of a model that predicts neither; if nobody can be made up, why.
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
    rows, column = _chosen(model, kinds, names)
    typical = any(kind.typical is not None for kind in kinds)
    labels = ["typical" if typical else "in the middle"]
    if column is not None:
        labels = [f"{distinct(names)[column]}: {value(cell)}" for cell in rows.iloc[:, column]]
    cells = [(name, value(kind.example)) for name, kind in zip(distinct(names), kinds, strict=True)]
    what = f"Values of the {'typical person' if typical else 'person in the middle'}"
    return {
        "typical": typical,
        "column": None if column is None else distinct(names)[column],
        "person": Table(what, ("Column", "Value"), cells[:MOST_COLUMNS], numbers=False),
        **_predicted(model, _rows(model, rows), labels, typical),
    }


def _others(kind: ColumnKind) -> list[Any]:
    """Return other values to compare with that of the example."""
    said = kind.described()
    stated = [said[key] for key in ("bounds", "dates", "categories") if key in said]
    return [one for one in (*stated, (False, True))[0] if one != kind.example][:MOST_TRIED]


def _rows(model: Any, rows: pd.DataFrame) -> Any:
    """Return rows as a model takes them: by name, if its columns have names."""
    named = model.release_.feature_names_in is not None
    return rows if named else rows.to_numpy(dtype=object)


def _chosen(
    model: Any, kinds: list[ColumnKind], names: list[str]
) -> tuple[pd.DataFrame, int | None]:
    """Return a person in the middle, others, and the column in which they differ."""
    middle = [kind.example for kind in kinds]
    tried = [(-1, middle)] + [
        (j, [*middle[:j], other, *middle[j + 1 :]])
        for j, kind in enumerate(kinds)
        for other in _others(kind)
    ]
    rows = pd.DataFrame([row for _, row in tried], columns=names, dtype=object)
    if hasattr(model, "predict_survival_function"):
        risk = np.asarray(model.predict(_rows(model, rows)), dtype=np.float64)
    else:
        risk = model.predict_proba(_rows(model, rows))[:, -1]
    places = np.array([j for j, _ in tried])
    reach = [np.ptp(risk[(places == j) | (places < 0)]) for j in range(len(kinds))]
    if not reach or not np.nanmax(reach) > 0.0:
        return rows.iloc[:1], None
    column = int(np.nanargmax(reach))
    own = np.flatnonzero(places == column)
    ends = {0, own[risk[own].argmin()], own[risk[own].argmax()]}
    return rows.iloc[sorted(ends, key=risk.__getitem__)].reset_index(drop=True), column


def _predicted(model: Any, table: Any, labels: list[str], medians: bool) -> dict[str, Any]:
    """Return a table of predictions, and a figure of survival functions."""
    if not hasattr(model, "predict_survival_function"):
        found, head = model.predict_proba(table), ["Person", *distinct(model.classes_.tolist())]
        caption, drawn = "Predicted probabilities of made-up people", []
    else:
        # Steps are at the ends of intervals.
        n_times = model.unique_times_.size
        ends = np.linspace(0, n_times, N_TIMES + 1)[1:].round().astype(int)
        places = np.unique(np.maximum(ends, 1)) - 1
        found = model.predict_survival_function(table, return_array=True)[:, places]
        head = ["Person", *(f"at {short(t)}" for t in model.unique_times_[places].tolist())]
        caption = "Predicted probability to survive"
        says = "Predicted survival of made-up people. Times are in the unit of the fit."
        plot = partial(plot_survival_curves, model, table, labels=cut(labels))
        drawn = figures(lambda ax: plot(ax=ax), "people", 3.6, says)
    rows = [[one, *(f"{p:.3f}" for p in row)] for one, row in zip(labels, found, strict=True)]
    if medians and hasattr(model, "predict_median"):
        head.append("Median")
        for row, time in zip(rows, model.predict_median(table).tolist(), strict=True):
            row.append(by_end(time, float(model.unique_times_[-1])))
    return {"figures": drawn, "predicted": Table(caption, head, rows)}
