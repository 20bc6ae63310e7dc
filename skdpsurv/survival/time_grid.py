"""The grid of q intervals of equal length on (0, max_time]."""

from __future__ import annotations

import numpy as np

from skdpsurv.privacy import clip_times
from skdpsurv.types import BoolArray, FloatArray, IntArray


def interval_ends(max_time: float, n_intervals: int) -> FloatArray:
    """Return the right ends of the intervals, shape (n_intervals,), in the unit of max_time."""
    return max_time * (np.arange(1, n_intervals + 1) / n_intervals)


def exit_intervals(
    time: FloatArray, event: BoolArray, max_time: float, n_intervals: int
) -> tuple[IntArray, BoolArray]:
    """Put times on the grid; each record on its own, so neighbours stay neighbours.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Non-negative times.
    event : ndarray of bool, shape (n,)
    max_time : float
        Public horizon; records beyond it become censored at it.
    n_intervals : int
        q.

    Returns
    -------
    interval : ndarray of int, shape (n,)
        ``clip(ceil(q t / max_time), 1, q)``.
    event : ndarray of bool, shape (n,)
    """
    time, event = clip_times(time, event, max_time)
    with np.errstate(over="ignore"):  # near the largest double: infinity lands in interval q
        position = np.ceil(n_intervals * time / max_time)
    return np.clip(position, 1, n_intervals).astype(np.int64), event
