"""Panels of AUCs, one for each data set, on the scale of log odds, with 95 % intervals of means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.pages import interval, panel, sheet
from benchmarks.papers.stacking import PLR, SAMPLES, UNIFORM, VOTE_U, VOTE_W, WEIGHTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

STYLES = {
    PLR: {"color": "0.25", "marker": "v", "linestyle": ":"},
    SAMPLES: {"color": "#CC79A7", "marker": "^", "linestyle": "--"},
    UNIFORM: {"color": "#009E73", "marker": "s"},
    WEIGHTED: {"color": "#D55E00", "marker": "D"},
    VOTE_U: {"color": "#56B4E9", "marker": "P", "linestyle": "-."},
    VOTE_W: {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
}
TICKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993)
TICKS += (0.995, 0.997, 0.998, 0.999)


def axes_of(names: Sequence[str], rows: int = 1) -> tuple[Figure, np.ndarray]:
    """Return a figure with a panel for each data set, in each of some rows."""
    drawn = sheet(3.4 * len(names) + 0.6, 3.2 * rows + 0.9)
    panels = drawn.subplots(rows, len(names), squeeze=False)
    for ax in panels.flat:
        panel(ax)
    return drawn, panels


def curve(ax: Axes, places: Sequence[float], scores: Iterable[np.ndarray], name: str) -> None:
    """Draw means and their intervals."""
    means, widths = zip(*map(interval, scores), strict=True)
    style = {"linewidth": 1.5, "markersize": 5, "capsize": 2, "elinewidth": 0.9} | STYLES[name]
    ax.errorbar(places, means, yerr=widths, label=name, **style)


def legend(drawn: Figure, ax: Axes, columns: int) -> None:
    """Draw one legend under all panels."""
    handles, labels = ax.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def ends(scores: Iterable[np.ndarray]) -> list[float]:
    """Return the ends of the intervals, to fit an axis to."""
    found = map(interval, scores)
    return [mean + sign * np.nan_to_num(width) for mean, width in found for sign in (-1.0, 1.0)]


def spread(axis: Axis, places: Iterable[float]) -> None:
    """Put AUCs on the scale of log odds, where 0.98 and 0.99 are as far apart as 0.7 and 0.83."""

    def odds(scores: np.ndarray) -> np.ndarray:
        inside = np.clip(scores, 0.2, 0.9995)
        return np.log(inside / (1.0 - inside))

    # The figure's own function, since an axis has none: x and y are alike.
    across = axis.axis_name == "x"
    set_scale = axis.axes.set_xscale if across else axis.axes.set_yscale
    set_limits = axis.axes.set_xlim if across else axis.axes.set_ylim
    set_scale("function", functions=(odds, lambda place: 1.0 / (1.0 + np.exp(-place))))
    reached = odds(np.array(list(places)))
    least, most = reached.min(), reached.max()
    margin = 0.07 * (most - least) + 0.02
    low, high = 1.0 / (1.0 + np.exp([margin - least, -most - margin]))
    set_limits(low, min(high, 0.9995))
    apart = (0.17 if across else 0.07) * (most - least)
    ticks: list[float] = []
    for tick in TICKS:
        if low <= tick <= high and (
            not ticks or np.diff(odds(np.array([ticks[-1], tick]))) > apart
        ):
            ticks.append(tick)
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)
