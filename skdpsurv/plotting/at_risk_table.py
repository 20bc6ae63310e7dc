"""Noisy numbers of people at risk, under a figure of their curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.checks import positive_number
from skdpsurv.plotting.style import colour, named_models

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["add_at_risk_counts"]

#: From the axes down to the heading, and from line to line, in points: a layout that makes room for
#: them changes the height of the axes, of which they must not be fractions.
_TOP, _LINE = 46.0, 12.5


def add_at_risk_counts(
    models: Any,
    *,
    ax: Axes,
    labels: Sequence[str] | None = None,
    colors: Sequence[Any] | None = None,
    time_scale: float = 1.0,
) -> Axes:
    """Write how many were still at risk under the ticks of a figure of survival curves.

    The numbers are noisy, follow from the releases alone, and cost no budget. As every number of a
    noisy table they are estimates; they are rounded to whole people.

    Parameters
    ----------
    models : estimator or mapping of str to estimator
        Fitted, with a ``number_at_risk``.
    ax : matplotlib.axes.Axes
        Where their curves are drawn.
    labels : sequence of str, optional
        Names of the rows. The keys of a mapping, or the models' labels, if omitted.
    colors : sequence of matplotlib colors, optional
        Of the names, in the order of the models.
    time_scale : float, default=1.0
        Length of one drawn unit in the models' unit of time.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

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
    named = named_models(models, "number_at_risk")
    names = [name or model.label for name, model in named.items()] if labels is None else [*labels]
    if len(names) != len(named):
        raise ValueError(f"labels must hold one label for each of the {len(named)} models.")
    scale = positive_number("time_scale", time_scale)
    left, right = ax.get_xlim()
    ticks = np.array([tick for tick in ax.get_xticks() if left <= tick <= right * (1 + 1e-9)])

    def write(text: str, x: float, line: int, right: float = 0.0, **style: Any) -> None:
        ax.annotate(
            text,
            (x, 0.0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(right, -(_TOP + _LINE * line)),
            textcoords="offset points",
            va="center",
            fontsize="small",
            annotation_clip=False,
            **style,
        )

    write("At risk (noisy)", left, 0, ha="left", color="0.35")
    for i, (name, model) in enumerate(zip(names, named.values(), strict=True)):
        own = colour(i) if colors is None else colors[i % len(colors)]
        write(name, left, i + 1, -30.0, ha="right", color=own)
        for tick, number in zip(ticks, model.number_at_risk(ticks * scale), strict=True):
            write(f"{number:,.0f}", tick, i + 1, ha="center")
    return ax
