"""Predicted survival curves of a few people by several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.checks import positive_number
from skdpsurv.plotting import style
from skdpsurv.plotting.style import LINE_WIDTH, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Models after the first: ever shorter dashes, on thinner and paler lines.
_DASHES = ((7.0, 1.5), (4.0, 1.5), (2.0, 1.5), (1.0, 1.5))


def plot_survival_curves(
    models: Any,
    X: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    time_unit: str | None = None,
    time_scale: float = 1.0,
    legend: bool = True,
    band: bool = False,
) -> Axes:
    """Draw predicted survival curves: a colour for each row of X, a line style for each model.

    With private releases and invented people in ``X``, the figure is as private as the models. If
    the rows of ``X`` are records, it discloses something about them.

    Parameters
    ----------
    models : estimator or mapping of str to estimator
        Fitted, with a ``predict_survival_function`` that returns step functions: models of this
        package and of scikit-survival, pipelines and grid searches of these. The keys of a mapping
        name the models in the legend. The first is drawn solid: order them by interest, for example
        by falling epsilon.
    X : array-like of shape (n_people, n_features)
        People to draw, one in each row, for example from ``PublicColumns.example()``.
    labels : sequence of str, optional
        Names of the rows of ``X``. "person 1", "person 2", ... if omitted.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure. Subplots without a layout get
        matplotlib's constrained layout, for the legend beside them.
    time_unit : str, optional
        Unit of the drawn time axis, for its label.
    time_scale : float, default=1.0
        Length of one drawn unit in the models' unit of time. Models fitted in days are drawn in
        years with ``time_scale=365.25, time_unit="years"``.
    legend : bool, default=True
        Draw a legend beside the axes: people by colour, and models by line style if they have
        names.
    band : bool, default=False
        Shade 95 % intervals of the first model's curves, pointwise, which must have a
        ``survival_band``: a :class:`~skdpsurv.DPDiscreteTimeSurvival` with standard errors. They
        are about the unshrunk model: a recalibrated curve may leave its band.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If a model has no ``predict_survival_function``, or the first no ``survival_band`` where one
        is asked for.
    ValueError
        If there is no model, ``labels`` does not name every row, or ``time_scale`` is out of
        range.

    Notes
    -----
    Curves start at (0, 1) and are drawn as the step functions that they are.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.plotting import plot_survival_curves
    >>> data = make_discrete_time_survival(2000, 2, random_state=0)
    >>> model = DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time)
    >>> model = model.fit(data.X, data.y)
    >>> ax = Figure().subplots()
    >>> people = [[-1.0, 0.0], [1.0, 0.0]]
    >>> ax = plot_survival_curves({"ε = 1": model}, people, labels=["low", "high"], ax=ax)
    >>> ax.get_ylabel()
    'Probability of survival'
    """
    named = style.by_name(models, "model", "predict_survival_function")
    scale = positive_number("time_scale", time_scale)
    curves = [style.step_curves(model, X) for model in named.values()]
    numbered = [f"person {i + 1}" for i in range(len(curves[0]))]
    people = style.checked_labels(labels, numbered, "rows of X")
    ax = style.new_axes("plot_survival_curves") if ax is None else ax
    if band:
        _shade(ax, next(iter(named.values())), X, scale)
    # The first model last, so that it lies on top.
    for k in reversed(range(len(curves))):
        for i, (time, survival) in enumerate(curves[k]):
            ax.plot(time / scale, survival, **_person(i), **_line(k, len(named)))
    style.dress(ax, max(time[-1] for of_model in curves for time, _ in of_model) / scale, time_unit)
    if legend:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], lw=LINE_WIDTH, **_person(i)) for i in range(len(people))]
        if list(named) != [""]:
            lines = [{"linestyle": "none"}, *(_line(k, len(named)) for k in range(len(named)))]
            handles += [Line2D([], [], color="0.2", **line) for line in lines]
            people += ["", *named]
        style.legend_beside(ax, handles, people)
    return ax


def _shade(ax: Axes, model: Any, X: ArrayLike, scale: float) -> None:
    """Shade the intervals of a model's curves."""
    if not hasattr(model, "survival_band"):
        raise TypeError(
            f"models must begin with one that has a survival_band, {type(model).__name__} has none."
        )
    time = np.concatenate([[0.0], model.unique_times_ / scale])
    for i, (lower, upper) in enumerate(zip(*model.survival_band(X), strict=True)):
        band = np.append(1.0, lower), np.append(1.0, upper)
        ax.fill_between(time, *band, step="post", color=colour(i), alpha=0.15, linewidth=0)


def _person(i: int) -> dict[str, Any]:
    """Return colour and, where it comes again, points: line styles are for models."""
    points = {"marker": style.marker(i), "markevery": 0.1, "markersize": 5.5}
    return {"color": colour(i), **(points if i >= len(style.COLOURS) else {})}


def _line(k: int, n_models: int) -> dict[str, Any]:
    fade = k / max(n_models - 1, 1)
    return {
        "linestyle": style.line_style((k - 1) // 4, _DASHES[(k - 1) % 4]) if k else "-",
        "linewidth": LINE_WIDTH if k == 0 else 1.7 - 0.3 * fade,
        "alpha": 1.0 - 0.45 * fade,
        "drawstyle": "steps-post",
        "solid_capstyle": "butt",
    }
