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
from skdpsurv.dp.guarantee import FrozenMapping
from skdpsurv.dp.references import phrase
from skdpsurv.evaluation.forecast_studies import ERROR_OF, MEDIAN, Run
from skdpsurv.inference.uncertainty import half_width
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH, frame, pyplot

#: Quantiles of simulated studies that bound a range.
ENDS = (0.1, 0.9)
#: Measures with a range.
WITH_RANGE = ("c_index", "auc", "largest_error", "loss", "calibration")
#: Measures in words, and the label of their loss in a figure.
WORDS = {
    "c_index": ("C-index", "Loss in C-index"),
    "auc": ("AUC", "Loss in AUC"),
    "largest_error": ("largest error of the survival curve", "Loss in largest error"),
}
#: Mean losses that advice calls acceptable: it looks for the first, else for the second.
TOLERANCES = (0.01, 0.02)
#: Share of finite intervals from which advice says that most are.
MOST_INTERVALS = 0.5
#: Advice names terms whose ratio is uncertain by more than this factor.
WIDE_FACTOR = 2.0
#: Widths of intervals that can be drawn, with their labels.
WIDTHS = {
    MEDIAN: "Width of an interval,\nrelative to no privacy",
    "width_middle": "Width of the interval\nhalf-way",
}


def by_study(runs: Sequence[Run]) -> pd.DataFrame:
    """Return all measures, by study and epsilon."""
    each = {study: pd.DataFrame.from_dict(run, orient="index") for study, run in enumerate(runs)}
    return pd.concat(each, names=["study", "epsilon"])


def summarised(runs: Sequence[Run], headline: str) -> pd.DataFrame:
    """Return means, and ranges of some measures, by epsilon; the headline also as a loss."""
    sign = 1.0 if headline == "largest_error" else -1.0
    rows: dict[float, dict[str, float]] = {}
    without = np.array([run[math.inf][headline] for run in runs])
    for epsilon in runs[0]:
        studies = pd.DataFrame([run[epsilon] for run in runs])
        studies = studies.drop(columns=[name for name in studies if name.startswith(ERROR_OF)])
        studies.insert(1, "loss", sign * (studies[headline].to_numpy() - without))
        rows[epsilon] = row = {}
        for name in studies:
            # Widths may be infinite.
            row[name] = studies[name].median() if name == MEDIAN else studies[name].mean()
            if name in WITH_RANGE:
                row[f"{name}_low"], row[f"{name}_high"] = studies[name].quantile(ENDS)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="epsilon")


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyForecast:
    """Forecast of a study's accuracy at each epsilon, by simulation.

    No private record is used.

    Parameters
    ----------
    table : pandas.DataFrame
        Indexed by epsilon; the last row, ``inf``, is a fit without privacy: by maximum likelihood,
        unless the estimator has a penalty that is a number. Columns are means over the simulated
        studies; ``_low`` and ``_high`` are the ends of the middle 80 % of them.

        ``c_index``, or ``auc``
            Ranking by a regression, on fresh records.
        ``loss``
            Difference to a fit without privacy, on the same records.
        ``calibration``
            Mean predicted risk (at the horizon) over mean true risk.
        ``risk_error``
            Mean absolute error of predicted risk (at the horizon).
        ``brier``
            Expected Brier score; for survival, its mean over the follow-up.
        ``interval_width``, ``finite_intervals``
            With ``inference_share``: the width of an interval of a log hazard or odds ratio,
            relative to no privacy, and the share of finite ones. The width is the median of
            columns, and of studies; it is infinite if at least half of them are.
        ``coefficient_error``
            With ``inference_share``: root mean square error of ``coef_`` over columns, in standard
            errors of maximum likelihood (Cox or logistic regression); about 1 without privacy.
        ``largest_error``, ``mean_error``
            Absolute errors of a survival curve, over the follow-up; ``loss`` is about the largest.
        ``restricted_mean_error``, ``median_error``
            Absolute errors of the mean time free of the event until the horizon, and of the median
            if that comes before the horizon, in units of the horizon.
        ``width_middle``, ``width_horizon``
            Width of the interval of survival half-way, and at the horizon.
    headline : str
        The measure that ``loss`` compares.
    about : mapping
        Settings of the simulation.
    on_delta : str, default=""
        How much a delta would reduce the noise, and what it gains; a part of ``advice``.
    studies : pandas.DataFrame or None
        The measures of each simulated study, indexed by study and epsilon: how sure ``table`` is.
    ranges : mapping, default={}
        With ``inference_share`` and ``PublicColumns``: the range of each term, for ``terms``.
    """

    table: pd.DataFrame
    headline: str
    about: Mapping[str, Any]
    on_delta: str = ""
    studies: pd.DataFrame | None = None
    ranges: Mapping[str, Any] = FrozenMapping({})

    @property
    def terms(self) -> pd.DataFrame:
        """How sure the effect of each term will be: a column, a spline, a category, a product.

        Indexed by term and epsilon, ``inf`` being a fit without privacy. The effect is a log ratio
        over ``range``: the middle half of a column's bounds, or between labels, where it is least
        sure; of a product, how the effect of one column over its range changes over the other's.
        ``se`` is its standard error, by sampling and noise: the median of studies, and infinite
        where noise hides it in half of them. A 95 % interval of the ratio reaches from its estimate
        divided by ``factor`` to the estimate times ``factor``. Empty without standard errors.
        """
        rows = []
        if self.studies is not None:
            errors = self.studies.groupby("epsilon").median()
            for term, range_ in self.ranges.items():
                for epsilon, se in errors[f"{ERROR_OF}{term}"].items():
                    with np.errstate(over="ignore"):
                        rows.append((term, epsilon, range_, se, np.exp(half_width(0.95) * se)))
        found = pd.DataFrame(rows, columns=["term", "epsilon", "range", "se", "factor"])
        return found.set_index(["term", "epsilon"])

    def smallest_epsilon(self, tolerance: float = TOLERANCES[0]) -> float | None:
        """Return the smallest epsilon from which on the mean loss is within a tolerance.

        Parameters
        ----------
        tolerance : float, default=0.01
            Largest mean loss, in [0, 1].

        Returns
        -------
        float or None
            One of the simulated epsilons, or None.
        """
        number_in(0.0, 1.0)("tolerance", tolerance)
        return self._smallest(self._private["loss"] <= tolerance)

    @staticmethod
    def _smallest(acceptable: pd.Series) -> float | None:
        """Return the smallest epsilon such that it and all larger ones are acceptable, or None."""
        below = acceptable.index[~acceptable.to_numpy(dtype=bool)]
        found = acceptable.index[acceptable.index > max(below, default=-math.inf)]
        return float(found[0]) if len(found) else None

    @property
    def _private(self) -> pd.DataFrame:
        return self.table[np.isfinite(self.table.index)]

    @property
    def advice(self) -> str:
        """Advice on epsilon, on a delta if it would help, and on intervals if there are some."""
        intervals = self._advice_on_intervals() if "finite_intervals" in self.table else ""
        said = self._advice_on_loss(), intervals, self._advice_on_terms(), self.on_delta
        return " ".join(filter(None, said))

    def _advice_on_terms(self) -> str:
        """Name the terms whose intervals would be wide, and up to which epsilon."""
        wide = []
        for term, factors in self.terms["factor"].groupby("term", sort=False):
            private = factors.droplevel("term").drop(math.inf)
            if len(private := private[private > WIDE_FACTOR]):
                at, factor = private.index[-1], private.iloc[-1]
                shown = f"up to epsilon {at:g}: {factor_in_words(factor)}"
                wide.append(f"{term} ({self.ranges[str(term)]}) {shown}")
        return phrase("wide_terms", factor=WIDE_FACTOR, terms="; ".join(wide)) if wide else ""

    def _advice_on_intervals(self) -> str:
        private = self._private["finite_intervals"]
        epsilon = self._smallest(private >= MOST_INTERVALS)
        if epsilon is not None:
            return phrase("finite_from", epsilon=epsilon, share=private.loc[epsilon])
        return phrase("none_finite", epsilon=private.index[-1], share=private.iloc[-1])

    def _advice_on_loss(self) -> str:
        private, above = self._private, self.headline == "largest_error"
        stated: dict[str, Any] = {
            "what": WORDS[self.headline][0],
            "epsilons": ", ".join(f"{epsilon:g}" for epsilon in private.index),
            "side": "above" if above else "below",
        }
        for tolerance in TOLERANCES:
            epsilon = self.smallest_epsilon(tolerance)
            if epsilon is not None:
                worst = max(private.loc[epsilon, "loss_high"], 0.0)
                stated |= {"epsilon": epsilon, "tolerance": tolerance, "worst": worst}
                return phrase("small_loss", **stated)
        stated |= {"epsilon": private.index[-1], "loss": private["loss"].iloc[-1]}
        return phrase("large_loss", **stated, tolerance=TOLERANCES[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON's types; infinity becomes the text "inf", and NaN null."""
        rows = self.table.reset_index().to_dict("records")
        terms = [
            {name: x if isinstance(x, str) else _plain(x) for name, x in row.items()}
            for row in self.terms.reset_index().to_dict("records")
        ]
        return {
            "about": dict(self.about),
            "headline": self.headline,
            "table": [{str(name): _plain(x) for name, x in row.items()} for row in rows],
            "advice": self.advice,
        } | ({"terms": terms} if terms else {})

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss, calibration and the width of intervals against epsilon.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes for the loss alone. If omitted, a new figure with all panels.

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
        return f"AccuracyForecast({about})\n{self._cells().to_string()}\n{self.advice}"

    def _repr_html_(self) -> str:
        return f"{self._cells().to_html()}<p>{html.escape(self.advice)}</p>"

    def _cells(self) -> pd.DataFrame:
        """Return the table as text, with ranges beside means; a rounded loss of 0 has no sign."""
        cells = self.table.map(lambda x: "" if math.isnan(x) else f"{round(x, 3) + 0.0:.3f}")
        for name in WITH_RANGE:
            if name in cells:
                low, high = cells.pop(f"{name}_low"), cells.pop(f"{name}_high")
                cells[name] += " (" + low + " to " + high + ")"
        return cells.rename(index="{:g}".format, columns=lambda name: name.replace("_", " "))


def factor_in_words(factor: float) -> str:
    """Return how far an interval of a ratio reaches to either side."""
    return "without end" if math.isinf(factor) else f"×{factor:.3g}"


def _plain(number: float) -> float | str | None:
    if math.isnan(number):
        return None
    return "inf" if math.isinf(number) else float(number)


def _draw(ax: Any, table: pd.DataFrame, name: str, label: str, without: float, colour: str) -> None:
    """Plot a measure against epsilon, with the middle 80 % of studies, and without privacy."""
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
