"""Worst pairs for fits to weighed public records, or cells: who enters and who leaves a cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting
from skdpsurv.types import FloatArray

__all__ = ["histogram_pairs", "hybrid_pairs"]

Record = tuple[FloatArray, Any]

#: Public records for each private one, and at least.
PUBLIC_SHARE, LEAST_PUBLIC = 2, 12


def hybrid_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a HybridMEstimator: X, y and the mask of public records.

    Parameters
    ----------
    estimator : HybridMEstimator
    setting : PairSetting
        Beside whose n private records there are public ones, an even grid from -1 to 1.
    """
    classifies = estimator.estimator is None or is_classifier(estimator.estimator)
    n_public = max(PUBLIC_SHARE * setting.n, LEAST_PUBLIC)
    steps = np.linspace(-1.0, 1.0, n_public)
    # Columns take the grid's values in other orders, so that they are no multiples of each other.
    rows = np.column_stack([np.roll(steps, 5 * j) for j in range(setting.n_features)])
    y = (
        np.arange(n_public) % 2
        if classifies
        else 0.5 * steps + 0.25 * (-1.0) ** np.arange(n_public)
    )
    # Labels 0 and 1, or the range of public outcomes; one that no public record has.
    low, high = (0, 1) if classifies else (float(y.min()), float(y.max()))
    unknown = 9 if classifies else FAR
    top, zero = setting.shared(np.sqrt(setting.n_features)), setting.along(0.0)
    changes = {
        "at opposite ends, other outcomes": ((-top, low), (top, high)),
        "at opposite ends, one outcome": ((-top, low), (top, low)),
        "outcome flipped at the end": ((top, low), (top, high)),
        "outcome flipped in the middle": ((zero, low), (zero, high)),
        "at a public record or next to it": ((rows[0], low), (rows[1], low)),
        "far beyond the public range": ((-FAR * top, low), (FAR * top, high)),
        "outcome that no public record has": ((top, unknown), (top, low)),
    }
    others = setting.n_others
    ends = [(-top, low)] * others
    spread = list(zip(setting.spread(1.0), setting.alternating(low, high), strict=True))
    for i, (change, pair) in enumerate(changes.items()):
        crowds: dict[str, list[Record]] = {
            "others in its cell": [pair[0]] * others,
            "its cell emptied": [(-pair[0][0], high if pair[0][1] == low else low)] * others,
            "others at one end": ends,
            "others spread out": spread,
        }
        for j, (crowd, rest) in enumerate(crowds.items()):
            if (i > 0 and j > 1) or (others == 0 and j > 0):
                continue
            name = f"{change}, {crowd}" if others else f"{change}, alone"
            data = []
            for record in pair:
                private, outcomes = zip(record, *rest, strict=True)
                X, target = np.vstack([rows, *private]), np.append(y, outcomes)
                data.append((X, target, np.arange(len(X)) < n_public))
            yield NeighbourPair(name, *data)


def histogram_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a PerturbedHistogramMEstimator, whose bounds say the number of columns.

    Parameters
    ----------
    estimator : PerturbedHistogramMEstimator
    setting : PairSetting
    """
    classifies = estimator.estimator is None or is_classifier(estimator.estimator)
    lows, highs = np.asarray(estimator.bounds, dtype=float).T
    middle, widths = (lows + highs) / 2.0, highs - lows
    stated = np.unique(estimator.outcome).tolist()
    low, high = stated[0], stated[-1]
    changes = {
        "in opposite corners, other outcomes": ((lows, low), (highs, high)),
        "in opposite corners, one outcome": ((lows, low), (highs, low)),
        "outcome flipped": ((middle, low), (middle, high)),
        "far beyond the bounds": ((lows - FAR * widths, low), (highs + FAR * widths, low)),
    }
    if not classifies:
        changes["outcome far beyond its range"] = ((middle, low - FAR), (middle, high + FAR))
    n = setting.n_others
    spread = list(
        zip(
            setting.rng().uniform(lows, highs, (n, lows.size)),
            setting.alternating(low, high),
            strict=True,
        )
    )
    for change, pair in changes.items():
        crowds = {
            "others in its cell": [pair[0]] * n,
            "its cell emptied": [(middle, high)] * n,
            "others spread out": spread,
        }
        for j, (crowd, rest) in enumerate(crowds.items()):
            if n == 0 and j > 0:
                continue
            name = f"{change}, {crowd}" if n else f"{change}, alone"
            columns = [zip(record, *rest, strict=True) for record in pair]
            data = [(np.vstack(rows), np.array(outcomes)) for rows, outcomes in columns]
            yield NeighbourPair(name, *data)
