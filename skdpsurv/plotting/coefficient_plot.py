"""Forest plots: hazard or odds ratios of several models with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting.style import by_name, colour, frame, legend_beside, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Columns of a summary, as in lifelines.
COLUMNS = ("coef", "coef lower 95%", "coef upper 95%")
#: Fraction of the row spacing used by one row's models.
_HEIGHT = 0.6
#: Logarithm of the largest ratio on an axis, and in a computation; larger ones become arrows.
MOST, LARGEST_LOG = 8.0, 700.0


def plot_coefficients(
    models: Any,
    *,
    ratios: bool = True,
    scale: pd.Series | None = None,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a forest plot: coefficients of models with 95 % intervals, one row for each column.

    Parameters
    ----------
    models : estimator, data frame, or mapping of str to these
        Estimators with a ``summary``, such as those of this package with standard errors and those
        of lifelines, or such summaries in the same units. The first is drawn uppermost. A model of
        several causes is drawn as one of each cause.
    ratios : bool, default=True
        Draw exp(coef), hazard or odds ratios, on a logarithmic axis.
    scale : pandas.Series or None, default=None
        Number of units that a coefficient is drawn for, by column: for example ten years of age
        instead of one. 1 for columns that it does not have. None: the steps of columns that a
        release describes, ``per`` or else a tenth of the bounds. Names of rows state the step.
    limits : tuple of float or None, default=None
        Ends of the horizontal axis. Longer intervals end in an arrow. None: limits that contain all
        finite ends of the intervals.
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
        If a model has no ``summary`` with the columns of lifelines.
    ValueError
        If there is no model.

    Notes
    -----
    The interval of an unknown coefficient spans the figure, without a point.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.plotting import plot_coefficients
    >>> data = make_discrete_time_survival(5000, 3, random_state=0)
    >>> model = DPDiscreteTimeSurvival(3.0, max_time=data.max_time, inference_share=0.3)
    >>> ax = plot_coefficients(model.fit(data.X, data.y), ax=Figure().subplots())
    >>> ax.get_xlabel(), len(ax.get_yticklabels())
    ('exp(coef), 95 % interval', 3)
    """
    named = _each_cause(by_name(models, "model"))
    known = _features(named.values()) if scale is None else {}
    if scale is None:
        scale = pd.Series({name: one.per for name, one in known.items()}, dtype=np.float64)
    tables = {name: _table(name, model, scale) for name, model in named.items()}
    names = list(dict.fromkeys(str(name) for table in tables.values() for name in table.index))
    if ax is None:
        ax = new_axes("plot_coefficients", 1.4 + 0.45 * len(names) * max(1.0, 0.5 * len(tables)))
    ends = np.concatenate([table.to_numpy().ravel() for table in tables.values()])
    change, bounds = effect_scale(ends, ratios, limits)
    handles = []
    for k, table in enumerate(tables.values()):
        y = np.array([names.index(str(name)) for name in table.index])
        y = y + _HEIGHT * (k - (len(tables) - 1) / 2) / len(tables)
        point, lower, upper = change(table.to_numpy()).T
        draw_intervals(ax, y, lower, upper, bounds, colour(k))
        inside = (point >= bounds[0]) & (point <= bounds[1])
        handles += ax.plot(point[inside], y[inside], "o", ms=5.5, color=colour(k), zorder=3)
    changes = {name: f"+{step:g}" for name, step in scale[scale != 1.0].items()}
    changes |= {name: one.change for name, one in known.items()}
    labels = [", ".join(filter(None, [name, changes.get(name)])) for name in names]
    dress_effects(ax, bounds, labels, ratios)
    ax.set_xlabel("exp(coef), 95 % interval" if ratios else "coef, 95 % interval")
    if legend and list(tables) != [""]:
        legend_beside(ax, handles, list(tables))
    return ax


def effect_scale(
    ends: FloatArray, ratios: bool, limits: tuple[float, float] | None
) -> tuple[Callable[[FloatArray], FloatArray], tuple[float, float]]:
    """Return the transformation of coefficients, and limits of the axis around finite ends."""
    change: Any = _exp if ratios else np.asarray
    if limits is None:
        most = MOST if ratios else np.inf
        shown = np.clip(np.append(ends[np.isfinite(ends)], 0.0), -most, most)
        margin = 0.05 * float(np.ptp(shown)) or 1.0
        limits = change(shown.min() - margin), change(shown.max() + margin)
    return change, limits


def _exp(values: Any) -> Any:
    return np.exp(np.minimum(values, LARGEST_LOG))


def draw_intervals(
    ax: Axes, y: Any, lower: Any, upper: Any, bounds: tuple[float, float], color: str
) -> None:
    """Draw horizontal intervals, with arrows at the limits of the axis."""
    low, high = bounds
    style: dict[str, Any] = {"color": color, "zorder": 3}
    ax.hlines(y, np.clip(lower, low, high), np.clip(upper, low, high), linewidth=2.0, **style)
    for end, marker, beyond in ((low, "<", lower < low), (high, ">", upper > high)):
        ax.plot(np.full(int(beyond.sum()), end), y[beyond], marker, ms=6, **style)


def dress_effects(
    ax: Axes, bounds: tuple[float, float], names: Sequence[str], ratios: bool
) -> None:
    """Label the rows, and mark no effect; ratios have a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    if ratios:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter("{x:g}")
    ax.axvline(1.0 if ratios else 0.0, color="0.35", linewidth=1.0, zorder=2)
    ax.set_xlim(*bounds)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), names)
    frame(ax, "x", ("top", "right", "left"))
    ax.tick_params(axis="y", length=0)


def _each_cause(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return models by name, with those of several causes as one of each cause."""
    found: dict[str, Any] = {}
    for name, model in named.items():
        causes = getattr(model, "causes_", []) if hasattr(model, "of_cause") else []
        own = {f"{name}: {cause}" if name else str(cause): cause for cause in causes}
        found |= {label: model.of_cause(cause) for label, cause in own.items()} or {name: model}
    return found


def _features(models: Iterable[Any]) -> dict[str, Any]:
    """Return the features of models with releases, by their names."""
    releases = filter(None, (getattr(model, "release_", None) for model in models))
    return {feature.name: feature for release in releases for feature in release.features}


def _table(name: str, model: Any, scale: pd.Series) -> pd.DataFrame:
    """Return estimates and intervals of a model, in units of ``scale``."""
    summary = model if isinstance(model, pd.DataFrame) else getattr(model, "summary", None)
    if not isinstance(summary, pd.DataFrame) or not set(COLUMNS) <= set(summary):
        which = f"models[{name!r}]" if name else "models"
        raise TypeError(f"{which} must have a summary with the columns of lifelines.")
    units = scale.reindex(summary.index).fillna(1.0)
    return summary[list(COLUMNS)].mul(units, axis=0)
