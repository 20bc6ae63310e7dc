"""How rivals' scripts are asked and scored, in whatever environment: needs NumPy and SciPy alone.

A script is run as ``python script TASK IN.npz OPTIONS.json OUT.json``.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

SCORES = ("auc", "accuracy", "log_loss")
#: Log odds of rows, and probabilities of label 1.
Prediction = tuple[np.ndarray, np.ndarray]


def serve(**tasks: Callable[[dict[str, np.ndarray], dict[str, Any]], Any]) -> None:
    """Do what the command line asks: ``task(arrays, options)`` returns what JSON can hold."""
    warnings.simplefilter("ignore")
    task, source, wishes, target = sys.argv[1:]
    with np.load(source) as archive:
        arrays = dict(archive)
    result = tasks[task](arrays, json.loads(Path(wishes).read_text()))
    Path(target).write_text(json.dumps(result))


def scores(y: np.ndarray, odds: np.ndarray, probability: np.ndarray) -> tuple[float, float, float]:
    """Return AUC, accuracy and log loss of labels 0 and 1."""
    positive = y == 1
    n_positive = int(positive.sum())
    pairs = n_positive * (y.size - n_positive)
    auc = (rankdata(odds)[positive].sum() - n_positive * (n_positive + 1) / 2) / pairs
    tiny = np.finfo(float).eps
    of_truth = np.clip(np.where(positive, probability, 1.0 - probability), tiny, 1.0)
    accuracy = np.mean((odds > 0.0) == positive)
    return float(auc), float(accuracy), float(-np.log(of_truth).mean())


def logistic(odds: np.ndarray) -> Prediction:
    """Return log odds with their probabilities."""
    return odds, np.exp(-np.logaddexp(0.0, -odds))


def with_constant(X: np.ndarray, size: float) -> np.ndarray:
    """Return rows of norm at most 1 with a constant column, such that their norm still is."""
    return np.column_stack([X, np.full(len(X), size)]) / np.sqrt(1.0 + size**2)


def splits(arrays: dict[str, np.ndarray]) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield rows and labels for training, then those for testing, of each split."""
    X, y, cut = arrays["X"], arrays["y"], int(arrays["cut"])
    for order in arrays["orders"]:
        train, test = order[:cut], order[cut:]
        yield X[train], y[train], X[test], y[test]


def mean_scores(
    arrays: dict[str, np.ndarray], fit: Callable[[np.ndarray, np.ndarray, np.ndarray], Prediction]
) -> list[float]:
    """Return mean scores over the splits of ``fit(X, y, rows)``."""
    found = [scores(truth, *fit(X, y, rows)) for X, y, rows, truth in splits(arrays)]
    return np.mean(found, axis=0).tolist()
