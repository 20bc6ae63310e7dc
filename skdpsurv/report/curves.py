"""Curves on a page: of everybody or of groups, with tests between groups and numbers at risk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting.style import LINE_WIDTH, colour, cut, dress, legend_beside
from skdpsurv.report.figures import Figure, figures
from skdpsurv.report.numbers import Shown, ShownNumber, between, probability, round_times
from skdpsurv.report.text import WORDS, Table, by_end, distinct, short
from skdpsurv.survival import comparisons

#: Simulated fits behind a band: the default of ``survival_band``, so that slow draws are reused.
N_RESAMPLES = 500
#: Most curves in a figure, and in a table.
MOST_DRAWN, MOST_CURVES = 7, 60


def curves(model: Any, unit: str = "") -> dict[str, Any]:
    """Return medians, means, tests, probabilities at some times, and figures, for the template."""
    end = float(model.release_.parameters["max_time"])
    groups = getattr(model, "groups_", None)
    labels = [] if groups is None else groups.tolist()
    names = distinct(labels[:MOST_CURVES])
    members = {name: model.of_group(label) for name, label in zip(names, labels, strict=False)}
    members = members or {"everybody": model}
    events = getattr(model, "causes_", ())
    causes = dict(zip(distinct(events), events, strict=True))
    times = round_times(end)
    free, captions = "event-free " * bool(causes), WORDS["captions"]
    shown = [_summaries(members, end, free)]
    if 2 <= len(members) <= MOST_DRAWN:
        shown += [_tests(model, members, causes), _differences(members, end, free)]
    caption = captions["free" if causes else "survival"]
    shown.append(_over_time(members, times, caption, f"{free}survival", _survival))
    for name, cause in causes.items():
        caption = f"Probability of the event {name}, before any other event"
        quantity, estimate = f"probability of {name}", partial(_incidence, cause)
        shown.append(_over_time(members, times, caption, quantity, estimate))
    if not hasattr(model, "of_group"):
        shown.append(_parameters(model))
    drawn = _figures(model, members, causes, end, unit) if len(members) <= MOST_DRAWN else []
    if hasattr(model, "number_at_risk"):
        at_risk = _over_time(members, times, "Number at risk (noisy)", "number at risk", _at_risk)
        # A figure has them.
        shown.append(Shown(None, at_risk.numbers) if drawn else at_risk)
    return {
        "end": end,
        "unit": unit,
        "notes": getattr(model, "_horizon_words", list)(),
        "figures": drawn,
        "tables": [one.table for one in shown if one.table],
        "numbers": [number for one in shown for number in one.numbers],
        "left": len(labels) - len(names),
    }


def _summaries(members: Mapping[str, Any], end: float, free: str) -> Shown:
    mean_to = f"{free}mean up to {short(end)}"
    numbers, rows = [], []
    for name, member in members.items():
        with suppressed_warnings():  # the table says which times are after the end
            median = member.percentile_interval(n_resamples=N_RESAMPLES)
        median = ShownNumber(f"{free}median", name, *median)
        mean = member.restricted_mean_survival_time(n_resamples=N_RESAMPLES)
        numbers += [median, ShownNumber(mean_to, name, *mean)]
        upper = f" to {by_end(median.high, end)}" if median.low <= end else ""
        row = [name, by_end(median.estimate, end), by_end(median.low, end) + upper]
        rows.append([*row, short(mean.estimate), between(mean.lower, mean.upper)])
        if counted := hasattr(member, "event_table"):
            events = ShownNumber(
                "number of events", name, float(member.event_table["observed"].sum())
            )
            numbers.append(events)
            rows[-1].insert(1, f"{events.estimate:,.0f}")
    head = ["Group", "Median", "95 % interval", mean_to.capitalize(), "95 % interval"]
    head[1:1] = ["Events (noisy)"] * counted
    return Shown(Table(WORDS["captions"]["times_free" if free else "times"], head, rows), numbers)


def _tests(model: Any, members: Mapping[str, Any], causes: Mapping[str, Any]) -> Shown:
    """Return a test of all groups and of each pair, for each cause by itself."""
    numbers, columns = [], []
    names = {f" of {name}": cause for name, cause in causes.items()} or {"": None}
    for name, cause in names.items():
        tests = {}
        if len(members) > 2:
            tests["all groups"] = comparisons.multivariate_logrank_test(model, cause=cause)
        for (one, a), (other, b) in combinations(members.items(), 2):
            tests[f"{one} against {other}"] = comparisons.logrank_test(a, b, cause=cause)
        found = {whom: test.p_value for whom, test in tests.items()}
        numbers += [
            ShownNumber(f"p-value of the log-rank test{name}", *one) for one in found.items()
        ]
        columns.append(["< 0.001" if p < 0.001 else f"{p:.3f}" for p in found.values()])
    head = ["Groups", *(f"p, log-rank{name}" for name in names)]
    caption = WORDS["captions"]["tests_by_cause" if causes else "tests"]
    return Shown(Table(caption, head, list(zip(found, *columns, strict=True))), numbers)


def _differences(members: Mapping[str, Any], end: float, free: str) -> Shown:
    """Return difference and ratio of the means of each pair of groups."""
    numbers, rows = [], []
    for (one, a), (other, b) in combinations(members.items(), 2):
        pair, what = f"{one} against {other}", f"{free}means up to {short(end)}"
        means = comparisons.compare_restricted_means(a, b, n_resamples=N_RESAMPLES)
        difference, ratio = (tuple(means.loc[row]) for row in ("difference", "ratio"))
        numbers += [
            ShownNumber(f"difference of {what}", pair, *difference),
            ShownNumber(f"ratio of {what}", pair, *ratio),
        ]
        by_difference = [short(difference[0]), between(difference[1], difference[2])]
        by_ratio = [f"{ratio[0]:.3f}", between(ratio[1], ratio[2], digits=3)]
        rows.append([pair, *by_difference, *by_ratio])
    head = ["Groups", f"Difference of {free}means", "95 % interval", "Ratio", "95 % interval"]
    return Shown(Table(WORDS["captions"]["differences"], head, rows), numbers)


def _survival(member: Any, times: FloatArray) -> tuple[Any, Any]:
    band = member.survival_band(times) if hasattr(member, "survival_band") else None
    return member.survival_function_at_times(times), band


def _incidence(cause: Any, member: Any, times: FloatArray) -> tuple[Any, Any]:
    band = member.cumulative_density_band(times, cause=cause, n_resamples=N_RESAMPLES)
    return member.cumulative_density_at_times(times, cause=cause), band


def _at_risk(member: Any, times: FloatArray) -> tuple[Any, Any]:
    return member.number_at_risk(times), None


def _over_time(
    members: Mapping[str, Any], times: FloatArray, caption: str, quantity: str, estimate: Any
) -> Shown:
    """Return a row for each time, or for each group where there are many."""
    ticks = list(map(short, times.tolist()))
    names = [f"{quantity} at {tick}" for tick in ticks]
    columns = {}
    for name, member in members.items():
        found, band = estimate(member, times)
        ends = [] if band is None else [band["lower"], band["upper"]]
        of_whom = [name] * len(names)
        values = (np.asarray(one, dtype=np.float64).tolist() for one in (found, *ends))
        columns[name] = list(map(ShownNumber, names, of_whom, *values))
    write = probability if estimate is not _at_risk else lambda one: f"{one.estimate:,.0f}"
    cells = {name: list(map(write, column)) for name, column in columns.items()}
    rows: list[Any] = [(name, *column) for name, column in cells.items()]
    head: tuple[str, ...] = ("Group", *(f"at {tick}" for tick in ticks))
    if len(members) <= len(ticks):
        head, rows = ("Time", *members), list(zip(ticks, *cells.values(), strict=True))
    return Shown(Table(caption, head, rows), [one for column in columns.values() for one in column])


def _parameters(model: Any) -> Shown:
    summary = model.summary
    numbers = [ShownNumber(str(name), "everybody", *row) for name, *row in summary.itertuples()]
    rows = [(str(name), *map(short, row)) for name, *row in summary.itertuples()]
    head = ("Parameter", "Estimate", "95 % from", "to")[: 1 + len(summary.columns)]
    formula = ": survival to time t is exp(−(t / lambda_)^rho_)" if hasattr(model, "rho_") else ""
    return Shown(Table(f"Parameters of the distribution{formula}", head, rows), numbers)


def _figures(
    model: Any, members: Mapping[str, Any], causes: Mapping[str, Any], end: float, unit: str
) -> list[Figure]:
    caption = WORDS["captions"]["figure_free" if causes else "figure"]
    height, at_risk, names = 3.6, hasattr(model, "number_at_risk"), list(members)
    if at_risk:
        caption += ", and noisy numbers at risk"
        height += 0.18 * (1 + len(names))
    options = {"n_resamples": N_RESAMPLES, "at_risk_counts": at_risk, "time_unit": unit or None}

    def draw(ax: Any) -> None:
        model.plot(ax=ax, labels=cut(names, 24), **options)
        if causes:
            ax.set_ylabel("Probability of no event")

    found = figures(draw, "survival", height, f"{caption}.")
    if 0 < len(causes) <= MOST_DRAWN:
        caption = WORDS["captions"]["incidence"]
        everybody = {name: (cause, model) for name, cause in causes.items()}
        drawings = [("incidence", "each event, of everybody", everybody)]
        if len(members) > 1:
            drawings = [
                (f"incidence-{k}", f"the event {name}", {n: (cause, m) for n, m in members.items()})
                for k, (name, cause) in enumerate(causes.items(), start=1)
            ]
        for file, of, lines in drawings:
            draw_lines = partial(_draw_incidences, lines, end, unit)
            found += figures(draw_lines, file, 3.6, caption.format(of))
    return found


def _draw_incidences(lines: Mapping[str, tuple[Any, Any]], end: float, unit: str, ax: Any) -> None:
    """Draw cumulative incidences: of a cause in a group, by names."""
    times, drawn = np.linspace(0.0, end, 101), []
    for i, (cause, member) in enumerate(lines.values()):
        found, band = _incidence(cause, member, times)
        look = {"color": colour(i), "alpha": 0.18, "linewidth": 0.0}
        ax.fill_between(times, band["lower"], band["upper"], **look)
        drawn += ax.plot(times, found.to_numpy(), color=colour(i), linewidth=LINE_WIDTH)
    dress(ax, end, unit or None)
    ax.set_ylabel("Probability of the event")
    legend_beside(ax, drawn, cut(list(lines), 24))
