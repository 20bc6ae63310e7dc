"""Predicted survival: of a few people by several models, and beside observed survival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.types import FloatArray
from skdpsurv.plotting import style
from skdpsurv.plotting.style import LINE_WIDTH, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Number of points of a risk group's curve.
N_POINTS = 200
#: Distance of survival from 0 and 1 in denominators.
SMALLEST = 1e-12
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


def plot_calibration(evaluations: Any, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw observed against predicted survival by risk group, with intervals for both.

    Of evaluations of a cause, incidences are drawn; those of several causes side by side.

    The figure uses released numbers only, and is as private as these.

    Parameters
    ----------
    evaluations : SurvivalEvaluation or mapping of str to SurvivalEvaluation
        From :func:`~skdpsurv.evaluation.private_survival_metrics`. The keys of a mapping name the
        models in the legend.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.
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
        If something other than evaluations is passed.
    ValueError
        If there are no evaluations.

    Notes
    -----
    Groups of a calibrated model lie on the diagonal. Crosses are separate intervals of each group,
    so that one of several groups misses the diagonal more often than the level suggests.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.evaluation import private_survival_metrics
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
    named = style.by_name(evaluations, "evaluation")
    for found in named.values():
        _check_evaluation("evaluations", found)
    ax = style.new_axes("plot_calibration") if ax is None else ax
    handles = ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.2, linestyle=(0, (4.0, 2.0)))
    entries = ["as predicted"]
    for k, (name, found) in enumerate(named.items()):
        value, *ends = _intervals([group.predicted for group in found.groups])
        handles.append(_crosses(ax, k, value, [group.observed for group in found.groups], ends))
        entries.append(f"{name or 'risk groups'}, {100 * found.level:g} % intervals")
    times = sorted({found.max_time for found in named.values()})
    what = " and ".join(dict.fromkeys(found.outcome for found in named.values()))
    title = f"{what[0].upper()}{what[1:]} to {', '.join(f'{time:g}' for time in times)}"
    ax.set_title(title, fontsize="medium")
    ax.set_xlim(0.0, 1.0)
    ax.set_aspect("equal")
    of = "survival" if all(found.cause is None for found in named.values()) else "an event"
    ax.set_xlabel(f"Predicted probability of {of}")
    style.dress_probability(ax, f"Observed probability of {of}")
    if legend:
        style.legend_beside(ax, handles, entries)
    return ax


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

    The figure uses released numbers only, and is as private as these.

    Parameters
    ----------
    evaluation : SurvivalEvaluation
        From :func:`~skdpsurv.evaluation.private_survival_metrics`. That of a cause has incidences.
    model : estimator, optional
        The evaluated model, with ``predict_survival_function``. None draws no curves, as with a
        cause.
    profile : array-like or data frame of shape (1, n_features), optional
        A public row, as the model takes it: an invented person. Required with a model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.
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
        If ``evaluation`` is not an evaluation, or the model predicts no survival functions.
    ValueError
        If there is a model without a profile or with a cause, or a profile of several rows.

    Notes
    -----
    The curve of a group is that of the profile, with its cumulative hazard scaled so that it ends
    at the group's mean prediction. With proportional hazards the choice of the profile makes no
    difference; with other models it should be a typical person.

    Crosses at the ends of bands are separate intervals of each point.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.evaluation import private_survival_metrics
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
    _check_evaluation("evaluation", evaluation)
    end, groups, cause = evaluation.max_time, evaluation.groups, evaluation.cause
    if cause is not None and model is not None:
        raise ValueError("model must be None with an evaluation of a cause.")
    at = np.linspace(0.0, end, N_POINTS)
    base = None if model is None else _cumulative_hazard(model, profile, at)
    ax = style.new_axes("plot_risk_groups") if ax is None else ax
    handles = []
    # Side by side, so that no interval hides another.
    nudges = (np.arange(len(groups)) - (len(groups) - 1) / 2.0) * 0.008 * end
    for k, (group, nudge) in enumerate(zip(groups, nudges, strict=True)):
        if base is not None:
            curve = np.exp(-base * _hazard(group.predicted.value) / max(base[-1], SMALLEST))
            turn = style.line_style(k // len(style.COLOURS))
            ax.plot(at, curve, color=colour(k), linestyle=turn, linewidth=LINE_WIDTH, alpha=0.8)
        handles.append(_crosses(ax, k, np.array(evaluation.times) + nudge, group.curve))
    style.dress(ax, end + abs(float(nudges[0])) + 0.01 * end, time_unit)
    if cause is not None:
        ax.set_ylabel(f"Incidence of {cause}")
    if legend:
        lines = "" if base is None else "; lines as predicted"
        title = f"Predicted {evaluation.outcome} to {end:g}"
        title += f"\n({100 * evaluation.level:g} % intervals{lines})"
        style.legend_beside(ax, handles, [f"{g.low:.2f} to {g.high:.2f}" for g in groups], title)
    return ax


def _check_evaluation(name: str, found: Any) -> None:
    if not hasattr(found, "groups"):
        kind = type(found).__name__
        raise TypeError(f"{name} must be of private_survival_metrics, got {kind}.")


def _intervals(estimates: Sequence[Any]) -> FloatArray:
    """Return values, and the distances to the lower and upper ends of their intervals."""
    value, lower, upper = np.array(estimates).T
    return np.stack([value, value - lower, upper - value])


def _crosses(ax: Axes, k: int, x: FloatArray, estimates: Sequence[Any], xerr: Any = None) -> Any:
    value, *yerr = _intervals(estimates)
    options: dict[str, Any] = {"elinewidth": LINE_WIDTH / 1.5, "markersize": 5.5, "capsize": 2.5}
    return ax.errorbar(x, value, yerr, xerr, fmt=style.marker(k), color=colour(k), **options)


def _cumulative_hazard(model: Any, profile: Any, at: FloatArray) -> FloatArray:
    """Return the cumulative hazard of a profile at some times."""
    style.by_name(model, "model", "predict_survival_function")
    if profile is None:
        raise ValueError("profile must be given with a model: one public row.")
    curves = style.step_curves(model, profile)
    if len(curves) != 1:
        raise ValueError(f"profile must be one row, got {len(curves)}.")
    ((time, survival),) = curves
    return _hazard(survival[np.searchsorted(time, at, side="right") - 1])


def _hazard(survival: Any) -> FloatArray:
    return np.asarray(-np.log(np.clip(survival, SMALLEST, 1.0 - SMALLEST)))
