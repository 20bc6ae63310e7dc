"""Simulated studies of regressions and of curves: one is drawn, and fitted with each epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpsurv.data.target import survival_target
from skdpsurv.dp.input_errors import suppressed_warnings
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation.forecast_covariates import Column, Table
from skdpsurv.evaluation.forecast_truth import HazardTruth, LabelTruth, Pairs
from skdpsurv.survival.regression import SurvivalRegression
from skdpsurv.survival.weibull.fitter import WeibullCurve

#: The measure of which the median over studies is told, not the mean.
MEDIAN = "interval_width"
#: Fresh records that a fit is judged on. No outcomes are drawn for them, only probabilities used.
N_FRESH = 2000
#: Times at which predicted survival of records, and a curve, are compared with what is true.
N_TIMES, N_CURVE_TIMES = 20, 100
#: Penalty of a classifier without privacy. Its own choice would be far from none, and penalises an
#: intercept that is far from 0, at the cost of the coefficients.
NO_PENALTY = 1e-6
#: Simulated fits behind an interval of a Weibull curve, and studies that have intervals: each of
#: these fits takes some milliseconds.
N_RESAMPLES, WITH_INTERVALS = 100, 5

#: Of one fit, by name.
Measures = dict[str, float]
#: Of one simulated study, by epsilon.
Run = dict[float, Measures]


@dataclass(frozen=True)
class Setting:
    """A study in public numbers.

    Parameters
    ----------
    n_records : int
    epsilons : tuple of float
        Rising; the last is infinite, no privacy.
    survival : tuple of float
        Share of events, share of the others that are censored, and Weibull shape of the baseline.
    concordance : float
    level : float
        Of intervals.
    columns : list of Column
        Empty for curves.
    names : sequence of str or None
        Those of raw columns; None: X is an array of numbers.
    """

    n_records: int
    epsilons: tuple[float, ...]
    survival: tuple[float, float, float]
    concordance: float
    level: float
    columns: list[Column]
    names: Sequence[str] | None


def _fitted(
    estimator: Any, epsilon: float, rng: np.random.Generator, *records: Any, **options: Any
) -> Any:
    """Return a copy of an estimator, fitted to made-up records with noise of a seed."""
    model = clone(estimator)
    model.set_params(epsilon=epsilon, random_state=int(rng.integers(2**31)))
    with suppressed_warnings():  # that a seed voids a guarantee: these records are nobody's
        return model.fit(*records, **options)


def regression_run(estimator: Any, setting: Setting, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of survival times or labels: ranking, absolute risk, standard errors."""
    rng = np.random.default_rng(seed)
    table = Table(setting.columns, setting.names, rng)
    fresh, effects = table.rows(N_FRESH, rng)
    unit = float(effects.std()) or 1.0
    z, pairs = effects / unit, Pairs.among(N_FRESH)
    survives = isinstance(estimator, SurvivalRegression)
    kind, n_asked = (HazardTruth, 3) if survives else (LabelTruth, 1)
    truth: Any = kind.found(z, pairs, setting.concordance, *setting.survival[:n_asked])
    firsts = truth.firsts(z, pairs)
    X, effects = table.rows(setting.n_records, rng)
    drawn = truth.draw(effects / unit, rng)
    if survives:
        y = survival_target(drawn[0], drawn[1] * float(estimator.max_time))
    else:
        y = np.sort(np.asarray(estimator.classes))[drawn.astype(int)]

    def judge(model: Any) -> Measures:
        if survives:
            score, predicted = model.predict(fresh), model.predict_survival_function(fresh, True)
            n_times = predicted.shape[1]
            kept = np.unique(np.linspace(0, n_times - 1, N_TIMES).round().astype(int))
            predicted, true = predicted[:, kept], truth.survival(z, (kept + 1.0) / n_times)
            risks = 1.0 - predicted[:, -1], 1.0 - true[:, -1]
        else:
            score, predicted = model.decision_function(fresh), model.predict_proba(fresh)[:, 1]
            true = truth.probability(z)
            risks = predicted, true
        return {
            "c_index" if survives else "auc": pairs.concordance(score, *firsts),
            "calibration": float(risks[0].mean() / risks[1].mean()),
            "risk_error": float(np.abs(risks[0] - risks[1]).mean()),
            # E (1{T > t} - p)^2 = S (1 - S) + (S - p)^2.
            "brier": float(np.mean(true * (1.0 - true) + (true - predicted) ** 2)),
        }

    exact, exact_model = None, estimator
    if getattr(estimator, "inference_share", 0.0):
        columns = estimator.columns
        features = fresh if columns is None else columns.fit_transform(fresh)
        information = truth.information(np.asarray(features, dtype=np.float64), z)
        exact = _errors(setting.n_records * information)
    if isinstance(getattr(estimator, "alpha", None), str):
        exact_model = clone(estimator).set_params(alpha=NO_PENALTY)
    run: Run = {}
    for epsilon in setting.epsilons:
        is_exact = math.isinf(epsilon)
        model = _fitted(exact_model if is_exact else estimator, epsilon, rng, X, y)
        run[epsilon] = judge(model)
        if exact is not None:
            run[epsilon] |= _widths(model, exact, is_exact)
    return run


def _errors(information: FloatArray) -> FloatArray:
    """Return standard errors, infinite for a column that is the same in all rows."""
    diagonal = np.diag(information)
    errors = np.full(diagonal.size, math.inf)
    known = np.flatnonzero(diagonal > 1e-12)
    variances = np.diag(np.linalg.pinv(information[np.ix_(known, known)]))
    errors[known] = np.sqrt(np.maximum(variances, 0.0))
    return errors


def _widths(model: Any, exact: FloatArray, is_exact: bool) -> Measures:
    """Return the median width of intervals relative to no privacy, and the share of finite ones."""
    errors = exact
    if not is_exact:
        found = model.inference_
        errors = np.full(exact.size, math.inf) if found is None else found.standard_errors()
        errors = errors[-exact.size :]
    there = np.isfinite(exact) & (exact > 0.0)
    if not there.any():
        return {MEDIAN: math.nan, "finite_intervals": math.nan}
    ratios = errors[there] / exact[there]
    return {MEDIAN: float(np.median(ratios)), "finite_intervals": float(np.isfinite(ratios).mean())}


def curve_run(estimator: Any, setting: Setting, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of survival times without covariates, and fit it with each epsilon.

    Errors are absolute, and means over groups.
    """
    rng = np.random.default_rng(seed)
    truth = HazardTruth.of(np.zeros(1), 0.0, *setting.survival)
    event, time = truth.draw(np.zeros(setting.n_records), rng)
    horizon = float(estimator.max_time)
    shares = np.arange(1, N_CURVE_TIMES + 1) / N_CURVE_TIMES
    true = truth.survival(np.zeros(1), shares)[0]
    half = (math.log(2.0) / truth.hazard) ** (1.0 / truth.shape)
    labels = getattr(estimator, "groups", None)
    options = {}
    if labels is not None:
        options["group"] = [labels[i % len(labels)] for i in range(setting.n_records)]
    # The last of the key is the number of the study.
    quick = not isinstance(estimator, WeibullCurve) or seed.spawn_key[-1] < WITH_INTERVALS

    def judge(curve: Any) -> Measures:
        off = np.asarray(curve.survival_function_at_times(shares * horizon)) - true
        found = {
            "largest_error": float(np.abs(off).max()),
            "mean_error": float(np.abs(off).mean()),
            "restricted_mean_error": float(abs(off.mean())),
        }
        if half <= 1.0:
            median = min(float(curve.median_survival_time_) / horizon, 1.0)
            found["median_error"] = abs(median - half)
        middle = end = math.nan
        if quick:
            times = [horizon / 2.0, horizon]
            band = curve.survival_band(times, setting.level, n_resamples=N_RESAMPLES)
            middle, end = (band["upper"] - band["lower"]).to_numpy()
        return {**found, "width_middle": float(middle), "width_horizon": float(end)}

    run: Run = {}
    for epsilon in setting.epsilons:
        model = _fitted(estimator, epsilon, rng, time * horizon, event, **options)
        curves = [model] if labels is None else [model.of_group(label) for label in labels]
        each = [judge(curve) for curve in curves]
        run[epsilon] = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
    return run
