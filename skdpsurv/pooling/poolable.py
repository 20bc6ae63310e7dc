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
from scipy import linalg, special, stats

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import require_same_units
from skdpsurv.data.labels import stated_classes, stated_labels
from skdpsurv.dp.stated_noise import SUM
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference import Inference
from skdpsurv.inference.uncertainty import NAMES
from skdpsurv.pooling.studies import n_records, require_same
from skdpsurv.priors import Evidence
from skdpsurv.release import Release, released_array
from skdpsurv.release.values import released_noise
from skdpsurv.survival.weibull.fitter import LOG_COVARIANCE

#: Pooled parameters of a distribution.
LOGS = ("log lambda_", "log rho_")
_BY_PARAMETER = ("estimate", "known")
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
    ``by`` is the parameter whose labels, such as causes, have a baseline and coefficients each:
    these follow one another, and their covariances are 0, as no release has them.
    """

    same: tuple[str, ...]
    common: tuple[str, str]
    n_common: Callable[[Release], int]
    rows: tuple[int, ...] = ()
    unshrunk: Mapping[str, float] = field(default_factory=dict)
    hint: str = ""
    by: str = ""

    def labels(self, release: Release) -> list[Any]:
        """Return the labels that have parameters of their own; None for all parameters."""
        if not self.by:
            return [None]
        return list(stated_labels(self.by, release.parameters[self.by]).tolist())

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
        found = list(map(self._estimate, studies))
        if not any(found):
            raise ValueError(
                "releases must have standard errors to be weighed by: fit with inference_share=0.2"
                f"{self.hint}."
            )
        size = len(self.names(studies[0]))
        return [one or Inference.unknown(size) for one in found]

    def _estimate(self, release: Release) -> Inference | None:
        if release.values.keys().isdisjoint(NAMES):
            return None
        number = [len(self.labels(release))] if self.by else []
        size = self.n_common(release) + release.n_features
        each = Inference.each_of(release, size, *number)
        covariance = linalg.block_diag(*(one.covariance for one in each))
        estimate, known = (np.concatenate([getattr(x, n) for x in each]) for n in _BY_PARAMETER)
        return Inference(estimate, covariance, known)

    def names(self, release: Release) -> list[str]:
        """Return names of the parameters for messages."""
        own = [self.common[0]] * self.n_common(release) + [one.name for one in release.features]
        labels = self.labels(release)
        return [n if label is None else f"{n} ({label})" for label in labels for n in own]

    def coefficients(self, release: Release) -> tuple[list[Any], FloatArray, IntArray]:
        """Return names and units of coefficients, and their places among parameters."""
        labels, features = self.labels(release), release.features
        names = [(x, f.name) if self.by else f.name for x in labels for f in features]
        units = [1.0 if f.per_unit is None else f.per_unit for f in features]
        own = np.arange(n := self.n_common(release), n + len(features))
        each = np.arange(len(labels))[:, None] * (n + len(features)) + own
        return names, np.tile(units, len(labels)), each.ravel()

    def values(self, studies: Sequence[Release], mean: Inference) -> dict[str, Any]:
        """Return the values of the pooled release, without shrinkage and recalibration.

        Unknown coordinates are means of the released ones, weighted by numbers of records; they
        have no standard errors.
        """
        sizes = np.array([n_records(study) for study in studies], dtype=np.float64)
        fitted = np.average([self._fitted(study) for study in studies], axis=0, weights=sizes)
        theta = np.where(mean.known, mean.estimate, fitted)
        n_common, number = self.n_common(studies[0]), len(self.labels(studies[0]))
        rows = (number,) if self.by else self.rows
        parts, errors = (x.reshape(number, -1) for x in (theta, mean.standard_errors()))
        coef, error = (each[:, n_common:].reshape(*rows, -1) for each in (parts, errors))
        common = parts[:, :n_common] if self.by else parts[0, :n_common]
        released: dict[str, Any] = {
            "coef": coef,
            self.common[1]: common if n_common else np.zeros(1),
            **self.unshrunk,
        }
        if np.isfinite(error).all() and (error > 0.0).all():
            released |= Evidence(coef, error).values()
        places = np.arange(theta.size).reshape(number, -1)
        each = [
            Inference(theta[own], mean.covariance[np.ix_(own, own)], mean.known[own]).values()
            for own in places
        ]
        stacked = {name: np.stack([one[name] for one in each]) for name in NAMES}
        return released | (stacked if self.by else each[0])

    def _fitted(self, release: Release) -> FloatArray:
        """Return the shrunk parameters, which predictions of one release use."""
        n_common, number = self.n_common(release), len(self.labels(release))
        rows = (number,) if self.by else self.rows
        shape = (*((number,) if self.by else ()), max(n_common, 1))
        common = released_array(release, self.common[1], shape).reshape(number, -1)
        coef = released_array(release, "coef", (*rows, release.n_features)).reshape(number, -1)
        return np.hstack([common[:, :n_common], coef]).ravel()


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
