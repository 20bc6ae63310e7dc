"""Heterogeneity of sites, by coefficient: a table and a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from skdpsurv.dp.checks import choice
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import Inference
from skdpsurv.inference.uncertainty import half_width
from skdpsurv.plotting.coefficient_plot import draw_intervals, dress_effects, effect_scale
from skdpsurv.plotting.style import colour, new_axes
from skdpsurv.pooling.estimates import Heterogeneity, pooled_estimate
from skdpsurv.pooling.poolable import LOGS, Regression, estimated
from skdpsurv.pooling.studies import checked
from skdpsurv.priors.prior import sha256
from skdpsurv.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Largest and smallest area of the squares, in points.
LARGEST, LEAST = 130.0, 12.0
#: Names of the levels of an index by cause.
BY = ["cause", "covariate"]
#: Half the height of the diamond, in rows.
HEIGHT = 0.28


class SiteCoefficients(NamedTuple):
    """Names and units of coefficients, and their places among the parameters of estimates."""

    names: list[Any]
    units: FloatArray
    places: IntArray
    estimates: list[Inference]

    @classmethod
    def of(cls, studies: Sequence[Release]) -> SiteCoefficients:
        """Return the coefficients of releases that can be pooled."""
        kind = estimated()[studies[0].estimator]
        kind.check(studies)
        estimates = kind.estimates(studies)
        if not isinstance(kind, Regression):
            return cls(list(LOGS), np.ones(len(LOGS)), np.arange(len(LOGS)), estimates)
        return cls(*kind.coefficients(studies[0]), estimates)

    def with_errors(self, estimate: Inference) -> tuple[FloatArray, FloatArray]:
        """Return coefficients and standard errors; NaN and infinity for unknown ones."""
        coef = np.where(estimate.known, estimate.estimate, np.nan)[self.places]
        return coef * self.units, estimate.standard_errors()[self.places] * np.abs(self.units)

    def table(self) -> pd.DataFrame:
        """Return the table of :func:`heterogeneity`."""
        columns: dict[str, FloatArray] = {}
        for effects in ("fixed", "random"):
            coef, error = self.with_errors(pooled_estimate(self.estimates, effects))
            columns |= {f"coef {effects}": coef, f"se(coef) {effects}": error}
        statistics = Heterogeneity.of(self.estimates)
        tau2, q, df, p, i2 = (each[self.places] for each in statistics)
        columns |= {"tau2": tau2 * self.units**2, "Q": q, "df": np.maximum(df, 0), "p": p, "I2": i2}
        index = pd.Index(self.names)  # of pairs, it has two levels
        return pd.DataFrame(columns, index=index.set_names(BY[-index.nlevels :]))


def heterogeneity(releases: Sequence[Release]) -> pd.DataFrame:
    r"""Return statistics of differences between sites beyond their errors, by coefficient.

    .. math::
       Q = \sum_i \frac{(y_i - \bar y)^2}{v_i}, \qquad
       \tau^2 = \max\Bigl(0, \frac{Q - \mathrm{df}}{\sum w_i - \sum w_i^2 / \sum w_i}\Bigr), \qquad
       I^2 = \max\Bigl(0, \frac{Q - \mathrm{df}}{Q}\Bigr),

    with :math:`w_i = 1 / v_i`, :math:`v_i` the variance of site i from sampling and privacy noise,
    and :math:`\bar y` the mean with these weights. No budget is spent.

    Parameters
    ----------
    releases : sequence of Release
        As for :func:`pool_releases`, from estimators with coefficients, or with log scale and log
        shape (:class:`~skdpsurv.DPWeibullFitter`).

    Returns
    -------
    pandas.DataFrame
        Indexed as ``summary``, and in its units. ``coef fixed``, ``se(coef) fixed``,
        ``coef random`` and ``se(coef) random`` are those of :func:`pool_releases`, which weights
        all coefficients jointly. ``tau2``, ``Q``, ``df``, ``p`` and ``I2`` treat each by itself.

    Raises
    ------
    TypeError, ValueError
        As :func:`pool_releases` does.

    Notes
    -----
    With few sites, or much noise, Q has little power: a large p does not show that sites agree.

    References
    ----------
    .. [1] W. G. Cochran, "The combination of estimates from different experiments", Biometrics 10,
       101-129, 1954.
    .. [2] J. P. T. Higgins and S. G. Thompson, "Quantifying heterogeneity in a meta-analysis",
       Statistics in Medicine 21, 1539-1558, 2002.

    Examples
    --------
    >>> from skdpsurv import DPDiscreteTimeSurvival
    >>> from skdpsurv.datasets import make_discrete_time_survival
    >>> from skdpsurv.pooling import heterogeneity
    >>> model = DPDiscreteTimeSurvival(3.0, max_time=1.0, inference_share=0.2)
    >>> sites = [make_discrete_time_survival(3000, 2, random_state=k) for k in range(3)]
    >>> table = heterogeneity([model.fit(site.X, site.y).release_ for site in sites])
    >>> table["df"].tolist()
    [2, 2]
    """
    return SiteCoefficients.of(sorted(checked(releases, estimated()), key=sha256)).table()


def plot_forest(
    releases: Any,
    covariate: str | tuple[Any, str] | None = None,
    *,
    effects: str = "fixed",
    ratios: bool = True,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a coefficient at several sites, and the pooled one as a diamond: a forest plot.

    Areas of squares are proportional to the weights :math:`1 / (v_i + \tau^2)`, with :math:`v_i`
    the variance of a site from sampling and privacy noise, and :math:`\tau^2` that between sites, 0
    with fixed effects. Lines and the width of the diamond are 95 % intervals.

    Parameters
    ----------
    releases : sequence of Release, or mapping of str to Release
        Releases of sites, perhaps by name; as for :func:`skdpsurv.pool_releases`, of a regression
        or a Weibull distribution. The first is drawn uppermost.
    covariate : str, tuple or None, default=None
        Name of the coefficient, as in ``summary`` and :func:`skdpsurv.pooling.heterogeneity`; of
        :class:`~skdpsurv.DPCompetingRisks` the cause and the name. None: the only one.
    effects : {"fixed", "random"}, default="fixed"
        Effects of the diamond.
    ratios : bool, default=True
        Draw exp(coef), on a logarithmic axis.
    limits : tuple of float or None, default=None
        Ends of the horizontal axis. Longer intervals end in an arrow. None: limits that contain all
        finite ends of the intervals.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. If omitted, those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        As :func:`skdpsurv.pool_releases` does; if there is no such coefficient, or ``covariate`` is
        missing although there are several.

    Notes
    -----
    If a site does not know the coefficient, its line spans the figure, without a square. The
    diamond is that of :func:`skdpsurv.pool_releases`, which weights all coefficients jointly.

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
    given = checked(list(releases.values()) if mapped else releases, estimated())
    names = map(str, releases) if mapped else (f"release {k + 1}" for k in range(len(given)))
    found = SiteCoefficients.of(given)
    if covariate is None and len(found.names) == 1:
        covariate = found.names[0]
    if covariate not in found.names:
        raise ValueError(f"covariate must be one of {found.names}, got {covariate!r}.")
    index = found.names.index(covariate)
    pooled = found.table().iloc[index]
    rows = [np.array(found.with_errors(estimate))[:, index] for estimate in found.estimates]
    rows.append(pooled[[f"coef {effects}", f"se(coef) {effects}"]].to_numpy())
    coef, error = np.array(rows).T
    if ax is None:
        ax = new_axes("plot_forest", 1.8 + 0.4 * len(given))
    half = half_width(0.95) * error
    middle = np.where(np.isfinite(error), coef, 0.0)
    ends = np.array([coef, middle - half, middle + half])
    change, bounds = effect_scale(ends[1:], ratios, limits)
    point, lower, upper = change(ends)
    weight = 1.0 / (error[:-1] ** 2 + (pooled["tau2"] if effects == "random" else 0.0))
    area = np.maximum(LARGEST * weight / max(float(weight.max()), 1e-300), LEAST)
    last = len(given)  # the row of the pooled coefficient
    y = np.arange(last)
    draw_intervals(ax, y, lower[:-1], upper[:-1], bounds, colour(0))
    inside = ((point >= bounds[0]) & (point <= bounds[1]))[:-1]
    square: dict[str, Any] = {"marker": "s", "linewidths": 0.0, "color": colour(0), "zorder": 3}
    ax.scatter(point[:-1][inside], y[inside], s=area[inside], **square)
    if np.isfinite(error[-1]):
        left, mean, right = np.clip([lower[-1], point[-1], upper[-1]], *bounds)
        height = last + HEIGHT * np.array([0.0, 1.0, 0.0, -1.0])
        ax.fill([left, mean, right, mean], height, color=colour(1), linewidth=0.0, zorder=3)
    else:  # unknown
        ax.hlines(last, *bounds, linewidth=2.0, color=colour(1))
    dress_effects(ax, bounds, [*names, f"pooled ({effects} effects)"], ratios)
    ax.axhline(last - 0.5, color="0.8", linewidth=0.8)
    which = found.names[index]
    name = which if isinstance(which, str) else f"{which[1]} ({which[0]})"
    ax.set_xlabel(f"{'exp(coef)' if ratios else 'coef'} of {name}, 95 % interval")
    if pooled["df"] > 0:
        text = f"Q = {pooled['Q']:.1f}, df = {pooled['df']:g}, p = {pooled['p']:.2g}"
        ax.set_title(f"{text}, I² = {100.0 * pooled['I2']:.0f} %", loc="left", fontsize="small")
    return ax
