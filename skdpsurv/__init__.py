"""Differentially private survival analysis and classification, as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skdpsurv.release import Release
from skdpsurv.version import __version__

if TYPE_CHECKING:
    from skdpsurv.classification import (
        DPLogisticRegression,
        FeaturePartition,
        LogisticCombiner,
        PrivateStackingClassifier,
    )
    from skdpsurv.forecast import forecast_accuracy
    from skdpsurv.frame_chunks import FrameChunks
    from skdpsurv.hybrid import HybridMEstimator
    from skdpsurv.model_selection import DisjointParts, PrivateSearchCV, RepeatedRuns
    from skdpsurv.pooling import pool_releases
    from skdpsurv.preprocessing import PublicBoundsScaler, PublicColumns, PublicInputWarning
    from skdpsurv.privacy import (
        BudgetExceededError,
        PrivacyAccountant,
        PrivacyGuarantee,
        PrivacyLeakWarning,
    )
    from skdpsurv.publishing import make_release
    from skdpsurv.survival import (
        DPAalenJohansenFitter,
        DPDiscreteTimeSurvival,
        DPKaplanMeierFitter,
        DPWeibullFitter,
        PosteriorSampling,
    )
    from skdpsurv.target import split_target
else:
    #: What is imported when somebody asks for it, by the module that it is in.
    _LATER = {
        "classification": {
            *("DPLogisticRegression", "FeaturePartition", "LogisticCombiner"),
            "PrivateStackingClassifier",
        },
        "forecast": {"forecast_accuracy"},
        "frame_chunks": {"FrameChunks"},
        "hybrid": {"HybridMEstimator"},
        "model_selection": {"DisjointParts", "PrivateSearchCV", "RepeatedRuns"},
        "pooling": {"pool_releases"},
        "preprocessing": {"PublicBoundsScaler", "PublicColumns", "PublicInputWarning"},
        "privacy": {
            *("BudgetExceededError", "PrivacyAccountant", "PrivacyGuarantee"),
            "PrivacyLeakWarning",
        },
        "publishing": {"make_release"},
        "survival": {
            *("DPAalenJohansenFitter", "DPDiscreteTimeSurvival", "DPKaplanMeierFitter"),
            *("DPWeibullFitter", "PosteriorSampling"),
        },
        "target": {"split_target"},
    }

    def __getattr__(name):
        """Import a public name, or a module of the package (PEP 562)."""
        from pkgutil import iter_modules, resolve_name

        for module, names in _LATER.items():
            if name in names:
                return resolve_name(f"skdpsurv.{module}:{name}")
        if name in {module.name for module in iter_modules(__path__)}:
            return resolve_name(f"skdpsurv.{name}:")
        raise AttributeError(f"module 'skdpsurv' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})


def _import_estimators() -> None:
    import skdpsurv.published  # noqa: F401  It builds on all others.


#: A release may be of an estimator that nobody has imported.
Release.kinds.import_all = _import_estimators

__all__ = [
    "BudgetExceededError",
    "DPAalenJohansenFitter",
    "DPDiscreteTimeSurvival",
    "DPKaplanMeierFitter",
    "DPLogisticRegression",
    "DPWeibullFitter",
    "DisjointParts",
    "FeaturePartition",
    "FrameChunks",
    "HybridMEstimator",
    "LogisticCombiner",
    "PosteriorSampling",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateSearchCV",
    "PrivateStackingClassifier",
    "PublicBoundsScaler",
    "PublicColumns",
    "PublicInputWarning",
    "Release",
    "RepeatedRuns",
    "__version__",
    "forecast_accuracy",
    "make_release",
    "pool_releases",
    "split_target",
]
