"""Worst pairs for private classifiers: rows at their bound, labels flipped, the intercept alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdpsurv.audit.neighbour_pair import FAR, NeighbourPair, PairSetting

__all__ = ["labelled_pairs"]


def labelled_pairs(estimator: Any, setting: PairSetting) -> Iterator[NeighbourPair]:
    """Yield the pairs of a DPLogisticRegression or PrivateStackingClassifier.

    Parameters
    ----------
    estimator : DPLogisticRegression or PrivateStackingClassifier
        Without ``classes`` they are taken to be 0 and 1.
    setting : PairSetting
    """
    bound, n = estimator._norm, setting.n_others
    stated = [0, 1] if estimator.classes is None else np.unique(estimator.classes).tolist()
    low, high = stated[0], stated[-1]
    top, zero = setting.along(bound), setting.along(0.0)
    changes = {
        "label flipped": ((top, low), (top, high)),
        "row and its negative": ((top, high), (-top, high)),
        "row at zero or at its bound": ((zero, low), (top, low)),
        "row and label turned around": ((top, low), (-top, high)),
        "label flipped at a row of zeros": ((zero, low), (zero, high)),
        "rows far beyond the bound": ((FAR * top, high), (-FAR * top, high)),
        "row far beyond the bound or at zero": ((FAR * top, high), (zero, high)),
    }
    if setting.n_features > 1:
        shared, other = setting.shared(bound), setting.along(bound, setting.n_features - 1)
        changes["label flipped at a row of all columns"] = ((shared, low), (shared, high))
        changes["rows at right angles"] = ((top, high), (other, high))
        changes["row of all columns and its negative"] = ((shared, high), (-shared, high))
    if len(stated) > 2:
        changes["label of one class or of another"] = ((top, stated[0]), (top, stated[1]))
    turns = setting.alternating(1.0, -1.0)
    labels = setting.alternating(high, low)
    crowds = {
        "others alike": (setting.repeated(top), [low] * n),
        "others at zero": (setting.repeated(zero), labels),
        "others at zero with one label": (setting.repeated(zero), [low] * n),
        "others separable": (np.outer(turns, top).reshape(n, top.size), labels),
        "others spread out": (setting.spread(bound), labels),
    }
    for i, (change, pair) in enumerate(changes.items()):
        for j, (crowd, (rows, others)) in enumerate(crowds.items()):
            if (i > 2 and j > 1) or (n == 0 and j > 0):
                continue
            name = f"{change}, {crowd}" if n else f"{change}, alone"
            data = [
                (np.vstack([row[None], rows]), np.array([label, *others])) for row, label in pair
            ]
            yield NeighbourPair(name, *data)
