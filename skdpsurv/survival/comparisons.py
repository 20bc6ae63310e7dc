r"""Comparisons of fitted curves, from their releases alone, at no cost.

The log-rank scores of groups g on one grid of bands k, with :math:`d_{gk}` events and
:math:`Y_{gk}` at risk in the middle of a band, and a dot for sums over groups, are

.. math::
   U_g = \sum_k \omega_k\,(d_{gk} Y_{\cdot k} - d_{\cdot k} Y_{gk})
   = \sum_{h \ne g} z_g' B_{gh} z_h,

with :math:`\omega_k = 1 / Y_{\cdot k}`: numbers at risk are sums of the cells z of event-count
tables, of exits and of late entries. The noise of tables is independent and has mean zero, so that
scores have mean 0 if hazards are the same and weights do not depend on single cells. Their
covariance is

.. math::
   V_{gh} = \underbrace{\sum_k \omega_k^2 Y_{\cdot k}\lambda_k Y_{gk}
   (\delta_{gh} Y_{\cdot k} - Y_{hk})}_\text{sampling}
   + \underbrace{\sum_m v_m a_{gm}' a_{hm} \pm v_g v_h \|B_{gh}\|^2}_\text{noise},

with v the variances of the noise in cells, :math:`\lambda_k` the common hazard, and
:math:`a_{gm}` the gradient of :math:`U_g` in the table m without noise; the last term is negative
for two groups, and added over all others for one. :math:`U' V^- U` is compared with a chi-squared
distribution. Products of noise have heavier tails: if they matter, it is the quadratic form of
Student's t that has their fourth moment. Bands in which noise hides the events have less weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from sklearn.utils.validation import check_is_fitted

from skdpsurv.dp.checks import fraction, positive_int
from skdpsurv.dp.stated_noise import GAUSSIAN, LAPLACE
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference.comparison import ComparisonResult
from skdpsurv.survival.curves.kaplan_meier import LifeTableFitter
from skdpsurv.survival.curves.life_table import ActuarialEstimate, NoisyTable
from skdpsurv.survival.univariate import UnivariateFitter

N_DRAWS = 4000  # of noise, for the fourth moment of a statistic

__all__ = [
    "ComparisonResult",
    "compare_percentiles",
    "compare_restricted_means",
    "logrank_test",
    "multivariate_logrank_test",
    "pairwise_logrank_test",
]


def logrank_test(a: Any, b: Any, *, cause: Any = None) -> ComparisonResult:
    """Test whether two groups have the same hazard, by their released tables.

    Parameters
    ----------
    a, b : DPKaplanMeierFitter or DPAalenJohansenFitter
        Fitted, with the same bands of time: two groups of one fit (``fitter.of_group(label)``), or
        two fits to different people.
    cause : label or None, default=None
        Of competing events, the one that is tested: its rate among people who had no event yet
        (cause-specific). None: the event of interest.

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
    return _tested("logrank_test", [a, b], cause)


def multivariate_logrank_test(fitter: Any, *, cause: Any = None) -> ComparisonResult:
    """Test whether all groups of one fit have the same hazard.

    Parameters
    ----------
    fitter : DPKaplanMeierFitter or DPAalenJohansenFitter
        Fitted, with groups.
    cause : label or None, default=None
        As for :func:`logrank_test`.

    Returns
    -------
    ComparisonResult
        One test of all groups, with as many degrees of freedom as there are groups, less one. Of
        two groups it is :func:`logrank_test`.

    Raises
    ------
    ValueError
        If there are fewer than two groups.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.survival.comparisons import multivariate_logrank_test
    >>> data = load_flchain()
    >>> decade = (data.X["age"] // 10).clip(upper=8)
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5200.0, groups=[5, 6, 7, 8])
    >>> fitter = fitter.fit(data.y["futime"], data.y["death"], group=decade)
    >>> found = multivariate_logrank_test(fitter)
    >>> found.degrees_of_freedom, bool(found.p_value < 1e-6)
    (3, True)
    """
    members = [fitter.of_group(label) for label in _labels(fitter)]
    return _tested("multivariate_logrank_test", members, cause)


def pairwise_logrank_test(fitter: Any, *, cause: Any = None) -> pd.DataFrame:
    """Test all pairs of groups of one fit; :func:`multivariate_logrank_test` tests all at once.

    Parameters
    ----------
    fitter : DPKaplanMeierFitter or DPAalenJohansenFitter
        Fitted, with groups.
    cause : label or None, default=None
        As for :func:`logrank_test`.

    Returns
    -------
    pandas.DataFrame
        A row for each pair, as in lifelines. The p-values are not adjusted for their number.

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    pairs = list(combinations(_labels(fitter), 2))
    tests = [logrank_test(*map(fitter.of_group, pair), cause=cause) for pair in pairs]
    rows = pd.concat([test.summary for test in tests])
    return rows.set_index(pd.MultiIndex.from_tuples(pairs))


def _labels(fitter: Any) -> list[Any]:
    """Return the labels of two groups or more."""
    if _checked(fitter).groups_ is None or len(fitter.groups_) < 2:
        raise ValueError("fitter must have been fitted with two groups or more.")
    found: list[Any] = fitter.groups_.tolist()
    return found


def _tested(name: str, members: Sequence[Any], cause: Any) -> ComparisonResult:
    statistic, excess, freedom = _logrank(*(_group(member, cause) for member in members))
    return ComparisonResult(name, statistic, _p_value(statistic, excess, freedom), freedom)


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
    """Released cells of a group, likely ones, masses of the event by band, and sums of cells.

    Matrices of shape (n_bands, n_cells) give numbers at risk in mid-band, and of events.
    """

    cells: FloatArray
    variance: float
    likely: FloatArray
    masses: FloatArray
    at_risk_of: FloatArray
    events_of: FloatArray
    law: str = LAPLACE

    def with_noise(self, generator: np.random.Generator) -> FloatArray:
        """Return likely cells with noise; a sum of noises has at most the excess of Laplace's."""
        normal, size = self.law == GAUSSIAN, (N_DRAWS, self.likely.size)
        scale = math.sqrt(self.variance / (1.0 if normal else 2.0))
        return (generator.normal if normal else generator.laplace)(self.likely, scale, size)


def _group(model: Any, cause: Any = None) -> _Group:
    curve = model._curve
    label = getattr(model, "event_of_interest_", None) if cause is None else cause
    cause = curve.causes.index(label, "cause")
    return _group_of(curve.table, curve.fit, cause, curve.first_band)


def _group_of(table: NoisyTable, fit: ActuarialEstimate, cause: int, first: int = 0) -> _Group:
    cells, likely, at_risk_of = fit.counted()
    events_of = np.eye(table.n_bands, cells.size, cause * table.n_bands)
    at_risk_of[:first] = events_of[:first] = 0.0
    known = cells, table.variance, likely, fit.masses[cause]
    return _Group(*known, at_risk_of, events_of, table.law)


def _refuse_same_people(a: Any, b: Any) -> None:
    """Refuse groups of the same people, as far as releases tell."""
    groups = [getattr(model, "group_", None) for model in (a, b)]
    if a.release_ == b.release_ and (None in groups or groups[0] == groups[1]):
        raise ValueError("a and b must be two groups, of different people.")


def _p_value(statistic: float, excess: float, degrees: int = 1) -> float:
    """Return the probability of a larger statistic, given the excess kurtosis by noise."""
    if excess < 1e-3:
        return float(special.chdtrc(degrees, statistic))
    freedom = 4.0 + 2.0 * degrees * (degrees + 2.0) / excess
    size = statistic * freedom / (freedom - 2.0) / degrees
    return float(special.fdtrc(degrees, freedom, size))


def _logrank(*groups: _Group) -> tuple[float, float, int]:
    """Return the statistic, about chi-squared, its excess kurtosis by noise, and its freedom."""
    likely, cells = [one.likely for one in groups], [one.cells for one in groups]
    events, risks = np.maximum(_counts(groups, likely), 0.0)
    total = np.maximum(risks.sum(axis=0), 1e-9)
    shares, variances = risks / total, np.array([[one.variance] for one in groups])
    hazard = np.sum([one.masses for one in groups] * shares, axis=0)
    # Sampling, and noise in a band's own events, which hides them.
    sampling = np.sum(hazard * risks * (1.0 - shares), axis=0)
    squares = np.sum(shares**2, axis=0) - shares**2
    hidden = np.sum(variances * ((1.0 - shares) ** 2 + squares), axis=0)
    weight = sampling / np.maximum(sampling + hidden, 1e-300) / total
    scale = weight**2 * total * hazard * risks
    covariance = np.diag(scale @ total) - scale @ risks.T
    for m, one in enumerate(groups):
        gradients = (weight * events) @ one.at_risk_of - (weight * risks) @ one.events_of
        gradients[m] -= gradients.sum(axis=0)
        covariance += one.variance * gradients @ gradients.T
    for (g, one), (h, two) in combinations(enumerate(groups), 2):
        form = one.events_of.T @ (weight[:, None] * two.at_risk_of)
        form -= one.at_risk_of.T @ (weight[:, None] * two.events_of)
        by_both = one.variance * two.variance * float(np.sum(form**2))
        covariance[[g, h, g, h], [g, h, h, g]] += by_both * np.array([1.0, 1.0, -1.0, -1.0])
    # Scores add up to 0: the last one says nothing.
    inverse = np.linalg.pinv(covariance[:-1, :-1], hermitian=True)
    score = _scores(groups, weight, cells)[:-1]
    statistic = float(score @ inverse @ score)
    # The same in either order of two groups.
    excess = [_excess(groups, weight, inverse, step) for step in (1, -1)]
    return statistic, max(sum(excess) / 2.0, 0.0), len(groups) - 1


def _counts(groups: Sequence[_Group], cells: Iterable[FloatArray]) -> FloatArray:
    """Return events and numbers at risk of each group, for cells, or for draws of them."""
    pairs = zip(groups, cells, strict=True)
    found = [(own @ one.events_of.T, own @ one.at_risk_of.T) for one, own in pairs]
    return np.swapaxes(found, 0, 1)


def _scores(
    groups: Sequence[_Group], weight: FloatArray, cells: Iterable[FloatArray]
) -> FloatArray:
    """Return the score of each group, for cells of their tables, or for draws of them."""
    events, risks = _counts(groups, cells)
    terms = events * risks.sum(axis=0) - events.sum(axis=0) * risks
    return np.asarray(terms @ weight)


def _excess(groups: Sequence[_Group], weight: FloatArray, inverse: FloatArray, step: int) -> float:
    """Return the excess kurtosis (Mardia's) of a statistic by noise, by simulation."""
    generator, groups = np.random.default_rng(0), groups[::step]
    noisy = [one.with_noise(generator) for one in groups]
    free = _scores(groups, weight, [one.likely for one in groups])
    noise = (_scores(groups, weight, noisy) - free[:, None])[::step][:-1]
    fourth = np.einsum("gr,gh,hr->r", noise, inverse, noise) ** 2
    spread = inverse @ noise @ noise.T / N_DRAWS
    return float(fourth.mean() - np.trace(spread) ** 2 - 2.0 * np.trace(spread @ spread))
