"""Data sets of both kinds, and what is fitted to them: defaults, as the guides have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.data import LABELLED, Labelled, Survival, labelled, survival, survset
from benchmarks.data.survival import SURVIVAL
from benchmarks.harness import Setting
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression
from skdpsurv.evaluation import concordance_index

Data = Survival | Labelled


def real(setting: Setting, name: str) -> Data:
    """Return a data set; a name that is not ours is one of the package SurvSet."""
    if name in LABELLED:
        return labelled(setting, name)
    return survival(setting, name) if name in SURVIVAL else survset(name)


def half_norm(data: Labelled) -> float:
    """Return half of the largest norm of a row; longer rows are scaled. Components: all of it."""
    return data.data_norm / 2.0 if data.data_norm > 1.0 else 1.0


def estimator(data: Data, **options: Any) -> Any:
    """Return the default, with what is publicly known of the records."""
    if isinstance(data, Survival):
        return DPDiscreteTimeSurvival(max_time=data.max_time, **options)
    return DPLogisticRegression(classes=[0, 1], data_norm=half_norm(data), **options)


def ranking(model: Any, data: Data, rows: np.ndarray) -> float:
    """Return Harrell's C, or the area under the ROC curve."""
    if isinstance(data, Survival):
        return float(concordance_index(data.y[rows], model.predict(data.X[rows])))
    return float(roc_auc_score(data.y[rows], model.decision_function(data.X[rows])))
