"""A user's program, for mypy: what each step of an analysis returns is known before it runs."""

from typing import assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
    forecast_accuracy,
    make_release,
    split_target,
)
from skdpsurv.audit import AuditResult, audit_epsilon, worst_neighbours
from skdpsurv.datasets import load_flchain
from skdpsurv.evaluation import SurvivalEvaluation, concordance_index, private_survival_metrics
from skdpsurv.evaluation.forecast_result import AccuracyForecast
from skdpsurv.report import explain, formula, units
from skdpsurv.survival.comparisons import ComparisonResult, logrank_test

Floats = NDArray[np.float64]


def hazards(accountant: PrivacyAccountant) -> Release:
    data = load_flchain()
    columns = PublicColumns(data.bounds, missing="midpoint")
    model = DPDiscreteTimeSurvival(
        epsilon=1.0, max_time=data.max_time, columns=columns, accountant=accountant
    )
    assert_type(model.fit(data.X, data.y), DPDiscreteTimeSurvival)
    assert_type(model.predict(data.X), Floats)
    assert_type(model.score(data.X, data.y), float)
    assert_type(model.guarantee_, PrivacyGuarantee)
    assert_type(model.release_, Release)
    assert_type(model.predict_median(data.X), Floats)
    assert_type(model.coef_, Floats)
    assert_type(model.summary, pd.DataFrame)
    assert_type(accountant.spent(), float)
    assert_type(DPDiscreteTimeSurvival.from_release(model.release_), DPDiscreteTimeSurvival)
    return model.release_


def published(release: Release, rows: pd.DataFrame) -> str:
    release.save("model.json")
    again = Release.load("model.json")
    assert_type(again, Release)
    assert_type(Release.from_json(again.to_json()), Release)
    assert_type(again.made_by, PrivacyGuarantee)
    assert_type(units(again), pd.DataFrame)
    assert_type(formula(again), str)
    return explain(again)


def curves(time: Floats, event: NDArray[np.bool_], group: NDArray[np.int64]) -> float:
    fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=3650.0, groups=[0, 1])
    assert_type(fitter.fit(time, event, group=group), DPKaplanMeierFitter)
    women, men = fitter.of_group(0), fitter.of_group(1)
    assert_type(women, DPKaplanMeierFitter)
    assert_type(women.survival_function_, pd.DataFrame)
    assert_type(women.median_survival_time_, float)
    assert_type(logrank_test(women, men), ComparisonResult)
    assert_type(DPAalenJohansenFitter(max_time=10.0).fit(time, event), DPAalenJohansenFitter)
    assert_type(DPWeibullFitter(max_time=10.0).fit(time, event), DPWeibullFitter)
    return logrank_test(women, men).p_value


def classes(X: Floats, y: NDArray[np.int64]) -> None:
    classifier = DPLogisticRegression(epsilon=1.0, classes=[0, 1])
    assert_type(classifier.fit(X, y), DPLogisticRegression)
    assert_type(classifier.predict_proba(X), Floats)
    assert_type(classifier.decision_function(X), Floats)
    assert_type(classifier.score(X, y), float)
    stack = PrivateStackingClassifier(epsilon=1.0)
    assert_type(stack.fit(X, y), PrivateStackingClassifier)
    search = PrivateSearchCV(classifier, {"alpha": [0.1, 1.0]})
    assert_type(search.fit(X, y), PrivateSearchCV)
    assert_type(search.release_, Release)
    scaler = PublicBoundsScaler.from_bounds({"age": (0, 100)})
    assert_type(scaler, PublicBoundsScaler)
    assert_type(HybridMEstimator(classifier).fit(X, y), HybridMEstimator)
    assert_type(make_release(classifier), Release)


def judged(release: Release, frame: pd.DataFrame) -> AuditResult:
    X, y = split_target(frame, event="died", time="days")
    evaluation = private_survival_metrics(release, X, y, epsilon=1.0)
    assert_type(evaluation, SurvivalEvaluation)
    assert_type(evaluation.summary, pd.DataFrame)
    assert_type(concordance_index(y, np.ones(len(X))), float)
    forecast = forecast_accuracy("survival", 5000, n_columns=8, event_rate=0.3)
    assert_type(forecast, AccuracyForecast)
    assert_type(forecast.advice, str)
    model = DPDiscreteTimeSurvival(max_time=10.0)
    worst = next(worst_neighbours(model))
    return audit_epsilon(model, worst.data, worst.neighbour)
