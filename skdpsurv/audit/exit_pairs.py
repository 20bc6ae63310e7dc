"""Worst pairs for a table of exits: a record from one cell to any other, empty or full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting

__all__ = ["exit_pairs"]


def exit_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of curves: durations, events or causes, and groups.

    Parameters
    ----------
    estimator : DPKaplanMeierFitter, DPNelsonAalenFitter or DPAalenJohansenFitter
    setting : PairSetting
        Of which the columns do not matter.
    """
    end, n = float(estimator.max_time), setting.n_others
    causes = getattr(estimator, "causes", None)
    none, *seen = (False, True) if causes is None else (estimator.censored, *list(causes))
    groups = None if estimator.groups is None else list(estimator.groups)
    here, there = (None, None) if groups is None else (groups[0], groups[-1])
    early, late = (0.0, seen[0], here), (end, seen[-1], there)
    stayed, gone = (end, none, here), (0.0, none, there)
    changes = {
        "event at zero or at the horizon": (early, late),
        "event at zero or still there at the horizon": (early, stayed),
        "event or still there at the horizon": (late, stayed),
        "event or censored at zero": (early, gone),
        "censored at zero or still there at the horizon": (gone, stayed),
        "event far beyond the horizon or at zero": ((FAR * end, seen[0], here), early),
        "event or censored in mid course": ((end / 2, seen[-1], there), (end / 2, none, here)),
    }
    times = setting.rng().uniform(0.0, end, n).tolist()
    crowds = {
        "others still there": [stayed] * n,
        "others with events at zero": [early] * n,
        "others spread out": [
            (time, seen[i % len(seen)] if i % 2 else none, (here, there)[i % 2])
            for i, time in enumerate(times)
        ],
    }
    for change, pair in changes.items():
        for crowd, others in crowds.items():
            if n == 0 and crowd != "others still there":
                continue
            name = f"{change}, {crowd}" if n else f"{change}, alone"
            made = []
            for record in pair:
                time, event, group = zip(record, *others, strict=True)
                data = (np.array(time), np.array(event))
                made.append(data if groups is None else (*data, {"group": np.array(group)}))
            yield NeighbourPair(name, *made)
