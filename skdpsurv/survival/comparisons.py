r"""Comparisons of fitted curves, from their releases alone, at no cost.

The log-rank statistic of two groups on one grid of bands k, with :math:`d_{gk}` events and
:math:`Y_{gk}` at risk in the middle of a band, is

.. math:: U = \sum_k \omega_k\,(d_{1k} Y_{2k} - d_{2k} Y_{1k}),

with :math:`\omega_k = 1 / (Y_{1k} + Y_{2k})`. Numbers at risk are sums of cells, so U is a bilinear
form :math:`z_1' B z_2` of two event-count tables. Their noise is independent and has mean zero, so
that U has mean 0 if hazards are the same and weights do not depend on single cells. Its variance is

.. math::
   V = \underbrace{\sum_k \omega_k^2 (Y_{1k} + Y_{2k}) Y_{1k} Y_{2k} \lambda_k}_\text{sampling}
   + \underbrace{v_2 \|B' x_1\|^2 + v_1 \|B x_2\|^2 + v_1 v_2 \|B\|^2}_\text{noise},

with x tables without noise, v variances of the noise in their cells, and :math:`\lambda_k` the
common hazard. :math:`U^2 / V` is compared with a chi-squared distribution. Products of noise have
heavier tails: if they matter, it is the square of Student's t that has their fourth moment.
Bands in which noise hides the events have less weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from sklearn.utils.validation import check_is_fitted

from skdpsurv.dp.checks import fraction, positive_int
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.curves.kaplan_meier import LifeTableFitter
from skdpsurv.survival.curves.life_table import ActuarialEstimate, NoisyTable
from skdpsurv.survival.univariate import UnivariateFitter

#: Draws of noise for the fourth moment of a statistic.
N_DRAWS = 4000

__all__ = [
    "ComparisonResult",
    "compare_percentiles",
    "compare_restricted_means",
    "logrank_test",
    "pairwise_logrank_test",
]


@dataclass(frozen=True)
class ComparisonResult:
    """Result of a test, as in lifelines.

    Parameters
    ----------
    test_name : str
    test_statistic : float
        Approximately chi-squared with one degree of freedom under the null hypothesis.
    p_value : float
    """

    test_name: str
    test_statistic: float
    p_value: float

    @property
    def summary(self) -> pd.DataFrame:
        """Statistic, p-value and -log2(p) as a table."""
        with np.errstate(divide="ignore"):
            surprise = float(-np.log2(self.p_value))
        row = {"test_statistic": self.test_statistic, "p": self.p_value, "-log2(p)": surprise}
        return pd.DataFrame([row])

    def print_summary(self, decimals: int = 2) -> None:
        """Print the name of the test and the numbers.

        Parameters
        ----------
        decimals : int, default=2
        """
        print(self.test_name)
        print(self.summary.to_string(index=False, float_format=lambda x: f"{x:.{decimals}f}"))


def logrank_test(a: Any, b: Any) -> ComparisonResult:
    """Test whether two groups have the same hazard, by their released tables.

    Parameters
    ----------
    a, b : DPKaplanMeierFitter or DPAalenJohansenFitter
        Fitted, with the same bands of time: two groups of one fit (``fitter.of_group(label)``), or
        two fits to different people. With competing events, the event of interest is tested.

    Returns
    -------
    ComparisonResult
        The p-value allows for privacy noise.

    Raises
    ------
    TypeError, ValueError
        If they are not fitted curves, have different bands, or are the same.

    Notes
    -----
    No person may be in both groups. The test needs enough events for a normal statistic, and groups
    that noise does not hide: p-values are too small if one has fewer than some 10 / epsilon people.

    References
    ----------
    .. [1] N. Mantel, "Evaluation of survival data and two new rank order statistics arising in its
       consideration", Cancer Chemotherapy Reports 50, 163-170, 1966.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.survival.comparisons import logrank_test
    >>> data = load_flchain()
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0, groups=[False, True])
    >>> old = data.X["age"] > 65
    >>> fitter = fitter.fit(data.y["futime"], data.y["death"], group=old)
    >>> bool(logrank_test(fitter.of_group(True), fitter.of_group(False)).p_value < 1e-6)
    True
    """
    if not np.array_equal(_checked(a)._curve.ends, _checked(b)._curve.ends):
        raise ValueError("a and b must have the same max_time, n_intervals and breakpoints.")
    _refuse_same_people(a, b)
    statistic, excess = _logrank(_group(a), _group(b))
    return ComparisonResult("logrank_test", statistic, _p_value(statistic, excess))


def pairwise_logrank_test(fitter: Any) -> pd.DataFrame:
    """Test all pairs of groups of one fit.

    Parameters
    ----------
    fitter : DPKaplanMeierFitter or DPAalenJohansenFitter
        Fitted, with groups.

    Returns
    -------
    pandas.DataFrame
        A row for each pair, as in lifelines. The p-values are not adjusted for their number.

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    if _checked(fitter).groups_ is None or len(fitter.groups_) < 2:
        raise ValueError("fitter must have been fitted with two groups or more.")
    pairs = list(combinations(fitter.groups_.tolist(), 2))
    rows = [logrank_test(fitter.of_group(a), fitter.of_group(b)).summary for a, b in pairs]
    return pd.concat(rows).set_index(pd.MultiIndex.from_tuples(pairs))


def compare_restricted_means(
    a: Any, b: Any, t: float | None = None, level: float = 0.95, n_resamples: int = 1000
) -> pd.DataFrame:
    """Return difference and ratio of the mean times that two groups survive up to t.

    Parameters
    ----------
    a, b : fitted univariate estimators
        Two groups of one fit, or two fits to different people.
    t : float or None
        Public, in the unit of ``max_time``. None: the smaller ``max_time``.
    level : float, default=0.95
        Nominal coverage.
    n_resamples : int, default=1000
        Number of simulated curves.

    Returns
    -------
    pandas.DataFrame
        Rows ``difference`` (a - b) and ``ratio`` (a / b), columns ``estimate``, ``lower``,
        ``upper``. Intervals allow for sampling and for privacy noise.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.survival.comparisons import compare_restricted_means
    >>> data = load_flchain()
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0, groups=[False, True])
    >>> old = data.X["age"] > 65
    >>> fitter = fitter.fit(data.y["futime"], data.y["death"], group=old)
    >>> found = compare_restricted_means(fitter.of_group(True), fitter.of_group(False), 3650)
    >>> bool(found.loc["difference", "upper"] < -300)
    True
    """
    _refuse_others(a, b)
    end = min(a._end(None), b._end(None)) if t is None else t

    def mean(model: Any, parameters: FloatArray) -> FloatArray:
        return np.asarray(model._curve.mean(model._end(end), parameters))

    return _compared(a, b, mean, level, n_resamples)


def compare_percentiles(
    a: Any, b: Any, p: float = 0.5, level: float = 0.95, n_resamples: int = 1000
) -> pd.DataFrame:
    """Return difference and ratio of the times by which survival falls to p: medians by default.

    Parameters
    ----------
    a, b : fitted univariate estimators
        Two groups of one fit, or two fits to different people.
    p : float, default=0.5
        Probability of survival.
    level : float, default=0.95
        Nominal coverage.
    n_resamples : int, default=1000
        Number of simulated curves.

    Returns
    -------
    pandas.DataFrame
        Rows ``difference`` and ``ratio``, columns ``estimate``, ``lower``, ``upper``. Ends are
        infinite, or 0, if a curve may not fall so far by ``max_time``. An estimate is NaN if both
        curves do not.
    """
    _refuse_others(a, b)
    p = fraction("p", p)

    def percentile(model: Any, parameters: FloatArray) -> FloatArray:
        if parameters.ndim == 1:
            return np.asarray(model.percentile(p))
        return np.asarray(model._curve.percentiles(p, parameters))

    return _compared(a, b, percentile, level, n_resamples)


def _refuse_others(a: Any, b: Any) -> None:
    """Refuse arguments that are not two fitted curves of different people."""
    for model in (a, b):
        _checked(model, UnivariateFitter)
    _refuse_same_people(a, b)


def _compared(a: Any, b: Any, functional: Any, level: float, n_resamples: int) -> pd.DataFrame:
    level, n_draws = fraction("level", level), positive_int("n_resamples", n_resamples)
    point = [functional(model, model._curve.estimates) for model in (a, b)]
    drawn = [functional(model, model._draws(n_draws)) for model in (a, b)]
    # Draws of both have one seed: permuted, those of the second are independent.
    drawn[1] = drawn[1][np.random.default_rng(0).permutation(n_draws)]
    k = int((1.0 - level) / 2.0 * n_draws)
    rows = {}
    for name, operation, least in (
        ("difference", np.subtract, -math.inf),
        ("ratio", np.divide, 0.0),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = float(operation(*point))
            values = operation(*drawn)
        # Two times beyond the horizon compare in either direction.
        lower = float(np.sort(np.where(np.isnan(values), least, values))[k])
        upper = float(np.sort(np.where(np.isnan(values), math.inf, values))[n_draws - 1 - k])
        # The estimate may be NaN, which fmin and fmax ignore.
        rows[name] = estimate, np.fmin(lower, estimate), np.fmax(upper, estimate)
    columns = ["estimate", "lower", "upper"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _checked(model: Any, kind: type = LifeTableFitter) -> Any:
    """Return a fitted model, or refuse another object."""
    if not isinstance(model, kind):
        what = "curves" if kind is LifeTableFitter else "distributions"
        raise TypeError(f"a and b must be fitted {what}, got {type(model).__name__}.")
    check_is_fitted(model, "release_")
    return model


class _Group(NamedTuple):
    """Released cells of a group, the likely ones behind them, and matrices of sums of cells.

    ``masses`` are those of the event, in each band. The matrices, of shape (n_bands, n_cells), give
    numbers at risk in the middle of each band, and numbers of events.
    """

    cells: FloatArray
    variance: float
    likely: FloatArray
    masses: FloatArray
    at_risk_of: FloatArray
    events_of: FloatArray


def _group(model: Any) -> _Group:
    curve = model._curve
    cause = curve.causes.index(getattr(model, "event_of_interest_", None))
    return _group_of(curve.table, curve.fit, cause)


def _group_of(table: NoisyTable, fit: ActuarialEstimate, cause: int) -> _Group:
    q = table.n_bands
    later = np.triu(np.ones((q, q)), 1) + 0.5 * np.eye(q)
    return _Group(
        table.cells,
        table.variance,
        np.append(fit.counts.ravel(), fit.stayed),
        fit.masses[cause],
        np.hstack([*[later] * table.n_outcomes, np.ones((q, 1))]),
        np.eye(q, table.cells.size, cause * q),
    )


def _refuse_same_people(a: Any, b: Any) -> None:
    """Refuse groups of the same people, as far as releases tell."""
    groups = [getattr(model, "group_", None) for model in (a, b)]
    if a.release_ == b.release_ and (None in groups or groups[0] == groups[1]):
        raise ValueError("a and b must be two groups, of different people.")


def _p_value(statistic: float, excess: float) -> float:
    """Return the probability of a larger statistic, given the excess kurtosis by noise."""
    if excess < 1e-3:
        return float(special.chdtrc(1.0, statistic))
    freedom = 4.0 + 6.0 / excess
    size = math.sqrt(statistic * freedom / (freedom - 2.0))
    return float(2.0 * special.stdtr(freedom, -size))


def _logrank(one: _Group, two: _Group) -> tuple[float, float]:
    """Return the statistic, about chi-squared, and its excess kurtosis by noise."""
    x1, x2 = one.likely, two.likely
    y1, y2 = one.at_risk_of @ x1, two.at_risk_of @ x2
    both = np.maximum(y1 + y2, 1e-9)
    hazard = (one.masses * y1 + two.masses * y2) / both
    # Sampling, and noise in a band's own events, which hides them.
    sampling = hazard * y1 * y2 / both
    hidden = (one.variance * y2**2 + two.variance * y1**2) / both**2
    weight = sampling / np.maximum(sampling + hidden, 1e-300) / both
    form = one.events_of.T @ (weight[:, None] * two.at_risk_of)
    form -= one.at_risk_of.T @ (weight[:, None] * two.events_of)
    statistic = float(one.cells @ form @ two.cells)
    sampled = float(np.sum(weight**2 * both * y1 * y2 * hazard))
    by_two = two.variance * float(np.sum((form.T @ x1) ** 2))
    by_one = one.variance * float(np.sum((form @ x2) ** 2))
    by_both = one.variance * two.variance * float(np.sum(form**2))
    variance = sampled + by_two + by_one + by_both
    if variance <= 0.0:
        return 0.0, 0.0
    cells, variances = (x1, x2), (one.variance, two.variance)
    # The same in either order of the groups.
    fourth = _excess(form, cells, variances) + _excess(form.T, cells[::-1], variances[::-1])
    return statistic**2 / variance, max(fourth / 2.0, 0.0) / variance**2


def _excess(form: FloatArray, cells: tuple[FloatArray, ...], variances: tuple[float, ...]) -> float:
    """Return the fourth cumulant of the noise in a bilinear form, by simulation."""
    generator = np.random.default_rng(0)
    one, two = (
        generator.laplace(0.0, math.sqrt(variance / 2.0), (N_DRAWS, here.size))
        for variance, here in zip(variances, cells, strict=True)
    )
    noise = np.einsum("ri,ri->r", one @ form, cells[1] + two) + two @ (form.T @ cells[0])
    return float(np.mean(noise**4) - 3.0 * np.mean(noise**2) ** 2)
