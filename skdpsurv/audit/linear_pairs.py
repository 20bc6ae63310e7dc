"""Worst pairs for private linear models: rows at their bound, outcomes at either end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting

__all__ = ["linear_pairs"]


def linear_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a subclass of PrivateLinearModel.

    Parameters
    ----------
    estimator : PrivateLinearModel
    setting : PairSetting
    """
    bound, n = estimator._norm, setting.n_others
    low, high = estimator._outcome_range()
    top, zero = setting.along(bound), setting.along(0.0)
    changes = {
        "outcome at either end": ((top, low), (top, high)),
        "row and its negative": ((top, high), (-top, high)),
        "row and outcome turned around": ((top, low), (-top, high)),
        "row at zero or at its bound": ((zero, high), (top, high)),
        "far beyond the bounds": ((FAR * top, FAR * max(high, 1.0)), (-FAR * top, high)),
    }
    if setting.n_features > 1:
        shared, other = setting.shared(bound), setting.along(bound, setting.n_features - 1)
        changes["rows at right angles"] = ((top, high), (other, high))
        changes["outcome at a row of all columns"] = ((shared, low), (shared, high))
    outcomes = setting.alternating(high, low)
    crowds = {
        "others alike": (setting.repeated(top), [low] * n),
        "others spread out": (setting.spread(bound), outcomes),
    }
    for i, (change, pair) in enumerate(changes.items()):
        for j, (crowd, (rows, others)) in enumerate(crowds.items()):
            if (i > 1 and j > 0) or (n == 0 and j > 0):
                continue
            data = [
                (np.vstack([row[None], rows]), np.array([outcome, *others], dtype=float))
                for row, outcome in pair
            ]
            yield NeighbourPair(f"{change}, {crowd}" if n else f"{change}, alone", *data)
