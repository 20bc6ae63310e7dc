"""Survival functions of one group each, with the intervals that sampling and noise leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.base import PrivateEstimator
from skdpsurv.checks import positive_number
from skdpsurv.plotting.at_risk_table import add_at_risk_counts
from skdpsurv.plotting.style import (
    COLOURS,
    LINE_WIDTH,
    dress,
    legend_beside,
    named_models,
    new_axes,
)
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_univariate"]


_N_TIMES = 201
_BAND_ALPHA = 0.18
# What is no release is there to compare with: dashed, and thin enough to lie on top.
_REFERENCE = {"linestyle": (0, (4.0, 1.5)), "linewidth": 1.5}


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

    The figure is computed from the releases alone. It is as private as they are, band included,
    and costs no budget; a model of lifelines in it is not private.

    Parameters
    ----------
    models : estimator or mapping of str to estimator
        Fitted, with a ``survival_function_at_times``: distributions of this package, with a band if
        they have a ``survival_band``, and of lifelines, for comparison, as dashed lines. The keys
        of a mapping name the models in the legend; the first lies on top.
    ax : matplotlib.axes.Axes, optional
        Where to draw. A new figure's axes if omitted.
    times : array-like of shape (n_times,), optional
        Where to compute the curves, in the models' unit of time, not negative and rising. From 0
        to each model's ``max_time`` if omitted; models that state none go as far as the others.
    band : bool, default=True
        Draw pointwise intervals of the survival function.
    level : float, default=0.95
        Their coverage.
    n_resamples : int, default=500
        Simulated fits behind a band; a few milliseconds each.
    labels : sequence of str, optional
        Names in the legend, in the order of the models. The keys of a mapping if omitted; for one
        model, its epsilon.
    colors : sequence of matplotlib colors, optional
        In the order of the models; after the last comes the first again, so that with two colours
        the third model has that of the first.
    time_unit : str, optional
        Unit of the drawn time axis, for its label.
    time_scale : float, default=1.0
        Length of one drawn unit in the models' unit of time. Models fitted in days are drawn in
        years with ``time_scale=365.25, time_unit="years"``.
    at_risk_counts : bool, default=False
        Write noisy numbers at risk under the axes, as :func:`add_at_risk_counts` does, of the
        models that know them.
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
    named = named_models(models, "survival_function_at_times")
    fitted = list(named.values())
    names = [name or _name(named[name]) for name in named] if labels is None else list(labels)
    if len(names) != len(fitted):
        raise ValueError(
            f"labels must hold one label for each of the {len(fitted)} models, got {len(names)}."
        )
    palette = list(COLOURS if colors is None else colors)
    if not palette:
        raise ValueError("colors must hold at least one color.")
    scale = positive_number("time_scale", time_scale)
    grids = _grids(fitted, times)
    survival = [
        np.asarray(model.survival_function_at_times(t), dtype=np.float64)
        for model, t in zip(fitted, grids, strict=True)
    ]
    bands = [
        model.survival_band(t, level, n_resamples)
        if band and hasattr(model, "survival_band")
        else None
        for model, t in zip(fitted, grids, strict=True)
    ]
    if ax is None:
        ax = new_axes("plot_univariate")

    lines = []
    for i in reversed(range(len(fitted))):  # the first model last, so that it lies on top
        color, t = palette[i % len(palette)], grids[i] / scale
        # All bands are below all lines.
        if (interval := bands[i]) is not None:
            lower, upper = interval["lower"].to_numpy(), interval["upper"].to_numpy()
            ax.fill_between(
                t,
                lower,
                upper,
                color=color,
                alpha=_BAND_ALPHA,
                linewidth=0.0,
                zorder=1.5,
                step="post" if _has_steps(fitted[i]) else None,
            )
        style = {"linewidth": LINE_WIDTH} if _is_release(fitted[i]) else _REFERENCE
        drawstyle = "steps-post" if _has_steps(fitted[i]) else "default"
        lines += ax.plot(t, survival[i], color=color, drawstyle=drawstyle, **style)
    dress(ax, max(float(t[-1]) for t in grids) / scale, time_unit)
    if legend:
        shaded = any(interval is not None for interval in bands)
        _legend(ax, lines[::-1], names, f"{100 * level:g} % interval" if shaded else None)
    if at_risk_counts:
        known = [i for i, model in enumerate(fitted) if hasattr(model, "number_at_risk")]
        if known:
            add_at_risk_counts(
                {f"{i}": fitted[i] for i in known},
                ax=ax,
                labels=[names[i] for i in known],
                colors=[palette[i % len(palette)] for i in known],
                time_scale=scale,
            )
    return ax


def _is_release(model: Any) -> bool:
    return isinstance(model, PrivateEstimator)


def _has_steps(model: Any) -> bool:
    return hasattr(model, "unique_times_")


def _name(model: Any) -> str:
    """Name a model that is alone."""
    if not _is_release(model):
        return type(model).__name__.removesuffix("Fitter")
    check_is_fitted(model, "release_")
    epsilon = model.guarantee_.epsilon
    return "No privacy" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _grids(models: list[Any], times: ArrayLike | None) -> list[FloatArray]:
    """Return the times to compute each model at."""
    if times is not None:
        grid = np.asarray(times, dtype=np.float64)
        if grid.ndim != 1 or grid.size == 0 or not (grid[0] >= 0 and np.all(np.diff(grid) > 0)):
            raise ValueError("times must be a one-dimensional array of rising times from 0 on.")
        return [grid] * len(models)
    ends = []
    for model in models:
        if _is_release(model):
            check_is_fitted(model, "release_")
            ends.append(float(model.release_.parameters["max_time"]))
        else:
            ends.append(0.0)
    if not any(ends):
        raise ValueError("times must be given, as no model states a max_time.")
    # Closer together at the start, where many curves are steep.
    parts = np.linspace(0.0, 1.0, _N_TIMES) ** 2
    return [
        np.unique([0.0, *model.unique_times_, end])
        if _has_steps(model)
        else parts * (end or max(ends))
        for model, end in zip(models, ends, strict=True)
    ]


def _legend(ax: Axes, lines: list[Any], names: list[str], interval: str | None) -> None:
    from matplotlib.patches import Patch

    handles, entries = list(lines), list(names)
    if interval is not None:
        handles.append(Patch(color="0.3", alpha=_BAND_ALPHA, linewidth=0.0))
        entries.append(interval)
    legend_beside(ax, handles, entries)
