"""What runs in InterpretML's environment: boosted sums of functions of one column each.

Neighbours of the private ones differ by a record that is added or removed, and n is public: noise
has a standard deviation in units of the largest change that one record makes to a count of a bin,
and to a sum of residuals. Rounds compose by Gaussian differential privacy; a tenth of epsilon and
half of delta are for the bins, and both parts add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.glassbox import ExplainableBoostingClassifier
from interpret.privacy import DPExplainableBoostingClassifier
from worker import Prediction, logistic, mean_scores, serve


def accuracy(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> list[list[float]]:
    """Return scores of each of ``settings``, (epsilon, delta); without privacy if both are 0.

    Columns are within [-1, 1], unless ``bounds`` are stated; those of ``nominal`` are labels.
    """
    n_columns = arrays["X"].shape[1]
    bounds = arrays.get("bounds", np.tile([-1.0, 1.0], (n_columns, 1)))
    kinds = [
        "nominal" if j in options.get("nominal", ()) else "continuous" for j in range(n_columns)
    ]
    stated = {"feature_types": kinds, "n_jobs": 1}
    found = []
    for epsilon, delta in options["settings"]:
        if epsilon > 0.0:
            # None: as for anybody who wants privacy.
            private = {"epsilon": epsilon, "delta": delta, "random_state": None}
            model = DPExplainableBoostingClassifier(privacy_bounds=bounds, **stated, **private)
        else:
            model = ExplainableBoostingClassifier(interactions=0, outer_bags=4, **stated)

        def fit(X: np.ndarray, y: np.ndarray, rows: np.ndarray, model: Any = model) -> Prediction:
            # Public: labels are 0 and 1.
            return logistic(model.fit(X, y).decision_function(rows))

        found.append(mean_scores(arrays, fit))
    return found


if __name__ == "__main__":
    serve(accuracy=accuracy)
