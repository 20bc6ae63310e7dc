"""AccuracyForecast: what a study would get at each epsilon."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.dp.checks import number_in
from skdpsurv.evaluation.forecast_studies import MEDIAN, Run
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH, frame, pyplot

#: Of simulated studies, between which the ends of a range are.
ENDS = (0.1, 0.9)
#: Measures whose range is told, too.
WITH_RANGE = ("c_index", "auc", "largest_error", "loss", "calibration")
#: Measures, in words, and what a figure says of their loss.
WORDS = {
    "c_index": ("C-index", "Loss in C-index"),
    "auc": ("AUC", "Loss in AUC"),
    "largest_error": (
        "largest error of the survival curve",
        "Largest error, beyond that\nwithout privacy",
    ),
}
#: What may be lost without regret, and without much.
TOLERANCES = (0.01, 0.02)
#: Share of finite intervals with which they can be had.
MOST_INTERVALS = 0.5
#: Widths of intervals that can be drawn, with their labels.
WIDTHS = {
    MEDIAN: "Width of an interval,\nrelative to no privacy",
    "width_middle": "Width of the interval\nhalf-way",
}
HELP = "More records, fewer columns or a larger epsilon would help."


def summarised(runs: Sequence[Run], headline: str) -> pd.DataFrame:
    """Return means, and ranges of some measures, by epsilon."""
    sign = 1.0 if headline == "largest_error" else -1.0
    rows: dict[float, dict[str, float]] = {}
    without = np.array([run[math.inf][headline] for run in runs])
    for epsilon in runs[0]:
        each = pd.DataFrame([run[epsilon] for run in runs])
        each.insert(1, "loss", sign * (each[headline].to_numpy() - without))
        rows[epsilon] = row = {}
        for name in each:
            # Widths may be infinite.
            row[name] = each[name].median() if name == MEDIAN else each[name].mean()
            if name in WITH_RANGE:
                row[f"{name}_low"], row[f"{name}_high"] = each[name].quantile(ENDS)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="epsilon")


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyForecast:
    """What a study would get at each epsilon, by simulation.

    Parameters
    ----------
    table : pandas.DataFrame
        Indexed by epsilon; the last row, ``inf``, is a fit without privacy: by maximum likelihood,
        unless the estimator has a penalty that is a number. Columns are means over
        the simulated studies; ``_low`` and ``_high`` are the ends of the middle 80 % of them.

        ``c_index``, or ``auc``
            Of a regression, on fresh records.
        ``loss``
            How much less that is than without privacy, on the same records.
        ``calibration``
            Mean predicted risk (at the horizon) over mean true risk.
        ``risk_error``
            Mean absolute error of predicted risk (at the horizon).
        ``brier``
            Expected Brier score; of survival, its mean over the follow-up.
        ``interval_width``, ``finite_intervals``
            With ``inference_share``: the width of an interval of a log hazard or odds ratio,
            relative to no privacy (the median of columns, and of studies; infinite where at least
            half of them are), and how often it is finite.
        ``largest_error``, ``mean_error``
            Of a survival curve, over the follow-up, absolute; ``loss`` is of the largest one.
        ``restricted_mean_error``, ``median_error``
            Of the mean time free of the event until the horizon, and of the median where that comes
            before the horizon: absolute, in units of the horizon.
        ``width_middle``, ``width_horizon``
            Of the interval of survival half-way, and at the horizon.
    headline : str
        The measure that ``loss`` is of.
    about : mapping
        What was asked.
    on_delta : str, default=""
        What a delta would leave of the noise, in words; a part of ``advice``.

    Notes
    -----
    Nothing of it depends on a record of anybody.
    """

    table: pd.DataFrame
    headline: str
    about: Mapping[str, Any]
    on_delta: str = ""

    def smallest_epsilon(self, tolerance: float = TOLERANCES[0]) -> float | None:
        """Return the smallest epsilon from which on the mean loss is within a tolerance.

        Parameters
        ----------
        tolerance : float, default=0.01
            Of ``loss``, in [0, 1].

        Returns
        -------
        float or None
            One of those that were asked about; None if none is.
        """
        number_in(0.0, 1.0)("tolerance", tolerance)
        return self._smallest(self._private["loss"] <= tolerance)

    @staticmethod
    def _smallest(fine: pd.Series) -> float | None:
        """Return the smallest epsilon from which on all is fine."""
        below = fine.index[~fine.to_numpy(dtype=bool)]
        found = fine.index[fine.index > max(below, default=-math.inf)]
        return float(found[0]) if len(found) else None

    @property
    def _private(self) -> pd.DataFrame:
        return self.table[np.isfinite(self.table.index)]

    @property
    def advice(self) -> str:
        """What follows for epsilon and, if it would gain, a delta; of intervals, if asked for."""
        found = [self._advice_on_loss(), self.on_delta]
        if "finite_intervals" in self.table:
            found.insert(1, self._advice_on_intervals())
        return " ".join(filter(None, found))

    def _advice_on_intervals(self) -> str:
        private = self._private["finite_intervals"]
        epsilon = self._smallest(private >= MOST_INTERVALS)
        if epsilon is not None:
            return (
                f"Most intervals of coefficients are finite from epsilon {epsilon:g} on: "
                f"{private.loc[epsilon]:.0%} of them there."
            )
        return (
            f"Intervals of coefficients cannot be had: {private.iloc[-1]:.0%} of them are finite "
            f"at {private.index[-1]:g}. {HELP}"
        )

    def _advice_on_loss(self) -> str:
        what, private = WORDS[self.headline][0], self._private
        asked = ", ".join(f"{epsilon:g}" for epsilon in private.index)
        off = "above" if self.headline == "largest_error" else "below"
        for tolerance in TOLERANCES:
            epsilon = self.smallest_epsilon(tolerance)
            if epsilon is not None:
                worst = private.loc[epsilon, "loss_high"]
                return (
                    f"Epsilon {epsilon:g} is the smallest of {asked} at which the {what} is on "
                    f"average within {tolerance:g} of a fit without privacy; one study in ten "
                    f"is {max(worst, 0.0):.3f} or more {off} it."
                )
        return (
            f"At none of {asked} is the {what} on average within {TOLERANCES[-1]:g} of a fit "
            f"without privacy: at {private.index[-1]:g} it is {private['loss'].iloc[-1]:.3f} "
            f"{off} it. {HELP}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON's types; infinity is the text "inf", and NaN is null."""
        rows = self.table.reset_index().to_dict("records")
        return {
            "about": dict(self.about),
            "headline": self.headline,
            "table": [{str(name): _plain(x) for name, x in row.items()} for row in rows],
            "advice": self.advice,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss, calibration and the width of intervals against epsilon.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw the loss alone. A new figure with all panels if omitted.

        Returns
        -------
        matplotlib.axes.Axes or ndarray of Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt, table = pyplot("plot"), self._private
        panels = [("loss", WORDS[self.headline][1], 0.0)]
        if "calibration" in table:
            panels.append(("calibration", "Mean predicted risk / true risk", 1.0))
        widths = [name for name in WIDTHS if name in table and np.isfinite(table[name]).any()]
        panels += [(name, WIDTHS[name], self.table[name].iloc[-1]) for name in widths[:1]]
        if ax is not None:
            _draw(ax, table, *panels[0], COLOURS[0])
            return ax
        size = (3.9 * len(panels), 3.6)
        figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained")
        for each, panel, colour in zip(np.ravel(axes), panels, COLOURS, strict=False):
            _draw(each, table, *panel, colour)
        about = self.about
        columns = f", {about['n_columns']} columns" if "n_columns" in about else ""
        studies = f"{about['n_repeats']} simulated studies"
        title = f"{about['estimator']}: {about['n_records']:,} records{columns}; {studies}"
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
        return np.ravel(axes)

    def __repr__(self) -> str:
        about = ", ".join(f"{name}={value}" for name, value in self.about.items())
        return f"AccuracyForecast({about})\n{_shown(self.table).to_string()}\n{self.advice}"

    def _repr_html_(self) -> str:
        return f"{_shown(self.table).to_html()}<p>{html.escape(self.advice)}</p>"


def _draw(ax: Any, table: pd.DataFrame, name: str, label: str, without: float, colour: str) -> None:
    """Draw a measure against epsilon, and what it is without privacy; infinity is not drawn."""
    epsilons = table.index
    if f"{name}_low" in table:
        shade = {"color": colour, "alpha": 0.2, "linewidth": 0.0, "label": "middle 80 % of studies"}
        ax.fill_between(epsilons, table[f"{name}_low"], table[f"{name}_high"], **shade)
    typical = "median" if name == MEDIAN else "mean"
    ax.plot(epsilons, table[name], "o-", color=colour, linewidth=LINE_WIDTH, label=typical)
    ax.axhline(without, color="0.35", linewidth=1.0)
    ax.set(xscale="log", xlabel="ε (smaller: more privacy)", ylabel=label)
    ax.set_xlim(epsilons.min() / 1.2, epsilons.max() * 1.2)
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ax.minorticks_off()
    frame(ax)
    ax.legend(frameon=False, fontsize="small")


def _plain(number: float) -> float | str | None:
    if math.isnan(number):
        return None
    return "inf" if math.isinf(number) else float(number)


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as text, a range beside its mean."""
    cells, shown = table.map(_rounded), {}
    for name in table:
        if f"{name}_low" in table:
            ends = cells[f"{name}_low"] + " to " + cells[f"{name}_high"]
            shown[name.replace("_", " ")] = cells[name] + " (" + ends + ")"
        elif not name.endswith(("_low", "_high")):
            shown[name.replace("_", " ")] = cells[name]
    labels = pd.Index([f"{epsilon:g}" for epsilon in table.index], name="epsilon")
    return pd.DataFrame(shown).set_axis(labels, axis=0)


def _rounded(number: float) -> str:
    # A rounded loss of nothing has no sign.
    return "" if math.isnan(number) else f"{round(number, 3) + 0.0:.3f}"
