"""Observed survival of risk groups over time, beside what a model says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.plotting.style import (
    LINE_WIDTH,
    colour,
    dress,
    legend_beside,
    named_models,
    new_axes,
    step_curves,
)
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk_groups"]

#: Points that a model's curve is drawn at.
N_POINTS = 200
#: Survival is kept this far from 0 and 1 where its logarithm is divided by.
SMALLEST = 1e-12


def plot_risk_groups(
    evaluation: Any,
    model: Any = None,
    profile: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    time_unit: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw observed survival of each risk group, with intervals, and the curves of a model.

    The figure is computed from what was released, and is as private as that.

    Parameters
    ----------
    evaluation : SurvivalEvaluation
        From :func:`~skdpsurv.metrics.private_survival_metrics`.
    model : estimator, optional
        The one that was evaluated, with ``predict_survival_function``. None draws no curves.
    profile : array-like or data frame of shape (1, n_features), optional
        A public row, as the model takes them: an invented person. Must be given with a model.
    ax : matplotlib.axes.Axes, optional
        Where to draw. A new figure's axes if omitted.
    time_unit : str, optional
        Unit of the time axis, for its label.
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
        If ``evaluation`` is none, or the model predicts no survival functions.
    ValueError
        If there is a model and no profile, or more than one row in it.

    Notes
    -----
    The curve of a group is that of the profile with its cumulative hazard multiplied, so that it
    ends at the group's mean prediction. In a model with proportional hazards there is a person with
    that curve, whatever the profile is; with others the profile should be somebody typical.

    Crosses at the ends of bands are intervals of each point by itself.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.metrics import private_survival_metrics
    >>> from skdpsurv.plotting import plot_risk_groups
    >>> data = make_discrete_time_survival(2000, 2, random_state=0)
    >>> model = DPDiscreteTimeSurvival(epsilon=1.0, max_time=data.max_time)
    >>> model = model.fit(data.X[:1000], data.y[:1000])
    >>> found = private_survival_metrics(
    ...     model, data.X[1000:], data.y[1000:], max_time=data.max_time
    ... )
    >>> ax = plot_risk_groups(found, model, [[0.0, 0.0]], ax=Figure().subplots())
    >>> ax.get_ylabel()
    'Probability of survival'
    """
    if not (hasattr(evaluation, "groups") and hasattr(evaluation, "times")):
        raise TypeError(
            f"evaluation must be of private_survival_metrics, got {type(evaluation).__name__}."
        )
    end, groups = evaluation.max_time, evaluation.groups
    at = np.linspace(0.0, end, N_POINTS)
    base = None if model is None else _cumulative_hazard(model, profile, at)
    if ax is None:
        ax = new_axes("plot_risk_groups")
    handles: list[Any] = []
    entries = []
    # Groups lie at their times side by side, so that no interval hides another.
    nudges = (np.arange(len(groups)) - (len(groups) - 1) / 2.0) * 0.008 * end
    for k, (group, nudge) in enumerate(zip(groups, nudges, strict=True)):
        if base is not None:
            curve = np.exp(-base * _hazard(group.predicted.value) / max(base[-1], SMALLEST))
            ax.plot(at, curve, color=colour(k), linewidth=LINE_WIDTH, alpha=0.8)
        value, lower, upper = np.array(group.curve).T
        handles.append(
            ax.errorbar(
                np.array(evaluation.times) + nudge,
                value,
                yerr=[value - lower, upper - value],
                color=colour(k),
                marker="o",
                markersize=5.0,
                linestyle="none",
                elinewidth=LINE_WIDTH / 1.5,
                capsize=2.5,
            )
        )
        entries.append(f"{group.low:.2f} to {group.high:.2f}")
    dress(ax, end + abs(float(nudges[0])) + 0.01 * end, time_unit)
    if legend:
        said = f"{100 * evaluation.level:g} % intervals" + "; lines as predicted" * (
            base is not None
        )
        legend_beside(ax, handles, entries, f"Predicted survival to {end:g}\n({said})")
    return ax


def _cumulative_hazard(model: Any, profile: Any, at: FloatArray) -> FloatArray:
    """Return that of a profile at some times."""
    (named,) = named_models(model, "predict_survival_function").values()
    if profile is None:
        raise ValueError("profile must be given with a model: one public row.")
    curves = step_curves(named, profile)
    if len(curves) != 1:
        raise ValueError(f"profile must be one row, got {len(curves)}.")
    ((time, survival),) = curves
    # As steps are: what was reached at the last time that is not later.
    return _hazard(survival[np.searchsorted(time, at, side="right") - 1])


def _hazard(survival: Any) -> FloatArray:
    return np.asarray(-np.log(np.clip(survival, SMALLEST, 1.0 - SMALLEST)))
