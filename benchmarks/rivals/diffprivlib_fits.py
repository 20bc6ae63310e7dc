"""What runs in diffprivlib's environment.

Its neighbours differ by a replaced record (Chaudhuri's objective perturbation). It keeps its
epsilon for rows of norm 1 without an intercept: a constant column that counts in the norm is one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from diffprivlib.models import LogisticRegression
from worker import Prediction, logistic, mean_scores, serve, with_constant


def accuracy(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> list[list[float]]:
    """Return scores of each of ``settings``, (epsilon, C)."""
    constant = options["constant"]
    found = []
    for epsilon, C in options["settings"]:

        def fit(
            X: np.ndarray, y: np.ndarray, rows: np.ndarray, epsilon: float = epsilon, C: float = C
        ) -> Prediction:
            model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False)
            model.fit(with_constant(X, constant), y)
            return logistic(model.decision_function(with_constant(rows, constant)))

        found.append(mean_scores(arrays, fit))
    return found


def releases(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> list[list[list[float]]]:
    """Return coefficients and intercepts of many fits of two data sets."""
    found = []
    for which in range(2):
        X, y = arrays[f"X{which}"], arrays[f"y{which}"]
        fits = (LogisticRegression(**options["model"]).fit(X, y) for _ in range(options["trials"]))
        found.append([[*fit.coef_[0].tolist(), float(fit.intercept_[0])] for fit in fits])
    return found


def seconds(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> float:
    """Return the median processor time of fits at the defaults, after one that does not count."""
    model, times = LogisticRegression(epsilon=1.0, data_norm=1.0), []
    for _ in range(options["fits"] + 1):
        start = time.process_time()
        model.fit(arrays["X"], arrays["y"])
        times.append(time.process_time() - start)
    return float(np.median(times[1:]))


if __name__ == "__main__":
    serve(accuracy=accuracy, releases=releases, seconds=seconds)
