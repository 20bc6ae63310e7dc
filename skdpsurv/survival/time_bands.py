"""Bands of time that exits are counted in: public, and narrower at the start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.checks import is_list
from skdpsurv.privacy import clip_times, refuse_masked
from skdpsurv.types import BoolArray, FloatArray, IndexArray

#: Bands for a number of records times epsilon, per group: a part of its root, between two ends.
BANDS_PER_ROOT, FEWEST_BANDS, MOST_BANDS = 0.8, 4, 200
#: Ways out by band, and pairs of them in all groups: more takes too long to make curves of.
LARGEST_TABLE, LARGEST_TABLES = 1000, 20_000_000
#: Bands are at least so long, in parts of the horizon.
NARROWEST = 1e-9


def n_bands_for(n_records: int, epsilon: float, n_groups: int) -> int:
    """Return how many bands are worth their noise, by public numbers.

    Noise in a count of all that left by some time grows with the root of the bands before it, and
    what a band hides falls with its width.
    """
    if math.isinf(epsilon):
        return MOST_BANDS
    root = math.sqrt(n_records * epsilon / n_groups)
    return int(np.clip(round(BANDS_PER_ROOT * root), FEWEST_BANDS, MOST_BANDS))


def band_ends(max_time: float, n_bands: int, breakpoints: str | ArrayLike) -> FloatArray:
    r"""Return the right ends of the bands, shape (n_bands,), in the unit of max_time.

    Parameters
    ----------
    max_time : float
    n_bands : int
    breakpoints : {"early", "equal"} or array-like
        Ends at :math:`T (k/q)^2`, at :math:`T k/q`, or these themselves and max_time.
    """
    if not isinstance(breakpoints, str):
        return np.append(np.asarray(breakpoints, dtype=np.float64), max_time)
    parts = np.arange(1, n_bands + 1) / n_bands
    return max_time * (parts**2 if breakpoints == "early" else parts)


def check_breakpoints(name: str, breakpoints: Any) -> None:
    """Refuse what is neither a word nor a list of rising times.

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(breakpoints, str) and breakpoints in ("early", "equal"):
        return
    says = f"{name} must be 'early', 'equal', or a list of at least one time, positive and rising"
    if isinstance(breakpoints, str):
        raise ValueError(f"{says}, got {breakpoints!r}.")
    if not is_list(breakpoints) or isinstance(breakpoints, Set | Mapping):
        raise TypeError(f"{says}, got {type(breakpoints).__name__}.")
    refuse_masked(breakpoints, name)
    listed = list(breakpoints)
    if any(isinstance(one, bool | np.bool_) or not isinstance(one, Real) for one in listed):
        raise ValueError(f"{says}.")
    with np.errstate(over="ignore"):
        times = np.array([float(one) for one in listed if abs(one) < 1e300])
    if times.size < max(len(listed), 1) or times[0] <= 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"{says}.")
    if times.size >= LARGEST_TABLE // 2:
        raise ValueError(f"{name} must be fewer than {LARGEST_TABLE // 2:,} times.")


def bands_of(
    time: FloatArray, event: BoolArray, ends: FloatArray
) -> tuple[IndexArray, BoolArray, BoolArray]:
    """Put times in bands; each record on its own, so neighbours stay neighbours.

    Parameters
    ----------
    time : ndarray of shape (n,)
    event : ndarray of bool, shape (n,)
    ends : ndarray of shape (n_bands,)
        The last one is the public horizon.

    Returns
    -------
    band : ndarray of int, shape (n,)
        The first whose end is not before the time.
    event : ndarray of bool, shape (n,)
        After the horizon nothing is seen.
    stayed : ndarray of bool, shape (n,)
        Whether the record was followed to the horizon without an event.
    """
    horizon = float(ends[-1])
    time, event = clip_times(time, event, horizon)
    return np.searchsorted(ends, time, side="left"), event, ~event & (time >= horizon)
