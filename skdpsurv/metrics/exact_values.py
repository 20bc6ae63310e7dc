"""The same measures without noise and without a table: of the records themselves, not private."""

from __future__ import annotations

import numpy as np

from skdpsurv.concordance import concordance_index
from skdpsurv.metrics.released_values import Measures, Reading
from skdpsurv.metrics.risk_table import EvaluationRecords, brier_terms
from skdpsurv.privacy import clip_times
from skdpsurv.target import survival_target
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
    uncensored, at_exit = (
        # Nobody is left to be weighted where it is 0.
        np.where(shares > 0.0, shares, 1.0)
        for shares in (_left(~event, time, at, after=event) for at in (setting.times, time))
    )
    clipped = EvaluationRecords(records.survival, event, time)
    last = records.survival[:, -1]
    group = np.searchsorted(reading.ends[1:-1], last, side="right")
    groups = [group == g for g in range(reading.merged.shape[0])]
    ends = reading.edges.band_ends[1:]
    return Measures(
        np.asarray(concordance_index(survival_target(event, time), 1.0 - last)),
        brier_terms(clipped, setting.times, uncensored, at_exit, clip=False).mean(),
        (1.0 - last).mean() / max(1.0 - _left(event, time, ends)[-1], 1.0 / time.size),
        np.array([last[who].mean() if who.any() else np.nan for who in groups]),
        np.stack([_left(event[who], time[who], ends) for who in groups]),
    )


def _left(
    leaving: BoolArray, time: FloatArray, at: FloatArray, after: BoolArray | None = None
) -> FloatArray:
    """Return the product-limit estimate at some times; NaN of nobody.

    Who leaves does so after those of ``after`` with the same time.
    """
    if not time.size:
        return np.full(at.size, np.nan)
    times, place, number = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = time.size - np.cumsum(number) + number
    if after is not None:
        at_risk = at_risk - np.bincount(place, after)
    gone = np.bincount(place, leaving) / np.maximum(at_risk, 1)
    return np.append(1.0, np.cumprod(1.0 - gone))[np.searchsorted(times, at, side="right")]
