"""Predictions on the page: curves of one distribution, and predictions for example profiles.

Example profiles are made of public bounds and categories alone, never of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data.column_kinds import ColumnKind
from skdpsurv.data.feature import known_names
from skdpsurv.data.public_steps import raw_kinds
from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting.style import LINE_WIDTH, colour, dress, legend_beside
from skdpsurv.plotting.survival_curves import plot_survival_curves
from skdpsurv.report.figures import Figure, cut, figures
from skdpsurv.report.text import Table, by_end, distinct, short, value

#: Simulated fits behind a band: the default of ``survival_band``, so that slow draws are reused.
N_RESAMPLES = 500
#: Most curves in a figure, and in a table.
MOST_DRAWN, MOST_CURVES = 7, 60
#: Times in a table.
N_TIMES = 5
#: Most other values of a category that are tried, and most columns of the table of a profile.
MOST_TRIED, MOST_COLUMNS = 49, 40


# ---- Curves of everybody or of groups.


def curves(model: Any) -> dict[str, Any]:
    """Return medians, means, probabilities at some times, and figures, for the template."""
    end = float(model.release_.parameters["max_time"])
    groups = getattr(model, "groups_", None)
    labels = [] if groups is None else groups.tolist()
    names = distinct(labels[:MOST_CURVES])
    members = {name: model.of_group(label) for name, label in zip(names, labels, strict=False)}
    members = members or {"everybody": model}
    events = getattr(model, "causes_", ())
    causes = dict(zip(distinct(events), events, strict=True))
    over_time = partial(_over_time, members, np.linspace(0.0, end, N_TIMES + 1)[1:])
    tables = [
        _summaries(members, end),
        over_time("Probability to survive, with its interval", _survival),
    ]
    for name, cause in causes.items():
        caption = f"Probability of the event {name}, before any other event"
        tables.append(over_time(caption, partial(_incidence, cause)))
    if not hasattr(model, "of_group"):
        tables.append(_parameters(model))
    drawn = _curve_figures(model, list(members), causes) if len(members) <= MOST_DRAWN else []
    return {"end": end, "figures": drawn, "tables": tables, "left": len(labels) - len(names)}


def _summaries(members: Mapping[str, Any], end: float) -> Table:
    rows = []
    for name, member in members.items():
        median = member.percentile_interval(n_resamples=N_RESAMPLES)
        mean = member.restricted_mean_survival_time(n_resamples=N_RESAMPLES)
        upper = f" to {by_end(median.upper, end)}" if median.lower <= end else ""
        row = [name, by_end(median.estimate, end), by_end(median.lower, end) + upper]
        rows.append([*row, short(mean.estimate), f"{short(mean.lower)} to {short(mean.upper)}"])
    head = ("Group", "Median", "95 % interval", f"Mean up to {short(end)}", "95 % interval")
    return Table("Median survival time, and mean time survived", head, rows)


def _survival(member: Any, times: FloatArray) -> tuple[Any, Any]:
    band = member.survival_band(times) if hasattr(member, "survival_band") else None
    return member.survival_function_at_times(times), band


def _incidence(cause: Any, member: Any, times: FloatArray) -> tuple[Any, Any]:
    band = member.cumulative_density_band(times, cause=cause, n_resamples=N_RESAMPLES)
    return member.cumulative_density_at_times(times, cause=cause), band


def _over_time(
    members: Mapping[str, Any],
    times: FloatArray,
    caption: str,
    estimate: Callable[[Any, FloatArray], tuple[Any, Any]],
) -> Table:
    """Return a row for each time, or for each group where there are many."""
    ticks = list(map(short, times.tolist()))
    columns = [_cells(*estimate(member, times)) for member in members.values()]
    if len(members) <= len(ticks):
        return Table(caption, ("Time", *members), list(zip(ticks, *columns, strict=True)))
    rows = [(name, *cells) for name, cells in zip(members, columns, strict=True)]
    return Table(caption, ("Group", *(f"at {tick}" for tick in ticks)), rows)


def _cells(found: Any, band: Any) -> list[str]:
    if band is None:
        return [f"{p:.3f}" for p in found]
    ends = zip(found, band["lower"], band["upper"], strict=True)
    return [f"{p:.3f} ({low:.3f} to {high:.3f})" for p, low, high in ends]


def _parameters(model: Any) -> Table:
    summary = model.summary
    rows = [(str(name), *map(short, numbers)) for name, *numbers in summary.itertuples()]
    head = ("Parameter", "Estimate", "95 % from", "to")[: 1 + len(summary.columns)]
    formula = ": survival to time t is exp(−(t / lambda_)^rho_)" if hasattr(model, "rho_") else ""
    return Table(f"Parameters of the distribution{formula}", head, rows)


def _curve_figures(model: Any, names: list[str], causes: Mapping[str, Any]) -> list[Figure]:
    caption = "Survival, with bands of pointwise 95 % intervals."
    plot = partial(model.plot, labels=cut(names), n_resamples=N_RESAMPLES)
    found = figures(lambda ax: plot(ax=ax), "survival", 3.6, caption)
    if causes and len(causes) <= MOST_DRAWN:
        caption = "Cumulative incidence of each event, of everybody, with 95 % intervals."
        found += figures(partial(_draw_incidences, model, causes), "incidence", 3.6, caption)
    return found


def _draw_incidences(model: Any, causes: Mapping[str, Any], ax: Any) -> None:
    times = np.linspace(0.0, float(model.release_.parameters["max_time"]), 101)
    lines = []
    for i, cause in enumerate(causes.values()):
        found, band = _incidence(cause, model, times)
        ax.fill_between(
            times, band["lower"], band["upper"], color=colour(i), alpha=0.18, linewidth=0.0
        )
        lines += ax.plot(times, found.to_numpy(), color=colour(i), linewidth=LINE_WIDTH)
    dress(ax, float(times[-1]), None)
    ax.set_ylabel("Probability of the event")
    legend_beside(ax, lines, list(causes))


# ---- Example profiles.


def example_predictions(release: Any, model: Any) -> dict[str, Any] | None:
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
    labels, shown = ["typical" if typical else "in the middle"], distinct(names)
    if column is not None:
        labels = [f"{shown[column]}: {value(cell)}" for cell in rows.iloc[:, column]]
    cells = [(name, value(kind.example)) for name, kind in zip(shown, kinds, strict=True)]
    caption = f"Values of the {'typical person' if typical else 'person in the middle'}"
    return {
        "typical": typical,
        "column": None if column is None else shown[column],
        "person": Table(caption, ("Column", "Value"), cells[:MOST_COLUMNS], numbers=False),
        **_predicted(model, _rows(model, rows), labels, typical),
    }


def _others(kind: ColumnKind) -> list[Any]:
    """Return other values to compare with that of the example."""
    spec = kind.described()
    listed = [spec[key] for key in ("bounds", "dates", "categories") if key in spec]
    return [cell for cell in (*listed, (False, True))[0] if cell != kind.example][:MOST_TRIED]


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
        for other in _others(kind)
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


def _predicted(model: Any, table: Any, labels: list[str], medians: bool) -> dict[str, Any]:
    """Return a table of predictions, and a figure of survival functions."""
    if not hasattr(model, "predict_survival_function"):
        found, head = model.predict_proba(table), ["Person", *distinct(model.classes_.tolist())]
        caption, drawn = "Predicted probabilities of example profiles", []
    else:
        # Steps are at the ends of intervals.
        n_times = model.unique_times_.size
        ends = np.linspace(0, n_times, N_TIMES + 1)[1:].round().astype(int)
        indices = np.unique(np.maximum(ends, 1)) - 1
        found = model.predict_survival_function(table, return_array=True)[:, indices]
        head = ["Person", *(f"at {short(t)}" for t in model.unique_times_[indices].tolist())]
        caption = "Predicted probability to survive"
        description = "Predicted survival of example profiles. Times are in the unit of the fit."
        plot = partial(plot_survival_curves, model, table, labels=cut(labels))
        drawn = figures(lambda ax: plot(ax=ax), "people", 3.6, description)
    rows = [[label, *(f"{p:.3f}" for p in row)] for label, row in zip(labels, found, strict=True)]
    if medians and hasattr(model, "predict_median"):
        head.append("Median")
        for row, time in zip(rows, model.predict_median(table).tolist(), strict=True):
            row.append(by_end(time, float(model.unique_times_[-1])))
    return {"figures": drawn, "predicted": Table(caption, head, rows)}
