"""Worst pairs for regressions of survival: rows at their bound, times at the ends of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting
from skdpsurv.types import FloatArray

__all__ = ["outcomes", "survival_pairs"]

Y = np.dtype([("event", "?"), ("time", "f8")])


class _Record(NamedTuple):
    row: FloatArray
    event: bool
    time: float


def outcomes(events: Any, times: Any) -> NDArray[Any]:
    """Return a structured target."""
    return np.array(list(zip(events, times, strict=True)), dtype=Y)


def survival_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a DPDiscreteTimeSurvival.

    Parameters
    ----------
    estimator : DPDiscreteTimeSurvival
    setting : PairSetting
    """
    end = float(estimator.max_time)
    first = 0.5 * end / int(estimator.n_intervals)
    given = estimator.data_norm
    bound = math.sqrt(setting.n_features) / 2.0 if isinstance(given, str) else float(given)
    top, bottom, zero = (setting.along(size) for size in (bound, -bound, 0.0))
    far, opposite = (setting.along(size * bound) for size in (FAR, -FAR))

    early, late = _Record(top, True, first), _Record(top, True, end)
    healthy = _Record(top, False, end)
    changes = {
        "event at once or censored at the end": (early, healthy),
        "event in the first or the last interval": (early, late),
        "event or censored in the last interval": (late, healthy),
        "opposite rows, events at once": (early, early._replace(row=bottom)),
        "opposite rows, both censored at the end": (healthy, healthy._replace(row=bottom)),
        "opposite rows, event at once or censored": (early, healthy._replace(row=bottom)),
        "row at zero or at its bound": (early._replace(row=zero), early),
        "rows far beyond the bound": (early._replace(row=far), early._replace(row=opposite)),
        "time far beyond the horizon or at once": (_Record(top, True, FAR * end), early),
        "row at zero, event at once or censored": (
            early._replace(row=zero),
            healthy._replace(row=zero),
        ),
    }
    if setting.n_features > 1:
        shared, other = setting.shared(bound), setting.along(bound, 1)
        changes["rows at right angles"] = (early, early._replace(row=other))
        changes["row of all columns and its negative"] = (
            early._replace(row=shared),
            early._replace(row=-shared),
        )

    n = setting.n_others
    turns = setting.alternating(1.0, -1.0)
    crowds = {
        "others at zero and censored": ([zero] * n, [False] * n, [end] * n),
        "others with events at once": ([top] * n, [True] * n, [first] * n),
        "others censored at the end": ([top] * n, [False] * n, [end] * n),
        "others separable": (
            [turn * top for turn in turns],
            [turn > 0 for turn in turns],
            [first if turn > 0 else end for turn in turns],
        ),
        "others spread out": (
            list(setting.spread(bound)),
            setting.alternating(True, False),
            (end * setting.rng().uniform(0.0, 1.0, n)).tolist(),
        ),
    }
    for i, (change, pair) in enumerate(changes.items()):
        for j, (crowd, others) in enumerate(crowds.items()):
            # The strongest changes among all sorts of others, the rest among two.
            if (i > 1 and j > 1) or (n == 0 and j > 0):
                continue
            name = f"{change}, {crowd}" if n else f"{change}, alone"
            yield NeighbourPair(name, *(_data(record, *others) for record in pair))


def _data(
    record: _Record, rows: list[FloatArray], events: list[bool], times: list[float]
) -> tuple[Any, ...]:
    X = np.vstack([record.row, *rows])
    return X, outcomes([record.event, *events], [record.time, *times])
