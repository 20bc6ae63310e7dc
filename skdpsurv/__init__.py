"""Differentially private survival analysis and classification, as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skdpsurv.dp.references import __version__ as __version__

if TYPE_CHECKING:
    from skdpsurv.classification import (
        DPLogisticRegression as DPLogisticRegression,
        FeaturePartition as FeaturePartition,
        LogisticCombiner as LogisticCombiner,
        PrivateStackingClassifier as PrivateStackingClassifier,
    )
    from skdpsurv.descriptive import DPTableOne as DPTableOne
    from skdpsurv.evaluation import forecast_accuracy as forecast_accuracy
    from skdpsurv.data.chunks import FrameChunks as FrameChunks
    from skdpsurv.hybrid import HybridMEstimator as HybridMEstimator
    from skdpsurv.model_selection import (
        DisjointParts as DisjointParts,
        PrivateSearchCV as PrivateSearchCV,
        RepeatedRuns as RepeatedRuns,
    )
    from skdpsurv.pooling import pool_releases as pool_releases
    from skdpsurv.data import (
        PublicBoundsScaler as PublicBoundsScaler,
        PublicColumns as PublicColumns,
        PublicInputWarning as PublicInputWarning,
    )
    from skdpsurv.dp import (
        BudgetExceededError as BudgetExceededError,
        PrivacyAccountant as PrivacyAccountant,
        PrivacyGuarantee as PrivacyGuarantee,
        PrivacyLeakWarning as PrivacyLeakWarning,
    )
    from skdpsurv.model_selection.publishing import make_release as make_release
    from skdpsurv.survival import (
        DPAalenJohansenFitter as DPAalenJohansenFitter,
        DPCompetingRisks as DPCompetingRisks,
        DPDiscreteTimeSurvival as DPDiscreteTimeSurvival,
        DPKaplanMeierFitter as DPKaplanMeierFitter,
        DPWeibullFitter as DPWeibullFitter,
        PosteriorSampling as PosteriorSampling,
    )
    from skdpsurv.data.dates import DateColumns as DateColumns
    from skdpsurv.data.target import split_target as split_target
    from skdpsurv.release import Release as Release
else:
    #: What is imported when somebody asks for it, by the module that it is in.
    _LATER = {
        "classification": {
            *("DPLogisticRegression", "FeaturePartition", "LogisticCombiner"),
            "PrivateStackingClassifier",
        },
        "descriptive": {"DPTableOne"},
        "evaluation": {"forecast_accuracy"},
        "data.chunks": {"FrameChunks"},
        "hybrid": {"HybridMEstimator"},
        "model_selection": {"DisjointParts", "PrivateSearchCV", "RepeatedRuns"},
        "pooling": {"pool_releases"},
        "data": {"PublicBoundsScaler", "PublicColumns", "PublicInputWarning"},
        "dp": {
            *("BudgetExceededError", "PrivacyAccountant", "PrivacyGuarantee"),
            "PrivacyLeakWarning",
        },
        "model_selection.publishing": {"make_release"},
        "survival": {
            *("DPAalenJohansenFitter", "DPCompetingRisks", "DPDiscreteTimeSurvival"),
            *("DPKaplanMeierFitter", "DPWeibullFitter", "PosteriorSampling"),
        },
        "data.dates": {"DateColumns"},
        "data.target": {"split_target"},
        "release": {"Release"},
    }

    __all__ = ["__version__", *sorted(set().union(*_LATER.values()))]

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
