"""What runs in diffprivlib's own environment: fits, and what they score or take.

python _diffprivlib_worker.py TASK INPUT.npz OUTPUT.json

Imports nothing of skdpsurv. :func:`scores` is shared: both packages are scored by the same code.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

METRICS = ("accuracy", "auc", "log_loss")


def scores(y: np.ndarray, predictor: np.ndarray, probability: np.ndarray) -> tuple[float, ...]:
    """Return accuracy, AUC and log loss of labels 0 and 1."""
    positive = y == 1
    n_positive = int(positive.sum())
    ranks = rankdata(predictor)[positive].sum()
    pairs = n_positive * (y.size - n_positive)
    auc = (ranks - n_positive * (n_positive + 1) / 2) / pairs
    tiny = np.finfo(float).eps
    of_truth = np.clip(np.where(positive, probability, 1.0 - probability), tiny, 1.0)
    return float(np.mean((predictor > 0) == positive)), float(auc), float(-np.log(of_truth).mean())


def seconds(call: Callable[[], object], repetitions: int) -> float:
    """Return the median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def accuracy(given: Any) -> Any:
    """Scores, of shape (epsilons, Cs, splits, metrics)."""
    from diffprivlib.models import LogisticRegression

    X, y, cut = given["X"], given["y"], int(given["cut"])
    found = []
    for epsilon in given["epsilons"]:
        for C in given["Cs"]:
            for repetition, order in enumerate(given["orders"]):
                train, test = order[:cut], order[cut:]
                model = LogisticRegression(
                    epsilon=float(epsilon),
                    data_norm=1.0,
                    C=float(C),
                    fit_intercept=False,
                    random_state=repetition,
                ).fit(X[train], y[train])
                probability = model.predict_proba(X[test])[:, 1]
                found.append(scores(y[test], model.decision_function(X[test]), probability))
    shape = (len(given["epsilons"]), len(given["Cs"]), len(given["orders"]), len(METRICS))
    return np.reshape(found, shape).tolist()


def speed(given: Any) -> Any:
    """Seconds of a fit at the defaults."""
    from diffprivlib.models import LogisticRegression

    model = LogisticRegression(epsilon=1.0, data_norm=1.0)
    return seconds(lambda: model.fit(given["X"], given["y"]), int(given["repetitions"]))


def audit(given: Any) -> Any:
    """Coefficients and intercept of many fits of two data sets."""
    from diffprivlib.models import LogisticRegression

    options = json.loads(str(given["options"]))
    found = []
    for which in range(2):
        X, y = given[f"X{which}"], given[f"y{which}"]
        releases = []
        for trial in range(int(given["trials"])):
            seed = 2 * trial + which
            model = LogisticRegression(**options, random_state=seed).fit(X, y)
            releases.append([*model.coef_[0].tolist(), float(model.intercept_[0])])
        found.append(releases)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    task, source, target = sys.argv[1:]
    with np.load(source) as archive:
        arrays = dict(archive)
    result = {"accuracy": accuracy, "speed": speed, "audit": audit}[task](arrays)
    Path(target).write_text(json.dumps(result))
