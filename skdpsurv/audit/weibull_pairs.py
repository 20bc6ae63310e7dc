"""Worst pairs for a distribution of survival times: at zero, at the horizon, and beyond."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting

__all__ = ["weibull_pairs"]


def weibull_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a Weibull distribution: durations and events.

    Parameters
    ----------
    estimator : WeibullCurve
    setting : PairSetting
        Of which the columns do not matter.
    """
    end, n = float(estimator.max_time), setting.n_others
    least = end * math.exp(-float(estimator.omega))
    early, late, healthy = (0.0, True), (end, True), (end, False)
    changes = {
        "event at zero or censored at the horizon": (early, healthy),
        "event at zero or at the horizon": (early, late),
        "event or censored at the horizon": (late, healthy),
        "event or censored at zero": (early, (0.0, False)),
        "censored at zero or at the horizon": ((0.0, False), healthy),
        "event far beyond the horizon or at zero": ((FAR * end, True), early),
        "event in mid course or at the horizon": ((end * math.exp(-1.0), True), late),
        "event in mid course or at zero": ((end * math.exp(-1.0), True), early),
        # As far below the least time as can be.
        "event at the least time or far below": ((least, True), (least / FAR, True)),
    }
    turns = setting.alternating(True, False)
    crowds = {
        "others censored at the horizon": [(end, False)] * n,
        "others with events at the horizon": [(end, True)] * n,
        "others with events at zero": [(0.0, True)] * n,
        "one event among others": [(0.5 * end, True), *[(end, False)] * (n - 1)][:n],
        "others half at zero, half censored": [(0.0, True) if t else (end, False) for t in turns],
        "others spread out": [
            (float(end * time), turn)
            for time, turn in zip(setting.rng().uniform(0.0, 1.0, n), turns, strict=True)
        ],
    }
    for i, (change, pair) in enumerate(changes.items()):
        for j, (crowd, others) in enumerate(crowds.items()):
            if (i > 2 and j not in (1, 5)) or (n == 0 and j != (1 if i > 2 else 0)):
                continue
            name = f"{change}, {crowd}" if n else f"{change}, alone"
            columns = [zip(record, *others, strict=True) for record in pair]
            times = [(np.array(time, dtype=float), np.array(event)) for time, event in columns]
            yield NeighbourPair(name, *times)
