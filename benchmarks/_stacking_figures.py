"""Figures of the stacking benchmark: a panel for each data set, 95 % intervals of means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks._classification import interval, spread
from benchmarks._common import save, sheet
from benchmarks._run import part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {
    "PLR": {"color": "0.25", "marker": "v", "linestyle": ":"},
    "PST-S": {"color": "#CC79A7", "marker": "^", "linestyle": "--"},
    "PST-F(U)": {"color": "#009E73", "marker": "s"},
    "PST-F(W)": {"color": "#D55E00", "marker": "D"},
    "weighted vote (U)": {"color": "#56B4E9", "marker": "P", "linestyle": "-."},
    "weighted vote (W)": {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
}


def axes_of(names: list[str], rows: int = 1) -> tuple[Figure, np.ndarray]:
    """Return a figure with a panel for each data set."""
    drawn = sheet(3.4 * len(names) + 0.6, 3.2 * rows + 0.9)
    panels = drawn.subplots(rows, len(names), squeeze=False)
    for ax in panels.flat:
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return drawn, panels


def ends_of(found: pd.DataFrame, keys: list[str]) -> list[float]:
    """Return the ends of all intervals, to fit an axis to."""
    return [
        mean + sign * width
        for mean, width in (interval(part["auc"].to_numpy()) for _, part in found.groupby(keys))
        for sign in (-1, 1)
    ]


def curve(ax: Axes, places: np.ndarray, groups: list[np.ndarray], name: str) -> None:
    """Draw means and their intervals."""
    means, widths = zip(*map(interval, groups), strict=True)
    style = {"linewidth": 1.5, "markersize": 5, "capsize": 2, "elinewidth": 0.9} | STYLES[name]
    ax.errorbar(places, means, yerr=widths, label=name, **style)


def legend(drawn: Figure, ax: Axes, columns: int) -> None:
    """Draw one legend under all panels."""
    handles, labels = ax.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


@part("figure over epsilon")
def epsilon_figure(found: pd.DataFrame, epsilons: tuple[float, ...]) -> None:
    """Draw figure 1: published above, the default calibration below."""
    names = list(dict.fromkeys(found["data"]))
    drawn, panels = axes_of(names, rows=2)
    ends = {
        name: ends_of(found[found["data"] == name], ["method", "epsilon", "calibration"])
        for name in names
    }
    for i, calibration in enumerate(("published", "tight")):
        for ax, name in zip(panels[i], names, strict=True):
            part = found[(found["data"] == name) & (found["calibration"] == calibration)]
            for method in dict.fromkeys(part["method"]):
                same = part[part["method"] == method]
                scores = [same[same["epsilon"] == place]["auc"].to_numpy() for place in epsilons]
                curve(ax, np.array(epsilons), scores, method)
            spread(ax.yaxis, ends[name])
            ax.set_xscale("log")
            ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            ax.minorticks_off()
            kind = "published, tuned on the test rows" if i == 0 else "default, untuned"
            ax.set_title(f"{name}\n{kind}", loc="left", fontsize=10, fontweight="bold")
        panels[i][0].set_ylabel("Test AUC")
    for ax in panels[-1]:
        ax.set_xlabel("ε")
    legend(drawn, panels[-1][0], 6)
    save(drawn, "stacking_epsilon")


@part("figure of a panel for each data set")
def panels_figure(
    found: pd.DataFrame, column: str, places: tuple[float, ...], label: str, name: str
) -> None:
    """Draw figure 2 or 3; methods with no place in ``column`` become lines across."""
    names = list(dict.fromkeys(found["data"]))
    drawn, (panels,) = axes_of(names)
    for ax, data in zip(panels, names, strict=True):
        part = found[found["data"] == data]
        for method in STYLES:
            same = part[part["method"] == method]
            if same.empty:
                continue
            if same[column].isna().all():
                style = {"color": STYLES[method]["color"], "linestyle": "--", "linewidth": 1.3}
                ax.axhline(same["auc"].mean(), label=method, **style)
                continue
            scores = [same[same[column] == place]["auc"].to_numpy() for place in places]
            curve(ax, np.arange(len(places)), scores, method)
        spread(ax.yaxis, ends_of(part.fillna({column: 0.0}), ["method", column]))
        ax.set_xticks(range(len(places)), [f"{place:g}".replace("-", "−") for place in places])
        ax.set_xlabel(label)
        ax.set_title(data, loc="left", fontsize=11, fontweight="bold")
    panels[0].set_ylabel("Test AUC at ε = 1")
    legend(drawn, panels[0], 4)
    save(drawn, name)


@part("figure of combiners")
def combiner_figure(found: pd.DataFrame) -> None:
    """Draw figure 4: a line for each combiner, a panel for each data set."""
    names = list(dict.fromkeys(found["data"]))
    kinds = [kind for kind in dict.fromkeys(found["combiner"]) if "without" not in kind]
    alone = [kind for kind in kinds if "alone" in kind]
    tops = [kind for kind in kinds if "on top" in kind]
    kinds = [*alone, "PLR", *tops, "vote", "weighted vote"]
    colours = ["0.6"] * len(alone) + ["0.25"] + ["#D55E00"] * len(tops) + ["#56B4E9", "#0072B2"]
    drawn = sheet(3.1 * len(names) + 2.2, 4.3)
    panels = drawn.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for ax, name in zip(panels, names, strict=True):
        for place, (kind, colour) in enumerate(zip(kinds, colours, strict=True)):
            same = found[(found["data"] == name) & (found["combiner"] == kind)]["auc"]
            mean, width = interval(same.to_numpy())
            ax.errorbar(mean, place, xerr=width, color=colour, marker="o", markersize=6, capsize=3)
        spread(ax.xaxis, ends_of(found[found["data"] == name], ["combiner"]))
        ax.set_title(name, loc="left", fontsize=11, fontweight="bold")
        ax.set_xlabel("Test AUC at ε = 1")
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(kinds)), kinds)
    panels[0].invert_yaxis()
    save(drawn, "stacking_combiners")
