"""What all experiments on the stacks of Guo et al. (arXiv 1811.09491) share: models and scores.

As in the paper, components and the variances that serve as importances are computed on all rows.
Neither is private: they are here to compare methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score

from benchmarks.data import Labelled
from benchmarks.harness import seed
from benchmarks.pages import interval
from skdpsurv import DPLogisticRegression, FeaturePartition, PrivateStackingClassifier

SETS = ("MNIST 0 or 8", "MNIST 4 or 9", "NEWS20")
N_PARTITIONS = 5
PLR, SAMPLES, UNIFORM, WEIGHTED = "PLR", "PST-S", "PST-F(U)", "PST-F(W)"
#: Of these, the vote by importance is the default of this package.
VOTE_U, VOTE_W = "weighted vote (U)", "weighted vote (W)"
NOTE = "± is half a 95 % interval of the mean over random splits of the same records"


def stack(**options: object) -> PrivateStackingClassifier:
    """Return a stack at epsilon 1, on five groups of columns, unless said otherwise."""
    return PrivateStackingClassifier(**({"classes": [0, 1], "data_norm": 1.0} | options))


def plain(**options: object) -> DPLogisticRegression:
    """Return private logistic regression at epsilon 1."""
    return DPLogisticRegression(**({"classes": [0, 1], "data_norm": 1.0} | options))


def random_groups(n_features: int, n_groups: int, repetition: int) -> FeaturePartition:
    """Return columns dealt out at random, with equal importances, as PST-F(U) has them."""
    order = np.random.default_rng([repetition, n_groups]).permutation(n_features)
    return FeaturePartition([sorted(part.tolist()) for part in np.array_split(order, n_groups)])


def similar_groups(importances: np.ndarray, n_groups: int, power: float = 1.0) -> FeaturePartition:
    """Return columns grouped by importance, which count by a power of it, as PST-F(W) has them."""
    order = np.argsort(-importances, kind="stable")
    groups = [sorted(part.tolist()) for part in np.array_split(order, n_groups)]
    return FeaturePartition(groups, importances=importances**power)


def methods(data: Labelled, repetition: int) -> dict[str, BaseEstimator]:
    """Return the methods of figure 1, and votes instead of a model on top."""
    uniform = {"partition": random_groups(data.X.shape[1], N_PARTITIONS, repetition)}
    weighted = {"partition": similar_groups(data.importances, N_PARTITIONS)}
    return {
        PLR: plain(),
        SAMPLES: stack(partition="samples", combiner="logistic"),
        UNIFORM: stack(combiner="logistic", **uniform),
        WEIGHTED: stack(combiner="logistic", **weighted),
        VOTE_U: stack(**uniform),
        VOTE_W: stack(**weighted),
    }


def fitted(model: BaseEstimator, data: Labelled, repetition: int, *key: object) -> float:
    """Return the AUC of a model of this repetition's training rows on its test rows.

    ``key`` is what tells the fit apart, besides data and repetition: its noise depends on it.
    """
    train, test = data.split(repetition)
    model.set_params(random_state=seed("stacking", data.name, repetition, *key))
    return auc(model.fit(data.X[train], data.y[train]), data.X[test], data.y[test])


def auc(model: BaseEstimator, X: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve of a model's scores."""
    return float(roc_auc_score(y, model.decision_function(X)))


def sets_of(rows: pd.DataFrame) -> list[str]:
    """Return the data sets that there are rows of, in order."""
    return [name for name in SETS if name in set(rows["data"])]


def difference(values: pd.Series) -> str:
    """Return a mean difference and its interval as text; in bold where 0 is outside."""
    mean, width = interval(values.to_numpy())
    digits = 4 if width < 0.001 else 3
    text = f"{signed(mean, digits)} ± {width:.{digits}f}"
    return f"**{text}**" if abs(mean) > width else text


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def ahead(better: pd.Series, worse: pd.Series) -> int:
    """Return 1 if the first is larger beyond doubt, by paired repetitions; −1 if smaller; else 0.

    With one repetition nothing is beyond doubt.
    """
    mean, width = interval((better - worse).dropna().to_numpy())
    return int(np.sign(mean)) if abs(mean) > width else 0


def listed(words: Sequence[object]) -> str:
    """Return words as a list in a sentence."""
    *most, last = map(str, words)
    return f"{', '.join(most)} and {last}" if most else last


def between(values: Iterable[float], write: Callable[[float], str] = "{:.3f}".format) -> str:
    """Return the least and the most of some numbers as text."""
    found = list(values)
    least, most = write(min(found)), write(max(found))
    return least if least == most else f"{least} to {most}"


def gaps(sets: Iterable[pd.DataFrame], ours: str, theirs: str) -> str:
    """Return the least and the most, of data sets, by which a mean AUC differs from another."""
    return between((aucs[ours].mean() - aucs[theirs].mean() for aucs in sets), signed)
