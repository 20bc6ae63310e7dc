"""The same measures without noise and without a table: of the records themselves, not private."""

from __future__ import annotations

import numpy as np
from sksurv.nonparametric import CensoringDistributionEstimator, kaplan_meier_estimator

from skdpsurv.concordance import concordance_index
from skdpsurv.metrics.released_values import Measures, Reading
from skdpsurv.metrics.risk_table import EvaluationRecords, brier_terms
from skdpsurv.privacy import clip_times
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["exact_measures"]


def exact_measures(records: EvaluationRecords, reading: Reading) -> Measures:
    """Return the measures of records, for the groups of a reading.

    C is that of the predicted risk at the horizon; the Brier score is weighted by the Kaplan-Meier
    estimate of censoring; observed survival is the Kaplan-Meier estimate of each group. A group
    without records has neither prediction nor observation: NaN.
    """
    setting = reading.setting
    time, event = clip_times(records.time, records.event, setting.horizon)
    target = np.empty(time.size, dtype=[("event", "?"), ("time", "f8")])
    target["event"], target["time"] = event, time
    censoring = CensoringDistributionEstimator().fit(target)
    uncensored, at_exit = (_positive(censoring.predict_proba(t)) for t in (setting.times, time))
    clipped = EvaluationRecords(records.survival, event, time)
    last = records.survival[:, -1]
    group = np.searchsorted(reading.ends[1:-1], last, side="right")
    groups = [group == g for g in range(reading.merged.shape[0])]
    ends = reading.edges.band_ends[1:]
    return Measures(
        np.asarray(concordance_index(target, 1.0 - last)),
        brier_terms(clipped, setting.times, uncensored, at_exit, clip=False).mean(),
        (1.0 - last).mean() / max(1.0 - _surviving(event, time, ends)[-1], 1.0 / time.size),
        np.array([last[who].mean() if who.any() else np.nan for who in groups]),
        np.stack([_surviving(event[who], time[who], ends) for who in groups]),
    )


def _positive(shares: FloatArray) -> FloatArray:
    # Nobody is left to be weighted where it is 0.
    return np.where(shares > 0.0, shares, 1.0)


def _surviving(event: BoolArray, time: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the Kaplan-Meier estimate at some times; NaN of nobody."""
    if not time.size:
        return np.full(ends.size, np.nan)
    jumps, left = kaplan_meier_estimator(event, time)
    left = np.concatenate([[1.0], left])
    return np.asarray(left[np.searchsorted(jumps, ends, side="right")])
