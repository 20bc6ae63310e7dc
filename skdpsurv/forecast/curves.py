"""Simulated studies of a survival curve, of everybody or of groups of one size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdpsurv.forecast.hazard_truth import HazardTruth
from skdpsurv.forecast.setting import Measures, Run, Setting, fitted
from skdpsurv.survival.weibull_curve import WeibullCurve

__all__ = ["curve_run"]

#: Times at which a curve is compared with the true one.
N_TIMES = 100
#: Simulated fits behind an interval of a Weibull curve, and studies that have intervals: each of
#: these fits takes some milliseconds.
N_RESAMPLES, WITH_INTERVALS = 100, 5


def curve_run(estimator: Any, setting: Setting, seed: np.random.SeedSequence) -> Run:
    """Simulate one study of survival times without covariates, and fit it with each epsilon.

    Errors are absolute, and means over groups.
    """
    rng = np.random.default_rng(seed)
    alike = np.zeros(1)
    truth = HazardTruth.of(
        alike, 0.0, setting.event_rate, setting.censoring, setting.baseline_shape
    )
    event, time = truth.draw(np.zeros(setting.n_records), rng)
    horizon = float(estimator.max_time)
    shares = np.arange(1, N_TIMES + 1) / N_TIMES
    true = truth.survival(alike, shares)[0]
    half = (math.log(2.0) / truth.hazard) ** (1.0 / truth.shape)
    labels = getattr(estimator, "groups", None)
    options = {}
    if labels is not None:
        options["group"] = [labels[i % len(labels)] for i in range(setting.n_records)]

    def judge(curve: Any) -> Measures:
        predicted = np.asarray(curve.survival_function_at_times(shares * horizon))
        off = predicted - true
        found = {
            "largest_error": float(np.abs(off).max()),
            "mean_error": float(np.abs(off).mean()),
            "restricted_mean_error": float(abs(off.mean())),
        }
        if half <= 1.0:
            median = min(float(curve.median_survival_time_) / horizon, 1.0)
            found["median_error"] = abs(median - half)
        middle = end = math.nan
        # The last of the key is the number of the study.
        if not isinstance(curve, WeibullCurve) or seed.spawn_key[-1] < WITH_INTERVALS:
            times = [horizon / 2.0, horizon]
            band = curve.survival_band(times, setting.level, n_resamples=N_RESAMPLES)
            middle, end = (band["upper"] - band["lower"]).to_numpy()
        return {**found, "width_middle": float(middle), "width_horizon": float(end)}

    def of_groups(model: Any) -> Measures:
        if labels is None:
            return judge(model)
        each = [judge(model.of_group(label)) for label in labels]
        return {name: float(np.mean([one[name] for one in each])) for name in each[0]}

    return {
        epsilon: of_groups(fitted(estimator, epsilon, rng, time * horizon, event, **options))
        for epsilon in setting.epsilons
    }
