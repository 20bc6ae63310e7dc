"""Predicted and observed survival by risk group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.plotting.style import (
    LINE_WIDTH,
    by_name,
    colour,
    dress_probability,
    legend_beside,
    new_axes,
)
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from skdpsurv.metrics.evaluation_result import Estimate

__all__ = ["plot_calibration"]


def plot_calibration(evaluations: Any, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw observed against predicted survival by risk group, with intervals for both.

    The figure is computed from what was released, and is as private as that.

    Parameters
    ----------
    evaluations : SurvivalEvaluation or mapping of str to SurvivalEvaluation
        From :func:`~skdpsurv.metrics.private_survival_metrics`. The keys of a mapping name the
        models in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw. A new figure's axes if omitted.
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
        If something else than evaluations is passed.
    ValueError
        If there is none.

    Notes
    -----
    Groups of a model that is calibrated lie on the diagonal. Crosses are intervals of each group by
    itself: of five groups one more often misses the diagonal than a level of 95 % suggests.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.metrics import private_survival_metrics
    >>> from skdpsurv.plotting import plot_calibration
    >>> data = make_discrete_time_survival(2000, 2, random_state=0)
    >>> model = DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time)
    >>> model = model.fit(data.X[:1000], data.y[:1000])
    >>> found = private_survival_metrics(
    ...     model, data.X[1000:], data.y[1000:], max_time=data.max_time
    ... )
    >>> ax = plot_calibration(found, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'Predicted probability of survival'
    """
    named = by_name(evaluations, "evaluation")
    for found in named.values():
        if not (hasattr(found, "groups") and hasattr(found, "max_time")):
            raise TypeError(
                f"evaluations must be of private_survival_metrics, got {type(found).__name__}."
            )
    if ax is None:
        ax = new_axes("plot_calibration")
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.2, linestyle=(0, (4.0, 2.0)))
    handles: list[Any] = [ax.lines[-1]]
    entries = ["as predicted"]
    for k, (name, found) in enumerate(named.items()):
        predicted = _columns([group.predicted for group in found.groups])
        observed = _columns([group.observed for group in found.groups])
        handles.append(
            ax.errorbar(
                predicted[0],
                observed[0],
                xerr=predicted[1:],
                yerr=observed[1:],
                color=colour(k),
                marker="o",
                markersize=6.0,
                linestyle="none",
                elinewidth=LINE_WIDTH / 1.5,
                capsize=2.5,
            )
        )
        entries.append(f"{name or 'risk groups'}, {100 * found.level:g} % intervals")
    times = sorted({found.max_time for found in named.values()})
    ax.set_title(f"Survival to {', '.join(f'{time:g}' for time in times)}", fontsize="medium")
    ax.set_xlim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel("Predicted probability of survival")
    dress_probability(ax, "Observed probability of survival")
    if legend:
        legend_beside(ax, handles, entries)
    return ax


def _columns(estimates: list[Estimate]) -> FloatArray:
    """Return values, and how far below and above them their intervals go."""
    value, lower, upper = np.array(estimates).T
    return np.stack([value, value - lower, upper - value])
