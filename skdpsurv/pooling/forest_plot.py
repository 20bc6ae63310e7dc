"""A coefficient at several sites, and of all together: a forest plot as meta-analyses have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.checks import choice
from skdpsurv.inference.inference import half_width
from skdpsurv.plotting.coefficient_plot import dress_ratios
from skdpsurv.plotting.style import colour, new_axes
from skdpsurv.pooling.between_studies import Spread
from skdpsurv.pooling.heterogeneity import Shown, shown_coefficients
from skdpsurv.pooling.members import in_order
from skdpsurv.pooling.pool import ESTIMATED, pooled_estimate
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Areas of the squares, in points: of the site with the largest weight, and the least that shows.
LARGEST, LEAST = 130.0, 12.0
#: Half the height of the diamond, in rows.
HEIGHT = 0.28
#: Ratios of more than a few thousand say no more than an arrow does.
MOST = 8.0


def plot_forest(
    releases: Any,
    covariate: str | None = None,
    *,
    effects: str = "fixed",
    ratios: bool = True,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a coefficient at several sites, and the pooled one as a diamond: a forest plot.

    Squares are as large as weights :math:`1 / (v_i + \tau^2)` are, with :math:`v_i` the variance of
    a site, of sampling and of privacy noise, and :math:`\tau^2` that between sites, 0 with fixed
    effects. Lines and the width of the diamond are 95 % intervals.

    Parameters
    ----------
    releases : sequence of Release, or mapping of str to Release
        Of sites, with their names; as for :func:`skdpsurv.pool_releases`, of a regression or a
        Weibull distribution. The first is drawn uppermost.
    covariate : str or None, default=None
        Which coefficient, as ``summary`` and :func:`skdpsurv.pooling.heterogeneity` name it. None:
        the only one.
    effects : {"fixed", "random"}, default="fixed"
        Of the diamond.
    ratios : bool, default=True
        Draw exp(coef), on a logarithmic axis.
    limits : tuple of float or None, default=None
        Ends of the horizontal axis. Intervals that go on are drawn with an arrow. None: what holds
        all finite ends of the intervals.
    ax : matplotlib.axes.Axes, optional
        Where to draw. A new figure's axes if omitted.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        As :func:`skdpsurv.pool_releases` does; if there is no such coefficient, or it is not said
        which of several.

    Notes
    -----
    Where a site does not know the coefficient, its line spans the figure, and there is no square.
    The diamond is that of :func:`skdpsurv.pool_releases`, which weighs all coefficients together.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.pooling import plot_forest
    >>> model = DPDiscreteTimeSurvival(3.0, max_time=1.0, inference_share=0.2)
    >>> sites = [make_discrete_time_survival(3000, 1, random_state=k) for k in range(2)]
    >>> north, south = (model.fit(site.X, site.y).release_ for site in sites)
    >>> ax = plot_forest({"North": north, "South": south}, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['North', 'South', 'pooled (fixed effects)']
    """
    choice("fixed", "random")("effects", effects)
    mapped = isinstance(releases, Mapping)
    given = list(releases.values()) if mapped else releases
    if isinstance(given, Iterator):
        given = list(given)
    in_order(given, tuple(ESTIMATED))
    names = (
        [str(n) for n in releases] if mapped else [f"release {k + 1}" for k in range(len(given))]
    )
    found = shown_coefficients(given)
    place = _place(found, covariate)
    coef, error = (
        np.array([parts[place] for parts in both])
        for both in zip(*map(found.of, found.members), strict=True)
    )
    mean, mean_error = (part[place] for part in found.of(pooled_estimate(found.members, effects)))
    spread = Spread.of(found.members)
    at = place - found.steps.size
    tau2 = float(spread.tau2[at] * found.steps[place] ** 2) if effects == "random" else 0.0
    if ax is None:
        ax = new_axes("plot_forest", 1.8 + 0.4 * len(names))
    bounds = _bounds(np.append(coef, mean), np.append(error, mean_error), ratios, limits)
    rows = np.arange(len(names), dtype=np.float64)
    _draw_sites(ax, rows, coef, error, tau2, ratios, bounds)
    _draw_mean(ax, len(names), float(mean), float(mean_error), ratios, bounds)
    if ratios:
        dress_ratios(ax)
    ax.axvline(1.0 if ratios else 0.0, color="0.35", linewidth=1.0, zorder=2)
    ax.axhline(len(names) - 0.5, color="0.8", linewidth=0.8)
    ax.set_xlim(*bounds)
    ax.set_ylim(len(names) + 0.5, -0.5)
    ax.set_yticks(range(len(names) + 1), [*names, f"pooled ({effects} effects)"])
    what = f"exp(coef) of {found.names[place]}" if ratios else f"coef of {found.names[place]}"
    ax.set_xlabel(f"{what}, 95 % interval")
    if spread.df[at] > 0:
        said = f"Q = {spread.q[at]:.1f}, df = {spread.df[at]}, p = {spread.p[at]:.2g}"
        ax.set_title(f"{said}, I² = {100.0 * spread.i2[at]:.0f} %", loc="left", fontsize="small")
    ax.grid(axis="x", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _place(found: Shown, covariate: str | None) -> int:
    """Return the number of a coefficient."""
    if covariate is None and len(found.names) == 1:
        return 0
    if covariate not in found.names:
        raise ValueError(f"covariate must be one of {found.names}, got {covariate!r}.")
    return found.names.index(covariate)


def _ends(coef: Any, error: Any, ratios: bool) -> tuple[Any, Any, Any]:
    """Return points and ends of intervals as they are drawn."""
    reach = half_width(0.95) * error
    middle = np.where(np.isfinite(error), coef, 0.0)
    change = np.exp if ratios else np.asarray
    with np.errstate(over="ignore"):
        return change(coef), change(middle - reach), change(middle + reach)


def _bounds(
    coef: FloatArray, error: FloatArray, ratios: bool, limits: tuple[float, float] | None
) -> tuple[float, float]:
    """Return ends of the axis that hold all that is finite, and no effect."""
    if limits is not None:
        return limits
    _, lower, upper = _ends(coef, error, ratios=False)
    ends = np.concatenate([lower, upper, [0.0]])
    ends = ends[np.isfinite(ends)]
    most = MOST if ratios else np.inf
    low, high = max(float(ends.min()), -most), min(float(ends.max()), most)
    room = 0.05 * (high - low) or 1.0
    first, last = low - room, high + room
    return (float(np.exp(first)), float(np.exp(last))) if ratios else (first, last)


def _draw_sites(
    ax: Axes,
    y: FloatArray,
    coef: FloatArray,
    error: FloatArray,
    tau2: float,
    ratios: bool,
    bounds: tuple[float, float],
) -> None:
    """Draw a line and a square for each site."""
    low, high = bounds
    point, lower, upper = _ends(coef, error, ratios)
    drawn: dict[str, Any] = {"color": colour(0), "zorder": 3}
    ax.hlines(y, np.clip(lower, low, high), np.clip(upper, low, high), linewidth=2.0, **drawn)
    for end, marker, beyond in ((low, "<", lower < low), (high, ">", upper > high)):
        ax.plot(np.full(int(beyond.sum()), end), y[beyond], marker, ms=6, **drawn)
    weight = 1.0 / (error**2 + tau2)
    area = np.maximum(LARGEST * weight / max(float(weight.max()), 1e-300), LEAST)
    inside = (point >= low) & (point <= high)
    ax.scatter(point[inside], y[inside], s=area[inside], marker="s", linewidths=0.0, **drawn)


def _draw_mean(
    ax: Axes, row: int, mean: float, error: float, ratios: bool, bounds: tuple[float, float]
) -> None:
    """Draw the diamond, or a line where nothing is known."""
    low, high = bounds
    if not np.isfinite(error):
        ax.hlines(row, low, high, linewidth=2.0, color=colour(1))
        return
    point, lower, upper = (float(end) for end in _ends(mean, error, ratios))
    x = np.clip([lower, point, upper, point], low, high)
    y = row + HEIGHT * np.array([0.0, 1.0, 0.0, -1.0])
    ax.fill(x, y, color=colour(1), linewidth=0.0, zorder=3)
