r"""What is pooled of which estimator: how to read its releases, and how to write one of all.

**Regressions** are pooled by unshrunk estimates with standard errors, as releases hold them.

**Weibull distributions** are pooled by log scale and log shape. A release holds no errors of them:
its intervals are made of draws of parameters that could have led to it. The width of the central
95 % of them is that of a normal law of the standard error that is used here, and their rank
correlation :math:`r` gives its correlation, :math:`2 \sin(\pi r / 6)`. A pooled release holds its
errors, and its own intervals are made of these.

**Curves** are pooled by tables of counts, which add up. With the same bands, groups and causes, the
table of all people is the sum of the tables of sites, :math:`z = \sum_i z_i`, and so is its noise,
with variance :math:`v = \sum_i v_i` in each cell. The pooled release is a table like any other,
with that variance: curves, intervals and tests of it are about all people together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import special, stats

from skdpsurv.classification.logistic_regression import ENOUGH
from skdpsurv.data.cells import stated_classes
from skdpsurv.data.feature import require_same_units
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference
from skdpsurv.pooling.members import n_records, require_same
from skdpsurv.priors import Evidence
from skdpsurv.release import Release, released_array
from skdpsurv.survival.curves.table import COUNT_VARIANCE, table_variance
from skdpsurv.survival.weibull.fitter import LOG_COVARIANCE

#: Parameters of a distribution as they are pooled.
LOGS = ("log lambda_", "log rho_")
#: Draws that the errors of a release are read from: those of its intervals.
N_DRAWS = 500
#: Part of the draws between the ends of an interval, and of rank correlations that are believed.
LEVEL, LARGEST_CORRELATION = 0.95, 0.99


class Regression:
    """How to read the parameters of a regression from a release, and how to write them.

    Common parameters, a baseline or an intercept, come first, and then one for each feature.
    """

    #: Public parameters that decide what coefficients mean.
    same: ClassVar[tuple[str, ...]]
    #: What the common parameters are called, in messages and in a release.
    common_name: ClassVar[tuple[str, str]]
    #: The shape of a release's coefficients, before one for each feature.
    rows: ClassVar[tuple[int, ...]] = ()
    #: What else a release of unshrunk coefficients holds.
    unshrunk: ClassVar[dict[str, float]] = {}
    #: What a fit needs beside a share of epsilon to have standard errors.
    hint: ClassVar[str] = ""

    def n_common(self, release: Release) -> int:
        """Return how many parameters there are beside the coefficients."""
        raise NotImplementedError

    def check(self, members: Sequence[Release]) -> None:
        """Refuse releases whose coefficients mean different things."""
        require_same(members, self.same)
        first = members[0]
        features = None if first.columns is None else first.features
        for member in members[1:]:
            named = member.feature_names_in == first.feature_names_in
            sized = member.n_features_in == first.n_features_in
            if not (named and sized and member.has_columns(features)):
                raise ValueError(
                    "releases must have the same columns, with the same bounds, categories, names "
                    "and order: fit with columns=release.transformer() of one of them."
                )
        require_same_units("releases", *(member.features for member in members))

    def estimates(self, members: Sequence[Release]) -> list[Inference]:
        """Return what each release says of all parameters by its own records alone.

        One that noise hides from everybody says nothing.
        """
        sizes = [self.n_common(member) + member.n_features for member in members]
        found = list(map(Inference.of, members, sizes))
        if all(one is None for one in found):
            raise ValueError(
                "releases must have standard errors to be weighed by: fit with inference_share=0.2"
                f"{self.hint}."
            )
        return [
            Inference.unknown(size) if one is None else one
            for one, size in zip(found, sizes, strict=True)
        ]

    def names(self, release: Release) -> list[str]:
        """Return what the parameters are called in messages."""
        common = [self.common_name[0]] * self.n_common(release)
        return common + [feature.name for feature in release.features]

    def values(
        self, members: Sequence[Release], estimates: Sequence[Inference], mean: Inference
    ) -> dict[str, Any]:
        """Return the values of the pooled release: without a recalibration, as it is not shrunk.

        Where nobody knows a coordinate, predictions use the mean of what was released, weighed by
        numbers of records; it has no standard error.
        """
        sizes = np.array([n_records(member) for member in members], dtype=np.float64)
        fitted = np.average([self._fitted(member) for member in members], axis=0, weights=sizes)
        theta = np.where(mean.known, mean.estimate, fitted)
        n_common = self.n_common(members[0])
        coef, error = (
            each[n_common:].reshape(*self.rows, -1) for each in (theta, mean.standard_errors())
        )
        released: dict[str, Any] = {
            "coef": coef,
            self.common_name[1]: theta[:n_common] if n_common else np.zeros(1),
            **self.unshrunk,
        }
        if np.isfinite(error).all() and (error > 0.0).all():
            released |= Evidence(coef, error).values()
        return released | Inference(theta, mean.covariance, mean.known).values()

    def _fitted(self, release: Release) -> FloatArray:
        """Return the parameters that predictions of one release use: shrunk."""
        n_common = self.n_common(release)
        common = released_array(release, self.common_name[1], (max(n_common, 1),))
        coef = released_array(release, "coef", (*self.rows, release.n_features))
        return np.append(common[:n_common], coef)


class Hazards(Regression):
    """Of DPDiscreteTimeSurvival."""

    same = ("max_time", "n_intervals", "n_knots", "link")
    common_name = ("the baseline", "baseline_coef")

    def n_common(self, release: Release) -> int:
        """Return the number of knots of the baseline."""
        return int(release.parameters["n_knots"])


class LogOdds(Regression):
    """Of DPLogisticRegression, of two classes: without a cap."""

    same = ("classes", "fit_intercept")
    common_name = ("the intercept", "intercept")
    rows = (1,)
    unshrunk: ClassVar = {"max_residual": 1.0, "recalibration_slope": 1.0}
    hint = f", and n_records times epsilon of {ENOUGH:g} or more"

    def check(self, members: Sequence[Release]) -> None:
        """Refuse other than two classes, too."""
        super().check(members)
        classes = stated_classes(members[0].parameters["classes"])
        if classes is None or classes.size != 2:
            raise ValueError(
                "releases must be of two classes: there are no standard errors for others."
            )

    def n_common(self, release: Release) -> int:
        """Return 1 with an intercept, else 0."""
        return int(bool(release.parameters["fit_intercept"]))


class Distributions:
    """Of DPWeibullFitter: its parameters are log scale and log shape."""

    def check(self, members: Sequence[Release]) -> None:
        """Refuse releases on different scales of time."""
        require_same(members, ("max_time", "omega"))

    def estimates(self, members: Sequence[Release]) -> list[Inference]:
        """Return log scales and log shapes with their errors."""
        return [_estimate(member) for member in members]

    def names(self, release: Release) -> list[str]:
        """Return what the parameters are called in messages."""
        return list(LOGS)

    def values(
        self, members: Sequence[Release], estimates: Sequence[Inference], mean: Inference
    ) -> dict[str, Any]:
        """Return scale and shape, and the covariance of their logs; refuse if nobody knows one."""
        if not mean.known.all():
            raise ValueError("releases must have standard errors: noise hides those of all.")
        scale, shape = np.exp(mean.estimate)
        return {"lambda": scale, "rho": shape, LOG_COVARIANCE: mean.covariance}


def _estimate(release: Release) -> Inference:
    fitter = release.to_estimator()
    estimate = np.log([fitter.lambda_, fitter.rho_])
    if LOG_COVARIANCE in release.values:
        covariance = released_array(release, LOG_COVARIANCE, (2, 2))
    else:
        covariance = _covariance(np.log(fitter._draws(N_DRAWS)))
    known = np.isfinite(estimate) & np.isfinite(np.diag(covariance))  # else noise hides it
    at = np.outer(known, known)
    return Inference(np.where(known, estimate, 0.0), np.where(at, covariance, 0.0), known)


def _covariance(draws: FloatArray) -> FloatArray:
    """Return the covariance of a normal law with the central part of the draws."""
    if not np.isfinite(draws).all():
        return np.full((2, 2), np.inf)
    low, high = np.quantile(draws, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], axis=0)
    error = (high - low) / (2.0 * special.ndtri(0.5 + 0.5 * LEVEL))
    ranks = stats.rankdata(draws, axis=0)
    with np.errstate(invalid="ignore"):
        by_rank = float(np.nan_to_num(np.asarray(np.corrcoef(ranks.T))[0, 1]))
    correlation = 2.0 * np.sin(np.pi * by_rank / 6.0)
    correlation = float(np.clip(correlation, -LARGEST_CORRELATION, LARGEST_CORRELATION))
    return np.asarray(np.outer(error, error) * [[1.0, correlation], [correlation, 1.0]])


def check_tables(members: Sequence[Release]) -> None:
    """Refuse tables of different cells."""
    require_same(members, ("max_time", "breakpoints"))
    hint = ' n_intervals="auto" depends on the number of records and epsilon.'
    require_same(members, ("n_intervals",), hint)
    optional = ("groups", "causes", "censored")
    require_same(members, [n for n in optional if any(n in m.parameters for m in members)])


def sum_of_tables(members: Sequence[Release]) -> dict[str, Any]:
    """Return the values of the release of all."""
    shape = np.asarray(members[0].values.get("counts")).shape
    counts = [released_array(member, "counts", shape) for member in members]
    return {
        "counts": np.sum(counts, axis=0),
        COUNT_VARIANCE: float(sum(map(table_variance, members))),
    }


#: Estimators whose parameters are weighed by their precisions.
ESTIMATED: dict[str, Regression | Distributions] = {
    "DPDiscreteTimeSurvival": Hazards(),
    "DPLogisticRegression": LogOdds(),
    **dict.fromkeys(
        (
            "DPWeibullFitter",
            "LaplaceWeibullFitter",
            "PublishedWeibullFitter",
            "SampleAggregateWeibullFitter",
        ),
        Distributions(),
    ),
}
