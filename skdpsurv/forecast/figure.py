"""Drawings of a forecast: what is lost, and how far off, against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skdpsurv.forecast.setting import MEDIAN
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["plot_forecast"]

#: Of the loss, by the measure that is lost.
LABELS = {
    "c_index": "Loss in C-index",
    "auc": "Loss in AUC",
    "largest_error": "Largest error, beyond that\nwithout privacy",
}
#: Widths of intervals that can be drawn, with their labels.
WIDTHS = {
    "interval_width": "Width of an interval,\nrelative to no privacy",
    "width_middle": "Width of the interval\nhalf-way",
}


def plot_forecast(forecast: Any, ax: Axes | None = None) -> Any:
    """Draw the loss alone on given axes, or all there is in a new figure.

    Parameters
    ----------
    forecast : AccuracyForecast
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes or ndarray of Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    plt = pyplot("plot")
    table = forecast.table[np.isfinite(forecast.table.index)]
    if ax is not None:
        _loss(ax, table, forecast.headline)
        return ax
    widths = [name for name in WIDTHS if name in table and np.isfinite(table[name]).any()]
    n_panels = 1 + ("calibration" in table) + bool(widths)
    figure, axes = plt.subplots(
        1, n_panels, figsize=(3.9 * n_panels, 3.6), layout="constrained", squeeze=False
    )
    panels = list(axes[0])
    _loss(panels.pop(0), table, forecast.headline)
    if "calibration" in table:
        _calibration(panels.pop(0), table)
    if widths:
        _width(panels.pop(0), table, forecast.table[widths[0]].iloc[-1], widths[0])
    figure.suptitle(_title(forecast.about), x=0.01, ha="left", fontsize="medium")
    return axes[0]


def _title(about: Any) -> str:
    parts = [f"{about['n_records']:,} records"]
    if "n_columns" in about:
        parts.append(f"{about['n_columns']} columns")
    share = "positive" if "baseline" not in about else "with an event"
    parts.append(f"{about['event_rate']:.0%} {share}")
    return f"{about['estimator']}: {', '.join(parts)}; {about['n_repeats']} simulated studies"


def _loss(ax: Axes, table: pd.DataFrame, headline: str) -> None:
    _band(ax, table, "loss", COLOURS[0])
    _dress(ax, table.index, LABELS[headline])
    ax.axhline(0.0, color="0.35", linewidth=1.0)
    ax.set_ylim(bottom=min(0.0, 1.1 * float(table["loss_low"].min())))


def _calibration(ax: Axes, table: pd.DataFrame) -> None:
    _band(ax, table, "calibration", COLOURS[1])
    _dress(ax, table.index, "Mean predicted risk / true risk")
    ax.axhline(1.0, color="0.35", linewidth=1.0)


def _band(ax: Axes, table: pd.DataFrame, name: str, colour: str) -> None:
    epsilons = table.index.to_numpy()
    low, high = table[f"{name}_low"].to_numpy(), table[f"{name}_high"].to_numpy()
    ax.fill_between(
        epsilons, low, high, color=colour, alpha=0.2, linewidth=0.0, label="middle 80 % of studies"
    )
    ax.plot(epsilons, table[name], "o-", color=colour, linewidth=LINE_WIDTH, label="mean")
    ax.legend(frameon=False, fontsize="small")


def _width(ax: Axes, table: pd.DataFrame, without: float, name: str) -> None:
    widths, typical = table[name], "median" if name == MEDIAN else "mean"
    ax.plot(widths.index, widths, "o-", color=COLOURS[2], linewidth=LINE_WIDTH, label=typical)
    ax.axhline(without, color="0.35", linewidth=1.0, label="no privacy")
    _dress(ax, widths.index, WIDTHS[name])
    largest = float(widths[np.isfinite(widths)].max())
    ax.set_ylim(0.0, 1.25 * max(largest, without))
    if name == MEDIAN:
        # Infinite widths are not drawn.
        shares = table["finite_intervals"]
        labels = [f"{e:g}\n{share:.0%}" for e, share in zip(shares.index, shares, strict=True)]
        ax.set_xticks(widths.index, labels)
        ax.set_xlabel("ε, and the share of finite intervals")
    ax.legend(frameon=False, fontsize="small")


def _dress(ax: Axes, epsilons: pd.Index, label: str) -> None:
    ax.set_xscale("log")
    ax.set_xlim(epsilons.min() / 1.2, epsilons.max() * 1.2)
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ax.minorticks_off()
    ax.set_xlabel("ε (smaller: more privacy)")
    ax.set_ylabel(label)
    ax.grid(color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
