"""Product-limit estimates without privacy, of the times themselves: what private ones approach."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from skdpsurv.blocks import Blocks
from skdpsurv.privacy import clip_times
from skdpsurv.types import FloatArray, IndexArray


class Steps(NamedTuple):
    """Different times; at each, records at risk, and how many of them had each cause."""

    times: FloatArray
    at_risk: FloatArray
    events: FloatArray

    @property
    def survival(self) -> FloatArray:
        """Kaplan-Meier estimates after each time."""
        return np.cumprod(1.0 - self.events.sum(axis=0) / self.at_risk)

    @property
    def cumulative_hazard(self) -> FloatArray:
        """Nelson-Aalen estimates; events of one time come one after the other (Fleming 1984)."""
        left = self.at_risk - self.events.sum(axis=0)
        return np.cumsum(special.digamma(self.at_risk + 1.0) - special.digamma(left + 1.0))

    @property
    def incidence(self) -> FloatArray:
        """Aalen-Johansen estimates of each cause."""
        before = np.append(1.0, self.survival[:-1])
        return np.cumsum(before * self.events / self.at_risk, axis=-1)


def exact_curves(
    records: Blocks[tuple[IndexArray, FloatArray, IndexArray]],
    ends: FloatArray,
    n_causes: int,
    n_groups: int,
) -> dict[str, Any]:
    """Return curves at the ends of bands: of everybody first, then of each group.

    Parameters
    ----------
    records : Blocks
        Of causes (0 where censored), times and groups. Private, and released as they are.
    ends : ndarray of shape (n_bands,)
    n_causes, n_groups : int

    Returns
    -------
    dict
        ``survival`` and ``cumulative_hazard``, of shape (n_curves, n_bands), and ``incidence``, of
        shape (n_curves, n_causes, n_bands). One group is everybody, and has one curve.
    """
    blocks = list(records.results(tuple))
    cause, time, group = (np.concatenate([block[i] for block in blocks]) for i in range(3))
    time, event = clip_times(time, cause > 0, float(ends[-1]))
    cause = np.where(event, cause, 0)
    everybody = np.ones(time.size, dtype=bool)
    parts = [everybody, *(group == g for g in range(n_groups) if n_groups > 1)]
    curves = [_at(_steps(time[part], cause[part], n_causes), ends) for part in parts]
    names = ("survival", "cumulative_hazard", "incidence")
    return {
        name: np.ascontiguousarray([curve[i] for curve in curves]) for i, name in enumerate(names)
    }


def _steps(time: FloatArray, cause: IndexArray, n_causes: int) -> Steps:
    times, place, number = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = time.size - np.append(0, np.cumsum(number)[:-1])
    events = [np.bincount(place[cause == k + 1], minlength=times.size) for k in range(n_causes)]
    return Steps(times, at_risk.astype(np.float64), np.array(events, dtype=np.float64))


def _at(steps: Steps, ends: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    place = np.searchsorted(steps.times, ends, side="right")
    none = np.zeros((steps.events.shape[0], 1))
    return (
        np.append(1.0, steps.survival)[place],
        np.append(0.0, steps.cumulative_hazard)[place],
        np.concatenate([none, steps.incidence], axis=1)[:, place],
    )
