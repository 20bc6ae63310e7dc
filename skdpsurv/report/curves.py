"""Curves of estimators of one distribution, of everybody or of groups: figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting.style import LINE_WIDTH, colour, dress, legend_beside
from skdpsurv.report.figures import Figure, cut, figures
from skdpsurv.report.text import Table, by_end, distinct, short

#: As many as ``survival_band`` draws by itself: where draws are slow, they are made once.
N_RESAMPLES = 500
#: More curves than this are no figure.
MOST_DRAWN = 7
MOST_CURVES = 60
N_TIMES = 5


def curves(model: Any) -> dict[str, Any]:
    """Return medians, means, probabilities at some times, and figures, for the template."""
    end = float(model.release_.parameters["max_time"])
    groups = getattr(model, "groups_", None)
    labels = [] if groups is None else groups.tolist()
    chosen = labels[:MOST_CURVES]
    named = zip(distinct(chosen), chosen, strict=True)
    parts = {name: model.of_group(one) for name, one in named} or {"everybody": model}
    events = getattr(model, "causes_", ())
    causes = dict(zip(distinct(events), events, strict=True))
    over_time = partial(_over_time, parts, np.linspace(0.0, end, N_TIMES + 1)[1:])
    tables = [
        _summaries(parts, end),
        over_time("Probability to survive, with its interval", _survival),
    ]
    for name, cause in causes.items():
        caption = f"Probability of the event {name}, before any other event"
        tables.append(over_time(caption, partial(_incidence, cause)))
    if not hasattr(model, "of_group"):
        tables.append(_parameters(model))
    drawn = _figures(model, list(parts), causes) if len(parts) <= MOST_DRAWN else []
    return {"end": end, "figures": drawn, "tables": tables, "left": len(labels) - len(chosen)}


def _summaries(parts: Mapping[str, Any], end: float) -> Table:
    rows = []
    for name, one in parts.items():
        middle = one.percentile_interval(n_resamples=N_RESAMPLES)
        mean = one.restricted_mean_survival_time(n_resamples=N_RESAMPLES)
        upper = f" to {by_end(middle.upper, end)}" if middle.lower <= end else ""
        row = [name, by_end(middle.estimate, end), by_end(middle.lower, end) + upper]
        rows.append([*row, short(mean.estimate), f"{short(mean.lower)} to {short(mean.upper)}"])
    head = ("Group", "Median", "95 % interval", f"Mean up to {short(end)}", "95 % interval")
    return Table("Median survival time, and mean time survived", head, rows)


def _survival(one: Any, times: FloatArray) -> tuple[Any, Any]:
    band = one.survival_band(times) if hasattr(one, "survival_band") else None
    return one.survival_function_at_times(times), band


def _incidence(cause: Any, one: Any, times: FloatArray) -> tuple[Any, Any]:
    band = one.cumulative_density_band(times, cause=cause, n_resamples=N_RESAMPLES)
    return one.cumulative_density_at_times(times, cause=cause), band


def _over_time(
    parts: Mapping[str, Any],
    times: FloatArray,
    caption: str,
    ask: Callable[[Any, FloatArray], tuple[Any, Any]],
) -> Table:
    """Return a row for each time, or for each group where there are many."""
    ticks = list(map(short, times.tolist()))
    columns = [_cells(*ask(one, times)) for one in parts.values()]
    if len(parts) <= len(ticks):
        return Table(caption, ("Time", *parts), list(zip(ticks, *columns, strict=True)))
    rows = [(name, *cells) for name, cells in zip(parts, columns, strict=True)]
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
    law = ": survival to time t is exp(−(t / lambda_)^rho_)" if hasattr(model, "rho_") else ""
    return Table(f"Parameters of the distribution{law}", head, rows)


def _figures(model: Any, names: list[str], causes: Mapping[str, Any]) -> list[Figure]:
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
        ends = band["lower"].to_numpy(), band["upper"].to_numpy()
        ax.fill_between(times, *ends, color=colour(i), alpha=0.18, linewidth=0.0)
        lines += ax.plot(times, found.to_numpy(), color=colour(i), linewidth=LINE_WIDTH)
    dress(ax, float(times[-1]), None)
    ax.set_ylabel("Probability of the event")
    legend_beside(ax, lines, list(causes))
