"""Regressions: unshrunk estimates with standard errors, as releases hold them, are pooled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from skdpsurv.classification.logistic_regression import ENOUGH
from skdpsurv.inference import Inference
from skdpsurv.labels import stated_classes
from skdpsurv.pooling.members import n_records, require_same
from skdpsurv.preprocessing.feature import require_same_units
from skdpsurv.priors import Evidence
from skdpsurv.release import Release, released_array
from skdpsurv.types import FloatArray


class Regression(ABC):
    """How to read the parameters of a regression from a release, and how to write them.

    Common parameters, a baseline or an intercept, come first, and then one for each feature.
    """

    #: Public parameters that decide what coefficients mean.
    same: ClassVar[tuple[str, ...]]
    #: What a fit needs beside a share of epsilon to have standard errors.
    hint: ClassVar[str] = ""
    #: What the common parameters are called.
    common_name: ClassVar[str]

    @abstractmethod
    def n_common(self, release: Release) -> int:
        """Return how many parameters there are beside the coefficients."""

    @abstractmethod
    def fitted(self, release: Release) -> FloatArray:
        """Return the parameters that predictions of one release use: shrunk."""

    @abstractmethod
    def written(self, theta: FloatArray, n_common: int) -> dict[str, Any]:
        """Return the values of a release that predicts with these parameters."""

    @abstractmethod
    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return numbers of each coefficient in the shape that a release has them in."""

    def check(self, members: Sequence[Release]) -> None:
        """Refuse releases whose coefficients mean different things.

        Raises
        ------
        ValueError
            Naming what differs.
        """
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

        Raises
        ------
        ValueError
            If none has standard errors.
        """
        found = [self._estimate(member) for member in members]
        sizes = [self.n_common(member) + member.n_features for member in members]
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
        common = [self.common_name] * self.n_common(release)
        return common + [feature.name for feature in release.features]

    def _estimate(self, release: Release) -> Inference | None:
        return Inference.of(release, self.n_common(release) + release.n_features)

    def values(
        self, members: Sequence[Release], estimates: Sequence[Inference], mean: Inference
    ) -> dict[str, Any]:
        """Return the values of the pooled release.

        Where nobody knows a coordinate, predictions use the mean of what was released, weighed by
        numbers of records; it has no standard error.
        """
        sizes = np.array([n_records(member) for member in members], dtype=np.float64)
        fitted = np.average([self.fitted(member) for member in members], axis=0, weights=sizes)
        theta = np.where(mean.known, mean.estimate, fitted)
        n_common = self.n_common(members[0])
        released = self.written(theta, n_common)
        error = mean.standard_errors()[n_common:]
        if np.isfinite(error).all() and (error > 0.0).all():
            own = Evidence(self.coefficients(theta[n_common:]), self.coefficients(error))
            released |= own.values()
        return released | Inference(theta, mean.covariance, mean.known).values()


class Hazards(Regression):
    """Of DPDiscreteTimeSurvival."""

    same = ("max_time", "n_intervals", "n_knots", "link")
    common_name = "the baseline"

    def n_common(self, release: Release) -> int:
        """Return the number of knots of the baseline."""
        return int(release.parameters["n_knots"])

    def fitted(self, release: Release) -> FloatArray:
        """Return baseline and coefficients."""
        baseline = released_array(release, "baseline_coef", (self.n_common(release),))
        return np.append(baseline, released_array(release, "coef", (release.n_features,)))

    def written(self, theta: FloatArray, n_common: int) -> dict[str, Any]:
        """Return baseline and coefficients; without a recalibration, as they are not shrunk."""
        return {"baseline_coef": theta[:n_common], "coef": theta[n_common:]}

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return a row as it is."""
        return values


class LogOdds(Regression):
    """Of DPLogisticRegression, of two classes."""

    same = ("classes", "fit_intercept")
    common_name = "the intercept"
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

    def fitted(self, release: Release) -> FloatArray:
        """Return intercept and coefficients."""
        coef = released_array(release, "coef", (1, release.n_features))[0]
        intercept = released_array(release, "intercept", (1,))
        return np.append(intercept, coef) if self.n_common(release) else coef

    def written(self, theta: FloatArray, n_common: int) -> dict[str, Any]:
        """Return intercept and coefficients: log odds, without a cap and without shrinkage."""
        return {
            "coef": theta[None, n_common:],
            "intercept": theta[:1] if n_common else np.zeros(1),
            "max_residual": 1.0,
            "recalibration_slope": 1.0,
        }

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return a table of one row."""
        return values[None]
