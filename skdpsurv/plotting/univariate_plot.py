"""Survival functions with intervals, and noisy numbers at risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting import style
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_N_TIMES = 201
_BAND_ALPHA = 0.18
#: Models that are no releases, for comparison: dashed and thin.
_DASH, _THIN = (4.0, 1.5), 1.5
#: Distances from the axes to the heading of numbers at risk, and between lines, in points: a layout
#: may change the height of the axes.
_TOP, _LINE = 46.0, 12.5


def plot_univariate(
    models: Any,
    *,
    ax: Axes | None = None,
    times: ArrayLike | None = None,
    band: bool = True,
    level: float = 0.95,
    n_resamples: int = 500,
    labels: Sequence[str] | None = None,
    colors: Sequence[Any] | None = None,
    time_unit: str | None = None,
    time_scale: float = 1.0,
    at_risk_counts: bool = False,
    legend: bool = True,
) -> Axes:
    """Draw fitted survival functions, each with a band for its uncertainty.

    The figure uses the releases alone. It is as private as these, band included, and costs no
    budget. A model of lifelines in it is not private.

    Parameters
    ----------
    models : estimator or mapping of str to estimator
        Fitted, with a ``survival_function_at_times``: models of this package, with a band if they
        have a ``survival_band``, and of lifelines, as dashed lines. The keys of a mapping name the
        models in the legend; the first lies on top.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure. Subplots without a layout get
        matplotlib's constrained layout, so that nothing beside the axes is cut off.
    times : array-like of shape (n_times,), optional
        Times of the curves, in the models' unit, nonnegative, rising and up to ``max_time``. If
        omitted, from 0 to each model's; models without one end with the longest curve.
    band : bool, default=True
        Draw pointwise intervals of the survival function.
    level : float, default=0.95
        Coverage of the intervals.
    n_resamples : int, default=500
        Number of simulated fits behind a band; a few milliseconds each.
    labels : sequence of str, optional
        Names in the legend, in the order of the models. The keys of a mapping if omitted; for one
        model, its epsilon.
    colors : sequence of matplotlib colors, optional
        Colors in the order of the models, cyclically; lines are dashed where they come again.
    time_unit : str, optional
        Unit of the drawn time axis, for its label.
    time_scale : float, default=1.0
        Length of one drawn unit in the models' unit of time. Models fitted in days are drawn in
        years with ``time_scale=365.25, time_unit="years"``.
    at_risk_counts : bool, default=False
        Write noisy numbers at risk under the axes, if models have them, as
        :func:`add_at_risk_counts` does.
    legend : bool, default=True
        Draw a legend beside the axes.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If a model has no ``survival_function_at_times``.
    sklearn.exceptions.NotFittedError
        If a model is not fitted.
    ValueError
        If there is no model, ``labels`` does not name every model, ``colors`` is empty, no model
        states a ``max_time`` and there are no ``times``, or a number is out of range.

    See Also
    --------
    skdpsurv.survival.DPWeibullFitter.survival_band : What the band shows.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPWeibullFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.plotting import plot_univariate
    >>> y = load_flchain().y
    >>> fitter = DPWeibullFitter(epsilon=1.0, max_time=5200.0).fit(y["futime"], y["death"])
    >>> ax = Figure().subplots()
    >>> ax = plot_univariate(fitter, ax=ax, n_resamples=50, time_scale=365.25, time_unit="years")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ε = 1', '95 % interval']
    """
    named = style.by_name(models, "model", "survival_function_at_times")
    fitted = list(named.values())
    for model in fitted:
        if hasattr(model, "epsilon"):
            check_is_fitted(model, "release_")
    names = style.checked_labels(labels, [n or _name(m) for n, m in named.items()], "models")
    palette, n_colors = _palette(colors, len(fitted))
    scale = positive_number("time_scale", time_scale)
    grids = _grids(fitted, times)
    pairs = zip(fitted, grids, strict=True)
    survival = [np.asarray(model.survival_function_at_times(t)) for model, t in pairs]
    bands = {
        i: model.survival_band(grids[i], level, n_resamples)
        for i, model in enumerate(fitted)
        if band and hasattr(model, "survival_band")
    }
    known = [i for i, model in enumerate(fitted) if hasattr(model, "number_at_risk")]
    if ax is None:
        height = 5.0 + 0.18 * (1 + len(known)) * at_risk_counts
        ax = style.new_axes("plot_univariate", height)

    handles: list[Any] = []
    for i in reversed(range(len(fitted))):  # the first model last, so that it lies on top
        t, steps = grids[i] / scale, hasattr(fitted[i], "unique_times_")
        if i in bands:
            shade: dict[str, Any] = {"alpha": _BAND_ALPHA, "linewidth": 0.0, "color": palette[i]}
            lower, upper = bands[i]["lower"], bands[i]["upper"]
            # All bands are below all lines.
            ax.fill_between(t, lower, upper, step="post" if steps else None, zorder=1.5, **shade)
        turn = i // n_colors
        line: dict[str, Any] = {"linewidth": LINE_WIDTH, "linestyle": style.line_style(turn)}
        if not hasattr(fitted[i], "release_"):
            line = {"linewidth": _THIN, "linestyle": style.line_style(turn, _DASH)}
        drawstyle = "steps-post" if steps else "default"
        handles[:0] = ax.plot(t, survival[i], color=palette[i], drawstyle=drawstyle, **line)
    style.dress(ax, max(float(t[-1]) for t in grids) / scale, time_unit)
    if legend:
        entries = list(names)
        if bands:
            from matplotlib.patches import Patch

            handles.append(Patch(color="0.3", alpha=_BAND_ALPHA, linewidth=0.0))
            entries.append(f"{100 * level:g} % interval")
        style.legend_beside(ax, handles, entries)
    if at_risk_counts and known:
        rows = {f"{i}": fitted[i] for i in known}
        labels, colors = [names[i] for i in known], [palette[i] for i in known]
        add_at_risk_counts(rows, ax=ax, labels=labels, colors=colors, time_scale=scale)
    return ax


def add_at_risk_counts(
    models: Any,
    *,
    ax: Axes,
    labels: Sequence[str] | None = None,
    colors: Sequence[Any] | None = None,
    time_scale: float = 1.0,
) -> Axes:
    """Write noisy numbers at risk under the time axis of a figure of survival curves.

    The numbers are estimates from the releases alone, rounded to whole people. They cost no budget.

    Parameters
    ----------
    models : estimator or mapping of str to estimator
        Fitted, with a ``number_at_risk``.
    ax : matplotlib.axes.Axes
        Axes with their curves.
    labels : sequence of str, optional
        Names of the rows. The keys of a mapping, or the models' labels, if omitted.
    colors : sequence of matplotlib colors, optional
        Colors of the names, in the order of the models, cyclically.
    time_scale : float, default=1.0
        Length of one drawn unit in the models' unit of time.

    Returns
    -------
    matplotlib.axes.Axes
        The given axes.

    Raises
    ------
    TypeError
        If a model has no ``number_at_risk``.
    ValueError
        If ``labels`` does not name every model.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.plotting import add_at_risk_counts, plot_univariate
    >>> y = load_flchain().y
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0).fit(y["futime"], y["death"])
    >>> ax = plot_univariate(fitter, ax=Figure().subplots())
    >>> ax = add_at_risk_counts(fitter, ax=ax)
    """
    named = style.by_name(models, "model", "number_at_risk")
    names = style.checked_labels(labels, [n or m.label for n, m in named.items()], "models")
    names = style.cut(names, 24)
    palette, _ = _palette(colors, len(names))
    scale = positive_number("time_scale", time_scale)
    left, right = ax.get_xlim()
    ticks = np.array([tick for tick in ax.get_xticks() if left <= tick <= right * (1 + 1e-9)])
    where: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    where |= {"va": "center", "fontsize": "small", "annotation_clip": False}

    def write(text: str, x: float, line: int, right: float = 0.0, **own: Any) -> None:
        ax.annotate(text, (x, 0.0), xytext=(right, -(_TOP + _LINE * line)), **where, **own)

    style.make_room(ax)
    write("At risk (noisy)", left, 0, ha="left", color="0.35")
    for i, model in enumerate(named.values()):
        write(names[i], left, i + 1, -30.0, ha="right", color=palette[i])
        end = _end(model)
        known = ticks[ticks * scale <= end * (1 + 1e-9)]
        numbers = model.number_at_risk(np.minimum(known * scale, end))
        for tick, number in zip(known, numbers, strict=True):
            write(f"{number:,.0f}", tick, i + 1, ha="center")
    return ax


def _palette(colors: Sequence[Any] | None, n: int) -> tuple[list[Any], int]:
    """Return a colour for each model, cyclically, and the number of colours."""
    given = list(COLOURS if colors is None else colors)
    if not given:
        raise ValueError("colors must hold at least one color.")
    return [given[i % len(given)] for i in range(n)], len(given)


def _name(model: Any) -> str:
    """Return the name of a single model."""
    if not hasattr(model, "release_"):
        return type(model).__name__.removesuffix("Fitter")
    epsilon = model.guarantee_.epsilon
    return "No privacy" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _end(model: Any) -> float:
    """Return the horizon of a release; infinite for other models."""
    if not hasattr(model, "release_"):
        return math.inf
    return float(model.release_.parameters["max_time"])


def _grids(models: list[Any], times: ArrayLike | None) -> list[FloatArray]:
    """Return the times of each model's curve."""
    if times is not None:
        grid = np.asarray(times, dtype=np.float64)
        if grid.ndim != 1 or grid.size == 0 or not (grid[0] >= 0 and np.all(np.diff(grid) > 0)):
            raise ValueError("times must be a one-dimensional array of rising times from 0 on.")
        return [grid] * len(models)
    known = [end for end in map(_end, models) if end < math.inf]
    if not known:
        raise ValueError("times must be given, as no model states a max_time.")
    # Denser at the start, where many curves are steep.
    parts = np.linspace(0.0, 1.0, _N_TIMES) ** 2
    return [
        np.unique([0.0, *model.unique_times_, end])
        if hasattr(model, "unique_times_")
        else parts * end
        for model, end in zip(models, [min(_end(m), max(known)) for m in models], strict=True)
    ]
