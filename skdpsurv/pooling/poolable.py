r"""How releases of each kind of estimator are read, pooled and written.

**Regressions** are pooled by unshrunk estimates with standard errors, as releases hold them.

**Weibull distributions** are pooled by log scale and log shape. The standard error of a release
matches a normal distribution to the central 95 % of its simulated parameters, and their rank
correlation :math:`r` gives the correlation, :math:`2 \sin(\pi r / 6)`. A pooled release holds its
errors.

**Curves** and **Table 1** are pooled by tables of counts. With the same bands, groups and causes,
or columns, the table of all people is the sum of the tables of sites, :math:`z = \sum_i z_i`, with
noise of variance :math:`v = \sum_i v_i` in each cell. Tables of entries are added up likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special, stats

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import require_same_units
from skdpsurv.data.labels import stated_classes
from skdpsurv.dp.stated_noise import SUM
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference
from skdpsurv.pooling.studies import n_records, require_same
from skdpsurv.priors import Evidence
from skdpsurv.release import Release, released_array
from skdpsurv.release.values import released_noise
from skdpsurv.survival.weibull.fitter import LOG_COVARIANCE

#: Pooled parameters of a distribution.
LOGS = ("log lambda_", "log rho_")
#: Simulated parameters behind the errors of a release.
N_DRAWS = 500
#: Central share of the draws that gives their error, and the largest correlation.
LEVEL, LARGEST_CORRELATION = 0.95, 0.99


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Parameters of a regression: a baseline or an intercept, then one for each feature.

    ``same`` are public parameters that decide what coefficients mean. ``common`` names the baseline
    or intercept, in messages and in a release, with ``n_common`` entries. ``rows`` is the
    shape of coefficients before the features. ``unshrunk`` holds further values of a release of
    unshrunk coefficients. ``hint`` says what standard errors need beside a share of epsilon.
    """

    same: tuple[str, ...]
    common: tuple[str, str]
    n_common: Callable[[Release], int]
    rows: tuple[int, ...] = ()
    unshrunk: Mapping[str, float] = field(default_factory=dict)
    hint: str = ""

    def check(self, studies: Sequence[Release]) -> None:
        """Refuse releases whose coefficients mean different things."""
        require_same(studies, self.same)
        first = studies[0]
        features = None if first.columns is None else first.features
        for study in studies[1:]:
            named = study.feature_names_in == first.feature_names_in
            sized = study.n_features_in == first.n_features_in
            if not (named and sized and study.has_columns(features)):
                raise ValueError(
                    "releases must have the same columns, with the same bounds, categories, names "
                    "and order: fit with columns=release.transformer() of one of them."
                )
        if any(one.over_time is not None for study in studies for one in study.features):
            raise ValueError("releases must be of effects that do not change over time.")
        require_same_units("releases", *(study.features for study in studies))
        if "classes" in self.same:
            classes = stated_classes(first.parameters["classes"])
            if classes is None or classes.size != 2:
                raise ValueError(
                    "releases must be of two classes: there are no standard errors for others."
                )

    def estimates(self, studies: Sequence[Release]) -> list[Inference]:
        """Return each release's own estimates; unknown if noise hides them."""
        sizes = [self.n_common(study) + study.n_features for study in studies]
        found = list(map(Inference.of, studies, sizes))
        if not any(found):
            raise ValueError(
                "releases must have standard errors to be weighed by: fit with inference_share=0.2"
                f"{self.hint}."
            )
        return [x or Inference.unknown(size) for x, size in zip(found, sizes, strict=True)]

    def names(self, release: Release) -> list[str]:
        """Return names of the parameters for messages."""
        common = [self.common[0]] * self.n_common(release)
        return common + [feature.name for feature in release.features]

    def values(self, studies: Sequence[Release], mean: Inference) -> dict[str, Any]:
        """Return the values of the pooled release, without shrinkage and recalibration.

        Unknown coordinates are means of the released ones, weighted by numbers of records; they
        have no standard errors.
        """
        sizes = np.array([n_records(study) for study in studies], dtype=np.float64)
        fitted = np.average([self._fitted(study) for study in studies], axis=0, weights=sizes)
        theta = np.where(mean.known, mean.estimate, fitted)
        n_common = self.n_common(studies[0])
        coef, error = (
            each[n_common:].reshape(*self.rows, -1) for each in (theta, mean.standard_errors())
        )
        released: dict[str, Any] = {
            "coef": coef,
            self.common[1]: theta[:n_common] if n_common else np.zeros(1),
            **self.unshrunk,
        }
        if np.isfinite(error).all() and (error > 0.0).all():
            released |= Evidence(coef, error).values()
        return released | Inference(theta, mean.covariance, mean.known).values()

    def _fitted(self, release: Release) -> FloatArray:
        """Return the shrunk parameters, which predictions of one release use."""
        n_common = self.n_common(release)
        common = released_array(release, self.common[1], (max(n_common, 1),))
        coef = released_array(release, "coef", (*self.rows, release.n_features))
        return np.append(common[:n_common], coef)


class Distributions:
    """Log scale and log shape of DPWeibullFitter."""

    def check(self, studies: Sequence[Release]) -> None:
        """Refuse releases on different scales of time."""
        require_same(studies, ("max_time", "omega"))

    def estimates(self, studies: Sequence[Release]) -> list[Inference]:
        """Return log scales and log shapes with their errors."""
        return [_estimate(study) for study in studies]

    def names(self, release: Release) -> list[str]:
        """Return names of the parameters for messages."""
        return list(LOGS)

    def values(self, studies: Sequence[Release], mean: Inference) -> dict[str, Any]:
        """Return scale and shape, and the covariance of their logs, if both are known."""
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
    known = np.isfinite(estimate) & np.isfinite(np.diag(covariance))  # not hidden by noise
    at = np.outer(known, known)
    return Inference(np.where(known, estimate, 0.0), np.where(at, covariance, 0.0), known)


def _covariance(draws: FloatArray) -> FloatArray:
    """Return the covariance of a normal distribution with the central part of the draws."""
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


def sum_of_tables(studies: Sequence[Release]) -> dict[str, Any]:
    """Return the sum of tables with the same cells."""
    require_same(studies, ("max_time", "breakpoints"))
    hint = ' n_intervals="auto" depends on the number of records and epsilon.'
    require_same(studies, ("n_intervals",), hint)
    optional = ("groups", "causes", "censored")
    require_same(studies, [n for n in optional if any(n in s.parameters for s in studies)])
    names = _tables(studies[0])
    if any(_tables(study) != names for study in studies):
        raise ValueError("releases must all have tables of entries, or none: fit all with entry.")
    shapes = {name: np.asarray(studies[0].values.get(name)).shape for name in names}
    found = {n: [released_array(study, n, shapes[n]) for study in studies] for n in names}
    return {name: np.sum(arrays, axis=0) for name, arrays in found.items()}


def _tables(study: Release) -> list[str]:
    """Return the names of a curve's tables."""
    return ["counts", *(["entries"] if "entries" in study.values else [])]


def sum_of_columns(studies: Sequence[Release]) -> dict[str, Any]:
    """Return the sum of tables of the same columns."""
    optional = [n for n in ("by", "by_is_public") if any(n in s.parameters for s in studies)]
    hint = (
        ' grid="auto" depends on the number of records, and a number of points on typical values.'
    )
    require_same(studies, ("grid", *optional), hint)
    untold: dict[str, Any] = dict.fromkeys(("typical", "per", "spread", "prevalence")) | {
        "unit": ""
    }
    stated = [[replace(k, **untold) for k in _columns(study)] for study in studies]
    if any(one != stated[0] for one in stated[1:]):
        raise ValueError(
            "releases must have the same columns, with the same bounds, categories and missing "
            "values: fit with columns=release.transformer() of one of them."
        )
    require_same_units("releases", *(study.features for study in studies))
    names = [name for name in ("counts", "group_sizes") if name in studies[0].values]
    shapes = {name: np.asarray(studies[0].values.get(name)).shape for name in names}
    found = {n: [released_array(study, n, shapes[n]) for study in studies] for n in names}
    return {name: np.sum(arrays, axis=0) for name, arrays in found.items()}


def _columns(release: Release) -> list[ColumnKind]:
    step = release.transformer()
    if not isinstance(step, PublicColumns):
        raise ValueError("releases must describe their columns.")
    return step._kinds()


def sum_of_noise(studies: Sequence[Release]) -> dict[str, Any]:
    """Return law and variance of the sum of tables."""
    found = {}
    for name in _tables(studies[0]):
        each = [released_noise(study, name)[1] for study in studies]
        found[name] = {"law": SUM, "variance": float(sum(each))}
    return found


#: How tables of counts are added up, by the word of their estimators' cards.
SUMS: dict[Any, Callable[[Sequence[Release]], dict[str, Any]]] = {
    "tables": sum_of_tables,
    "columns": sum_of_columns,
}


def counted() -> dict[str, Callable[[Sequence[Release]], dict[str, Any]]]:
    """Return how tables are added up, by the names of estimators."""
    stated = Release.kinds.stating("adds_up").items()
    return {name: SUMS[how] for name, how in stated if str(how) in SUMS}


def estimated() -> dict[str, Regression | Distributions]:
    """Return how parameters are weighted by their precisions, by the names of estimators."""
    stated = Release.kinds.stating("adds_up").items()
    return {
        name: Distributions() if isinstance(how, str) else Regression(**how)
        for name, how in stated
        if str(how) not in SUMS
    }
