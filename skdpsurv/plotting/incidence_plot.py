"""Stacked incidences: how likely each cause is to have happened to one person, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stacked_incidences(
    model: Any,
    X: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    time_unit: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw cumulative incidences of all causes for one person, one on top of another.

    The room above them is the probability of no event, so that all add up to 1.

    Parameters
    ----------
    model : estimator
        Fitted, with ``causes_``, such as :class:`~skdpsurv.DPCompetingRisks`.
    X : array-like of shape (1, n_features)
        The person, for example from ``PublicColumns.example()``. A record would be disclosed.
    labels : sequence of str, optional
        Names of the causes. Their labels if omitted.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.
    time_unit : str, optional
        Unit of time, for the label of its axis.
    legend : bool, default=True
        Name the causes beside the axes.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model has no ``predict_cumulative_incidence_function``.
    ValueError
        If ``X`` has not one row, or ``labels`` does not name every cause.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPCompetingRisks
    >>> from skdpsurv.plotting import plot_stacked_incidences
    >>> rng = np.random.default_rng(0)
    >>> X, time = rng.uniform(-1.0, 1.0, (2000, 1)), rng.exponential(5.0, 2000)
    >>> model = DPCompetingRisks(3.0, causes=[1, 2], max_time=8.0)
    >>> model = model.fit(X, (rng.integers(0, 3, 2000), time))
    >>> ax = plot_stacked_incidences(model, X[:1], ax=Figure().subplots())
    >>> len(ax.collections), ax.get_ylabel()
    (2, 'Probability of the event')
    """
    style.by_name(model, "model", "predict_cumulative_incidence_function")
    predict = model.predict_cumulative_incidence_function
    names = style.checked_labels(labels, list(map(str, model.causes_)), "causes")
    curves = [predict(X, cause, return_array=True) for cause in model.causes_]
    if len(curves[0]) != 1:
        raise ValueError(f"X must have one row, got {len(curves[0])}.")
    ax = style.new_axes("plot_stacked_incidences") if ax is None else ax
    time = np.append(0.0, model.unique_times_)
    below, drawn = np.zeros(time.size), []
    for i, (curve,) in enumerate(curves):
        above = below + np.append(0.0, curve)
        look: dict[str, Any] = {"color": style.colour(i), "alpha": 0.75, "linewidth": 0.0}
        drawn.append(ax.fill_between(time, below, above, step="post", **look))
        below = above
    style.dress(ax, float(time[-1]), time_unit)
    ax.set_ylabel("Probability of the event")
    if legend:  # in the order of the picture
        style.legend_beside(ax, drawn[::-1], names[::-1])
    return ax
