"""Curves of estimators of one distribution, of everybody or of groups: figures and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpsurv.plotting.style import LINE_WIDTH, colour, dress, legend_beside
from skdpsurv.report.blocks import Block, Figure, Note, Table
from skdpsurv.report.figures import svg
from skdpsurv.report.text import by_end, distinct, short
from skdpsurv.types import FloatArray

__all__ = ["curves"]

#: As many as ``survival_band`` draws by itself: where draws are slow, they are made once.
N_RESAMPLES = 500
#: More curves than this are no figure.
MOST_DRAWN = 7
MOST_CURVES = 60
N_TIMES = 5
BANDS = (
    "Intervals are pointwise 95 % intervals. They allow for sampling, and for the noise where "
    "there is any. They are computed from the release, and from no record."
)


def curves(model: Any) -> list[Block]:
    """Return medians, means, probabilities at some times, and figures.

    Parameters
    ----------
    model : estimator
        Of one distribution, built from its release.
    """
    end = float(model.release_.parameters["max_time"])
    parts, left = _parts(model)
    blocks: list[Block] = [
        Note(f"Times are in the unit of the end of follow-up, which is {short(end)}. {BANDS}")
    ]
    blocks += _figure(model, parts)
    blocks.append(_summaries(parts, end))
    times = np.linspace(0.0, end, N_TIMES + 1)[1:]
    blocks.append(_survival(parts, times))
    if hasattr(model, "cumulative_density_band"):
        blocks += _incidences(model, parts, times)
    if not hasattr(model, "of_group"):
        blocks.append(_parameters(model))
    if left:
        blocks.append(Note(f"{left:,} more groups are in the release."))
    return blocks


def _parts(model: Any) -> tuple[dict[str, Any], int]:
    """Return curves by the names of their groups, and how many were left out."""
    groups = getattr(model, "groups_", None)
    if groups is None:
        return {"everybody": model}, 0
    labels = groups.tolist()[:MOST_CURVES]
    names = distinct(labels)
    found = {name: model.of_group(one) for name, one in zip(names, labels, strict=True)}
    return found, groups.size - len(labels)


def _summaries(parts: dict[str, Any], end: float) -> Table:
    rows = []
    for name, one in parts.items():
        middle = one.percentile_interval(n_resamples=N_RESAMPLES)
        mean = one.restricted_mean_survival_time(n_resamples=N_RESAMPLES)
        rows.append(
            (
                name,
                by_end(middle.estimate, end),
                by_end(middle.lower, end)
                + (f" to {by_end(middle.upper, end)}" * (middle.lower <= end)),
                short(mean.estimate),
                f"{short(mean.lower)} to {short(mean.upper)}",
            )
        )
    head = ("Group", "Median", "95 % interval", f"Mean up to {short(end)}", "95 % interval")
    return Table("Median survival time, and mean time survived", head, rows)


def _survival(parts: dict[str, Any], times: FloatArray) -> Table:
    columns = []
    for one in parts.values():
        band = one.survival_band(times) if hasattr(one, "survival_band") else None
        columns.append(_cells(one.survival_function_at_times(times).to_numpy(), band))
    return _over_time("Probability to survive, with its interval", parts, times, columns)


def _incidences(model: Any, parts: dict[str, Any], times: FloatArray) -> list[Block]:
    blocks: list[Block] = []
    for name, cause in zip(distinct(model.causes_), model.causes_, strict=True):
        columns = []
        for one in parts.values():
            band = one.cumulative_density_band(times, cause=cause, n_resamples=N_RESAMPLES)
            found = one.cumulative_density_at_times(times, cause=cause).to_numpy()
            columns.append(_cells(found, band))
        caption = f"Probability of the event {name}, before any other event"
        blocks.append(_over_time(caption, parts, times, columns))
    return blocks


def _cells(found: FloatArray, band: Any) -> list[str]:
    if band is None:
        return [_probability(p) for p in found]
    ends = band[["lower", "upper"]].to_numpy().tolist()
    return [
        f"{_probability(p)} ({_probability(low)} to {_probability(high)})"
        for p, (low, high) in zip(found.tolist(), ends, strict=True)
    ]


def _probability(p: float) -> str:
    return f"{p:.3f}"


def _over_time(
    caption: str, parts: dict[str, Any], times: FloatArray, columns: list[list[str]]
) -> Table:
    """Return a row for each time, or for each group where there are many."""
    ticks = [short(time) for time in times.tolist()]
    if len(parts) <= len(ticks):
        rows = [
            (tick, *cells) for tick, cells in zip(ticks, zip(*columns, strict=True), strict=True)
        ]
        return Table(caption, ("Time", *parts), rows)
    rows = [(name, *cells) for name, cells in zip(parts, columns, strict=True)]
    return Table(caption, ("Group", *(f"at {tick}" for tick in ticks)), rows)


def _parameters(model: Any) -> Table:
    summary = model.summary
    rows = [
        (str(name), *(short(float(number)) for number in row))
        for name, row in zip(summary.index, summary.to_numpy().tolist(), strict=True)
    ]
    head = ("Parameter", "Estimate", *(["95 % from", "to"] if len(summary.columns) == 3 else []))
    weibull = hasattr(model, "rho_")
    law = ": survival to time t is exp(−(t / lambda_)^rho_)" if weibull else ""
    return Table(f"Parameters of the distribution{law}", head, rows)


def _figure(model: Any, parts: dict[str, Any]) -> list[Block]:
    if len(parts) > MOST_DRAWN:
        return []
    labels = [name if len(name) <= 40 else f"{name[:39]}…" for name in parts]

    def draw(ax: Any) -> None:
        model.plot(ax=ax, labels=labels, n_resamples=N_RESAMPLES)

    caption = "Survival, with bands of pointwise 95 % intervals."
    found = svg(draw, "survival", 3.6, caption)
    blocks: list[Block] = [] if found is None else [Figure(found, caption)]
    if hasattr(model, "cumulative_density_band") and len(model.causes_) <= MOST_DRAWN:
        caption = "Cumulative incidence of each event, of everybody, with 95 % intervals."
        found = svg(lambda ax: _draw_incidences(model, ax), "incidence", 3.6, caption)
        blocks += [] if found is None else [Figure(found, caption)]
    return blocks


def _draw_incidences(model: Any, ax: Any) -> None:
    times = np.linspace(0.0, float(model.release_.parameters["max_time"]), 101)
    names = distinct(model.causes_)
    lines = []
    for i, cause in enumerate(model.causes_):
        found = model.cumulative_density_at_times(times, cause=cause).to_numpy()
        band = model.cumulative_density_band(times, cause=cause, n_resamples=N_RESAMPLES)
        ends = band["lower"].to_numpy(), band["upper"].to_numpy()
        ax.fill_between(times, *ends, color=colour(i), alpha=0.18, linewidth=0.0)
        lines += ax.plot(times, found, color=colour(i), linewidth=LINE_WIDTH)
    dress(ax, float(times[-1]), None)
    ax.set_ylabel("Probability of the event")
    legend_beside(ax, lines, names)
