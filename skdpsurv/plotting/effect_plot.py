"""Effect of one column over its range, with a band, against a reference value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting.coefficient_plot import COLUMNS, effect_scale
from skdpsurv.plotting.style import LINE_WIDTH, by_name, colour, frame, legend_beside, new_axes

#: Most times at which an effect is drawn.
N_PLACES = 201

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_effect(
    models: Any,
    column: str,
    *,
    reference: Any = None,
    at: Mapping[str, Any] | None = None,
    ratios: bool = True,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the effect of a column over its range, with a pointwise 95 % band, on the raw axis.

    Parameters
    ----------
    models : estimator, Release, or mapping of str to these
        Regressions that were fitted with ``columns=PublicColumns(...)``, or their releases. Without
        standard errors there is no band.
    column : str
        The raw column.
    reference : object, optional
        The value with which others are compared. None: the column's typical value, else the middle
        of its bounds, or its first label.
    at : dict, optional
        Values of other columns, which matter beside interactions. Otherwise they have their typical
        value, the middle of their bounds, or their first label.
    ratios : bool, default=True
        Draw exp(coef), hazard or odds ratios, on a logarithmic axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.
    legend : bool, default=True
        Name the models, if they have names.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If a model has no effects.
    ValueError
        If the columns of a model are not described, or the values are none of theirs.

    Notes
    -----
    Labels have points and bars. Where noise hides an effect, the band spans the figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import pandas as pd
    >>> from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.plotting import plot_effect
    >>> data = make_discrete_time_survival(5000, 1, random_state=0)
    >>> X = pd.DataFrame({"age": 50 + 20 * data.X[:, 0]})
    >>> columns = PublicColumns({"age": {"spline": (20, 80), "unit": "years"}})
    >>> model = DPDiscreteTimeSurvival(
    ...     3.0, max_time=data.max_time, columns=columns, inference_share=0.3
    ... )
    >>> ax = plot_effect(model.fit(X, data.y), "age", reference=40, ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('age (years)', 'exp(coef), against age = 40')
    """
    named = by_name(models, "model")
    drawn = {name: _estimator(name, model) for name, model in named.items()}
    tables = {
        name: model.effect(column, reference=reference, at=at) for name, model in drawn.items()
    }
    if ax is None:
        ax = new_axes("plot_effect")
    change, bounds = _scale(tables, ratios)
    handles = []
    for k, (model, table) in enumerate(zip(drawn.values(), tables.values(), strict=True)):
        kind = _kind(model, column)
        if kind.labels:
            x: Any = np.arange(len(table)) + 0.12 * (k - (len(tables) - 1) / 2)
            point, low, high = _band(table, change, bounds)
            ax.vlines(x, low, high, color=colour(k), linewidth=LINE_WIDTH)
            handles += ax.plot(x, point, "o", color=colour(k))
            ax.set_xticks(range(len(table)), list(map(str, table.index)))
        else:
            x = table.index.to_numpy()
            x = x.astype("datetime64[D]") if kind.reads_text else x.astype(float)
            handles += _curve(ax, x, _band(table, change, bounds), colour(k))
    reference = kind.example if reference is None else reference
    shown = f"{reference:g}" if isinstance(reference, float) else str(reference)
    ax.set_ylabel(f"{'exp(coef)' if ratios else 'coef'}, against {column} = {shown}")
    ax.set_xlabel(f"{column} ({kind.unit})" if kind.unit else column)
    if legend and list(tables) != [""]:
        legend_beside(ax, handles, list(tables))
    return ax


def plot_effect_over_time(
    models: Any, column: str, *, ratios: bool = True, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw how the effect of a column changes over time, with a pointwise 95 % band.

    Parameters
    ----------
    models : estimator, Release, or mapping of str to these
        Hazard regressions, or their releases. Without standard errors there is no band.
    column : str
        A feature, such as ``"age"`` or ``"stage_II"``; or a column that has one alone.
    ratios : bool, default=True
        Draw exp(coef), hazard ratios for one unit, on a logarithmic axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.
    legend : bool, default=True
        Name the models, if they have names.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If a model has no effects over time.
    ValueError
        If a model has no such feature.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import pandas as pd
    >>> from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.plotting import plot_effect_over_time
    >>> data = make_discrete_time_survival(5000, 1, random_state=0)
    >>> X = pd.DataFrame({"age": 50 + 20 * data.X[:, 0]})
    >>> columns = PublicColumns({"age": {"bounds": (20, 80), "over_time": "log"}})
    >>> model = DPDiscreteTimeSurvival(
    ...     3.0, max_time=data.max_time, columns=columns, inference_share=0.3
    ... )
    >>> ax = plot_effect_over_time(model.fit(X, data.y), "age", ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('time', 'exp(coef) of age')
    """
    named = by_name(models, "model")
    drawn = {name: _estimator(name, one, "effect_over_time") for name, one in named.items()}
    tables = {}
    for name, model in drawn.items():
        times = model.unique_times_
        shown = times[np.unique(np.linspace(0, times.size - 1, N_PLACES).round().astype(int))]
        tables[name] = model.effect_over_time(column, shown)
    if ax is None:
        ax = new_axes("plot_effect_over_time")
    change, bounds = _scale(tables, ratios)
    handles = []
    for k, table in enumerate(tables.values()):
        band = _band(table, change, bounds)
        handles += _curve(ax, table.index.to_numpy(), band, colour(k), step="pre")
    _dress(ax, bounds, ratios)
    ax.set_ylabel(f"{'exp(coef)' if ratios else 'coef'} of {column}")
    ax.set_xlabel("time")
    if legend and list(tables) != [""]:
        legend_beside(ax, handles, list(tables))
    return ax


def _scale(tables: Mapping[str, pd.DataFrame], ratios: bool) -> Any:
    """Return the transformation of coefficients, and limits of the axis around all finite ends."""
    ends = [table[list(COLUMNS)].to_numpy(dtype=float).ravel() for table in tables.values()]
    return effect_scale(np.concatenate(ends), ratios, None)


def _band(table: pd.DataFrame, change: Any, bounds: tuple[float, float]) -> list[FloatArray]:
    """Return points and ends of the band within the axis; without errors the band is the points."""
    point, lower, upper = change(table[list(COLUMNS)].to_numpy(dtype=float).T)
    ends = (np.where(np.isnan(end), point, end) for end in (lower, upper))
    return [point, *(np.clip(end, *bounds) for end in ends)]


def _curve(ax: Axes, x: Any, band: list[FloatArray], color: str, step: Any = None) -> list[Any]:
    point, low, high = band
    ax.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0.0, step=step)
    style = f"steps-{step}" if step else "default"
    return ax.plot(x, point, color=color, linewidth=LINE_WIDTH, drawstyle=style)


def _dress(ax: Axes, bounds: tuple[float, float], ratios: bool) -> None:
    """Mark no effect; ratios have a logarithmic axis."""
    if ratios:
        from matplotlib.ticker import LogLocator, NullLocator

        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:g}")
    ax.axhline(1.0 if ratios else 0.0, color="0.35", linewidth=1.0, zorder=2)
    ax.set_ylim(*bounds)
    frame(ax)


def _estimator(name: str, model: Any, method: str = "effect") -> Any:
    found = model.to_estimator() if hasattr(model, "to_estimator") else model
    if not hasattr(found, method):
        which = f"models[{name!r}]" if name else "models"
        raise TypeError(f"{which} must be a regression with effects, or its release.")
    return found


def _kind(model: Any, column: str) -> Any:
    """Return the kind of a column of a model with effects."""
    kinds = model.release_.transformer()._kinds()
    return next(kind for kind in kinds if kind.column == column)
