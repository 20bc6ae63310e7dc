"""The papers to the letter, and their baselines: thin estimators to compare with.

They protect what they say they protect, by the papers' own constants (docs/errata has where these
had to be mended). For records that matter, take the estimators of the rest of this package.
"""

from __future__ import annotations

from skdpsurv.published.classifiers import PublishedLogisticRegression, PublishedStackingClassifier
from skdpsurv.published.hazards import PublishedDiscreteTimeSurvival
from skdpsurv.published.histogram import PerturbedHistogramMEstimator
from skdpsurv.published.weibull_fitters import (
    LaplaceWeibullFitter,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)

__all__ = [
    "LaplaceWeibullFitter",
    "PerturbedHistogramMEstimator",
    "PublishedDiscreteTimeSurvival",
    "PublishedLogisticRegression",
    "PublishedStackingClassifier",
    "PublishedWeibullFitter",
    "SampleAggregateWeibullFitter",
]
