"""A user's program, for mypy: what each step of an analysis returns is known before it runs."""

from typing import assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import skdpsurv as dp
from skdpsurv import evaluation, report
from skdpsurv.audit import AuditResult, audit_epsilon, worst_neighbours
from skdpsurv.datasets import load_flchain
from skdpsurv.evaluation.forecast_result import AccuracyForecast
from skdpsurv.survival.comparisons import ComparisonResult, logrank_test

Floats = NDArray[np.float64]


def hazards(accountant: dp.PrivacyAccountant) -> dp.Release:
    data = load_flchain()
    columns = dp.PublicColumns(data.bounds, missing="midpoint")
    model = dp.DPDiscreteTimeSurvival(
        epsilon=1.0, max_time=data.max_time, columns=columns, accountant=accountant
    )
    assert_type(model.fit(data.X, data.y), dp.DPDiscreteTimeSurvival)
    assert_type(model.predict(data.X), Floats)
    assert_type(model.score(data.X, data.y), float)
    assert_type(model.guarantee_, dp.PrivacyGuarantee)
    assert_type(model.release_, dp.Release)
    assert_type(model.predict_median(data.X), Floats)
    assert_type(model.coef_, Floats)
    assert_type(model.summary, pd.DataFrame)
    assert_type(accountant.spent(), float)
    assert_type(dp.DPDiscreteTimeSurvival.from_release(model.release_), dp.DPDiscreteTimeSurvival)
    return model.release_


def published(release: dp.Release) -> str:
    release.save("model.json")
    again = dp.Release.load("model.json")
    assert_type(again, dp.Release)
    assert_type(dp.Release.from_json(again.to_json()), dp.Release)
    assert_type(again.made_by, dp.PrivacyGuarantee)
    assert_type(report.units(again), pd.DataFrame)
    assert_type(report.formula(again), str)
    return report.explain(again)


def curves(time: Floats, event: NDArray[np.bool_], group: NDArray[np.int64]) -> float:
    fitter = dp.DPKaplanMeierFitter(epsilon=1.0, max_time=3650.0, groups=[0, 1])
    assert_type(fitter.fit(time, event, group=group), dp.DPKaplanMeierFitter)
    women, men = fitter.of_group(0), fitter.of_group(1)
    assert_type(women, dp.DPKaplanMeierFitter)
    assert_type(women.survival_function_, pd.DataFrame)
    assert_type(women.median_survival_time_, float)
    assert_type(logrank_test(women, men), ComparisonResult)
    assert_type(dp.DPAalenJohansenFitter(max_time=10.0).fit(time, event), dp.DPAalenJohansenFitter)
    assert_type(dp.DPWeibullFitter(max_time=10.0).fit(time, event), dp.DPWeibullFitter)
    return logrank_test(women, men).p_value


def classes(X: Floats, y: NDArray[np.int64]) -> None:
    classifier = dp.DPLogisticRegression(epsilon=1.0, classes=[0, 1])
    assert_type(classifier.fit(X, y), dp.DPLogisticRegression)
    assert_type(classifier.predict_proba(X), Floats)
    assert_type(classifier.decision_function(X), Floats)
    assert_type(classifier.score(X, y), float)
    stack = dp.PrivateStackingClassifier(epsilon=1.0)
    assert_type(stack.fit(X, y), dp.PrivateStackingClassifier)
    search = dp.PrivateSearchCV(classifier, {"alpha": [0.1, 1.0]})
    assert_type(search.fit(X, y), dp.PrivateSearchCV)
    assert_type(search.release_, dp.Release)
    assert_type(dp.PublicBoundsScaler.from_bounds({"age": (0, 100)}), dp.PublicBoundsScaler)
    assert_type(dp.HybridMEstimator(classifier).fit(X, y), dp.HybridMEstimator)
    assert_type(dp.make_release(classifier), dp.Release)


def judged(release: dp.Release, frame: pd.DataFrame) -> AuditResult:
    X, y = dp.split_target(frame, event="died", time="days")
    found = evaluation.private_survival_metrics(release, X, y, epsilon=1.0)
    assert_type(found, evaluation.SurvivalEvaluation)
    assert_type(found.summary, pd.DataFrame)
    assert_type(evaluation.concordance_index(y, np.ones(len(X))), float)
    forecast = dp.forecast_accuracy("survival", 5000, n_columns=8, event_rate=0.3)
    assert_type(forecast, AccuracyForecast)
    assert_type(forecast.advice, str)
    worst = next(worst_neighbours(model := dp.DPDiscreteTimeSurvival(max_time=10.0)))
    return audit_epsilon(model, worst.data, worst.neighbour)
