"""Simulated studies of a regression: ranking, absolute risk and standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpsurv.forecast.covariates import Table
from skdpsurv.forecast.hazard_truth import HazardTruth
from skdpsurv.forecast.label_truth import LabelTruth
from skdpsurv.forecast.pairs import Pairs
from skdpsurv.forecast.setting import MEDIAN, Measures, Run, Setting, fitted
from skdpsurv.types import FloatArray

__all__ = ["label_run", "survival_run"]

#: Fresh records that a fit is judged on. No outcomes are drawn for them, only probabilities used.
N_FRESH = 2000
#: Times at which predicted survival is compared with what is true.
N_TIMES = 20

#: Penalty of a classifier without privacy. Its own choice would be far from none, and penalises an
#: intercept that is far from 0, at the cost of the coefficients.
NO_PENALTY = 1e-6

#: Of a fitted model: its measures.
Judge = Callable[[Any], Measures]


def survival_run(estimator: Any, setting: Setting, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of survival times, and fit it with each epsilon."""
    rng = np.random.default_rng(seed)
    table, fresh, z, pairs = _people(setting, rng)
    unit = float(z.std()) or 1.0
    truth = HazardTruth.found(
        z / unit,
        pairs,
        setting.concordance,
        setting.event_rate,
        setting.censoring,
        setting.baseline_shape,
    )
    firsts = truth.firsts(z / unit, pairs)
    X, of_records = table.rows(setting.n_records, rng)
    event, time = truth.draw(of_records / unit, rng)
    y = np.empty(event.size, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, time * float(estimator.max_time)

    def judge(model: Any) -> Measures:
        predicted = model.predict_survival_function(fresh, return_array=True)
        n_times = predicted.shape[1]
        kept = np.unique(np.linspace(0, n_times - 1, N_TIMES).round().astype(int))
        true = truth.survival(z / unit, (kept + 1.0) / n_times)
        risk, predicted = 1.0 - true[:, -1], predicted[:, kept]
        return {
            "c_index": pairs.concordance(model.predict(fresh), *firsts),
            **_risks(1.0 - predicted[:, -1], risk),
            # E (1{T > t} - p)^2 = S (1 - S) + (S - p)^2.
            "brier": float(np.mean(true * (1.0 - true) + (true - predicted) ** 2)),
        }

    def information() -> FloatArray:
        return truth.information(_features(estimator, fresh), z / unit)

    return _fits(estimator, setting, rng, (X, y), judge, information)


def label_run(estimator: Any, setting: Setting, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of two classes, and fit it with each epsilon."""
    rng = np.random.default_rng(seed)
    table, fresh, z, pairs = _people(setting, rng)
    unit = float(z.std()) or 1.0
    truth = LabelTruth.found(z / unit, pairs, setting.concordance, setting.event_rate)
    firsts, risk = truth.firsts(z / unit, pairs), truth.probability(z / unit)
    X, of_records = table.rows(setting.n_records, rng)
    y = np.sort(np.asarray(estimator.classes))[truth.draw(of_records / unit, rng).astype(int)]

    def judge(model: Any) -> Measures:
        predicted = model.predict_proba(fresh)[:, 1]
        return {
            "auc": pairs.concordance(model.decision_function(fresh), *firsts),
            **_risks(predicted, risk),
            "brier": float(np.mean(risk * (1.0 - risk) + (risk - predicted) ** 2)),
        }

    def information() -> FloatArray:
        return truth.information(_features(estimator, fresh), z / unit)

    return _fits(estimator, setting, rng, (X, y), judge, information)


def _people(setting: Setting, rng: np.random.Generator) -> tuple[Table, Any, FloatArray, Pairs]:
    """Draw effects, and fresh people with what these do to them."""
    table = Table(setting.columns, setting.names, rng)
    fresh, z = table.rows(N_FRESH, rng)
    return table, fresh, z, Pairs.among(N_FRESH)


def _risks(predicted: FloatArray, true: FloatArray) -> Measures:
    return {
        "calibration": float(predicted.mean() / true.mean()),
        "risk_error": float(np.abs(predicted - true).mean()),
    }


def _features(estimator: Any, rows: Any) -> FloatArray:
    made = rows if estimator.columns is None else estimator.columns.fit_transform(rows)
    return np.asarray(made, dtype=np.float64)


def _fits(
    estimator: Any,
    setting: Setting,
    rng: np.random.Generator,
    records: tuple[Any, Any],
    judge: Judge,
    information: Callable[[], FloatArray],
) -> Run:
    run: Run = {}
    exact = None
    if getattr(estimator, "inference_share", 0.0):
        exact = _errors(setting.n_records * information())
    exact_model = estimator
    if isinstance(getattr(estimator, "alpha", None), str):
        exact_model = clone(estimator).set_params(alpha=NO_PENALTY)
    for epsilon in setting.epsilons:
        chosen = exact_model if math.isinf(epsilon) else estimator
        model = fitted(chosen, epsilon, rng, *records)
        run[epsilon] = judge(model)
        if exact is not None:
            errors = exact if math.isinf(epsilon) else _standard_errors(model, exact.size)
            run[epsilon] |= _widths(errors, exact)
    return run


def _errors(information: FloatArray) -> FloatArray:
    """Return standard errors, infinite for a column that is the same in all rows."""
    diagonal = np.diag(information)
    errors = np.full(diagonal.size, math.inf)
    known = np.flatnonzero(diagonal > 1e-12)
    variances = np.diag(np.linalg.pinv(information[np.ix_(known, known)]))
    errors[known] = np.sqrt(np.maximum(variances, 0.0))
    return errors


def _standard_errors(model: Any, n_features: int) -> FloatArray:
    if model.inference_ is None:
        return np.full(n_features, math.inf)
    return np.asarray(model.inference_.standard_errors()[-n_features:])


def _widths(errors: FloatArray, exact: FloatArray) -> Measures:
    """Return the median width of intervals relative to no privacy, and the share of finite ones."""
    there = np.isfinite(exact) & (exact > 0.0)
    if not there.any():
        return {MEDIAN: math.nan, "finite_intervals": math.nan}
    ratios = errors[there] / exact[there]
    return {
        MEDIAN: float(np.median(ratios)),
        "finite_intervals": float(np.isfinite(ratios).mean()),
    }
