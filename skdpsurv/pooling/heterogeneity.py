"""heterogeneity: how far sites differ, coefficient by coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from skdpsurv.inference import Inference
from skdpsurv.pooling.between_studies import Spread
from skdpsurv.pooling.members import in_order
from skdpsurv.pooling.pool import ESTIMATED, pooled_estimate
from skdpsurv.pooling.regressions import Regression
from skdpsurv.pooling.weibull import LOGS
from skdpsurv.release import Release
from skdpsurv.types import FloatArray


class Shown(NamedTuple):
    """Coefficients of sites in the units of a summary.

    ``names`` and ``steps`` (what is multiplied with) are of the coefficients, the last so many of
    the parameters that ``members`` estimate.
    """

    names: list[str]
    steps: FloatArray
    members: list[Inference]

    def of(self, one: Inference) -> tuple[FloatArray, FloatArray]:
        """Return coefficients and standard errors; no number and infinity where unknown."""
        n = self.steps.size
        error = one.standard_errors()[-n:] * np.abs(self.steps)
        estimate = np.where(one.known, one.estimate, np.nan)[-n:] * self.steps
        return estimate, error


def heterogeneity(releases: Sequence[Release]) -> pd.DataFrame:
    r"""Return how far sites differ by more than their errors, coefficient by coefficient.

    .. math::
       Q = \sum_i \frac{(y_i - \bar y)^2}{v_i}, \qquad
       \tau^2 = \max\Bigl(0, \frac{Q - \mathrm{df}}{\sum w_i - \sum w_i^2 / \sum w_i}\Bigr), \qquad
       I^2 = \max\Bigl(0, \frac{Q - \mathrm{df}}{Q}\Bigr),

    with :math:`w_i = 1 / v_i`, :math:`v_i` the variance of site i, of sampling and of privacy
    noise, and :math:`\bar y` the mean with these weights. Nothing is spent.

    Parameters
    ----------
    releases : sequence of Release
        As for :func:`pool_releases`, of estimators that have coefficients or, of
        :class:`~skdpsurv.DPWeibullFitter`, log scale and log shape.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``covariate``, in the units of ``summary``. ``coef fixed``, ``se(coef) fixed``,
        ``coef random`` and ``se(coef) random`` are those of :func:`pool_releases`, which weighs all
        coefficients together. ``tau2``, ``Q``, ``df``, ``p`` and ``I2`` look at one at a time.

    Raises
    ------
    TypeError, ValueError
        As :func:`pool_releases` does.

    Notes
    -----
    With few sites, or much noise, Q has little power: a large p does not say that sites are alike.

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
    found = shown_coefficients(in_order(releases, tuple(ESTIMATED)))
    columns: dict[str, FloatArray] = {}
    for effects in ("fixed", "random"):
        coef, error = found.of(pooled_estimate(found.members, effects))
        columns |= {f"coef {effects}": coef, f"se(coef) {effects}": error}
    spread, n = Spread.of(found.members), found.steps.size
    columns["tau2"] = spread.tau2[-n:] * found.steps**2
    columns["Q"] = spread.q[-n:]
    columns["df"] = np.maximum(spread.df[-n:], 0)
    columns["p"] = spread.p[-n:]
    columns["I2"] = spread.i2[-n:]
    return pd.DataFrame(columns, index=pd.Index(found.names, name="covariate"))


def shown_coefficients(members: Sequence[Release]) -> Shown:
    """Return coefficients of releases that can be pooled."""
    kind = ESTIMATED[members[0].estimator]
    kind.check(members)
    estimates = kind.estimates(members)
    if not isinstance(kind, Regression):
        return Shown(list(LOGS), np.ones(len(LOGS)), estimates)
    features = members[0].features
    steps = np.array([1.0 if f.per_unit is None else f.per_unit for f in features])
    return Shown([feature.name for feature in features], steps, estimates)
